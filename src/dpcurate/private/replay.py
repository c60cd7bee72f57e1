"""Sessions on two neighbouring tables, for audits alone. An auditor holds both, so nothing here is for an analyst."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpcurate._typing import FloatArray, IntArray
from dpcurate.accounting import Budget, Event
from dpcurate.private import shared_round
from dpcurate.private.ledger import Ledger
from dpcurate.private.mechanisms import GaussianNoise, GaussianShareNoise, build, integer_scale
from dpcurate.private.noise import Randomness as Randomness
from dpcurate.private.noise import Secure, Seeded
from dpcurate.private.row_sums import no_rows
from dpcurate.private.session import Session
from dpcurate.private.site_parts import SiteParts
from dpcurate.private.sources import InMemory, Source, open_source
from dpcurate.private.statistics import registry
from dpcurate.queries import Answer, Gate, GaussianShare, Query, Release, Statistic
from dpcurate.schema import Neighbours, Schema

AMPLE = Budget(rho=1e9)
"""More than any audit spends; without a limit there is no promise, and no part in rounds."""


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

    def coalition(self, which: int, noise: Randomness, share: GaussianShare) -> Coalition:
        """What colluding sites see of one of the tables in rounds of shared noise."""
        nobody = InMemory(no_rows(self.schema))
        sources = (self.sources[which], *[nobody] * (share.sites - 1))
        books = [Ledger(AMPLE, neighbours=self.neighbours.value) for _ in sources]
        return Coalition(
            tuple(
                AuditedParts(Session(source, self.schema, self.neighbours, book, noise, allow_unproved=False))
                for source, book in zip(sources, books, strict=True)
            ),
            share,
        )

    def charged(self, asked: Query[object] | Gate[object]) -> Event:
        """What a session really charged for this, once answered or opened."""
        if isinstance(asked, Release) and isinstance(asked.noise, GaussianShare):
            coalition = self.coalition(0, Seeded(0), asked.noise)
            coalition.ask_all([asked])
            (event,) = coalition.sites[0]._session.ledger.events
            return event
        session = self.unlimited(0, Seeded(0))
        session.open(asked) if isinstance(asked, Gate) else session.ask(asked)
        (event,) = session.ledger.events
        return event

    def steps(self, release: Release) -> float:
        """The least noise of a Gaussian release in integer steps; infinite for other noise."""
        computed = registry.transformation(release.statistic, self.schema)
        mechanism = build(release.noise, registry.sensitivity(computed, self.schema, self.neighbours))
        if isinstance(mechanism, GaussianShareNoise):
            honest = mechanism.sites - mechanism.colluding
            return float(mechanism.share * min(computed.units)) * math.sqrt(honest)
        if not isinstance(mechanism, GaussianNoise):
            return math.inf
        return min(integer_scale(mechanism.sigma, unit) for unit in computed.units)


class AuditedParts(SiteParts):
    """The parts of a session that an auditor has opened, of a table that is nobody's."""

    def __init__(self, session: Session) -> None:
        self._begin(session)


@dataclass(eq=False)
class Coalition:
    """What colluding sites see in rounds of shared noise: the sum of all parts, less what they added themselves.

    The first site has the table; all others have no rows, and the last of them collude.
    """

    sites: tuple[AuditedParts, ...]
    share: GaussianShare
    _number: int = 0

    def ask_all(self, queries: Sequence[Release]) -> list[Answer]:
        """A round, in which the colluding sites' masks and noise are known and taken out."""
        one = self.sites[0]._session
        names = [f"site {place}" for place in range(len(self.sites))]
        keys = [site.public_key for site in self.sites]
        turn = shared_round.round_of(
            queries, one.schema, one.neighbours, study="audit", number=self._number, keys=keys, names=names
        )
        self._number += 1
        for site in self.sites:
            site.approve(keys)
        said = [site.masked(queries, turn) for site in self.sites]
        for place in range(self.share.honest, self.share.sites):
            key = self.sites[place]._own_key()
            said[place] = key.masked(turn, np.zeros(len(said[place].words), dtype=np.int64))  # nothing but the masks
        answers = shared_round.combined(queries, turn, said, one.schema, one.neighbours)
        smaller = math.sqrt(self.share.honest / self.share.sites)
        return [replace(answer, scales=tuple(smaller * scale for scale in answer.scales)) for answer in answers]


def proved_statistics() -> tuple[type[Statistic], ...]:
    """Every statistic a session answers whose sensitivity is proved, from the registry."""
    return tuple(registry.PROVED)
