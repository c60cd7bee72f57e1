"""What can be audited: each a number of runs through a real session on either table, and what they may cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.accounting import Budget, Event
from dpcurate.audit.bounds import Currency
from dpcurate.audit.pairs import Pair
from dpcurate.audit.transcript import Coordinates, Observer, Tally, ThresholdLikelihood, Truth, choice_ratio, linked
from dpcurate.learn.methods import Method
from dpcurate.private.replay import Coalition, OpenPair, Randomness, randomness
from dpcurate.queries import (
    CELLS,
    AboveThreshold,
    Answer,
    Choose,
    GaussianShare,
    Quantile,
    Queryable,
    Release,
    Sample,
    Score,
)
from dpcurate.schema import Neighbours, Numeric

Runner = Callable[[int, int | None, float], FloatArray]
"""So many runs on each table, from a seed (None: the secure source), with noise times a factor.

Numbers by view, table and run; a view is one way to sum up what was seen in a run."""
Ask = Callable[[Queryable, int], Sequence[Sequence[Answer]]]
"""So many runs of a session: for each release its answers, one a run."""
TOGETHER = 1_000
"""Runs of which the answers are held at one time."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What a lower bound is held against: what was charged, or what an unproved release's authors claim."""

    currency: Currency
    value: float
    proved: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Something to audit: how to run it, and what it may cost."""

    name: str
    pair: str
    neighbours: str
    limits: tuple[Limit, ...]
    run: Runner
    delta: float = 0.0


Hits = tuple[int, int]
"""How often an event occurred on either table."""


@dataclass(frozen=True, slots=True, eq=False)
class Control:
    """A mechanism with a claim that does not hold, and how often an event occurs on either table."""

    name: str
    method: str
    pair: str
    event: str
    claimed: float
    runs: int
    hits: Callable[[int, int], Hits]
    delta: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedGate:
    """An above-threshold gate that is asked these scores until it says yes."""

    epsilon: float
    scores: tuple[Score, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """A release on a fresh secret sample."""

    rate: float
    epsilon: float
    release: Release

    @property
    def sample(self) -> Sample:
        """The secret sample that is asked."""
        return Sample(rate=self.rate, epsilon=self.epsilon)


@dataclass(frozen=True, slots=True)
class Script:
    """The releases that a method asks for in one run, replayed many times: its ledger with many runs.

    A replay is not adaptive, so it says whether each step's noise is worth what was charged for all of them.
    """

    method: Method


# --- releases ------------------------------------------------------------------------------------------


def of_release(query: Release, pair: Pair) -> Target:
    """A released statistic, asked of the session as an analyst would."""
    tables = pair.opened()
    event = tables.charged(query)
    return _target(event.about, pair, _limits(event, tables.steps(query)), _released(tables, [query]))


def of_shared(query: Release, share: GaussianShare, pair: Pair) -> Target:
    """A release with noise shared by sites, as those see it that collude: through rounds with all masks."""
    tables = pair.opened()
    truth = Truth(tables)

    def view(coalition: Coalition, runs: int) -> FloatArray:
        seen = Coordinates.of(query, coalition.ask_all([query] * runs), truth)
        return seen.ratios()[None, :]

    def run(runs: int, seed: int | None, factor: float) -> FloatArray:
        noise = randomness(seed, factor)
        tables_seen = (
            np.concatenate([view(tables.coalition(which, noise, share), size) for size in pieces(runs)], axis=-1)
            for which in (0, 1)
        )
        return np.stack(list(tables_seen), axis=1)

    limits = _limits(tables.charged(query), tables.steps(query))
    return _target(f"{share.colluding} of {share.sites} sites that share noise", pair, limits, run)


def of_script(name: str, script: Script, pair: Pair, budget: Budget) -> Target:
    """The releases of one run asked again and again, against what was charged for them."""
    tables = pair.opened()
    first = _Session(tables, script.method, budget, Truth(tables)).one(0, randomness(0))
    asked = [r for r in first.asked if isinstance(r, Release)]
    limits = _sum_limits(tables, asked, budget)
    return _target(f"{name}, {len(asked)} releases replayed", pair, limits, _released(tables, asked))


def of_sampled(sampled: Sampled, pair: Pair) -> Target:
    """A release on a fresh sample each run, against what was charged when the sample was drawn."""
    tables = pair.opened()

    def ask(session: Queryable, runs: int) -> Sequence[Sequence[Answer]]:
        return [[session.open(sampled.sample).ask(sampled.release) for _ in range(runs)]]

    run = _views(tables, [sampled.release], ask, sampled.rate)
    return _target("release on a secret sample", pair, _limits(tables.charged(sampled.sample), math.inf), run)


def _released(tables: OpenPair, asked: Sequence[Release]) -> Runner:
    def ask(session: Queryable, runs: int) -> Sequence[Sequence[Answer]]:
        answers = session.ask_all(list(asked) * runs)
        return [answers[i :: len(asked)] for i in range(len(asked))]

    return _views(tables, asked, ask)


def _views(tables: OpenPair, asked: Sequence[Release], ask: Ask, rate: float = 1.0) -> Runner:
    """Two views of releases: the likelihood of what was seen, and noise that answers share."""
    truth = Truth(tables)

    def view(session: Queryable, runs: int) -> FloatArray:
        answers = ask(session, runs)
        seen = [Coordinates.of(r, each, truth, rate) for r, each in zip(asked, answers, strict=True)]
        shared = linked(seen)
        ratios = np.sum([c.ratios() for c in seen], axis=0)
        return np.array([ratios] if shared is None else [ratios, shared])

    return _runs(tables, view)


def _runs(tables: OpenPair, view: Callable[[Queryable, int], FloatArray]) -> Runner:
    """All runs on either table, some at a time in a session of their own."""

    def run(runs: int, seed: int | None, factor: float) -> FloatArray:
        noise = randomness(seed, factor)
        first, second = (
            np.concatenate([view(tables.unlimited(which, noise), size) for size in pieces(runs)], axis=-1)
            for which in (0, 1)
        )
        return np.stack([first, second], axis=1)

    return run


def pieces(runs: int) -> Iterator[int]:
    """Runs in batches that fit into memory."""
    for start in range(0, runs, TOGETHER):
        yield min(TOGETHER, runs - start)


# --- choices and gates -----------------------------------------------------------------------------------


def of_choice(query: Choose, pair: Pair) -> Target:
    """An exponential mechanism; each index has its log-likelihood ratio."""
    tables = pair.opened()
    truth = Truth(tables)
    ratios = np.array([choice_ratio(truth, query, i) for i in range(len(query.candidates) + query.or_none)])

    def view(session: Queryable, runs: int) -> FloatArray:
        return ratios[session.ask_all([query] * runs)][None, :]

    return _target("exponential mechanism", pair, _limits(tables.charged(query), math.inf), _runs(tables, view))


def of_quantile(query: Quantile, pair: Pair) -> Target:
    """Where a quantile lies; each interval has its log-likelihood ratio, from the rows of the pair themselves."""
    tables = pair.opened()
    weights = np.array([_quantile_weights(query, pair, table) for table in (pair.first, pair.second)])
    log = weights - np.logaddexp.reduce(weights, axis=1, keepdims=True)
    ratios: FloatArray = np.asarray(log[1] - log[0])

    def view(session: Queryable, runs: int) -> FloatArray:
        return ratios[session.ask_all([query] * runs)][None, :]

    return _target("quantile", pair, _limits(tables.charged(query), math.inf), _runs(tables, view))


def _quantile_weights(query: Quantile, pair: Pair, table: Any) -> FloatArray:
    """The logarithms of the mechanism's weights; cells of the table lie well inside their intervals."""
    column, q = pair.schema[query.column], float(query.probability)
    assert isinstance(column, Numeric)
    places = (np.asarray(table[query.column]) - column.low) / (column.high - column.low) * CELLS
    below = np.array([np.count_nonzero(places < cut) for cut in query.cuts])
    sought = q * len(places) + query.shift
    apart = np.maximum(0, np.maximum(below[:-1] - sought, sought - below[1:]))
    moved = max(q, 1 - q) if pair.neighbours is Neighbours.ADD_REMOVE else 1.0
    return np.asarray(-apart * float(query.epsilon) / (2 * moved))


def of_gate(gate: OpenedGate, pair: Pair) -> Target:
    """An above-threshold gate; the place of its first yes, or none, has its log-likelihood ratio."""
    tables = pair.opened()
    truth, opened = Truth(tables), AboveThreshold(epsilon=gate.epsilon)
    ratios = np.array([_gate_ratio(truth, gate, place) for place in range(len(gate.scores) + 1)])

    def view(session: Queryable, runs: int) -> FloatArray:
        places = [session.open(opened).first(gate.scores) for _ in range(runs)]
        return ratios[[len(gate.scores) if place is None else place for place in places]][None, :]

    return _target("above-threshold gate", pair, _limits(tables.charged(opened), math.inf), _runs(tables, view))


def _gate_ratio(truth: Truth, gate: OpenedGate, place: int) -> float:
    likelihood = ThresholdLikelihood(gate.epsilon, truth)
    for i, score in enumerate(gate.scores[: place + 1]):
        likelihood.note(score, yes=i == place)
    return likelihood.ratio


# --- methods ---------------------------------------------------------------------------------------------


def of_method(name: str, method: Method, pair: Pair, budget: Budget) -> Target:
    """A method: each run has a fresh session with a fresh ledger, and all answers are seen."""
    tables = pair.opened()
    session = _Session(tables, method, budget, Truth(tables))
    ceiling = Limit("epsilon" if budget.pure else "rho", float(budget.ceiling))
    by_mu = () if budget.pure else mu_limits(float(budget.ceiling), session.steps())
    return _target(name, pair, (*by_mu, ceiling), session)


@dataclass(frozen=True, slots=True, eq=False)
class _Session:
    tables: OpenPair
    method: Method
    budget: Budget
    truth: Truth

    def __call__(self, runs: int, seed: int | None, factor: float) -> FloatArray:
        noise = randomness(seed, factor)
        return np.array([[[self.one(which, noise).total for _ in range(runs)] for which in (0, 1)]])

    def one(self, which: int, noise: Randomness) -> Tally:
        tally = Tally(self.truth)
        self.method.fit(Observer(self.tables.session(which, self.budget, noise), tally))
        return tally

    def steps(self) -> float:
        """The least Gaussian noise in integer steps seen in two runs; infinite if other noise took part."""
        asked = [r for which in (0, 1) for r in self.one(which, randomness(which)).asked]
        steps = [self.tables.steps(r) if isinstance(r, Release) else math.inf for r in asked]
        return min(steps) if steps and max(steps) < math.inf else math.inf


# --- limits ----------------------------------------------------------------------------------------------


def mu_limits(rho: float, steps: float) -> tuple[Limit, ...]:
    """The mu of Gaussian noise of at least so many integer steps; none below one step, where it is no guide.

    Discrete noise of s steps is not exactly mu-GDP. A threshold event has the normal quantile times
    1 + 1 / (24 s^2) to first order; computed for s from 1 to 5 the factor stays below 1 + 1 / (20 s^2), at s = 0.5 not.
    """
    if not 1 <= steps < math.inf:
        return ()
    return (Limit("mu", math.sqrt(2 * rho) * (1 + 1 / (20 * steps * steps))),)


def _target(name: str, pair: Pair, limits: tuple[Limit, ...], run: Runner) -> Target:
    return Target(name, pair.name, pair.neighbours.value, limits, run)


def _limits(event: Event, steps: float) -> tuple[Limit, ...]:
    """Every currency in which the step was charged; for an unproved one the epsilon that is claimed."""
    if not event.private:
        return (Limit("epsilon", float(event.claimed or 0.0), proved=False),)
    rho, epsilon = float(event.cost.rho), float(event.cost.epsilon)
    if event.mechanism in ("gaussian", "gaussian-share"):
        return *mu_limits(rho, steps), Limit("rho", rho)
    if event.mechanism == "exponential":
        return Limit("range", epsilon), Limit("rho", rho)
    return (Limit("epsilon", epsilon),)


def _sum_limits(tables: OpenPair, asked: list[Release], budget: Budget) -> tuple[Limit, ...]:
    events, steps = [tables.charged(r) for r in asked], [tables.steps(r) for r in asked]
    if budget.pure:
        return (Limit("epsilon", float(sum(e.cost.epsilon for e in events))),)
    rho = float(sum(e.cost.rho for e in events))
    if all(e.mechanism == "gaussian" for e in events):
        return *mu_limits(rho, min(steps)), Limit("rho", rho)
    return (Limit("rho", rho),)
