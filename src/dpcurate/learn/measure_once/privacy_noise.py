"""The part of a residual's covariance that comes from privacy noise, to first order (the delta method).

With W the coefficients of a regression, mu its offsets and v the noise variances, all in orthonormal
coordinates, the noise of a's and b's residual block given S is

    v_ab I (x) I + sum over terms t [v_bt W_at' W_at (x) I + v_at I (x) W_bt' W_bt]
    + v_b mu_a mu_a' (x) I + v_a I (x) mu_b mu_b' + v_count (mu_a (x) mu_b)(mu_a (x) mu_b)'
    + sum over s, t in S v_st W_as' W_as (x) W_bt' W_bt + sum over s in S v_s J_s J_s',

J_s the derivative of the block by the margin of s.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from dpcurate.learn.measure_once.blocks import Array, kron, outer
from dpcurate.learn.measure_once.regression import Regression, Regressions, Terms


def privacy_noise(
    regressions: Regressions, others: Sequence[int], column: int, terms: Terms, left: Regression, right: Regression
) -> Array:
    """For each of `others` (regressed: left) the noise covariance of its residual block with `column` (right)."""
    return _of_answers(regressions, others, column, terms, left, right) + _of_conditioning(
        regressions, terms, left, right
    )


def _of_answers(
    regressions: Regressions, others: Sequence[int], column: int, terms: Terms, left: Regression, right: Regression
) -> Array:
    """The noise of the pair itself, of both regressions, of both margins and of the count."""
    moments = regressions.moments
    left_identity, right_identity = (np.eye(side.offsets.shape[1]) for side in (left, right))
    pair = np.array([moments.noise(a, column) for a in others])
    margin = np.array([moments.margins[a].noise for a in others])
    of_terms = np.array([regressions.noises[a, terms] for a in others])
    on_left = pair[:, None, None] * left_identity + moments.margins[column].noise * outer(left.offsets, left.offsets)
    on_left = on_left + _weighted(regressions.noises[column, terms], left.squares)
    on_right = margin[:, None, None] * outer(right.offsets, right.offsets)
    on_right = on_right + _weighted(of_terms, right.squares[:, 0])
    product = outer(left.offsets, right.offsets).reshape(len(others), -1)
    count = moments.count_noise * outer(product, product)
    return np.asarray(kron(on_left, right_identity[None]) + kron(left_identity[None], on_right) + count)


def _weighted(weights: Array, squares: Array) -> Array:
    """Sum of the first axis of `squares` with each row of weights."""
    shape = squares.shape[1:]
    return np.asarray((weights @ squares.reshape(-1, prod(shape))).reshape(*weights.shape[:-1], *shape))


def _of_conditioning(regressions: Regressions, terms: Terms, left: Regression, right: Regression) -> Array:
    """What the noise in the covariances and margins of the conditioning columns does."""
    moments, total = regressions.moments, np.array(0.0)
    singles = [(i, term[0]) for i, term in enumerate(terms) if len(term) == 1]
    for i, s in singles:
        others = [(moments.noise(s, t), j) for j, t in singles if moments.measured(s, t)]
        if others:
            total = total + kron(left.squares[i], sum(noise * right.squares[j] for noise, j in others))
        slope = _slope(moments.margins[s].basis, left, right, regressions.slices[terms][i])
        total = total + moments.margins[s].noise * slope @ slope.swapaxes(1, 2)
    return total


def _slope(basis: Array, left: Regression, right: Regression, where: slice) -> Array:
    """J_s: derivative of the residual blocks by the margin of a conditioning column."""
    of_left, of_right = left.coefficients[:, where], right.coefficients[0, where]
    slope = left.offsets[:, :, None, None] * of_right.T
    slope = slope + of_left.swapaxes(1, 2)[:, :, None, :] * right.offsets[0][:, None]
    slope = slope + ((basis @ of_left).swapaxes(1, 2)[:, :, None, :] * (basis @ of_right).T) @ basis
    return np.asarray(slope.reshape(len(slope), -1, slope.shape[-1]))
