"""What can be audited, each as runs on two tables that end in the auditor's score."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcurate.audit.bounds import Array, Currency
from dpcurate.audit.pairs import Pair
from dpcurate.audit.witness import Tally, Truth, Witness
from dpcurate.budget import Budget, Event
from dpcurate.learn.recipes import Method
from dpcurate.private.trials import Stage, randomness
from dpcurate.requests import AboveThreshold, Choose, Door, Release, Sample, Score

Scores = tuple[Array, Array]
Run = Callable[[int, int | None, float], Scores]
"""So many runs on each table, from a seed (None: the secure source), with noise times a factor."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What a lower bound is held against: what was charged, or what an unproved release's authors claim."""

    currency: Currency
    value: float
    proved: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """Something to audit: how to run it, and what it may cost."""

    name: str
    pair: str
    neighbours: str
    limits: tuple[Limit, ...]
    run: Run
    delta: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """An above-threshold gate that is asked these scores until it says yes."""

    epsilon: float
    scores: tuple[Score, ...]

    def fit(self, door: Door) -> None:
        """Ask until the first yes."""
        gate = door.open(AboveThreshold(epsilon=self.epsilon))
        for score in self.scores:
            if gate.ask(score):
                return


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """A release on a fresh secret sample."""

    rate: float
    epsilon: float
    release: Release

    def fit(self, door: Door) -> None:
        """Draw the sample and ask it once."""
        door.open(Sample(rate=self.rate, epsilon=self.epsilon)).ask(self.release)


@dataclass(frozen=True, slots=True)
class Script:
    """The releases that a method asks for in one run, replayed many times: its books with many runs.

    A replay is not adaptive, so it says whether each step's noise is worth what was charged for all of them.
    """

    method: Method


def mu_limits(rho: float, steps: float) -> tuple[Limit, ...]:
    """The mu of Gaussian noise of at least so many integer steps; none below one step, where it is no guide.

    Discrete noise of s steps is not exactly mu-GDP. A threshold event has the normal quantile times
    1 + 1 / (24 s^2) to first order; computed for s from 1 to 5 the factor stays below 1 + 1 / (20 s^2), at s = 0.5 not.
    """
    if not 1 <= steps < math.inf:
        return ()
    return (Limit("mu", math.sqrt(2 * rho) * (1 + 1 / (20 * steps * steps))),)


def of_release(request: Release, pair: Pair) -> Subject:
    """A released statistic; all runs at once."""
    stage = pair.stage()
    event = stage.charge(request)

    def run(runs: int, seed: int | None, factor: float) -> Scores:
        return stage.released(request, runs, randomness(seed, factor))

    return _subject(event.about, pair, _limits(event, stage.lattice(request)), run)


def of_choice(request: Choose, pair: Pair) -> Subject:
    """An exponential mechanism; each index has its log-likelihood ratio."""
    stage = pair.stage()
    tally = Tally(Truth(stage.open_rooms(randomness(0))))
    ratios = np.array([tally.index(request, i) for i in range(len(request.candidates) + request.or_none)])

    def run(runs: int, seed: int | None, factor: float) -> Scores:
        first, second = stage.chosen(request, runs, randomness(seed, factor))
        return ratios[first], ratios[second]

    return _subject("exponential mechanism", pair, _limits(stage.charge(request), math.inf), run)


def _subject(name: str, pair: Pair, limits: tuple[Limit, ...], run: Run) -> Subject:
    return Subject(name, pair.name, pair.neighbours.value, limits, run)


def _limits(event: Event, steps: float) -> tuple[Limit, ...]:
    """Every currency in which the step was charged; for an unproved one the epsilon that is claimed."""
    if not event.private:
        return (Limit("epsilon", float(event.claimed or 0.0), proved=False),)
    rho, epsilon = float(event.cost.rho), float(event.cost.epsilon)
    if event.mechanism == "gaussian":
        return *mu_limits(rho, steps), Limit("rho", rho)
    if event.mechanism == "exponential":
        return Limit("rho", rho), Limit("epsilon", epsilon)
    return (Limit("epsilon", epsilon),)


def of_session(name: str, body: Method | Gate | Sampled, pair: Pair, budget: Budget) -> Subject:
    """Anything that asks a door: each run has a fresh room with fresh books, and all answers are seen."""
    stage = pair.stage()
    session = _Session(stage, body, budget, Truth(stage.open_rooms(randomness(0))))
    limits = [Limit("epsilon" if budget.pure else "rho", float(budget.ceiling))]
    steps = session.lattice()
    if not budget.pure:
        limits.extend(mu_limits(float(budget.ceiling), steps))
    return _subject(name, pair, tuple(limits), session)


def of_script(name: str, script: Script, pair: Pair, budget: Budget) -> Subject:
    """The releases of one run, all runs at once, against what the books held for that run."""
    stage = pair.stage()
    session = _Session(stage, script.method, budget, Truth(stage.open_rooms(randomness(0))))
    asked = [r for r in session.one(0, randomness(0)).releases if isinstance(r, Release)]

    def run(runs: int, seed: int | None, factor: float) -> Scores:
        noise = randomness(seed, factor)
        each = [stage.released(request, runs, noise) for request in asked]
        return np.sum([one for one, _ in each], axis=0), np.sum([two for _, two in each], axis=0)

    return _subject(f"{name}, {len(asked)} releases replayed", pair, _sum_limits(stage, asked, budget), run)


def _sum_limits(stage: Stage, asked: list[Release], budget: Budget) -> tuple[Limit, ...]:
    events, steps = [stage.charge(r) for r in asked], [stage.lattice(r) for r in asked]
    if budget.pure:
        return (Limit("epsilon", float(sum(e.cost.epsilon for e in events))),)
    rho = float(sum(e.cost.rho for e in events))
    if all(e.mechanism == "gaussian" for e in events):
        return *mu_limits(rho, min(steps)), Limit("rho", rho)
    return (Limit("rho", rho),)


@dataclass(frozen=True, slots=True, eq=False)
class _Session:
    stage: Stage
    body: Method | Gate | Sampled
    budget: Budget
    truth: Truth

    def __call__(self, runs: int, seed: int | None, factor: float) -> Scores:
        noise = randomness(seed, factor)
        first, second = (np.array([self.one(which, noise).total for _ in range(runs)]) for which in (0, 1))
        return first, second

    def one(self, which: int, noise: Any) -> Tally:
        """One run."""
        tally = Tally(self.truth)
        self.body.fit(Witness(self.stage.room(which, self.budget, noise), tally))
        return tally

    def lattice(self) -> float:
        """The least Gaussian noise in integer steps seen in two runs; infinite if other noise took part."""
        seen = [self.one(which, randomness(which)).releases for which in (0, 1)]
        events = [r for one in seen for r in one]
        steps = [self.stage.lattice(r) if isinstance(r, Release) else math.inf for r in events]
        return min(steps) if steps and max(steps) < math.inf else math.inf
