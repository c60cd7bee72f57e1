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
    offset: FloatArray
    """How far the mean lies from where pairs were centred: a margin's noise moves a pair by so much."""
    shape: FloatArray
    """A covariance: the noise of a pair has that of both its columns, times one variance."""
    root: FloatArray
    """A root of the shape, R R'."""

    @classmethod
    def of(cls, released: Released, column: int) -> Margin:
        """What the row count and a column's own contrast say; pairs are contrasts, too."""
        levels, rows = released.levels[column], released.rows
        noise = released.variances[column,] / rows**2
        basis = helmert(levels)
        p = 1 / levels + basis @ released.sums[column,] / rows
        p = np.maximum(p, FEWEST_OF_LEVEL / rows)
        p /= p.sum()
        return cls.at(basis, p, noise, basis.T @ p, np.eye(levels - 1))

    @classmethod
    def at(cls, basis: FloatArray, p: FloatArray, noise: float, offset: FloatArray, shape: FloatArray) -> Margin:
        """A column of this distribution."""
        mean = basis.T @ p
        covariance = basis.T @ (p[:, None] * basis) - np.outer(mean, mean)
        root = np.asarray(np.linalg.cholesky(shape), dtype=np.float64)
        return cls(basis, p, mean, covariance, *np.linalg.eigh(covariance), noise, offset, shape, root)

    def centred(self, shares: FloatArray, shape: FloatArray) -> Margin:
        """The column over weighted rows, where it has these shares and its pairs are centred, with noise of a shape."""
        return Margin.at(self.basis, shares, self.noise, np.zeros_like(self.mean), shape)


@dataclass(frozen=True, slots=True)
class CentredPairs:
    """Pairs measured around margins that were released before: their central moments, and the noise of these."""

    observed: Mapping[Columns, FloatArray]
    noise: float
    """In a pair's own measure; in the coordinates of columns a and b it is this times both their shapes."""
    shares: tuple[FloatArray, ...]
    """The distribution of each column over the rows as they were weighted."""
    shapes: tuple[FloatArray, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """The central moment of a set of two columns or more."""

    observed: FloatArray
    denoised: FloatArray
    noise: float
    """Noise variance of a coordinate of what was observed, in the shapes of its columns."""

    @classmethod
    def of(cls, observed: FloatArray, noise: float, members: list[Margin], rows: float) -> Block:
        """What was observed, with and without its noise."""
        return cls(observed, _denoised(observed, noise, members, rows), noise)


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
            blocks[columns] = Block.of(observed, released.variances[columns] / rows**2, members, rows)
        return cls(released.levels, rows, released.variances[()] / rows**2, margins, blocks)

    @classmethod
    def around(cls, released: Released, pairs: CentredPairs) -> CentralMoments:
        """From pairs that were centred at margins released before."""
        rows = released.rows
        own = [Margin.of(released, a) for a in range(len(released.levels))]
        margins = tuple(m.centred(*pair) for m, *pair in zip(own, pairs.shares, pairs.shapes, strict=True))
        blocks = {
            columns: Block.of(observed, pairs.noise, [margins[a] for a in columns], rows)
            for columns, observed in pairs.observed.items()
        }
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
    scaled, scale, variance = observed, np.array(1.0), np.array(noise)
    for margin in members:
        scaled = np.tensordot(scaled, margin.axes, (0, 0))
        scale = np.multiply.outer(scale, np.sqrt(margin.variances))
        variance = np.multiply.outer(variance, ((margin.shape @ margin.axes) * margin.axes).sum(axis=0))
    scaled = scaled / scale
    kept = scaled * signal_share(scaled, variance / scale**2 + 1 / rows) * scale
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
