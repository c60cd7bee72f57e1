"""A door that keeps the auditor's score: how much more likely what was seen is on the second table.

The analyst sees every answer, index and yes or no. The auditor holds both tables, so after each
answer the log of the ratio of its probabilities is known, taking the mechanisms at their word. By Neyman and
Pearson no other summary of what was seen tells the tables apart better; where the mechanisms do
not keep their word it is still a valid summary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcurate.budget import Privacy
from dpcurate.private.room import Room
from dpcurate.requests import (
    AboveThreshold,
    Answer,
    Choose,
    Exact,
    Gaussian,
    Laplace,
    Moments,
    Release,
    Request,
    Sample,
    Score,
    Statistic,
    Tau,
)
from dpcurate.schema import Neighbours, Schema

Array = NDArray[np.float64]
CERTAIN = 1e6
"""What an exact answer that differs adds to the score."""


class Truth:
    """Exact statistics of both tables, each computed once."""

    def __init__(self, rooms: tuple[Room, Room]) -> None:
        self._rooms = rooms
        self._known: dict[Statistic, tuple[Answer, Answer]] = {}

    def both(self, statistic: Statistic) -> tuple[Answer, Answer]:
        """The statistic on either table."""
        known = self._known.get(statistic)
        if known is None:
            asked = Release(statistic, Exact())
            known = self._rooms[0].ask(asked), self._rooms[1].ask(asked)
            if len(self._known) < 10_000:
                self._known[statistic] = known
        return known

    def scores(self, score: Score) -> tuple[float, float]:
        """A score on either table, in units of its sensitivity."""
        size = self._rooms[0].sensitivity(score.statistic)
        sign = 1.0 if score.side == "above" else -1.0
        first, second = (sign * (abs(float(a)) - score.threshold) / size for a in self.both(score.statistic))
        return first, second


class Tally:
    """The running score of one run."""

    def __init__(self, truth: Truth) -> None:
        self.truth = truth
        self.total = 0.0
        self.releases: list[object] = []

    def answer(self, release: Release, answer: Answer, rate: float = 1.0) -> None:
        """Add what a released statistic tells."""
        for seen, first, second, scale, share in zip(*self._parts(release, answer, rate), strict=True):
            self.total += float((share * _ratio(release, seen - first, seen - second, scale)).sum())

    def _parts(self, release: Release, answer: Answer, rate: float) -> tuple[Sequence[Any], ...]:
        exact = self.truth.both(release.statistic)
        shrink = rate if isinstance(release.statistic, Tau) else 1.0
        first, second = ([shrink * part for part in a.parts] for a in exact)
        shares = [_once(release.statistic, part) for part in answer.parts]
        return answer.parts, first, second, answer.scales, shares

    def choice(self, request: Choose, index: int) -> None:
        """Add what a choice tells."""
        self.total += self.index(request, index)

    def index(self, request: Choose, index: int) -> float:
        """What a choice tells."""
        pairs = [self.truth.scores(c) for c in request.candidates] + [(0.0, 0.0)] * request.or_none
        weights = np.array(pairs) * request.epsilon / 2
        log = weights - np.logaddexp.reduce(weights, axis=0)
        return float(log[index, 1] - log[index, 0])


def _ratio(release: Release, first: Array, second: Array, scale: float) -> Array:
    if isinstance(release.noise, Gaussian):
        return np.asarray((first**2 - second**2) / (2 * scale**2))
    nearer = np.abs(first) - np.abs(second)
    return np.asarray(
        nearer * math.sqrt(2) / scale if isinstance(release.noise, Laplace) else CERTAIN * np.sign(nearer)
    )


def _once(statistic: Statistic, part: Array) -> Array:
    """A symmetric matrix shows its entries twice, and squares that are the count again."""
    if not isinstance(statistic, Moments):
        return np.ones_like(part)
    share = np.triu(np.ones_like(part))
    diagonal = np.diag(part)
    share[np.diag_indices_from(share)] = [1.0, *(np.asarray(diagonal[1:] != diagonal[0], dtype=np.float64))]
    return share


class WatchedThreshold:
    """An above-threshold gate: its secret threshold is summed over on a grid."""

    def __init__(self, gate: Any, epsilon: float, tally: Tally) -> None:
        self._gate, self._tally, self._scale = gate, tally, 4 / epsilon
        self._grid = np.linspace(-24 / epsilon, 24 / epsilon, 193)
        start = np.exp(-np.abs(self._grid) * epsilon / 2)
        self._likely = [start / start.sum(), start / start.sum()]

    @property
    def closed(self) -> bool:
        """Whether it has said yes."""
        return bool(self._gate.closed)

    def ask(self, score: Score) -> bool:
        """Pass the question on and add what the answer tells."""
        yes = bool(self._gate.ask(score))
        before = self._log()
        for which, u in enumerate(self._tally.truth.scores(score)):
            below = _laplace_below((self._grid - u) / self._scale)
            self._likely[which] = self._likely[which] * ((1 - below) if yes else below)
        self._tally.total += self._log() - before
        return yes

    def first(self, scores: Sequence[Score]) -> int | None:
        """The first yes, asked in turn."""
        return next((i for i, score in enumerate(scores) if self.ask(score)), None)

    def _log(self) -> float:
        return math.log(max(self._likely[1].sum(), 1e-300)) - math.log(max(self._likely[0].sum(), 1e-300))


def _laplace_below(x: Array) -> Array:
    half = 0.5 * np.exp(-np.abs(x))
    return np.where(x < 0, half, 1 - half)


class Witness:
    """The door of one run, with the auditor beside it."""

    def __init__(self, room: Room, tally: Tally, rate: float = 1.0) -> None:
        self._room, self._tally, self._rate = room, tally, rate

    @property
    def schema(self) -> Schema:
        """The public description of the table."""
        return self._room.schema

    @property
    def neighbours(self) -> Neighbours:
        """The relation the guarantee is about."""
        return self._room.neighbours

    @property
    def remaining(self) -> float:
        """What is left of the budget, in its currency."""
        return self._room.remaining

    def ask(self, request: Request) -> Any:
        """Ask, and add what the answer tells."""
        return self.ask_all([request])[0]

    def ask_all(self, requests: Sequence[Request]) -> list[Any]:
        """Ask together, and add what the answers tell."""
        answers = self._room.ask_all(requests)
        self._tally.releases.extend(requests)
        for request, answer in zip(requests, answers, strict=True):
            if isinstance(request, Choose):
                self._tally.choice(request, answer)
            else:
                self._tally.answer(request, answer, self._rate)
        return answers

    def open(self, gate: AboveThreshold | Sample) -> Any:
        """Open a gate, watched too. On a sample the whole tables, scaled, stand for the sampled ones."""
        opened = self._room.open(gate)
        self._tally.releases.append(gate)
        if isinstance(gate, AboveThreshold):
            return WatchedThreshold(opened, gate.epsilon, self._tally)
        return Witness(opened, self._tally, gate.rate)

    def reserve(self, amount: float) -> AbstractContextManager[Any]:
        """Set aside budget."""
        return self._room.reserve(amount)

    def sensitivity(self, statistic: Statistic) -> float:
        """How far one unit can move a statistic."""
        return self._room.sensitivity(statistic)

    def draw(self) -> float:
        """A fresh public random number."""
        return self._room.draw()

    def privacy(self) -> Privacy:
        """What has been spent on what."""
        return self._room.privacy()
