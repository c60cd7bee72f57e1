"""Effects of columns with levels, from the table of cause, outcome and adjustment set where it was released whole.

With nothing to adjust for the table is a pair. A sum of effects of single columns, which pairs alone would give, is
not what an adjustment needs unless nothing interacts, and pairs do not tell whether anything does.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from dpcurate._typing import BoolArray, FloatArray
from dpcurate.effects.effect import INTERVAL_ERRORS, Effect, EffectQuestion, EffectTable, IfSet
from dpcurate.graphs.adjustment import Adjustment
from dpcurate.learn.measure_once.blocks import Columns, helmert, sorted_set, subsets
from dpcurate.learn.measure_once.central_moments import Released
from dpcurate.schema import Schema

MOST_CELLS = 20_000
"""The largest table that is put together."""
FEWEST_EXPECTED = 0.5
"""A cell is taken to vary at least as much as if so many rows were expected in it."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisedCounts:
    """Noised counts, and the noise variance of each coordinate of them.

    A count is 1/r plus contrasts along every axis: `noise` has the table's shape, the first place of an axis standing
    for the mean over its levels and the others for its contrasts.
    """

    counts: FloatArray
    noise: FloatArray

    @classmethod
    def of(cls, released: Released, columns: Columns) -> NoisedCounts | None:
        """The table of these columns, axes in this order; None unless the contrasts of all their subsets are there."""
        sizes = [released.levels[a] for a in columns]
        sets = ((), *subsets(sorted_set(*columns)))
        if prod(sizes) > MOST_CELLS or any(u not in released.sums for u in sets):
            return None
        coordinates, noise = np.zeros(sizes), np.zeros(sizes)
        for u in sets:
            place = tuple(slice(1, None) if a in u else 0 for a in columns)
            coordinates[place] = np.transpose(released.sums[u], np.argsort(np.argsort([a for a in columns if a in u])))
            noise[place] = released.variances[u]
        return cls(_along_axes(coordinates, [_back(size) for size in sizes]), noise)

    def covariance(self, gradients: FloatArray) -> FloatArray:
        """The covariance of functions of the counts, by their gradients there: sampling (Poisson) and privacy noise."""
        flat = gradients.reshape(len(gradients), -1)
        sampled = (flat * np.maximum(self.counts, FEWEST_EXPECTED).ravel()) @ flat.T
        return np.asarray(sampled + self.noise_of(gradients))

    def noise_of(self, gradients: FloatArray) -> FloatArray:
        """The part of the covariance that is privacy noise."""
        turned = [_along_axes(one, [_back(size).T for size in self.counts.shape]) for one in gradients]
        flat = np.array(turned).reshape(len(gradients), -1)
        return np.asarray((flat * self.noise.ravel()) @ flat.T)

    def noise_of_margin(self, axes: int) -> FloatArray:
        """The noise variance of the counts of the first `axes` columns, summed over the others."""
        sizes = self.counts.shape
        own = self.noise[
            (slice(None),) * axes + (0,) * (len(sizes) - axes)
        ]  # summing leaves the mean, times its levels
        return _along_axes(own, [_back(size) ** 2 for size in sizes[:axes]])


def _back(levels: int) -> FloatArray:
    """From a sum and contrasts to counts."""
    return np.column_stack([np.full(levels, 1 / levels), helmert(levels)])


def _along_axes(table: FloatArray, matrices: list[FloatArray]) -> FloatArray:
    for matrix in matrices:  # each pass eats the first axis and appends its image
        table = np.tensordot(table, matrix, (0, 1))
    return np.asarray(table)


CLEAR_STRATUM = 7.0
"""A stratum counts if its rows with a level of the cause exceed so many standard deviations of their noise."""
FEWEST_ROWS = 10.0
"""And if there are at least so many."""
MOST_UNSEEN = 0.5
"""Beyond this share of rows in strata that do not count for a level of the cause, nothing is said."""


def standardised(table: NoisedCounts) -> IfSet | None:
    """From a table whose first axes are the cause and the outcome; None where too much of it is hidden by noise.

    What cannot be seen of P(outcome | cause, stratum) lies between 0 and 1, and widens the interval by as much.
    """
    causes, outcomes = table.counts.shape[:2]
    counts = table.counts.reshape(causes, outcomes, -1)
    with_cause = counts.sum(axis=1)
    seen = _seen(table, with_cause)
    shares = counts.sum(axis=(0, 1)) / counts.sum()
    unseen = np.where(seen, 0.0, np.maximum(shares, 0.0)).sum(axis=1)
    if (unseen > MOST_UNSEEN).any() or counts.sum() <= 0:
        return None
    conditional = np.where(seen[:, None], counts / np.where(seen, with_cause, 1.0)[:, None], 0.0)
    weights = np.where(seen, shares, 0.0)
    total = weights.sum(axis=1)  # one level of the cause may be seen in more strata than another
    values = np.einsum("xyz,xz->xy", conditional, weights) / total[:, None]
    covariances = np.stack(
        [table.covariance(_gradients(table, conditional, weights, seen, values, j)) for j in range(outcomes)]
    )
    furthest = np.maximum(values, 1 - values).clip(0, 1) * unseen[:, None] / INTERVAL_ERRORS
    return IfSet(values, covariances + np.einsum("xy,xw->yxw", furthest**2, np.eye(causes)))


def _seen(table: NoisedCounts, with_cause: FloatArray) -> BoolArray:
    """For each level of the cause, the strata in which its rows stand out of the noise."""
    order = (0, *range(2, table.counts.ndim), 1)
    turned = NoisedCounts(np.transpose(table.counts, order), np.transpose(table.noise, order))
    noise = turned.noise_of_margin(table.counts.ndim - 1).reshape(with_cause.shape)
    return np.asarray((with_cause > CLEAR_STRATUM * np.sqrt(noise)) & (with_cause >= FEWEST_ROWS))


def _gradients(
    table: NoisedCounts, conditional: FloatArray, weights: FloatArray, seen: BoolArray, values: FloatArray, j: int
) -> FloatArray:
    """Of P(outcome = j | do(cause)) for every level of the cause, by each count.

    A count moves the share of its stratum, and, in the rows of its own level of the cause, the conditional.
    """
    causes, outcomes, strata = conditional.shape
    counts = table.counts.reshape(conditional.shape)
    rows, with_cause = counts.sum(), counts.sum(axis=1)
    total = weights.sum(axis=1)
    shares = np.where(seen, (conditional[:, j] - values[:, [j]]) / rows / total[:, None], 0.0)
    gradients = np.broadcast_to(shares[:, None, None], (causes, causes, outcomes, strata)).copy()
    own = weights / np.where(seen, with_cause, 1.0) / total[:, None]
    for x in range(causes):
        gradients[x, x] -= own[x] * conditional[x, j]
        gradients[x, x, j] += own[x]
    return gradients.reshape(causes, *table.counts.shape)


@dataclass(frozen=True, slots=True)
class FromContrasts:
    """From contrasts of levels."""

    released: Released
    schema: Schema

    def estimate(self, asked: EffectQuestion, possible: Adjustment) -> Effect:
        """Of the sets whose table was released the one of the smallest error."""
        tried = [self._adjusted(asked, given) for given in possible.sets]
        known = [effect for effect in tried if effect.error is not None]
        return min(known, key=_total_error) if known else tried[-1]

    def _adjusted(self, asked: EffectQuestion, given: tuple[str, ...]) -> Effect:
        names = (asked.cause, asked.outcome, *given)
        counts = NoisedCounts.of(self.released, tuple(self.schema.names.index(name) for name in names))
        if counts is None:
            return asked.undetermined(f"the table of {', '.join(names)} was not bought", given)
        found = standardised(counts)
        if found is None:
            return asked.undetermined(f"the table of {', '.join(names)} has too few rows for its noise", given)
        cause, outcome = self.schema[asked.cause], self.schema[asked.outcome]
        table = EffectTable(cause.levels, outcome.levels, found.values, found.covariances)
        return Effect.of_levels(
            asked.cause,
            asked.outcome,
            table,
            adjusted_for=given,
            to=asked.to,
            instead_of=asked.instead_of,
            level=asked.level,
        )


def _total_error(effect: Effect) -> float:
    """Of all entries: the one that is asked for should not choose its own set."""
    return float("inf") if effect.table is None else float((effect.table.errors**2).sum())
