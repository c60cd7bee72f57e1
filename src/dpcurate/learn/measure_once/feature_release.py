"""Three releases: where values lie, how long rows are, and the sums of products of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcurate.arrays import FloatArray
from dpcurate.errors import QueryError
from dpcurate.learn.measure_once.constants import FeatureConstants
from dpcurate.learn.measure_once.distributions import distributions, unknown
from dpcurate.learn.measure_once.features import Features, features_of
from dpcurate.queries import (
    Answer,
    FeatureMoments,
    FeatureNorms,
    Gaussian,
    Histograms,
    Laplace,
    Queryable,
    Release,
    Statistic,
)

BINS = 240
"""Bins of the histogram of squared lengths, up to LONGEST_ROW times the mean."""
LONGEST_ROW = 6.0


@dataclass(frozen=True, slots=True)
class FeatureCovariance:
    """What was released of the features of all columns, per row."""

    blocks: tuple[tuple[int, int], ...]
    """Where each column's features begin and end."""
    covariance: FloatArray
    curved: tuple[int, ...]
    """How many of each column's features, the last, are squares of scores."""
    complete: tuple[bool, ...]
    """Whether a column's features tell all its places apart, so that regression on it alone misses nothing."""
    known: tuple[FloatArray, ...]
    """The covariance within each column, as its distribution has it."""
    noise: float
    """Noise variance of an entry off the diagonal; on it twice that."""
    rows: float


@dataclass(frozen=True, slots=True)
class Bought:
    """What the releases say, what they cost, and what was chosen."""

    released: FeatureCovariance
    costs: tuple[float, ...]
    choice: str


def buy_features(queryable: Queryable, budget: float, constants: FeatureConstants) -> Bought:
    """All three releases, for at most `budget`."""
    costs = [constants.share_histograms * budget, constants.share_norms * budget]
    costs.append(budget - sum(costs))
    _check(queryable)
    columns = queryable.schema.columns
    known, rows = distributions(_ask(queryable, Histograms(queryable.schema.names), costs[0]), columns)
    features = features_of(known, curved=True)
    curved = _noise_ratio(queryable, features, rows, costs[2]) < constants.curved_below and _fits(queryable, features)
    features = features if curved else features_of(known, curved=False)
    clip2, quantile = _clip(queryable, features, rows, costs, constants)
    released = _moments(queryable, features, clip2, rows, costs[2])
    return Bought(released, tuple(costs), _sentence(features, quantile))


def _ask(queryable: Queryable, statistic: Statistic, cost: float) -> Answer:
    cost = min(cost, queryable.remaining)
    return queryable.ask(Release(statistic, Laplace(epsilon=cost) if queryable.budget.pure else Gaussian(rho=cost)))


def _check(queryable: Queryable) -> None:
    """Refuse, before anything is spent, what the source could not add up later; costs nothing and reads nothing."""
    queryable.sensitivity(_statistic(features_of(unknown(queryable.schema.columns), curved=False), 1.0))


def _fits(queryable: Queryable, features: Sequence[Features]) -> bool:
    try:
        queryable.sensitivity(_statistic(features, 1.0))
    except QueryError:
        return False
    return True


def _statistic(features: Sequence[Features], clip2: float) -> FeatureMoments:
    """The moments to release; singles get a twentieth of what products get."""
    return FeatureMoments(tuple(f.map() for f in features), float(np.sqrt(clip2)), float(np.sqrt(0.05 * clip2 / 2)))


def _entry_noise(queryable: Queryable, features: Sequence[Features], clip2: float, cost: float) -> float:
    """Standard deviation of the noise that a sum of products would carry, from public facts."""
    size = sum(f.size for f in features)
    if queryable.budget.pure:
        return float(np.sqrt(2) * ((size - 1) / 2 + 0.71) * clip2 * 1.1 / cost)
    return float(clip2 * np.sqrt(0.5 * 1.1 / (2 * cost)))


def _noise_ratio(queryable: Queryable, features: Sequence[Features], rows: float, cost: float) -> float:
    """Noise variance of a pair of features over its sampling variance, rows being clipped at half above their mean."""
    length = 1.5 * sum(f.length for f in features)
    return _entry_noise(queryable, features, length, cost) ** 2 / rows


def _clip(
    queryable: Queryable, features: Sequence[Features], rows: float, costs: Sequence[float], constants: FeatureConstants
) -> tuple[float, float]:
    """The squared norm to clip rows at, a quantile: the less noise there is, the fewer rows are shrunk."""
    mean = sum(f.length for f in features)
    edges = np.linspace(0, LONGEST_ROW * mean, BINS + 1)[1:]
    answer = _ask(queryable, FeatureNorms(tuple(f.map() for f in features), tuple(edges)), costs[1])
    below = np.maximum.accumulate(np.cumsum(answer.value)[:-1]) / rows
    chosen = edges[min(int(np.searchsorted(below, 0.9)), BINS - 1)], 0.9
    for quantile, most in constants.quantiles:
        clip2 = float(edges[min(int(np.searchsorted(below, quantile)), BINS - 1)])
        if _entry_noise(queryable, features, clip2, costs[2]) ** 2 / rows < most:
            chosen = clip2, quantile
    return chosen


def _moments(
    queryable: Queryable, features: Sequence[Features], clip2: float, rows: float, cost: float
) -> FeatureCovariance:
    answer = _ask(queryable, _statistic(features, clip2), cost)
    ends = np.cumsum([f.size for f in features]).tolist()
    size = ends[-1]
    products = np.zeros((size, size))
    products[np.triu_indices(size, 1)] = answer.parts[1]
    products += products.T
    products[np.diag_indices(size)] = answer.parts[2]
    mean = answer.parts[0] / rows
    blocks = tuple(zip([0, *ends[:-1]], ends, strict=True))
    noise = (answer.scales[1] / rows) ** 2
    known, complete = tuple(f.covariance for f in features), tuple(f.complete for f in features)
    covariance = products / rows - np.outer(mean, mean)
    return FeatureCovariance(blocks, covariance, tuple(f.curved for f in features), complete, known, noise, rows)


def _sentence(features: Sequence[Features], quantile: float) -> str:
    bent = "scores and their powers" if any(f.curved for f in features) else "scores"
    return (
        f"measured once on {sum(f.size for f in features)} features of {len(features)} columns ({bent} for numbers and "
        f"ordinals, indicators for levels), rows longer than the {quantile:.1%} quantile shrunk to it"
    )
