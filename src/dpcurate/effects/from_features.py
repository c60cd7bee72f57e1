"""Effects between numbers, from released products of their scores: regression in a joint normal distribution.

Straight lines are what a normal distribution has. Where a column is not nearly normal, nor all columns numbers, the
released products do not tell whether lines are straight, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcurate.arrays import FloatArray
from dpcurate.effects.asked import Asked
from dpcurate.effects.effect import Effect
from dpcurate.effects.gaussian import Gaussian, NormalMargin, all_numbers, gaussian, together
from dpcurate.learn.measure_once.feature_release import ReleasedFeatures
from dpcurate.schema import Schema

CLOSE = 0.015
"""A distance from a normal distribution beyond which lines bend so much that it matters."""
CLEAR = 5.0
"""What a column varies beyond those it is regressed with must exceed so many standard deviations of its noise."""
WIDE = 40
"""In more columns than this all rows are shrunk alike, and products by what rows keep on average."""
STEP = 0.05
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
        return max(m.allowed for m in self.margins) <= CLOSE or together(self.margins)

    @cached_property
    def fitted(self) -> Gaussian:
        """All columns together."""
        return gaussian(self.released, self.margins)

    def estimate(self, asked: Asked, sets: Sequence[tuple[str, ...]]) -> Effect:
        """Of the sets that tell, the one of the smallest error."""
        if not all_numbers(self.released):
            return asked.undetermined("the table has columns that are not numbers", sets[0])
        if not self.clear:
            return asked.undetermined("its columns are not normally distributed, so lines may bend", sets[0])
        bent = [name for name in (asked.cause, asked.outcome) if not self._margin(name).fits]
        if bent:
            return asked.undetermined(f"{' and '.join(bent)} not normally distributed, so lines may bend", sets[0])
        straight = [given for given in sets if all(self._margin(name).fits for name in given)]
        slopes = {given: self._slope(asked, given) for given in straight}
        known = {given: slope for given, slope in slopes.items() if slope is not None}
        if not known:
            why = "columns to adjust for are not normally distributed, or vary too little apart from the cause"
            return asked.undetermined(why, sets[0])
        given = min(known, key=lambda one: known[one].about)
        x, y = (self.schema.names.index(name) for name in (asked.cause, asked.outcome))
        ratio = float(self.fitted.spread[y] / self.fitted.spread[x])
        estimate, error = known[given].coefficient * ratio, known[given].error(self.fitted) * ratio
        return Effect.per_unit(asked.cause, asked.outcome, estimate, error, adjusted_for=given, spread=ratio)

    def _margin(self, name: str) -> NormalMargin:
        return self.margins[self.schema.names.index(name)]

    def _slope(self, asked: Asked, given: tuple[str, ...]) -> Slope | None:
        x, y, *others = (self.schema.names.index(name) for name in (asked.cause, asked.outcome, *given))
        return Slope.of(self.fitted, y, (x, *others))


@dataclass(frozen=True, slots=True, eq=False)
class Slope:
    """The coefficient of a regressor where every column has variance 1."""

    coefficient: float
    gradient: FloatArray
    """By the covariance, symmetric."""
    about: float
    """Its variance, as if no row had been shrunk."""

    @classmethod
    def of(cls, fitted: Gaussian, outcome: int, regressors: tuple[int, ...]) -> Slope | None:
        """Of the first regressor; None where noise hides how it varies apart from the others."""
        correlation = fitted.covariance / np.outer(fitted.spread, fitted.spread)
        within = correlation[np.ix_(regressors, regressors)]
        if np.linalg.eigvalsh(within)[0] < CLEAR * np.sqrt(2 * len(regressors) * fitted.noise) + 1e-6:
            return None
        inverse = np.linalg.inv(within)
        with_outcome = correlation[list(regressors), outcome]
        coefficients = inverse @ with_outcome
        gradient = _gradient(inverse[0], coefficients, outcome, regressors, len(correlation))
        left = max(1 - float(with_outcome @ coefficients), 0.0)
        about = left * float(inverse[0, 0]) / fitted.rows + _noise(fitted, gradient)
        return cls(float(coefficients[0]), gradient, about)

    def error(self, fitted: Gaussian) -> float:
        """Sampling and privacy noise of the released products, carried over to the coefficient."""
        kept = self._released(fitted)
        products = np.einsum("ri,ri->r", fitted.scores @ self.gradient, fitted.scores)
        return float(np.sqrt(products.var() / fitted.rows + _noise(fitted, self.gradient))) / abs(kept)

    def _released(self, fitted: Gaussian) -> float:
        """How much of a move of the coefficient is seen in what is released."""
        if len(self.gradient) > WIDE:
            return fitted.kept
        change = fitted.moved(STEP * self.gradient * np.outer(fitted.spread, fitted.spread)) / STEP
        return float((change * self.gradient).sum() / (self.gradient**2).sum())


def _noise(fitted: Gaussian, gradient: FloatArray) -> float:
    """A product stands in two entries of a symmetric matrix, and a square has twice its noise."""
    return 2 * float((gradient**2).sum()) * fitted.noise


def _gradient(
    row: FloatArray, coefficients: FloatArray, outcome: int, regressors: tuple[int, ...], size: int
) -> FloatArray:
    """Of the first coefficient, by the covariance in units of the spread: symmetric."""
    residual, instrument = np.zeros(size), np.zeros(size)
    residual[outcome] = 1.0
    residual[list(regressors)] = -coefficients
    instrument[list(regressors)] = row
    return np.asarray((np.outer(instrument, residual) + np.outer(residual, instrument)) / 2)
