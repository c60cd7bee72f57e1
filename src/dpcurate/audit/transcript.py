"""What an analyst saw in one run, and how much more likely it is on the second table.

The analyst sees every answer, index and yes or no. The auditor holds both tables, so after each
answer the log of the ratio of its probabilities is known, taking the mechanisms at their word. By Neyman and
Pearson no other summary of what was seen tells the tables apart better; where the mechanisms do
not keep their word it is still a valid summary. One that does not take the independence of noise at
its word is `linked`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from dpcurate._typing import BoolArray, FloatArray
from dpcurate.private.replay import OpenPair, randomness
from dpcurate.queries import (
    AboveThreshold,
    Answer,
    Choose,
    Exact,
    Gate,
    Gaussian,
    GaussianShare,
    Laplace,
    Moments,
    PairStatistic,
    Query,
    Queryable,
    Release,
    Sample,
    Score,
    Statistic,
    T,
    ThresholdGate,
)
from dpcurate.queries.proxies import Proxy

CERTAIN = 1e6
"""What an exact answer that differs adds to the log-likelihood ratio."""
SAME = 1e-9
"""Differences of answers this near to each other, in units of the noise, are equal but for rounding."""
MOST_LINKED = 32
"""Coordinates looked at for noise that they share."""


class Truth:
    """Exact statistics of both tables, each computed once."""

    def __init__(self, pair: OpenPair) -> None:
        self._sessions = pair.unlimited(0, randomness(0)), pair.unlimited(1, randomness(0))
        self._known: dict[Statistic, tuple[Answer, Answer]] = {}

    def both(self, statistic: Statistic) -> tuple[Answer, Answer]:
        """The exact answer on either table."""
        known = self._known.get(statistic)
        if known is None:
            asked = Release(statistic, Exact())
            known = self._sessions[0].ask(asked), self._sessions[1].ask(asked)
            if len(self._known) < 10_000:
                self._known[statistic] = known
        return known

    def scores(self, score: Score) -> tuple[float, float]:
        """A score on either table, in units of its sensitivity."""
        size = self._sessions[0].sensitivity(score.statistic)
        sign = 1.0 if score.side == "above" else -1.0
        first, second = (sign * (abs(float(a)) - score.threshold) / size for a in self.both(score.statistic))
        return first, second


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """Every number of one release, in units of its noise: as seen in each run, and on either table."""

    noise: type
    seen: FloatArray
    first: FloatArray
    second: FloatArray

    @classmethod
    def of(cls, release: Release, answers: Sequence[Answer], truth: Truth, rate: float = 1.0) -> Coordinates:
        """Of a release's answers, one a run. On a sample the whole tables, scaled, stand for the sampled ones."""
        shrink = rate if isinstance(release.statistic, PairStatistic) else 1.0
        first, second = truth.both(release.statistic)
        columns: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        for i, scale in enumerate(answers[0].scales):
            once = _once(release.statistic, answers[0].parts[i])
            seen = np.array([a.parts[i][once] for a in answers]).reshape(len(answers), -1)
            each = seen, *(np.ravel(shrink * a.parts[i][once]) for a in (first, second))
            columns.append((each[0] / (scale or 1.0), each[1] / (scale or 1.0), each[2] / (scale or 1.0)))
        seen, one, two = (np.concatenate(parts, axis=-1) for parts in zip(*columns, strict=True))
        return cls(type(release.noise), seen, one, two)

    def ratios(self) -> FloatArray:
        """For each run the log of the ratio of the answers' likelihoods, second table over first."""
        from_first, from_second = self.seen - self.first, self.seen - self.second
        if self.noise in (Gaussian, GaussianShare):
            return np.asarray((from_first**2 - from_second**2).sum(axis=1) / 2)
        nearer = np.abs(from_first) - np.abs(from_second)
        each = nearer * math.sqrt(2) if self.noise is Laplace else CERTAIN * np.sign(nearer)
        return np.asarray(each.sum(axis=1))


def _once(statistic: Statistic, part: FloatArray) -> BoolArray:
    """Which entries to look at: a symmetric matrix shows them twice, and squares that are the count again."""
    if not isinstance(statistic, Moments):
        return np.ones(part.shape, dtype=bool)
    once = np.triu(np.ones(part.shape, dtype=bool))
    diagonal = np.diag(part)
    once[np.diag_indices_from(once)] = [True, *(diagonal[1:] != diagonal[0])]
    return once


def linked(all_seen: Sequence[Coordinates]) -> FloatArray | None:
    """For each run how many differences of two answers are exactly the second table's, less the first's.

    Noise that two answers share cancels in their difference, which likelihoods that take noise to be
    independent cannot see. None if no difference depends on the table.
    """
    seen, first, second = (
        np.concatenate([getattr(c, name) for c in all_seen], axis=-1) for name in ("seen", "first", "second")
    )
    moved = np.flatnonzero(np.abs(second - first) > SAME)[:MOST_LINKED]
    others = np.union1d(moved, np.arange(min(seen.shape[1], MOST_LINKED)))
    pairs = [(i, j) for i in moved for j in others if i != j]
    pairs = [(i, j) for i, j in pairs if abs((second - first)[i] - (second - first)[j]) > SAME]
    if not pairs:
        return None
    total = np.zeros(len(seen))
    for i, j in pairs:
        apart = seen[:, i] - seen[:, j]
        total += np.abs(apart - (second[i] - second[j])) < SAME
        total -= np.abs(apart - (first[i] - first[j])) < SAME
    return total


class Tally:
    """The running log-likelihood ratio of one run."""

    def __init__(self, truth: Truth) -> None:
        self.truth = truth
        self.total: float = 0.0
        self.asked: list[object] = []

    def answer(self, release: Release, answer: Answer, rate: float = 1.0) -> None:
        """Add what the answer to a release tells."""
        self.total += float(Coordinates.of(release, [answer], self.truth, rate).ratios()[0])

    def choice(self, query: Choose, index: int) -> None:
        """Add what a choice tells."""
        self.total += choice_ratio(self.truth, query, index)


def choice_ratio(truth: Truth, query: Choose, index: int) -> float:
    """The log-likelihood ratio of one choice of an exponential mechanism."""
    pairs = [truth.scores(c) for c in query.candidates] + [(0.0, 0.0)] * query.or_none
    weights = np.array(pairs) * query.epsilon / 2
    log = weights - np.logaddexp.reduce(weights, axis=0)
    return float(log[index, 1] - log[index, 0])


class ThresholdLikelihood:
    """What the answers of an above-threshold gate tell: its secret threshold is summed over on a grid."""

    def __init__(self, epsilon: float, truth: Truth) -> None:
        self._truth, self._scale = truth, 4 / epsilon
        self._grid = np.linspace(-24 / epsilon, 24 / epsilon, 193)
        start = np.exp(-np.abs(self._grid) * epsilon / 2)
        self._likely = [start / start.sum(), start / start.sum()]

    def note(self, score: Score, *, yes: bool) -> None:
        """A score that was below the threshold."""
        for which, u in enumerate(self._truth.scores(score)):
            below = laplace_below((self._grid - u) / self._scale)
            self._likely[which] = self._likely[which] * ((1 - below) if yes else below)

    @property
    def ratio(self) -> float:
        """The log-likelihood ratio of all that was noted."""
        first, second = (max(float(one.sum()), 1e-300) for one in self._likely)
        return math.log(second) - math.log(first)


def laplace_below(x: FloatArray) -> FloatArray:
    """P(Laplace of scale 1 < x)."""
    half = 0.5 * np.exp(-np.abs(x))
    return np.where(x < 0, half, 1 - half)


class ObservedThreshold:
    """An above-threshold gate with the auditor beside it."""

    def __init__(self, gate: ThresholdGate, epsilon: float, tally: Tally) -> None:
        self._gate, self._tally = gate, tally
        self._likelihood = ThresholdLikelihood(epsilon, tally.truth)

    @property
    def closed(self) -> bool:
        """Whether the gate has said yes as often as it may."""
        return bool(self._gate.closed)

    def ask(self, score: Score) -> bool:
        """Whether one score is above the threshold."""
        return self.first([score]) is not None

    def first(self, scores: Sequence[Score]) -> int | None:
        """The first of these scores that is above the threshold."""
        index: int | None = self._gate.first(scores)
        before = self._likelihood.ratio
        for i, score in enumerate(scores if index is None else scores[: index + 1]):
            self._likelihood.note(score, yes=i == index)
        self._tally.total += self._likelihood.ratio - before
        return index


class Observer(Proxy):
    """The session of one run, with the auditor beside it."""

    def __init__(self, session: Queryable, tally: Tally, rate: float = 1.0) -> None:
        super().__init__(session)
        self._tally, self._rate = tally, rate

    def ask(self, query: Query[T]) -> T:
        """The answer to one query, which is noted."""
        return self.ask_all([query])[0]

    def ask_all(self, queries: Sequence[Query[T]]) -> list[T]:
        """Answers to queries, which are noted."""
        answers = super().ask_all(queries)
        self._tally.asked.extend(queries)
        for query, answer in zip(queries, answers, strict=True):
            if isinstance(query, Choose):
                self._tally.choice(query, cast(int, answer))
            elif isinstance(query, Release):
                self._tally.answer(query, cast(Answer, answer), self._rate)
        return answers

    def open(self, gate: Gate[T]) -> T:
        """A gate whose answers are noted."""
        opened = super().open(gate)
        self._tally.asked.append(gate)
        if isinstance(gate, AboveThreshold):
            return cast(T, ObservedThreshold(cast(ThresholdGate, opened), gate.epsilon, self._tally))
        assert isinstance(gate, Sample)
        return cast(T, Observer(cast(Queryable, opened), self._tally, gate.rate))
