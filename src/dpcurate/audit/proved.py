"""Everything that is proved, at one epsilon: what an audit must not accuse.

Statistics come from the registry of statistics and methods from the registry of methods, so a new one
is audited or refused, never forgotten.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from dpcurate.accounting import DELTA, Budget
from dpcurate.audit.examples import ABC, examples
from dpcurate.audit.pairs import Pair, equal_rows, quarters
from dpcurate.audit.run import Audited
from dpcurate.audit.targets import OpenedGate, Sampled, Script
from dpcurate.learn.measure_once import Constants
from dpcurate.learn.methods import Method, entry_of, private
from dpcurate.queries import CELLS, Choose, Counts, Gaussian, Laplace, Noise, Quantile, Release, Score, Tau
from dpcurate.schema import Neighbours

MIDDLE = {Neighbours.ADD_REMOVE: 2.5, Neighbours.REPLACE: 2.0}
"""Half-way between the two values of tau on its pair of tables."""
NOES = 8
SHORT: Mapping[str, object] = {
    "max_order": 0,  # the tests that one row moves most
    "iterations": 2,
    "constants": dataclasses.replace(Constants(), effort=0, walk=0),  # a search that sees no rows
}
VARIANTS: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "svt-pc": {"on p-values": {"statistic": "kendall-p"}},
    "priv-pc": {"at rate 0.5": {"rate": 0.5}, "on tau": {"statistic": "tau"}},
    "curate-pc": {"at rate 0.5": {"rate": 0.5}, "on tau": {"statistic": "tau"}},
    "curate-score": {"adaptive": {"budgets": "released"}, "clipped at a quantile": {"clipping": "quantile"}},
}
REPLAYED = ("measure-once", "curate-pc", "notears-moments", "noleaks", "curate-score")
"""Methods that ask for releases alone."""


@dataclass(frozen=True, slots=True)
class Case:
    """One audit of something proved; without a pair of its own it gets the built-in one."""

    name: str
    audited: Audited
    neighbours: Neighbours
    budget: Budget
    pair: Pair | None = None


def cases(epsilon: float) -> list[Case]:
    """Every statistic with either noise and relation, every mechanism, every method, at one epsilon."""
    zcdp, pure = Budget(epsilon=epsilon, delta=DELTA), Budget(epsilon=epsilon, delta=0)
    return [
        *(case for relation in Neighbours for case in _releases(relation, zcdp, epsilon)),
        *(case for relation in Neighbours for case in _mechanisms(relation, pure, epsilon)),
        *(case for name, method in methods().items() for case in _of_method(name, method, zcdp, pure)),
    ]


def _releases(relation: Neighbours, zcdp: Budget, epsilon: float) -> list[Case]:
    noises: dict[str, Noise] = {"laplace": Laplace(epsilon=epsilon), "gaussian": Gaussian(rho=zcdp.rho)}
    return [
        Case(f"{name}, {kind}, {relation.value}", Release(statistic, noise), relation, zcdp)
        for name, statistic in examples().items()
        for kind, noise in noises.items()
    ]


def _mechanisms(relation: Neighbours, pure: Budget, epsilon: float) -> list[Case]:
    """Two candidates that move in opposite directions; noes that move down before a yes that moves up; samples."""
    tau = Tau("a", "b", ("c",))
    falls, rises = Score(tau, MIDDLE[relation], "above"), Score(tau, MIDDLE[relation], "below")
    counts, margin = (Release(Counts(columns), Laplace(epsilon=epsilon)) for columns in (ABC, ABC[:1]))
    audited: dict[str, tuple[Audited, Pair | None]] = {
        "exponential mechanism": (Choose(candidates=(falls, rises), epsilon=epsilon), None),
        "quantile": (_ranked(relation, epsilon), quarters(relation)),
        "above-threshold": (OpenedGate(epsilon=epsilon, scores=(falls,) * NOES + (rises,)), None),
        "sample": (Sampled(rate=0.5, epsilon=epsilon, release=counts), None),
        "sample of equal rows": (Sampled(rate=0.25, epsilon=epsilon, release=margin), equal_rows(relation)),
    }
    return [Case(f"{name}, {relation.value}", what, relation, pure, pair) for name, (what, pair) in audited.items()]


def _ranked(relation: Neighbours, epsilon: float) -> Quantile:
    """Which half of the range is nearer to a rank below all rows, or which quarter holds the median."""
    added = relation is Neighbours.ADD_REMOVE
    shift, parts = (-3, 2) if added else (0, 4)
    cuts = tuple(range(0, CELLS + 1, CELLS // parts))
    return Quantile(column="a", probability=0.5, epsilon=epsilon, shift=shift, cuts=cuts)


def methods() -> dict[str, Method]:
    """Every method of the registry once, made short, and the variants that ask in another way."""
    found: dict[str, Method] = {}
    named = list(private().items())
    for i, (name, method) in enumerate(named):
        if any(method == later for _, later in named[i + 1 :]):
            continue  # another name for the same
        found[name] = short = _short(method)
        for more, change in VARIANTS.get(name, {}).items():
            found[f"{name} {more}"] = cast(Method, dataclasses.replace(cast(Any, short), **change))
    return found


def _short(method: Method) -> Method:
    known = {field.name for field in dataclasses.fields(cast(Any, method))}
    change = {name: value for name, value in SHORT.items() if name in known}
    return cast(Method, dataclasses.replace(cast(Any, method), **change))


def _of_method(name: str, method: Method, zcdp: Budget, pure: Budget) -> list[Case]:
    entry = entry_of(method)
    budgets = (zcdp, pure) if entry is None or entry.pure else (zcdp,)
    whole = [Case(f"{name}, {_kind(b)}", method, Neighbours.ADD_REMOVE, b) for b in budgets]
    if name not in REPLAYED:
        return whole
    return whole + [Case(f"{name}, replayed, {_kind(b)}", Script(method), Neighbours.ADD_REMOVE, b) for b in budgets]


def _kind(budget: Budget) -> str:
    return "pure" if budget.pure else "zcdp"
