"""Effects between numbers, from released products of their scores: regression in a joint normal distribution.

Straight lines are what a normal distribution has. Where a column is not nearly normal the released products do not
tell whether lines are straight, and nothing is said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from dpcurate._typing import FloatArray
from dpcurate.effects.effect import Effect, EffectQuestion, way_on
from dpcurate.graphs.adjustment import Adjustment
from dpcurate.learn.measure_once.column_features import Distribution
from dpcurate.learn.measure_once.feature_release import ReleasedFeatures
from dpcurate.queries import FEATURE_STEPS
from dpcurate.schema import OWN, Numeric, Schema

FIT_ROUNDS = 12
MOST_DRAWN, MOST_NUMBERS, FEW_DRAWN = 60_000, 2_000_000, 10_000
"""Rows that stand for the distribution, fewer in wide tables, and to see how it moves."""
LOUD, DRAWN = 3.6, 1.4
"""A distribution function may lie so many standard deviations of a share's noise from a normal one, and this over the
root of the rows: what a normal column shows, and few others."""
TYPICAL, SPREAD = 0.62, 0.3
"""The mean distance over columns may be this share of what one may have, plus this over the root of their number."""
BULK_SCORE = 2.0
"""Scores within which a normal distribution is laid through a released one."""
LEAST_CORRELATION_EIGENVALUE = 1e-3
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
        """Whether the released values are near enough to a normal distribution."""
        return self.distance <= self.allowed

    @classmethod
    def of(cls, known: Distribution, rows: float) -> NormalMargin:
        """By least squares of places on their scores, in the bulk."""
        column = known.column
        assert isinstance(column, Numeric)
        edges = np.linspace(column.low, column.high, len(known.shares) + 1)
        below = np.concatenate([[0.0], np.cumsum(known.shares)])
        middle, score = (edges[1:] + edges[:-1]) / 2, ndtri(np.clip(below[1:] - known.shares / 2, 1e-6, 1 - 1e-6))
        weight = np.where(np.abs(score) < BULK_SCORE, known.shares, 0.0) + 1e-12
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
        """From the answers of the default method."""
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
class GaussianFit:
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


def gaussian(released: ReleasedFeatures, margins: Sequence[NormalMargin]) -> GaussianFit:
    """Fitted to the means and products of the columns' first features."""
    firsts = [start for start, _ in released.products.blocks]
    means, products = released.products.mean[firsts], released.products.products[np.ix_(firsts, firsts)]
    scale = np.array([m.deviation for m in margins])
    made = ReleasedOf.of(released)
    mean, covariance = np.array([m.mean for m in margins]), np.diag(scale**2)
    for _ in range(FIT_ROUNDS):
        scores, kept = made.scores(drawn(mean, covariance))
        missing = products - scores.T @ scores / len(scores)
        covariance = covariance + missing * np.outer(scale, scale) / kept.mean()
        mean = mean + (means - scores.mean(axis=0)) * scale / np.sqrt(kept.mean())
    return GaussianFit(mean, covariance, made, float(kept.mean()), released.products.noise, released.rows)


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
    return np.asarray(spread[:, None] * axes * np.sqrt(np.maximum(values, LEAST_CORRELATION_EIGENVALUE)))


FURTHEST_FROM_NORMAL = 0.015
"""A distance from a normal distribution beyond which lines bend so much that it matters."""
CLEAR_VARIATION = 5.0
"""What a column varies beyond those it is regressed with must exceed so many standard deviations of its noise."""
MOST_UNSHRUNK_COLUMNS = 40
"""In more columns than this all rows are shrunk alike, and products by what rows keep on average."""
COVARIANCE_STEP = 0.05
"""How far a covariance is moved, relative to it, to see how what is released moves."""


@dataclass(frozen=True)
class FromFeatures:
    """From features of numbers."""

    released: ReleasedFeatures
    schema: Schema

    @cached_property
    def margins(self) -> tuple[NormalMargin, ...]:
        """The normal distribution nearest to each column."""
        return tuple(NormalMargin.of(known, self.released.rows) for known in self.released.distributions)

    @cached_property
    def clear(self) -> bool:
        """Whether a column that is not normal would show; or, where noise hides it in one, whether all seem to be."""
        return max(m.allowed for m in self.margins) <= FURTHEST_FROM_NORMAL or together(self.margins)

    @cached_property
    def fitted(self) -> GaussianFit:
        """All columns together."""
        return gaussian(self.released, self.margins)

    def estimate(self, asked: EffectQuestion, possible: Adjustment) -> Effect:
        """Of the sets that tell, the one of the smallest error."""
        sets = possible.sets
        if not self.clear:
            return self._undetermined(asked, "columns are not normally distributed, so lines may bend", sets[0])
        bent = [name for name in (asked.cause, asked.outcome) if not self._margin(name).fits]
        if bent:
            why = f"{' and '.join(bent)} not normally distributed, so lines may bend"
            return self._undetermined(asked, why, sets[0])
        if not self.fitted.proper:
            return self._undetermined(asked, "noise hides how much columns vary", sets[0])
        straight = [given for given in sets if all(self._margin(name).fits for name in given)]
        slopes = {given: self._slope(asked, given) for given in straight}
        known = {given: slope for given, slope in slopes.items() if slope is not None}
        if not known:
            why = "columns to adjust for are not normally distributed, or vary too little apart from the cause"
            return self._undetermined(asked, why, sets[0])
        given = min(known, key=lambda one: known[one].about)
        x, y = (self.schema.names.index(name) for name in (asked.cause, asked.outcome))
        ratio = float(self.fitted.spread[y] / self.fitted.spread[x])
        estimate, error = known[given].coefficient * ratio, known[given].error(self.fitted) * ratio
        return Effect.per_unit(asked.cause, asked.outcome, estimate, error, adjusted_for=given, spread=ratio)

    def _undetermined(self, asked: EffectQuestion, why: str, given: tuple[str, ...]) -> Effect:
        return asked.undetermined(why, given, way_on(self.schema))

    def _margin(self, name: str) -> NormalMargin:
        return self.margins[self.schema.names.index(name)]

    def _slope(self, asked: EffectQuestion, given: tuple[str, ...]) -> Slope | None:
        x, y, *others = (self.schema.names.index(name) for name in (asked.cause, asked.outcome, *given))
        return Slope.of(self.fitted, y, (x, *others))


@dataclass(frozen=True, slots=True, eq=False)
class Slope:
    """The coefficient of a regressor where every column has variance 1; the product of two sums of columns moves it.

    One is what the regressor does not share with the others, over its variance; the other what is left of the outcome.
    """

    coefficient: float
    own: FloatArray
    left: FloatArray
    about: float
    """Its variance, as if no row had been shrunk."""

    @classmethod
    def of(cls, fitted: GaussianFit, outcome: int, regressors: tuple[int, ...]) -> Slope | None:
        """Of the first regressor; None where noise hides how it varies apart from the others."""
        correlation = fitted.covariance / np.outer(fitted.spread, fitted.spread)
        within = correlation[np.ix_(regressors, regressors)]
        if np.linalg.eigvalsh(within)[0] < CLEAR_VARIATION * np.sqrt(2 * len(regressors) * fitted.noise) + 1e-6:
            return None
        inverse = np.linalg.inv(within)
        with_outcome = correlation[list(regressors), outcome]
        coefficients = inverse @ with_outcome
        own, left = np.zeros(len(correlation)), np.zeros(len(correlation))
        own[list(regressors)], left[list(regressors)], left[outcome] = inverse[0], -coefficients, 1.0
        sampled = max(1 - float(with_outcome @ coefficients), 0.0) * float(inverse[0, 0]) / fitted.rows
        return cls(float(coefficients[0]), own, left, sampled + _noise(fitted, own, left))

    def error(self, fitted: GaussianFit) -> float:
        """Sampling, privacy noise and what the fitted distribution is drawn with, carried over to the coefficient."""
        released = (fitted.scores @ self.own) * (fitted.scores @ self.left)
        whole = (fitted.standard @ self.own) * (fitted.standard @ self.left)
        drawn = float((released - whole).var()) / len(whole)  # of the draws all but their covariance is left to chance
        variance = float(released.var()) / fitted.rows + drawn + _noise(fitted, self.own, self.left)
        return float(np.sqrt(variance)) / abs(self._released(fitted))

    def _released(self, fitted: GaussianFit) -> float:
        """How much of a move of the coefficient is seen in what is released."""
        if len(self.own) > MOST_UNSHRUNK_COLUMNS:
            return fitted.kept
        gradient = (np.outer(self.own, self.left) + np.outer(self.left, self.own)) / 2
        change = fitted.moved(COVARIANCE_STEP * gradient * np.outer(fitted.spread, fitted.spread)) / COVARIANCE_STEP
        return float((change * gradient).sum() / (gradient**2).sum())


def _noise(fitted: GaussianFit, own: FloatArray, left: FloatArray) -> float:
    """Of the sum of products that moves a slope, the noise: a square has twice that of a product."""
    return float((own @ own) * (left @ left) + (own @ left) ** 2) * fitted.noise
