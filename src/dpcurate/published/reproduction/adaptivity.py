"""What adaptivity brings: runs that differ in the allocation of the budget and in nothing else, at equal spent leakage.

OPT is given the total. Every other allocation is given the nominal total at which its mean spending is what OPT
spends (`matched`), because an allocation by worst-case bounds leaves a part of its total unspent.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from dpcurate import Budget
from dpcurate.accounting import epsilon_of
from dpcurate.accounting.conversions import greatest
from dpcurate.learn.measure_once.constants import Constants
from dpcurate.learn.methods import CuratePC, CurateScore, MeasureOnce, Method, Noleaks
from dpcurate.published import schedules
from dpcurate.published.claims import ALLOCATIONS, CurateReading
from dpcurate.published.constraint import PublishedCuratePC
from dpcurate.published.reproduction.grid import NOMINAL, THRESHOLD, CellKind, GridCell, world
from dpcurate.published.reproduction.rehearsal import Rehearsal, memory
from dpcurate.published.score import PublishedCurateScore
from dpcurate.published.unproved_statistics import PaperTest
from dpcurate.result.fit import FitResult

DELTA = 1e-10
"""Every proved epsilon goes with this delta."""
DELTA_PRIME = 1e-12
"""The paper's delta', for every claim (the script has 1e-14)."""
GRADIENTS = 200
"""Gradients that share a total; NOLEAKS' artifact takes 200 to 1,800."""
MATCHED = 0.02
"""Calibration ends where the mean spending is this near."""
TURNS = 12
EACH: Mapping[CellKind, int] = MappingProxyType({"allocation": 30, "proved allocation": 12})
"""Runs of a turn of calibration, at most twice those of the cell: what a published run spends varies widely."""

PROVED_ALLOCATIONS: Mapping[str, Method] = MappingProxyType(
    {
        "OPT": CuratePC(floor=0.0),
        "the default floor of 0.7": CuratePC(),
        "uniform": CuratePC(floor=1.0),
        "order 0 only": CuratePC(floor=1.0, max_order=0),
    }
)
"""Allocations of the proved constraint-based CURATE; its floor is the least share of a uniform epsilon."""

PROVED_SHAPES: Mapping[str, Method] = MappingProxyType(
    {
        "even": Noleaks(),
        "additive": CurateScore(schedule="additive"),
        "exponential": CurateScore(schedule="exponential"),
        "geometric, 1 to 16": CurateScore(ratio=16.0),
    }
)
"""Schedules of the proved score-based form; none of them falls, and each spends its budget exactly."""

ADAPTIVE: Mapping[str, Method] = MappingProxyType(
    {
        "adaptive": MeasureOnce(),
        "one release of all pairs": MeasureOnce(constants=Constants(share_later=0.0)),
        "pairs, then all triples": MeasureOnce(
            constants=Constants(maybe=-1.0, share_doubts=0.0, share_families=0.0, again=1e-6)
        ),
    }
)
"""Our default, the same budget in one release, and with a second release that hardly looks at the first answers."""

TESTS: Mapping[str, PaperTest] = MappingProxyType(
    {"Kendall": "kendall", "G": "g", "chi-squared": "chi-squared", "Spearman": "spearman"}
)


@dataclass(frozen=True, slots=True)
class Spent:
    """A run: what was found and what it spent."""

    found: FitResult
    claimed: float


Fitted = Callable[[float, str], Spent]
"""Fit with a nominal total; the text is the seed."""


def published(reading: CurateReading, name: str, rows: int) -> Fitted:
    """Constraint-based CURATE as published; leakage by the authors' formula."""

    def fit(total: float, seed: str) -> Spent:
        found = PublishedCuratePC(total=total, threshold=THRESHOLD, reading=reading).fit(
            Rehearsal(memory(name, rows), seed)
        )
        return Spent(found, found.claimed or 0.0)

    return fit


def proved(method: Method, name: str, rows: int) -> Fitted:
    """A proved method on a curator; leakage is what it has charged, at DELTA."""
    place = world(name, rows)

    def fit(total: float, seed: str) -> Spent:
        queryable = place.natural.curator(Budget(epsilon=total, delta=DELTA), _number(seed))
        before = queryable.remaining
        found = method.fit(queryable)
        return Spent(found, epsilon_of(rho=before - queryable.remaining, delta=DELTA))

    return fit


def _number(seed: str) -> int:
    return zlib.crc32(seed.encode())


def mean_spent(fitted: Fitted, total: float, seeds: list[str]) -> float:
    """The mean leakage of some runs."""
    return float(np.mean([fitted(total, seed).claimed for seed in seeds]))


def matched(spent: Callable[[float], float], wanted: float) -> float:
    """The nominal total whose mean spending is nearest to `wanted`, by bisection of its logarithm."""
    best, nearest = wanted, float("inf")
    low, high = 0.0, float("inf")
    total = wanted
    for _ in range(TURNS):
        ratio = spent(total) / wanted
        if abs(np.log(max(ratio, 1e-12))) < nearest:
            best, nearest = total, float(abs(np.log(max(ratio, 1e-12))))
        if nearest < MATCHED:
            break
        if ratio < 1:
            low = total
            total = float(np.sqrt(low * high)) if high < float("inf") else total * min(max(1 / ratio, 1.1), 4.0)
        else:
            high = total
            total = float(np.sqrt(low * high)) if low else total / min(max(ratio, 1.1), 4.0)
    return best


def reading_of(cell: GridCell) -> CurateReading:
    """The reading of a published allocation; the script takes Survey's six columns for five."""
    reading = replace(ALLOCATIONS["uniform" if cell.reading == NOMINAL else cell.reading], delta_prime=DELTA_PRIME)
    coded = (cell.reading, cell.network) == ("the script's OPT", "survey")
    return replace(reading, variables=5) if coded else reading


def _fitted(cell: GridCell, allocation: str) -> Fitted:
    if cell.kind == "allocation":
        return published(reading_of(replace(cell, reading=allocation)), cell.network, cell.rows)
    return proved(PROVED_ALLOCATIONS[allocation], cell.network, cell.rows)


@lru_cache(maxsize=256)
def opt_spends(kind: CellKind, network: str, target: float, rows: int, runs: int) -> float:
    """The mean leakage of OPT at a total, which the other allocations are brought to."""
    cell = GridCell(kind, network, "curate-pc", "OPT", target, runs, rows)
    return mean_spent(_fitted(cell, "OPT"), target, [f"{cell.seed}/{i}" for i in range(runs)])


def allocated(cell: GridCell) -> Iterator[tuple[Spent, dict[str, Any]]]:
    """Runs of an allocation that spend what OPT spends at the cell's total."""
    fitted = _fitted(cell, cell.reading)
    total = cell.target
    if cell.reading not in ("OPT", NOMINAL):
        wanted = opt_spends(cell.kind, cell.network, cell.target, cell.rows, cell.runs)
        seeds = [f"{cell.seed}/{cell.reading}/calibrate/{i}" for i in range(min(EACH[cell.kind], 2 * cell.runs))]
        total = matched(lambda nominal: mean_spent(fitted, nominal, seeds), wanted)
    for seed in range(cell.runs):
        one = fitted(total, f"{cell.seed}/{seed}")
        leaked = one.found.leaked
        yield one, {"step": total, "first": leaked[0] / sum(leaked) if leaked and sum(leaked) else None}


def first_of(total: float, iterations: int, shape: str = "algorithm-2") -> float:
    """The eps_0 whose schedule adds up to the total."""

    def spends(first: float) -> float:
        if shape == "algorithm-2":
            return sum(schedules.algorithm_2(first, iterations))
        return sum(schedules.published(shape, first, iterations))

    return greatest(lambda first: spends(first) <= total, 1e-12, max(total, 1.0))


def shaped(cell: GridCell) -> Method:
    """Score-based CURATE with one schedule of a shape, which shares the total over GRADIENTS gradients."""
    first = first_of(cell.target, GRADIENTS, cell.reading)
    shape: Any = cell.reading
    return PublishedCurateScore(first=first, iterations=GRADIENTS, increment=shape, schedule="run", threshold=1e-9)


def incremented(cell: GridCell) -> Method:
    """Score-based CURATE as section III announces it: eps_0 and an increment, as many iterations as Lemma 2 states."""
    shape, first = increment_of(cell.reading)
    kind: Any = shape
    return PublishedCurateScore(
        first=first, iterations=None, total=cell.target, increment=kind, schedule="run", threshold=1e-9
    )


def increment_of(reading: str) -> tuple[str, float]:
    """The increment and eps_0 that a reading names."""
    shape, first = reading.rsplit(" ", 1)
    return shape, float(first)
