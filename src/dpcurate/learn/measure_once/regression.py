"""Columns regressed on the indicators of a conditioning set, from denoised moments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpcurate.arrays import FloatArray
from dpcurate.learn.measure_once.blocks import Columns, Remembered, outer, sorted_set, subsets
from dpcurate.learn.measure_once.moments import CentralMoments

Terms = tuple[Columns, ...]
"""Which products of a conditioning set's indicators a regression uses: subsets of it."""
LEAST_CELL = 1e-3
"""A cell of a denoised table is at least this share of what independence would give."""
LEAST_DIRECTION = 1e-4
"""A direction of less than this share of the largest variance is inverted as if it had that."""


@dataclass(frozen=True, slots=True)
class Design:
    """The features of a conditioning set: centred products of indicators, a block of columns for each term."""

    values: FloatArray
    """(cells of the table, features)"""
    inverse: FloatArray
    """Inverse of the features' covariance."""
    means: FloatArray
    """m_S: what centres each feature; products of centred indicators are centred already."""


@dataclass(frozen=True, slots=True)
class Regression:
    """Several columns of the same number of levels on one design; the first axis is the column."""

    covariances: FloatArray
    """(columns, features, coordinates) with the features."""
    coefficients: FloatArray
    """W: (columns, features, coordinates)."""
    within_cells: FloatArray
    """(columns, cells, coordinates, coordinates): the covariance given each cell of the conditioning set."""
    within: FloatArray
    """Their average over cells."""
    offsets: FloatArray
    """mu = m - W' m_S: (columns, coordinates)."""
    squares: FloatArray
    """W' N W for each term, N its column's shape of noise: (terms, columns, coordinates, coordinates)."""


class Regressions:
    """Regressions on conditioning sets; designs and tables are made once."""

    def __init__(self, moments: CentralMoments) -> None:
        self.moments = moments
        self.tables: Remembered[Columns, FloatArray] = Remembered(self._table)
        self.designs: Remembered[tuple[Columns, Terms], Design] = Remembered(self._design)
        self.denoised: Remembered[tuple[int, Columns], FloatArray] = Remembered(self._denoised)
        self.covariances: Remembered[tuple[int, Terms], FloatArray] = Remembered(self._covariance)
        self.slices: Remembered[Terms, tuple[slice, ...]] = Remembered(self._slices)
        self.noises: Remembered[tuple[int, Terms], FloatArray] = Remembered(self._noise)
        self.single: Remembered[tuple[int, Columns, Terms], Regression] = Remembered(
            lambda key: self.fit([key[0]], key[1], key[2])
        )

    def fit(self, columns: Sequence[int], given: Columns, terms: Terms) -> Regression:
        """All of `columns` must have the same number of levels."""
        design = self.designs[given, terms]
        covariances = np.array([self.covariances[a, terms] for a in columns])
        coefficients = design.inverse @ covariances
        within_cells = self._within_cells(columns, design.values @ coefficients)
        average = self.tables[given] @ within_cells.reshape(*within_cells.shape[:2], -1)
        within = average.reshape(len(columns), *within_cells.shape[2:])
        parts = zip(terms, self.slices[terms], strict=True)
        squares = np.array([self._square(term, coefficients[:, where]) for term, where in parts])
        return Regression(
            covariances,
            coefficients,
            within_cells,
            within,
            np.array([self.moments.margins[a].offset for a in columns]) - design.means @ coefficients,
            squares.reshape(len(terms), *within.shape),
        )

    def _square(self, term: Columns, coefficients: FloatArray) -> FloatArray:
        shaped = self.moments.margins[term[0]].shape @ coefficients if len(term) == 1 else coefficients
        return np.asarray(coefficients.swapaxes(1, 2) @ shaped)

    def _within_cells(self, columns: Sequence[int], predicted: FloatArray) -> FloatArray:
        """The covariance of each column in each cell, from its predicted distribution there."""
        basis = self.moments.margins[columns[0]].basis
        p = np.array([self.moments.margins[a].probabilities for a in columns])[:, None]
        cells = np.maximum(p + predicted @ basis.T, LEAST_CELL * p)
        cells /= cells.sum(2, keepdims=True)
        means, size = cells @ basis, basis.shape[1]
        squares = (cells @ outer(basis, basis).reshape(-1, size * size)).reshape(*means.shape, size)
        return np.asarray(squares - outer(means, means))

    def _covariance(self, key: tuple[int, Terms]) -> FloatArray:
        """Denoised covariance (features of the terms, coordinates of the column)."""
        column, terms = key
        none = np.empty((0, self.moments.levels[column] - 1))
        return np.concatenate([none, *(self.denoised[column, term] for term in terms)])

    def _denoised(self, key: tuple[int, Columns]) -> FloatArray:
        column, term = key
        members = sorted_set(column, *term)
        block = np.moveaxis(self.moments.blocks[members].denoised, members.index(column), -1)
        return block.reshape(-1, block.shape[-1])

    def _noise(self, key: tuple[int, Terms]) -> FloatArray:
        """Noise variance of the covariance of a column with each term."""
        column, terms = key
        return np.array([self.moments.noise(column, *term) for term in terms])

    def _design(self, key: tuple[Columns, Terms]) -> Design:
        given, terms = key
        margins = self.moments.margins
        p, levels = self.tables[given], [self.moments.levels[a] for a in given]
        cells = np.indices(levels).reshape(len(given), len(p))
        features = [np.empty((len(p), 0))]
        for term in terms:
            product = np.ones((len(p), 1))
            for a in term:
                coordinates = (margins[a].basis - margins[a].mean)[cells[given.index(a)]]
                product = outer(product, coordinates).reshape(len(product), -1)
            features.append(product)
        values = np.hstack(features)
        values = values - p @ values
        means = [
            margins[t[0]].offset if len(t) == 1 else np.zeros(x.shape[1])
            for t, x in zip(terms, features[1:], strict=True)
        ]
        return Design(values, soft_inverse(values.T @ (p[:, None] * values)), np.concatenate([np.empty(0), *means]))

    def _slices(self, terms: Terms) -> tuple[slice, ...]:
        """Where each term's features stand in a design."""
        ends = np.cumsum([0] + [math.prod(self.moments.levels[a] - 1 for a in term) for term in terms])
        return tuple(slice(i, j) for i, j in pairwise(ends))

    def _table(self, given: Columns) -> FloatArray:
        """Denoised joint distribution of the conditioning set, flat: the sum of what each released moment adds."""
        parts = [self._spread(given, u) for u in ((), *subsets(given)) if not u or u in self.moments.blocks]
        table = np.maximum(sum(parts), LEAST_CELL * parts[0]).ravel()
        return np.asarray(table / table.sum())

    def _spread(self, given: Columns, members: Columns) -> FloatArray:
        """The central moment of some members over the cells, times the probabilities of the others."""
        margins = self.moments.margins
        part = self.moments.blocks[members].denoised if members else np.array(1.0)
        for a in members:
            part = np.tensordot(part, margins[a].basis, (0, 1))
        others = [a for a in given if a not in members]
        for a in others:
            part = np.multiply.outer(part, margins[a].probabilities)
        return np.moveaxis(part, range(len(given)), [given.index(a) for a in (*members, *others)])


def soft_inverse(covariance: FloatArray) -> FloatArray:
    """An inverse that does not blow up directions that hardly occur."""
    sizes, axes = np.linalg.eigh(covariance)
    sizes = np.maximum(sizes, LEAST_DIRECTION * sizes.max(initial=0.0))
    return np.asarray((axes / sizes) @ axes.T)
