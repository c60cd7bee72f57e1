"""Kill -9 at random instants: of forks made before anything was opened, and of processes started from nothing."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.chaos.arena import Arena, Child, apart
from benchmarks.chaos.diary import Diary, Sight, look
from benchmarks.chaos.instants import Killer, measure
from benchmarks.chaos.worker import prepare, work

KILLS = 20
"""Of forks, on one ledger."""
STARTS = 5
"""Of processes started from nothing, on one ledger."""
LEDGERS, CURATORS = {"charges": 60, "blocks": 28, "creates": 12}, {"asks": 1}
"""What is killed, and how often; curators apart, since a process that has imported all they need forks slowly."""


def ledgers(arena: Arena) -> Iterator[None]:
    """Forks that open a ledger."""
    return _forked(arena, LEDGERS)


def curators(arena: Arena) -> Iterator[None]:
    """Forks that open a curator with a ledger."""
    prepare()
    return _forked(arena, CURATORS)


def _forked(arena: Arena, shares: dict[str, int]) -> Iterator[None]:
    """One to three processes at a time on one ledger."""
    with arena.place() as folder:
        killer = Killer(measure(folder), arena.rng, arena.broken)
    while True:
        kind = _kind(arena.rng, shares)
        with arena.place() as folder, arena.diary(folder) as diary:
            _forked_ledger(arena, killer, kind, folder / "books.ledger", diary)
        yield


def _kind(rng: random.Random, shares: dict[str, int]) -> str:
    return rng.choices(list(shares), list(shares.values()))[0]


def _forked_ledger(arena: Arena, killer: Killer, kind: str, path: Path, diary: Diary) -> None:
    before, turn, kills = _begin(arena, kind, path), 0, 0
    while kills < KILLS and turn < 3 * KILLS:
        crowd = arena.rng.choice((1, 1, 1, 1, 2, 3))
        jobs = [_job(kind, path, diary, f"{turn}-{i}", arena.rng.random()) for i in range(crowd)]
        killed, at_calls = killer.strike(jobs, charges=0.5 if kind == "creates" and turn % 2 else 4)
        kills, turn = kills + killed, turn + 1
        arena.tried["kills of forks"] += killed
        arena.tried["of them at a system call"] += at_calls
        arena.tried[f"kills, {kind}"] += killed
        if arena.rng.random() < 0.6 or kills >= KILLS:  # else the next worker is the first to see what is left
            before = _after(arena, kind, path, diary, before)


def _job(kind: str, path: Path, diary: Diary, name: str, seed: float) -> Callable[[Callable[[], object]], object]:
    return partial(work, kind, path, diary, name, int(seed * 2**32))


def _begin(arena: Arena, kind: str, path: Path) -> Sight | None:
    if kind == "creates":
        return None
    arena.create(path)
    return apart(look, path)


def _after(arena: Arena, kind: str, path: Path, diary: Diary, before: Sight | None) -> Sight | None:
    """The ledger after a kill; one whose creation was cut short may be gone or empty, if nothing was answered."""
    unused = kind == "creates" and not diary.read("answered")
    if unused and (not path.exists() or apart(look, path).refused):
        arena.tried["creations cut short"] += 1
        for one in (path, Path(f"{path}-journal")):
            one.unlink(missing_ok=True)
        return None
    return arena.check(f"{kind} on one ledger", path, diary, before)


# --- started from nothing -----------------------------------------------------------------------------


def fresh(arena: Arena) -> Iterator[None]:
    """Python processes started from nothing, mostly the ledger alone, some of a whole curator."""
    with arena.place() as folder:
        pace = measure(folder).seconds
    while True:
        kind = _kind(arena.rng, {**LEDGERS, "asks": 10})
        with arena.place() as folder, arena.diary(folder) as diary:
            path = folder / "books.ledger"
            before = _begin(arena, kind, path)
            for turn in range(STARTS):
                child = start(kind, path, diary, f"{turn}", arena)
                _kill_fresh(arena, child, pace)
                arena.tried[f"kills, {kind}"] += 1
                before = _after(arena, kind, path, diary, before)
        yield


def start(kind: str, path: Path, diary: Diary, name: str, arena: Arena) -> Child:
    """A worker in a Python of its own."""
    out, into = os.pipe()
    seed = str(arena.rng.randrange(2**32))
    words = [kind, str(path), str(diary.path), name, seed, str(into), *([arena.broken] if arena.broken else [])]
    running = subprocess.Popen([sys.executable, "-m", "benchmarks.chaos.worker", *words], pass_fds=[into])
    os.close(into)
    running.returncode = 0  # it is waited for by its number
    return Child(running.pid, out)


def _kill_fresh(arena: Arena, child: Child, pace: float) -> None:
    """Mostly once it is ready, else at any moment of its start."""
    if arena.rng.random() < 0.85:
        child.hear(1)
        time.sleep(arena.rng.uniform(0, 6 * pace))
    else:
        time.sleep(arena.rng.uniform(0, 0.5))
        arena.tried["of them while starting"] += 1
    arena.tried["kills of processes started from nothing"] += child.kill()
