"""What released moments say of every level and coordinate, side by side, so that a gather serves columns of any size.

Columns have different numbers of levels. Arrays are padded with zeros, and indices that point to padding find it in a
last row: one computation then serves many columns and conditioning sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcurate._typing import FloatArray, IntArray
from dpcurate.learn.measure_once.blocks import block_diagonal
from dpcurate.learn.measure_once.moments import CentralMoments, Margin


@dataclass(frozen=True, slots=True)
class OfColumns:
    """The first axis is the column; coordinates and levels beyond its own are zero."""

    levels: IntArray
    places: IntArray
    """(columns, coordinates): which rows of `OfPairs` are its own; the last row is padding."""
    first_level: IntArray
    """Where its levels begin in `OfLevels`."""
    probabilities: FloatArray
    basis: FloatArray
    """(columns, levels, coordinates)"""
    identity: FloatArray
    shape: FloatArray
    noise: FloatArray

    @classmethod
    def of(cls, moments: CentralMoments) -> OfColumns:
        """From the margins."""
        margins, levels = moments.margins, np.array(moments.levels)
        most, ends = int(levels.max()), np.cumsum(levels - 1)
        reach = np.arange(most - 1)
        places = np.where(reach < (levels - 1)[:, None], (ends - levels + 1)[:, None] + reach, ends[-1])
        return cls(
            levels,
            places,
            np.cumsum(levels) - levels,
            _padded([m.probabilities for m in margins], (most,)),
            _padded([m.basis for m in margins], (most, most - 1)),
            _padded([np.eye(r - 1) for r in moments.levels], (most - 1, most - 1)),
            _padded([m.shape for m in margins], (most - 1, most - 1)),
            np.array([m.noise for m in margins]),
        )


@dataclass(frozen=True, slots=True)
class OfLevels:
    """Of every level of every column; the last row stands for no column at all."""

    shares: FloatArray
    """Its probability; 1 of no column."""
    added: FloatArray
    """What the moment of a pair adds to a cell of two levels, as a share of what independence would give."""
    coordinates: FloatArray
    """(levels, 2 + coordinates): a 0 and a 1 for features that have no factors or fewer, then centred coordinates."""

    @classmethod
    def of(cls, margins: Sequence[Margin], denoised: FloatArray) -> OfLevels:
        """From the margins and the denoised moments of pairs."""
        shares = np.concatenate([*(m.probabilities for m in margins), np.ones(1)])
        scaled = [*(m.basis / m.probabilities[:, None] for m in margins), np.zeros((1, 1))]
        widest = max(m.basis.shape[1] for m in margins)
        coordinates = np.zeros((len(shares), widest + 2))
        coordinates[:, 1] = 1
        row = 0
        for m in margins:
            levels, width = m.basis.shape
            coordinates[row : row + levels, 2 : 2 + width] = m.basis - m.mean
            row += levels
        return cls(shares, _times_blocks(scaled, _times_blocks(scaled, denoised).T), coordinates)


@dataclass(frozen=True, slots=True)
class OfPairs:
    """The moments of all pairs: rows and columns are coordinates, 0 if not measured and in the last ones."""

    observed: FloatArray
    denoised: FloatArray
    noise: FloatArray
    """(columns, columns), a last one of zeros."""
    offsets: FloatArray
    level_shares: FloatArray
    """1 / levels of a coordinate's column."""
    margin_deviations: FloatArray
    """The standard deviation of a coordinate's mean."""
    at_levels: FloatArray
    """(coordinates, levels): what a coordinate is at the levels of its column."""
    root: FloatArray | None
    """A root of the shape of the coordinates' noise; None if no column's noise has a shape."""
    spread: FloatArray
    """A root of the covariance of each column's coordinates."""

    @classmethod
    def of(cls, moments: CentralMoments, columns: OfColumns) -> OfPairs:
        """The blocks of sets of two."""
        margins, sizes = moments.margins, [r - 1 for r in moments.levels]
        total = sum(sizes) + 1
        observed, denoised = np.zeros((total, total)), np.zeros((total, total))
        noise = np.zeros((len(sizes) + 1, len(sizes) + 1))
        starts = columns.places[:, 0].tolist()
        for (a, b), block in ((u, block) for u, block in moments.blocks.items() if len(u) == 2):
            i, j = (slice(starts[x], starts[x] + sizes[x]) for x in (a, b))
            observed[i, j], observed[j, i] = block.observed, block.observed.T
            denoised[i, j], denoised[j, i] = block.denoised, block.denoised.T
            noise[a, b] = noise[b, a] = block.noise
        at_levels = np.concatenate([basis[:, :size].T for basis, size in zip(columns.basis, sizes, strict=True)])
        shaped = not all(np.array_equal(m.shape, np.eye(len(m.shape))) for m in margins)
        return cls(
            observed,
            denoised,
            noise,
            np.concatenate([*(m.offset for m in margins), np.zeros(1)]),
            np.concatenate([np.repeat(1 / columns.levels, sizes), np.zeros(1)]),
            np.concatenate([np.repeat(np.sqrt(columns.noise), sizes), np.zeros(1)]),
            np.concatenate([at_levels, np.zeros((1, at_levels.shape[1]))]),
            block_diagonal([*(m.root for m in margins), np.zeros((1, 1))]) if shaped else None,
            block_diagonal([*(m.axes * np.sqrt(np.maximum(m.variances, 0)) for m in margins), np.zeros((1, 1))]),
        )


def _times_blocks(blocks: Sequence[FloatArray], matrix: FloatArray) -> FloatArray:
    """The product of a block-diagonal matrix and another one."""
    parts = np.split(matrix, np.cumsum([block.shape[1] for block in blocks])[:-1])
    return np.concatenate([block @ part for block, part in zip(blocks, parts, strict=True)])


def _padded(arrays: Sequence[FloatArray], shape: tuple[int, ...]) -> FloatArray:
    stack = np.zeros((len(arrays), *shape))
    for place, array in enumerate(arrays):
        stack[place][tuple(slice(size) for size in array.shape)] = array
    return stack
