"""What shrinking long rows does to the means of features, so that it ties no independent columns to each other.

A row shrunk by a factor c adds c^2 times its products: the products are those of a table in which it has that weight.
About that table's means, E[c^2 f] / E[c^2], independent columns have next to no covariance. Released are the means of
c f; how far E[c^2 f] lies from these follows from released distributions, the other columns' lengths being about
independent. Around the released means a column of rare levels, whose long rows all shrink, is tied to every other one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammaincinv

from dpcurate._typing import FloatArray
from dpcurate.learn.measure_once.distributions import Distribution
from dpcurate.learn.measure_once.features import Features

QUANTILES = (np.arange(64) + 0.5) / 64
"""Of the squared length of a row but for one column."""


def weighted_means(
    known: Sequence[Distribution], features: Sequence[Features], square: float, released: FloatArray
) -> tuple[FloatArray, float]:
    """E[c^2 f] of all features and E[c^2], rows being shrunk to this squared length, from released means of c f."""
    shares = [_shares(one, len(of.values)) for one, of in zip(known, features, strict=True)]
    squares = [(of.values**2).sum(axis=1) for of in features]
    means = np.array([share @ square for share, square in zip(shares, squares, strict=True)])
    variances = np.array([s @ (x - m) ** 2 for s, x, m in zip(shares, squares, means, strict=True)])
    apart, kept = [], []
    for column, (share, own) in enumerate(zip(shares, squares, strict=True)):
        mean = max(np.delete(means, column).sum(), 1e-9)  # released histograms may make all the others constant
        variance = max(np.delete(variances, column).sum(), 1e-9)
        rest = gammaincinv(mean**2 / variance, QUANTILES) * variance / mean
        weights = np.minimum(1.0, square / np.maximum(own[:, None] + rest, 1e-12))
        apart.append((share * (weights - np.sqrt(weights)).mean(axis=1)) @ features[column].values)
        kept.append(float(share @ weights.mean(axis=1)))
    return released + np.concatenate(apart), float(np.mean(kept))


def _shares(known: Distribution, places: int) -> FloatArray:
    """Of a column's places, the last of which may be that of missing cells."""
    shares = (
        known.shares if places == len(known.shares) else np.append(known.shares * (1 - known.missing), known.missing)
    )
    return np.asarray(shares / shares.sum())
