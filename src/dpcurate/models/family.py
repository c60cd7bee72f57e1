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
    """A column's probabilities in each combination of its parents, and draws of what they might as well be."""

    table: FloatArray
    """(combinations of parents, levels), the last parent changing fastest."""
    free: FloatArray
    """The same without bounds: entries may lie below 0 or above 1, and are right on average."""
    draws: FloatArray
    """(draws, combinations, levels): `free` with errors of sampling and noise, at the parents' shares of each draw."""

    @property
    def errors(self) -> FloatArray:
        """Standard errors of the table."""
        return np.asarray(self.draws.std(axis=0))


@dataclass(frozen=True, slots=True)
class Shares:
    """How often each combination of parents occurs in the model so far, and in draws of it."""

    values: FloatArray
    apart: FloatArray
    """(draws, combinations): how far each draw lies from the mean of all."""

    @classmethod
    def of(cls, values: FloatArray, draws: FloatArray) -> Shares:
        """From the model so far and from draws of it, (draws, combinations)."""
        return cls(np.maximum(values.ravel(), SMALLEST), draws - draws.mean(axis=0))


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was released of a family, per row, in orthonormal coordinates of its joint table."""

    design: FloatArray
    """From cells to the coordinates that were released."""
    values: FloatArray
    noise: FloatArray
    count_noise: float
    rows: float

    def weights(self, cells: FloatArray) -> FloatArray:
        """The inverse covariance of the coordinates, sampling taken at these cells."""
        mean = self.design @ cells
        sampling = ((self.design * cells) @ self.design.T - np.outer(mean, mean)) / self.rows
        total = np.diag(self.noise + SMALLEST / self.rows) + sampling
        total += self.count_noise * np.outer(self.values, self.values)  # the count divides every sum
        return np.asarray(np.linalg.inv(total))


@dataclass(frozen=True, slots=True)
class _Solution:
    table: FloatArray
    root: FloatArray
    """(combinations, levels, directions): the table's errors are this times independent normal numbers."""
    by_shares: FloatArray
    """(combinations, levels, combinations): how the table moves with the parents' shares."""


def fit_family(released: Released, parents: Columns, column: int, shares: Shares, normals: FloatArray) -> FittedFamily:
    """The table of a column given its parents, whose combinations have these shares in the model so far.

    Draws are made of these normal numbers, (draws, cells).
    """
    seen = _seen(released, (*parents, column))
    margin = Margin.of(released, column).probabilities
    free = np.tile(margin, (len(shares.values), 1))
    nowhere = np.zeros(free.shape, dtype=np.bool_)
    for _ in range(SETTLING):  # sampling errors are those of the table, which is not known at first
        solution = _solved(seen, margin, shares.values, free, nowhere)
        free = solution.table
    draws = free + np.einsum("clp,np->ncl", solution.by_shares, shares.apart)
    draws += np.einsum("cld,nd->ncl", solution.root, normals[:, : solution.root.shape[2]])
    return FittedFamily(_bounded(seen, margin, shares.values, free), free, draws)


def _bounded(seen: _Seen, margin: FloatArray, shares: FloatArray, table: FloatArray) -> FloatArray:
    """The best table without negative entries: those that come out negative are zero, and the others solved again."""
    zero = table < 0
    for _ in range(ROUNDS):
        if not (table < 0).any():
            break
        zero = zero | (table < 0)
        table = _solved(seen, margin, shares, table, zero).table
    table = np.maximum(table, 0.0)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def _solved(seen: _Seen, margin: FloatArray, shares: FloatArray, before: FloatArray, zero: BoolArray) -> _Solution:
    """Least squares with these entries at zero."""
    offsets, bases = zip(*(_row(margin, fixed) for fixed in zero), strict=True)
    ends = np.cumsum([0, *(basis.shape[1] for basis in bases)])
    start: FloatArray = np.array(offsets)
    size = int(ends[-1])
    turn = np.zeros((*start.shape, size))
    for row, basis in enumerate(bases):
        turn[row, :, ends[row] : ends[row + 1]] = basis
    weights = seen.weights((_likely(seen, shares, before) * shares[:, None]).ravel())
    design = seen.design @ (turn * shares[:, None, None]).reshape(start.size, size)
    covariance = np.linalg.inv(np.eye(size) / SPREAD**2 + design.T @ weights @ design)
    gain = turn @ (covariance @ design.T @ weights)
    table = start + gain @ (seen.values - seen.design @ (start * shares[:, None]).ravel())
    by_share = (seen.design.reshape(-1, *start.shape) * table).sum(axis=2)
    return _Solution(table, turn @ np.linalg.cholesky((covariance + covariance.T) / 2), -gain @ by_share)


def _likely(seen: _Seen, shares: FloatArray, table: FloatArray) -> FloatArray:
    """A table with one row more of every level, where sampling errors are taken: what was never seen is not sure."""
    rows = seen.rows * shares[:, None]
    table = np.clip(table, 0.0, 1.0)
    return np.asarray((rows * table / table.sum(axis=1, keepdims=True) + 1) / (rows + table.shape[1]))


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
