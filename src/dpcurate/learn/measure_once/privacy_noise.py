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

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import prod, sqrt

import numpy as np

from dpcurate.arrays import FloatArray
from dpcurate.learn.measure_once.blocks import kron, outer
from dpcurate.learn.measure_once.moments import CentralMoments
from dpcurate.learn.measure_once.regression import Regression, Regressions, Terms

Single = tuple[int, FloatArray, FloatArray]
"""A conditioning column and its coefficients W' in the regressions of both sides."""


def privacy_noise(
    regressions: Regressions, others: Sequence[int], column: int, terms: Terms, left: Regression, right: Regression
) -> FloatArray:
    """For each of `others` (regressed: left) the noise covariance of its residual block with `column` (right)."""
    slopes = [sqrt(variance) * slope for variance, slope in _slopes(regressions, terms, left, right)]
    all_slopes = np.concatenate(slopes, axis=2)
    own = _of_the_two(regressions, others, column, terms, left, right)
    return np.asarray(own + all_slopes @ all_slopes.swapaxes(1, 2))


def _of_the_two(
    regressions: Regressions, others: Sequence[int], column: int, terms: Terms, left: Regression, right: Regression
) -> FloatArray:
    """The noise of the pair itself, of both regressions and of both margins."""
    moments = regressions.moments
    left_identity, right_identity = (np.eye(side.offsets.shape[1])[None] for side in (left, right))
    shapes, shape = np.array([moments.margins[a].shape for a in others]), moments.margins[column].shape[None]
    pair = np.array([moments.noise(a, column) for a in others])
    margin = np.array([moments.margins[a].noise for a in others])
    of_terms = np.array([regressions.noises[a, terms] for a in others])
    on_left = pair[:, None, None] * shapes + _weighted(regressions.noises[column, terms], left.squares)
    on_right = _weighted(of_terms, right.squares[:, 0])
    of_left = moments.margins[column].noise * outer(left.offsets, left.offsets)
    of_right = margin[:, None, None] * outer(right.offsets, right.offsets)
    return kron(on_left, shape) + kron(shapes, on_right) + kron(of_left, right_identity) + kron(left_identity, of_right)


def _weighted(weights: FloatArray, squares: FloatArray) -> FloatArray:
    """Sum of the first axis of `squares` with each row of weights."""
    shape = squares.shape[1:]
    return np.asarray((weights @ squares.reshape(-1, prod(shape))).reshape(*weights.shape[:-1], *shape))


def _slopes(
    regressions: Regressions, terms: Terms, left: Regression, right: Regression
) -> Iterator[tuple[float, FloatArray]]:
    """Noise variances, and derivatives of the residual blocks by what has them: count, margins and pairs of S."""
    moments, slices = regressions.moments, regressions.slices[terms]
    singles = [
        (term[0], left.coefficients[:, where].swapaxes(1, 2), right.coefficients[0, where].T)
        for term, where in zip(terms, slices, strict=True)
        if len(term) == 1
    ]
    yield moments.count_noise, _count_slope(moments, singles, left, right)
    for single in singles:
        margin = moments.margins[single[0]]
        yield margin.noise, _margin_slope(margin.basis, single, left, right)
    for one, other in combinations(singles, 2):
        if moments.measured(one[0], other[0]):
            yield moments.noise(one[0], other[0]), _pair_slope(_shaped(moments, one), _shaped(moments, other))


def _count_slope(moments: CentralMoments, singles: list[Single], left: Regression, right: Regression) -> FloatArray:
    """By the log of the count, negative: mu_a mu_b' + sum over s of W_as' W_bs / levels of s."""
    slope = outer(left.offsets, right.offsets)
    for s, of_left, of_right in singles:
        slope = slope + of_left @ of_right.T / moments.levels[s]
    return slope.reshape(len(slope), -1, 1)


def _margin_slope(basis: FloatArray, single: Single, left: Regression, right: Regression) -> FloatArray:
    """By the mean of a conditioning column, which centres its covariances and makes its variance."""
    _, of_left, of_right = single
    slope = left.offsets[:, :, None, None] * of_right + of_left[:, :, None, :] * right.offsets[0][:, None]
    slope = slope + ((of_left @ basis.T)[:, :, None, :] * (of_right @ basis.T)) @ basis
    return np.asarray(slope.reshape(len(slope), -1, slope.shape[-1]))


def _shaped(moments: CentralMoments, single: Single) -> Single:
    """Coefficients in coordinates in which the noise of the column's pairs has no shape."""
    column, of_left, of_right = single
    root = moments.margins[column].root
    return column, of_left @ root, of_right @ root


def _pair_slope(one: Single, other: Single) -> FloatArray:
    """By the covariance of two conditioning columns: W_as (x) W_bt + W_at (x) W_bs."""
    (_, left_s, right_s), (_, left_t, right_t) = one, other
    slope = left_s[:, :, None, :, None] * right_t[:, None, :] + left_t[:, :, None, None, :] * right_s[:, :, None]
    return np.asarray(slope.reshape(len(slope), left_s.shape[1] * len(right_s), -1))
