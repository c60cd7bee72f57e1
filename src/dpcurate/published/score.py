"""The score-based systems as printed: NOT PRIVATE. Each states the epsilon its authors would claim.

The averaged gradient is clipped entry by entry to 2, its sensitivity is claimed to be
4 sqrt(d (d - 1)) / n, each evaluation of L-BFGS-B gets normal noise for (its epsilon, `delta`), and the
claim is the sum of the epsilons times the sampling `rate`. The gradient is a function of exact moments,
for which the curator is asked once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, get_args

from dpcurate.accounting.conversions import gaussian_multiplier
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.options import check_choice
from dpcurate.learn.outcome import Learned
from dpcurate.learn.score.acyclic import AllowedArrows, acyclic_part
from dpcurate.learn.score.descent import Descent, Lagrangian
from dpcurate.learn.score.objectives import ReleasedMoments
from dpcurate.learn.score.results import learned
from dpcurate.published import schedules
from dpcurate.published.gradients import SCALE, PublishedGradients, stated_sensitivity
from dpcurate.queries import Exact, Moments, Queryable, Release


@dataclass(frozen=True, slots=True, kw_only=True)
class _PublishedDescent(ABC):
    """What they share; a subclass says what each gradient gets."""

    name: ClassVar[str]
    iterations: int = 20
    delta: float = 1e-4
    rate: float = 1.0
    threshold: float = 0.3
    penalty: float = 0.1

    def fit(self, queryable: Queryable, knowledge: Knowledge | None = None) -> Learned:
        nodes, budgets = queryable.schema.names, self._budgets()
        facts = AllowedArrows.of(nodes, knowledge)
        moments = ReleasedMoments.of(queryable.ask(Release(Moments(nodes), Exact())), queryable.schema.columns)
        stated = stated_sensitivity(len(nodes), moments.count)
        sigmas = {e: stated * gaussian_multiplier(epsilon=e, delta=self.delta) for e in set(budgets)}
        source = PublishedGradients(moments.valid() * SCALE**2, [sigmas[e] for e in budgets], queryable.draw)
        # The artifact lets L-BFGS-B run on noisy slopes; it may stop early, or use up what is claimed.
        descent = Descent(penalty=self.penalty, acyclicity="exp", rule=Lagrangian(), tolerance=2.2e-9)
        ended = descent.run(source, facts.allowed)
        epsilon = float(sum(budgets[: source.calls])) * self.rate
        arrows = acyclic_part(ended.weights, self.threshold, facts)
        notes = (
            f"{self.name} as published: NOT PRIVATE. Its authors would claim epsilon = {epsilon:.4g} and delta = "
            f"{source.calls * self.delta * self.rate:.3g} after {source.calls} gradients; the clip of the average "
            "does not bound what one row can do",
        )
        result = learned(nodes, arrows, ended.weights, self.threshold, (source.calls,), notes)
        return replace(result, claimed=epsilon)

    @abstractmethod
    def _budgets(self) -> Sequence[float]:
        """The epsilon of each gradient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedNoleaks(_PublishedDescent):
    """NOLEAKS (Ma et al. 2022): its gradients share the claimed `total` evenly."""

    name: ClassVar[str] = "NOLEAKS"
    total: float = 1.0

    def _budgets(self) -> Sequence[float]:
        return (self.total / self.iterations / self.rate,) * self.iterations


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCurateScore(_PublishedDescent):
    """Score-based CURATE (Bhattacharjee and Tandon 2024): budgets by the paper's `increment` from `first`."""

    name: ClassVar[str] = "score-based CURATE"
    increment: schedules.Increment = "multiplicative"
    first: float = 0.1

    def __post_init__(self) -> None:
        check_choice("increment", self.increment, get_args(schedules.Increment))

    def _budgets(self) -> Sequence[float]:
        if self.increment == "multiplicative":
            return schedules.algorithm_2(self.first, self.iterations)
        return schedules.published(self.increment, self.first, self.iterations)
