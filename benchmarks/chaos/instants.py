"""Kills at random instants: after a random time, or just before a random system call.

The second needs Linux's ptrace. It stops the process at the entry and exit of every system call, so a kill can fall
between any two writes, syncs and removals, which a clock hits by luck alone.
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from benchmarks.chaos.arena import Child, fork
from benchmarks.chaos.diary import Diary
from benchmarks.chaos.worker import create, work

TRACEME, NEXT_CALL = 0, 24


def _ptrace(query: int, pid: int) -> int:
    return int(ctypes.CDLL(None).ptrace(ctypes.c_long(query), ctypes.c_long(pid), None, None))


@cache
def can_trace() -> bool:
    """Whether a process may be stopped at its system calls here."""
    if sys.platform != "linux":
        return False
    child = fork(_be_traced)
    stopped = os.WIFSTOPPED(os.waitpid(child.pid, os.WUNTRACED)[1])
    return stopped and _ptrace(NEXT_CALL, child.pid) == 0 and child.kill()


def _be_traced(_pipe: int = 0) -> None:
    if _ptrace(TRACEME, 0) == 0:
        os.kill(os.getpid(), signal.SIGSTOP)


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a charge takes, and how many stops at system calls it makes."""

    seconds: float
    stops: int


def measure(folder: Path) -> Pace:
    """The pace of a charge in this folder; it places the kills and decides nothing else."""
    path, charges = folder / "pace.ledger", 20
    fork(lambda _: create(path)).wait()
    diary = Diary(folder / "pace.diary")
    start = time.perf_counter()
    fork(lambda _: work("charges", path, diary, "pace", 0, lambda: None, charges)).wait()
    seconds = (time.perf_counter() - start) / charges
    job = partial(work, "charges", path, diary, "traced", 0, steps=charges)
    stops = stops_of(lambda ready: job(ready=ready)) if can_trace() else 0
    diary.close()
    return Pace(seconds, stops // charges)


def stops_of(job: Callable[[Callable[[], object]], object]) -> int:
    """How many stops at system calls a job makes after it was ready."""
    child, stops = _victim(job, traced=True), 0
    while _step(child):
        stops += 1
    return stops


def _victim(job: Callable[[Callable[[], object]], object], *, traced: bool, broken: str | None = None) -> Child:
    """A process that has come to the point where it says it is ready."""

    def ready(pipe: int) -> None:
        os.write(pipe, b"r")
        if traced:
            _be_traced()

    child = fork(lambda pipe: job(lambda: ready(pipe)), broken)
    if child.hear(1) and traced:
        status = os.waitpid(child.pid, os.WUNTRACED)[1]
        child.status = None if os.WIFSTOPPED(status) else status
    return child


def _step(child: Child) -> bool:
    """Let it run to its next stop; False if it has ended."""
    if child.status is not None or _ptrace(NEXT_CALL, child.pid) != 0:
        return False
    status = os.waitpid(child.pid, 0)[1]
    child.status = None if os.WIFSTOPPED(status) else status
    return child.status is None


@dataclass(frozen=True, slots=True)
class Killer:
    """Starts workers and kills them."""

    pace: Pace
    rng: random.Random
    broken: str | None = None

    def strike(self, jobs: list[Callable[[Callable[[], object]], object]], charges: float = 4) -> tuple[int, int]:
        """Start all, kill all within a few charges: how many were killed, and how many of them at a system call."""
        trace = len(jobs) == 1 and can_trace() and self.rng.random() < 0.75
        children = [_victim(job, traced=trace, broken=self.broken) for job in jobs]
        if trace:
            for _ in range(self.rng.randrange(max(1, int(charges * self.pace.stops)))):
                if not _step(children[0]):
                    break
        killed = 0
        for child in children:
            if not trace:
                time.sleep(self.rng.uniform(0, charges * self.pace.seconds))
            killed += child.kill()
        return killed, killed if trace else 0
