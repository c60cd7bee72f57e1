"""What the report says of one edge: its kind in words, its evidence, and whether it was tested to the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dpcurate.graphs.drawing.edges import Origin, Shown
from dpcurate.graphs.drawing.text import clean, number
from dpcurate.learn.found import FoundEdge, MarkedEdge
from dpcurate.learn.outcome import Evidence, Pair
from dpcurate.report.effects import shown_effects

if TYPE_CHECKING:
    from dpcurate.graphs.knowledge import Knowledge
    from dpcurate.result import Discovery

MOST = 12
"""Decisions told for one edge; the last ones decide."""


def shown_edges(result: Discovery) -> tuple[Shown, ...]:
    """Every edge of the graph, in the columns' order."""
    told: dict[Pair, list[Evidence]] = {}
    for item in result.learned.evidence:
        told.setdefault(frozenset(item.pair), []).append(_without_chance(item, result.learned.linked))
    late = open_orders(result.learned.unfinished)
    effects = shown_effects(result)
    return tuple(replace(_shown(e, result.knowledge, told, late), **effects.get((e.a, e.b), {})) for e in result.edges)


def _without_chance(item: Evidence, linked: Mapping[Pair, float]) -> Evidence:
    """A decision by the probability that is shown anyway was made for one cut: say for which."""
    if item.value is None or item.value != linked.get(frozenset(item.pair)):
        return item
    return replace(item, verdict=f"best-f1: {item.verdict}", value=None)


def open_orders(unfinished: Mapping[int, Sequence[Pair]]) -> dict[Pair, tuple[int, ...]]:
    """Edges the budget did not reach, with the orders it did not reach them at."""
    late: dict[Pair, tuple[int, ...]] = {}
    for order, pairs in sorted(unfinished.items()):
        for pair in pairs:
            late[frozenset(pair)] = (*late.get(frozenset(pair), ()), order)
    return late


def _shown(
    edge: FoundEdge,
    knowledge: Knowledge | None,
    told: Mapping[Pair, Sequence[Evidence]],
    late: Mapping[Pair, tuple[int, ...]],
) -> Shown:
    pair = frozenset((edge.a, edge.b))
    source = _source(edge, knowledge)
    decisions = _told(told.get(pair, ()))
    sign = edge.sign if isinstance(edge, MarkedEdge) else ""
    open_at = late.get(pair, ())
    meaning = edge.meaning if edge.directed and not sign else ""
    shown = Shown(edge.a, edge.b, edge.directed, source, edge.linked, edge.direction, decisions, open_at, sign)
    return replace(shown, meaning=meaning)


def _source(edge: FoundEdge, knowledge: Knowledge | None) -> Origin:
    if knowledge is None:
        return Origin.DATA
    if knowledge.requires(edge.a, edge.b):
        return Origin.GIVEN
    if edge.directed and not knowledge.may_point(edge.b, edge.a):
        return Origin.DIRECTION
    return Origin.DATA


def _told(decisions: Sequence[Evidence]) -> tuple[str, ...]:
    left_out = len(decisions) - MOST
    first = (f"{left_out} earlier decisions are not shown",) if left_out > 0 else ()
    return (*first, *map(sentence, decisions[-MOST:]))


def sentence(item: Evidence) -> str:
    """One decision: what was compared with what."""
    given = f" given {', '.join(map(clean, item.given))}" if item.given else ""
    value = "" if item.value is None else f": value {number(item.value)}"
    noise = f" ± {number(item.noise)}" if item.noise else ""
    against = "" if item.threshold is None else f" against {number(item.threshold)}"
    return f"{clean(item.verdict)}{given}{value}{noise}{against}"
