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

from dpcurate._typing import FloatArray
from dpcurate.learn.measure_once.blocks import Columns, helmert, kron, sorted_set
from dpcurate.learn.measure_once.central_moments import Margin, Released

SPREAD = 1.0
"""How far from its margin a column may well lie in a row of its table, before anything is seen of that row."""
SETTLING = 3
ROUNDS = 30
CLOSE = 1e-6
"""Rounds at most that lift negative entries to zero, and a change of probabilities that needs no further one."""
SMALLEST = 1e-9


@dataclass(frozen=True, slots=True)
class FittedFamily:
    """A column's probabilities in each combination of its parents, and draws of what they might as well be."""

    table: FloatArray
    """(combinations of parents, levels), the last parent changing fastest."""
    draws: FloatArray
    """(draws, combinations, levels): with errors of sampling and noise, at the parents' shares of each draw."""

    @property
    def errors(self) -> FloatArray:
        """Standard errors of the table."""
        return np.asarray(np.sqrt(((self.draws - self.table) ** 2).mean(axis=0)))


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
    for _ in range(SETTLING):  # sampling errors are those of the table, which is not known at first
        solution = _solved(seen, margin, shares.values, free)
        free = solution.table
    errors = np.einsum("clp,np->ncl", solution.by_shares, shares.apart)
    errors += np.einsum("cld,nd->ncl", solution.root, normals[:, : solution.root.shape[2]])
    table = _bounded(free[None], solution.root)
    return FittedFamily(table[0], _bounded(table + errors, solution.root))


def _bounded(tables: FloatArray, root: FloatArray) -> FloatArray:
    """The likeliest tables without negative entries, each in place of one that has some (Hildreth 1957).

    An entry that is lifted to zero takes others along, as their errors go together.
    """
    flat, errors = tables.reshape(len(tables), -1).copy(), root.reshape(-1, root.shape[2])
    covariance = errors @ errors.T
    lifted = np.zeros_like(flat)
    below = np.flatnonzero((flat < 0).any(axis=0))
    for _ in range(ROUNDS):
        before = flat.copy()
        for i in below:
            wanted = np.maximum(lifted[:, i] - flat[:, i] / max(covariance[i, i], SMALLEST**2), 0.0)
            flat += np.outer(wanted - lifted[:, i], covariance[i])
            lifted[:, i] = wanted
        below = np.flatnonzero((flat < 0).any(axis=0) | (lifted > 0).any(axis=0))
        if np.abs(flat - before).max() < CLOSE:
            break
    lowest = np.maximum(flat, 0.0).reshape(tables.shape)
    return np.asarray(lowest / lowest.sum(axis=2, keepdims=True))


def _solved(seen: _Seen, margin: FloatArray, shares: FloatArray, before: FloatArray) -> _Solution:
    """Least squares; every row adds up to one, whatever its entries."""
    levels, rows = len(margin), len(shares)
    turn = np.einsum("cd,lk->cldk", np.eye(rows), helmert(levels)).reshape(rows, levels, -1)
    weights = seen.weights((_likely(seen, shares, before) * shares[:, None]).ravel())
    design = seen.design @ (turn * shares[:, None, None]).reshape(rows * levels, -1)
    covariance = np.linalg.inv(np.eye(turn.shape[2]) / SPREAD**2 + design.T @ weights @ design)
    gain = turn @ (covariance @ design.T @ weights)
    table = margin + gain @ (seen.values - seen.design @ np.outer(shares, margin).ravel())
    by_share = (seen.design.reshape(-1, rows, levels) * table).sum(axis=2)
    return _Solution(table, turn @ np.linalg.cholesky((covariance + covariance.T) / 2), -gain @ by_share)


def _likely(seen: _Seen, shares: FloatArray, table: FloatArray) -> FloatArray:
    """A table with one row more of every level, where sampling errors are taken: what was never seen is not sure."""
    rows = seen.rows * shares[:, None]
    table = np.clip(table, 0.0, 1.0)
    return np.asarray((rows * table / table.sum(axis=1, keepdims=True) + 1) / (rows + table.shape[1]))


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
