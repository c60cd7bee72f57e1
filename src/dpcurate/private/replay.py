"""Sessions on two neighbouring tables, for audits alone. An auditor holds both, so nothing here is for an analyst."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpcurate._typing import FloatArray, IntArray
from dpcurate.accounting import Budget, Event
from dpcurate.errors import RefusedError
from dpcurate.private.ledger import Ledger
from dpcurate.private.mechanisms import GaussianNoise, build, integer_scale
from dpcurate.private.noise import Randomness as Randomness
from dpcurate.private.noise import Secure, Seeded
from dpcurate.private.row_sums import RowSum
from dpcurate.private.session import Session
from dpcurate.private.sources import Source, open_source
from dpcurate.private.statistics import registry
from dpcurate.queries import Gate, Query, Release, Statistic, T
from dpcurate.schema import Neighbours, Schema


class Weaker:
    """Randomness whose noise is too small by a factor: the broken mechanism that tells an audit's power."""

    def __init__(self, inner: Randomness, factor: float) -> None:
        self._inner, self._factor = inner, factor
        self.thin: Callable[[IntArray, int], IntArray] = inner.thin
        self.uniform: Callable[[], float] = inner.uniform

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Discrete Gaussian draws of too small a scale."""
        return self._inner.gaussian(scale * self._factor, size)

    def laplace(self, scale: float, size: int) -> IntArray:
        """Discrete Laplace draws of too small a scale."""
        return self._inner.laplace(scale * self._factor, size)

    def noisiest(self, scores: IntArray, scale: float) -> int:
        """The noisy maximum, with Gumbel noise of too small a scale."""
        return self._inner.noisiest(scores, scale * self._factor)


def randomness(seed: int | None, factor: float = 1.0) -> Randomness:
    """A seeded stream, or the secure source where there is no seed."""
    inner: Randomness = Secure() if seed is None else Seeded(seed)
    return inner if factor == 1 else Weaker(inner, factor)


def uniforms(seed: int, size: tuple[int, ...]) -> FloatArray:
    """Numbers in [0, 1) in steps of 2^-53, for the published mechanisms that draw in floating point."""
    return Seeded(seed)._stream.random(size)


@dataclass(frozen=True, slots=True, eq=False)
class OpenPair:
    """Two tables under one schema, and sessions on either."""

    schema: Schema
    neighbours: Neighbours
    sources: tuple[Source, Source]
    _known: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    @classmethod
    def from_tables(cls, tables: tuple[Any, Any], schema: Schema, neighbours: Neighbours) -> OpenPair:
        """Open two neighbouring tables."""
        first, second = (open_source(table, schema) for table in tables)
        return cls(schema, neighbours, (first, second))

    def session(self, which: int, budget: Budget, noise: Randomness) -> Session:
        """A session on one of the tables, with a ledger of its own."""
        ledger = Ledger(budget, neighbours=self.neighbours.value)
        session = Session(self.sources[which], self.schema, self.neighbours, ledger, noise, allow_unproved=False)
        # Transformations and exact tables are the same in every run; sharing them saves time and changes no answer.
        session._reader, session._known = self._known.setdefault(which, (session._reader, session._known))
        return session

    def unlimited(self, which: int, noise: Randomness) -> Session:
        """A session on one of the tables without a limit."""
        return self.session(which, Budget.unlimited(), noise)

    def charged(self, asked: Query[object] | Gate[object]) -> Event:
        """What a session really charged for this, once answered or opened."""
        session = self.unlimited(0, Seeded(0))
        session.open(asked) if isinstance(asked, Gate) else session.ask(asked)
        (event,) = session.ledger.events
        return event

    def steps(self, release: Release) -> float:
        """The least noise of a Gaussian release in integer steps; infinite for other noise."""
        computed = registry.transformation(release.statistic, self.schema)
        mechanism = build(release.noise, registry.sensitivity(computed, self.schema, self.neighbours))
        if not isinstance(mechanism, GaussianNoise):
            return math.inf
        return min(integer_scale(mechanism.sigma, unit) for unit in computed.units)


def proved_statistics() -> tuple[type[Statistic], ...]:
    """Every statistic a session answers whose sensitivity is proved, from the registry."""
    return tuple(registry.PROVED)


# --- the order of charging and reading --------------------------------------------------------------


class _WatchedSource:
    """A source that tells when it is read."""

    def __init__(self, inner: Source, log: list[str]) -> None:
        self._inner, self._log = inner, log
        self.check, self.check_sample = inner.check, inner.check_sample
        self.passes, self.made = inner.passes, inner.made

    def totals(self, row_sums: Sequence[RowSum]) -> list[IntArray]:
        self._log.append("read")
        return self._inner.totals(row_sums)

    def sample(self, rate: int, randomness: Randomness) -> Source:
        self._log.append("read")
        return _WatchedSource(self._inner.sample(rate, randomness), self._log)


class _Noted(Ledger):
    """A ledger that tells when it is charged, before it decides."""

    steps: list[str]

    def charge(self, events: Sequence[Event]) -> None:
        self.steps.append("charge")
        super().charge(events)


class _NotedNoise:
    """Noise that tells when it is drawn."""

    def __init__(self, inner: Randomness, log: list[str]) -> None:
        self._inner, self._log = inner, log

    def __getattr__(self, name: str) -> Any:
        self._log.append("draw")
        return getattr(self._inner, name)


def order_of(
    pair: OpenPair, asked: Query[object] | Gate[object], budget: Budget, kind: type[Session] = Session
) -> tuple[str, ...]:
    """What happened, in order, when a fresh session was asked: 'charge', 'read', 'draw', 'refused'."""
    log: list[str] = []
    ledger = _Noted(budget, neighbours=pair.neighbours.value)
    ledger.steps = log
    noise: Any = _NotedNoise(Seeded(0), log)
    session = kind(
        _WatchedSource(pair.sources[0], log), pair.schema, pair.neighbours, ledger, noise, allow_unproved=False
    )
    try:
        session.open(asked) if isinstance(asked, Gate) else session.ask(asked)
    except RefusedError:
        log.append("refused")
    return tuple(log)


class ChargesLate(Session):
    """A negative control: it reads and answers first and charges afterwards."""

    def ask_all(self, queries: Sequence[Query[T]]) -> list[T]:
        """Answers first, and the charge afterwards."""
        asked = [self._validated(query) for query in queries]
        answers = self._answers(asked)
        self._charge([one.event for one in asked])
        return answers
