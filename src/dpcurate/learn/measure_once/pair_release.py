"""Pairs measured around margins released before: features of levels, rows clipped, one release of their products.

A contrast centres a column at even levels, so that a row of rare levels moves it no more than any other. Around its
margin a typical row is short, and shrinking the longer half buys far less noise: in a wide table no row matters much.
What is then measured are moments of weighted rows, and margins are taken as they are among these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.learn.measure_once.blocks import Columns, helmert
from dpcurate.learn.measure_once.central_moments import CentredPairs, Margin, Released
from dpcurate.learn.measure_once.column_features import Distribution, Features, features_of
from dpcurate.learn.measure_once.constants import KEPT, LEAST_KEPT, MOST_INDUCED, TILT
from dpcurate.learn.measure_once.feature_release import Clip, Products, entry_noise, fits, norms_of, products_of
from dpcurate.queries import Queryable

LEAST_DRAWN, MOST_DRAWN = 200, 40_000
"""Rows drawn to see what dependence weighting induces: so many over the number of columns, but not fewer."""
MOST_PAIRS = 300
"""Pairs that are looked at to judge a clip."""


@dataclass(frozen=True, slots=True)
class ClipDependence:
    """Dependence that clipping induces: a row of two rare levels loses more weight than either alone would cost it."""

    lengths: tuple[FloatArray, ...]
    """The squared length of each level's features, for each column."""
    shares: tuple[FloatArray, ...]
    drawn: FloatArray
    """(columns, rows): squared lengths in rows drawn from the margins alone."""
    whole: FloatArray
    """Their sums."""
    square: float

    @classmethod
    def of(cls, features: Sequence[Features], shares: Sequence[FloatArray], square: float) -> ClipDependence:
        """From what is public: margins, features and the clip."""
        random = Random(0)  # a fixed stream: a run can be repeated
        lengths = tuple(np.asarray((one.values**2).sum(axis=1)) for one in features)
        count = max(LEAST_DRAWN, MOST_DRAWN // len(features))
        drawn = [
            random.choices(length.tolist(), p.tolist(), k=count) for length, p in zip(lengths, shares, strict=True)
        ]
        return cls(lengths, tuple(shares), np.array(drawn), np.sum(drawn, axis=0), square)

    def between(self, a: int, b: int) -> FloatArray:
        """For each pair of levels: how much likelier it is in weighted rows than if the columns stayed independent."""
        rest = self.whole - self.drawn[a] - self.drawn[b]
        total = rest[:, None, None] + self.lengths[a][:, None] + self.lengths[b]
        weighted = np.outer(self.shares[a], self.shares[b]) * np.minimum(1.0, self.square / total).mean(axis=0)
        weighted = weighted / weighted.sum()
        return np.asarray(weighted / np.outer(weighted.sum(axis=1), weighted.sum(axis=0)))

    def typical(self) -> float:
        """The squared correlation per degree of freedom that weighting induces, on average over pairs of columns."""
        size = len(self.lengths)
        pairs = list(combinations(range(size), 2))
        return float(np.mean([self._correlation(a, b) for a, b in pairs[:: max(1, len(pairs) // MOST_PAIRS)]]))

    def _correlation(self, a: int, b: int) -> float:
        free = (len(self.shares[a]) - 1) * (len(self.shares[b]) - 1)
        return float(np.sum((self.between(a, b) - 1) ** 2 * np.outer(self.shares[a], self.shares[b]))) / free


@dataclass(frozen=True, slots=True)
class ReleasedPairs:
    """Margins, and pairs around them over rows that were shrunk to one length."""

    margins: Released
    pairs: CentredPairs
    clip: Clip


@dataclass(frozen=True, slots=True)
class PairDesign:
    """What pairs would be measured with, from released margins."""

    released: Released
    features: list[Features]

    @classmethod
    def of(cls, queryable: Queryable, released: Released) -> PairDesign:
        """Features of every column's levels, centred at its released margin."""
        margins = [Margin.of(released, a) for a in range(len(released.levels))]
        known = [
            Distribution(column, margin.probabilities, noise=float(np.sqrt(margin.noise)))
            for column, margin in zip(queryable.schema.columns, margins, strict=True)
        ]
        return cls(released, features_of(known, curved=False))

    def possible(self, queryable: Queryable) -> bool:
        """Whether the source can add it up; a Laplace release of all products would be far noisier than contrasts."""
        complete = all(one.complete for one in self.features)
        return complete and not queryable.budget.pure and fits(queryable, self.features)

    @property
    def spread(self) -> float:
        """A typical variance of a feature."""
        return float(np.median([one.length / one.size for one in self.features]))


def buy_pairs(
    queryable: Queryable, design: PairDesign, costs: tuple[float, float], quantiles: Sequence[float]
) -> tuple[CentredPairs, Clip]:
    """How long rows are, then the products of their features, for at most these two costs."""
    released, features = design.released, design.features
    shares = [Margin.of(released, a).probabilities for a in range(len(features))]
    norms = norms_of(queryable, features, released.rows, costs[0])
    for quantile in quantiles:
        clip = norms.clip(quantile)
        induced = ClipDependence.of(features, shares, clip.square)
        noise = entry_noise(queryable, features, clip.square, costs[1]) / released.rows
        if induced.typical() < MOST_INDUCED * (noise / design.spread) ** 2:
            break
    answer = products_of(queryable, features, clip.square, released.rows, costs[1])
    return _centred(released, features, answer, clip, induced), clip


def _centred(
    released: Released, features: Sequence[Features], answer: Products, clip: Clip, induced: ClipDependence
) -> CentredPairs:
    """Moments per weighted row, in orthonormal coordinates, without the dependence that weighting induces."""
    blocks = [slice(*block) for block in answer.blocks]
    margins = [Margin.of(released, a) for a in range(len(features))]
    back = [_back(one) for one in features]
    shares = [
        _shares(margin, one, answer.products[block, block], clip.kept, answer.noise)
        for margin, one, block in zip(margins, features, blocks, strict=True)
    ]
    means = [share @ one.values for share, one in zip(shares, features, strict=True)]
    products = answer.products / clip.kept
    observed: dict[Columns, FloatArray] = {}
    for a, b in combinations(range(len(blocks)), 2):
        central = back[a].T @ (products[blocks[a], blocks[b]] - np.outer(means[a], means[b])) @ back[b]
        observed[a, b] = _without_induced(central, (shares[a], shares[b]), induced.between(a, b))
    return CentredPairs(observed, answer.noise / clip.kept**2, tuple(shares), tuple(one.T @ one for one in back))


def _without_induced(central: FloatArray, shares: tuple[FloatArray, FloatArray], induced: FloatArray) -> FloatArray:
    """The central moment of a table whose cells weighting has made likelier or rarer by these factors."""
    bases = [helmert(len(share)) for share in shares]
    table = (np.outer(*shares) + bases[0] @ central @ bases[1].T) / induced
    table = table / table.sum()
    apart = table - np.outer(table.sum(axis=1), table.sum(axis=0))
    return np.asarray(bases[0].T @ apart @ bases[1])


def _back(features: Features) -> FloatArray:
    """The map from centred features to centred orthonormal coordinates."""
    values = features.values - features.values.mean(axis=0)
    return np.asarray(np.linalg.lstsq(values, helmert(len(values)), rcond=None)[0])


def _shares(margin: Margin, features: Features, products: FloatArray, kept: float, noise: float) -> FloatArray:
    """A column's distribution over weighted rows: least squares from products of its features.

    As far as their noise allows; otherwise it stays at the margin.
    """
    i, j = np.triu_indices(features.size)
    before = margin.probabilities * kept
    design = np.vstack([(features.values[:, i] * features.values[:, j]).T, np.ones(len(before))])
    precision = np.append(np.where(i == j, 0.5, 1.0) / max(noise, 1e-12), 1 / (KEPT * kept) ** 2)
    moved = design.T @ (precision * (np.append(products[i, j], kept) - design @ before))
    certain = np.diag(1 / (TILT * before) ** 2) + design.T @ (precision[:, None] * design)
    weighted = before + np.linalg.solve(certain, moved)
    weighted = np.maximum(weighted, LEAST_KEPT * before)
    return np.asarray(weighted / weighted.sum())
