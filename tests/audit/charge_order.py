"""The structural audit: whether a session charges before it reads, and reads nothing when it refuses."""

from __future__ import annotations

from dpcurate.accounting import Budget
from dpcurate.audit.examples import examples, worst_pair
from dpcurate.audit.pairs import Pair, quarters
from dpcurate.private.replay import order_of
from dpcurate.private.session import Session
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
