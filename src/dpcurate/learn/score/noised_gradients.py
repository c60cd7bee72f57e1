"""NOLEAKS and score-based CURATE: one descent on noised clipped gradients, with even or growing budgets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate._validation import check_choice
from dpcurate.errors import BudgetExceeded, QueryError
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.score.acyclic import AllowedArrows, acyclic_part, empty, learned, to_spend
from dpcurate.learn.score.descent import Descent, Path
from dpcurate.learn.score.objectives import Gradients, Margins, TooNoisy
from dpcurate.queries import Gaussian, GradientNorms, Queryable, Release
from dpcurate.result.fit import FitResult

BudgetShape = Literal["even", "additive", "exponential", "geometric"]


def spread(total: float, iterations: int, shape: BudgetShape = "geometric", *, ratio: float = 4.0) -> tuple[float, ...]:
    """Never falling budgets that sum to the total exactly, and not a rounding error more.

    'additive' rises from 1 to 2, 'exponential' from 1 to e, 'geometric' from 1 to `ratio` >= 1 (the
    multiplicative increment with the factor the right way round).
    """
    check_spread(total, iterations)
    if not 1 <= ratio < math.inf:
        raise QueryError(f"a rising schedule needs a ratio of at least 1, got {ratio!r}")
    last = {"even": 1.0, "additive": 2.0, "exponential": math.e, "geometric": ratio}.get(shape)
    if last is None:
        raise QueryError(f"shape must be 'even', 'additive', 'exponential' or 'geometric', got {shape!r}")
    steps = [i / max(1, iterations - 1) for i in range(iterations)]
    weights = [1 + t if shape == "additive" else last**t for t in steps]
    whole = math.fsum(weights)
    parts = [total * w / whole for w in weights]
    parts[-1] = total - math.fsum(parts[:-1])
    while math.fsum(parts) > total:
        parts[-1] = math.nextafter(parts[-1], 0.0)
    return tuple(parts)


def check_spread(amount: float, iterations: int) -> None:
    """Refuse a budget or a number of iterations that makes no sense."""
    if not 0 < amount < math.inf:
        raise QueryError(f"a budget to spread must be a finite number above 0, got {amount!r}")
    if isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 1:
        raise QueryError(f"iterations must be a whole number of at least 1, got {iterations!r}")


RATIO, KEPT = 4.0, 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Noleaks:
    """NOLEAKS: noised clipped gradients, a quasi-Newton model of the loss, acyclicity growing stage by stage.

    Every row's gradient is clipped (to `clip`, sqrt(d (d - 1)) unless given), every look is charged an
    even share of `rho`, `margin` of it goes to counts and means, and steps come from released
    gradients alone. Weights are compared on the scale of the released spreads, and those below
    `threshold` are left out.
    """

    iterations: int = 20
    threshold: float = 0.05
    clip: float | None = None
    margin: float = 0.15
    rho: float | None = None
    penalty: float = 0.02
    steepest: float = 1e7

    def fit(self, queryable: Queryable, knowledge: Knowledge | None = None) -> FitResult:
        """Run the noised descent on a queryable."""
        plan = GradientBudget("even", 1.0, self.iterations, self.margin, self.clip)
        return _by_gradients(queryable, knowledge, plan, self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurateScore:
    """Score-based CURATE: NOLEAKS with budgets that grow over the iterations.

    `schedule` ('additive', 'exponential', or 'geometric' up to `ratio` times the first, 4 unless given) is
    scaled to spend exactly `rho`. `budgets` = 'released' doubles the next price where the last
    released gradient was lost in its noise; `clipping` = 'quantile' lets the clip follow the `kept`
    quantile of the rows' norms (0.9 unless given), read off a paid noised histogram. `tune` = 'released'
    is the word that all CURATE recipes share for this.
    """

    iterations: int = 20
    threshold: float = 0.05
    schedule: BudgetShape = "geometric"
    ratio: float | None = None
    budgets: Literal["planned", "released"] = "planned"
    clipping: Literal["fixed", "quantile"] = "fixed"
    kept: float | None = None
    tune: Literal["none", "released"] = "none"
    clip: float | None = None
    margin: float = 0.15
    rho: float | None = None
    penalty: float = 0.02
    steepest: float = 1e7

    def __post_init__(self) -> None:
        check_choice("tune", self.tune, ("none", "released"))
        check_choice("schedule", self.schedule, get_args(BudgetShape))
        check_choice("budgets", self.budgets, ("planned", "released"))
        check_choice("clipping", self.clipping, ("fixed", "quantile"))
        if self.ratio is not None and self.schedule != "geometric":
            raise QueryError(f"ratio belongs to the geometric schedule: leave it out with {self.schedule!r}")
        if self.tune == "released" and self.clipping == "quantile":
            raise QueryError("tune='released' and clipping='quantile' say the same: give one of them")
        if self.kept is not None and not self._adaptive:
            raise QueryError("kept belongs to clipping='quantile' or tune='released': leave it out with a fixed clip")

    @property
    def _adaptive(self) -> bool:
        return self.clipping == "quantile" or self.tune == "released"

    def fit(self, queryable: Queryable, knowledge: Knowledge | None = None) -> FitResult:
        """Run the noised descent on a queryable."""
        kept = (self.kept or KEPT) if self._adaptive else None
        ratio, reacting = self.ratio or RATIO, self.budgets == "released"
        plan = GradientBudget(self.schedule, ratio, self.iterations, self.margin, self.clip, reacting, kept)
        return _by_gradients(queryable, knowledge, plan, self)


@dataclass(frozen=True, slots=True)
class GradientBudget:
    """How a proved run over gradients spends: shape of the prices, clip, and what may react to releases."""

    shape: BudgetShape
    ratio: float
    iterations: int
    margin: float
    clip: float | None
    reacting: bool = False
    kept: float | None = None

    def prices(self, rho: float) -> tuple[float, ...]:
        """The rho of each iteration."""
        if not 0 < self.margin < 1:
            raise QueryError(f"margin is a share of the budget between 0 and 1, got {self.margin!r}")
        return spread(rho, self.iterations, self.shape, ratio=self.ratio)


class _Spender:
    """Prices and clips of a run over gradients; only released numbers steer it."""

    def __init__(self, plan: GradientBudget, rho: float, size: int) -> None:
        self._plan, self._left, self._clip = plan, rho, plan.clip or math.sqrt(max(2, size * (size - 1)))
        self._prices = list(plan.prices(rho))
        self._done = 0

    def price(self, gradients: Gradients) -> float:
        """The planned price, doubled while releases drown; what is left goes to the last look.

        No other look takes more than half of what is left, so there is always something for the next.
        """
        planned = self._prices[self._done]
        last = self._done + 1 == len(self._prices)
        if self._plan.reacting and gradients.looks and gradients.looks[-1].signal < 2.0:
            planned = max(planned, min(2.0 * gradients.looks[-1].rho, self._left / 2))
        self._done += 1
        paid = self._left if last else min(planned, self._left / 2)
        self._left = max(0.0, self._left - paid)
        return paid * (1 - 1e-12)

    def clip(self, gradients: Gradients, inside: FloatArray) -> float:
        """The clip; where it adapts, every fourth look moves it to a quantile of the rows' norms."""
        kept = self._plan.kept
        if kept is not None and self._done % 4 == 0 and self._done + 1 < len(self._prices):
            price = min(self._left, self._prices[self._done]) / 10
            self._left = max(0.0, self._left - price)
            self._clip = norm_quantile(gradients, inside, self._clip, kept, price * (1 - 1e-12))
        return self._clip


def norm_quantile(gradients: Gradients, inside: FloatArray, around: float, kept: float, rho: float) -> float:
    """The edge below which about a share `kept` of the rows' norms lies, from a paid noised histogram."""
    edges = tuple(around * 2.0 ** (k / 2) for k in range(-12, 5))
    statistic = GradientNorms(gradients.columns, tuple(map(tuple, inside.tolist())), edges)
    counts = np.maximum(gradients.queryable.ask(Release(statistic, Gaussian(rho=rho))).value, 0.0)
    below = np.cumsum(counts[:-1]) >= kept * max(1.0, float(counts.sum()))
    return float(edges[int(np.argmax(below))]) if below.any() else float(edges[-1])


def _by_gradients(
    queryable: Queryable, knowledge: Knowledge | None, plan: GradientBudget, recipe: Noleaks | CurateScore
) -> FitResult:
    """Margins first, then one paid gradient for each stage of the descent."""
    nodes = queryable.schema.names
    facts = AllowedArrows.of(nodes, knowledge)
    rho = to_spend(queryable, recipe.rho)
    spender = _Spender(plan, rho * (1 - plan.margin), len(nodes))
    try:
        margins = Margins.ask(queryable, nodes, rho * plan.margin)
    except (BudgetExceeded, TooNoisy) as error:
        return empty(facts, knowledge, str(error))
    source = Gradients(queryable, nodes, margins, spender.clip, spender.price, [])
    # Correlations of a few hundredths move the loss by 1e-4: stages end late.
    descent = Descent(penalty=recipe.penalty, rule=Path.of(plan.iterations, last=recipe.steepest), tolerance=1e-9)
    ended = descent.run(source, facts.allowed)
    arrows = acyclic_part(ended.weights, recipe.threshold, facts)
    notes = [
        f"{len(source.looks)} gradients, each row clipped to {source.looks[0].clip if source.looks else 0:.3g}; "
        f"standardised by released margins; weights below {recipe.threshold:g} left out"
    ]
    if ended.stopped:
        notes.append(f"the budget ended after {len(source.looks)} of {plan.iterations} gradients: the graph so far")
    return learned(nodes, arrows, ended.weights, recipe.threshold, (len(nodes), len(source.looks)), tuple(notes))
