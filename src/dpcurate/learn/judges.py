"""How an edge is judged: exactly, by noisy values, by above-threshold gates, or by choice.

Each judge asks the door and keeps to its answers. Published variants are in published.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dpcurate.learn.budgets import (
    Errors,
    LaplaceErrors,
    Leak,
    likely_tests,
    optimise,
    pure_leak,
    zcdp_leak,
)
from dpcurate.learn.ci import TABLE_TESTS, fisher_test
from dpcurate.learn.measures import Measure, PMeasure, TauMeasure, beyond
from dpcurate.learn.outcome import Evidence
from dpcurate.learn.skeleton import Board, Question, Scope
from dpcurate.requests import (
    AboveThreshold,
    Choose,
    Counts,
    Door,
    Exact,
    Laplace,
    Moments,
    Release,
    Sample,
    SampleGate,
    ThresholdGate,
)


class Steady:
    """A judge that treats all orders alike."""

    def begin(self, order: int, board: Board) -> bool:
        """Nothing to prepare."""
        return True

    def end(self, order: int, asked: int, board: Board) -> None:
        """Nothing to settle."""


class _Recorder(Steady):
    """What most judges share: single questions, and a list of evidence."""

    scope: Scope = "test"

    def __init__(self) -> None:
        self.evidence: list[Evidence] = []

    def note(self, q: Question, verdict: str, value: float | None = None, noise: float | None = None,
             threshold: float | None = None) -> None:  # fmt: skip
        """Keep what was decided."""
        self.evidence.append(Evidence((q.x, q.y), q.given, verdict, value, noise, threshold))


class ExactJudge(_Recorder):
    """Non-private PC: exact tables or moments through the door, at infinite cost."""

    def __init__(self, door: Door, test: str, level: float) -> None:
        super().__init__()
        self._door, self._test, self._level = door, test, level
        self._moments: np.ndarray | None = None

    def decide(self, tests: Sequence[Question], board: Board) -> list[Question]:
        """Independent where p exceeds the level."""
        (q,) = tests
        p = self._p_value(q)
        self.note(q, "cut" if p > self._level else "kept", p, 0.0, self._level)
        return [q] if p > self._level else []

    def _p_value(self, q: Question) -> float:
        if self._test == "partial-correlation":
            return self._partial(q)
        if self._test == "kendall-published":
            measure = PMeasure("priv-pc")
            return float(self._door.ask(Release(measure.statistic(q), Exact())))
        if self._test == "kendall-proved":
            measure = PMeasure()
            return float(self._door.ask(Release(measure.statistic(q), Exact())))
        table = self._door.ask(Release(Counts((q.x, q.y, *q.given)), Exact())).value
        return TABLE_TESTS[self._test](table)

    def _partial(self, q: Question) -> float:
        names = self._door.schema.names
        if self._moments is None:
            self._moments = self._door.ask(Release(Moments(names), Exact())).value
        places = [names.index(n) for n in (q.x, q.y, *q.given)]
        return fisher_test(self._moments, places[0], places[1], tuple(places[2:]))


@dataclass
class _Spread:
    """What an even share of the budget is for so many steps."""

    pure: bool
    total: float

    @classmethod
    def of(cls, door: Door) -> _Spread:
        return cls(door.privacy().budget.pure, door.remaining)

    def epsilon(self, steps: float, *, range_bounded: bool = False) -> float:
        """The epsilon of one of `steps` equal pure (or bounded-range) steps."""
        if math.isinf(self.total):
            return 1e6
        if self.pure:
            return self.total / steps
        return math.sqrt((8 if range_bounded else 2) * self.total / steps)


class GateJudge(_Recorder):
    """SVT-PC: an above-threshold gate until it says yes; a yes cuts the edge and opens a new gate.

    Every gate is paid in full when it opens, misses are free by its proof.
    """

    def __init__(self, door: Door, measure: Measure, level: float, hits: float) -> None:
        super().__init__()
        self._door, self._measure, self._level = door, measure, level
        self._epsilon = _Spread.of(door).epsilon(hits)
        self._gate: ThresholdGate | None = None

    def decide(self, tests: Sequence[Question], board: Board) -> list[Question]:
        """Cut on a yes."""
        (q,) = tests
        if self._gate is None:
            self._gate = self._door.open(AboveThreshold(epsilon=self._epsilon))
        assert self._gate is not None
        yes = self._gate.ask(self._measure.score(q, self._level))
        if yes:
            self._gate = None
        self.note(q, "cut" if yes else "kept", threshold=self._measure.cut(self._level))
        return [q] if yes else []


class SieveJudge(_Recorder):
    """Priv-PC: sieve on a fresh secret sample by a gate, examine what passes on the full table.

    Half of each step's epsilon goes to the sieve, half to the examination; both are charged.
    """

    def __init__(self, door: Door, measure: Measure, level: float, *, tweak: float, rate: float, hits: float) -> None:
        super().__init__()
        self._door, self._measure, self._level = door, measure, level
        self._tweak, self._rate = tweak, rate
        self._epsilon = _Spread.of(door).epsilon(2 * hits)
        self._gate: ThresholdGate | None = None

    def decide(self, tests: Sequence[Question], board: Board) -> list[Question]:
        """Cut what passes the sieve and the examination."""
        (q,) = tests
        if self._gate is None:
            self._gate = self._sieve()
        small = self._measure.scaled(self._rate)
        if not self._gate.ask(small.score(q, max(self._level - self._tweak, 1e-6))):
            self.note(q, "kept by the sieve")
            return []
        self._gate = None
        answer = self._door.ask(Release(self._measure.statistic(q), Laplace(epsilon=self._epsilon)))
        cut = beyond(self._measure, float(answer), self._level) >= 0
        self.note(q, "cut" if cut else "kept", float(answer), answer.scale, self._measure.cut(self._level))
        return [q] if cut else []

    def _sieve(self) -> ThresholdGate:
        raw = math.log1p(math.expm1(min(self._epsilon, 500.0)) / self._rate)
        sample: SampleGate = self._door.open(Sample(rate=self._rate, epsilon=raw))
        return sample.open(AboveThreshold(epsilon=raw))


class ChoiceJudge(_Recorder):
    """EM-PC: the exponential mechanism picks the edge and its separator together, or none.

    The utility of a test is how far its g lies below the threshold in units of its sensitivity, so
    one row moves it by at most 1 and different tests compare.
    """

    scope: Scope = "order"

    def __init__(self, door: Door, measure: Measure, level: float, choices: float) -> None:
        super().__init__()
        self._door, self._measure, self._level = door, measure, level
        self._epsilon = _Spread.of(door).epsilon(choices, range_bounded=True)

    def decide(self, tests: Sequence[Question], board: Board) -> list[Question]:
        """The chosen one, if any."""
        candidates = tuple(self._measure.score(q, self._level) for q in tests)
        index = self._door.ask(Choose(candidates=candidates, epsilon=self._epsilon, or_none=True))
        if index == len(tests):
            return []
        self.note(tests[index], "cut", threshold=self._measure.cut(self._level))
        return [tests[index]]


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

    def decide(self, tests: Sequence[Question], board: Board) -> list[Question]:
        """Delete, keep, or toss a coin; the coin's zone is never wider than the noise."""
        (q,) = tests
        value, noise = self._answer(q)
        gap = beyond(self.measure, value, self.level)
        inner, outer = (min(margin, noise / math.sqrt(2)) for margin in self._margins)
        if gap > outer:
            verdict, cut = "cut", True
        elif gap < -inner:
            verdict, cut = "kept", False
        else:
            cut = self.door.draw() >= 0.5
            verdict = "cut by coin" if cut else "kept by coin"
        self.evidence.append(Evidence((q.x, q.y), q.given, verdict, value, noise, self.measure.cut(self.level)))
        return [q] if cut else []

    def _answer(self, q: Question) -> tuple[float, float]:
        epsilon = self.epsilons[-1]
        if self.rate == 1:
            answer = self.door.ask(Release(self.measure.statistic(q), Laplace(epsilon=epsilon)))
            return float(answer), answer.scale
        raw = math.log1p(math.expm1(min(epsilon, 500.0)) / self.rate)
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
