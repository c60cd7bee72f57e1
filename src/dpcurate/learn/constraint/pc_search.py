"""The PC loop, once: ask, order by order, which adjacent pairs can be separated.

How a pair is tested is the edge test's affair; what is asked, in which order and of which graph, is
settled here. An edge test sees one round of tests at a time and decides them one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import Literal, Protocol

from dpcurate.errors import BudgetExceeded
from dpcurate.graphs.base_graph import UnorderedPair, neighbour_sets
from dpcurate.graphs.graph import Skeleton
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.queries import MOST_CELLS
from dpcurate.result.fit import Evidence

Scope = Literal["test", "node", "order"]
Style = Literal["stable", "sequential"]
Allows = Callable[[str, str], bool]
EdgeEnds = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PairQuestion:
    """Whether x is independent of y given some others."""

    x: str
    y: str
    given: tuple[str, ...]

    @property
    def pair(self) -> UnorderedPair:
        """The pair, in no order."""
        return frozenset((self.x, self.y))


@dataclass(slots=True)
class WorkingGraph:
    """The released graph so far.

    Sets that may separate a from b are made of neighbours of a or of b; with `wider`, of the nodes at (a, b) or at
    (b, a) there, and those within `tried` of either end are not asked about again.
    """

    nodes: tuple[str, ...]
    around: dict[str, set[str]]
    fixed: frozenset[UnorderedPair]
    separating_sets: dict[UnorderedPair, tuple[str, ...]] = field(default_factory=dict)
    wider: Mapping[EdgeEnds, set[str]] = field(default_factory=dict)
    tried: dict[str, set[str]] = field(default_factory=dict)

    def widen(self, wider: Mapping[EdgeEnds, set[str]]) -> None:
        """Look for sets here from now on; those among neighbours have been tried."""
        self.wider, self.tried = wider, {node: set(near) for node, near in self.around.items()}

    @classmethod
    def complete(
        cls, nodes: tuple[str, ...], knowledge: Knowledge | None, allows: Allows | None = None
    ) -> WorkingGraph:
        """Every pair adjacent that `allows` lets be, the knowledge's own unless given."""
        may_link = allows or (knowledge or Knowledge()).allows
        around = neighbour_sets(nodes, (pair for pair in combinations(nodes, 2) if may_link(*pair)))
        fixed: frozenset[UnorderedPair] = frozenset() if knowledge is None else knowledge.required_pairs()
        return cls(nodes, around, fixed)

    def beside(self, a: str, b: str) -> list[str]:
        """What sets at a are made of that may separate it from b, in the nodes' order."""
        near = self.wider.get((a, b)) or self.around[a]
        return [n for n in self.nodes if n in near and n != b]

    def reach(self) -> list[int]:
        """Of every node, how many others its sets are made of."""
        sets = {node: set(near) for node, near in self.around.items()}
        for (a, _), near in self.wider.items():
            sets[a] |= near
        return list(map(len, sets.values()))

    def joined(self, a: str, b: str) -> bool:
        """Whether the edge is still there."""
        return b in self.around[a]

    def degrees(self, edges: list[tuple[str, str]]) -> list[tuple[int, int]]:
        """How many nodes sets are made of at both ends of each edge, the other end included."""
        return [(len(self.beside(a, b)) + 1, len(self.beside(b, a)) + 1) for a, b in edges]

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Adjacent pairs, each once, in the nodes' order."""
        return [(a, b) for i, a in enumerate(self.nodes) for b in self.nodes[i + 1 :] if b in self.around[a]]

    @property
    def open_edges(self) -> list[tuple[str, str]]:
        """The edges that knowledge does not fix."""
        return [(a, b) for a, b in self.edges if frozenset((a, b)) not in self.fixed]

    def cut(self, test: PairQuestion) -> None:
        """Remove the edge of this test and remember the separating set."""
        self.around[test.x].discard(test.y)
        self.around[test.y].discard(test.x)
        self.separating_sets.setdefault(test.pair, test.given)

    def skeleton(self) -> Skeleton:
        """The edges that are left, with the separating sets."""
        return Skeleton.of(self.nodes, self.edges, self.separating_sets)


MOST_TESTS = 1 << 15
MOST_AT_ONCE = 1 << 22
"""Tests and cells of one round; a table with more cells has a round of its own."""


@dataclass(frozen=True, slots=True)
class TableSizes:
    """How large the table of a test is, from public sizes; without sizes nothing is large."""

    levels: Mapping[str, int]

    def cells(self, test: PairQuestion) -> int:
        """The cells of the table of this test."""
        levels = self.levels
        return math.prod([levels[n] for n in (test.x, test.y, *test.given)]) if levels else 1

    def fits(self, test: PairQuestion) -> bool:
        """Whether that table is small enough."""
        return self.cells(test) <= MOST_CELLS

    def none_fits(self, order: int) -> bool:
        """Whether even the smallest table of an order is too large; then so are those of later orders."""
        return math.prod(sorted(self.levels.values())[: order + 2]) > MOST_CELLS

    def all_fit(self, order: int) -> bool:
        """Whether even the largest table of an order can be built."""
        return math.prod(sorted(self.levels.values())[-order - 2 :]) <= MOST_CELLS


@dataclass(frozen=True, slots=True)
class Rounds:
    """How the tests of an order are put into rounds.

    'test' with style 'stable': every edge's next sets at once, breadth first, `growth` times as many of
    each in every round. 'test' with style 'sequential': one by one. 'node': one node at a time. 'order': all.
    """

    scope: Scope
    style: Style
    growth: int
    sizes: TableSizes

    def owed(self, graph: WorkingGraph, order: int) -> dict[UnorderedPair, int]:
        """Edges to be tested at this order, with the number of tests after which each is settled."""
        if self.scope == "test" and self.style == "stable":
            return {frozenset(e): n for e in graph.open_edges if (n := _how_many(graph, *e, order))}
        deep = ((a, b) for a, b in graph.open_edges if max(graph.degrees([(a, b)])[0]) > order)
        return dict.fromkeys(map(frozenset, deep), 1)

    def of(self, graph: WorkingGraph, order: int, owed: Mapping[UnorderedPair, int]) -> Iterator[list[PairQuestion]]:
        """The rounds; the graph and what is owed change while they are made."""
        if self.scope == "node":
            return _by_node(graph, order)
        if self.scope == "order":
            return _whole_order(graph, order)
        if self.style == "sequential":
            return ([test] for test in _sequential(graph, order))
        return self._stable(graph, order, owed)

    def _stable(
        self, graph: WorkingGraph, order: int, owed: Mapping[UnorderedPair, int]
    ) -> Iterator[list[PairQuestion]]:
        """Neighbours as they were when the order began, so that the result does not depend on names."""
        asked = [(a, b) for a, b in graph.open_edges if frozenset((a, b)) in owed]
        waiting = [(a, b, _sets(graph, a, b, order)) for a, b in asked]
        width = 1
        while waiting:
            yield from self._capped(
                PairQuestion(a, b, given)
                for a, b, sets in waiting
                for given in islice(sets, width)
                if graph.joined(a, b)
            )
            waiting = [w for w in waiting if graph.joined(w[0], w[1]) and owed[frozenset(w[:2])] > 0]
            width = min(width * self.growth, MOST_TESTS)

    def _capped(self, tests: Iterable[PairQuestion]) -> Iterator[list[PairQuestion]]:
        """Rounds that fit in memory."""
        round_: list[PairQuestion] = []
        total = 0
        for test in tests:
            cells = self.sizes.cells(test)
            cells = cells if cells <= MOST_CELLS else 0  # never asked
            if round_ and (len(round_) == MOST_TESTS or total + cells > MOST_AT_ONCE):
                yield round_
                round_, total = [], 0
            round_.append(test)
            total += cells
        if round_:
            yield round_


def _how_many(graph: WorkingGraph, a: str, b: str, order: int) -> int:
    """The number of conditioning sets from either side that have not been tried, each once."""
    if order == 0:
        return 1
    sides = [set(graph.beside(a, b)), set(graph.beside(b, a))]
    if not graph.tried:
        return _number(sides, order)
    known = [side & graph.tried[end] for side in sides for end in (a, b)]  # a side may lack some of what was tried
    return _number(sides, order) - _number(known, order)


def _number(sides: list[set[str]], order: int) -> int:
    """How many sets of this size lie within one of the sides: by inclusion and exclusion."""
    total, sign = 0, 1
    for size in range(1, len(sides) + 1):
        total += sign * sum(math.comb(len(set.intersection(*some)), order) for some in combinations(sides, size))
        sign = -sign
    return total


def _sets(graph: WorkingGraph, a: str, b: str, order: int) -> Iterator[tuple[str, ...]]:
    """Conditioning sets from either side as they are now, each once, without those that have been tried."""
    return _untried(graph, a, b, _either(graph.beside(a, b), graph.beside(b, a), order))


def _either(left: list[str], right: list[str], order: int) -> Iterator[tuple[str, ...]]:
    if order == 0:
        yield ()
        return
    yield from combinations(left, order)
    at_left = frozenset(left)
    for given in combinations(right, order):
        if not at_left.issuperset(given):
            yield given


def _untried(graph: WorkingGraph, a: str, b: str, sets: Iterator[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    if not graph.tried:
        return sets
    at_a, at_b = graph.tried[a], graph.tried[b]
    return (given for given in sets if not (at_a.issuperset(given) or at_b.issuperset(given)))


def _sequential(graph: WorkingGraph, order: int) -> Iterator[PairQuestion]:
    """The original loop: every ordered pair, neighbours as they are now, edges gone at once."""
    for a in graph.nodes:
        for b in graph.nodes:
            if not graph.joined(a, b) or frozenset((a, b)) in graph.fixed:
                continue
            for given in combinations(graph.beside(a, b), order):
                yield PairQuestion(a, b, given)
                if not graph.joined(a, b):
                    break


def _by_node(graph: WorkingGraph, order: int) -> Iterator[list[PairQuestion]]:
    """All tests around one node at a time."""
    for a in graph.nodes:
        tests = [
            PairQuestion(a, b, given)
            for b in graph.nodes
            if graph.joined(a, b) and frozenset((a, b)) not in graph.fixed
            for given in combinations(graph.beside(a, b), order)
        ]
        if tests:
            yield tests


def _whole_order(graph: WorkingGraph, order: int) -> Iterator[list[PairQuestion]]:
    """All tests of the order, again after every round that took an edge out."""
    sets = {(a, b): list(_sets(graph, a, b, order)) for a, b in graph.open_edges}
    while True:
        tests = [PairQuestion(*edge, given) for edge in graph.open_edges for given in sets[edge]]
        before = len(graph.edges)
        if tests:
            yield tests
        if not tests or len(graph.edges) == before:
            return


Decided = tuple[PairQuestion, bool]
"""A test and whether it found independence, which cuts the edge at once."""
TOO_LARGE = "kept: table too large"


class EdgeTest(Protocol):
    """Decides tests by what the queryable releases."""

    @property
    def scope(self) -> Scope:
        """Whether it wants to see tests as they come, those of one node, or those of a whole order."""

    @property
    def growth(self) -> int:
        """How many times more sets of each edge a round holds than the one before; 1 if tests cost budget."""

    @property
    def evidence(self) -> list[Evidence]:
        """What it has decided and on which numbers."""

    def begin(self, order: int, graph: WorkingGraph) -> bool:
        """Prepare for an order; False ends the search."""

    def decide(self, tests: Sequence[PairQuestion], graph: WorkingGraph) -> Iterator[Decided]:
        """Decisions in the round's order, without those on edges that an earlier one has cut."""

    def end(self, order: int, asked: int, graph: WorkingGraph) -> None:
        """Settle what an order has cost."""


@dataclass(frozen=True, slots=True)
class Searched:
    """The skeleton found, and how many tests each order took.

    `unfinished`: edges that were not tested to the end when the budget ended. `too_large`: tests left
    out at an order because their tables cannot be built.
    """

    skeleton: Skeleton
    tests: tuple[int, ...]
    unfinished: dict[int, tuple[UnorderedPair, ...]]
    too_large: dict[int, int] = field(default_factory=dict)


def search(
    nodes: tuple[str, ...],
    edge_test: EdgeTest,
    *,
    knowledge: Knowledge | None = None,
    max_order: int | None = None,
    style: Style = "stable",
    sizes: Mapping[str, int] | None = None,
) -> Searched:
    """Find the skeleton. When the budget ends, what was found so far is returned, and said.

    With `sizes` (the number of levels of each node) tests whose table is too large are left out.
    """
    if knowledge is not None:
        knowledge.check(nodes)
    graph = WorkingGraph.complete(nodes, knowledge)
    return search_in(graph, edge_test, max_order=max_order, style=style, sizes=sizes)


def search_in(
    graph: WorkingGraph,
    edge_test: EdgeTest,
    *,
    min_order: int = 0,
    max_order: int | None = None,
    style: Style = "stable",
    sizes: Mapping[str, int] | None = None,
) -> Searched:
    """The same from a graph that is already there, and from an order on."""
    largest = len(graph.nodes) - 2
    last = largest if max_order is None else min(max_order, largest)
    rounds = Rounds(edge_test.scope, style, edge_test.growth, TableSizes(sizes or {}))
    return _Search(graph, edge_test, rounds).run(min_order, last)


@dataclass
class _Search:
    """One search under way."""

    graph: WorkingGraph
    edge_test: EdgeTest
    rounds: Rounds
    tests: list[int] = field(default_factory=list)
    too_large: dict[int, int] = field(default_factory=dict)

    def run(self, first: int, last: int) -> Searched:
        for order in range(first, last + 1):
            owed = self.rounds.owed(self.graph, order)
            if not owed and self.graph.wider:
                continue  # all sets of one size may have been tried, and a larger one not
            if not owed:
                break
            if self.rounds.sizes.none_fits(order):  # not even listed: there may be very many
                self.too_large[order] = sum(owed.values())
                break
            if not self.edge_test.begin(order, self.graph):
                return self._searched({order: tuple(owed)})
            self.tests.append(0)
            try:
                self._order(order, owed)
            except BudgetExceeded:
                return self._searched({order: tuple(p for p, n in owed.items() if n > 0 and self.graph.joined(*p))})
            self.edge_test.end(order, self.tests[-1], self.graph)
        return self._searched({})

    def _searched(self, unfinished: dict[int, tuple[UnorderedPair, ...]]) -> Searched:
        return Searched(self.graph.skeleton(), tuple(self.tests), unfinished, self.too_large)

    def _order(self, order: int, owed: dict[UnorderedPair, int]) -> None:
        large: dict[UnorderedPair, set[PairQuestion]] = {}
        all_fit = self.rounds.sizes.all_fit(order)
        for round_ in self.rounds.of(self.graph, order, owed):
            tests = round_ if all_fit else [t for t in round_ if self._fits(t, owed, large)]
            for test, cut in self.edge_test.decide(tests, self.graph) if tests else ():
                self.tests[-1] += 1
                owed[test.pair] -= 1
                if cut:
                    self.graph.cut(test)

    def _fits(
        self, test: PairQuestion, owed: dict[UnorderedPair, int], large: dict[UnorderedPair, set[PairQuestion]]
    ) -> bool:
        """Whether a test's table can be built; the first of an edge that cannot is told."""
        if self.rounds.sizes.fits(test):
            return True
        if test.pair not in large:
            self.edge_test.evidence.append(Evidence((test.x, test.y), test.given, TOO_LARGE))
        known = large.setdefault(test.pair, set())
        if test not in known:
            known.add(test)
            owed[test.pair] -= 1
            order = len(test.given)
            self.too_large[order] = self.too_large.get(order, 0) + 1
        return False
