"""Many runs on two tables, for audits alone: the room's own plans, mechanisms, gates and books.

An auditor holds both tables, so nothing here is a door for an analyst.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcurate.budget import Budget, Event
from dpcurate.errors import RefusedError
from dpcurate.private.kernels import Integers, Kernel
from dpcurate.private.ledger import Ledger
from dpcurate.private.mechanisms import GaussianNoise, LaplaceNoise, Mechanism, amplified, build, integer_scale
from dpcurate.private.noise import Randomness, Secure, Seeded
from dpcurate.private.room import Room
from dpcurate.private.sources import Source, open_source
from dpcurate.private.statistics import Plan
from dpcurate.requests import AboveThreshold, Choose, Gaussian, Release, Request, Sample
from dpcurate.schema import Neighbours, Schema

Array = NDArray[np.float64]
AT_ONCE = 1 << 18
"""Draws held in memory at a time."""


class Weaker:
    """Randomness whose noise is too small by a factor: the broken mechanism that tells an audit's power."""

    def __init__(self, inner: Randomness, factor: float) -> None:
        self._inner, self._factor = inner, factor
        self.thin, self.uniform = inner.thin, inner.uniform

    def gaussian(self, scale: float, size: int) -> Integers:
        """Discrete Gaussian draws of a smaller parameter."""
        return self._inner.gaussian(scale * self._factor, size)

    def laplace(self, scale: float, size: int) -> Integers:
        """Discrete Laplace draws of a smaller scale."""
        return self._inner.laplace(scale * self._factor, size)

    def noisiest(self, scores: Integers, scale: float) -> int:
        """A noisy maximum of a smaller scale."""
        return self._inner.noisiest(scores, scale * self._factor)


def randomness(seed: int | None, factor: float = 1.0) -> Randomness:
    """A seeded stream, or the secure source where there is no seed."""
    inner: Randomness = Secure() if seed is None else Seeded(seed)
    return inner if factor == 1 else Weaker(inner, factor)


def amplified_cost(epsilon: float, rate: float, relation: Neighbours) -> float:
    """What a block of epsilon on a secret sample is charged."""
    exact = Fraction(math.floor(Fraction(rate) * 2**32), 2**32)
    return float(amplified(epsilon, exact, replace=relation is Neighbours.REPLACE))


def uniforms(seed: int, size: tuple[int, ...]) -> Array:
    """Numbers in [0, 1) in steps of 2^-53, for the published mechanisms that draw in floating point."""
    return Seeded(seed)._stream.random(size)


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """Two tables under one schema, and rooms on either."""

    schema: Schema
    neighbours: Neighbours
    sources: tuple[Source, Source]
    _known: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, tables: tuple[Any, Any], schema: Schema, neighbours: Neighbours) -> Stage:
        """Open both tables."""
        first, second = (open_source(table, schema) for table in tables)
        return cls(schema, neighbours, (first, second))

    def room(self, which: int, budget: Budget, noise: Randomness, *, allow_unproved: bool = False) -> Room:
        """A room on one of the tables, with books of its own."""
        books = Ledger(budget, allow_unproved=allow_unproved, neighbours=self.neighbours.value)
        room = Room(self.sources[which], self.schema, self.neighbours, books, noise, allow_unproved=allow_unproved)
        # Plans and exact tables are the same in every run; sharing them saves time and changes no answer.
        room._reader, room._plans = self._known.setdefault(which, (room._reader, room._plans))
        return room

    def open_rooms(self, noise: Randomness) -> tuple[Room, Room]:
        """Rooms that answer everything."""
        endless = Budget.unlimited()
        return self.room(0, endless, noise), self.room(1, endless, noise)

    def charge(self, request: Request) -> Event:
        """What the room would charge for a request."""
        return self.open_rooms(Seeded(0))[0]._job(request).event

    def lattice(self, request: Request) -> float:
        """The least noise of a Gaussian release in integer steps; infinite where there is none."""
        if not isinstance(request, Release) or not isinstance(request.noise, Gaussian):
            return math.inf
        made, mechanism = self._made(request)
        assert isinstance(mechanism, GaussianNoise)
        return min(integer_scale(mechanism.sigma, unit) for unit in made.units)

    def _made(self, release: Release) -> tuple[Plan, Mechanism]:
        made, bound = self.open_rooms(Seeded(0))[0]._plan(release.statistic)
        return made, build(release.noise, bound)

    def released(self, release: Release, runs: int, noise: Randomness) -> tuple[Array, Array]:
        """For either table the log-likelihood ratio (second over first) of `runs` releases.

        Coordinates that are equal on both tables carry independent noise and tell nothing, so they are
        not drawn.
        """
        mechanism, moves = self._moves(release)
        return _ratios(moves, 0, mechanism, runs, noise), _ratios(moves, 1, mechanism, runs, noise)

    def span(self, release: Release) -> float:
        """The largest log-likelihood ratio of a Laplace release: the L1 distance over the scale."""
        return float(sum(np.abs(move.shift).sum() / move.scale for move in self._moves(release)[1]))

    def _moves(self, release: Release) -> tuple[GaussianNoise | LaplaceNoise, list[_Move]]:
        made, mechanism = self._made(release)
        assert isinstance(mechanism, (GaussianNoise, LaplaceNoise))
        first, second = (next(room._reader.read([made])) for room in self.open_rooms(Seeded(0)))
        moves = [_move(a, b, unit, mechanism) for a, b, unit in zip(first, second, made.units, strict=True)]
        return mechanism, [m for m in moves if m.shift.size]

    def chosen(self, request: Choose, runs: int, noise: Randomness) -> tuple[list[int], list[int]]:
        """For either table the indices chosen in `runs` choices."""
        first, second = (_choices(room, request, runs) for room in self.open_rooms(noise))
        return first, second


def _choices(room: Room, request: Choose, runs: int) -> list[int]:
    job = room._choose(request)
    parts = list(room._reader.read(job.plans))
    return [int(job.answer(parts, room._randomness)) for _ in range(runs)]


@dataclass(frozen=True, slots=True, eq=False)
class _Move:
    """The coordinates of one part that differ: by how much, and the noise they get."""

    shift: Array
    scale: float
    unit: Any


def _move(first: Integers, second: Integers, unit: Any, mechanism: GaussianNoise | LaplaceNoise) -> _Move:
    shift = np.ravel(second - first)
    scale = mechanism.sigma if isinstance(mechanism, GaussianNoise) else mechanism.scale
    return _Move(shift[shift != 0].astype(np.float64), integer_scale(scale, unit), unit)


def _ratios(
    moves: Sequence[_Move], which: int, mechanism: GaussianNoise | LaplaceNoise, runs: int, noise: Randomness
) -> Array:
    total = np.zeros(runs)
    for start, stop in _pieces(runs):
        for move in moves:
            drawn = mechanism.draw(move.unit, (stop - start) * move.shift.size, noise)
            value = drawn.reshape(stop - start, -1) + which * move.shift  # measured from the first table's value
            if isinstance(mechanism, GaussianNoise):
                total[start:stop] += ((value - move.shift / 2) * move.shift).sum(axis=1) / move.scale**2
            else:
                total[start:stop] += (np.abs(value) - np.abs(value - move.shift)).sum(axis=1) / move.scale
    return total


def _pieces(runs: int) -> Iterator[tuple[int, int]]:
    for start in range(0, runs, AT_ONCE):
        yield start, min(runs, start + AT_ONCE)


# --- the order of charging and reading --------------------------------------------------------------


class _Watched:
    """A source that tells when it is read."""

    def __init__(self, inner: Source, log: list[str]) -> None:
        self._inner, self._log = inner, log
        self.check, self.check_sample = inner.check, inner.check_sample
        self.passes, self.made = inner.passes, inner.made

    def totals(self, kernels: Sequence[Kernel]) -> list[Integers]:
        """Read, and say so."""
        self._log.append("read")
        return self._inner.totals(kernels)

    def sample(self, rate: int, randomness: Randomness) -> Source:
        """Drawing a sample reads the rows."""
        self._log.append("read")
        return _Watched(self._inner.sample(rate, randomness), self._log)


class _Noted(Ledger):
    """Books that tell when they are charged, before they decide."""

    log: list[str]

    def charge(self, events: Sequence[Event]) -> None:
        """Charge, and say so."""
        self.log.append("charge")
        super().charge(events)


class _NotedNoise:
    """Noise that tells when it is drawn."""

    def __init__(self, inner: Randomness, log: list[str]) -> None:
        self._inner, self._log = inner, log

    def __getattr__(self, name: str) -> Any:
        self._log.append("draw")
        return getattr(self._inner, name)


def order_of(
    stage: Stage, asked: Request | AboveThreshold | Sample, budget: Budget, kind: type[Room] = Room
) -> tuple[str, ...]:
    """What happened, in order, when a request was made of a fresh room: 'charge', 'read', 'draw', 'refused'."""
    log: list[str] = []
    books = _Noted(budget, neighbours=stage.neighbours.value)
    books.log = log
    noise: Any = _NotedNoise(Seeded(0), log)
    room = kind(_Watched(stage.sources[0], log), stage.schema, stage.neighbours, books, noise, allow_unproved=False)
    try:
        room.open(asked) if isinstance(asked, (AboveThreshold, Sample)) else room.ask(asked)
    except RefusedError:
        log.append("refused")
    return tuple(log)


class LateRoom(Room):
    """A negative control: it reads and answers first and charges afterwards."""

    def ask_all(self, requests: Sequence[Request]) -> list[Any]:
        """The wrong order."""
        jobs = [self._job(request) for request in requests]
        answers = self._answers(jobs)
        self._charge([job.event for job in jobs])
        return answers
