"""PC on a covariance that is released once with noise: what one would try first, as a baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate._validation import check_threshold
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.constraint.independence import ExactTest
from dpcurate.learn.constraint.pc_search import PairQuestion, search
from dpcurate.learn.constraint.recipes import deletable_pairs, learned
from dpcurate.learn.score.acyclic import AllowedArrows, empty, to_spend
from dpcurate.learn.score.notears import released_moments
from dpcurate.learn.score.objectives import ReleasedMoments, TooNoisy
from dpcurate.queries import Gaussian, Moments, Queryable, Release
from dpcurate.result.fit import FitResult


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisedCovariance:
    """The PC algorithm on released moments, with partial correlations at level `alpha`.

    Levels are read by their place. Numbers without bins are first centred and scaled by released histograms. The
    variance of Fisher's z counts sampling and the noise of the release.
    """

    alpha: float = 0.01
    max_order: int | None = None

    def __post_init__(self) -> None:
        check_threshold(self.alpha)

    def fit(self, queryable: Queryable, knowledge: Knowledge | None = None) -> FitResult:
        """Spend all that is left on one release of moments, then run PC on it."""
        deletable_pairs(queryable, knowledge)
        names, rho = queryable.schema.names, to_spend(queryable, None)
        try:
            test = _NoisedCorrelationTest(queryable, self.alpha, _released(queryable, rho))
        except TooNoisy as problem:
            return empty(AllowedArrows.of(names, knowledge), knowledge, str(problem))
        return learned(test, search(names, test, knowledge=knowledge, max_order=self.max_order), knowledge)


def _released(queryable: Queryable, rho: float) -> ReleasedMoments:
    columns = queryable.schema.columns
    if not all(column.has_levels for column in columns):
        return released_moments(queryable, rho)
    return ReleasedMoments.of(queryable.ask(Release(Moments(queryable.schema.names), Gaussian(rho=rho))), columns)


class _NoisedCorrelationTest(ExactTest):
    """Fisher's z of partial correlations in a noised covariance; it asks the queryable for nothing more."""

    growth = 1

    def __init__(self, queryable: Queryable, level: float, released: ReleasedMoments) -> None:
        super().__init__(queryable, level)
        self._names, self._released = queryable.schema.names, released
        self._covariance = released.valid()

    def _p_values(self, tests: Sequence[PairQuestion]) -> list[float]:
        return list(map(self._p_value, tests))

    def _p_value(self, q: PairQuestion) -> float:
        x, y, *given = (self._names.index(name) for name in (q.x, q.y, *q.given))
        a, b = (self._residual(node, given) for node in (x, y))
        matrix, freedom = self._covariance, self._released.count - len(given) - 3
        spread = float(a @ matrix @ a) * float(b @ matrix @ b)
        if freedom <= 0 or spread <= 0:
            return 1.0
        r = min(max(float(a @ matrix @ b) / math.sqrt(spread), -1 + 1e-12), 1 - 1e-12)
        noise = float(self._released.noise_variance(a[None], b)[0]) / spread
        return math.erfc(abs(math.atanh(r)) / math.sqrt(2 * (1 / freedom + noise)))

    def _residual(self, node: int, given: Sequence[int]) -> FloatArray:
        """A column less its regression on others, as weights of the columns."""
        weights = np.zeros(len(self._names))
        weights[node] = 1.0
        if given:
            matrix = self._covariance
            weights[list(given)] = -np.linalg.solve(matrix[np.ix_(given, given)], matrix[given, node])
        return weights
