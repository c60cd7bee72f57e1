"""The structural audit: whether a session charges before it reads, and reads nothing when it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpcurate._typing import IntArray
from dpcurate.accounting import Budget, Event
from dpcurate.audit.examples import examples, worst_pair
from dpcurate.audit.pairs import Pair, quarters
from dpcurate.errors import RefusedError
from dpcurate.private.ledger import Ledger
from dpcurate.private.noise import Randomness, Seeded
from dpcurate.private.replay import OpenPair
from dpcurate.private.row_sums import RowSum
from dpcurate.private.session import Session
from dpcurate.private.sources import Source
from dpcurate.queries import (
    AboveThreshold,
    Choose,
    Gate,
    Gaussian,
    Laplace,
    Quantile,
    Query,
    Release,
    Sample,
    Score,
    T,
    Tau,
)
from dpcurate.schema import Neighbours

AMPLE, NOTHING = Budget(rho=1e6), Budget(rho=1e-12)
AnyQuery = Query[object] | Gate[object]


def order_faults(kind: type[Session] = Session) -> tuple[str, ...]:
    """What is wrong with the order of charging, reading and drawing, a sentence each; none if all is well."""
    faults = []
    for name, pair, asked in order_cases():
        tables = pair.opened()
        faults += [f"{name}: {fault}" for fault in _paid(order_of(tables, asked, AMPLE, kind))]
        faults += [f"{name}: {fault}" for fault in _refused(order_of(tables, asked, NOTHING, kind))]
    return tuple(faults)


def order_cases() -> list[tuple[str, Pair, AnyQuery]]:
    """Every proved statistic of the registry with either noise, a choice, a quantile, and either gate."""
    relation, tau = Neighbours.ADD_REMOVE, Tau("a", "b", ("c",))
    releases: list[tuple[str, Pair, AnyQuery]] = [
        (example.name, example.pair(relation), Release(example.statistic, noise))
        for example in examples()
        for noise in (Laplace(epsilon=1.0), Gaussian(rho=1.0))
    ]
    others: tuple[AnyQuery, ...] = (
        Choose(candidates=(Score(tau, 1.0, "above"),), epsilon=1.0, or_none=True),
        AboveThreshold(epsilon=1.0),
        Sample(rate=0.5, epsilon=1.0),
    )
    releases.append(("Quantile", quarters(relation), Quantile(column="a", probability=0.5, epsilon=1.0)))
    return releases + [(type(asked).__name__, worst_pair(tau, relation), asked) for asked in others]


def _paid(log: tuple[str, ...]) -> list[str]:
    if "charge" not in log:
        return ["answered and never charged"]
    before = log[: log.index("charge")]
    return [f"{word} before it was charged" for word in ("read", "draw") if word in before]


def _refused(log: tuple[str, ...]) -> list[str]:
    faults = [f"{word} although it was refused" for word in ("read", "draw") if word in log]
    return faults if "refused" in log else [*faults, "answered beyond the budget"]


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
