"""What means are made of, and where quantiles lie: numbers by the fine interval they stand in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcurate._typing import FloatArray, IntArray
from dpcurate.errors import QueryError
from dpcurate.private.mechanisms import STEPS, Sensitivity
from dpcurate.private.row_sums import CountRows, IntervalRows, RowSum
from dpcurate.private.statistics.base import Transformation
from dpcurate.queries import CELLS, Means, Quantile, places
from dpcurate.schema import GRID, OWN, Neighbours, Numeric, Schema

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
        return (CountRows((), ()), *self._numbers)

    @cached_property
    def _numbers(self) -> tuple[IntervalRows, ...]:
        return tuple(_intervals(name, self.schema, "mean") for name in self.statistic.columns)

    @cached_property
    def units(self) -> tuple[Fraction, ...]:
        each = [(Fraction(GRID), Fraction(1)) if one.missing else (Fraction(GRID),) for one in self._numbers]
        return (Fraction(1), *(unit for units in each for unit in units))

    def weights(self) -> tuple[float, ...]:
        return (1.0,) * len(self.units)

    def integers(self, totals: tuple[IntArray, ...]) -> tuple[IntArray, ...]:
        return (totals[0], *(part for counts in totals[1:] for part in _sum_and_missing(counts)))

    def natural(self, parts: tuple[IntArray, ...]) -> tuple[FloatArray, ...]:
        return tuple(part / float(unit) for part, unit in zip(parts, self.units, strict=True))

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((),) * len(self.units)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
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
        return (_intervals(self.statistic.column, self.schema, "quantile"),)

    @property
    def _probability(self) -> Fraction:
        return Fraction(self.statistic.probability)

    @property
    def units(self) -> tuple[Fraction, ...]:
        return (Fraction(self._probability.denominator),)

    def integers(self, totals: tuple[IntArray, ...]) -> tuple[IntArray, ...]:
        below = np.concatenate([[0], np.cumsum(totals[0][:CELLS])])
        ranks = below[list(self.statistic.cuts)] if self.statistic.cuts else below
        q = self._probability
        sought = int(below[-1]) * q.numerator + self.statistic.shift * q.denominator
        apart = ranks * q.denominator - sought
        return (-np.maximum(0, np.maximum(apart[:-1], -apart[1:])),)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        q = self._probability
        moved = max(q, 1 - q) if neighbours is Neighbours.ADD_REMOVE else Fraction(1)
        return Sensitivity(moved, moved * moved)


def score_steps(scores: IntArray, unit: Fraction, bound: Sensitivity) -> IntArray:
    """Scores in integer steps, STEPS of them for the sensitivity, floored exactly: neighbours stay within STEPS."""
    ratio = STEPS / (bound.l1 * unit)
    floored = [int(score) * ratio.numerator // ratio.denominator for score in scores]
    return np.array([max(LOWEST_SCORE, score) for score in floored], dtype=np.int64)
