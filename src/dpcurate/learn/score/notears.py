"""NOTEARS on moments: exact, and released once with noise. Each recipe is one descent and a search after it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from dpcurate._typing import BoolArray, FloatArray
from dpcurate._validation import check_choice
from dpcurate.errors import BudgetExceeded
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.orient import dag_to_cpdag
from dpcurate.learn.measure_once.column_features import Distribution, distributions
from dpcurate.learn.score.acyclic import AllowedArrows, acyclic_part, dag_of, empty, learned, to_spend
from dpcurate.learn.score.descent import ConvergenceError, Descent
from dpcurate.learn.score.local_search import LeastSquares, NoisyGains, Search, Separation, checked
from dpcurate.learn.score.objectives import SCALES, Quadratic, ReleasedMoments, TooNoisy, factors
from dpcurate.queries import (
    FEATURE_STEPS,
    Exact,
    FeatureMap,
    FeatureMoments,
    Gaussian,
    Histograms,
    Moments,
    Queryable,
    Release,
)
from dpcurate.result.fit import Evidence, FitResult
from dpcurate.schema import OWN, Column

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


CLOSE = 0.1
"""A final h above this is no acyclic matrix by any measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notears:
    """NOTEARS on exact moments: one exact release, then no further look. NOT PRIVATE.

    `scale` says in what units the columns are compared, which decides what NOTEARS finds: 'units'
    (as in the table), 'bounds' (the schema's bounds become -1 and 1) or 'moments' (variance 1).
    `refine` is 'search' (a local search over DAGs on NOTEARS's own loss, from its result) or 'none'.
    """

    threshold: float = 0.3
    scale: str = "units"
    refine: Literal["search", "none"] = "search"
    descent: Descent = field(default_factory=Descent)

    def __post_init__(self) -> None:
        check_choice("scale", self.scale, SCALES)
        check_choice("refine", self.refine, ("search", "none"))

    def fit(self, queryable: Queryable, knowledge: Knowledge | None = None) -> FitResult:
        """Run NOTEARS on exact moments; not private."""
        nodes = queryable.schema.names
        facts = AllowedArrows.of(nodes, knowledge)
        spread = ReleasedMoments.of(queryable.ask(Release(Moments(nodes), Exact())), queryable.schema.columns)
        covariance = _scaled(spread.valid(), factors(queryable.schema.columns, spread.valid(), self.scale))
        ended = self.descent.run(Quadratic(covariance), facts.allowed)
        if ended.h > CLOSE:
            raise ConvergenceError(f"NOTEARS ended at h = {ended.h:.3g}, which is not acyclic", ended.history)
        arrows = acyclic_part(ended.weights, self.threshold, facts)
        if self.refine == "search":
            arrows = Search(_least_squares(covariance, spread.count, arrows, self.threshold), facts).run(arrows)
        note = f"NOTEARS, columns in {self.scale}, weights below {self.threshold:g} left out"
        return learned(nodes, arrows, refitted(covariance, arrows), self.threshold, (1,), (note,))


def _least_squares(covariance: FloatArray, rows: float, arrows: BoolArray, threshold: float) -> LeastSquares:
    """A price of half a log of the rows and a log of the candidates (extended BIC, Chen and Chen 2008)."""
    rests = [_residual(covariance, np.flatnonzero(arrows[:, j]).tolist(), j) for j in range(len(arrows))]
    price = 0.5 * math.log(max(2.0, rows)) + math.log(max(2, len(arrows)))
    return LeastSquares(covariance, rows, max(1e-12, float(np.median(rests))), price, threshold)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotearsOnMoments:
    """NOTEARS on moments released once with noise; everything after that is free.

    If there are numbers without bins, a small share first buys histograms, and the moments are of columns centred
    and scaled by these, so that bounds may be wide.
    The released matrix is made a valid covariance, a descent gives a first DAG, a local search on the
    noise-aware Gaussian score mends it (an arrow enters at `enter` standard errors), and an edge stays
    if no set of up to `order` neighbours brings it below `stay` standard errors. Standard errors
    count the noise of the release and sampling; nothing is chosen with the truth. `rho` is what to
    spend, all that is left unless given. Returns a CPDAG: on standardised columns directions are
    those of the Markov class.
    """

    enter: float = 3.5
    stay: float = 2.5
    least: float = 0.02
    order: int = 2
    scale: str = "moments"
    rho: float | None = None
    descent: Descent = field(default_factory=lambda: Descent(penalty=0.02))

    def __post_init__(self) -> None:
        check_choice("scale", self.scale, SCALES)

    def fit(self, queryable: Queryable, knowledge: Knowledge | None = None) -> FitResult:
        """A CPDAG over the schema's columns, with a z-value for every pair looked at."""
        nodes, columns = queryable.schema.names, queryable.schema.columns
        facts = AllowedArrows.of(nodes, knowledge)
        rho = to_spend(queryable, self.rho)
        try:
            spread = self._released(queryable, rho)
        except (BudgetExceeded, TooNoisy) as error:
            return empty(facts, knowledge, str(error))
        return self._learn(spread, columns, facts, knowledge)

    def _released(self, queryable: Queryable, rho: float) -> ReleasedMoments:
        """Numbers without bins are first put on a released scale, unless the scale is to be that of units or bounds."""
        columns = queryable.schema.columns
        if self.scale == "moments" and not all(column.has_levels for column in columns):
            return released_moments(queryable, rho)
        return ReleasedMoments.of(queryable.ask(Release(Moments(queryable.schema.names), Gaussian(rho=rho))), columns)

    def _learn(
        self, spread: ReleasedMoments, columns: Sequence[Column], facts: AllowedArrows, knowledge: Knowledge | None
    ) -> FitResult:
        covariance = spread.valid()
        scaled = _scaled(covariance, factors(columns, covariance, self.scale))
        ended = self.descent.run(Quadratic(scaled), facts.allowed)
        gains = NoisyGains(spread, covariance, self.enter**2 / 2)
        start = acyclic_part(ended.weights, self._first(gains, ended.weights), facts)
        found = Search(gains, facts).run(start)
        arrows, looks = checked(gains, found, facts, z=self.stay, least=self.least, order=self.order)
        graph = dag_to_cpdag(dag_of(facts.nodes, arrows), knowledge)
        note = (
            f"moments released once, noise {spread.entry:.3g} on each mean product; an arrow enters at "
            f"{self.enter:g} and stays above {self.stay:g} standard errors"
        )
        evidence = _looks(facts.nodes, looks, arrows, self.stay)
        return FitResult(graph, graph.skeleton, evidence=evidence, tests=(1,), notes=(note,))

    def _first(self, gains: NoisyGains, weights: FloatArray) -> float:
        """A first threshold: `enter` times the median standard error of a correlation."""
        errors = [1.0 / np.sqrt(gains.partial(j, ())[1]) for j in range(len(weights))]
        return max(0.02, min(0.3, self.enter * float(np.median(errors))))


def _scaled(covariance: FloatArray, factor: FloatArray) -> FloatArray:
    return np.asarray(covariance * np.outer(factor, factor), dtype=np.float64)


def _residual(covariance: FloatArray, p: list[int], j: int) -> float:
    if not p:
        return float(covariance[j, j])
    slopes = np.linalg.solve(covariance[np.ix_(p, p)], covariance[p, j])
    return float(covariance[j, j] - slopes @ covariance[p, j])


def refitted(covariance: FloatArray, arrows: BoolArray) -> FloatArray:
    """Least-squares weights of a DAG, without the penalty's shrinkage."""
    weights = np.zeros(covariance.shape)
    for j in range(len(covariance)):
        p = np.flatnonzero(arrows[:, j]).tolist()
        if p:
            weights[p, j] = np.linalg.solve(covariance[np.ix_(p, p)], covariance[p, j])
    return weights


def _looks(
    nodes: tuple[str, ...], looks: dict[tuple[int, int], Separation], arrows: BoolArray, stay: float
) -> tuple[Evidence, ...]:
    evidence = []
    for (i, j), look in looks.items():
        given, verdict = tuple(nodes[k] for k in look.given), "kept" if arrows[i, j] else "removed"
        evidence.append(Evidence((nodes[i], nodes[j]), given, verdict, look.value, look.error, stay * look.error))
    return tuple(evidence)
