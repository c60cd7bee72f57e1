"""The PC loop, once: ask, order by order, which adjacent pairs can be separated.

How a pair is judged is the judge's affair; what is asked, in which order and of which graph, is
settled here. A judge sees one round of tests at a time and gives its verdicts one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dpcurate.errors import BudgetExceeded
from dpcurate.graphs.graph import Skeleton
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.board import Board, Question, Scope, Style
from dpcurate.learn.outcome import Evidence, Pair
from dpcurate.learn.rounds import Rounds, Sizes

Verdict = tuple[Question, bool]
"""A test and whether it found independence, which cuts the edge at once."""
TOO_LARGE = "kept: table too large"


class Judge(Protocol):
    """Decides tests by what the door releases."""

    @property
    def scope(self) -> Scope:
        """Whether it wants to see tests as they come, those of one node, or those of a whole order."""

    @property
    def growth(self) -> int:
        """How many times more sets of each edge a round holds than the one before; 1 if tests cost budget."""

    @property
    def evidence(self) -> list[Evidence]:
        """What it has decided and on which numbers."""

    def begin(self, order: int, board: Board) -> bool:
        """Prepare for an order; False ends the search."""

    def decide(self, tests: Sequence[Question], board: Board) -> Iterator[Verdict]:
        """Verdicts in the round's order, without those on edges that an earlier one has cut."""

    def end(self, order: int, asked: int, board: Board) -> None:
        """Settle the books of an order."""


@dataclass(frozen=True, slots=True)
class Searched:
    """The skeleton found, and how many verdicts each order took.

    `unfinished`: edges that were not tested to the end when the budget ended. `too_large`: tests left
    out at an order because their tables cannot be built.
    """

    skeleton: Skeleton
    tests: tuple[int, ...]
    unfinished: dict[int, tuple[Pair, ...]]
    too_large: dict[int, int] = field(default_factory=dict)


def search(
    nodes: tuple[str, ...],
    judge: Judge,
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
    last = len(nodes) - 2 if max_order is None else min(max_order, len(nodes) - 2)
    rounds = Rounds(judge.scope, style, judge.growth, Sizes(sizes or {}))
    return _Search(Board.complete(nodes, knowledge), judge, rounds).run(last)


@dataclass
class _Search:
    """One search under way."""

    board: Board
    judge: Judge
    rounds: Rounds
    tests: list[int] = field(default_factory=list)
    too_large: dict[int, int] = field(default_factory=dict)

    def run(self, last: int) -> Searched:
        """Order by order."""
        for order in range(last + 1):
            owed = self.rounds.owed(self.board, order)
            if not owed:
                break
            if self.rounds.sizes.none_fits(order):  # not even listed: there may be very many
                self.too_large[order] = sum(owed.values())
                break
            if not self.judge.begin(order, self.board):
                return self._found({order: tuple(owed)})
            self.tests.append(0)
            try:
                self._order(order, owed)
            except BudgetExceeded:
                return self._found({order: tuple(p for p, n in owed.items() if n > 0 and self.board.joined(*p))})
            self.judge.end(order, self.tests[-1], self.board)
        return self._found({})

    def _found(self, unfinished: dict[int, tuple[Pair, ...]]) -> Searched:
        return Searched(self.board.skeleton(), tuple(self.tests), unfinished, self.too_large)

    def _order(self, order: int, owed: dict[Pair, int]) -> None:
        large: dict[Pair, set[Question]] = {}
        all_fit = self.rounds.sizes.all_fit(order)
        for round_ in self.rounds.of(self.board, order, owed):
            tests = round_ if all_fit else [t for t in round_ if self._fits(t, owed, large)]
            for test, cut in self.judge.decide(tests, self.board) if tests else ():
                self.tests[-1] += 1
                owed[test.pair] -= 1
                if cut:
                    self.board.cut(test)

    def _fits(self, test: Question, owed: dict[Pair, int], large: dict[Pair, set[Question]]) -> bool:
        """Whether a test's table can be built; the first of an edge that cannot is told."""
        if self.rounds.sizes.fits(test):
            return True
        if test.pair not in large:
            self.judge.evidence.append(Evidence((test.x, test.y), test.given, TOO_LARGE))
        known = large.setdefault(test.pair, set())
        if test not in known:
            known.add(test)
            owed[test.pair] -= 1
            order = len(test.given)
            self.too_large[order] = self.too_large.get(order, 0) + 1
        return False
