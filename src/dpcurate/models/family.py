"""The conditional table of a column given its parents, from noised contrasts of them.

The contrasts of a family are linear in its joint table, and their errors, noise and sampling, are nearly normal. So the
table is estimated like a regression: weighted least squares with the covariance of what was released, the parents'
distribution being taken from the model so far, and rows of the table drawn towards the column's margin where parents
were hardly seen. No entry is negative and every row adds up to one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, reduce
from itertools import combinations
from math import prod, sqrt

import numpy as np

from dpcurate.arrays import BoolArray, FloatArray
from dpcurate.learn.measure_once.blocks import Columns, helmert, kron, sorted_set
from dpcurate.learn.measure_once.moments import Margin, Released

SPREAD = 1.0
"""How far from its margin a column may well lie in a row of its table, before anything is seen of that row."""
SETTLING = 3
ROUNDS = 12
"""Solutions at most, each with the entries at zero that came out negative before."""
SMALLEST = 1e-9


@dataclass(frozen=True, slots=True)
class FittedFamily:
    """A column's probabilities in each combination of its parents, and a root of their covariance."""

    table: FloatArray
    """(combinations of parents, levels), the last parent changing fastest."""
    free: FloatArray
    """The same without bounds: entries may lie below 0 or above 1, and are right on average."""
    root: FloatArray
    """(combinations, levels, directions): the errors of `free` are this times independent normal numbers."""

    @property
    def errors(self) -> FloatArray:
        """Standard errors of the table."""
        return np.asarray(np.sqrt((self.root**2).sum(axis=2)))


@dataclass(frozen=True, slots=True)
class Shares:
    """How often each combination of parents occurs in the model so far, and a root of the covariance of that."""

    values: FloatArray
    root: FloatArray

    @classmethod
    def of(cls, values: FloatArray, draws: FloatArray) -> Shares:
        """From the model so far and from draws of it, (draws, combinations)."""
        apart = (draws - draws.mean(axis=0)).T / sqrt(max(len(draws) - 1, 1))
        return cls(np.maximum(values.ravel(), SMALLEST), apart)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was released of a family, per row, in orthonormal coordinates of its joint table."""

    design: FloatArray
    """From cells to the coordinates that were released."""
    values: FloatArray
    noise: FloatArray
    count_noise: float
    rows: float

    def weights(self, table: FloatArray, parents: Shares) -> FloatArray:
        """The inverse covariance of the coordinates, sampling and the parents' shares taken at this table."""
        cells = (table * parents.values[:, None]).ravel()
        mean = self.design @ cells
        sampling = ((self.design * cells) @ self.design.T - np.outer(mean, mean)) / self.rows
        total = np.diag(self.noise + SMALLEST / self.rows) + sampling
        by_share = self.design.reshape(len(mean), *table.shape) * table
        moved = by_share.sum(axis=2) @ parents.root
        total += moved @ moved.T
        total += self.count_noise * np.outer(self.values, self.values)  # the count divides every sum
        return np.asarray(np.linalg.inv(total))


def fit_family(released: Released, parents: Columns, column: int, shares: Shares) -> FittedFamily:
    """The table of a column given its parents, whose combinations have these shares in the model so far."""
    seen = _seen(released, (*parents, column))
    margin = Margin.of(released, column).probabilities
    free = np.tile(margin, (len(shares.values), 1))
    nowhere = np.zeros(free.shape, dtype=np.bool_)
    for _ in range(SETTLING):  # sampling errors are those of the table, which is not known at first
        free, root = _solved(seen, margin, shares, free, nowhere)
    table, zero = free, nowhere
    for _ in range(ROUNDS):
        if not (table < 0).any():
            break
        zero = zero | (table < 0)
        table, _ = _solved(seen, margin, shares, table, zero)
    table = np.maximum(table, 0.0)
    return FittedFamily(table / table.sum(axis=1, keepdims=True), free, root)


def _solved(
    seen: _Seen, margin: FloatArray, parents: Shares, before: FloatArray, zero: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Least squares with these entries at zero, and a root of its covariance."""
    offsets, bases = zip(*(_row(margin, fixed) for fixed in zero), strict=True)
    ends = np.cumsum([0, *(basis.shape[1] for basis in bases)])
    levels, size = len(margin), int(ends[-1])
    start, shares = np.array(offsets), parents.values
    if not size:
        return start, np.zeros((*start.shape, 0))
    turn = np.zeros((len(shares), levels, size))
    precision = np.zeros((size, size))
    for row, basis in enumerate(bases):
        at = slice(ends[row], ends[row + 1])
        turn[row, :, at] = basis
        precision[at, at] = basis.T @ basis / SPREAD**2
    by_cell = (turn * shares[:, None, None]).reshape(-1, size)
    floor = np.clip(before, 0.5 / (seen.rows * np.maximum(shares, 1 / seen.rows))[:, None], 1.0)
    weights = seen.weights(floor / floor.sum(axis=1, keepdims=True), parents)
    design = seen.design @ by_cell
    left = seen.values - seen.design @ (start * shares[:, None]).ravel()
    precision += design.T @ weights @ design
    covariance = np.linalg.inv(precision)
    moved = covariance @ (design.T @ (weights @ left))
    root = turn @ np.linalg.cholesky((covariance + covariance.T) / 2)
    return start + turn @ moved, root


def _row(margin: FloatArray, zero: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Where a row starts, and the directions it may move in: those that keep its sum, and these entries at zero."""
    free = np.flatnonzero(~zero)
    start = np.where(zero, 0.0, margin)
    basis = np.zeros((len(margin), len(free) - 1))
    basis[free] = helmert(len(free))
    return start / start.sum(), basis


def _seen(released: Released, family: Columns) -> _Seen:
    sizes, rows = [released.levels[a] for a in family], released.rows
    values, noise = np.zeros(sizes), np.full(sizes, np.inf)
    for places in (some for size in range(1, len(family) + 1) for some in combinations(range(len(family)), size)):
        columns = [family[i] for i in places]
        key = sorted_set(*columns)
        if key in released.sums:
            at = tuple(slice(1, None) if i in places else 0 for i in range(len(family)))
            others = prod(size for i, size in enumerate(sizes) if i not in places)
            values[at] = np.transpose(released.sums[key], [key.index(a) for a in columns]) / sqrt(others) / rows
            noise[at] = released.variances[key] / others / rows**2
    known = np.isfinite(noise).ravel()
    whole = reduce(kron, [_with_constant(size).T for size in sizes])
    count = released.variances[()] / rows**2
    return _Seen(whole[known], values.ravel()[known], noise.ravel()[known], count, rows)


@cache
def _with_constant(levels: int) -> FloatArray:
    return np.column_stack([np.full(levels, 1 / sqrt(levels)), helmert(levels)])


def drawn(family: FittedFamily, normals: FloatArray) -> FloatArray:
    """The table as it might as well be, without bounds: with errors of these normal numbers, (draws, directions)."""
    return np.asarray(family.free + np.einsum("cld,nd->ncl", family.root, normals))
