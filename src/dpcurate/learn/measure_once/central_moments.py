"""What was released, and the central moments it implies, with and without their noise.

All of it is post-processing of answers, as frozen values: a new answer makes a new value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.learn.measure_once.blocks import Columns, helmert, rotate, sorted_set
from dpcurate.learn.measure_once.constants import FEWEST_OF_LEVEL

Answers = Mapping[Columns, tuple[FloatArray, float]]
"""For each set its noised contrast, a sum over rows, and the noise's standard deviation."""
FEWEST_ROWS = 1.0
"""A noised count may be zero or negative."""


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
        for _, some in groupby(sorted((u for u in released.sums if len(u) >= 2), key=len), key=len):
            noised = {
                u: (
                    released.sums[u] / rows - _implied(u, [margins[a] for a in u], blocks),
                    released.variances[u] / rows**2,
                )
                for u in some
            }
            blocks |= _blocks(noised, margins, rows)
        return cls(released.levels, rows, released.variances[()] / rows**2, margins, blocks)

    @classmethod
    def around(cls, released: Released, pairs: CentredPairs) -> CentralMoments:
        """From pairs that were centred at margins released before."""
        rows = released.rows
        own = [Margin.of(released, a) for a in range(len(released.levels))]
        margins = tuple(m.centred(*pair) for m, *pair in zip(own, pairs.shares, pairs.shapes, strict=True))
        blocks = _blocks({u: (observed, pairs.noise) for u, observed in pairs.observed.items()}, margins, rows)
        return cls(released.levels, rows, released.variances[()] / rows**2, margins, blocks)

    def without_links_of(self, copies: Mapping[int, int]) -> CentralMoments:
        """Without what was measured of columns with others than those they repeat."""
        pairs = {sorted_set(*pair) for pair in copies.items()}
        kept = {u: block for u, block in self.blocks.items() if u in pairs or copies.keys().isdisjoint(u)}
        return replace(self, blocks=kept)

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


def _blocks(
    noised: Mapping[Columns, tuple[FloatArray, float]], margins: Sequence[Margin], rows: float
) -> dict[Columns, Block]:
    """What was observed, with and without its noise; sets of the same numbers of levels together."""
    alike: dict[tuple[int, ...], list[Columns]] = defaultdict(list)
    for columns, (observed, _) in noised.items():
        alike[observed.shape].append(columns)
    denoised: dict[Columns, FloatArray] = {}
    for some in alike.values():
        stack, noise = (np.array([noised[u][i] for u in some]) for i in (0, 1))
        members = [[margins[u[place]] for u in some] for place in range(len(some[0]))]
        denoised.update(zip(some, _denoised(stack, noise, members, rows), strict=True))
    return {columns: Block(observed, denoised[columns], noise) for columns, (observed, noise) in noised.items()}


def _denoised(observed: FloatArray, noise: FloatArray, members: list[list[Margin]], rows: float) -> FloatArray:
    """Wiener filter in the coordinates in which every column is uncorrelated and of variance 1, for a stack of sets."""
    flat = (len(observed),) + (1,) * len(members)
    scale, variance = np.ones(flat), noise.reshape(flat)
    axes = [np.array([margin.axes for margin in some]) for some in members]
    for place, (some, turn) in enumerate(zip(members, axes, strict=True), start=1):
        shape = [len(observed) if i == 0 else -1 if i == place else 1 for i in range(len(flat))]
        shapes = np.array([margin.shape for margin in some])
        scale = scale * np.sqrt(np.array([margin.variances for margin in some])).reshape(shape)
        variance = variance * ((shapes @ turn) * turn).sum(axis=1).reshape(shape)
    scaled = _turned(observed, axes) / scale
    kept = scaled * signal_share(scaled, variance / scale**2 + 1 / rows) * scale
    return _turned(kept, [turn.swapaxes(1, 2) for turn in axes])


def _turned(stack: FloatArray, axes: Sequence[FloatArray]) -> FloatArray:
    """Each array of a stack in other coordinates, one matrix for each of its own axes."""
    for turn in axes:  # each pass eats the first axis and appends its image
        shape = stack.shape
        image = stack.reshape(len(stack), shape[1], -1).swapaxes(1, 2) @ turn
        stack = image.reshape(len(stack), *shape[2:], -1)
    return stack


def signal_share(values: FloatArray, variance: FloatArray) -> FloatArray:
    """How much of each value is signal, the signal's variance being estimated by moments from all values of a block.

    The first axis counts blocks.
    """
    others = tuple(range(1, values.ndim))
    signal, squares = np.zeros((len(values),) + (1,) * len(others)), values * values
    for _ in range(8):
        weight = 1 / (variance + signal) ** 2
        total = ((squares - variance) * weight).sum(axis=others, keepdims=True)
        signal = np.maximum(0.0, total / weight.sum(axis=others, keepdims=True))
    return np.asarray(signal / (signal + variance))
