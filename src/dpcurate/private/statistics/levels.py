"""Sums of products of centred indicators."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

from dpcurate._typing import FloatArray, IntArray
from dpcurate.private.mechanisms import Sensitivity
from dpcurate.private.row_sums import RowSum
from dpcurate.private.statistics.transformation import InOneCell, Transformation, table_of
from dpcurate.queries import Contrasts, Counts, Tables
from dpcurate.schema import Neighbours

MOST_ENUMERATED = 8
"""With more columns the worst pair of rows is bounded set by set, not searched for."""


@dataclass(frozen=True)
class ContrastsTransformation(Transformation):
    """Sums of products of centred indicators, one block for each set of columns.

    Guarantee: the weighted blocks w_u F_u move by at most the stated sensitivity.
    Sensitivity: with g_a = (r_a - 1) / r_a, add-remove L2^2 = sum_u w_u^2 prod_{a in u} g_a, exact.
    Replace: the maximum over which columns differ (s_a = 1) of
    2 sum_u w_u^2 [prod g_a - prod (g_a - s_a)]; exact for up to 8 columns, for one set and for the full
    set of pairs with equal weights, else bounded set by set.
    Proof: a row adds the tensor product of phi(x_a) = e_{x_a} - 1/r_a over u, of squared length
    prod g_a. Two rows' vectors have inner product prod (g_a - s_a), since phi(x) . phi(x') is g if
    x = x' and g - 1 otherwise, so their difference has the squared length in brackets, twice.
    Blocks are orthogonal coordinates, so squares add. The L1 length of phi is 2 g.
    Cites: Barak et al. 2007; Xiao et al. 2023 (ResidualPlanner).
    """

    statistic: Contrasts

    @cached_property
    def _sizes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(self.schema.sizes(s) for s in self.statistic.sets)

    @cached_property
    def row_sums(self) -> tuple[RowSum, ...]:
        """What is added up over rows."""
        return tuple(table_of(s, self.schema) for s in self.statistic.sets)

    @property
    def units(self) -> tuple[Fraction, ...]:
        """Products of r e_x - 1 are integers, so a block is in steps of prod r; weights divide its noise."""
        pairs = zip(self._sizes, self.statistic.weights, strict=True)
        return tuple(math.prod(sizes) / Fraction(weight) for sizes, weight in pairs)

    def integers(self, totals: tuple[IntArray, ...]) -> tuple[IntArray, ...]:
        """The integers of each part, from the totals."""
        return tuple(centred(t) for t in totals)

    def natural(self, parts: tuple[IntArray, ...]) -> tuple[FloatArray, ...]:
        """Blocks F_u without weights."""
        return tuple(p / float(math.prod(sizes)) for p, sizes in zip(parts, self._sizes, strict=True))

    def weights(self) -> tuple[float, ...]:
        """The weight of each part: its noise is divided by it."""
        return self.statistic.weights

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """How far one row can move the statistic."""
        weights = [Fraction(w) for w in self.statistic.weights]
        lengths = [[Fraction(r - 1, r) for r in sizes] for sizes in self._sizes]
        l1 = sum((w * math.prod(2 * g for g in gs) for w, gs in zip(weights, lengths, strict=True)), Fraction(0))
        if neighbours is Neighbours.ADD_REMOVE:
            l2 = sum((w * w * math.prod(gs) for w, gs in zip(weights, lengths, strict=True)), Fraction(0))
            return Sensitivity(l1, l2)
        return Sensitivity(2 * l1, self._replaced(weights, lengths))

    def _replaced(self, weights: list[Fraction], lengths: list[list[Fraction]]) -> Fraction:
        columns = sorted({c for s in self.statistic.sets for c in s})
        uniform = self._uniform_pairs(columns)
        if uniform is not None:
            return uniform
        if len(columns) <= MOST_ENUMERATED:
            return self._worst_pair(columns, weights)
        each = zip(weights, lengths, strict=True)
        return sum((2 * w * w * _most_different(gs) for w, gs in each), Fraction(0))

    def _worst_pair(self, columns: list[str], weights: list[Fraction]) -> Fraction:
        """The maximum over all s at once: one column at a time turns sets u into choices s, d 2^d steps in all."""
        inner = [Fraction(0)] * (1 << len(columns))  # first w_u^2 at u, at last sum_u w_u^2 prod (g - s) at s
        for names, w in zip(self.statistic.sets, weights, strict=True):
            inner[sum(1 << columns.index(c) for c in names)] = w * w
        for bit, r in enumerate(self.schema.sizes(columns)):
            g = Fraction(r - 1, r)
            for same in (at for at in range(len(inner)) if not at >> bit & 1):
                without, within = inner[same], inner[same | 1 << bit]
                inner[same], inner[same | 1 << bit] = without + g * within, without + (g - 1) * within
        return 2 * (inner[0] - min(inner))

    def _uniform_pairs(self, columns: list[str]) -> Fraction | None:
        """All pairs with one weight and all margins with another: 2 max_k of a closed form."""
        by_order: dict[int, set[float]] = {}
        for names, weight in zip(self.statistic.sets, self.statistic.weights, strict=True):
            by_order.setdefault(len(names), set()).add(weight)
        d = len(columns)
        complete = sum(len(s) == 2 for s in self.statistic.sets) == d * (d - 1) // 2
        margins = sum(len(s) == 1 for s in self.statistic.sets)
        even = all(len(weights) == 1 for weights in by_order.values())
        if 2 not in by_order or max(by_order) > 2 or not complete or margins not in (0, d) or not even:
            return None
        pair = Fraction(by_order[2].pop()) ** 2
        single = Fraction(by_order[1].pop()) ** 2 if margins else Fraction(0)
        g = sorted(Fraction(r - 1, r) for r in self.schema.sizes(columns))
        smallest = [Fraction(0), *accumulate(g)]  # at k the sum of the k smallest
        return 2 * max(
            single * k + pair * (k * smallest[d] - smallest[k] - Fraction(k * (k - 1), 2)) for k in range(d + 1)
        )


def _most_different(lengths: list[Fraction]) -> Fraction:
    """The largest prod g - prod (g - s) over which columns differ: all but the smallest g multiplied.

    Every g is at least 1/2, so 1 - g <= g: the second product is least, and negative, where one column differs,
    that of the smallest g. There the difference is (g + 1 - g) times the others. The empty set does not move.
    """
    return math.prod(sorted(lengths)[1:], start=Fraction(bool(lengths)))


def centred(counts: IntArray) -> IntArray:
    """Multiply a table by r e_x - 1 along every axis."""
    for axis, size in enumerate(counts.shape):
        counts = size * counts - counts.sum(axis=axis, keepdims=True)
    return counts


# --- counts ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CountsTransformation(InOneCell):
    """Counts over the full public domain.

    Guarantee: the statistic's integers move by at most the stated sensitivity.
    Sensitivity: add-remove L1 = L2 = 1; replace L1 = 2, L2 = sqrt 2.
    Proof: a row stands in exactly one cell. Adding it raises that cell by 1; replacing it lowers
    one cell by 1 and raises another by 1, or changes nothing.
    Cites: Dwork and Roth 2014, Section 3.3.
    """

    statistic: Counts

    @property
    def row_sums(self) -> tuple[RowSum, ...]:
        """What is added up over rows."""
        return (table_of(self.statistic.columns, self.schema),)


@dataclass(frozen=True)
class TablesTransformation(Transformation):
    """Counts of each of k sets of columns, one after the other.

    Guarantee: all the integers together move by at most the stated sensitivity.
    Sensitivity: add-remove L1 = L2^2 = k; replace L1 = L2^2 = 2 m, with m the number of sets that are
    not empty. Exact but for the row count alone, which is treated as counts are.
    Proof: tables are separate coordinates, so L1 lengths and squares of L2 lengths add. Each is moved
    as counts are: adding a row raises one cell of every table by 1 (the empty set's cell is the row
    count). Replacing it moves two cells of a table by 1, or none; the row count stays. Two rows that
    differ in every column move every other table, so nothing smaller would do.
    Cites: Dwork and Roth 2014, Section 3.3; Barak et al. 2007 for sets of tables.
    """

    statistic: Tables

    @cached_property
    def row_sums(self) -> tuple[RowSum, ...]:
        """What is added up over rows."""
        return tuple(table_of(s, self.schema) for s in self.statistic.sets)

    @cached_property
    def units(self) -> tuple[Fraction, ...]:
        """Integer steps in one natural unit, for each part."""
        return (Fraction(1),) * len(self.statistic.sets)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """How far one row can move the statistic."""
        if neighbours is Neighbours.ADD_REMOVE:
            moved = Fraction(len(self.statistic.sets))
        else:
            moved = Fraction(2 * max(1, sum(map(bool, self.statistic.sets))))  # noise needs a scale
        return Sensitivity(moved, moved)
