"""A table of counts put together again from released contrasts, with the noise of anything linear in it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.learn.measure_once.blocks import Columns, helmert, sorted_set, subsets
from dpcurate.learn.measure_once.moments import Released

MOST_CELLS = 20_000
"""The largest table that is put together."""
FEWEST = 0.5
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
        sampled = (flat * np.maximum(self.counts, FEWEST).ravel()) @ flat.T
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
