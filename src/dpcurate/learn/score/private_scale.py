"""Moments on a scale that was itself released, at a small share of the budget: bounds may be far too wide."""

from __future__ import annotations

import math

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.learn.measure_once.distributions import Distribution, distributions
from dpcurate.learn.score.objectives import ReleasedMoments, TooNoisy
from dpcurate.queries import (
    FEATURE_STEPS,
    FeatureMap,
    FeatureMoments,
    Gaussian,
    Histograms,
    Queryable,
    Release,
)
from dpcurate.schema import OWN

SHARE = 0.15
"""Of the budget, for the histograms that tell centre and spread."""
FURTHEST = 3.0
"""Values end so many standard deviations from their mean."""
NORMAL_WIDTH = 2.563
"""Standard deviations of a normal between its 10 % and 90 % quantiles."""
LONGEST = 3.0
"""Rows are shrunk to so many standard deviations of the squared norm of independent columns above its mean."""


def released_moments(queryable: Queryable, rho: float) -> ReleasedMoments:
    """Two releases: where the values of each column lie, and the moments of columns centred and scaled by that."""
    known, rows = _distributions(queryable, SHARE * rho)
    d = len(known)
    clip = math.sqrt(d + LONGEST * math.sqrt(2 * d))
    statistic = FeatureMoments(tuple(map(_standardised, known)), clip)
    answer = queryable.ask(Release(statistic, Gaussian(rho=(1 - SHARE) * rho * (1 - 1e-9))))
    products = np.zeros((d, d))
    products[np.triu_indices(d, 1)] = answer.parts[1]
    products += products.T + np.diag(answer.parts[2])
    mean = answer.parts[0] / rows
    noise, own = answer.scales[1], np.ones(d, dtype=bool)
    squares = (answer.scales[2] / answer.scales[1]) ** 2 if noise else 1.0
    return ReleasedMoments(rows, mean, products / rows - np.outer(mean, mean), noise, own, squares)


def _distributions(queryable: Queryable, rho: float) -> tuple[list[Distribution], float]:
    answer = queryable.ask(Release(Histograms(queryable.schema.names), Gaussian(rho=rho)))
    known, rows = distributions(answer, queryable.schema.columns)
    if rows < 4.0 * answer.scales[0]:
        raise TooNoisy("the number of rows is lost in the noise: there are too few rows for this budget")
    return known, rows


def _standardised(known: Distribution) -> FeatureMap:
    """A column's places as numbers around 0 with a variance near 1, cut FURTHEST away; a missing cell is a 0."""
    place = np.arange(len(known.shares), dtype=np.float64)
    centre, spread = _of_levels(known.shares, place) if known.column.has_levels else _of_number(known.shares, place)
    values = np.clip((place - centre) / spread, -FURTHEST, FURTHEST)
    if known.column.missing == OWN:
        values = np.append(values, 0.0)
    return FeatureMap(known.column.name, np.rint(values * FEATURE_STEPS).astype(np.int64)[:, None])  # type: ignore[arg-type]


def _of_levels(shares: FloatArray, place: FloatArray) -> tuple[float, float]:
    mean = float(shares @ place)
    return mean, math.sqrt(max(float(shares @ (place - mean) ** 2), 1e-6))


def _of_number(shares: FloatArray, place: FloatArray) -> tuple[float, float]:
    """By quantiles: noise puts a little share far out, which would rule a variance."""
    low, middle, high = np.interp((0.1, 0.5, 0.9), np.cumsum(shares) - shares / 2, place)
    return float(middle), max(float(high - low) / NORMAL_WIDTH, 0.5)
