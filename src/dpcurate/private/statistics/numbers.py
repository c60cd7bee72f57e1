"""Second moments of columns on a grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcurate._typing import FloatArray, IntArray
from dpcurate.errors import QueryError
from dpcurate.private.mechanisms import STEPS, Sensitivity, root_up
from dpcurate.private.row_sums import (
    GRADIENT_STEPS,
    CountRows,
    GradientRows,
    IntervalRows,
    MomentRows,
    NormRows,
    RowSum,
)
from dpcurate.private.statistics.transformation import InOneCell, Transformation, steps_of
from dpcurate.queries import CELLS, Gradient, GradientNorms, Means, Moments, Quantile, places
from dpcurate.schema import GRID, OWN, Neighbours, Numeric, Schema


@dataclass(frozen=True)
class MomentsTransformation(Transformation):
    """The sum of y y^T, y = (1, x), x in [-1, 1]; the upper triangle, the row count once.

    Guarantee: the released entries move by at most the stated sensitivity.
    Sensitivity: with d columns, S of them with squares of their own (not binary), add-remove
    L2^2 = 1 + d + d(d-1)/2 + S; replace L2^2 = (d + 1)^2 + S. With rows clipped to norm R:
    1 + R^2 + R^4, and 2 R^2 + 2 R^4 + 1/2 (4 R^2 if R^2 < 1/2).
    Proof: every entry of a row lies in [-1, 1]. Replace: margins and products are affine in each
    coordinate of either row, so the sum of their squared differences is largest at corners; if k
    coordinates differ there it is 4k + 4k(d-k) <= (d+1)^2; each square moves by at most 1. The
    count does not move. Clipped: margins have squared length at most R^2, the upper triangle of
    x x^T at most |x|^4; values are rounded toward zero, which shrinks both. Replace: with c = x . x'
    the squared distance is at most 2 R^2 - 2c + 2 R^4 - 2 c^2, largest at c = -1/2 or, if R^2 < 1/2, at -R^2.
    Cites: Dwork et al. 2014 (Analyze Gauss).
    """

    statistic: Moments

    @property
    def _steps(self) -> tuple[int, ...]:
        return steps_of(self.statistic.columns, self.schema)

    @property
    def row_sums(self) -> tuple[RowSum, ...]:
        """What is added up over rows."""
        return (MomentRows(self.statistic.columns, self._steps, self.statistic.clip),)

    @cached_property
    def _entries(self) -> list[tuple[int, int]]:
        """Upper triangle but for squares that equal the count."""
        d = len(self.statistic.columns)
        own = [self.statistic.clip is not None or step > 1 for step in self._steps]
        return [(i, j) for i in range(d + 1) for j in range(i, d + 1) if i != j or i == 0 or own[i - 1]]

    @property
    def _scale(self) -> list[int]:
        return [1, *(self._steps if self.statistic.clip is None else [GRID] * len(self._steps))]

    @property
    def units(self) -> tuple[Fraction, ...]:
        """An entry is in steps of its two columns' grids."""
        scale = self._scale
        return tuple(Fraction(scale[i] * scale[j]) for i, j in self._entries)

    def integers(self, totals: tuple[IntArray, ...]) -> tuple[IntArray, ...]:
        """The integers of each part, from the totals."""
        return tuple(totals[0][i, j : j + 1] for i, j in self._entries)

    def natural(self, parts: tuple[IntArray, ...]) -> tuple[FloatArray, ...]:
        """The whole symmetric matrix in natural units."""
        d, scale = len(self.statistic.columns), self._scale
        whole = np.full((d + 1, d + 1), np.nan)
        for (i, j), part in zip(self._entries, parts, strict=True):
            whole[i, j] = whole[j, i] = float(part[0]) / (scale[i] * scale[j])
        np.fill_diagonal(whole, np.where(np.isnan(np.diag(whole)), whole[0, 0], np.diag(whole)))
        return (whole,)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each part."""
        d = len(self.statistic.columns) + 1
        return ((d, d),)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """How far one row can move the statistic."""
        d, entries = len(self.statistic.columns), len(self._entries)
        squares = sum(i == j for i, j in self._entries) - 1
        added = neighbours is Neighbours.ADD_REMOVE
        if self.statistic.clip is not None:
            r2 = Fraction(self.statistic.clip) ** 2
            swapped = 4 * r2 if 2 * r2 < 1 else 2 * r2 + 2 * r2 * r2 + Fraction(1, 2)
            l2 = 1 + r2 + r2 * r2 if added else swapped
            return Sensitivity(root_up(l2 * entries), l2)
        if added:
            return Sensitivity(Fraction(entries), Fraction(entries))
        moving = d + d * (d - 1) // 2
        return Sensitivity(Fraction(2 * moving + squares), Fraction((d + 1) ** 2 + squares))


# --- gradients ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GradientTransformation(Transformation):
    """The sum of per-row gradient matrices, each clipped to Frobenius norm s.

    Guarantee: the d x d matrix moves by at most the stated sensitivity.
    Sensitivity: add-remove L2 = s, replace L2 = 2 s; L1 at most sqrt(d (d - 1)) times that.
    Proof: every row's matrix is scaled to norm at most s (1 - 1e-9), which covers floating-point
    error, and its entries are rounded toward zero, which only shrinks them. A row's matrix is
    computed from that row alone, in a fixed order of operations.
    Cites: Abadi et al. 2016, Section 3.
    """

    statistic: Gradient

    @property
    def row_sums(self) -> tuple[RowSum, ...]:
        """What is added up over rows."""
        s = self.statistic
        return (GradientRows(s.columns, steps_of(s.columns, self.schema), s.weights, float(s.clip)),)

    @property
    def units(self) -> tuple[Fraction, ...]:
        """The clip is a fixed number of steps."""
        return (GRADIENT_STEPS / Fraction(self.statistic.clip),)

    def natural(self, parts: tuple[IntArray, ...]) -> tuple[FloatArray, ...]:
        """In units of the gradient, with a zero diagonal."""
        whole: FloatArray = parts[0].astype(np.float64) * (float(self.statistic.clip) / GRADIENT_STEPS)
        np.fill_diagonal(whole, 0.0)
        return (whole,)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each part."""
        d = len(self.statistic.columns)
        return ((d, d),)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """How far one row can move the statistic."""
        length = Fraction(self.statistic.clip) * (1 if neighbours is Neighbours.ADD_REMOVE else 2)
        d = len(self.statistic.columns)
        return Sensitivity(root_up(length * length * d * (d - 1)), length * length)


@dataclass(frozen=True)
class GradientNormsTransformation(InOneCell):
    """How many rows' gradient matrices have a norm in each public bin.

    Guarantee: the counts move by at most the stated sensitivity.
    Sensitivity: add-remove L1 = L2 = 1; replace L1 = 2, L2 = sqrt 2.
    Proof: a row's norm is computed from that row alone, in a fixed order of operations, so the row
    stands in exactly one bin; the rest is that of counts.
    Cites: Dwork and Roth 2014, Section 3.3; Andrew et al. 2021 for clipping at a private quantile.
    """

    statistic: GradientNorms

    @property
    def row_sums(self) -> tuple[RowSum, ...]:
        """What is added up over rows."""
        s = self.statistic
        return (NormRows(s.columns, steps_of(s.columns, self.schema), s.weights, s.edges),)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each part."""
        return ((len(self.statistic.edges) + 1,),)


# --- means and quantiles --------------------------------------------------------------------------------


LOWEST_SCORE = -(1 << 62)
"""Scores below this are taken for it, so that they fit into 64 bits."""


def number(name: str, schema: Schema, what: str) -> Numeric:
    """The column, if it is a number; else a refusal."""
    column = schema[name]
    if not isinstance(column, Numeric):
        raise QueryError(
            f"column {name!r} is {column.kind}: its levels are names, which have no {what}. Ask for its counts, or "
            "declare it as numeric with a low and a high"
        )
    return column


def _intervals(name: str, schema: Schema, what: str) -> IntervalRows:
    return IntervalRows(name, CELLS, number(name, schema, what).missing == OWN)


@dataclass(frozen=True)
class MeansTransformation(Transformation):
    """The row count, and for each of k columns the sum of x in [-1, 1] and, if cells may be missing, their number.

    Guarantee: the parts together move by at most the stated sensitivity.
    Sensitivity: add-remove L1 = L2^2 = 1 + k; replace L1 = 2 k, L2^2 = 4 k.
    Proof: a row adds 1 to the count, and of a column either x to its sum, |x| <= 1, or 1 to its missing cells: at
    most 1 a column, and its square. Replace: the count stays; of a column the sum moves by at most 2, or the sum by
    at most 1 and the missing cells by 1, or the missing cells not at all. Attained by rows at the bounds.
    Cites: Dwork and Roth 2014, Section 3.3.
    """

    statistic: Means

    @cached_property
    def row_sums(self) -> tuple[RowSum, ...]:
        """What is added up over rows."""
        return (CountRows((), ()), *self._numbers)

    @cached_property
    def _numbers(self) -> tuple[IntervalRows, ...]:
        return tuple(_intervals(name, self.schema, "mean") for name in self.statistic.columns)

    @cached_property
    def units(self) -> tuple[Fraction, ...]:
        """Integer steps in one natural unit, for each part."""
        each = [(Fraction(GRID), Fraction(1)) if one.missing else (Fraction(GRID),) for one in self._numbers]
        return (Fraction(1), *(unit for units in each for unit in units))

    def integers(self, totals: tuple[IntArray, ...]) -> tuple[IntArray, ...]:
        """The integers of each part, from the totals."""
        return (totals[0], *(part for counts in totals[1:] for part in _sum_and_missing(counts)))

    def natural(self, parts: tuple[IntArray, ...]) -> tuple[FloatArray, ...]:
        """Each part in natural units."""
        return tuple(part / float(unit) for part, unit in zip(parts, self.units, strict=True))

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each part."""
        return ((),) * len(self.units)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """How far one row can move the statistic."""
        k = len(self.statistic.columns)
        if neighbours is Neighbours.ADD_REMOVE:
            return Sensitivity(Fraction(1 + k), Fraction(1 + k))
        return Sensitivity(Fraction(2 * k), Fraction(4 * k))


def _sum_and_missing(counts: IntArray) -> Iterator[IntArray]:
    yield np.asarray(counts[:CELLS] @ places())
    if len(counts) > CELLS:
        yield np.asarray(counts[CELLS])


@dataclass(frozen=True)
class QuantileTransformation(Transformation):
    """For each interval between cuts, minus the distance in rows from the rank that is sought to the ranks it holds.

    Guarantee: every score moves by at most the stated sensitivity.
    Sensitivity: of each score, add-remove max(q, 1 - q), replace 1.
    Proof: let n rows have a number, B of them below the interval and C in or below it. The score is minus the
    largest of 0, B - (q n + s) and (q n + s) - C. A row more moves n by 1 (or nothing, if its cell is missing) and
    B and C by 0 or 1, so each of the last two moves by q, 1 - q or nothing; replacing a row with a number by another
    moves B and C by at most 1 and leaves n; one with a number by one without is a removal. The largest of functions
    that move by at most D moves by at most D.
    Cites: Smith 2011; McSherry and Talwar 2007.
    """

    statistic: Quantile

    @cached_property
    def row_sums(self) -> tuple[RowSum, ...]:
        """What is added up over rows."""
        return (_intervals(self.statistic.column, self.schema, "quantile"),)

    @property
    def _probability(self) -> Fraction:
        return Fraction(self.statistic.probability)

    @property
    def units(self) -> tuple[Fraction, ...]:
        """Integer steps in one natural unit, for each part."""
        return (Fraction(self._probability.denominator),)

    def integers(self, totals: tuple[IntArray, ...]) -> tuple[IntArray, ...]:
        """The integers of each part, from the totals."""
        below = np.concatenate([[0], np.cumsum(totals[0][:CELLS])])
        ranks = below[list(self.statistic.cuts)] if self.statistic.cuts else below
        q = self._probability
        sought = int(below[-1]) * q.numerator + self.statistic.shift * q.denominator
        apart = ranks * q.denominator - sought
        return (-np.maximum(0, np.maximum(apart[:-1], -apart[1:])),)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """How far one row can move the statistic."""
        q = self._probability
        moved = max(q, 1 - q) if neighbours is Neighbours.ADD_REMOVE else Fraction(1)
        return Sensitivity(moved, moved * moved)


def score_steps(scores: IntArray, unit: Fraction, bound: Sensitivity) -> IntArray:
    """Scores in integer steps, STEPS of them for the sensitivity, floored exactly: neighbours stay within STEPS."""
    ratio = STEPS / (bound.l1 * unit)
    floored = [int(score) * ratio.numerator // ratio.denominator for score in scores]
    return np.array([max(LOWEST_SCORE, score) for score in floored], dtype=np.int64)
