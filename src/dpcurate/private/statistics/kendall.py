"""Statistics of rank association between two columns in strata. Longer proofs are in docs/proofs/choices.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpcurate._typing import FloatArray, IntArray
from dpcurate.errors import QueryError
from dpcurate.private.mechanisms import Sensitivity, root_up
from dpcurate.private.row_sums import RowSum
from dpcurate.private.statistics.transformation import Transformation, table_of
from dpcurate.queries import KendallP, PairStatistic, Tau
from dpcurate.schema import Neighbours

TAU_STEPS = 1024
P_STEPS = 1 << 40
UNDEFINED = -(1 << 60)
"""Stands for a pair statistic that no stratum defines; far below any noised one, and its score is the lowest."""
STEEPEST = Fraction(3_989_423, 10**7)
"""Just above 1 / sqrt(2 pi), the largest slope of the normal distribution function."""


@dataclass(frozen=True)
class PairTransformation(Transformation):
    """What transformations to pair statistics share: one table, one integer in `steps` to the unit, no weights."""

    statistic: PairStatistic
    steps: ClassVar[int]

    @property
    def row_sums(self) -> tuple[RowSum, ...]:
        """What is added up over rows."""
        s = self.statistic
        return (table_of((s.x, s.y, *s.given), self.schema),)

    @property
    def units(self) -> tuple[Fraction, ...]:
        """Integer steps in one natural unit, for each part."""
        return (Fraction(self.steps),)

    def natural(self, parts: tuple[IntArray, ...]) -> tuple[FloatArray, ...]:
        """Each part in natural units."""
        return (np.asarray(float(parts[0][0]) / self.steps),)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each part."""
        return ((),)


@dataclass(frozen=True)
class TauTransformation(PairTransformation):
    """Kendall's association, g = sum_k 2 C_k / (n_k - 1) over the strata, floored to 1/1024.

    Guarantee: g moves by at most the stated sensitivity.
    Sensitivity: add-remove 3, or 2 if x or y has two levels; replace twice that.
    Proof: a row that joins a stratum of m >= 2 rows turns 2C/(m-1) into 2(C+s)/m with |s| <= m and
    |C| <= m(m-1)/2, a change of at most 2|s|/m + 2|C|/(m(m-1)) <= 3. If x is binary with m0 rows on
    the other side, |s| <= m0 and |C| <= m0 (m - m0), which gives at most
    2 m0/m + 2 m0(m-m0)/(m(m-1)) <= 2. A stratum of one row goes from 0 to at most 2. Only one stratum
    changes, and flooring it to steps that divide the bound keeps the bound.
    Cites: Kendall 1938; Wang, Pang, Song 2020 for the weighting by strata.
    """

    statistic: Tau
    steps = TAU_STEPS

    def integers(self, totals: tuple[IntArray, ...]) -> tuple[IntArray, ...]:
        """Stratum by stratum in exact integer arithmetic."""
        sizes, balance = strata(totals[0])
        return (_floor_ratio(2 * balance, np.maximum(sizes - 1, 1), TAU_STEPS).sum(keepdims=True),)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """How far one row can move the statistic."""
        binary = 2 in self.schema.sizes((self.statistic.x, self.statistic.y))
        bound = Fraction((2 if binary else 3) * (1 if neighbours is Neighbours.ADD_REMOVE else 2))
        return Sensitivity(bound, bound * bound)


def strata(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Rows, and concordant minus discordant pairs, in each stratum of an x by y by strata table."""
    cells = counts.reshape(*counts.shape[:2], -1)
    below = np.cumsum(cells, axis=1) - cells  # rows of the same x with smaller y
    above = cells.sum(axis=1, keepdims=True) - below - cells
    gain = above - below  # concordant minus discordant partners that a larger x would find
    later = cells.sum(axis=0) * 0
    balance = np.zeros(cells.shape[2], dtype=np.int64)
    for x in range(cells.shape[0] - 1, -1, -1):
        balance += (cells[x] * later).sum(axis=0)
        later = later + gain[x]
    return cells.sum(axis=(0, 1)), balance


def _floor_ratio(numerator: IntArray, denominator: IntArray, steps: int) -> IntArray:
    """floor(steps * numerator / denominator) without overflow."""
    whole, rest = np.divmod(numerator, denominator)
    return whole * steps + (rest * steps) // denominator


@dataclass(frozen=True)
class KendallPTransformation(PairTransformation):
    """The p-value sf(|z|), z = sum_k 9 C_k / (2 n_k + 5) / (1.5 sqrt n0), constant strata kept.

    Guarantee: p moves by at most the stated sensitivity.
    Sensitivity: add-remove 4.5 / sqrt(2 pi n0), replace twice that, and a step of 2^-40 for rounding.
    Proof: a row that joins a stratum of m rows moves 9C/(2m+5) by at most
    9m(3m+4) / ((2m+7)(2m+5)) < 27/4; floored to steps of 1/1024, which divide 27/4, the bound stays.
    So z moves by less than 4.5 / sqrt n0, and sf has slope at most 1 / sqrt(2 pi). The public
    constant n0 stands where the published test has the private number of rows.
    Cites: Kendall 1938; docs/proofs/choices.md.
    """

    statistic: KendallP
    steps = P_STEPS

    def __post_init__(self) -> None:
        if self.schema.rows is None:
            raise QueryError("a p-value needs a public row count: give the schema rows=, or ask for Tau")

    def integers(self, totals: tuple[IntArray, ...]) -> tuple[IntArray, ...]:
        """The integers of each part, from the totals."""
        assert self.schema.rows is not None
        sizes, balance = strata(totals[0])
        numerator = _floor_ratio(9 * balance, 2 * sizes + 5, TAU_STEPS).sum() / TAU_STEPS
        p = upper_tail(abs(float(numerator)) / (1.5 * math.sqrt(self.schema.rows)))
        return (np.array([math.floor(p * P_STEPS)], dtype=np.int64),)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """How far one row can move the statistic."""
        assert self.schema.rows is not None
        move = STEEPEST * Fraction(9, 2) * root_up(Fraction(1, self.schema.rows))
        bound = move * (1 if neighbours is Neighbours.ADD_REMOVE else 2) + Fraction(1, P_STEPS)
        return Sensitivity(bound, bound * bound)


def upper_tail(z: float) -> float:
    """P(N(0, 1) > z)."""
    return 0.5 * math.erfc(z / math.sqrt(2))
