"""Columns regressed on the indicators of conditioning sets, from denoised moments; many sets at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpcurate.arrays import FloatArray, IntArray
from dpcurate.learn.measure_once.blocks import Columns, Remembered, flat, outer, sorted_set
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
    """Axes: the conditioning set, and some columns on each; coordinates are padded with zeros to the widest column."""

    design: DesignStack
    columns: IntArray
    """(sets, columns)"""
    covariances: FloatArray
    """(sets, columns, features, coordinates) with the features."""
    coefficients: FloatArray
    """W: (sets, columns, features, coordinates)."""
    within_cells: FloatArray
    """(sets, columns, cells, coordinates, coordinates): the covariance given each cell of the conditioning set."""
    within: FloatArray
    """Their average over cells."""
    offsets: FloatArray
    """mu = m - W' m_S: (sets, columns, coordinates)."""
    shaped: FloatArray
    """R' W, where R R' = N is the shape of the features' noise."""
    squares: FloatArray
    """W' N W for each term: (sets, columns, terms, coordinates, coordinates)."""
    noises: FloatArray
    """(sets, columns, terms): noise variance of the covariance with each term."""


class Regressions:
    """Regressions on conditioning sets."""

    def __init__(self, moments: CentralMoments) -> None:
        self.moments, self.designs = moments, Designs(moments)
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
        covariances = np.asarray(pairs.denoised[design.places[:, None, :, None], places[:, :, None, :]])
        noises = pairs.noise[which[:, :, None], design.columns[:, None, :]]
        self._larger_terms(settings, columns, covariances, noises)
        coefficients = design.inverse[:, None] @ covariances
        within_cells = self._within_cells(which, design.values[:, None] @ coefficients)
        within = design.tables[:, None, None] @ flat(within_cells)
        means = pairs.offsets[design.places]
        shaped = coefficients
        if pairs.root is not None:
            shaped = pairs.root[design.places[:, None, :], design.places[:, :, None]][:, None] @ coefficients
        squares = design.terms[:, None] @ flat(outer(shaped, shaped))
        return Regression(
            design,
            which,
            covariances,
            coefficients,
            within_cells,
            within.reshape(*within_cells.shape[:2], *within_cells.shape[3:]),
            pairs.offsets[places] - (means[:, None, None] @ coefficients)[:, :, 0],
            shaped,
            squares.reshape(*squares.shape[:3], *within_cells.shape[3:]),
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
                blocks = np.concatenate([self._denoised[a, term] for term in larger])
                covariances[i, j, start : start + len(blocks), : blocks.shape[1]] = blocks
                noises[i, j, first : len(setting.terms)] = [self._noise[a, term] for term in larger]

    def _single(self, key: tuple[int, Columns, Terms]) -> Regression:
        setting = self.designs.settings[key[1:]]
        return self.fit(self.designs.stack([setting]), [setting], [[key[0]]])

    def _within_cells(self, columns: IntArray, predicted: FloatArray) -> FloatArray:
        """The covariance of each column in each cell, from its predicted distribution there."""
        known, width = self.designs.columns, predicted.shape[3]
        basis = known.basis[columns, : width + 1, :width]
        p = known.probabilities[columns, None, : width + 1]
        cells = np.maximum(p + predicted @ basis.swapaxes(2, 3), LEAST_CELL * p)
        cells /= cells.sum(axis=3, keepdims=True)
        means, products = cells @ basis, outer(basis, basis)
        squares = cells @ flat(products)
        return np.asarray(squares.reshape(*means.shape, -1) - outer(means, means))

    def _denoised_of(self, key: tuple[int, Columns]) -> FloatArray:
        """Denoised covariance (features of the term, coordinates of the column)."""
        column, term = key
        members = sorted_set(column, *term)
        block = np.moveaxis(self.moments.blocks[members].denoised, members.index(column), -1)
        return block.reshape(-1, block.shape[-1])
