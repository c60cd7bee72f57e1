"""How one column follows from others: a normal number, a cut normal number, or a choice among levels.

Effects of parents add up, on the number's own scale, behind the cuts, or in the log odds of levels. Each link draws a
column from even numbers between 0 and 1 and has the derivatives of its log likelihood (scores), by which any mean of a
simulated table is differentiated: d E[h] / d parameter = E[h score].
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from dpcurate._typing import FloatArray

LIKELY_EFFECT = 2.0
"""How far the effect of a parent may well reach before anything is seen, in standard deviations or log odds."""
LIKELY_INTERCEPT = 5.0
"""The same of where a column lies."""
LEAST_PROBABILITY = 1e-9
FURTHEST_LOG_SPREAD = 8.0


class ColumnLink(Protocol):
    """A column given `parents` numbers; parameters come as one vector."""

    @property
    def start(self) -> FloatArray:
        """Parameters of a column that nothing moves."""
        ...

    @property
    def prior(self) -> FloatArray:
        """How far each parameter may well lie from where it starts."""
        ...

    def draw(self, at: FloatArray, given: FloatArray, even: FloatArray) -> Any:
        """Values: latent numbers, or places of levels."""
        ...

    def scores(self, at: FloatArray, given: FloatArray, values: Any) -> FloatArray:
        """Of every row, the derivative of its log likelihood by each parameter."""
        ...


@dataclass(frozen=True, slots=True)
class NormalLink:
    """A number: intercept, effects, logarithm of the spread that is left."""

    parents: int

    @property
    def start(self) -> FloatArray:
        """Where fitting starts."""
        return np.zeros(self.parents + 2)

    @property
    def prior(self) -> FloatArray:
        """Standard deviations of the parameters before anything is seen."""
        return np.array([LIKELY_INTERCEPT, *[LIKELY_EFFECT] * self.parents, LIKELY_INTERCEPT])

    def mean(self, at: FloatArray, given: FloatArray) -> FloatArray:
        """The mean given the parents."""
        return np.asarray(at[0] + given @ at[1:-1])

    def spread(self, at: FloatArray) -> float:
        """The standard deviation given the parents."""
        return float(np.exp(np.clip(at[-1], -FURTHEST_LOG_SPREAD, FURTHEST_LOG_SPREAD)))

    def draw(self, at: FloatArray, given: FloatArray, even: FloatArray) -> FloatArray:
        """Values given the parents, from uniform numbers."""
        return np.asarray(self.mean(at, given) + self.spread(at) * ndtri(even))

    def scores(self, at: FloatArray, given: FloatArray, values: FloatArray) -> FloatArray:
        """The slope of each log likelihood in the parameters."""
        left = (values - self.mean(at, given)) / self.spread(at)
        by_mean = left / self.spread(at)
        return np.column_stack([by_mean, given * by_mean[:, None], left**2 - 1])


@dataclass(frozen=True, slots=True, eq=False)
class OrderedProbit:
    """Ordered levels: cuts of a normal number of variance 1, then effects on its mean (ordered probit)."""

    parents: int
    shares: FloatArray

    @property
    def start(self) -> FloatArray:
        """Where fitting starts."""
        return np.concatenate([ndtri(np.clip(np.cumsum(self.shares)[:-1], 1e-4, 1 - 1e-4)), np.zeros(self.parents)])

    @property
    def prior(self) -> FloatArray:
        """Standard deviations of the parameters before anything is seen."""
        return np.array([*[LIKELY_INTERCEPT] * (len(self.shares) - 1), *[LIKELY_EFFECT] * self.parents])

    def _parts(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        cuts = np.maximum.accumulate(at[: len(self.shares) - 1])
        return np.concatenate([[-np.inf], cuts, [np.inf]]), at[len(self.shares) - 1 :]

    def draw(self, at: FloatArray, given: FloatArray, even: FloatArray) -> Any:
        """Levels given the parents, from uniform numbers."""
        cuts, effects = self._parts(at)
        return np.searchsorted(cuts[1:-1], given @ effects + ndtri(even))

    def chances(self, at: FloatArray, given: FloatArray) -> FloatArray:
        """The probability of each level given the parents."""
        cuts, effects = self._parts(at)
        return np.diff(ndtr(cuts - (given @ effects)[:, None]), axis=1)

    def scores(self, at: FloatArray, given: FloatArray, values: Any) -> FloatArray:
        """The slope of each log likelihood in the parameters."""
        cuts, effects = self._parts(at)
        mean = given @ effects
        below, above = cuts[values] - mean, cuts[values + 1] - mean
        chance = np.maximum(ndtr(above) - ndtr(below), LEAST_PROBABILITY)
        lower, upper = _density(below) / chance, _density(above) / chance
        by_cut = np.zeros((len(mean), len(cuts)))
        rows = np.arange(len(mean))
        by_cut[rows, values] -= lower
        by_cut[rows, values + 1] += upper
        return np.column_stack([by_cut[:, 1:-1], given * (lower - upper)[:, None]])


@dataclass(frozen=True, slots=True, eq=False)
class MultinomialLogit:
    """Levels without order: log odds of each but the first, an intercept and effects for each (multinomial logit)."""

    parents: int
    shares: FloatArray

    @property
    def start(self) -> FloatArray:
        """Where fitting starts."""
        odds = np.log(np.maximum(self.shares, 1e-4))
        return np.column_stack([odds[1:] - odds[0], np.zeros((len(odds) - 1, self.parents))]).ravel()

    @property
    def prior(self) -> FloatArray:
        """Standard deviations of the parameters before anything is seen."""
        return np.tile([LIKELY_INTERCEPT, *[LIKELY_EFFECT] * self.parents], len(self.shares) - 1)

    def chances(self, at: FloatArray, given: FloatArray) -> FloatArray:
        """The probability of each level given the parents."""
        effects = at.reshape(len(self.shares) - 1, -1)
        odds = np.column_stack([np.zeros(len(given)), effects[:, 0] + given @ effects[:, 1:].T])
        weights = np.exp(odds - odds.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def draw(self, at: FloatArray, given: FloatArray, even: FloatArray) -> Any:
        """Levels given the parents, from uniform numbers."""
        below = np.cumsum(self.chances(at, given), axis=1)[:, :-1]
        return (below < even[:, None]).sum(axis=1)

    def scores(self, at: FloatArray, given: FloatArray, values: Any) -> FloatArray:
        """The slope of each log likelihood in the parameters."""
        left = -self.chances(at, given)
        left[np.arange(len(values)), values] += 1
        regressors = np.column_stack([np.ones(len(given)), given])
        return np.asarray((left[:, 1:, None] * regressors[:, None, :]).reshape(len(given), -1))


def _density(x: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-(x**2) / 2) / sqrt(2 * pi))
