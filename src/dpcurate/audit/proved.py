"""Everything that is proved, at one epsilon: the statistics, mechanisms and methods an audit must not accuse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

from dpcurate.accounting import DELTA, Budget
from dpcurate.audit.run import Audited
from dpcurate.audit.subjects import Gate, Sampled, Script
from dpcurate.learn.measure_once import Constants, MeasureOnce
from dpcurate.learn.methods import EMPC, SVTPC, CuratePC, PrivPC
from dpcurate.learn.recipes import Method
from dpcurate.learn.score_methods import CurateScore, Noleaks, NotearsOnMoments
from dpcurate.requests import (
    Choose,
    Contrasts,
    Counts,
    Gaussian,
    Gradient,
    KendallP,
    Laplace,
    Moments,
    Noise,
    Release,
    Score,
    Statistic,
    Tau,
)
from dpcurate.schema import Neighbours

ABC = ("a", "b", "c")


@dataclass(frozen=True, slots=True)
class Case:
    """One audit of something proved. `fast` ones take all their runs at once."""

    name: str
    subject: Audited
    neighbours: Neighbours
    budget: Budget
    fast: bool


def cases(epsilon: float) -> list[Case]:
    """Every statistic with either noise and relation, every mechanism, every method, at one epsilon."""
    zcdp, pure = Budget(epsilon=epsilon, delta=DELTA), Budget(epsilon=epsilon, delta=0)
    return [
        *(case for relation in Neighbours for case in _releases(relation, zcdp, epsilon)),
        *(case for relation in Neighbours for case in _mechanisms(relation, pure, epsilon)),
        *(_method(name, m, b, replayed=r) for name, m, r in _constraint() for b in (zcdp, pure)),
        *(_method(name, m, zcdp, replayed=r) for name, m in score_methods().items() for r in (False, True)),
    ]  # fmt: skip


def _method(name: str, method: Method, budget: Budget, *, replayed: bool) -> Case:
    title = f"{name}{', replayed' if replayed else ''}, {'pure' if budget.pure else 'zcdp'}"
    return Case(title, Script(method) if replayed else method, Neighbours.ADD_REMOVE, budget, replayed)


def _constraint() -> list[tuple[str, Method, bool]]:
    """Methods that ask for releases alone are replayed too."""
    methods = constraint_methods()
    runs = [(name, m, False) for name, m in methods.items()]
    return runs + [(name, methods[name], True) for name in ("measure-once", "curate-pc")]


def statistics() -> dict[str, Statistic]:
    """Every proved statistic over the columns of its built-in pair."""
    sets = tuple(s for k in range(3) for s in combinations(ABC, k))
    return {
        "counts": Counts(ABC),
        "contrasts": Contrasts(sets),
        "weighted contrasts": Contrasts(sets, (0.5, 1.5, 1.5, 1.5, 1.0, 1.0, 1.0)),
        "moments": Moments(ABC),
        "clipped moments": Moments(ABC, clip=1.0),
        "gradient": Gradient(("a", "b"), ((0.0, 0.0), (0.0, 0.0)), clip=1.0),
        "tau": Tau("a", "b", ("c",)),
        "kendall-p": KendallP("a", "b", ("c",)),
    }


def _releases(relation: Neighbours, zcdp: Budget, epsilon: float) -> list[Case]:
    noises: dict[str, Noise] = {"laplace": Laplace(epsilon=epsilon), "gaussian": Gaussian(rho=zcdp.rho)}
    return [
        Case(f"{name}, {kind}, {relation.value}", Release(statistic, noise), relation, zcdp, True)
        for name, statistic in statistics().items()
        for kind, noise in noises.items()
    ]


def _mechanisms(relation: Neighbours, pure: Budget, epsilon: float) -> list[Case]:
    tau = statistics()["tau"]
    assert isinstance(tau, Tau)
    up, down = Score(tau, 2.0, "above"), Score(tau, 2.0, "below")
    bodies: dict[str, tuple[Audited, Budget]] = {
        "exponential mechanism": (Choose(candidates=(up, down), epsilon=epsilon), pure),
        "above-threshold": (Gate(epsilon=epsilon, scores=(up, up, up, down)), pure),
        "sample": (_sample(epsilon, 0.5, relation), pure),
    }
    return [Case(f"{n}, {relation.value}", body, relation, b, False) for n, (body, b) in bodies.items()]


def _sample(epsilon: float, rate: float, relation: Neighbours) -> Sampled:
    """As much as a sample may cost so that the whole table pays epsilon."""
    inner = raw_epsilon(epsilon, rate, relation)
    return Sampled(rate=rate, epsilon=inner, release=Release(Counts(ABC), Laplace(epsilon=inner)))


def raw_epsilon(epsilon: float, rate: float, relation: Neighbours) -> float:
    """The largest epsilon on a sample that is charged at most `epsilon`, by bisection of what is charged."""
    from dpcurate.private.trials import amplified_cost

    low, high = 0.0, epsilon + 10.0
    for _ in range(60):
        middle = (low + high) / 2
        fits = amplified_cost(middle, rate, relation) <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    return low


def constraint_methods() -> dict[str, Method]:
    """Methods that spend either kind of budget. The tests of order 0 are those that one row moves most."""
    quick = replace(Constants(), effort=0, walk=0)  # the search after the releases sees no rows
    return {
        "measure-once": MeasureOnce(constants=quick),
        "em-pc": EMPC(max_order=0),
        "svt-pc": SVTPC(max_order=0),
        "priv-pc": PrivPC(max_order=0),
        "priv-pc at rate 0.5": PrivPC(max_order=0, rate=0.5),
        "curate-pc": CuratePC(max_order=0),
        "curate-pc at rate 0.5": CuratePC(max_order=0, rate=0.5),
        "svt-pc on p-values": SVTPC(max_order=0, statistic="kendall-p"),
    }


def score_methods() -> dict[str, Method]:
    """Methods that need Gaussian noise."""
    return {
        "notears-on-moments": NotearsOnMoments(),
        "noleaks": Noleaks(iterations=2),
        "curate-score": CurateScore(iterations=2, budgets="released"),
    }
