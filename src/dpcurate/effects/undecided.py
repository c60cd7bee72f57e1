"""Whether the graph has no path from a cause to an outcome only because pairs on the way are undecided."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from itertools import pairwise

from dpcurate._messages import chance
from dpcurate.effects.effect import Effect
from dpcurate.graphs.graph import Graph
from dpcurate.learn.found import FoundPair

Steps = dict[str, dict[str, int]]
"""Where one may go from a column, and how many undecided pairs that takes: none or one."""


def unless_undecided(effect: Effect, graph: Graph, pairs: Iterable[FoundPair], direction: float) -> Effect:
    """The effect, or *undecided* where the graph has none but pairs that it leaves open could lead there.

    `direction` is the probability from which on a pair would be drawn as an arrow.
    """
    if effect.state != "none":
        return effect
    undecided = {(p.a, p.b): p for p in pairs}
    way = _fewest(_steps(graph, undecided, direction), effect.cause, effect.outcome)
    on_the_way = [undecided.get(ends) or undecided.get(ends[::-1]) for ends in pairwise(way)]
    open_pairs = [pair for pair in on_the_way if pair is not None]
    if not open_pairs:
        return effect
    return Effect.unknown(effect.cause, effect.outcome, "undecided", _reason(open_pairs))


def _reason(pairs: list[FoundPair]) -> str:
    named = " and ".join(f"{p.a} and {p.b} (linked {chance(p.linked or 0.0)})" for p in pairs)
    lowest = math.floor(100 * min(p.linked or 0.0 for p in pairs)) / 100
    them, link = ("it", "link") if len(pairs) == 1 else ("them", "links")
    drawn = f"found.at({lowest:g}).effect(...) supposes {them}; " if lowest > 0 else ""
    return (
        f"it depends on the {link} between {named}, neither drawn nor ruled out. {drawn}"
        f"knowledge, more rows or a larger epsilon would decide {them}"
    )


def _steps(graph: Graph, undecided: Mapping[tuple[str, str], FoundPair], direction: float) -> Steps:
    steps: Steps = {name: {} for name in graph.nodes}
    for a, sign, b in graph.written():
        if sign[0] != "<" and (sign[-1] != "-" or sign == "--"):
            steps[a][b] = 0
        if sign[-1] != ">":
            steps[b][a] = 0
    for (a, b), pair in undecided.items():
        forwards = 0.5 if pair.direction is None else pair.direction
        if forwards > 1 - direction:
            steps[a].setdefault(b, 1)
        if forwards < direction:
            steps[b].setdefault(a, 1)
    return steps


def _fewest(steps: Steps, start: str, end: str) -> list[str]:
    """The columns on a way with the fewest undecided pairs; none if there is no way."""
    queue, seen = [(0, 0, [start])], set[str]()
    while queue:
        taken, length, way = heappop(queue)
        if way[-1] == end:
            return way
        if way[-1] not in seen:
            seen.add(way[-1])
            for name, more in steps[way[-1]].items():
                heappush(queue, (taken + more, length + 1, [*way, name]))
    return []
