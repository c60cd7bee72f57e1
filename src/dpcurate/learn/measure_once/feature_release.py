"""Three releases: where values lie, how long rows are, and the sums of products of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv

from dpcurate._typing import FloatArray
from dpcurate.errors import QueryError
from dpcurate.learn.measure_once.column_features import (
    Distribution,
    Features,
    distributions,
    features_of,
    row_count,
    unknown,
)
from dpcurate.learn.measure_once.constants import (
    BINS,
    LONGEST_ROW,
    MEANS,
    MEANS_IF_NOISY,
    MOST_NORM_NOISE,
    NOISY_FROM,
    SHORTEST,
    FeatureConstants,
)
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

# What shrinking long rows does to the means of features, so that it ties no independent columns to each other.
#
# A row shrunk by a factor c adds c^2 times its products: the products are those of a table in which it has that weight.
# About that table's means, E[c^2 f] / E[c^2], independent columns have next to no covariance. Released are the means of
# c f; how far E[c^2 f] lies from these follows from released distributions, the other columns' lengths being about
# independent. Around the released means a column of rare levels, whose long rows all shrink, is tied to every other
# one.

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


@dataclass(frozen=True, slots=True)
class FeatureCovariance:
    """What was released of the features of all columns, per row."""

    blocks: tuple[tuple[int, int], ...]
    """Where each column's features begin and end."""
    covariance: FloatArray
    curved: tuple[int, ...]
    """How many of each column's features, the last, are waves."""
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

    answers: ReleasedFeatures
    released: FeatureCovariance
    costs: tuple[float, ...]
    choice: str
    rows: float
    """As released: it may be below zero."""
    rows_noise: float


def buy_features(queryable: Queryable, budget: float, constants: FeatureConstants) -> Bought:
    """All three releases, for at most `budget`."""
    _check(queryable)
    columns = queryable.schema.columns
    histograms = _ask(queryable, Histograms(queryable.schema.names), constants.share_histograms * budget)
    counted, rows_noise = row_count(histograms, columns)
    known, rows = distributions(histograms, columns)
    costs = [constants.share_histograms * budget, norms_cost(queryable, rows, constants.share_norms * budget)]
    costs.append(budget - sum(costs))
    features = features_of(known, curved=True)
    curved = _noise(queryable, features, rows, costs[2]) < constants.curved_below and fits(queryable, features)
    features = features if curved else features_of(known, curved=False)
    clip = _clip(queryable, features, rows, costs[1:], constants)
    noisy = entry_noise(queryable, features, clip.square, costs[2]) ** 2 > NOISY_FROM * rows
    means = MEANS_IF_NOISY if noisy else MEANS
    products = products_of(queryable, features, clip.square, rows, costs[2], means)
    answers = ReleasedFeatures(tuple(known), tuple(features), products, clip, rows)
    released = _covariance(answers)
    return Bought(answers, released, tuple(costs), _sentence(features, clip.quantile, costs[1]), counted, rows_noise)


def _ask(queryable: Queryable, statistic: Statistic, cost: float) -> Answer:
    cost = min(cost, queryable.remaining)
    return queryable.ask(Release(statistic, Laplace(epsilon=cost) if queryable.budget.pure else Gaussian(rho=cost)))


def _check(queryable: Queryable) -> None:
    """Refuse, before anything is spent, what the source could not add up later; costs nothing and reads nothing."""
    queryable.sensitivity(_statistic(features_of(unknown(queryable.schema.columns), curved=False), 1.0))


def fits(queryable: Queryable, features: Sequence[Features]) -> bool:
    """Whether the source can add up the products of these features; costs nothing and reads nothing."""
    try:
        queryable.sensitivity(_statistic(features, 1.0))
    except QueryError:
        return False
    return True


def _statistic(features: Sequence[Features], clip2: float, means: float = MEANS) -> FeatureMoments:
    """The moments to release; means get this share of what products get."""
    return FeatureMoments(tuple(f.map() for f in features), float(np.sqrt(clip2)), float(np.sqrt(means * clip2 / 2)))


def entry_noise(queryable: Queryable, features: Sequence[Features], clip2: float, cost: float) -> float:
    """Standard deviation of the noise that a sum of products would carry, from public facts."""
    size = sum(f.size for f in features)
    if queryable.budget.pure:
        return float(np.sqrt(2) * ((size - 1) / 2 + 0.71) * clip2 * 1.1 / cost)
    return float(clip2 * np.sqrt(0.5 * 1.1 / (2 * cost)))


def _noise(queryable: Queryable, features: Sequence[Features], rows: float, cost: float) -> float:
    """Noise variance of the mean product of two features, rows being clipped at half above their mean."""
    length = 1.5 * sum(f.length for f in features)
    return (entry_noise(queryable, features, length, cost) / rows) ** 2


@dataclass(frozen=True, slots=True)
class Clip:
    """Rows of a squared norm above `square`, a quantile of what there is, are shrunk to it."""

    square: float
    quantile: float
    kept: float
    """What a row's products keep on average: 1 if it is not shrunk, otherwise its factor squared."""


@dataclass(frozen=True, slots=True)
class Norms:
    """How long rows are: the share of rows of a squared norm up to each edge."""

    edges: FloatArray
    below: FloatArray

    def clip(self, quantile: float) -> Clip:
        """Rows shrunk to a quantile."""
        square = float(self.edges[min(int(np.searchsorted(self.below, quantile)), BINS - 1)])
        shares = np.diff(self.below, prepend=0.0, append=1.0)
        middle = np.append(self.edges - self.edges[0] / 2, self.edges[-1])
        kept = np.minimum(1.0, square / middle)
        return Clip(square, quantile, float(shares @ kept))


def lengths_of(features: Sequence[Features]) -> FloatArray:
    """The mean squared length of each column's features; released histograms may give a column one place alone."""
    return np.array([max(f.length, SHORTEST) for f in features])


def norms_of(queryable: Queryable, features: Sequence[Features], rows: float, cost: float) -> Norms:
    """One release of a histogram of squared norms, or, at no cost, that of independent columns."""
    edges = np.linspace(0, LONGEST_ROW * lengths_of(features).sum(), BINS + 1)[1:]
    if not cost:
        return Norms(edges, _of_independent(features, edges))
    answer = _ask(queryable, FeatureNorms(tuple(f.map() for f in features), tuple(edges)), cost)
    below = np.clip(np.maximum.accumulate(np.cumsum(answer.value)[:-1]) / rows, 0.0, 1.0)
    return Norms(edges, np.asarray(below, dtype=np.float64))


def norms_cost(queryable: Queryable, rows: float, cost: float) -> float:
    """What to pay for norms: nothing where noise would fill their histogram."""
    noise = np.sqrt(2) / cost if queryable.budget.pure else np.sqrt(0.5 / cost)
    return cost if noise * np.sqrt(BINS / LONGEST_ROW) <= MOST_NORM_NOISE * rows else 0.0


def _of_independent(features: Sequence[Features], edges: FloatArray) -> FloatArray:
    """The share of rows up to each squared norm if columns were independent and normal, by a gamma distribution."""
    from scipy.special import gammainc

    lengths = lengths_of(features)
    spread = 2 * float(lengths @ lengths) / float(lengths.sum())
    return np.asarray(gammainc(lengths.sum() / spread, edges / spread), dtype=np.float64)


def _clip(
    queryable: Queryable, features: Sequence[Features], rows: float, costs: Sequence[float], constants: FeatureConstants
) -> Clip:
    """Where to clip rows: the less noise there is, the fewer are shrunk. `costs`: of this, and of the moments."""
    norms = norms_of(queryable, features, rows, costs[0])
    if not costs[0]:
        return norms.clip(constants.loud_quantile)
    chosen = norms.clip(0.9)
    for quantile, most in constants.quantiles:
        clip = norms.clip(quantile)
        if entry_noise(queryable, features, clip.square, costs[1]) ** 2 / rows < most:
            chosen = clip
    return chosen


@dataclass(frozen=True, slots=True)
class Products:
    """Means of the features of clipped rows and of their products, noised."""

    blocks: tuple[tuple[int, int], ...]
    mean: FloatArray
    products: FloatArray
    noise: float


@dataclass(frozen=True, slots=True)
class ReleasedFeatures:
    """Distributions of all columns, and the products of their features over rows shrunk to one length."""

    distributions: tuple[Distribution, ...]
    features: tuple[Features, ...]
    products: Products
    clip: Clip
    rows: float


def products_of(
    queryable: Queryable,
    features: Sequence[Features],
    square: float,
    rows: float,
    cost: float,
    means: float = MEANS,
) -> Products:
    """One release of all products of features."""
    answer = _ask(queryable, _statistic(features, square, means), cost)
    ends = np.cumsum([f.size for f in features]).tolist()
    products = np.zeros((ends[-1], ends[-1]))
    products[np.triu_indices(ends[-1], 1)] = answer.parts[1]
    products += products.T
    products[np.diag_indices(ends[-1])] = answer.parts[2]
    blocks = tuple(zip([0, *ends[:-1]], ends, strict=True))
    return Products(blocks, answer.parts[0] / rows, products / rows, (answer.scales[1] / rows) ** 2)


def _covariance(answers: ReleasedFeatures) -> FeatureCovariance:
    """About the means of the table in which a shrunk row has less weight."""
    features, released, rows = answers.features, answers.products, answers.rows
    known, complete = tuple(f.covariance for f in features), tuple(f.complete for f in features)
    mean, weight = weighted_means(answers.distributions, features, answers.clip.square, released.mean)
    covariance = released.products - np.outer(mean, mean) / weight
    curved = tuple(f.curved for f in features)
    return FeatureCovariance(released.blocks, covariance, curved, complete, known, released.noise, rows)


def _sentence(features: Sequence[Features], quantile: float, paid: float) -> str:
    bent = "scores and waves" if any(f.curved for f in features) else "scores"
    of = "" if paid else " of rows of independent columns"
    return (
        f"released: {sum(f.size for f in features)} features of {len(features)} columns ({bent} for numbers and "
        f"ordinals, indicators for levels); long rows were clipped (to the {quantile:.1%} quantile{of})"
    )
