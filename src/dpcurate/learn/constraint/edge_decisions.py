"""Edge tests: what they measure, what they share, and EM-PC's, which lets the exponential mechanism choose.

Each asks the queryable and keeps to its answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

from dpcurate.learn.constraint.pc_search import Decided, PairQuestion, Scope, WorkingGraph
from dpcurate.queries import (
    Choose,
    Counts,
    Exact,
    Gaussian,
    KendallP,
    Laplace,
    Noise,
    Queryable,
    Release,
    Score,
    Tau,
)
from dpcurate.result.fit import Evidence

COUNT_SHARE = 0.02
"""Share of the budget that buys the number of rows where no public one was given."""


@lru_cache(maxsize=256)
def normal_quantile(upper: float) -> float:
    """The z with P(N(0, 1) > z) = upper."""
    from scipy.special import ndtri

    return -float(ndtri(upper))


def upper_tail(z: float) -> float:
    """P(N(0, 1) > z)."""
    return 0.5 * math.erfc(z / math.sqrt(2))


def known_rows(queryable: Queryable) -> float:
    """The public row count, or a paid noisy one."""
    if queryable.schema.rows is not None:
        return float(queryable.schema.rows)
    share = COUNT_SHARE * queryable.remaining
    noise: Noise = Exact()
    if math.isfinite(share):
        noise = Laplace(epsilon=share) if queryable.budget.pure else Gaussian(rho=share)
    return max(1.0, float(queryable.ask(Release(Counts(()), noise))))


@dataclass(frozen=True, slots=True)
class TauMeasure:
    """Kendall's g: independent when small. Noise is added where the statistic is steady, not to p.

    With n rows and no ties g / sqrt(n) * 1.5 is about N(0, 1), so p = T stands at z_T sqrt(n) / 1.5.
    """

    side: ClassVar[Literal["below"]] = "below"
    rows: float

    def statistic(self, question: PairQuestion) -> Tau:
        """The statistic of this test."""
        return Tau(question.x, question.y, question.given)

    def cut(self, level: float) -> float:
        """The value that is as far out as `level` under independence."""
        return normal_quantile(min(level, 0.499)) * math.sqrt(self.rows) / 1.5

    def score(self, question: PairQuestion, level: float) -> Score:
        """The candidate of this test for a private choice."""
        return Score(self.statistic(question), self.cut(level), self.side)

    def scaled(self, rate: float) -> TauMeasure:
        """The same measure on a sample of the rows."""
        return TauMeasure(self.rows * rate)


@dataclass(frozen=True, slots=True)
class PMeasure:
    """A p-value: independent when large."""

    side: ClassVar[Literal["above"]] = "above"

    def statistic(self, question: PairQuestion) -> KendallP:
        """The statistic of this test."""
        return KendallP(question.x, question.y, question.given)

    def cut(self, level: float) -> float:
        """The value that is as far out as `level` under independence."""
        return level

    def score(self, question: PairQuestion, level: float) -> Score:
        """The candidate of this test for a private choice."""
        return Score(self.statistic(question), self.cut(level), self.side)

    def scaled(self, rate: float) -> PMeasure:
        """The same measure on a sample of the rows."""
        return self


Measure = TauMeasure | PMeasure
"""`side` is where independence lies of `cut`, the value at which p equals a level."""


def beyond(measure: Measure, value: float, level: float) -> float:
    """How far a released value lies on the independent side of a level, in the statistic's units."""
    size = abs(value) if isinstance(measure, TauMeasure) else value
    gap = size - measure.cut(level)
    return gap if measure.side == "above" else -gap


class Steady:
    """An edge test that treats all orders alike."""

    growth = 1

    def begin(self, order: int, graph: WorkingGraph) -> bool:
        """Always go on."""
        return True

    def end(self, order: int, asked: int, graph: WorkingGraph) -> None:
        """Nothing to settle."""


class Recorder(Steady):
    """What most edge tests share: single questions, and a list of evidence."""

    scope: Scope = "test"

    def __init__(self) -> None:
        self.evidence: list[Evidence] = []

    def note(self, q: PairQuestion, verdict: str, value: float | None = None, noise: float | None = None,
             threshold: float | None = None) -> None:  # fmt: skip
        """Keep what was decided about a test, for the report."""
        self.evidence.append(Evidence((q.x, q.y), q.given, verdict, value, noise, threshold))


@dataclass(frozen=True, slots=True)
class EvenShare:
    """What an even share of the budget is for so many steps."""

    pure: bool
    total: float

    @classmethod
    def of(cls, queryable: Queryable) -> EvenShare:
        """The share of what is left of this budget."""
        return cls(queryable.budget.pure, queryable.remaining)

    def epsilon(self, steps: float, *, range_bounded: bool = False) -> float:
        """The epsilon of one of `steps` equal pure (or bounded-range) steps."""
        if math.isinf(self.total):
            return 1e6
        if self.pure:
            return self.total / steps
        return math.sqrt((8 if range_bounded else 2) * self.total / steps)


class ExponentialTest(Recorder):
    """EM-PC: the exponential mechanism picks the edge and its separating set together, or none.

    The utility of a test is how far its g lies below the threshold in units of its sensitivity, so
    one row moves it by at most 1 and different tests compare.
    """

    scope: Scope = "order"

    def __init__(self, queryable: Queryable, measure: Measure, level: float, choices: float) -> None:
        super().__init__()
        self._queryable, self._measure, self._level = queryable, measure, level
        self._epsilon = EvenShare.of(queryable).epsilon(choices, range_bounded=True)

    def decide(self, tests: Sequence[PairQuestion], graph: WorkingGraph) -> Iterator[Decided]:
        """Choose at most one of the tests to cut, by the exponential mechanism."""
        candidates = tuple(self._measure.score(q, self._level) for q in tests)
        index = self._queryable.ask(Choose(candidates=candidates, epsilon=self._epsilon, or_none=True))
        if index < len(tests):
            self.note(tests[index], "cut", threshold=self._measure.cut(self._level))
        return ((q, place == index) for place, q in enumerate(tests))
