"""PAGs by brute force, from definitions alone: every ancestral graph with the same independences, and what all share.

Nothing here uses the rules or the skeletons of `dpcurate.graphs`; only paths and m-separation.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from random import Random

from dpcurate.graphs.graph import Dag
from dpcurate.graphs.pag import Pag

KINDS = (("tail", "arrow"), ("arrow", "tail"), ("arrow", "arrow"), ("tail", "tail"))
Independences = frozenset[tuple[frozenset[str], frozenset[str]]]
Ends = dict[tuple[str, str], str]


def independences(dag: Dag, visible: tuple[str, ...], selected: tuple[str, ...] = ()) -> Independences:
    """All pairs of visible columns with all visible sets that separate them, rows selected."""
    return frozenset(
        (frozenset((a, b)), frozenset(given))
        for a, b, given in _statements(visible)
        if dag.d_separated(a, b, (*given, *selected))
    )


def _statements(nodes: tuple[str, ...]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for a, b in combinations(nodes, 2):
        others = [n for n in nodes if n not in (a, b)]
        for size in range(len(others) + 1):
            for given in combinations(others, size):
                yield a, b, given


def brute_pag(visible: tuple[str, ...], facts: Independences, kinds: tuple[tuple[str, str], ...] = KINDS) -> Pag:
    """The marks that all maximal ancestral graphs with these independences have, circles elsewhere."""
    separable = {pair for pair, _ in facts}
    edges = [(a, b) for a, b in combinations(visible, 2) if frozenset((a, b)) not in separable]
    seen: dict[tuple[str, str], set[str]] = {}
    for choice in product(kinds, repeat=len(edges)):
        ends: Ends = {}
        for (a, b), (left, right) in zip(edges, choice, strict=True):
            ends[b, a], ends[a, b] = left, right
        if ancestral(visible, ends) and _same(visible, ends, facts):
            for end, mark in ends.items():
                seen.setdefault(end, set()).add(mark)
    return Pag(visible, {end: next(iter(m)) if len(m) == 1 else "circle" for end, m in seen.items()})  # type: ignore[misc]


def ancestral(nodes: tuple[str, ...], ends: Ends) -> bool:
    """No node causes itself or one it has an arrowhead towards, and no arrowhead meets an undirected edge."""
    above = _ancestors(nodes, ends)
    for (b, a), mark in ends.items():
        if mark == "arrow" and a in above[b]:
            return False
        if mark == ends[a, b] == "tail" and any(end == a and other == "arrow" for (_, end), other in ends.items()):
            return False
    return True


def _ancestors(nodes: tuple[str, ...], ends: Ends) -> dict[str, set[str]]:
    """With the node itself."""
    above = {n: {n} for n in nodes}
    for _ in nodes:
        for (a, b), mark in ends.items():
            if mark == "arrow" and ends[b, a] == "tail":
                above[b] |= above[a]
    return above


def _same(nodes: tuple[str, ...], ends: Ends, facts: Independences) -> bool:
    above = _ancestors(nodes, ends)
    return all(
        m_separated(nodes, ends, above, a, b, given) == ((frozenset((a, b)), frozenset(given)) in facts)
        for a, b, given in _statements(nodes)
    )


def m_separated(
    nodes: tuple[str, ...], ends: Ends, above: dict[str, set[str]], a: str, b: str, given: tuple[str, ...]
) -> bool:
    """No path from a to b on which given non-colliders are missing and all colliders are above a given node."""
    open_ = set().union(*(above[n] for n in given)) if given else set()

    def leads(path: list[str]) -> bool:
        here = path[-1]
        if here == b:
            return True
        for after in nodes:
            if (here, after) not in ends or after in path:
                continue
            if len(path) > 1:
                collider = ends[path[-2], here] == ends[after, here] == "arrow"
                if (here not in open_) if collider else (here in given):
                    continue
            if leads([*path, after]):
                return True
        return False

    return not leads([a])


def walk(mag: Pag, steps: int, random: Random) -> dict[tuple[str, str], set[str]]:
    """Marks met on a walk through graphs without selection that have the same independences.

    Zhang and Spirtes (2005), UAI: any two are joined by changes of one mark, a -> b to a <-> b or back, each of which
    is possible under three conditions on the graph with the arrow.
    """
    ends: Ends = dict(mag.marks)
    met: dict[tuple[str, str], set[str]] = {end: {mark} for end, mark in ends.items()}
    edges = sorted(ends)  # a set has another order in each process, and the walk with it
    for _ in range(steps):
        a, b = random.choice(edges)
        if ends[a, b] != "arrow":
            continue
        directed: Ends = ends | {(b, a): "tail"}
        if ancestral(mag.nodes, directed) and _changeable(mag.nodes, directed, a, b):
            ends[b, a] = "arrow" if ends[b, a] == "tail" else "tail"
            met[b, a].add(ends[b, a])
    return met


def _changeable(nodes: tuple[str, ...], ends: Ends, a: str, b: str) -> bool:
    """Whether a -> b may become a <-> b and no independence changes."""
    without = {end: mark for end, mark in ends.items() if set(end) != {a, b}}
    if a in _ancestors(nodes, without)[b]:
        return False
    for c in (c for c in nodes if ends.get((c, a)) == "arrow" and c != b):
        if ends.get((c, b)) != "arrow" or (ends[a, c] == "tail" and ends[b, c] != "tail"):
            return False
    return not _discriminates(nodes, ends, a, b)


def _discriminates(nodes: tuple[str, ...], ends: Ends, a: str, b: str) -> bool:
    """Whether a path d ... x a b has all between d and a as colliders and parents of b, and d apart from b."""

    def parent(x: str) -> bool:
        return ends.get((x, b)) == "arrow" and ends[b, x] == "tail"

    def leads(path: list[str]) -> bool:
        x = path[-1]
        for y in nodes:
            if y in path or y == b or ends.get((y, x)) != "arrow":
                continue
            if (y, b) not in ends:
                return True
            if parent(y) and ends[x, y] == "arrow" and leads([*path, y]):
                return True
        return False

    starts = [x for x in nodes if x != b and ends.get((a, x)) == "arrow" and parent(x)]
    return any(leads([a, x]) for x in starts)
