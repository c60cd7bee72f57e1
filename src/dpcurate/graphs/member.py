"""One DAG of the class that a graph with lines stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations

from dpcurate.graphs.checks import Arrow, Edge, find_cycle
from dpcurate.graphs.graph import Cpdag, Dag, ordered_edges
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.orient import extension

Way = Callable[[str, str], float | None]
"""P(a -> b | linked), None where it is not known."""
INSIDE = "one DAG of the class that was found"
OUTSIDE = "no DAG has the arrows that were found and no further collider, so this one has more"


def member(graph: Cpdag | Dag, way: Way, knowledge: Knowledge | None = None) -> Dag:
    """A DAG with the graph's arrows and without further colliders, its lines turned the likelier way.

    The surest line is turned first, equals in the order of nodes, and a line of no known way points to its
    later node. A turn that leaves no such DAG is made the other way round. Noise may draw a graph of which there
    is no such DAG: then colliders are let in, and only cycles avoided. What the knowledge says holds always.
    `note` of what is returned says which lines were turned.
    """
    if isinstance(graph, Dag):
        return graph
    if not graph.lines:
        return Dag(graph.nodes, graph.arrows)
    given = f"{len(graph.lines)} of {len(graph.edges)} edges had no direction and were given the likelier one that fits"
    graph = _drawn(graph, _forced(graph, knowledge or Knowledge()))
    likely = _likely(graph, way)
    if extension(graph) is None:
        return Dag(graph.nodes, _turned(graph, likely, _anything), f"{OUTSIDE}: {given}")
    known = _colliders(graph)
    return Dag(graph.nodes, _turned(graph, likely, lambda g: _extends(g, known)), f"{INSIDE}: {given}")


def _forced(graph: Cpdag, known: Knowledge) -> list[Arrow]:
    """Lines that knowledge leaves one way round."""
    both = [arrow for a, b in map(tuple, graph.lines) for arrow in ((a, b), (b, a))]
    return [(a, b) for a, b in both if known.may_point(a, b) and not known.may_point(b, a)]


def _likely(graph: Cpdag, way: Way) -> list[Arrow]:
    """The likelier way round of every line, the surest first."""
    sure: dict[Arrow, float] = {}
    for a, sign, b in ordered_edges(graph):
        if sign == "--":
            p = way(a, b)
            p = 0.5 if p is None else p
            sure[(a, b) if p >= 0.5 else (b, a)] = abs(p - 0.5)
    return sorted(sure, key=lambda arrow: -sure[arrow])


def _turned(graph: Cpdag, likely: list[Arrow], possible: Callable[[Cpdag], bool]) -> frozenset[Arrow]:
    """The arrows, and every line as one, in this order, as long as what is left is possible."""
    if not _closes_cycle(graph, likely) and possible(_drawn(graph, likely)):  # most often, and much faster
        return graph.arrows.union(likely)
    for a, b in likely:
        if _closes_cycle(graph, [(a, b)]) or not possible(_drawn(graph, [(a, b)])):
            a, b = b, a
        graph = _drawn(graph, [(a, b)])
    return graph.arrows


def _drawn(graph: Cpdag, arrows: Iterable[Arrow]) -> Cpdag:
    """The graph with these lines as arrows."""
    fresh = frozenset(arrows)
    return Cpdag(graph.nodes, graph.arrows | fresh, graph.lines - {frozenset(arrow) for arrow in fresh})


def _closes_cycle(graph: Cpdag, arrows: Iterable[Arrow]) -> bool:
    return find_cycle(graph.nodes, graph.arrows.union(arrows)) is not None


def _anything(_: Cpdag) -> bool:
    """What has no directed cycle can be directed without one."""
    return True


def _extends(graph: Cpdag, colliders: set[tuple[Edge, str]]) -> bool:
    """Whether some DAG has its arrows and these colliders alone."""
    return _colliders(graph) == colliders and extension(graph) is not None


def _colliders(graph: Cpdag) -> set[tuple[Edge, str]]:
    """Triples a -> c <- b where a and b have no edge, as ({a, b}, c)."""
    parents: dict[str, list[str]] = {}
    for a, c in graph.arrows:
        parents.setdefault(c, []).append(a)
    pairs = ((frozenset(pair), c) for c, above in parents.items() for pair in combinations(above, 2))
    linked = graph.edges
    return {(pair, c) for pair, c in pairs if pair not in linked}
