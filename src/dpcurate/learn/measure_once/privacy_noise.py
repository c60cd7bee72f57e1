"""The part of a residual's covariance that comes from privacy noise, to first order (the delta method).

With W the coefficients of a regression, mu its offsets and v the noise variances, all in orthonormal
coordinates, the noise of a's and b's residual block given S is

    v_ab N_a (x) N_b + sum over terms t [v_bt W_at' N_t W_at (x) N_b + v_at N_a (x) W_bt' N_t W_bt]
    + v_b mu_a mu_a' (x) I + v_a I (x) mu_b mu_b'
    + the noise of the count, and of the margins and pairs of the conditioning columns, v J J' each,

J the derivative of the block by what is noised, and N the shape of a column's noise in pairs, which is I for
contrasts. Left out: what the noise of lower moments does to three-way terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from dpcurate.arrays import FloatArray
from dpcurate.learn.measure_once.blocks import identity, kron_sum, outer
from dpcurate.learn.measure_once.regression import Regression, Regressions, Terms


def privacy_noise(
    regressions: Regressions, others: Sequence[int], column: int, terms: Terms, left: Regression, right: Regression
) -> FloatArray:
    """For each of `others` (regressed: left) the noise covariance of its residual block with `column` (right)."""
    slopes = _slopes(sqrt(regressions.moments.count_noise), left, right)
    products = kron_sum(*_products(regressions, others, column, terms, left, right))
    return np.asarray(products + slopes @ slopes.swapaxes(1, 2) + _crossed(left, right))


def _products(
    regressions: Regressions, others: Sequence[int], column: int, terms: Terms, left: Regression, right: Regression
) -> tuple[FloatArray, FloatArray]:
    """Factors of Kronecker products: of the pair, of both regressions, of both margins, and of pairs of S in part.

    A pair of S adds v_st (Q_as (x) Q_bt + Q_at (x) Q_bs), Q the squares of a regression, and what `_crossed` says.
    """
    between, shapes, shape = right.design.between, regressions.shapes(others), regressions.shapes([column])[0]
    of_column, of_others = regressions.noises([column], terms)[0], regressions.noises(others, terms)
    pair, margin = regressions.pairs.noise[others, column], regressions.margin_noise[others]
    squares = left.squares.reshape(len(others), len(terms), shapes[0].size)
    eye_left, eye_right = identity(shapes.shape[1]), identity(len(shape))
    lefts = np.empty((len(others), 3 + len(terms), *eye_left.shape))
    lefts[:, 0] = (of_column @ squares).reshape(-1, *eye_left.shape) + pair[:, None, None] * shapes
    lefts[:, 1] = regressions.margin_noise[column] * outer(left.offsets, left.offsets)
    lefts[:, 2] = margin[:, None, None] * eye_left
    lefts[:, 3:] = of_others[:, :, None, None] * shapes[:, None]
    if len(between) > 1:
        of_pairs = between @ squares[:, : len(between)]
        lefts[:, 3 : 3 + len(between)] += of_pairs.reshape(*of_pairs.shape[:2], *eye_left.shape)
    rights = [shape[None], eye_right[None], outer(right.offsets, right.offsets), right.squares[0]]
    return lefts, np.concatenate(rights)


def _crossed(left: Regression, right: Regression) -> FloatArray | float:
    """The rest of a pair's noise, v_st (G_s[i, j'] G_t[i', j] + G_t[i, j'] G_s[i', j]) with G_s = W_as' N_s W_bs."""
    design = right.design
    if len(design.between) < 2:
        return 0.0
    size, starts = design.coordinates.size, design.starts[: len(design.between)]
    both = np.add.reduceat(outer(left.shaped[:, :size], right.shaped[:, :size]), starts, axis=1)
    flat, (i, j) = both.reshape(*both.shape[:2], -1), both.shape[2:]
    product = (flat.swapaxes(1, 2) @ (design.between @ flat)).reshape(-1, i, j, i, j)
    return np.asarray(product.transpose(0, 1, 4, 3, 2).reshape(-1, i * j, i * j))


def _slopes(count_noise: float, left: Regression, right: Regression) -> FloatArray:
    """Derivatives of the residual blocks by the count and the means of S, times standard deviations."""
    design = right.design
    size, basis = design.coordinates.size, design.basis
    of_left, of_right = left.coefficients[:, :size].swapaxes(1, 2), right.coefficients[0, :size].T
    # by the log of the count, negative: mu_a mu_b' + sum over s of W_as' W_bs / levels of s
    count = outer(left.offsets, right.offsets) + (of_left * design.level_shares) @ of_right.T
    # by the mean of a conditioning column, which centres its covariances and makes its variance
    means = left.offsets[:, :, None, None] * of_right + of_left[:, :, None, :] * right.offsets[0][:, None]
    means = means + ((of_left @ basis.T)[:, :, None, :] * (of_right @ basis.T)) @ basis
    slopes = np.concatenate([count_noise * count[..., None], means * design.margin_noise], axis=3)
    return slopes.reshape(len(slopes), -1, size + 1)
