"""Columns regressed on the indicators of conditioning sets, from denoised moments; many sets at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpcurate._typing import FloatArray, IntArray
from dpcurate.learn.measure_once.blocks import Columns, Remembered, products, sorted_set
from dpcurate.learn.measure_once.designs import LEAST_CELL, Designs, DesignStack, Setting, Terms
from dpcurate.learn.measure_once.moments import CentralMoments

MOST_REMEMBERED = 2000
"""Regressions kept: what asks for one at a time comes back to those of late, and a large one takes a megabyte."""


class Asked(NamedTuple):
    """How some columns depend on another one after regression on the terms of a set."""

    others: tuple[int, ...]
    column: int
    setting: Setting


@dataclass(frozen=True, slots=True)
class Regression:
    """Axes: the conditioning set, and some columns on each; coordinates are padded with zeros to the widest column.

    What there is most of (cells, features) is the last axis: NumPy is quick along that one alone.
    """

    design: DesignStack
    columns: IntArray
    """(sets, columns)"""
    covariances: FloatArray
    """(sets, columns, coordinates, features) with the features."""
    coefficients: FloatArray
    """W: (sets, columns, coordinates, features)."""
    within_cells: FloatArray
    """(sets, columns, coordinates, coordinates, cells): the covariance given each cell of the conditioning set."""
    within: FloatArray
    """Their average over cells."""
    offsets: FloatArray
    """mu = m - W m_S: (sets, columns, coordinates)."""
    shaped: FloatArray
    """W R, where R R' = N is the shape of the features' noise."""
    squares: FloatArray
    """W N W' for each term: (sets, columns, coordinates, coordinates, terms)."""
    noises: FloatArray
    """(sets, columns, terms): noise variance of the covariance with each term."""


class Regressions:
    """Regressions on conditioning sets."""

    def __init__(self, moments: CentralMoments) -> None:
        self.moments = moments
        self.designs: Designs = Designs(moments)
        self.single: Remembered[tuple[int, Columns, Terms], Regression] = Remembered(self._single, MOST_REMEMBERED)
        self._noise: Remembered[tuple[int, Columns], float] = Remembered(lambda key: moments.noise(key[0], *key[1]))
        self._denoised: Remembered[tuple[int, Columns], FloatArray] = Remembered(self._denoised_of)

    def sides(self, asked: Sequence[Asked]) -> tuple[Regression, Regression]:
        """Regressions of the others and of the columns; where there are fewer others the first ones are repeated."""
        settings, most = [a.setting for a in asked], max(len(a.others) for a in asked)
        design = self.designs.stack(settings)
        others = [[*a.others, *[a.others[0]] * (most - len(a.others))] for a in asked]
        return self.fit(design, settings, others), self.fit(design, settings, [[a.column] for a in asked])

    def observed(self, left: Regression, right: Regression) -> FloatArray:
        """The observed moments of the columns on the left with those on the right."""
        places = self.designs.columns.places
        rows, columns = places[left.columns, : left.within.shape[-1]], places[right.columns, : right.within.shape[-1]]
        return np.asarray(self.designs.pairs.observed[rows[..., None], columns[:, :, None]])

    def fit(self, design: DesignStack, settings: Sequence[Setting], columns: Sequence[Sequence[int]]) -> Regression:
        """As many columns on each of the sets."""
        known, pairs, which = self.designs.columns, self.designs.pairs, np.array(columns)
        places = known.places[which, : int(known.levels[which].max()) - 1]
        covariances = np.asarray(pairs.denoised[places[..., None], design.places[:, None, None]])
        noises = pairs.noise[which[:, :, None], design.columns[:, None, :]]
        self._larger_terms(settings, columns, covariances, noises)
        coefficients = covariances @ design.inverse[:, None]
        within_cells = self._within_cells(which, coefficients @ design.values[:, None])
        means = pairs.offsets[design.places]
        shaped = coefficients
        if pairs.root is not None:
            shaped = coefficients @ pairs.root[design.places[:, :, None], design.places[:, None]][:, None]
        return Regression(
            design,
            which,
            covariances,
            coefficients,
            within_cells,
            (within_cells @ design.tables[:, None, None, :, None])[..., 0],
            pairs.offsets[places] - (coefficients @ means[:, None, :, None])[..., 0],
            shaped,
            products(shaped, shaped) @ design.terms[:, None, None].swapaxes(3, 4),
            noises,
        )

    def _larger_terms(
        self,
        settings: Sequence[Setting],
        columns: Sequence[Sequence[int]],
        covariances: FloatArray,
        noises: FloatArray,
    ) -> None:
        """Write down covariances with the features of terms of two columns and more, and their noise."""
        for i, setting in enumerate(settings):
            larger, first, start = setting.larger, len(setting.singles), len(setting.places)
            for j, a in enumerate(columns[i] if larger else ()):
                blocks = np.concatenate([self._denoised[a, term] for term in larger], axis=1)
                covariances[i, j, : len(blocks), start : start + blocks.shape[1]] = blocks
                noises[i, j, first : len(setting.terms)] = [self._noise[a, term] for term in larger]

    def _single(self, key: tuple[int, Columns, Terms]) -> Regression:
        setting = self.designs.settings[key[1:]]
        return self.fit(self.designs.stack([setting]), [setting], [[key[0]]])

    def _within_cells(self, columns: IntArray, predicted: FloatArray) -> FloatArray:
        """The covariance of each column in each cell, from its predicted distribution there."""
        known, width = self.designs.columns, predicted.shape[2]
        basis = known.basis[columns, : width + 1, :width]
        p = known.probabilities[columns, : width + 1, None]
        cells = np.maximum(p + basis @ predicted, LEAST_CELL * p)
        cells /= cells.sum(axis=2, keepdims=True)
        across = basis.swapaxes(2, 3)
        means = across @ cells
        return np.asarray(products(across, across) @ cells[:, :, None] - products(means, means))

    def _denoised_of(self, key: tuple[int, Columns]) -> FloatArray:
        """Denoised covariance (coordinates of the column, features of the term)."""
        column, term = key
        members = sorted_set(column, *term)
        block = np.moveaxis(self.moments.blocks[members].denoised, members.index(column), 0)
        return block.reshape(len(block), -1)
