"""Histograms of columns of any kind, and sums of products of their features, rows clipped."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcurate._typing import FloatArray, IntArray
from dpcurate.errors import QueryError
from dpcurate.private.mechanisms import Sensitivity, root_up
from dpcurate.private.row_sums import CountRows, FeatureNormRows, FeatureRows, IntervalRows, Lookup, RowSum
from dpcurate.private.statistics.transformation import InOneCell, Transformation, table_of
from dpcurate.queries import BRANCHES, DEEPEST, FEATURE_STEPS, FeatureMap, FeatureMoments, FeatureNorms, Histograms
from dpcurate.schema import OWN, Neighbours, Schema

SQUARES = Fraction(70, 99)
"""The weight of squares, just below the root of 1/2: its square is at most 1/2."""


@dataclass(frozen=True)
class HistogramsTransformation(Transformation):
    """The counts of every column's levels, and of a number's intervals at each depth.

    Guarantee: the counts move by at most the stated sensitivity.
    Sensitivity: with P parts in all, add-remove L1 = L2^2 = P; replace L1 = L2^2 = 2 P.
    Proof: a row stands in at most one cell of each part, whatever it holds: intervals of one depth do not
    meet, and a missing cell has a place in the first part of its column and in no other. Adding a row
    therefore moves at most one cell a part by 1, replacing it at most two.
    Cites: Hay et al. 2010 (hierarchical histograms).
    """

    statistic: Histograms

    @cached_property
    def row_sums(self) -> tuple[RowSum, ...]:
        """What is added up over rows."""
        finest = BRANCHES**self.statistic.depth
        columns = [self.schema[name] for name in self.statistic.columns]
        return tuple(
            table_of((c.name,), self.schema) if c.has_levels else IntervalRows(c.name, finest, c.missing == OWN)
            for c in columns
        )

    @property
    def _parts(self) -> int:
        return sum(self.statistic.depth if isinstance(r, IntervalRows) else 1 for r in self.row_sums)

    @property
    def units(self) -> tuple[Fraction, ...]:
        """Integer steps in one natural unit, for each part."""
        return (Fraction(1),) * self._parts

    def integers(self, totals: tuple[IntArray, ...]) -> tuple[IntArray, ...]:
        """The integers of each part, from the totals."""
        parts: list[IntArray] = []
        for row_sum, counts in zip(self.row_sums, totals, strict=True):
            parts += _by_depth(counts, row_sum) if isinstance(row_sum, IntervalRows) else [counts]
        return tuple(parts)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each part."""
        parts: list[tuple[int, ...]] = []
        for one in self.row_sums:
            if isinstance(one, IntervalRows):
                sizes = [BRANCHES**depth for depth in range(1, self.statistic.depth + 1)]
                parts += [(sizes[0] + one.missing,), *((size,) for size in sizes[1:])]
            elif isinstance(one, CountRows):
                parts.append(one.sizes)
        return tuple(parts)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """How far one row can move the statistic."""
        moved = Fraction(self._parts * (1 if neighbours is Neighbours.ADD_REMOVE else 2))
        return Sensitivity(moved, moved)


def _by_depth(counts: IntArray, row_sum: IntervalRows) -> list[IntArray]:
    """From the finest intervals to each depth, coarsest first; missing cells end the first."""
    finest, missing = counts[: row_sum.intervals], counts[row_sum.intervals :]
    sizes, size = [], BRANCHES
    while size <= len(finest):
        sizes.append(size)
        size *= BRANCHES
    parts = [finest.reshape(size, -1).sum(axis=1) for size in sizes]
    return [np.concatenate([parts[0], missing]), *parts[1:]]


def lookups(maps: tuple[FeatureMap, ...], schema: Schema) -> tuple[Lookup, ...]:
    """Feature maps as the schema's columns take them; every complaint comes from public facts."""
    return tuple(_lookup(one, schema) for one in maps)


def _lookup(given: FeatureMap, schema: Schema) -> Lookup:
    column, places = schema[given.column], len(given.vectors)
    if column.has_levels:
        if places != column.size:
            raise QueryError(f"{given.column!r} has {column.size} levels, and its features are for {places}")
        return Lookup(given.column, 0, given.vectors)
    intervals = places - (column.missing == OWN)
    if not 1 <= intervals <= BRANCHES**DEEPEST:
        raise QueryError(f"{given.column!r} takes features of 1 to {BRANCHES**DEEPEST} intervals, got {intervals}")
    return Lookup(given.column, intervals, given.vectors)


@dataclass(frozen=True)
class FeatureMomentsTransformation(Transformation):
    """The sums of z, of products z_i z_j (i < j) and of squares, each row's z shrunk to norm R.

    Guarantee: the weighted parts (w z, z_i z_j, SQUARES z_i^2) move by at most the stated sensitivity.
    Sensitivity: with D features, add-remove L2^2 = w^2 R^2 + R^4 / 2 and
    L1 = w sqrt(D) R + ((D - 1) / 2 + SQUARES) R^2. Replace: L2^2 = 2 w^2 R^2 + R^4 + w^4, or
    4 w^2 R^2 if w > R; L1 twice that of add-remove.
    Proof: a row's z has norm at most R (1 - 1e-9), which covers the rounding of the factor, and is rounded toward
    zero, which shrinks it. The sum over i < j of z_i^2 z_j^2, plus half the sum of z_i^4, is |z|^4 / 2, and
    SQUARES^2 <= 1/2. By Cauchy-Schwarz |z|_1 <= sqrt(D) R, and the sum over i < j of |z_i z_j| is
    (|z|_1^2 - |z|^2) / 2 <= (D - 1) R^2 / 2. Replace: with a = |z|^2, b = |z'|^2, c = z . z' the squared
    distance is at most w^2 (a + b - 2c) + (a^2 + b^2) / 2 - c^2, which rises in a and b; at a = b = R^2 it is
    largest at c = -w^2 or, if that is below -R^2, at c = -R^2.
    Cites: Dwork et al. 2014 (Analyze Gauss).
    """

    statistic: FeatureMoments

    @cached_property
    def row_sums(self) -> tuple[RowSum, ...]:
        """What is added up over rows."""
        given = self.statistic
        return (FeatureRows(lookups(given.maps, self.schema), float(given.clip) * FEATURE_STEPS),)

    @property
    def _features(self) -> int:
        return sum(m.size for m in self.statistic.maps)

    @property
    def _weights(self) -> tuple[Fraction, Fraction, Fraction]:
        return Fraction(self.statistic.singles), Fraction(1), SQUARES

    @property
    def units(self) -> tuple[Fraction, ...]:
        """Products are in steps of both features; weights divide the noise."""
        single, pair, square = self._weights
        return FEATURE_STEPS / single, FEATURE_STEPS**2 / pair, FEATURE_STEPS**2 / square

    def weights(self) -> tuple[float, ...]:
        """The weight of each part: its noise is divided by it."""
        return tuple(float(w) for w in self._weights)

    def integers(self, totals: tuple[IntArray, ...]) -> tuple[IntArray, ...]:
        """The integers of each part, from the totals."""
        whole = totals[0]
        products = whole[1:, 1:]
        return whole[0, 1:], products[np.triu_indices(len(products), 1)], np.diagonal(products)

    def natural(self, parts: tuple[IntArray, ...]) -> tuple[FloatArray, ...]:
        """Each part in natural units."""
        scales = FEATURE_STEPS, FEATURE_STEPS**2, FEATURE_STEPS**2
        return tuple(part / float(scale) for part, scale in zip(parts, scales, strict=True))

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each part."""
        d = self._features
        return (d,), (d * (d - 1) // 2,), (d,)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """How far one row can move the statistic."""
        w2, r2 = Fraction(self.statistic.singles) ** 2, Fraction(self.statistic.clip) ** 2
        length = root_up(w2 * r2 * self._features) + (Fraction(self._features - 1, 2) + SQUARES) * r2
        if neighbours is Neighbours.ADD_REMOVE:
            return Sensitivity(length, w2 * r2 + r2 * r2 / 2)
        far = 2 * w2 * r2 + r2 * r2 + w2 * w2 if w2 <= r2 else 4 * w2 * r2
        return Sensitivity(2 * length, far)


@dataclass(frozen=True)
class FeatureNormsTransformation(InOneCell):
    """How many rows' features have a squared norm in each public bin.

    Guarantee: the counts move by at most the stated sensitivity.
    Sensitivity: add-remove L1 = L2 = 1; replace L1 = 2, L2 = sqrt 2.
    Proof: a row's squared norm is a whole number computed from that row alone, so the row stands in exactly
    one bin; the rest is that of counts.
    Cites: Dwork and Roth 2014, Section 3.3; Andrew et al. 2021 for clipping at a private quantile.
    """

    statistic: FeatureNorms

    @cached_property
    def row_sums(self) -> tuple[RowSum, ...]:
        """What is added up over rows."""
        edges = tuple(float(e) * FEATURE_STEPS**2 for e in self.statistic.edges)
        return (FeatureNormRows(lookups(self.statistic.maps, self.schema), edges),)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each part."""
        return ((len(self.statistic.edges) + 1,),)
