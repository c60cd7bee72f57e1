"""The features of conditioning sets: centred products of indicators, of many sets at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product

import numpy as np

from dpcurate._typing import BoolArray, FloatArray, IntArray
from dpcurate.learn.measure_once.blocks import Columns, Remembered, block_diagonal, subsets
from dpcurate.learn.measure_once.central_moments import CentralMoments, Margin
from dpcurate.learn.measure_once.constants import LEAST_CELL, LEAST_DIRECTION

# What released moments say of every level and coordinate, side by side, so that a gather serves columns of any size.
#
# Columns have different numbers of levels. Arrays are padded with zeros, and indices that point to padding find it in a
# last row: one computation then serves many columns and conditioning sets.


@dataclass(frozen=True, slots=True)
class PerColumn:
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
    def of(cls, moments: CentralMoments) -> PerColumn:
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
class PerLevel:
    """Of every level of every column; the last row stands for no column at all."""

    shares: FloatArray
    """Its probability; 1 of no column."""
    added: FloatArray
    """What the moment of a pair adds to a cell of two levels, as a share of what independence would give."""
    coordinates: FloatArray
    """(levels, 2 + coordinates): a 0 and a 1 for features that have no factors or fewer, then centred coordinates."""

    @classmethod
    def of(cls, margins: Sequence[Margin], denoised: FloatArray) -> PerLevel:
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
class PerPair:
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
    def of(cls, moments: CentralMoments, columns: PerColumn) -> PerPair:
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


Terms = tuple[Columns, ...]
"""Which products of a conditioning set's indicators a regression uses: subsets of it, those of one column first."""
MOST_STACKS, SMALL_STACK = 1000, 10_000
"""Stacks of designs kept, and how many numbers a table with its features has in one that is."""
MOST_REMEMBERED = 20_000
"""Conditioning sets kept: a search comes back to those of late."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What the features of a design have in common for all columns of the same numbers of levels."""

    cells: IntArray
    """(cells of the table, members): the level of each member."""
    members: IntArray
    """(features, factors): whose coordinate a factor is, by its place in the conditioning set; 0 if there is none."""
    coordinates: IntArray
    """Which of that member's coordinates, counted from 2; 1 for no factor."""
    terms: IntArray
    """To which term each feature belongs."""
    singles: int
    """How many features, the first ones, are coordinates of one column."""


@cache
def layout_of(levels: tuple[int, ...], terms: Terms) -> Layout:
    """The layout of terms, given by places in the conditioning set, smaller ones first."""
    factors = max(map(len, terms), default=1)
    features = [
        (place, term, chosen)
        for place, term in enumerate(terms)
        for chosen in product(*(range(2, levels[a] + 1) for a in term))
    ]
    members = [term + (0,) * (factors - len(term)) for _, term, _ in features]
    coordinates = [chosen + (1,) * (factors - len(chosen)) for *_, chosen in features]
    return Layout(
        np.indices(levels).reshape(len(levels), math.prod(levels)).T,
        np.array(members, dtype=np.intp).reshape(-1, factors),
        np.array(coordinates, dtype=np.intp).reshape(-1, factors),
        np.array([place for place, *_ in features], dtype=np.intp),
        sum(levels[term[0]] - 1 for term in terms if len(term) == 1),
    )


@cache
def _lacking(terms: Terms) -> IntArray:
    """See Setting."""
    members = [term[0] for term in terms if len(term) == 1]
    sizes = np.zeros((len(members), len(members)), dtype=np.int64)
    for size in range(len(members), 1, -1):  # the smallest last
        for places in combinations(range(len(members)), size):
            if tuple(members[i] for i in places) not in terms:
                sizes[np.ix_(places, places)] = size
    np.fill_diagonal(sizes, 0)
    return sizes


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """A conditioning set with its terms, and what is often asked of them; there is one of each, equal to itself."""

    given: Columns
    terms: Terms
    layout: Layout
    levels: tuple[int, ...]
    singles: list[int]
    """The columns that are terms by themselves."""
    places: IntArray
    """Which coordinates the features of one column are."""
    first_levels: IntArray
    """Where the levels of each member begin in `OfLevels`."""
    lacking: IntArray
    """For each pair of `singles` of how many columns the smallest product is that holds both and is no term; 0 if all
    of them are."""

    @property
    def larger(self) -> Terms:
        """Terms of two columns and more."""
        return self.terms[len(self.singles) :]

    @property
    def lacks_terms(self) -> bool:
        """Whether some product of indicators is left out."""
        return len(self.terms) + 1 < 1 << len(self.given)


@dataclass(frozen=True, slots=True)
class DesignStack:
    """Designs of several conditioning sets, the first axis; sizes are those of the largest, others are padded."""

    tables: FloatArray
    """(sets, cells): the denoised joint distribution of each conditioning set, flat."""
    values: FloatArray
    """(sets, features, cells)"""
    inverse: FloatArray
    """Inverse of the features' covariance."""
    places: IntArray
    """(sets, features): which coordinate of which column a feature of one column is."""
    terms: FloatArray
    """(sets, terms, features): 1 where a feature belongs to a term."""
    columns: IntArray
    """(sets, terms): the column of a term of one."""
    bases: FloatArray
    """(sets, levels of all terms of one column, their features)"""

    @property
    def singles(self) -> int:
        """So many features, the first ones, can be coordinates of one column."""
        return int(self.bases.shape[2])


class Designs:
    """Makes designs from what was released."""

    def __init__(self, moments: CentralMoments) -> None:
        self.moments = moments
        self.columns: PerColumn = PerColumn.of(moments)
        self.pairs: PerPair = PerPair.of(moments, self.columns)
        self.levels: PerLevel = PerLevel.of(moments.margins, self.pairs.denoised)
        self._larger: Remembered[Columns, tuple[Columns, ...]] = Remembered(
            lambda given: tuple(u for u in subsets(given) if len(u) > 2 and u in moments.blocks)
        )
        self.settings: Remembered[tuple[Columns, Terms], Setting] = Remembered(self._setting, MOST_REMEMBERED)
        self._added: Remembered[Columns, FloatArray] = Remembered(self._added_by)
        self._stacks: Remembered[tuple[Setting, ...], DesignStack] = Remembered(self._stacked, MOST_STACKS)

    def stack(self, settings: Sequence[Setting]) -> DesignStack:
        """The designs of conditioning sets with their terms; small ones are remembered."""
        small = sum(len(x.layout.cells) * (1 + len(x.layout.members)) for x in settings) < SMALL_STACK
        return self._stacks[tuple(settings)] if small else self._stacked(settings)

    def _stacked(self, settings: Sequence[Setting]) -> DesignStack:
        layouts = [setting.layout for setting in settings]
        cells, members = (max(layout.cells.shape[i] for layout in layouts) for i in (0, 1))
        features, factors = (max(layout.members.shape[i] for layout in layouts) for i in (0, 1))
        nobody, nothing = len(self.levels.shares) - 1, len(self.pairs.offsets) - 1
        levels = np.full((len(settings), max(members, 1), cells), nobody)
        owners = np.zeros((len(settings), features, factors), dtype=np.intp)
        coordinates = np.ones((len(settings), features, factors), dtype=np.intp)
        coordinates[:, :, :1] = 0  # features of no design are zero
        places = np.full((len(settings), features), nothing)
        term_of = np.full((len(settings), features), -1)
        columns = np.full((len(settings), max(len(x.terms) for x in settings)), len(self.moments.levels))
        real: BoolArray = np.zeros((len(settings), cells), dtype=bool)
        for i, setting in enumerate(settings):
            layout, singles, own = setting.layout, setting.singles, setting.places
            (c, k), (f, j) = layout.cells.shape, layout.members.shape
            real[i, :c] = True
            levels[i, :k, :c] = (layout.cells + setting.first_levels).T
            owners[i, :f, :j], coordinates[i, :f, :j] = layout.members, layout.coordinates
            term_of[i, :f] = layout.terms
            columns[i, : len(singles)], places[i, : len(own)] = singles, own
        terms = (term_of[:, None] == np.arange(columns.shape[1])[:, None]).astype(float)
        tables = self._tables(levels, real, settings)
        values = self._values(levels, owners, coordinates, min(layout.singles for layout in layouts))
        values -= values @ tables[:, :, None]
        inverse = soft_inverse(values @ (values * tables[:, None]).swapaxes(1, 2))
        bases = self._bases(places[:, : max(layout.singles for layout in layouts)], terms, settings)
        return DesignStack(tables, values, inverse, places, terms, columns, bases)

    def _setting(self, key: tuple[Columns, Terms]) -> Setting:
        given, terms = key
        levels = tuple(self.moments.levels[a] for a in given)
        place = {a: i for i, a in enumerate(given)}
        by_place = tuple(tuple(place[a] for a in term) for term in terms)
        layout = layout_of(levels, by_place)
        singles, own = [term[0] for term in terms if len(term) == 1], np.arange(0)
        if singles:
            whose = np.array(given)[layout.members[: layout.singles, 0]]
            own = self.columns.places[whose, layout.coordinates[: layout.singles, 0] - 2]
        first_levels = self.columns.first_level[list(given)]
        return Setting(given, terms, layout, levels, singles, own, first_levels, _lacking(by_place))

    def _tables(self, levels: IntArray, real: BoolArray, settings: Sequence[Setting]) -> FloatArray:
        """Denoised joint distributions: the sum of what each released moment adds."""
        factors = np.ones(real.shape)
        for i, j in combinations(range(levels.shape[1]), 2):
            factors += self.levels.added[levels[:, i], levels[:, j]]
        for factor, setting in zip(factors, settings, strict=True):
            for u in self._larger[setting.given]:
                own = [r if a in u else 1 for a, r in zip(setting.given, setting.levels, strict=True)]
                factor[: len(setting.layout.cells)].reshape(setting.levels)[:] += self._added[u].reshape(own)
        tables = self.levels.shares[levels].prod(axis=1) * np.maximum(factors, LEAST_CELL) * real
        return np.asarray(tables / tables.sum(axis=1, keepdims=True))

    def _values(self, levels: IntArray, owners: IntArray, coordinates: IntArray, singles: int) -> FloatArray:
        """(sets, features, cells): products of coordinates; the first so many features have one factor."""
        sets, width = np.arange(len(levels))[:, None], int(coordinates.max(initial=0)) + 1
        at_cells = np.ascontiguousarray(self.levels.coordinates[levels, :width].swapaxes(2, 3))
        values = at_cells[sets, owners[:, :, 0], coordinates[:, :, 0]]
        for factor in range(1, owners.shape[2]):
            values[:, singles:] *= at_cells[sets, owners[:, singles:, factor], coordinates[:, singles:, factor]]
        return values

    def _bases(self, places: IntArray, terms: FloatArray, settings: Sequence[Setting]) -> FloatArray:
        """Features of one column at its levels, and zero at those of others."""
        columns = max(len(setting.singles) for setting in settings)
        levels = max(max(setting.levels, default=0) for setting in settings)
        values = self.pairs.at_levels[places, :levels].swapaxes(1, 2)
        bases = terms[:, :columns, None, : places.shape[1]] * values[:, None]
        return bases.reshape(len(settings), columns * levels, places.shape[1])

    def _added_by(self, members: Columns) -> FloatArray:
        """What the central moment of some columns adds to their cells, as a share of what independence would give."""
        part = self.moments.blocks[members].denoised
        for a in members:
            margin = self.moments.margins[a]
            part = np.tensordot(part, margin.basis / margin.probabilities[:, None], (0, 1))
        return np.asarray(part)


def soft_inverse(covariances: FloatArray) -> FloatArray:
    """Inverses that do not blow up directions that hardly occur."""
    sizes, axes = np.linalg.eigh(covariances)
    largest = sizes.max(axis=-1, initial=0.0, keepdims=True)
    sizes = np.where(largest > 0, np.maximum(sizes, LEAST_DIRECTION * largest), 1)  # 1: all of it is padding
    return np.asarray((axes / sizes[..., None, :]) @ axes.swapaxes(-1, -2))
