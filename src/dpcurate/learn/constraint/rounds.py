"""Which tests of an order are asked together: rounds, made from the released graph and public sizes alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, islice

from dpcurate.graphs.base_graph import UnorderedPair
from dpcurate.learn.constraint.working_graph import Question, Scope, Style, WorkingGraph
from dpcurate.queries import MOST_CELLS

MOST_TESTS = 1 << 15
MOST_AT_ONCE = 1 << 22
"""Tests and cells of one round; a table with more cells has a round of its own."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the table of a test is, from public sizes; without sizes nothing is large."""

    levels: Mapping[str, int]

    def cells(self, test: Question) -> int:
        levels = self.levels
        return math.prod([levels[n] for n in (test.x, test.y, *test.given)]) if levels else 1

    def fits(self, test: Question) -> bool:
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
    sizes: Sizes

    def owed(self, graph: WorkingGraph, order: int) -> dict[UnorderedPair, int]:
        """Edges to be tested at this order, with the number of tests after which each is settled."""
        if self.scope == "test" and self.style == "stable":
            return {frozenset(e): n for e in graph.open_edges if (n := _how_many(graph, *e, order))}
        deep = ((a, b) for a, b in graph.open_edges if max(graph.degrees([(a, b)])[0]) > order)
        return dict.fromkeys(map(frozenset, deep), 1)

    def of(self, graph: WorkingGraph, order: int, owed: Mapping[UnorderedPair, int]) -> Iterator[list[Question]]:
        """The rounds; the graph and what is owed change while they are made."""
        if self.scope == "node":
            return _by_node(graph, order)
        if self.scope == "order":
            return _whole_order(graph, order)
        if self.style == "sequential":
            return ([test] for test in _sequential(graph, order))
        return self._stable(graph, order, owed)

    def _stable(self, graph: WorkingGraph, order: int, owed: Mapping[UnorderedPair, int]) -> Iterator[list[Question]]:
        """Neighbours as they were when the order began, so that the result does not depend on names."""
        asked = [(a, b) for a, b in graph.open_edges if frozenset((a, b)) in owed]
        waiting = [(a, b, _sets(graph, a, b, order)) for a, b in asked]
        width = 1
        while waiting:
            yield from self._capped(
                Question(a, b, given) for a, b, sets in waiting for given in islice(sets, width) if graph.joined(a, b)
            )
            waiting = [w for w in waiting if graph.joined(w[0], w[1]) and owed[frozenset(w[:2])] > 0]
            width = min(width * self.growth, MOST_TESTS)

    def _capped(self, tests: Iterable[Question]) -> Iterator[list[Question]]:
        """Rounds that fit in memory."""
        round_: list[Question] = []
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


def _sequential(graph: WorkingGraph, order: int) -> Iterator[Question]:
    """The original loop: every ordered pair, neighbours as they are now, edges gone at once."""
    for a in graph.nodes:
        for b in graph.nodes:
            if not graph.joined(a, b) or frozenset((a, b)) in graph.fixed:
                continue
            for given in combinations(graph.beside(a, b), order):
                yield Question(a, b, given)
                if not graph.joined(a, b):
                    break


def _by_node(graph: WorkingGraph, order: int) -> Iterator[list[Question]]:
    """All tests around one node at a time."""
    for a in graph.nodes:
        tests = [
            Question(a, b, given)
            for b in graph.nodes
            if graph.joined(a, b) and frozenset((a, b)) not in graph.fixed
            for given in combinations(graph.beside(a, b), order)
        ]
        if tests:
            yield tests


def _whole_order(graph: WorkingGraph, order: int) -> Iterator[list[Question]]:
    """All tests of the order, again after every round that took an edge out."""
    sets = {(a, b): list(_sets(graph, a, b, order)) for a, b in graph.open_edges}
    while True:
        tests = [Question(*edge, given) for edge in graph.open_edges for given in sets[edge]]
        before = len(graph.edges)
        if tests:
            yield tests
        if not tests or len(graph.edges) == before:
            return
