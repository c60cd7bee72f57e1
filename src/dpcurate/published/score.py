"""The score-based systems as printed and as coded: NOT PRIVATE. Each states the epsilon its authors would claim.

The averaged gradient is clipped entry by entry, each evaluation of L-BFGS-B gets normal noise for (its
epsilon, `delta`) at a stated sensitivity, and the claim is the sum of the epsilons times the sampling
rate. The gradient is a function of exact second moments, for which the curator is asked once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self, get_args

from dpcurate._validation import check_choice
from dpcurate.accounting.conversions import gaussian_multiplier
from dpcurate.errors import QueryError
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.score.acyclic import AllowedArrows, acyclic_part, learned
from dpcurate.learn.score.descent import Descent, Lagrangian
from dpcurate.learn.score.noised_gradients import check_spread
from dpcurate.published import schedules
from dpcurate.published.gradients import (
    CLIP,
    Encoding,
    Point,
    PublishedGradients,
    StatedSensitivity,
    stated_sensitivity,
)
from dpcurate.published.schedules import Spending
from dpcurate.queries import Queryable
from dpcurate.result.fit import FitResult

PUBLIC_SHARE = 0.01
"""The artifact's public rows, as a share of its private ones."""

Values = Literal["private", "public"]
Schedule = Literal["minimisation", "run"]
Increment = Literal["algorithm-2", "multiplicative", "additive", "exponential", "even", "rising", "reversed"]

_multiplier = lru_cache(maxsize=4096)(gaussian_multiplier)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PublishedDescent(ABC):
    """What they share; a subclass says what each gradient gets.

    `total` is the claimed epsilon at which a run stops; without it, a run ends where its descent does.
    `sensitivity` is the stated one (gradients.stated_sensitivity) and `clip` its s. Below a `rate` of 1 a
    run works on one Poisson sample of the rows, whose number stands in the sensitivity, and claims `rate`
    times the epsilon. The line search takes its `values` from the 'private' rows (our substitute) or from
    a second sample, PUBLIC_SHARE as large, that is called 'public'.
    """

    name: ClassVar[str]
    total: float | None = None
    delta: float = 1e-4
    sensitivity: StatedSensitivity = "artifact"
    clip: float = CLIP
    rate: float = 1.0
    values: Values = "private"
    threshold: float = 0.3
    penalty: float = 0.1

    def __post_init__(self) -> None:
        check_choice("sensitivity", self.sensitivity, get_args(StatedSensitivity))
        check_choice("values", self.values, get_args(Values))
        if not 0 < self.rate <= 1:
            raise QueryError(f"rate lies above 0 and at most at 1, got {self.rate!r}")
        if not 0 < self.delta < 1:
            raise QueryError(f"delta lies between 0 and 1, got {self.delta!r}")
        if self.total is not None and not 0 < self.total < math.inf:
            raise QueryError(f"total must be a finite number above 0, got {self.total!r}; leave it out for no limit")

    @classmethod
    def printed(cls, **options: Any) -> Self:
        """As the CURATE paper prints it: sensitivity sqrt(d (d - 1) s) / n and delta' = 1e-12, all rows."""
        return cls(**{"sensitivity": "printed", "delta": 1e-12, **options})

    @classmethod
    def artifact(cls, **options: Any) -> Self:
        """As NOLEAKS' artifact runs: 5,000 of 100,000 rows, values of 50 public ones, delta = 1e-4."""
        return cls(**{"rate": 0.05, "values": "public", **options})

    def fit(self, queryable: Queryable, knowledge: Knowledge | None = None) -> FitResult:
        nodes, spending = queryable.schema.names, self._spending()
        facts = AllowedArrows.of(nodes, knowledge)
        # The artifact lets L-BFGS-B run on noisy slopes, with scipy's own tolerance.
        descent = Descent(penalty=self.penalty, acyclicity="exp", rule=Lagrangian(), tolerance=2.2e-9)
        ended = descent.run(self._gradients(queryable, spending), facts.allowed)
        epsilon = spending.spent * self.rate
        arrows = acyclic_part(ended.weights, self.threshold, facts)
        notes = (
            f"{self.name} as published: NOT PRIVATE. Its authors would claim epsilon = {epsilon:.4g} and delta = "
            f"{spending.calls * self.delta * self.rate:.3g} after {spending.calls} gradients; the clip of the average "
            "does not bound what one row can do",
        )
        result = learned(nodes, arrows, ended.weights, self.threshold, (spending.calls,), notes)
        return replace(result, claimed=epsilon)

    def _gradients(self, queryable: Queryable, spending: Spending) -> PublishedGradients:
        encoding = Encoding(queryable)
        rows = encoding.sampled(self.rate)
        public = encoding.sampled(self.rate * PUBLIC_SHARE).second if self.values == "public" else None
        stated = stated_sensitivity(len(rows.second), rows.count, self.clip, self.sensitivity)

        def sigma(epsilon: float) -> float:
            return stated * _multiplier(epsilon=epsilon, delta=self.delta)

        return PublishedGradients(
            rows.second, spending, sigma, queryable.draw, clip=self.clip, public=public, at=self._point()
        )

    def _point(self) -> Point:
        return "current"

    def _limit(self) -> float:
        """The total before sampling takes its share off the claim."""
        return math.inf if self.total is None else self.total / self.rate

    @abstractmethod
    def _spending(self) -> Spending:
        """The epsilon of each gradient, and when they end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedNoleaks(_PublishedDescent):
    """NOLEAKS (Ma et al. 2022): `each` gradient gets the same epsilon, until the descent or `total` ends."""

    name: ClassVar[str] = "NOLEAKS"
    each: float = 0.01

    def __post_init__(self) -> None:
        _PublishedDescent.__post_init__(self)
        check_spread(self.each, 1)

    @classmethod
    def sharing(cls, total: float, iterations: int, **options: Any) -> Self:
        """A claimed total shared evenly by so many gradients."""
        check_spread(total, iterations)
        return cls(each=total / iterations / options.get("rate", 1.0), total=total, **options)

    def _spending(self) -> Spending:
        return Spending((self.each,), "nothing", self._limit())


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCurateScore(_PublishedDescent):
    """Score-based CURATE (Bhattacharjee and Tandon 2024): budgets by an `increment` from `first`, its eps_0.

    Algorithm 2 is one inner minimisation, so that its `schedule` begins again with each 'minimisation';
    the other reading is one schedule for the 'run'. It has `iterations` gradients, the paper's I; None takes
    as many as Lemma 2 states for `total`. 'algorithm-2' is the multiplicative increment with the
    algorithm's indices; 'even', 'rising' and 'reversed' are not the paper's (schedules.SHAPES). Algorithm 2
    prints the gradient `at` W_0, the 'first' weights of a minimisation, in every step; 'current' is W_k, as a
    descent means it, and the presets leave it there.
    """

    name: ClassVar[str] = "score-based CURATE"
    first: float = 0.01
    iterations: int | None = 30
    increment: Increment = "algorithm-2"
    schedule: Schedule = "minimisation"
    at: Point = "current"

    def __post_init__(self) -> None:
        _PublishedDescent.__post_init__(self)
        check_choice("increment", self.increment, get_args(Increment))
        check_choice("schedule", self.schedule, get_args(Schedule))
        check_choice("at", self.at, get_args(Point))
        whole = sum(self.budgets())
        if self.iterations is not None and self.schedule == "run" and whole <= self._limit() < math.inf:
            raise QueryError(
                f"total = {self.total:g} would have no effect: one schedule for the run adds up to "
                f"{whole * self.rate:g}; leave total out, or give iterations=None for as many as Lemma 2 states"
            )

    def budgets(self) -> tuple[float, ...]:
        """The epsilons of one schedule."""
        number = self.iterations if self.iterations is not None else self._stated()
        if self.increment == "algorithm-2":
            return schedules.algorithm_2(self.first, number)
        return schedules.published(self.increment, self.first, number)

    def _stated(self) -> int:
        """The iterations of Lemma 2."""
        if self.total is None:
            raise QueryError("iterations=None takes the number from Lemma 2, which needs total=: give one of the two")
        kind = "multiplicative" if self.increment == "algorithm-2" else self.increment
        number = math.floor(schedules.lemma_2(kind, self._limit(), self.first))
        if number < 1:
            raise QueryError(
                f"Lemma 2 states no iteration for a total of {self.total:g} and a first budget of {self.first:g}: "
                "lower first, or raise total"
            )
        return number

    def _point(self) -> Point:
        return self.at

    def _spending(self) -> Spending:
        return Spending(self.budgets(), self.schedule, self._limit())
