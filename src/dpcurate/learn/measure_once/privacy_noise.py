"""The part of a residual's covariance that comes from privacy noise, to first order (the delta method).

With W the coefficients of a regression, mu its offsets and v the noise variances, all in orthonormal
coordinates, the noise of a's and b's residual block given S is

    v_ab N_a (x) N_b + sum over terms t [v_bt W_at N_t W_at' (x) N_b + v_at N_a (x) W_bt N_t W_bt']
    + v_b mu_a mu_a' (x) I + v_a I (x) mu_b mu_b'
    + the noise of the count, and of the margins and pairs of the conditioning columns, v J J' each,

J the derivative of the block by what is noised, and N the shape of a column's noise in pairs, which is I for
contrasts. Left out: what the noise of lower moments does to three-way terms.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.learn.measure_once.blocks import kron_sum, outer, products
from dpcurate.learn.measure_once.regression import Regression, Regressions


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
