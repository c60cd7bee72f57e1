"""How an edge is judged: exactly, by choice, or by noisy values.

Each judge asks the door and keeps to its answers. Those with gates are in gates.py, published
variants in published.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from dpcurate.errors import BudgetExceeded
from dpcurate.learn.board import Board, Question, Scope
from dpcurate.learn.budgets import (
    Errors,
    LaplaceErrors,
    Leak,
    likely_tests,
    optimise,
    pure_leak,
    zcdp_leak,
)
from dpcurate.learn.ci import fisher_test, p_values
from dpcurate.learn.measures import Measure, PMeasure, TauMeasure, beyond
from dpcurate.learn.outcome import Evidence
from dpcurate.learn.skeleton import Verdict
from dpcurate.requests import (
    Answer,
    Array,
    Choose,
    Door,
    Exact,
    Laplace,
    Moments,
    Release,
    Sample,
    SampleGate,
    Tables,
)

P_VALUES = {"kendall-published": PMeasure("priv-pc"), "kendall-proved": PMeasure()}
"""Exact tests that the room computes itself."""


class Steady:
    """A judge that treats all orders alike."""

    growth = 1

    def begin(self, order: int, board: Board) -> bool:
        """Nothing to prepare."""
        return True

    def end(self, order: int, asked: int, board: Board) -> None:
        """Nothing to settle."""


class Recorder(Steady):
    """What most judges share: single questions, and a list of evidence."""

    scope: Scope = "test"

    def __init__(self) -> None:
        self.evidence: list[Evidence] = []

    def note(self, q: Question, verdict: str, value: float | None = None, noise: float | None = None,
             threshold: float | None = None) -> None:  # fmt: skip
        """Keep what was decided."""
        self.evidence.append(Evidence((q.x, q.y), q.given, verdict, value, noise, threshold))


class ExactJudge(Recorder):
    """Non-private PC: exact tables or moments through the door, at infinite cost.

    Tests cost nothing here and passes over the rows do, so each round looks twice as far ahead as the
    one before. What was asked of an edge beyond the test that cut it is dropped.
    """

    def __init__(self, door: Door, test: str, level: float) -> None:
        super().__init__()
        self._door, self._test, self._level = door, test, level
        self._moments: np.ndarray | None = None
        self.growth = 1 if test == "partial-correlation" else 2  # moments are read once

    def decide(self, tests: Sequence[Question], board: Board) -> Iterator[Verdict]:
        """Independent where p exceeds the level."""
        for q, p in zip(tests, self._p_values(tests), strict=True):
            if board.joined(q.x, q.y):
                cut = p > self._level
                self.note(q, "cut" if cut else "kept", p, 0.0, self._level)
                yield q, cut

    def _p_values(self, tests: Sequence[Question]) -> list[float]:
        if self._test == "partial-correlation":
            return [self._partial(q) for q in tests]
        if self._test in P_VALUES:
            measure = P_VALUES[self._test]
            asked = [Release(measure.statistic(q), Exact()) for q in tests]
            return [float(answer) for answer in self._door.ask_all(asked)]
        return list(map(float, p_values(self._test, self._tables(tests))))

    def _tables(self, tests: Sequence[Question]) -> list[Array]:
        """Each test's table, x by y by the rest; tests over the same columns share one."""
        columns = [tuple(sorted((q.x, q.y, *q.given))) for q in tests]
        sets = dict.fromkeys(columns)
        parts = self._door.ask(Release(Tables(tuple(sets)), Exact())).parts
        found = dict(zip(sets, parts, strict=True))
        return [_turned(found[names], names, q) for names, q in zip(columns, tests, strict=True)]

    def _partial(self, q: Question) -> float:
        names = self._door.schema.names
        if self._moments is None:
            self._moments = self._door.ask(Release(Moments(names), Exact())).value
        places = [names.index(n) for n in (q.x, q.y, *q.given)]
        return fisher_test(self._moments, places[0], places[1], tuple(places[2:]))


def _turned(table: Array, names: tuple[str, ...], q: Question) -> Array:
    """The table with x and y in front, the smaller first: tests are symmetric, and fewer shapes go faster."""
    x, y = names.index(q.x), names.index(q.y)
    if table.shape[x] > table.shape[y]:
        x, y = y, x
    return table.transpose(_axes(x, y, len(names)))


@cache
def _axes(x: int, y: int, number: int) -> tuple[int, ...]:
    return (x, y, *(i for i in range(number) if i not in (x, y)))


@dataclass
class Spread:
    """What an even share of the budget is for so many steps."""

    pure: bool
    total: float

    @classmethod
    def of(cls, door: Door) -> Spread:
        """All that the door has left."""
        return cls(door.privacy().budget.pure, door.remaining)

    def epsilon(self, steps: float, *, range_bounded: bool = False) -> float:
        """The epsilon of one of `steps` equal pure (or bounded-range) steps."""
        if math.isinf(self.total):
            return 1e6
        if self.pure:
            return self.total / steps
        return math.sqrt((8 if range_bounded else 2) * self.total / steps)


class ChoiceJudge(Recorder):
    """EM-PC: the exponential mechanism picks the edge and its separator together, or none.

    The utility of a test is how far its g lies below the threshold in units of its sensitivity, so
    one row moves it by at most 1 and different tests compare.
    """

    scope: Scope = "order"

    def __init__(self, door: Door, measure: Measure, level: float, choices: float) -> None:
        super().__init__()
        self._door, self._measure, self._level = door, measure, level
        self._epsilon = Spread.of(door).epsilon(choices, range_bounded=True)

    def decide(self, tests: Sequence[Question], board: Board) -> Iterator[Verdict]:
        """The chosen one is cut, if any."""
        candidates = tuple(self._measure.score(q, self._level) for q in tests)
        index = self._door.ask(Choose(candidates=candidates, epsilon=self._epsilon, or_none=True))
        if index < len(tests):
            self.note(tests[index], "cut", threshold=self._measure.cut(self._level))
        return ((q, place == index) for place, q in enumerate(tests))


@dataclass
class CurateJudge:
    """Constraint-based CURATE, proved: every answer is charged, budgets follow OPT in zCDP.

    A value clearly on one side of the threshold decides, a value in the margin is left to a fair
    coin. After each order OPT runs again on what is left, with the degrees of the released graph.
    """

    door: Door
    measure: Measure
    level: float
    beta1: float
    beta2: float
    rate: float = 1.0
    max_order: int | None = None
    floor: float = 0.7
    scope: Scope = "test"
    growth: int = 1
    evidence: list[Evidence] = field(default_factory=list)
    epsilons: list[float] = field(default_factory=list)
    leaked: list[float] = field(default_factory=list)
    _left: float = 0.0

    def begin(self, order: int, board: Board) -> bool:
        """Solve OPT for the orders to come and take the first budget."""
        self._left = self.door.remaining
        if self._left <= 0:
            return False
        tests = _orders_to_come(board, order, self.max_order)
        if math.isinf(self._left):
            self.epsilons.append(1e6)
            return True
        total = self._left * (1 - 1e-9)
        budgets = optimise(tests, total, self._errors(board), self._leak(), floor=self.floor)
        self.epsilons.append(budgets[0])
        return budgets[0] > 0

    def _leak(self) -> Leak:
        return pure_leak if self.door.privacy().budget.pure else zcdp_leak

    @property
    def _margins(self) -> tuple[float, float]:
        """How far the grey zone reaches towards dependence and towards independence."""
        cut = self.measure.cut
        return (
            abs(cut(self.level) - cut(self.level * (1 - self.beta1))),
            abs(cut(self.level * (1 + self.beta2)) - cut(self.level)),
        )

    def _errors(self, board: Board) -> Errors:
        tests = (self.measure.statistic(Question(a, b, ())) for a, b in board.edges)
        return LaplaceErrors(*self._margins, max(self.door.sensitivity(t) for t in tests))

    def decide(self, tests: Sequence[Question], board: Board) -> Iterator[Verdict]:
        """Delete, keep, or toss a coin; the coin's zone is never wider than the noise."""
        margins, threshold = self._margins, self.measure.cut(self.level)
        for q, (value, noise) in zip(tests, self._answers(tests), strict=True):
            gap = beyond(self.measure, value, self.level)
            inner, outer = (min(margin, noise / math.sqrt(2)) for margin in margins)
            if gap > outer:
                verdict, cut = "cut", True
            elif gap < -inner:
                verdict, cut = "kept", False
            else:
                cut = self.door.draw() >= 0.5
                verdict = "cut by coin" if cut else "kept by coin"
            self.evidence.append(Evidence((q.x, q.y), q.given, verdict, value, noise, threshold))
            yield q, cut

    def _answers(self, tests: Sequence[Question]) -> Iterator[tuple[float, float]]:
        """Value and noise of every test, charged together; as many as can be paid where not all can."""
        if self.rate < 1:
            yield from map(self._sampled, tests)
            return
        asked = [Release(self.measure.statistic(q), Laplace(epsilon=self.epsilons[-1])) for q in tests]
        try:
            answers: Iterable[Answer] = self.door.ask_all(asked)
        except BudgetExceeded:  # nothing was charged
            answers = map(self.door.ask, asked)
        for answer in answers:
            yield float(answer), answer.scale

    def _sampled(self, q: Question) -> tuple[float, float]:
        raw = math.log1p(math.expm1(min(self.epsilons[-1], 500.0)) / self.rate)
        sample: SampleGate = self.door.open(Sample(rate=self.rate, epsilon=raw))
        answer = sample.ask(Release(self.measure.statistic(q), Laplace(epsilon=raw)))
        # On a sample g is smaller; bring it to the scale of the threshold.
        factor = 1 / math.sqrt(self.rate) if isinstance(self.measure, TauMeasure) else 1.0
        return float(answer) * factor, answer.scale * factor

    def end(self, order: int, asked: int, board: Board) -> None:
        """What the order has cost, in the budget's currency."""
        self.leaked.append(self._left - self.door.remaining)


def _orders_to_come(board: Board, order: int, max_order: int | None) -> list[float]:
    """Bounds on the tests of this order and of those that the degrees allow after it."""
    edges = board.open_edges
    degrees = [(len(board.around[a]), len(board.around[b])) for a, b in edges]
    deepest = max((max(a, b) for a, b in degrees), default=1) - 1
    last = min(deepest, len(board.nodes) - 2 if max_order is None else max_order)
    return [max(likely_tests(degrees, j), 1.0) for j in range(order, max(last, order) + 1)]
