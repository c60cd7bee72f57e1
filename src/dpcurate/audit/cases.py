"""Everything that is proved, with the budget and the runs at which 0.7 of its noise is accused.

Statistics come from the registry of statistics and methods from the registry of methods, so a new one
is audited or refused, never forgotten.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, cast

from dpcurate.accounting import DELTA, Budget
from dpcurate.audit.examples import ABC, examples
from dpcurate.audit.pairs import Pair, mixed, quarters
from dpcurate.audit.run import CONFIDENCE, WEAK, Audit, Audited, all_controls, audit, measure, target_of
from dpcurate.audit.targets import OpenedGate, Sampled, Script
from dpcurate.learn.measure_once import Constants, MeasureOnce
from dpcurate.learn.methods import Method, private
from dpcurate.queries import (
    CELLS,
    Choose,
    Counts,
    Gaussian,
    GaussianShare,
    Laplace,
    Noise,
    Quantile,
    Release,
    Score,
    Tau,
)
from dpcurate.schema import Neighbours

NOISES: Mapping[type[Noise], tuple[Noise, int]] = {
    Gaussian: (Gaussian(rho=0.5), 4_000),
    Laplace: (Laplace(epsilon=1.0), 12_000),
}
"""Each costs rho = 0.5. Laplace noise shows its whole cost less often, so it takes more runs."""
CHOICE, GATE, SAMPLE = 2.0, 3.0, 2.0
"""The epsilon of a choice, which is charged rho = 0.5; of a gate; and inside a secret sample."""
METHOD = Budget(epsilon=20.0, delta=DELTA)
"""What a method may spend in one run: at epsilon = 1 its 0.7 of the noise takes a hundred times as many runs."""
METHOD_RUNS, FEW_RUNS = 800, 100
"""Runs of a method that has power at that budget, and of one that has none."""
MIDDLE = {Neighbours.ADD_REMOVE: 2.5, Neighbours.REPLACE: 2.0}
"""Half-way between the two values of tau on its pair of tables."""
NOES = 6
SHORT: Mapping[str, object] = {
    "max_order": 0,  # the tests that one row moves most
    "iterations": 2,
    "constants": dataclasses.replace(Constants(), effort=0),  # a search that sees no rows
}
VARIANTS: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "svt-pc": {"on p-values": {"statistic": "kendall-p"}},
    "priv-pc": {"at rate 0.5": {"rate": 0.5}, "on tau": {"statistic": "tau"}},
    "curate-pc": {"at rate 0.5": {"rate": 0.5}, "on tau": {"statistic": "tau"}},
    "curate-score": {"adaptive": {"budgets": "released"}, "clipped at a quantile": {"clipping": "quantile"}},
}
GAUSSIAN_ONLY = ("measure-once", "noleaks", "curate-score", "curate-score adaptive")
"""Methods whose releases all have Gaussian noise of at least one integer step. Of the others the parts are audited."""


@dataclass(frozen=True, slots=True)
class AuditCase:
    """One audit of something proved; without a pair of its own it gets the built-in one.

    `powerful` says whether its runs are enough to accuse 0.7 of the noise.
    """

    name: str
    audited: Audited
    neighbours: Neighbours
    runs: int
    budget: Budget = METHOD
    pair: Pair | None = None
    powerful: bool = True


def cases() -> list[AuditCase]:
    """Every statistic with either noise and relation, every mechanism, every method."""
    found: list[AuditCase] = []
    for relation in Neighbours:
        found += _releases(relation)
    for relation in Neighbours:
        found += _mechanisms(relation)
    for name, method in methods().items():
        found += _of_method(name, method)
    return found


def _releases(relation: Neighbours) -> list[AuditCase]:
    found = []
    for example in examples():
        for kind in example.noises:
            noise, runs = NOISES[kind]
            name = f"{example.name}, {kind.__name__.lower()}, {relation.value}"
            asked = Release(example.statistic, noise)
            found.append(AuditCase(name, asked, relation, runs, pair=example.pair(relation)))
    return found


def _mechanisms(relation: Neighbours) -> list[AuditCase]:
    """Two candidates that move in opposite directions; noes that move down before a yes that moves up; a sample."""
    tau = Tau("a", "b", ("c",))
    falls, rises = Score(tau, MIDDLE[relation], "above"), Score(tau, MIDDLE[relation], "below")
    counts = Release(Counts(ABC), Laplace(epsilon=SAMPLE))
    sampled = Sampled(rate=0.5, epsilon=SAMPLE, release=counts)
    gate = OpenedGate(epsilon=GATE, scores=(falls,) * NOES + (rises,))
    return [
        AuditCase(
            f"exponential mechanism, {relation.value}",
            Choose(candidates=(falls, rises), epsilon=CHOICE),
            relation,
            4_000,
        ),
        AuditCase(f"quantile, {relation.value}", ranked(relation), relation, 4_000, pair=quarters(relation)),
        AuditCase(f"above-threshold, {relation.value}", gate, relation, 60_000),
        AuditCase(
            f"shared noise, {relation.value}", Release(Counts(ABC), GaussianShare(rho=0.5, sites=3)), relation, 4_000
        ),
        AuditCase(f"secret sample, {relation.value}", sampled, relation, 4_000),
    ]


def ranked(relation: Neighbours) -> Quantile:
    """Where a rank below all rows is; or where between three rows the median is.

    Below all rows, one half comes nearer and three parts of the other go away. Between rows, many short intervals
    that all come nearer, or all go away, leave little weight to the rest.
    """
    if relation is Neighbours.ADD_REMOVE:
        parts = (0, *range(CELLS // 2, 7 * CELLS // 8, CELLS // 8), CELLS)
        return Quantile(column="a", probability=0.5, epsilon=CHOICE, shift=-3, cuts=parts)
    row = CELLS // 8, 3 * CELLS // 8, 7 * CELLS // 8
    fine = [*range(row[0] + 32, row[1], 32), *range(row[1] + 32, row[2], 32)]
    return Quantile(column="a", probability=0.5, epsilon=CHOICE, cuts=(0, *fine, CELLS))


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


def _of_method(name: str, method: Method) -> list[AuditCase]:
    relation = Neighbours.ADD_REMOVE
    powerful = name in GAUSSIAN_ONLY
    runs = METHOD_RUNS if powerful else FEW_RUNS
    found = [AuditCase(name, method, relation, runs, METHOD, powerful=powerful)]
    if powerful:
        found.append(AuditCase(f"{name}, replayed", Script(method), relation, 2 * METHOD_RUNS, METHOD))
    if isinstance(method, MeasureOnce):
        found += [
            AuditCase(f"{name} by features", method, relation, METHOD_RUNS, METHOD, mixed(relation)),
            AuditCase(
                f"{name} by features, replayed", Script(method), relation, 2 * METHOD_RUNS, METHOD, mixed(relation)
            ),
        ]
    return found


# --- the long audit -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CaseStudy:
    """One audit of a case, and one of the same case with 0.7 of its noise."""

    case: AuditCase
    honest: Audit
    weak: Audit

    @property
    def wrong(self) -> bool:
        """Something proved was accused, or something broken was not where the audit should have power."""
        return self.honest.accused or (self.case.powerful and not self.weak.accused)


def study(case: AuditCase, seed: int) -> CaseStudy:
    """Both audits, each with the runs of the case."""
    target = target_of(case.audited, case.pair, case.budget, case.neighbours)
    honest = measure(target, case.runs, CONFIDENCE, seed)
    return CaseStudy(case, honest, measure(target, case.runs, CONFIDENCE, seed + 1, WEAK))


def _one(index: int, seed: int) -> CaseStudy:
    return study(cases()[index], seed)


def all_studies(*, seed: int, workers: int, progress: Callable[[int, int], None], only: str = "") -> list[CaseStudy]:
    """Every case, in order; with `only` those whose name contains it."""
    chosen = [i for i, case in enumerate(cases()) if only in case.name]
    done: dict[int, CaseStudy] = {}
    with ProcessPoolExecutor(workers) as pool:
        waiting = {pool.submit(_one, i, seed + 1000 * i): i for i in chosen}
        for future in as_completed(waiting):
            done[waiting[future]] = future.result()
            progress(len(done), len(chosen))
    return [done[i] for i in chosen]


def control_audits(seed: int) -> list[Audit]:
    """Every negative control with its usual number of runs."""
    return [audit(c, runs=c.runs, seed=seed) for c in all_controls()]


def workers() -> int:
    """How many processes a long audit uses."""
    return min(2, os.cpu_count() or 1)
