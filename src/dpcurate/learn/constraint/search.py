"""The PC loop, once: ask, order by order, which adjacent pairs can be separated.

How a pair is tested is the edge test's affair; what is asked, in which order and of which graph, is
settled here. An edge test sees one round of tests at a time and decides them one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dpcurate.errors import BudgetExceeded
from dpcurate.graphs.base_graph import UnorderedPair
from dpcurate.graphs.graph import Skeleton
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.constraint.rounds import Rounds, Sizes
from dpcurate.learn.constraint.working_graph import Question, Scope, Style, WorkingGraph
from dpcurate.result.fit import Evidence

Decided = tuple[Question, bool]
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

    def decide(self, tests: Sequence[Question], graph: WorkingGraph) -> Iterator[Decided]:
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
    rounds = Rounds(edge_test.scope, style, edge_test.growth, Sizes(sizes or {}))
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
        large: dict[UnorderedPair, set[Question]] = {}
        all_fit = self.rounds.sizes.all_fit(order)
        for round_ in self.rounds.of(self.graph, order, owed):
            tests = round_ if all_fit else [t for t in round_ if self._fits(t, owed, large)]
            for test, cut in self.edge_test.decide(tests, self.graph) if tests else ():
                self.tests[-1] += 1
                owed[test.pair] -= 1
                if cut:
                    self.graph.cut(test)

    def _fits(self, test: Question, owed: dict[UnorderedPair, int], large: dict[UnorderedPair, set[Question]]) -> bool:
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
