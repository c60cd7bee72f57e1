"""What an edge test asks for: a test statistic, and where on its scale a p-value of T stands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

from dpcurate.learn.constraint.working_graph import Question
from dpcurate.queries import (
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

    def statistic(self, question: Question) -> Tau:
        return Tau(question.x, question.y, question.given)

    def cut(self, level: float) -> float:
        return normal_quantile(min(level, 0.499)) * math.sqrt(self.rows) / 1.5

    def score(self, question: Question, level: float) -> Score:
        return Score(self.statistic(question), self.cut(level), self.side)

    def scaled(self, rate: float) -> TauMeasure:
        return TauMeasure(self.rows * rate)


@dataclass(frozen=True, slots=True)
class PMeasure:
    """A p-value: independent when large."""

    side: ClassVar[Literal["above"]] = "above"

    def statistic(self, question: Question) -> KendallP:
        return KendallP(question.x, question.y, question.given)

    def cut(self, level: float) -> float:
        return level

    def score(self, question: Question, level: float) -> Score:
        return Score(self.statistic(question), self.cut(level), self.side)

    def scaled(self, rate: float) -> PMeasure:
        return self


Measure = TauMeasure | PMeasure
"""`side` is where independence lies of `cut`, the value at which p equals a level."""


def beyond(measure: Measure, value: float, level: float) -> float:
    """How far a released value lies on the independent side of a level, in the statistic's units."""
    size = abs(value) if isinstance(measure, TauMeasure) else value
    gap = size - measure.cut(level)
    return gap if measure.side == "above" else -gap
