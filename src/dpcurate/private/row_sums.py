"""Sums over rows: every statistic starts from one of these integer vectors, added up row by row.

The value of a sum for a row depends on that row alone, never on the batch it is in, and integers add
up to the same total in any order, so all engines agree bit for bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcurate._typing import FloatArray, IntArray
from dpcurate.schema import GRID, MISSING_VALUE, Schema

Integers = IntArray

EXACT = 2.0**53
"""IntArray below this are exact in floating point, in whatever order they are added."""
SAFE = 1 - 1e-9
"""Norms are bounded a billionth low, which covers the rounding of the norm."""
GRADIENT_STEPS = 1 << 24
"""Integer steps of a gradient entry between 0 and the clip."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Encoded rows: a code per column, grid values of numeric columns, and how often each occurs."""

    codes: dict[str, NDArray[np.unsignedinteger]]
    values: dict[str, NDArray[np.int16]]
    weights: IntArray | None
    size: int

    @property
    def total(self) -> int:
        """Number of rows, repeated ones counted."""
        return self.size if self.weights is None else int(self.weights.sum())

    def part(self, start: int, stop: int) -> Rows:
        """Some of the rows."""
        cut = slice(start, stop)
        return Rows(
            {k: v[cut] for k, v in self.codes.items()},
            {k: v[cut] for k, v in self.values.items()},
            None if self.weights is None else self.weights[cut],
            max(0, min(stop, self.size) - start),
        )


def no_rows(schema: Schema) -> Rows:
    """A table of this schema without rows."""
    names = [column.name for column in schema.columns]
    return Rows({n: np.zeros(0, np.uint16) for n in names}, {n: np.zeros(0, np.int16) for n in names}, None, 0)


@dataclass(frozen=True, slots=True)
class CountRows:
    """The table of counts over the full domain of some columns."""

    columns: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def cells(self) -> int:
        """How many cells the table has."""
        return math.prod(self.sizes)

    def apply(self, rows: Rows) -> IntArray:
        """The sum over these rows."""
        if not self.columns:
            return np.array(rows.total, dtype=np.int64)
        keys = mixed_radix([rows.codes[c] for c in self.columns], self.sizes)
        counts = np.bincount(keys, weights=rows.weights, minlength=self.cells)  # exact below 2**53
        return counts.astype(np.int64, copy=False).reshape(self.sizes)


def mixed_radix(codes: list[NDArray[np.unsignedinteger]], sizes: tuple[int, ...]) -> NDArray[np.unsignedinteger]:
    """One integer per row for its combination of codes, in the smallest type that holds it."""
    cells = math.prod(sizes)
    width = np.uint8 if cells <= 2**8 else np.uint16 if cells <= 2**16 else np.uint32 if cells <= 2**32 else np.uint64
    kind: np.dtype[np.unsignedinteger] = np.dtype(width)
    key: NDArray[np.unsignedinteger] = codes[0].astype(kind)
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        np.multiply(key, kind.type(size), out=key)
        np.add(key, code.astype(kind, copy=False), out=key)
    return key


def scaled(rows: Rows, columns: tuple[str, ...], steps: tuple[int, ...]) -> list[FloatArray]:
    """Columns as integers from -steps to steps: grid values (0 for missing ones), or levels spread evenly."""
    return [
        _present(rows.values[column]).astype(np.float64)
        if column in rows.values
        else 2.0 * rows.codes[column].astype(np.float64) - step
        for column, step in zip(columns, steps, strict=True)
    ]


def _present(values: NDArray[np.int16]) -> NDArray[np.int16]:
    return np.where(values == MISSING_VALUE, np.int16(0), values)


@dataclass(frozen=True, slots=True)
class MomentRows:
    """The sum of y y^T, y = (1, x), with x as integers from -steps to steps.

    With `clip`, every row is first shrunk to norm `clip` and put on the grid of GRID steps,
    rounded toward zero so that its norm cannot grow.
    """

    columns: tuple[str, ...]
    steps: tuple[int, ...]
    clip: float | None

    def apply(self, rows: Rows) -> IntArray:
        """The sum over these rows."""
        d = len(self.columns)
        total = np.zeros((d + 1, d + 1), dtype=np.int64)
        largest = max(self.steps) if self.clip is None else GRID
        heaviest = 1 if rows.weights is None else int(rows.weights.max(initial=1))
        exact = int(EXACT) // (2 * largest * largest * heaviest)
        step = min(max(exact, 1), 1 << 18)
        for start in range(0, rows.size, step):
            # Floating point is exact as long as every partial sum is a small enough integer.
            kind = np.float64 if exact else np.int64
            total += self._part(rows.part(start, start + step), kind)
        return total

    def _part(self, rows: Rows, kind: type[np.float64] | type[np.int64]) -> IntArray:
        x = scaled(rows, self.columns, self.steps)
        if self.clip is not None:
            x = _clipped(x, self.steps, self.clip)
        y = np.column_stack([np.ones(rows.size), *x]).astype(kind, copy=False)
        weighted = y if rows.weights is None else y * rows.weights[:, None].astype(kind, copy=False)
        return (weighted.T @ y).astype(np.int64)


def _clipped(x: list[FloatArray], steps: tuple[int, ...], clip: float) -> list[FloatArray]:
    unit = [column / step for column, step in zip(x, steps, strict=True)]
    norm = np.sqrt(_sum([u * u for u in unit]))
    shrink = np.minimum(1.0, clip * SAFE / np.maximum(norm, 1e-200))
    return [np.trunc(u * shrink * GRID) for u in unit]


def _sum(terms: list[FloatArray]) -> FloatArray:
    """Add in a fixed order, so that a row's value cannot depend on its batch."""
    total = np.zeros_like(terms[0])
    for term in terms:
        total = total + term
    return total


@dataclass(frozen=True, slots=True)
class GradientRows:
    """The sum of the off-diagonal of -x (x - W^T x)^T, each row's matrix clipped to norm `clip`.

    Entries are in steps of clip / GRADIENT_STEPS, rounded toward zero.
    """

    columns: tuple[str, ...]
    steps: tuple[int, ...]
    weights: tuple[tuple[float, ...], ...]
    clip: float

    def apply(self, rows: Rows) -> IntArray:
        """The sum over these rows."""
        d = len(self.columns)
        total = np.zeros((d, d), dtype=np.int64)
        step = max(1, (1 << 22) // (d * d))
        for start in range(0, rows.size, step):
            total += self._part(rows.part(start, start + step))
        return total

    def _part(self, rows: Rows) -> IntArray:
        d = len(self.columns)
        x, rest, norm = _row_gradients(rows, self.columns, self.steps, self.weights)
        shrink = np.minimum(1.0, self.clip * SAFE / np.maximum(norm, 1e-200))
        factor = -shrink * (GRADIENT_STEPS / self.clip)
        count = np.ones(rows.size, dtype=np.int64) if rows.weights is None else rows.weights
        total = np.zeros((d, d), dtype=np.int64)
        for i in range(d):
            for j in range(d):
                if i != j:
                    total[i, j] = int((np.trunc(x[i] * rest[j] * factor).astype(np.int64) * count).sum())
        return total


@dataclass(frozen=True, slots=True)
class NormRows:
    """How many rows have a gradient matrix with a norm in each bin."""

    columns: tuple[str, ...]
    steps: tuple[int, ...]
    weights: tuple[tuple[float, ...], ...]
    edges: tuple[float, ...]

    def apply(self, rows: Rows) -> IntArray:
        """The sum over these rows."""
        *_, norm = _row_gradients(rows, self.columns, self.steps, self.weights)
        bins = np.searchsorted(np.array(self.edges), norm, side="right")
        counts = np.bincount(bins, weights=rows.weights, minlength=len(self.edges) + 1)
        return counts.astype(np.int64, copy=False)


def _row_gradients(
    rows: Rows, columns: tuple[str, ...], steps: tuple[int, ...], weights: tuple[tuple[float, ...], ...]
) -> tuple[list[FloatArray], list[FloatArray], FloatArray]:
    """Each row's x, its rest x - W^T x, and the norm of the off-diagonal of -x rest^T."""
    d, w = len(columns), np.array(weights)
    x = [u / s for u, s in zip(scaled(rows, columns, steps), steps, strict=True)]
    rest = [x[j] - _sum([x[k] * w[k, j] for k in range(d)]) for j in range(d)]
    size = _sum([_sum([(x[i] * rest[j]) ** 2 for j in range(d) if j != i]) for i in range(d)])
    return x, rest, np.sqrt(size)


@dataclass(frozen=True, slots=True)
class IntervalRows:
    """How many rows hold a number in each of equal intervals of its range; last, if wanted, how many hold none."""

    column: str
    intervals: int
    missing: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return (self.column,)

    @property
    def cells(self) -> int:
        """How many cells the table has."""
        return self.intervals + self.missing

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape of the table."""
        return (self.cells,)

    def apply(self, rows: Rows) -> IntArray:
        """The sum over these rows."""
        place = interval(rows.values[self.column], self.intervals)
        counts = np.bincount(place, weights=rows.weights, minlength=self.cells)
        return counts.astype(np.int64, copy=False)


def interval(values: NDArray[np.int16], intervals: int) -> IntArray:
    """The interval of each grid value; a missing one, just below the grid, comes after the last."""
    place = (values.astype(np.int64) + GRID) * intervals // (2 * GRID + 1)
    return np.where(place < 0, intervals, place)


@dataclass(frozen=True, slots=True)
class Lookup:
    """The features of a column: the vector of each place. `intervals` is 0 for a column of levels."""

    column: str
    intervals: int
    vectors: tuple[tuple[int, ...], ...]

    def features(self, rows: Rows) -> list[FloatArray]:
        """One array a feature, whole numbers."""
        column = self.column
        place = interval(rows.values[column], self.intervals) if self.intervals else rows.codes[column]
        return [feature[place] for feature in np.array(self.vectors, dtype=np.float64).T]


@dataclass(frozen=True, slots=True)
class FeatureRows:
    """The sum of y y^T, y = (1, z), z the features in FEATURE_STEPS, each row shrunk to norm `clip` (in steps).

    Rounded toward zero, so that no norm can grow.
    """

    lookups: tuple[Lookup, ...]
    clip: float

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(lookup.column for lookup in self.lookups)

    @property
    def size(self) -> int:
        """How many features a row has."""
        return sum(len(lookup.vectors[0]) for lookup in self.lookups)

    def apply(self, rows: Rows) -> IntArray:
        """The sum over these rows."""
        total = np.zeros((self.size + 1, self.size + 1), dtype=np.int64)
        heaviest = 1 if rows.weights is None else int(rows.weights.max(initial=1))
        largest = min(self.clip, float(max(abs(x) for one in self.lookups for v in one.vectors for x in v)))
        exact = int(EXACT / (2 * max(largest, 1.0) ** 2 * heaviest))
        step = min(max(exact, 1), _rows_at_once(self.size))
        for start in range(0, rows.size, step):
            total += self._part(rows.part(start, start + step), np.float64 if exact else np.int64)
        return total

    def _part(self, rows: Rows, kind: type[np.float64] | type[np.int64]) -> IntArray:
        z, norm2 = _features(self.lookups, rows)
        shrink = np.minimum(1.0, self.clip * SAFE / np.sqrt(np.maximum(norm2, 1.0)))
        y = np.column_stack([np.ones(rows.size), *(np.trunc(u * shrink) for u in z)]).astype(kind, copy=False)
        weighted = y if rows.weights is None else y * rows.weights[:, None].astype(kind, copy=False)
        return (weighted.T @ y).astype(np.int64)


@dataclass(frozen=True, slots=True)
class FeatureNormRows:
    """How many rows have features with a squared norm (in steps) in each bin."""

    lookups: tuple[Lookup, ...]
    edges: tuple[float, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(lookup.column for lookup in self.lookups)

    def apply(self, rows: Rows) -> IntArray:
        """The sum over these rows."""
        total = np.zeros(len(self.edges) + 1, dtype=np.int64)
        step = _rows_at_once(sum(len(lookup.vectors[0]) for lookup in self.lookups))
        for start in range(0, rows.size, step):
            part = rows.part(start, start + step)
            bins = np.searchsorted(np.array(self.edges), _features(self.lookups, part)[1], side="right")
            total += np.bincount(bins, weights=part.weights, minlength=len(total)).astype(np.int64)
        return total


def _rows_at_once(features: int) -> int:
    """Rows whose features are held at a time: about 32 MB of them."""
    return max(1024, (1 << 22) // (features + 1))


def _features(lookups: tuple[Lookup, ...], rows: Rows) -> tuple[list[FloatArray], FloatArray]:
    """The features of every row, and their squared norm: whole numbers, exact."""
    z = [feature for lookup in lookups for feature in lookup.features(rows)]
    return z, _sum([u * u for u in z])


Counted = CountRows | IntervalRows
"""A row stands in one cell, so that a key a row says it all."""
RowSum = Counted | MomentRows | GradientRows | NormRows | FeatureRows | FeatureNormRows
