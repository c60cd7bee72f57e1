"""A clock that jumps, by years and backwards, and file times that do the same."""

from __future__ import annotations

import datetime
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.chaos.arena import Arena, fork
from benchmarks.chaos.diary import Diary
from benchmarks.chaos.instants import Killer, measure
from benchmarks.chaos.worker import work

INSTANTS = (-2.0, 0.0, 1.0, 2.0**31 - 1, 2.0**31, 4e9, 2.5e11)
"""1969, 1970, 2038 and what comes after; the last is the year 9892."""


def clock(arena: Arena) -> Iterator[None]:
    """Workers whose clock jumps at every reading, killed or not."""
    with arena.place() as folder:
        killer = Killer(measure(folder), arena.rng, arena.broken)
    while True:
        with arena.place() as folder, arena.diary(folder) as diary:
            path, before = folder / "books.ledger", None
            arena.create(path)
            for turn in range(4):
                kind = arena.rng.choice(("charges", "blocks"))
                job = partial(_jumping, kind, path, diary, f"{turn}", arena.rng.randrange(2**32))
                if turn % 2:
                    fork(lambda _, job=job: job(lambda: None, 25), arena.broken).wait()
                else:
                    arena.tried["kills under a clock that jumps"] += killer.strike([job])[0]
                _touch(path, arena.rng)
                arena.tried["clocks that jump"] += 1
                before = arena.check("a clock that jumps", path, diary, before)
        yield


def _touch(path: Path, rng: random.Random) -> None:
    for one in (path, Path(f"{path}-journal")):
        with suppress(OSError):
            os.utime(one, (max(0.0, rng.choice(INSTANTS)), max(0.0, rng.choice(INSTANTS))))


def _jumping(
    kind: str, path: Path, diary: Diary, name: str, seed: int, ready: Callable[[], object], steps: int = 3000
) -> None:
    _wild(random.Random(seed))
    work(kind, path, diary, name, seed, ready, steps)


def _wild(chance: random.Random) -> None:
    """Make every clock that Python code can read jump."""

    def seconds(*_: object) -> float:
        return chance.choice(INSTANTS) + chance.random()

    class Jumping(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.datetime(1970, 1, 1, tzinfo=tz) + datetime.timedelta(seconds=seconds())

    time.time = time.monotonic = time.perf_counter = seconds
    time.time_ns = time.monotonic_ns = lambda: int(seconds() * 1e9)
    for name, module in list(sys.modules.items()):
        if name.startswith("dpcurate") and getattr(module, "datetime", None) is datetime.datetime:
            module.datetime = Jumping  # type: ignore[attr-defined]
