"""The long audit: everything proved, as it is and with 0.7 of its noise, and every negative control."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from dpcurate.audit.controls import all_controls
from dpcurate.audit.proved import Case, cases
from dpcurate.audit.run import CONFIDENCE, WEAK, Audit, audit, measure, target_of


@dataclass(frozen=True, slots=True)
class Study:
    """One audit of a case, and one of the same case with 0.7 of its noise."""

    case: Case
    honest: Audit
    weak: Audit

    @property
    def wrong(self) -> bool:
        """Something proved was accused, or something broken was not where the audit should have power."""
        return self.honest.accused or (self.case.powerful and not self.weak.accused)


def study(case: Case, seed: int) -> Study:
    """Both audits, each with the runs of the case."""
    target = target_of(case.audited, case.pair, case.budget, case.neighbours)
    honest = measure(target, case.runs, CONFIDENCE, seed)
    return Study(case, honest, measure(target, case.runs, CONFIDENCE, seed + 1, WEAK))


def _one(index: int, seed: int) -> Study:
    return study(cases()[index], seed)


def all_studies(*, seed: int, workers: int, progress: Callable[[int, int], None], only: str = "") -> list[Study]:
    """Every case, in order; with `only` those whose name contains it."""
    chosen = [i for i, case in enumerate(cases()) if only in case.name]
    done: dict[int, Study] = {}
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
