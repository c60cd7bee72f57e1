"""Arrows as the code of Priv-PC and CURATE draws them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from dpcurate.graphs.base_graph import Arrow
from dpcurate.graphs.graph import Skeleton


def coded_arcs(skeleton: Skeleton) -> frozenset[Arrow]:
    """A line is two arcs; colliders and rules take arcs away, each seeing what went before.

    Of two colliders that disagree the first one holds. There are three of Meek's rules, not four, and they
    turn a line into an arrow only from the earlier column to the later one. Arrows may close a cycle.
    """
    arcs = {arc for a, b in skeleton.edges for arc in ((a, b), (b, a))}
    for a, b in combinations(skeleton.nodes, 2):
        given = skeleton.separator(a, b)
        if given is not None:
            heads = [k for k in skeleton.nodes if {(a, k), (b, k)} <= arcs and k not in given]
            arcs -= {arc for k in heads for arc in ((k, a), (k, b))}
    while _pass(skeleton.nodes, arcs):
        pass
    return frozenset(arcs)


def _pass(nodes: tuple[str, ...], arcs: set[Arrow]) -> bool:
    """Once over all pairs; whether any line became an arrow."""
    before = len(arcs)
    for a, b in combinations(nodes, 2):
        if {(a, b), (b, a)} <= arcs and any(_reasons(nodes, arcs, a, b)):
            arcs.remove((b, a))
    return len(arcs) < before


def _reasons(nodes: tuple[str, ...], arcs: set[Arrow], a: str, b: str) -> Iterator[bool]:
    def arrow(x: str, y: str) -> bool:
        return (x, y) in arcs and (y, x) not in arcs

    def apart(x: str, y: str) -> bool:
        return (x, y) not in arcs and (y, x) not in arcs

    yield any(arrow(k, a) and apart(k, b) for k in nodes if k not in (a, b))
    yield any(arrow(a, k) and arrow(k, b) for k in nodes)
    beside = [k for k in nodes if {(a, k), (k, a)} <= arcs and arrow(k, b)]
    yield any(apart(k, m) for k, m in combinations(beside, 2))
