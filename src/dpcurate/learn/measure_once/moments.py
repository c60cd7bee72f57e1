"""What was released, and the central moments it implies, with and without their noise.

All of it is post-processing of answers, as frozen values: a new answer makes a new value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpcurate.arrays import FloatArray
from dpcurate.learn.measure_once.blocks import Columns, helmert, rotate, sorted_set

Answers = Mapping[Columns, tuple[FloatArray, float]]
"""For each set its noised contrast, a sum over rows, and the noise's standard deviation."""
FEWEST_ROWS = 1.0
"""A noised count may be zero or negative."""
FEWEST_OF_LEVEL = 2.0
"""No level is taken to be rarer than so many rows, however its noise fell."""


@dataclass(frozen=True, slots=True)
class Released:
    """Noised contrasts in orthonormal coordinates, answers to the same set merged."""

    levels: tuple[int, ...]
    sums: Mapping[Columns, FloatArray]
    variances: Mapping[Columns, float]
    """Noise variance of a coordinate of a sum."""

    @property
    def rows(self) -> float:
        """The noised row count, kept positive."""
        return max(float(self.sums[()]), FEWEST_ROWS)

    @classmethod
    def nothing(cls, levels: Sequence[int]) -> Released:
        """Before anything is asked."""
        return cls(tuple(levels), {}, {})

    def merged(self, answers: Answers) -> Released:
        """With a further release; two answers to one set become their inverse-variance mean."""
        sums, variances = dict(self.sums), dict(self.variances)
        for columns, (table, scale) in answers.items():
            total = rotate(np.asarray(table, float), [helmert(self.levels[a]) for a in columns])
            variance = scale * scale
            if columns in sums:
                before = variances[columns]
                total = (sums[columns] * variance + total * before) / (variance + before)
                variance = variance * before / (variance + before)
            sums[columns], variances[columns] = total, variance
        return Released(self.levels, sums, variances)


@dataclass(frozen=True, slots=True)
class Margin:
    """One column as released: the distribution of its levels and what follows from it."""

    basis: FloatArray
    probabilities: FloatArray
    mean: FloatArray
    covariance: FloatArray
    variances: FloatArray
    axes: FloatArray
    """Columns of `axes`: the directions in which the coordinates are uncorrelated, of these variances."""
    noise: float
    """Noise variance of a coordinate of the mean."""

    @classmethod
    def of(cls, released: Released, column: int) -> Margin:
        """What the row count and a column's own contrast say."""
        levels, rows = released.levels[column], released.rows
        noise = released.variances[column,] / rows**2
        basis = helmert(levels)
        p = 1 / levels + basis @ released.sums[column,] / rows
        p = np.maximum(p, FEWEST_OF_LEVEL / rows)
        p /= p.sum()
        mean = basis.T @ p
        covariance = basis.T @ (p[:, None] * basis) - np.outer(mean, mean)
        return cls(basis, p, mean, covariance, *np.linalg.eigh(covariance), noise)


@dataclass(frozen=True, slots=True)
class Block:
    """The central moment of a set of two columns or more."""

    observed: FloatArray
    denoised: FloatArray
    noise: float
    """Noise variance of a coordinate of what was observed."""


@dataclass(frozen=True, slots=True)
class CentralMoments:
    """What the released sums say of the columns, per row."""

    levels: tuple[int, ...]
    rows: float
    count_noise: float
    """Noise variance of the row count, relative to it."""
    margins: tuple[Margin, ...]
    blocks: Mapping[Columns, Block]

    @classmethod
    def of(cls, released: Released) -> CentralMoments:
        """Smaller sets first: the moment of a triple is centred with those of its pairs."""
        rows = released.rows
        margins = tuple(Margin.of(released, a) for a in range(len(released.levels)))
        blocks: dict[Columns, Block] = {}
        for columns in sorted((u for u in released.sums if len(u) >= 2), key=len):
            members = [margins[a] for a in columns]
            observed = released.sums[columns] / rows - _implied(columns, members, blocks)
            noise = released.variances[columns] / rows**2
            denoised = _denoised(observed, noise, members, rows)
            blocks[columns] = Block(observed, denoised, noise)
        return cls(released.levels, rows, released.variances[()] / rows**2, margins, blocks)

    def pair(self, a: int, b: int) -> FloatArray:
        """The observed central moment of two columns, a by b."""
        return self.blocks[a, b].observed if a < b else self.blocks[b, a].observed.T

    def noise(self, *columns: int) -> float:
        """Noise variance of the central moment of a set in any order."""
        return self.blocks[sorted_set(*columns)].noise

    def measured(self, *columns: int) -> bool:
        """Whether the contrast of a set was released."""
        return sorted_set(*columns) in self.blocks


def _implied(columns: Columns, members: list[Margin], blocks: Mapping[Columns, Block]) -> FloatArray:
    """The raw moment of a set if its own central moment were zero.

    E[x y z] = the sum over proper subsets of a central moment times the means of the others.
    """
    total = _times_means(np.array(1.0), (), members)
    for size in range(2, len(columns)):  # a single central moment is zero
        for places in combinations(range(len(columns)), size):
            subset = tuple(columns[i] for i in places)
            if subset in blocks:  # what was not released is taken to be zero
                total = total + _times_means(blocks[subset].denoised, places, members)
    return total


def _times_means(moment: FloatArray, places: Columns, members: list[Margin]) -> FloatArray:
    """The central moment of the members at `places` times the means of the others."""
    others = [i for i in range(len(members)) if i not in places]
    for i in others:
        moment = np.multiply.outer(moment, members[i].mean)
    return np.moveaxis(moment, range(len(members)), [*places, *others])


def _denoised(observed: FloatArray, noise: float, members: list[Margin], rows: float) -> FloatArray:
    """Wiener filter in the coordinates in which every column is uncorrelated and of variance 1."""
    scaled, scale = observed, np.array(1.0)
    for margin in members:
        scaled = np.tensordot(scaled, margin.axes, (0, 0))
        scale = np.multiply.outer(scale, np.sqrt(margin.variances))
    scaled = scaled / scale
    kept = scaled * signal_share(scaled, noise / scale**2 + 1 / rows) * scale
    for margin in members:
        kept = np.tensordot(kept, margin.axes, (0, 1))
    return np.asarray(kept)


def signal_share(values: FloatArray, variance: FloatArray) -> FloatArray:
    """How much of each value is signal, the signal's variance being estimated from all of them by its moments."""
    signal = 0.0
    for _ in range(8):
        weight = 1 / (variance + signal) ** 2
        signal = max(0.0, float(((values * values - variance) * weight).sum() / weight.sum()))
    return signal / (signal + variance)
