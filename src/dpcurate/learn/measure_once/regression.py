"""Columns regressed on the indicators of a conditioning set, from denoised moments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from dpcurate.arrays import FloatArray, IntArray
from dpcurate.learn.measure_once.blocks import Columns, Remembered, block_diagonal, kron, outer, sorted_set, subsets
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
    starts: IntArray
    """Where each term's features begin."""
    coordinates: IntArray
    """Of the columns that are terms by themselves, the first features, among the coordinates of all columns."""
    basis: FloatArray
    """Their bases (levels, features)."""
    level_shares: FloatArray
    """For each of these features 1 / levels of its column."""
    margin_noise: FloatArray
    """For each of these features the standard deviation of its mean's noise."""
    between: FloatArray
    """Noise variances of their pairs; 0 on the diagonal and where a pair was not measured."""
    root: FloatArray | None
    """A root of the shape of all features' noise; None if no column's noise has a shape."""


@dataclass(frozen=True, slots=True)
class Regression:
    """Several columns of the same number of levels on one design; the first axis is the column."""

    design: Design
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
    shaped: FloatArray
    """R' W, where R R' = N is the shape of the features' noise."""
    squares: FloatArray
    """W' N W for each term: (columns, terms, coordinates, coordinates)."""


@dataclass(frozen=True, slots=True)
class PairMatrices:
    """The moments of all pairs side by side: rows and columns are coordinates of the columns, 0 if not measured."""

    starts: IntArray
    sizes: tuple[int, ...]
    observed: FloatArray
    denoised: FloatArray
    noise: FloatArray
    """(columns, columns)"""

    @classmethod
    def of(cls, moments: CentralMoments) -> PairMatrices:
        """The blocks of sets of two."""
        sizes = tuple(r - 1 for r in moments.levels)
        ends = np.cumsum(sizes)
        places = [slice(end - size, end) for end, size in zip(ends.tolist(), sizes, strict=True)]
        observed, denoised = np.zeros((ends[-1], ends[-1])), np.zeros((ends[-1], ends[-1]))
        noise = np.zeros((len(sizes), len(sizes)))
        for (a, b), block in ((u, block) for u, block in moments.blocks.items() if len(u) == 2):
            observed[places[a], places[b]], observed[places[b], places[a]] = block.observed, block.observed.T
            denoised[places[a], places[b]], denoised[places[b], places[a]] = block.denoised, block.denoised.T
            noise[a, b] = noise[b, a] = block.noise
        return cls(np.asarray(ends - sizes, dtype=np.int64), sizes, observed, denoised, noise)

    def coordinates(self, columns: Sequence[int]) -> IntArray:
        """Where columns of the same number of levels stand: (columns, coordinates)."""
        return np.asarray(self.starts[columns][:, None] + np.arange(self.sizes[columns[0]]))

    def observed_blocks(self, others: Sequence[int], column: int) -> FloatArray:
        """The observed moment of each of `others` with a column."""
        return np.asarray(self.observed[self.coordinates(others)[:, :, None], self.coordinates([column])[0]])


class Regressions:
    """Regressions on conditioning sets; designs and tables are made once."""

    def __init__(self, moments: CentralMoments) -> None:
        self.moments, self.pairs = moments, PairMatrices.of(moments)
        self.tables: Remembered[Columns, FloatArray] = Remembered(self._table)
        self.designs: Remembered[tuple[Columns, Terms], Design] = Remembered(self._design)
        self.covariances: Remembered[tuple[int, Terms], FloatArray] = Remembered(self._covariance)
        self.slices: Remembered[Terms, tuple[slice, ...]] = Remembered(self._slices)
        self.noises: Remembered[tuple[int, Terms], FloatArray] = Remembered(self._noise)
        self.single: Remembered[tuple[int, Columns, Terms], Regression] = Remembered(
            lambda key: self.fit([key[0]], key[1], key[2])
        )
        self._added: Remembered[Columns, FloatArray] = Remembered(self._added_by)
        self._has_shapes = not all(np.array_equal(m.shape, np.eye(len(m.shape))) for m in moments.margins)

    def fit(self, columns: Sequence[int], given: Columns, terms: Terms) -> Regression:
        """All of `columns` must have the same number of levels."""
        design, table = self.designs[given, terms], self.tables[given]
        covariances = self._covariances(columns, design, terms)
        coefficients = design.inverse @ covariances
        within_cells = self._within_cells(columns, design.values @ coefficients)
        average = table @ within_cells.reshape(*within_cells.shape[:2], -1)
        offsets = np.array([self.moments.margins[a].offset for a in columns]) - design.means @ coefficients
        shaped = coefficients if design.root is None else design.root.T @ coefficients
        products = outer(shaped, shaped)
        squares = np.add.reduceat(products, design.starts, axis=1) if terms else products
        within = average.reshape(len(columns), *within_cells.shape[2:])
        return Regression(design, covariances, coefficients, within_cells, within, offsets, shaped, squares)

    def noises_of(self, columns: Sequence[int], terms: Terms) -> FloatArray:
        """Noise variance of the covariance of each column with each term."""
        if terms and len(terms[-1]) > 1:
            return np.array([self.noises[a, terms] for a in columns])
        return np.asarray(self.pairs.noise[np.ix_(columns, [s for (s,) in terms])])

    def _covariances(self, columns: Sequence[int], design: Design, terms: Terms) -> FloatArray:
        """Denoised covariances (columns, features, coordinates)."""
        places = self.pairs.coordinates(columns)
        of_singles = np.asarray(self.pairs.denoised[design.coordinates[:, None], places[:, None, :]])
        larger = terms[len(design.between) :]
        if not larger:
            return of_singles
        return np.concatenate([of_singles, np.array([self.covariances[a, larger] for a in columns])], axis=1)

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
        return np.concatenate([self._denoised(column, term) for term in terms])

    def _denoised(self, column: int, term: Columns) -> FloatArray:
        members = sorted_set(column, *term)
        block = np.moveaxis(self.moments.blocks[members].denoised, members.index(column), -1)
        return block.reshape(-1, block.shape[-1])

    def _noise(self, key: tuple[int, Terms]) -> FloatArray:
        """Noise variance of the covariance of a column with each term."""
        column, terms = key
        return np.array([self.moments.noise(column, *term) for term in terms])

    def _design(self, key: tuple[Columns, Terms]) -> Design:
        given, terms = key
        table, ends = self.tables[given], np.array([part.stop for part in self.slices[terms]], dtype=np.int64)
        values = self._features(given, terms)
        values = values - table @ values
        singles = [term[0] for term in terms if len(term) == 1]
        margins = [self.moments.margins[s] for s in singles]
        sizes = [self.pairs.sizes[s] for s in singles]
        means = np.zeros(values.shape[1])
        means[: sum(sizes)] = np.concatenate([np.empty(0), *(margin.offset for margin in margins)])
        return Design(
            values,
            soft_inverse(values.T @ (table[:, None] * values)),
            means,
            np.append(0, ends[:-1])[: len(terms)],
            np.concatenate([np.arange(0), *(self.pairs.coordinates([s])[0] for s in singles)]),
            block_diagonal([margin.basis for margin in margins]),
            np.repeat([1 / margin.basis.shape[0] for margin in margins], sizes),
            np.repeat([math.sqrt(margin.noise) for margin in margins], sizes),
            self.pairs.noise[np.ix_(singles, singles)],
            self._root(terms) if self._has_shapes else None,
        )

    def _features(self, given: Columns, terms: Terms) -> FloatArray:
        """Products of the centred coordinates of each term's members in each cell."""
        cells = cells_of(tuple(self.moments.levels[a] for a in given))
        margins = [self.moments.margins[a] for a in given]
        products: dict[Columns, FloatArray] = {
            (a,): (margin.basis - margin.mean)[places] for a, margin, places in zip(given, margins, cells, strict=True)
        }
        for term in subsets(given) if terms and len(terms[-1]) > 1 else ():
            if len(term) > 1:
                products[term] = outer(products[term[:-1]], products[term[-1:]]).reshape(cells.shape[1], -1)
        return np.concatenate([np.empty((cells.shape[1], 0)), *(products[term] for term in terms)], axis=1)

    def _root(self, terms: Terms) -> FloatArray:
        sizes = (part.stop - part.start for part in self.slices[terms])
        roots = [
            self.moments.margins[term[0]].root if len(term) == 1 else np.eye(size)
            for term, size in zip(terms, sizes, strict=True)
        ]
        return block_diagonal(roots)

    def _slices(self, terms: Terms) -> tuple[slice, ...]:
        """Where each term's features stand in a design."""
        ends = np.cumsum([0] + [math.prod(self.moments.levels[a] - 1 for a in term) for term in terms])
        return tuple(slice(i, j) for i, j in pairwise(ends))

    def _table(self, given: Columns) -> FloatArray:
        """Denoised joint distribution of the conditioning set, flat: the sum of what each released moment adds."""
        if not given:
            return np.ones(1)
        independent, levels = np.ones(1), [self.moments.levels[a] for a in given]
        for a in given:
            independent = kron(independent, self.moments.margins[a].probabilities)
        factors = np.ones(levels)
        for u in subsets(given):
            if len(u) > 1 and u in self.moments.blocks:
                factors += self._added[u].reshape([r if a in u else 1 for a, r in zip(given, levels, strict=True)])
        table = independent * np.maximum(factors, LEAST_CELL).ravel()
        return np.asarray(table / table.sum())

    def _added_by(self, members: Columns) -> FloatArray:
        """What the central moment of some columns adds to their cells, as a share of what independence would give."""
        part = self.moments.blocks[members].denoised
        for a in members:
            margin = self.moments.margins[a]
            part = np.tensordot(part, margin.basis / margin.probabilities[:, None], (0, 1))
        return np.asarray(part)


@cache
def cells_of(levels: tuple[int, ...]) -> IntArray:
    """The level of each column in each cell of a flat table: (columns, cells)."""
    return np.indices(levels).reshape(len(levels), math.prod(levels))


def soft_inverse(covariance: FloatArray) -> FloatArray:
    """An inverse that does not blow up directions that hardly occur."""
    sizes, axes = np.linalg.eigh(covariance)
    sizes = np.maximum(sizes, LEAST_DIRECTION * sizes.max(initial=0.0))
    return np.asarray((axes / sizes) @ axes.T)
