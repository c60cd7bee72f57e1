"""Named recipes of the score-based family: Notears, Noleaks, CurateScore, NotearsOnMoments.

A recipe is data; `fit(door)` asks the door and returns a Learned. Each is one descent with another
source of gradients. Variants called 'published' follow the papers' formulas and are NOT PRIVATE.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from dpcurate.errors import BudgetExceeded, RequestError
from dpcurate.graphs.graph import Cpdag, Dag, Skeleton
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.orient import orient
from dpcurate.learn import schedules
from dpcurate.learn.acyclic import Array, Facts, Mask, acyclic_part, dag_of, indices
from dpcurate.learn.descent import ConvergenceError, Descent, Lagrangian, Path
from dpcurate.learn.objectives import (
    PUBLISHED_SCALE,
    Gradients,
    Margins,
    PublishedGradients,
    Quadratic,
    Spread,
    TooNoisy,
    factors,
    published_sensitivity,
)
from dpcurate.learn.outcome import Evidence, Learned
from dpcurate.learn.refine import LeastSquares, NoisyGains, Search, Separation, checked
from dpcurate.learn.schedules import Shape
from dpcurate.requests import Door, Exact, Gaussian, GradientNorms, Moments, Release
from dpcurate.schema import Column

Variant = Literal["proved", "published"]
CLOSE = 0.1
"""A final h above this is no acyclic matrix by any measure."""


# --- exact ----------------------------------------------------------------------------------------


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

    def fit(self, door: Door, knowledge: Knowledge | None = None) -> Learned:
        """A DAG over the schema's columns."""
        nodes = door.schema.names
        facts = Facts.of(nodes, knowledge)
        _check_choice("refine", self.refine, ("search", "none"))
        spread = Spread.of(door.ask(Release(Moments(nodes), Exact())), door.schema.columns)
        covariance = _scaled(spread.valid(), factors(door.schema.columns, spread.valid(), self.scale))
        ended = self.descent.run(Quadratic(covariance), facts.allowed)
        if ended.h > CLOSE:
            raise ConvergenceError(f"NOTEARS ended at h = {ended.h:.3g}, which is not acyclic", ended.history)
        arrows = acyclic_part(ended.weights, self.threshold, facts)
        if self.refine == "search":
            arrows = Search(_least_squares(covariance, spread.count, arrows, self.threshold), facts).run(arrows)
        note = f"NOTEARS, columns in {self.scale}, weights below {self.threshold:g} left out"
        return _learned(nodes, arrows, refitted(covariance, arrows), self.threshold, (1,), (note,))


def _least_squares(covariance: Array, rows: float, arrows: Mask, threshold: float) -> LeastSquares:
    """A price of half a log of the rows and a log of the candidates (extended BIC, Chen and Chen 2008)."""
    rests = [_residual(covariance, np.flatnonzero(arrows[:, j]).tolist(), j) for j in range(len(arrows))]
    price = 0.5 * math.log(max(2.0, rows)) + math.log(max(2, len(arrows)))
    return LeastSquares(covariance, rows, max(1e-12, float(np.median(rests))), price, threshold)


# --- noised moments: ours --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NotearsOnMoments:
    """NOTEARS on moments released once with noise; everything after that is free.

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

    def fit(self, door: Door, knowledge: Knowledge | None = None) -> Learned:
        """A CPDAG over the schema's columns, with a z-value for every pair looked at."""
        nodes, columns = door.schema.names, door.schema.columns
        facts = Facts.of(nodes, knowledge)
        rho = _purse(door, self.rho)
        factors(columns, np.eye(len(nodes)), self.scale)
        try:
            answer = door.ask(Release(Moments(nodes), Gaussian(rho=rho)))
            spread = Spread.of(answer, columns)
        except (BudgetExceeded, TooNoisy) as error:
            return _empty(facts, knowledge, str(error))
        return self._learn(spread, columns, facts, knowledge)

    def _learn(self, spread: Spread, columns: Sequence[Column], facts: Facts, knowledge: Knowledge | None) -> Learned:
        covariance = spread.valid()
        scaled = _scaled(covariance, factors(columns, covariance, self.scale))
        ended = self.descent.run(Quadratic(scaled), facts.allowed)
        gains = NoisyGains(spread, covariance, self.enter**2 / 2)
        start = acyclic_part(ended.weights, self._first(gains, ended.weights), facts)
        found = Search(gains, facts).run(start)
        arrows, looks = checked(gains, found, facts, z=self.stay, least=self.least, order=self.order)
        graph = markov_class(dag_of(facts.nodes, arrows), knowledge)
        note = (
            f"moments released once, noise {spread.entry:.3g} on each mean product; an arrow enters at "
            f"{self.enter:g} and stays above {self.stay:g} standard errors"
        )
        evidence = _looks(facts.nodes, looks, arrows, self.stay)
        return Learned(graph, graph.skeleton, {}, evidence, (1,), notes=(note,))

    def _first(self, gains: NoisyGains, weights: Array) -> float:
        """A first threshold: `enter` times the median standard error of a correlation."""
        errors = [1.0 / np.sqrt(gains.partial(j, ())[1]) for j in range(len(weights))]
        return max(0.02, min(0.3, self.enter * float(np.median(errors))))


# --- noised gradients ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Noleaks:
    """NOLEAKS: noised clipped gradients, a quasi-Newton model of the loss, acyclicity growing stage by stage.

    'proved': every row's gradient is clipped (to `clip`, sqrt(d (d - 1)) unless given), every look is
    charged an even share of `rho`, `margin` of it goes to counts and means, and steps come from
    released gradients alone. Weights are compared on the scale of the released spreads, and those
    below `threshold` are left out. 'published': see `PublishedNoise`; NOT PRIVATE.
    """

    iterations: int = 20
    threshold: float = 0.05
    clip: float | None = None
    margin: float = 0.15
    rho: float | None = None
    variant: Variant = "proved"
    claim: PublishedNoise | None = None
    penalty: float = 0.02
    steepest: float = 1e7

    def fit(self, door: Door, knowledge: Knowledge | None = None) -> Learned:
        """A DAG over the schema's columns."""
        _check_choice("variant", self.variant, ("proved", "published"))
        if self.variant == "published":
            claim = self.claim or PublishedNoise()
            budgets = (claim.total / self.iterations / claim.rate,) * self.iterations
            return claim.fit(door, knowledge, budgets, "NOLEAKS as published")
        plan = Plan("even", 1.0, self.iterations, self.margin, self.clip)
        return _by_gradients(door, knowledge, plan, self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurateScore:
    """Score-based CURATE: NOLEAKS with budgets that grow over the iterations.

    'proved': `schedule` ('additive', 'exponential', 'geometric' up to `ratio` times the first) is
    scaled to spend exactly `rho`. `budgets` = 'released' doubles the next price where the last
    released gradient was lost in its noise; `clipping` = 'quantile' lets the clip follow the `kept`
    quantile of the rows' norms, read off a paid noised histogram.
    'published': eps_k by the paper's `increment` from `first`; NOT PRIVATE.
    """

    iterations: int = 20
    threshold: float = 0.05
    schedule: Shape = "geometric"
    ratio: float = 4.0
    budgets: Literal["planned", "released"] = "planned"
    clipping: Literal["fixed", "quantile"] = "fixed"
    kept: float = 0.9
    clip: float | None = None
    margin: float = 0.15
    rho: float | None = None
    variant: Variant = "proved"
    increment: schedules.Increment = "multiplicative"
    first: float = 0.1
    claim: PublishedNoise | None = None
    penalty: float = 0.02
    steepest: float = 1e7

    def fit(self, door: Door, knowledge: Knowledge | None = None) -> Learned:
        """A DAG over the schema's columns."""
        _check_choice("variant", self.variant, ("proved", "published"))
        _check_choice("budgets", self.budgets, ("planned", "released"))
        _check_choice("clipping", self.clipping, ("fixed", "quantile"))
        if self.variant == "published":
            claim = self.claim or PublishedNoise()
            if self.increment == "multiplicative":
                budgets = schedules.algorithm_2(self.first, self.iterations)
            else:
                budgets = schedules.published(self.increment, self.first, self.iterations)
            return claim.fit(door, knowledge, budgets, "score-based CURATE as published")
        reacting = self.budgets == "released"
        kept = self.kept if self.clipping == "quantile" else None
        plan = Plan(self.schedule, self.ratio, self.iterations, self.margin, self.clip, reacting, kept)
        return _by_gradients(door, knowledge, plan, self)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedNoise:
    """The privacy that the authors claim for NOLEAKS and CURATE's score form. NOT PRIVATE.

    The averaged gradient is clipped entry by entry to 2, its sensitivity is claimed to be
    4 sqrt(d (d - 1)) / n, each evaluation of L-BFGS-B gets normal noise for (its epsilon, `delta`), and
    the claim is the sum of the epsilons times the sampling `rate`. Epsilon `total` is what NOLEAKS's
    calls share. The gradient is a function of exact moments, for which the curator is asked once.
    """

    total: float = 1.0
    delta: float = 1e-4
    rate: float = 1.0
    threshold: float = 0.3
    penalty: float = 0.1

    def fit(self, door: Door, knowledge: Knowledge | None, budgets: Sequence[float], name: str) -> Learned:
        """A DAG, and the epsilon its authors would report."""
        nodes = door.schema.names
        facts = Facts.of(nodes, knowledge)
        spread = Spread.of(door.ask(Release(Moments(nodes), Exact())), door.schema.columns)
        claimed = published_sensitivity(len(nodes), spread.count)
        known = {e: schedules.analytic_sigma(epsilon=e, delta=self.delta, sensitivity=claimed) for e in set(budgets)}
        source = PublishedGradients(spread.valid() * PUBLISHED_SCALE**2, [known[e] for e in budgets], door.draw)
        # The artifact lets L-BFGS-B run on noisy slopes; it may stop early, or use up what is claimed.
        descent = Descent(penalty=self.penalty, acyclicity="exp", rule=Lagrangian(), tolerance=2.2e-9)
        ended = descent.run(source, facts.allowed)
        epsilon = float(sum(budgets[: source.calls])) * self.rate
        arrows = acyclic_part(ended.weights, self.threshold, facts)
        notes = (
            f"{name}: NOT PRIVATE. Its authors would claim epsilon = {epsilon:.4g} and delta = "
            f"{source.calls * self.delta * self.rate:.3g} after {source.calls} gradients; the clip of the average "
            "does not bound what one row can do",
        )
        made = _learned(nodes, arrows, ended.weights, self.threshold, (source.calls,), notes)
        return replace(made, claimed=epsilon)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a proved run over gradients spends: shape of the prices, clip, and what may react to releases."""

    shape: Shape
    ratio: float
    iterations: int
    margin: float
    clip: float | None
    reacting: bool = False
    kept: float | None = None

    def prices(self, rho: float) -> tuple[float, ...]:
        """The planned price of each look."""
        if not 0 < self.margin < 1:
            raise RequestError(f"margin is a share of the budget between 0 and 1, got {self.margin!r}")
        return schedules.spread(rho, self.iterations, self.shape, ratio=self.ratio)


class _Spender:
    """Prices and clips of a run over gradients; only released numbers steer it."""

    def __init__(self, plan: Plan, rho: float, size: int) -> None:
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

    def clip(self, gradients: Gradients, inside: Array) -> float:
        """The clip; where it adapts, every fourth look moves it to a quantile of the rows' norms."""
        kept = self._plan.kept
        if kept is not None and self._done % 4 == 0 and self._done + 1 < len(self._prices):
            price = min(self._left, self._prices[self._done]) / 10
            self._left = max(0.0, self._left - price)
            self._clip = norm_quantile(gradients, inside, self._clip, kept, price * (1 - 1e-12))
        return self._clip


def norm_quantile(gradients: Gradients, inside: Array, around: float, kept: float, rho: float) -> float:
    """The edge below which about a share `kept` of the rows' norms lies, from a paid noised histogram."""
    edges = tuple(around * 2.0 ** (k / 2) for k in range(-12, 5))
    statistic = GradientNorms(gradients.columns, tuple(map(tuple, inside.tolist())), edges)
    counts = np.maximum(gradients.door.ask(Release(statistic, Gaussian(rho=rho))).value, 0.0)
    below = np.cumsum(counts[:-1]) >= kept * max(1.0, float(counts.sum()))
    return float(edges[int(np.argmax(below))]) if below.any() else float(edges[-1])


def _by_gradients(door: Door, knowledge: Knowledge | None, plan: Plan, recipe: Noleaks | CurateScore) -> Learned:
    """Margins first, then one paid gradient for each stage of the descent."""
    nodes = door.schema.names
    facts = Facts.of(nodes, knowledge)
    rho = _purse(door, recipe.rho)
    spender = _Spender(plan, rho * (1 - plan.margin), len(nodes))
    try:
        margins = Margins.ask(door, nodes, rho * plan.margin)
    except (BudgetExceeded, TooNoisy) as error:
        return _empty(facts, knowledge, str(error))
    source = Gradients(door, nodes, margins, spender.clip, spender.price, [])
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
    return _learned(nodes, arrows, ended.weights, recipe.threshold, (len(nodes), len(source.looks)), tuple(notes))


# --- shared ----------------------------------------------------------------------------------------


def _purse(door: Door, rho: float | None) -> float:
    """What a proved run may spend, from public facts."""
    if door.privacy().budget.pure:
        raise RequestError("this method needs Gaussian noise, which a pure budget (delta = 0) cannot pay: give a delta")
    if rho is None and math.isinf(door.remaining):
        raise RequestError("the budget is unlimited: give rho=, or use Notears, which is exact")
    if rho is not None and not 0 < rho < math.inf:
        raise RequestError(f"rho must be a finite number above 0, got {rho!r}")
    return door.remaining * (1 - 1e-12) if rho is None else rho


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise RequestError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def _scaled(covariance: Array, factor: Array) -> Array:
    return np.asarray(covariance * np.outer(factor, factor), dtype=np.float64)


def _residual(covariance: Array, p: list[int], j: int) -> float:
    if not p:
        return float(covariance[j, j])
    slopes = np.linalg.solve(covariance[np.ix_(p, p)], covariance[p, j])
    return float(covariance[j, j] - slopes @ covariance[p, j])


def refitted(covariance: Array, arrows: Mask) -> Array:
    """Least-squares weights of a DAG, without the penalty's shrinkage."""
    weights = np.zeros(covariance.shape)
    for j in range(len(covariance)):
        p = np.flatnonzero(arrows[:, j]).tolist()
        if p:
            weights[p, j] = np.linalg.solve(covariance[np.ix_(p, p)], covariance[p, j])
    return weights


def markov_class(dag: Dag, knowledge: Knowledge | None) -> Cpdag:
    """The CPDAG of a DAG, with what background knowledge orients."""
    if knowledge is None:
        return dag.cpdag()
    place = {name: i for i, name in enumerate(dag.order())}
    separators = {}
    for k, b in enumerate(dag.nodes):
        for a in dag.nodes[:k]:
            if frozenset((a, b)) not in dag.edges:
                # A node's parents separate it from everything that is not below it.
                separators[frozenset((a, b))] = dag.parents(max(a, b, key=place.__getitem__))
    return orient(Skeleton(dag.nodes, dag.edges, separators), knowledge)


def _learned(
    nodes: tuple[str, ...],
    arrows: Mask,
    weights: Array,
    threshold: float,
    asked: tuple[int, ...],
    notes: tuple[str, ...],
) -> Learned:
    dag = dag_of(nodes, arrows)
    shown = arrows | (np.abs(weights) >= threshold)
    evidence = [
        Evidence(
            (nodes[i], nodes[j]),
            (),
            "kept" if arrows[i, j] else "closes a cycle",
            float(weights[i, j]),
            None,
            threshold,
        )
        for i, j in indices(shown)
    ]
    return Learned(dag, dag.skeleton, {}, tuple(evidence), asked, notes=notes)


def _looks(
    nodes: tuple[str, ...], looks: dict[tuple[int, int], Separation], arrows: Mask, stay: float
) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            (nodes[i], nodes[j]),
            tuple(nodes[k] for k in look.given),
            "kept" if arrows[i, j] else "removed",
            look.value,
            look.error,
            stay * look.error,
        )
        for (i, j), look in looks.items()
    )


def _empty(facts: Facts, knowledge: Knowledge | None, why: str) -> Learned:
    """What is known without data: the required edges."""
    arrows = acyclic_part(np.zeros(facts.allowed.shape), math.inf, facts)
    graph = markov_class(dag_of(facts.nodes, arrows), knowledge)
    return Learned(graph, graph.skeleton, notes=(why,))
