"""Numbers as a joint normal distribution, fitted to released products of their features.

A row's features are scores that end at a bound, in whole steps, and long rows were shrunk. All of that is public, so
what a normal distribution would have released is known: its mean and covariance are moved until it is what was
released (indirect inference; Gourieroux, Monfort and Renault 1993).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from dpcurate._typing import FloatArray
from dpcurate.learn.measure_once.distributions import Distribution
from dpcurate.learn.measure_once.feature_release import ReleasedFeatures
from dpcurate.queries import FEATURE_STEPS
from dpcurate.schema import OWN, Numeric

ROUNDS = 12
MOST_DRAWN, MOST_NUMBERS, FEW_DRAWN = 60_000, 2_000_000, 10_000
"""Rows that stand for the distribution, fewer in wide tables, and to see how it moves."""
LOUD, DRAWN = 3.6, 1.4
"""A distribution function may lie so many standard deviations of a share's noise from a normal one, and this over the
root of the rows: what a normal column shows, and few others."""
TYPICAL, SPREAD = 0.62, 0.3
"""The mean distance over columns may be this share of what one may have, plus this over the root of their number."""
BULK = 2.0
"""Scores within which a normal distribution is laid through a released one."""
FLATTEST = 1e-3
"""The smallest eigenvalue of a correlation matrix that rows are drawn for."""


@dataclass(frozen=True, slots=True)
class NormalMargin:
    """The normal distribution nearest to a released one, and the distance of their distribution functions."""

    mean: float
    deviation: float
    distance: float
    allowed: float

    @property
    def fits(self) -> bool:
        return self.distance <= self.allowed

    @classmethod
    def of(cls, known: Distribution, rows: float) -> NormalMargin:
        """By least squares of places on their scores, in the bulk."""
        column = known.column
        assert isinstance(column, Numeric)
        edges = np.linspace(column.low, column.high, len(known.shares) + 1)
        below = np.concatenate([[0.0], np.cumsum(known.shares)])
        middle, score = (edges[1:] + edges[:-1]) / 2, ndtri(np.clip(below[1:] - known.shares / 2, 1e-6, 1 - 1e-6))
        weight = np.where(np.abs(score) < BULK, known.shares, 0.0) + 1e-12
        weight = weight / weight.sum()
        at, scored = float(weight @ middle), float(weight @ score)
        slope = float(weight @ ((middle - at) * (score - scored))) / max(float(weight @ (score - scored) ** 2), 1e-12)
        deviation = max(slope, (column.high - column.low) / len(known.shares))
        mean = at - deviation * scored
        distance = float(np.abs(below[1:-1] - ndtr((edges[1:-1] - mean) / deviation)).max())
        return cls(mean, deviation, distance, LOUD * known.noise + DRAWN / float(np.sqrt(rows)))


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedOf:
    """What rows of a table release: features as their places have them, shrunk and in whole steps."""

    columns: tuple[Numeric, ...]
    values: tuple[FloatArray, ...]
    square: float

    @classmethod
    def of(cls, released: ReleasedFeatures) -> ReleasedOf:
        columns = tuple(known.column for known in released.distributions)
        return cls(columns, tuple(f.values for f in released.features), released.clip.square)  # type: ignore[arg-type]

    def scores(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Every column's first feature, shrunk; and by how much a row's products are."""
        features = [self._features(j, rows[:, j]) for j in range(len(self.columns))]
        lengths = np.sum([(one**2).sum(axis=1) for one in features], axis=0)
        shrink = np.minimum(1.0, np.sqrt(self.square / np.maximum(lengths, 1e-12)))
        first = np.column_stack([one[:, 0] for one in features]) * shrink[:, None]
        return np.trunc(first * FEATURE_STEPS) / FEATURE_STEPS, shrink**2

    def _features(self, j: int, numbers: FloatArray) -> FloatArray:
        column, values = self.columns[j], self.values[j]
        share = (numbers - column.low) / (column.high - column.low)
        place = np.clip(np.floor(share * len(values)), 0, len(values) - 1).astype(np.intp)
        return np.asarray(np.rint(values[place] * FEATURE_STEPS) / FEATURE_STEPS)


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A joint normal distribution of numbers that would have released what was released."""

    mean: FloatArray
    covariance: FloatArray
    made: ReleasedOf
    kept: float
    """What a row's products keep on average."""
    noise: float
    """Noise variance of a product, per row; of a square it is twice that."""
    rows: float

    @property
    def proper(self) -> bool:
        """Whether every column varies; noise may leave less than nothing."""
        return bool(np.isfinite(self.covariance).all() and np.diagonal(self.covariance).min() > 0)

    @property
    def spread(self) -> FloatArray:
        """Standard deviations."""
        return np.sqrt(np.diagonal(self.covariance))

    @cached_property
    def standard(self) -> FloatArray:
        """Rows that stand for it, in units of the spread."""
        return np.asarray((drawn(self.mean, self.covariance) - self.mean) / self.spread)

    @cached_property
    def scores(self) -> FloatArray:
        """The shrunk scores of rows that stand for it."""
        return self.made.scores(drawn(self.mean, self.covariance))[0]

    def moved(self, change: FloatArray) -> FloatArray:
        """How the released products move, per row, if the covariance changes by so much."""
        few = min(FEW_DRAWN, len(self.scores))
        after, _ = self.made.scores(drawn(self.mean, self.covariance + change, few))
        before = self.scores[:few]
        return np.asarray((after.T @ after - before.T @ before) / few)


def gaussian(released: ReleasedFeatures, margins: Sequence[NormalMargin]) -> Gaussian:
    """Fitted to the means and products of the columns' first features."""
    firsts = [start for start, _ in released.products.blocks]
    means, products = released.products.mean[firsts], released.products.products[np.ix_(firsts, firsts)]
    scale = np.array([m.deviation for m in margins])
    made = ReleasedOf.of(released)
    mean, covariance = np.array([m.mean for m in margins]), np.diag(scale**2)
    for _ in range(ROUNDS):
        scores, kept = made.scores(drawn(mean, covariance))
        missing = products - scores.T @ scores / len(scores)
        covariance = covariance + missing * np.outer(scale, scale) / kept.mean()
        mean = mean + (means - scores.mean(axis=0)) * scale / np.sqrt(kept.mean())
    return Gaussian(mean, covariance, made, float(kept.mean()), released.products.noise, released.rows)


def together(margins: Sequence[NormalMargin]) -> bool:
    """Whether columns, taken together, are as near to normal as normal columns are: many show what one hides."""
    typical = float(np.mean([m.distance / m.allowed for m in margins]))
    return typical <= TYPICAL + SPREAD / math.sqrt(len(margins))


def all_numbers(released: ReleasedFeatures) -> bool:
    """Whether every column is a number without bins, and without missing cells of its own."""
    columns = [known.column for known in released.distributions]
    return all(isinstance(c, Numeric) and not c.has_levels and c.missing != OWN for c in columns)


def drawn(mean: FloatArray, covariance: FloatArray, first: int | None = None) -> FloatArray:
    """Rows that stand for a normal distribution, or the first of them."""
    return np.asarray(_even(len(mean))[:first] @ _root(covariance).T + mean)


@lru_cache(maxsize=2)
def _even(columns: int) -> FloatArray:
    """Rows of independent standard normal numbers, spread evenly (Richtmyer), of mean 0 and covariance 1 exactly."""
    count = min(MOST_DRAWN, max(MOST_NUMBERS // columns, 4 * columns))
    steps = np.sqrt(_primes(columns)) % 1
    places = (np.arange(1, count + 1)[:, None] * steps + 0.5) % 1
    normal = ndtri(np.clip(places, 1e-9, 1 - 1e-9))
    normal = normal - normal.mean(axis=0)
    root = np.linalg.cholesky(normal.T @ normal / count)
    return np.asarray(np.linalg.solve(root, normal.T).T)


def _primes(count: int) -> FloatArray:
    found: list[int] = []
    number = 2
    while len(found) < count:
        if all(number % p for p in found if p * p <= number):
            found.append(number)
        number += 1
    return np.array(found, dtype=np.float64)


def _root(covariance: FloatArray) -> FloatArray:
    """A root of the covariance, or of the nearest that is one."""
    spread = np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
    values, axes = np.linalg.eigh(covariance / np.outer(spread, spread))
    return np.asarray(spread[:, None] * axes * np.sqrt(np.maximum(values, FLATTEST)))
