"""Columns regressed on the indicators of conditioning sets, many sets at once, and the noise in what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from dpcurate._typing import FloatArray, IntArray
from dpcurate.learn.measure_once.blocks import Columns, Remembered, kron_sum, outer, products, sorted_set
from dpcurate.learn.measure_once.central_moments import CentralMoments
from dpcurate.learn.measure_once.constants import LEAST_CELL
from dpcurate.learn.measure_once.designs import Designs, DesignStack, Setting, Terms

MOST_REMEMBERED = 2000
"""Regressions kept: what asks for one at a time comes back to those of late, and a large one takes a megabyte."""


class RegressedColumns(NamedTuple):
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

    def sides(self, asked: Sequence[RegressedColumns]) -> tuple[Regression, Regression]:
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


# The part of a residual's covariance that comes from privacy noise, to first order (the delta method).
#
# With W the coefficients of a regression, mu its offsets and v the noise variances, all in orthonormal
# coordinates, the noise of a's and b's residual block given S is
#
#     v_ab N_a (x) N_b + sum over terms t [v_bt W_at N_t W_at' (x) N_b + v_at N_a (x) W_bt N_t W_bt']
#     + v_b mu_a mu_a' (x) I + v_a I (x) mu_b mu_b'
#     + the noise of the count, and of the margins and pairs of the conditioning columns, v J J' each,
#
# J the derivative of the block by what is noised, and N the shape of a column's noise in pairs, which is I for
# contrasts. Left out: what the noise of lower moments does to three-way terms.


def privacy_noise(regressions: Regressions, left: Regression, right: Regression) -> FloatArray:
    """For each column regressed on the left the noise covariance of its residual block with that on the right."""
    slopes = _slopes(regressions, left, right)
    by_factors = kron_sum(*_products(regressions, left, right))
    return np.asarray(by_factors + slopes @ slopes.swapaxes(2, 3) + _crossed(_between(regressions, right), left, right))


def _between(regressions: Regressions, right: Regression) -> FloatArray:
    """Noise variances of pairs of S, (sets, terms, terms); 0 where a term is no column or a pair was not measured."""
    columns = right.design.columns
    return regressions.designs.pairs.noise[columns[:, :, None], columns[:, None, :]]


def _products(regressions: Regressions, left: Regression, right: Regression) -> tuple[FloatArray, FloatArray]:
    """Factors of Kronecker products: of the pair, of both regressions, of both margins, and of pairs of S in part.

    A pair of S adds v_st (Q_as (x) Q_bt + Q_at (x) Q_bs), Q the squares of a regression, and what `_crossed` says.
    """
    known, width, across = regressions.designs.columns, left.within.shape[-1], right.within.shape[-1]
    shapes, shape = known.shape[left.columns, :width, :width], known.shape[right.columns, :across, :across]
    eyes, eye = known.identity[left.columns, :width, :width], known.identity[right.columns, :across, :across]
    pair = regressions.designs.pairs.noise[left.columns, right.columns]
    of_column = (left.squares @ right.noises[:, :, None, :, None])[..., 0]
    of_pairs = left.squares @ _between(regressions, right)[:, None, None]
    lefts = np.empty((*shapes.shape, 3 + left.squares.shape[4]))
    lefts[..., 0] = of_column + pair[..., None, None] * shapes
    lefts[..., 1] = known.noise[right.columns][..., None, None] * outer(left.offsets, left.offsets)
    lefts[..., 2] = known.noise[left.columns][..., None, None] * eyes
    lefts[..., 3:] = left.noises[:, :, None, None] * shapes[..., None] + of_pairs
    rights = np.empty((*shape[:, 0].shape, lefts.shape[4]))
    rights[..., 0], rights[..., 1] = shape[:, 0], eye[:, 0]
    rights[..., 2], rights[..., 3:] = outer(right.offsets[:, 0], right.offsets[:, 0]), right.squares[:, 0]
    return lefts, rights


def _crossed(between: FloatArray, left: Regression, right: Regression) -> FloatArray | float:
    """The rest of a pair's noise, v_st (G_s[i, j'] G_t[i', j] + G_t[i, j'] G_s[i', j]) with G_s = W_as N_s W_bs'."""
    if between.shape[1] < 2:
        return 0.0
    some = left.design.singles
    both = products(left.shaped[..., :some], right.shaped[..., :some])
    sets, columns, i, j, _ = both.shape
    sums = both.reshape(sets, columns, i * j, some) @ left.design.terms[:, None, :, :some].swapaxes(2, 3)
    product = (sums @ between[:, None] @ sums.swapaxes(2, 3)).reshape(sets, columns, i, j, i, j)
    return np.asarray(product.transpose(0, 1, 2, 5, 4, 3).reshape(sets, columns, i * j, i * j))


def _slopes(regressions: Regressions, left: Regression, right: Regression) -> FloatArray:
    """Derivatives of the residual blocks by the count and the means of S, times standard deviations."""
    pairs, design, some = regressions.designs.pairs, right.design, right.design.singles
    bases, places = design.bases, design.places[:, :some]
    of_left, of_right = left.coefficients[..., :some], right.coefficients[..., :some]
    shares, deviations = pairs.level_shares[places][:, None, None], pairs.margin_deviations[places]
    # by the log of the count, negative: mu_a mu_b' + sum over s of W_as W_bs' / levels of s
    count = outer(left.offsets, right.offsets) + (of_left * shares) @ of_right.swapaxes(2, 3)
    # by the mean of a conditioning column, which centres its covariances and makes its variance
    means = left.offsets[..., None, None] * of_right[:, :, None]
    means = means + of_left[:, :, :, None] * right.offsets[:, :, None, :, None]
    at_left, at_right = (x @ bases[:, None].swapaxes(2, 3) for x in (of_left, of_right))
    means = means + (at_left[:, :, :, None] * at_right[:, :, None]) @ bases[:, None, None]
    count = sqrt(regressions.moments.count_noise) * count[..., None]
    slopes = np.concatenate([count, means * deviations[:, None, None, None]], axis=4)
    return slopes.reshape(*left.columns.shape, slopes.shape[2] * slopes.shape[3], some + 1)
