"""The long audit: everything proved, twenty audits each at three epsilons, and every negative control."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np

from dpcurate.arrays import FloatArray
from dpcurate.audit.controls import all_controls
from dpcurate.audit.proved import Case, cases
from dpcurate.audit.run import WEAK, Audit, Bound, audit, bounds_of, target_of
from dpcurate.audit.targets import Target

EPSILONS = (0.1, 1.0, 4.0)
REPEATS = 20
CONFIDENCE = 0.9999


@dataclass(frozen=True, slots=True)
class Study:
    """Twenty audits of one case on runs of their own, one audit of all the runs, and its power.

    `caught` says whether one audit of `weak_runs` runs caught the mechanism with 0.7 of its noise.
    """

    name: str
    epsilon: float
    runs: int
    accused: int
    whole: tuple[Bound, ...]
    caught: bool
    weak_runs: int

    @property
    def blamed(self) -> bool:
        return self.accused > 0 or any(b.exceeded for b in self.whole)


def study(case: Case, epsilon: float, seconds: float, seed: int) -> Study:
    target = target_of(case.audited, case.pair, case.budget, case.neighbours)
    each = _affordable(target, seconds) // REPEATS
    scores = target.run(each * REPEATS, seed, 1.0)
    accused = sum(_blamed(target, part) for part in np.split(scores, REPEATS, axis=-1))
    weak_runs = each * REPEATS // 2
    caught = _blamed(target, target.run(weak_runs, seed + 1, WEAK))
    return Study(case.name, epsilon, each * REPEATS, accused, bounds_of(target, scores, CONFIDENCE), caught, weak_runs)


def _affordable(target: Target, seconds: float) -> int:
    """How many runs on each table fit, two thirds of the time for the mechanism and one for the weak one."""
    times = []
    for _ in range(4):  # the first also loads modules
        begun = time.monotonic()
        target.run(20, 0, 1.0)
        times.append((time.monotonic() - begun) / 20)
    return max(REPEATS * 10, int(seconds * 2 / 3 / min(times)))


def _blamed(target: Target, scores: FloatArray) -> bool:
    return any(b.exceeded for b in bounds_of(target, scores, CONFIDENCE))


def _one(epsilon: float, index: int, seconds: float, seed: int) -> Study:
    return study(cases(epsilon)[index], epsilon, seconds, seed)


def all_studies(
    *, seconds: float, seed: int, workers: int, progress: Callable[[int, int], None], only: str = ""
) -> list[Study]:
    """Every case at every epsilon, in the order of the cases."""
    jobs = [(e, i) for e in EPSILONS for i, case in enumerate(cases(e)) if only in case.name]
    done: dict[tuple[float, int], Study] = {}
    with ProcessPoolExecutor(workers) as pool:
        waiting = {pool.submit(_one, e, i, seconds, seed + 1000 * n): (e, i) for n, (e, i) in enumerate(jobs)}
        for future in as_completed(waiting):
            done[waiting[future]] = future.result()
            progress(len(done), len(jobs))
    return [done[job] for job in jobs]


def control_audits(seed: int) -> list[Audit]:
    """Every negative control with its usual number of runs."""
    return [audit(c, runs=c.runs, seed=seed, confidence=CONFIDENCE) for c in all_controls()]


def workers() -> int:
    return min(2, os.cpu_count() or 1)
