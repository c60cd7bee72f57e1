"""The structural audit: whether a room charges before it reads, and reads nothing when it refuses."""

from __future__ import annotations

from dpcurate.audit import pairs
from dpcurate.audit.proved import statistics
from dpcurate.audit.run import worst_pair
from dpcurate.budget import Budget
from dpcurate.private.room import Room
from dpcurate.private.trials import order_of
from dpcurate.requests import AboveThreshold, Choose, Gaussian, Laplace, Release, Request, Sample, Score, Tau
from dpcurate.schema import Neighbours

AMPLE, NOTHING = Budget(rho=1e6), Budget(rho=1e-12)
Asked = Request | AboveThreshold | Sample


def order_faults(kind: type[Room] = Room) -> tuple[str, ...]:
    """What is wrong with the order of charging, reading and drawing, a sentence each; none if all is well."""
    faults = []
    for name, pair, asked in _requests():
        stage = pair.stage()
        faults += [f"{name}: {fault}" for fault in _paid(order_of(stage, asked, AMPLE, kind))]
        faults += [f"{name}: {fault}" for fault in _refused(order_of(stage, asked, NOTHING, kind))]
    return tuple(faults)


def _requests() -> list[tuple[str, pairs.Pair, Asked]]:
    relation = Neighbours.ADD_REMOVE
    tau = Tau("a", "b", ("c",))
    score = Score(tau, 1.0, "above")
    found: list[tuple[str, pairs.Pair, Asked]] = [
        (name, worst_pair(statistic, relation), Release(statistic, noise))
        for name, statistic in statistics().items()
        for noise in (Laplace(epsilon=1.0), Gaussian(rho=1.0))
    ]
    others: tuple[Asked, ...] = (
        Choose(candidates=(score,), epsilon=1.0, or_none=True),
        AboveThreshold(epsilon=1.0),
        Sample(rate=0.5, epsilon=1.0),
    )
    return found + [(type(asked).__name__, worst_pair(tau, relation), asked) for asked in others]


def _paid(log: tuple[str, ...]) -> list[str]:
    if "charge" not in log:
        return ["answered and never charged"]
    before = log[: log.index("charge")]
    return [f"{word} before it was charged" for word in ("read", "draw") if word in before]


def _refused(log: tuple[str, ...]) -> list[str]:
    faults = [f"{word} although it was refused" for word in ("read", "draw") if word in log]
    return faults if "refused" in log else [*faults, "answered beyond the budget"]
