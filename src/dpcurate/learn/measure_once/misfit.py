"""What a regression that lacks products of its columns may have missed.

Let a and b be independent given S, and let both be regressed on terms of S. What is left of their covariance is

    the average over S of (E[a | S] - fit of a) (E[b | S] - fit of b):

a product that the regressions lack counts only as far as it moves both. How far it does was not measured, but what is
known of interactions bounds it: two causes that act together act alone, too, so that the weaker of their own effects,
times a share, is taken for the size of their product. Where one of the two columns depends on a single member of S, or
on none, nothing is missed, however many terms are lacking.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.learn.measure_once.designs import Setting
from dpcurate.learn.measure_once.regression import Regression

LEAST_VARIANCE = 1e-9
"""A coordinate of which less is left is padding, or determined."""


def misfit_variances(
    settings: Sequence[Setting], left: FloatArray, right: FloatArray, share: float, most: float
) -> FloatArray:
    """(sets, columns on the left): variance of what was missed, on the scale of canonical correlations.

    `left` and `right` are the effects of the members of each set. The size of a product of k columns is `share` to the
    power of k - 1 times the weakest effect of these; an effect counts as a variance of no more than `most`.
    """
    size = max(len(setting.singles) for setting in settings)
    products = np.zeros((len(settings), size, size))
    for product, setting in zip(products, settings, strict=True):
        product[: len(setting.singles), : len(setting.singles)] = setting.lacking
    weights = np.where(products > 0, share ** (2 * (products - 1)), 0)
    return np.asarray((_weaker(left, size, most) * _weaker(right, size, most) * weights[:, None]).max(axis=(2, 3)))


def _weaker(effects: FloatArray, size: int, most: float) -> FloatArray:
    """(sets, columns, members, members): the weaker effect of two members on each column."""
    effects = np.minimum(effects[:, :, :size], most)
    return np.minimum(effects[..., :, None], effects[..., None, :])


def member_effects(side: Regression, spread: FloatArray) -> FloatArray:
    """(sets, columns, terms): W C W' of each member, in units of what the regression leaves, over all coordinates.

    `spread` is a root of C, the covariance of the coordinates of each column.
    """
    singles = side.design.singles
    places = side.design.places[:, :singles]
    squares = (side.coefficients[..., :singles] @ spread[places[:, :, None], places[:, None]][:, None]) ** 2
    left = np.diagonal(side.within, axis1=2, axis2=3)[..., None]
    shares = np.divide(squares, left, out=np.zeros_like(squares), where=left > LEAST_VARIANCE)
    return np.asarray(shares.sum(axis=2) @ side.design.terms[..., :singles].swapaxes(1, 2))
