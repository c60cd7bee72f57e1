"""The long audit: everything proved, a hundred audits each at three epsilons, and every negative control."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from dpcurate.audit.controls import all_controls
from dpcurate.audit.proved import Case, cases
from dpcurate.audit.run import WEAK, Audit, Bound, audit, judged, subject_of
from dpcurate.audit.subjects import Scores, Subject

EPSILONS = (0.1, 1.0, 4.0)
REPEATS = 100
CONFIDENCE = 0.9999
WEAK_AUDITS = 10


@dataclass(frozen=True, slots=True)
class Study:
    """A hundred audits of one case on runs of their own, one audit of all the runs, and the power of either kind.

    `caught` is how many of `weak` audits, each of `weak_runs` runs, caught the mechanism with 0.7 of its noise.
    """

    name: str
    epsilon: float
    runs: int
    accused: int
    whole: tuple[Bound, ...]
    caught: int
    weak: int
    weak_runs: int
    seconds: float

    @property
    def blamed(self) -> bool:
        """Whether any audit of it accused."""
        return self.accused > 0 or any(b.exceeded for b in self.whole)

    def __str__(self) -> str:
        bounds = "; ".join(f"{b.limit.currency} >= {b.found.lower:.4g} of {b.limit.value:.4g}" for b in self.whole)
        return (
            f"| {self.name} | {self.epsilon:g} | {self.accused} of {REPEATS} | {self.runs} | {bounds} | "
            f"{self.caught} of {self.weak} ({self.weak_runs}) |"
        )


def study(case: Case, epsilon: float, seconds: float, seed: int) -> Study:
    """Spend about so many seconds on one case; a release takes as many runs whatever the time."""
    begun = time.monotonic()
    made = subject_of(case.subject, None, case.budget, case.neighbours)
    total = 1_000_000 if case.fast else _affordable(made, seconds)
    each = total // REPEATS
    scores = made.run(each * REPEATS, seed, 1.0)
    accused = sum(_blamed(made, part) for part in _parts(scores, REPEATS))
    weak_runs = total // WEAK_AUDITS if case.fast else total // 2
    parts = list(_parts(made.run(weak_runs * (WEAK_AUDITS if case.fast else 1), seed + 1, WEAK), WEAK_AUDITS)
                 if case.fast else [made.run(weak_runs, seed + 1, WEAK)])  # fmt: skip
    caught = sum(_blamed(made, part) for part in parts)
    whole = judged(made, scores, CONFIDENCE)
    return Study(case.name, epsilon, each, accused, whole, caught, len(parts), weak_runs, time.monotonic() - begun)


def _affordable(made: Subject, seconds: float) -> int:
    """How many runs on each table fit, two thirds of the time for the mechanism and one for the weak one."""
    times = []
    for _ in range(4):  # the first also loads modules
        begun = time.monotonic()
        made.run(20, 0, 1.0)
        times.append((time.monotonic() - begun) / 20)
    return max(REPEATS * 10, int(seconds * 2 / 3 / min(times)))


def _parts(scores: Scores, number: int) -> Iterator[Scores]:
    size = len(scores[0]) // number
    for start in range(0, size * number, size):
        yield scores[0][start : start + size], scores[1][start : start + size]


def _blamed(made: Subject, scores: Scores) -> bool:
    return any(b.exceeded for b in judged(made, scores, CONFIDENCE))


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
    """Processes to use."""
    return min(2, os.cpu_count() or 1)
