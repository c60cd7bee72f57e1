"""Columns regressed on the indicators of a conditioning set, from denoised moments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from dpcurate.arrays import FloatArray, IntArray
from dpcurate.learn.measure_once.blocks import (
    Columns,
    Remembered,
    block_diagonal,
    helmert,
    kron,
    outer,
    sorted_set,
    subsets,
)
from dpcurate.learn.measure_once.moments import CentralMoments

Terms = tuple[Columns, ...]
"""Which products of a conditioning set's indicators a regression uses: subsets of it."""
LEAST_CELL = 1e-3
"""A cell of a denoised table is at least this share of what independence would give."""
LEAST_DIRECTION = 1e-4
"""A direction of less than this share of the largest variance is inverted as if it had that."""

MOST_REMEMBERED = 2000
"""Designs and regressions kept: a search comes back to those of late, and a large one takes a megabyte."""


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

    places: tuple[IntArray, ...]
    """The coordinates of each column."""
    observed: FloatArray
    denoised: FloatArray
    noise: FloatArray
    """(columns, columns)"""

    @classmethod
    def of(cls, moments: CentralMoments) -> PairMatrices:
        """The blocks of sets of two."""
        sizes = tuple(r - 1 for r in moments.levels)
        ends = np.cumsum(sizes)
        places = tuple(np.arange(end - size, end) for end, size in zip(ends.tolist(), sizes, strict=True))
        observed, denoised = np.zeros((ends[-1], ends[-1])), np.zeros((ends[-1], ends[-1]))
        noise = np.zeros((len(sizes), len(sizes)))
        for (a, b), block in ((u, block) for u, block in moments.blocks.items() if len(u) == 2):
            i, j = (slice(places[x][0], places[x][-1] + 1) for x in (a, b))
            observed[i, j], observed[j, i] = block.observed, block.observed.T
            denoised[i, j], denoised[j, i] = block.denoised, block.denoised.T
            noise[a, b] = noise[b, a] = block.noise
        return cls(places, observed, denoised, noise)

    def coordinates(self, columns: Sequence[int]) -> IntArray:
        """Where columns of the same number of levels stand: (columns, coordinates)."""
        return np.array([self.places[a] for a in columns])

    def observed_blocks(self, others: Sequence[int], column: int) -> FloatArray:
        """The observed moment of each of `others` with a column."""
        return np.asarray(self.observed[self.coordinates(others)[:, :, None], self.places[column]])


class Regressions:
    """Regressions on conditioning sets; designs and tables are made once."""

    def __init__(self, moments: CentralMoments) -> None:
        self.moments, self.pairs = moments, PairMatrices.of(moments)
        self.tables: Remembered[Columns, FloatArray] = Remembered(self._table)
        self.designs: Remembered[tuple[Columns, Terms], Design] = Remembered(self._design, MOST_REMEMBERED)
        self.single: Remembered[tuple[int, Columns, Terms], Regression] = Remembered(
            lambda key: self.fit([key[0]], key[1], key[2]), MOST_REMEMBERED
        )
        self._added: Remembered[Columns, FloatArray] = Remembered(self._added_by)
        self._noise: Remembered[tuple[int, Columns], float] = Remembered(lambda key: moments.noise(key[0], *key[1]))
        self._denoised: Remembered[tuple[int, Columns], FloatArray] = Remembered(self._denoised_of)
        margins = moments.margins
        self.margin_noise = np.array([m.noise for m in margins])
        self._offsets = np.concatenate([m.offset for m in margins])
        self._level_shares = np.concatenate([np.full(r - 1, 1 / r) for r in moments.levels])
        self._margin_deviations = np.repeat(np.sqrt(self.margin_noise), [r - 1 for r in moments.levels])
        self._has_shapes = not all(np.array_equal(m.shape, np.eye(len(m.shape))) for m in margins)

    def fit(self, columns: Sequence[int], given: Columns, terms: Terms) -> Regression:
        """All of `columns` must have the same number of levels."""
        design, places = self.designs[given, terms], self.pairs.coordinates(columns)
        covariances = self._covariances(columns, places, design, terms)
        coefficients = design.inverse @ covariances
        within_cells = self._within_cells(columns, design.values @ coefficients)
        within = self.tables[given] @ within_cells.reshape(*within_cells.shape[:2], -1)
        shaped = coefficients if design.root is None else design.root.T @ coefficients
        products = outer(shaped, shaped)
        return Regression(
            design,
            covariances,
            coefficients,
            within_cells,
            within.reshape(len(columns), *within_cells.shape[2:]),
            self._offsets[places] - design.means @ coefficients,
            shaped,
            np.add.reduceat(products, design.starts, axis=1) if terms else products,
        )

    def noises(self, columns: Sequence[int], terms: Terms) -> FloatArray:
        """Noise variance of the covariance of each column with each term."""
        if terms and len(terms[-1]) > 1:
            return np.array([[self._noise[a, term] for term in terms] for a in columns])
        singles = [s for (s,) in terms]
        return self.pairs.noise[columns][:, singles] if terms else np.empty((len(columns), 0))

    def shapes(self, columns: Sequence[int]) -> FloatArray:
        """The shape of each column's noise in pairs; only one of them if none has any."""
        some = columns if self._has_shapes else columns[:1]
        return np.array([self.moments.margins[a].shape for a in some])

    def _covariances(self, columns: Sequence[int], places: IntArray, design: Design, terms: Terms) -> FloatArray:
        """Denoised covariances (columns, features, coordinates)."""
        of_singles = np.asarray(self.pairs.denoised[design.coordinates[:, None], places[:, None, :]])
        larger = terms[len(design.between) :]
        if not larger:
            return of_singles
        of_larger = np.array([np.concatenate([self._denoised[a, term] for term in larger]) for a in columns])
        return np.concatenate([of_singles, of_larger], axis=1)

    def _within_cells(self, columns: Sequence[int], predicted: FloatArray) -> FloatArray:
        """The covariance of each column in each cell, from its predicted distribution there."""
        basis, products = basis_and_products(self.moments.levels[columns[0]])
        p = np.array([self.moments.margins[a].probabilities for a in columns])[:, None]
        cells = np.maximum(p + predicted @ basis.T, LEAST_CELL * p)
        cells /= cells.sum(axis=2, keepdims=True)
        means = cells @ basis
        return np.asarray((cells @ products).reshape(*means.shape, -1) - outer(means, means))

    def _denoised_of(self, key: tuple[int, Columns]) -> FloatArray:
        """Denoised covariance (features of the term, coordinates of the column)."""
        column, term = key
        members = sorted_set(column, *term)
        block = np.moveaxis(self.moments.blocks[members].denoised, members.index(column), -1)
        return block.reshape(-1, block.shape[-1])

    def _design(self, key: tuple[Columns, Terms]) -> Design:
        given, terms = key
        table = self.tables[given]
        singles = [term[0] for term in terms if len(term) == 1]
        levels = tuple(self.moments.levels[a] for a in given)
        layout = layout_of(levels, tuple(tuple(given.index(a) for a in term) for term in terms))
        places = np.concatenate([self.pairs.places[s] for s in singles]) if singles else np.arange(0)
        values = layout.values
        if layout.products:
            centred = cells_in_coordinates(levels) - np.concatenate([self.moments.margins[a].mean for a in given])
            products = [np.prod(centred[:, features], axis=2) for features in layout.products]
            values = np.concatenate([values, *products], axis=1)
        values = values - table @ values
        means = np.zeros(values.shape[1])
        means[: places.size] = self._offsets[places]
        return Design(
            values,
            soft_inverse(values.T @ (table[:, None] * values)),
            means,
            layout.starts,
            places,
            layout.basis,
            self._level_shares[places],
            self._margin_deviations[places],
            self.pairs.noise[singles][:, singles] if singles else np.empty((0, 0)),
            self._root(singles, values.shape[1]) if self._has_shapes else None,
        )

    def _root(self, singles: list[int], features: int) -> FloatArray:
        roots = [self.moments.margins[s].root for s in singles]
        return block_diagonal([*roots, np.eye(features - sum(map(len, roots)))])

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


@dataclass(frozen=True, slots=True)
class Layout:
    """What the features of a design have in common for all columns of the same numbers of levels."""

    values: FloatArray
    """(cells, features) of the terms of one column, not centred."""
    products: tuple[IntArray, ...]
    """For the larger terms by their size: (features, members), the coordinates to multiply."""
    starts: IntArray
    basis: FloatArray


@cache
def layout_of(levels: tuple[int, ...], terms: Terms) -> Layout:
    """The layout of terms, given by places in the conditioning set, smaller ones first."""
    ends = np.cumsum([r - 1 for r in levels]).tolist()
    own = [range(end - r + 1, end) for end, r in zip(ends, levels, strict=True)]
    singles = [term[0] for term in terms if len(term) == 1]
    by_size = [[t for t in terms if len(t) == size] for size in range(2, len(levels) + 1)]
    products = [[c for term in some for c in product(*(own[a] for a in term))] for some in by_size if some]
    sizes = [math.prod(levels[a] - 1 for a in term) for term in terms]
    return Layout(
        cells_in_coordinates(levels)[:, [c for a in singles for c in own[a]]],
        tuple(np.array(some) for some in products),
        np.cumsum([0, *sizes])[:-1],
        block_diagonal([helmert(levels[a]) for a in singles]),
    )


@cache
def cells_in_coordinates(levels: tuple[int, ...]) -> FloatArray:
    """The coordinates of all columns in each cell of their flat table: (cells, coordinates)."""
    cells = np.indices(levels).reshape(len(levels), math.prod(levels))
    parts = [helmert(r)[places] for r, places in zip(levels, cells, strict=True)]
    return np.concatenate([np.empty((cells.shape[1], 0)), *parts], axis=1)


@cache
def basis_and_products(levels: int) -> tuple[FloatArray, FloatArray]:
    """The basis of a column, and for each level the products of its coordinates."""
    basis = helmert(levels)
    return basis, outer(basis, basis).reshape(levels, -1)


def soft_inverse(covariance: FloatArray) -> FloatArray:
    """An inverse that does not blow up directions that hardly occur."""
    sizes, axes = np.linalg.eigh(covariance)
    sizes = np.maximum(sizes, LEAST_DIRECTION * sizes.max(initial=0.0))
    return np.asarray((axes / sizes) @ axes.T)
