"""Effects between numbers, from released products of their scores: regression in a joint normal distribution.

Straight lines are what a normal distribution has. Where a column is not nearly normal the released products do not
tell whether lines are straight, and nothing is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.effects.effect import Effect
from dpcurate.effects.gaussian import Gaussian, NormalMargin, gaussian, together
from dpcurate.effects.question import Question, way_on
from dpcurate.graphs.adjustment import Adjustment
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

    def estimate(self, asked: Question, possible: Adjustment) -> Effect:
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

    def _undetermined(self, asked: Question, why: str, given: tuple[str, ...]) -> Effect:
        return asked.undetermined(why, given, way_on(self.schema))

    def _margin(self, name: str) -> NormalMargin:
        return self.margins[self.schema.names.index(name)]

    def _slope(self, asked: Question, given: tuple[str, ...]) -> Slope | None:
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
    def of(cls, fitted: Gaussian, outcome: int, regressors: tuple[int, ...]) -> Slope | None:
        """Of the first regressor; None where noise hides how it varies apart from the others."""
        correlation = fitted.covariance / np.outer(fitted.spread, fitted.spread)
        within = correlation[np.ix_(regressors, regressors)]
        if np.linalg.eigvalsh(within)[0] < CLEAR * np.sqrt(2 * len(regressors) * fitted.noise) + 1e-6:
            return None
        inverse = np.linalg.inv(within)
        with_outcome = correlation[list(regressors), outcome]
        coefficients = inverse @ with_outcome
        own, left = np.zeros(len(correlation)), np.zeros(len(correlation))
        own[list(regressors)], left[list(regressors)], left[outcome] = inverse[0], -coefficients, 1.0
        sampled = max(1 - float(with_outcome @ coefficients), 0.0) * float(inverse[0, 0]) / fitted.rows
        return cls(float(coefficients[0]), own, left, sampled + _noise(fitted, own, left))

    def error(self, fitted: Gaussian) -> float:
        """Sampling, privacy noise and what the fitted distribution is drawn with, carried over to the coefficient."""
        released = (fitted.scores @ self.own) * (fitted.scores @ self.left)
        whole = (fitted.standard @ self.own) * (fitted.standard @ self.left)
        drawn = float((released - whole).var()) / len(whole)  # of the draws all but their covariance is left to chance
        variance = float(released.var()) / fitted.rows + drawn + _noise(fitted, self.own, self.left)
        return float(np.sqrt(variance)) / abs(self._released(fitted))

    def _released(self, fitted: Gaussian) -> float:
        """How much of a move of the coefficient is seen in what is released."""
        if len(self.own) > WIDE:
            return fitted.kept
        gradient = (np.outer(self.own, self.left) + np.outer(self.left, self.own)) / 2
        change = fitted.moved(STEP * gradient * np.outer(fitted.spread, fitted.spread)) / STEP
        return float((change * gradient).sum() / (gradient**2).sum())


def _noise(fitted: Gaussian, own: FloatArray, left: FloatArray) -> float:
    """Of the sum of products that moves a slope, the noise: a square has twice that of a product."""
    return float((own @ own) * (left @ left) + (own @ left) ** 2) * fitted.noise
