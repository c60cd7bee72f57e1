"""Statistics: integers from sums over rows, each with its sensitivity and the proof of it.

A plan is made from public facts alone (query, schema, neighbours). It names the sums it needs,
turns their totals into integers in steps of 1 / unit, and states how far one row can move them.
Longer proofs are in docs/proofs/sensitivity.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpcurate.private.kernels import (
    GRADIENT_STEPS,
    CountRows,
    GradientRows,
    Integers,
    Kernel,
    MomentRows,
    NormRows,
)
from dpcurate.private.mechanisms import Sensitivity, root_up
from dpcurate.queries import (
    Contrasts,
    Counts,
    Gradient,
    GradientNorms,
    Moments,
    Statistic,
    Tables,
)
from dpcurate.schema import GRID, Neighbours, Schema

ONE_CELL = {
    Neighbours.ADD_REMOVE: Sensitivity(Fraction(1), Fraction(1)),
    Neighbours.REPLACE: Sensitivity(Fraction(2), Fraction(2)),
}
"""A row stands in one cell of a table: adding it moves one cell by 1, replacing it two."""
MOST_ENUMERATED = 8
"""With more columns the worst pair of rows is bounded set by set, not searched for."""


class Plan(Protocol):
    """What a statistic needs, how it is computed in integers, and how far a row can move it."""

    proved: bool

    @property
    def statistic(self) -> Statistic:
        """What was asked for."""

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The sums over rows it needs."""

    @property
    def units(self) -> tuple[Fraction, ...]:
        """For each part, integer steps per natural unit of the (weighted) statistic."""

    def integers(self, totals: tuple[Integers, ...]) -> tuple[Integers, ...]:
        """The parts as integers."""

    def natural(self, parts: tuple[Integers, ...]) -> tuple[NDArray[np.float64], ...]:
        """The parts as the analyst sees them."""

    def weights(self) -> tuple[float, ...]:
        """For each part, what its noise is divided by."""

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """How far one row can move the statistic under a relation."""


def table_of(columns: tuple[str, ...], schema: Schema) -> CountRows:
    """The counts over some columns."""
    return CountRows(columns, schema.sizes(columns))


class _Cells:
    """What statistics share in which a row stands in exactly one cell."""

    @property
    def units(self) -> tuple[Fraction, ...]:
        """Counts are integers."""
        return (Fraction(1),)

    def integers(self, totals: tuple[Integers, ...]) -> tuple[Integers, ...]:
        """As they are."""
        return totals

    def natural(self, parts: tuple[Integers, ...]) -> tuple[NDArray[np.float64], ...]:
        """As they are."""
        return (parts[0].astype(np.float64),)

    def weights(self) -> tuple[float, ...]:
        """No weights."""
        return (1.0,)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """See Sensitivity above."""
        return ONE_CELL[neighbours]


@dataclass(frozen=True)
class CountsPlan(_Cells):
    """Counts over the full public domain.

    Guarantee: the statistic's integers move by at most the stated sensitivity.
    Sensitivity: add-remove L1 = L2 = 1; replace L1 = 2, L2 = sqrt 2.
    Proof: a row stands in exactly one cell. Adding it raises that cell by 1; replacing it lowers
    one cell by 1 and raises another by 1, or changes nothing.
    Cites: Dwork and Roth 2014, Section 3.3.
    """

    statistic: Counts
    schema: Schema
    proved = True

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """One table."""
        return (table_of(self.statistic.columns, self.schema),)


@dataclass(frozen=True)
class TablesPlan:
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
    schema: Schema
    proved = True

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """A table for each set."""
        return tuple(table_of(s, self.schema) for s in self.statistic.sets)

    @cached_property
    def units(self) -> tuple[Fraction, ...]:
        """Counts are integers."""
        return (Fraction(1),) * len(self.statistic.sets)

    def integers(self, totals: tuple[Integers, ...]) -> tuple[Integers, ...]:
        """As they are."""
        return totals

    def natural(self, parts: tuple[Integers, ...]) -> tuple[NDArray[np.float64], ...]:
        """As they are."""
        return tuple(p.astype(np.float64) for p in parts)

    def weights(self) -> tuple[float, ...]:
        """No weights."""
        return (1.0,) * len(self.statistic.sets)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """See Sensitivity above."""
        if neighbours is Neighbours.ADD_REMOVE:
            moved = Fraction(len(self.statistic.sets))
        else:
            moved = Fraction(2 * max(1, sum(map(bool, self.statistic.sets))))  # noise needs a scale
        return Sensitivity(moved, moved)


@dataclass(frozen=True)
class ContrastsPlan:
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
    schema: Schema
    proved = True

    @cached_property
    def _sizes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(self.schema.sizes(s) for s in self.statistic.sets)

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """A table for each set."""
        return tuple(table_of(s, self.schema) for s in self.statistic.sets)

    @property
    def units(self) -> tuple[Fraction, ...]:
        """R e_x - 1 are integers, so a block is in steps of prod r; weights divide its noise."""
        pairs = zip(self._sizes, self.statistic.weights, strict=True)
        return tuple(math.prod(sizes) / Fraction(weight) for sizes, weight in pairs)

    def integers(self, totals: tuple[Integers, ...]) -> tuple[Integers, ...]:
        """Counts times r e_x - 1 along every axis."""
        return tuple(centred(t) for t in totals)

    def natural(self, parts: tuple[Integers, ...]) -> tuple[NDArray[np.float64], ...]:
        """Blocks F_u without weights."""
        return tuple(p / float(math.prod(sizes)) for p, sizes in zip(parts, self._sizes, strict=True))

    def weights(self) -> tuple[float, ...]:
        """The weights asked for."""
        return self.statistic.weights

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """See Sensitivity above."""
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
        even = all(len(found) == 1 for found in by_order.values())
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


def centred(counts: Integers) -> Integers:
    """Multiply a table by r e_x - 1 along every axis."""
    for axis, size in enumerate(counts.shape):
        counts = size * counts - counts.sum(axis=axis, keepdims=True)
    return counts


@dataclass(frozen=True)
class MomentsPlan:
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
    schema: Schema
    proved = True

    @property
    def _steps(self) -> tuple[int, ...]:
        return tuple(self.schema[c].steps for c in self.statistic.columns)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The sum of outer products."""
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

    def integers(self, totals: tuple[Integers, ...]) -> tuple[Integers, ...]:
        """One part for each entry."""
        return tuple(totals[0][i, j : j + 1] for i, j in self._entries)

    def natural(self, parts: tuple[Integers, ...]) -> tuple[NDArray[np.float64], ...]:
        """The whole symmetric matrix in natural units."""
        d, scale = len(self.statistic.columns), self._scale
        whole = np.full((d + 1, d + 1), np.nan)
        for (i, j), part in zip(self._entries, parts, strict=True):
            whole[i, j] = whole[j, i] = float(part[0]) / (scale[i] * scale[j])
        np.fill_diagonal(whole, np.where(np.isnan(np.diag(whole)), whole[0, 0], np.diag(whole)))
        return (whole,)

    def weights(self) -> tuple[float, ...]:
        """One noise scale for all."""
        return (1.0,)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """See Sensitivity above."""
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


@dataclass(frozen=True)
class GradientPlan:
    """The sum of per-row gradient matrices, each clipped to Frobenius norm s.

    Guarantee: the d x d matrix moves by at most the stated sensitivity.
    Sensitivity: add-remove L2 = s, replace L2 = 2 s; L1 at most sqrt(d (d - 1)) times that.
    Proof: every row's matrix is scaled to norm at most s (1 - 1e-9), which covers floating-point
    error, and its entries are rounded toward zero, which only shrinks them. A row's matrix is
    computed from that row alone, in a fixed order of operations.
    Cites: Abadi et al. 2016, Section 3.
    """

    statistic: Gradient
    schema: Schema
    proved = True

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The sum of clipped matrices."""
        s = self.statistic
        steps = tuple(self.schema[c].steps for c in s.columns)
        return (GradientRows(s.columns, steps, s.weights, float(s.clip)),)

    @property
    def units(self) -> tuple[Fraction, ...]:
        """The clip is a fixed number of steps."""
        return (GRADIENT_STEPS / Fraction(self.statistic.clip),)

    def integers(self, totals: tuple[Integers, ...]) -> tuple[Integers, ...]:
        """As they are."""
        return totals

    def natural(self, parts: tuple[Integers, ...]) -> tuple[NDArray[np.float64], ...]:
        """In units of the gradient, with a zero diagonal."""
        whole: NDArray[np.float64] = parts[0].astype(np.float64) * (float(self.statistic.clip) / GRADIENT_STEPS)
        np.fill_diagonal(whole, 0.0)
        return (whole,)

    def weights(self) -> tuple[float, ...]:
        """No weights."""
        return (1.0,)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """See Sensitivity above."""
        length = Fraction(self.statistic.clip) * (1 if neighbours is Neighbours.ADD_REMOVE else 2)
        d = len(self.statistic.columns)
        return Sensitivity(root_up(length * length * d * (d - 1)), length * length)


@dataclass(frozen=True)
class GradientNormsPlan(_Cells):
    """How many rows' gradient matrices have a norm in each public bin.

    Guarantee: the counts move by at most the stated sensitivity.
    Sensitivity: add-remove L1 = L2 = 1; replace L1 = 2, L2 = sqrt 2.
    Proof: a row's norm is computed from that row alone, in a fixed order of operations, so the row
    stands in exactly one bin; the rest is that of counts.
    Cites: Dwork and Roth 2014, Section 3.3; Andrew et al. 2021 for clipping at a private quantile.
    """

    statistic: GradientNorms
    schema: Schema
    proved = True

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """One histogram."""
        s = self.statistic
        return (NormRows(s.columns, tuple(self.schema[c].steps for c in s.columns), s.weights, s.edges),)
