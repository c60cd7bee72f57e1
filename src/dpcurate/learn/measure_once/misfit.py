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

from dpcurate.arrays import FloatArray
from dpcurate.learn.measure_once.designs import Setting
from dpcurate.learn.measure_once.regression import Regression


def misfit_variances(
    settings: Sequence[Setting], left: Regression, right: Regression, share: float, most: float
) -> FloatArray:
    """(sets, columns on the left): variance of what was missed, on the scale of canonical correlations.

    The size of a product of k columns is `share` to the power of k - 1 times the weakest effect of these; a column's
    effect counts as a variance of no more than `most`, in units of what the regression leaves.
    """
    size = max(len(setting.singles) for setting in settings)
    products = np.zeros((len(settings), size, size))
    for product, setting in zip(products, settings, strict=True):
        product[: len(setting.singles), : len(setting.singles)] = setting.lacking
    weights = np.where(products > 0, share ** (2 * (products - 1)), 0)
    return np.asarray((_weaker(left, size, most) * _weaker(right, size, most) * weights[:, None]).max(axis=(2, 3)))


def _weaker(side: Regression, size: int, most: float) -> FloatArray:
    """(sets, columns, members, members): the weaker effect of two members on each column."""
    effects = np.minimum(side.effects[:, :, :size], most)
    return np.minimum(effects[..., :, None], effects[..., None, :])
