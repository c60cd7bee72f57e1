"""From a skeleton with separating sets to a CPDAG: colliders, then Meek's rules.

Every step is a function of sets (all proposals are collected before any is adopted), so the result
does not depend on the order of nodes, edges or separating sets. Meek (1995), UAI, for the rules;
Colombo and Maathuis (2014), JMLR 15, for why order matters.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import combinations

from dpcurate.errors import GraphError
from dpcurate.graphs.base_graph import Arrow, UnorderedPair, children_of, find_cycle, neighbour_sets, reachable
from dpcurate.graphs.graph import Cpdag, Dag, Skeleton, ordered_edges
from dpcurate.graphs.knowledge import Knowledge


def orient(skeleton: Skeleton, knowledge: Knowledge | None = None) -> Cpdag:
    """Orient what the separating sets and the background knowledge decide.

    Evidence from noisy answers can contradict itself. The rule, in this order:

    1. Background knowledge always holds; an arrowhead against it is dropped.
    2. An edge to which evidence gives an arrowhead at both ends gets neither.
    3. Arrowheads that together would close a directed cycle are all dropped.
    4. An edge that lost an arrowhead by 2 or 3 stays a line, unless a directed path between its
       ends decides it (the other direction would be a cycle).

    A triple a - c - b is evidence only where a separating set of a and b is recorded: a collider if c
    is not in it, else not a collider. A pair that was never tested is evidence of nothing.
    """
    partial = PartialGraph(skeleton)
    if knowledge is not None:
        partial.draw(_forced(skeleton, knowledge))
    colliders, partial.chains = _triples(skeleton, partial.around)
    partial.settle(colliders)
    while True:
        partial.follow_paths()
        if not partial.settle(_meek(partial)):
            return partial.cpdag()


def dag_to_cpdag(dag: Dag, knowledge: Knowledge | None = None) -> Cpdag:
    """The CPDAG of a DAG's Markov class, with what background knowledge orients."""
    place = {name: i for i, name in enumerate(dag.order())}
    parents = children_of((b, a) for a, b in dag.arrows)
    around = neighbour_sets(dag.nodes, dag.arrows)
    separators = {}
    for near in around.values():
        for a, b in combinations(near, 2):
            if b not in around[a]:
                # A node's parents separate it from everything that is not below it.
                separators[frozenset((a, b))] = tuple(parents.get(max(a, b, key=place.__getitem__), ()))
    return orient(Skeleton(dag.nodes, dag.edges, separators), knowledge)


class PartialGraph:
    """The drawing in progress: arrows, lines and the edges on which evidence disagreed."""

    def __init__(self, skeleton: Skeleton) -> None:
        self.nodes: tuple[str, ...] = skeleton.nodes
        self.around: dict[str, set[str]] = neighbour_sets(skeleton.nodes, skeleton.edges)
        self.lines: dict[str, set[str]] = neighbour_sets(skeleton.nodes, skeleton.edges)
        self.parents: dict[str, set[str]] = {name: set() for name in skeleton.nodes}
        self.arrows: set[Arrow] = set()
        self.disputed: set[UnorderedPair] = set()
        self.chains: set[tuple[str, UnorderedPair]] = set()

    def draw(self, arrows: set[Arrow]) -> None:
        """Turn these lines into arrows."""
        for a, b in arrows:
            self.arrows.add((a, b))
            self.parents[b].add(a)
            self.lines[a].discard(b)
            self.lines[b].discard(a)

    def settle(self, proposed: set[Arrow]) -> bool:
        """Draw the proposals nothing contradicts, remember the disputed rest; whether any was drawn."""
        fresh = {(a, b) for a, b in proposed if b in self.lines[a] and frozenset((a, b)) not in self.disputed}
        agreed = {(a, b) for a, b in fresh if (b, a) not in fresh}
        agreed -= self._on_cycles(agreed)
        self.disputed |= {frozenset(pair) for pair in fresh - agreed}
        self.draw(agreed)
        return bool(agreed)

    def follow_paths(self) -> None:
        """Meek's rule 2 for paths of any length: a line along a directed path gets its direction.

        One pass is enough: an arrow beside a path makes nothing newly reachable.
        """
        below = self._below(self.arrows)
        self.draw({(a, b) for a in self.nodes for b in self.lines[a] if b in below[a]})

    def _on_cycles(self, proposed: set[Arrow]) -> set[Arrow]:
        together = self.arrows | proposed
        if find_cycle(self.nodes, together) is None:
            return set()
        below = self._below(together)
        return {(a, b) for a, b in proposed if a in below[b]}

    def _below(self, arrows: set[Arrow]) -> dict[str, set[str]]:
        """For each node, the nodes a directed path leads to."""
        children = children_of(arrows)
        return {name: reachable(name, children) for name in self.nodes}

    def cpdag(self) -> Cpdag:
        """The graph as it is directed so far."""
        lines = frozenset(frozenset((a, b)) for a in self.nodes for b in self.lines[a])
        return Cpdag(self.nodes, frozenset(self.arrows), lines)


def _forced(skeleton: Skeleton, knowledge: Knowledge) -> set[Arrow]:
    """Arrows the knowledge leaves no choice about; the skeleton must already obey it."""
    knowledge.check(skeleton.nodes)
    for a, b in map(sorted, skeleton.edges):
        if not knowledge.allows(a, b):
            raise GraphError(f"the skeleton has an edge {a!r} -- {b!r} that the background knowledge forbids")
    for a, b in map(sorted, knowledge.required_pairs() - skeleton.edges):
        raise GraphError(f"the skeleton lacks the edge {a!r} -- {b!r} that the background knowledge requires")
    pairs = [pair for a, b in skeleton.edges for pair in ((a, b), (b, a))]
    return {(a, b) for a, b in pairs if not knowledge.may_point(b, a)}


def _triples(skeleton: Skeleton, around: dict[str, set[str]]) -> tuple[set[Arrow], set[tuple[str, UnorderedPair]]]:
    """Arrowheads of all colliders, and the triples (middle, ends) known not to be colliders."""
    heads: set[Arrow] = set()
    chains: set[tuple[str, UnorderedPair]] = set()
    for middle, near in around.items():
        for a, b in combinations(near, 2):
            given = skeleton.separators.get(frozenset((a, b)))
            if given is not None and middle in given:
                chains.add((middle, frozenset((a, b))))
            elif given is not None:
                heads |= {(a, middle), (b, middle)}
    return heads, chains


def _meek(partial: PartialGraph) -> set[Arrow]:
    """All arrows that rules 1, 3 and 4 ask for now; rule 2 is `follow_paths`."""
    return {(a, b) for a in partial.nodes for b in partial.lines[a] if any(_reasons(partial, a, b))}


def _reasons(partial: PartialGraph, a: str, b: str) -> Iterator[bool]:
    """Why a -- b must be a -> b: the other direction would make a known non-collider a collider."""
    lines, parents, chains = partial.lines, partial.parents, partial.chains
    # Rule 1: c -> a -- b.
    yield any((a, frozenset((c, b))) in chains for c in parents[a])
    # Rule 3: a -- c -> b and a -- d -> b.
    yield any((a, frozenset(pair)) in chains for pair in combinations(parents[b] & lines[a], 2))
    # Rule 4: a -- d -> c -> b with a and c adjacent.
    between = parents[b] & partial.around[a]
    yield any((a, frozenset((b, d))) in chains for c in between for d in parents[c] & lines[a])


def extension(cpdag: Cpdag) -> Dag | None:
    """A DAG with these arrows and no new collider (Dor and Tarsi 1992), or None if there is none."""
    around, lines = neighbour_sets(cpdag.nodes, cpdag.edges), neighbour_sets(cpdag.nodes, cpdag.lines)
    arrows, place = set(cpdag.arrows), {name: i for i, name in enumerate(cpdag.nodes)}
    waiting = list(place.values())
    while waiting:
        name = cpdag.nodes[heapq.heappop(waiting)]
        if name in around and _may_be_last(name, around, lines, cpdag.arrows):
            arrows |= {(other, name) for other in lines[name]}
            for other in around.pop(name):
                around[other].discard(name)
                lines[other].discard(name)
                heapq.heappush(waiting, place[other])  # who may not be last may be so once a neighbour is gone
    return None if around else Dag(cpdag.nodes, frozenset(arrows))


def _may_be_last(name: str, around: dict[str, set[str]], lines: dict[str, set[str]], arrows: frozenset[Arrow]) -> bool:
    near = around[name]
    if any((name, other) in arrows for other in near):
        return False
    return all(near - {other} <= around[other] for other in lines[name])


# --- One DAG of the class that a graph with lines stands for ---------------------------------------------------------


DirectionProbability = Callable[[str, str], float | None]
"""P(a -> b | linked), None where it is not known."""
INSIDE = "one DAG of the class that was found"
OUTSIDE = "no DAG has the arrows that were found and no further collider, so this one has more"


def member(graph: Cpdag | Dag, way: DirectionProbability, knowledge: Knowledge | None = None) -> Dag:
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
    graph = _drawn(graph, _forced_lines(graph, knowledge or Knowledge()))
    likely = _likely(graph, way)
    if extension(graph) is None:
        return Dag(graph.nodes, _turned(graph, likely, _anything), f"{OUTSIDE}: {given}")
    known = unshielded_colliders(graph)
    return Dag(graph.nodes, _turned(graph, likely, lambda g: _extends(g, known)), f"{INSIDE}: {given}")


def _forced_lines(graph: Cpdag, known: Knowledge) -> list[Arrow]:
    """Lines that knowledge leaves one way round."""
    both = [arrow for a, b in map(tuple, graph.lines) for arrow in ((a, b), (b, a))]
    return [(a, b) for a, b in both if known.may_point(a, b) and not known.may_point(b, a)]


def _likely(graph: Cpdag, way: DirectionProbability) -> list[Arrow]:
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


def _extends(graph: Cpdag, colliders: set[tuple[str, UnorderedPair]]) -> bool:
    """Whether some DAG has its arrows and these colliders alone."""
    return unshielded_colliders(graph) == colliders and extension(graph) is not None


def unshielded_colliders(graph: Cpdag | Dag, at: Collection[str] | None = None) -> set[tuple[str, UnorderedPair]]:
    """Triples a -> c <- b where a and b have no edge, as (c, {a, b}); with `at`, those that meet there."""
    parents = children_of((c, a) for a, c in graph.arrows if at is None or c in at)
    linked, found = graph.edges, set()
    for c, above in parents.items():
        for pair in map(frozenset, combinations(above, 2)):
            if pair not in linked:
                found.add((c, pair))
    return found
