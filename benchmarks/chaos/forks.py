"""What was opened before a fork and is used in the child: a curator, its gates, its samples, its ledger and blocks."""

from __future__ import annotations

import multiprocessing
import os
import random
import select
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.chaos.arena import Arena, Child, fork
from benchmarks.chaos.diary import QUANTUM, STEP, Diary, note
from benchmarks.chaos.worker import open_curator, prepare, ways

PATIENCE = 60
"""Seconds a child is given; one that takes longer is listed as unfinished, which is no verdict."""


def forks(arena: Arena) -> Iterator[None]:
    """A process opens everything, forks while a thread of its own asks, and each child tries every way in."""
    prepare()
    while True:
        with arena.place() as folder, arena.diary(folder) as diary, arena.diary(folder, "children") as children:
            path = folder / "books.ledger"
            arena.create(path)
            chance = random.Random(arena.rng.random())
            busy = not arena.unfinished and arena.rng.random() < 0.5
            if b"ended" not in fork(partial(_parent, path, diary, children, chance, busy), arena.broken).wait():
                arena.unfinished.append("forks: a child hangs when it is forked while a thread of its parent asks")
            answered = children.read("answered")
            arena.tried["ways into a forked copy"] += children.read("asked").total()
            arena.fault("in a child", [f"a forked {what} gave {n} answer(s)" for what, n in answered.items()])
            arena.fault("in a child", [f"a trace, not a sentence: {text}" for text in children.read("trace")])
            arena.check("the parent's own", path, diary)
        yield


def _parent(path: Path, diary: Diary, children: Diary, chance: random.Random, busy: bool, pipe: int) -> None:
    """Whatever it opens is paid for and noted; then it forks."""
    from dpcurate import queries as r

    curator = open_curator(path)
    opened: dict[str, Any] = {"curator": curator, "ledger": curator.ledger}
    note(diary, [STEP], lambda: opened.update(gate=curator.open(r.AboveThreshold(epsilon=2.0**-7))))
    note(diary, [STEP], lambda: opened.update(sample=curator.open(r.Sample(rate=0.5, epsilon=2.0**-6))))
    opened["inner gate"] = opened["sample"].open(r.AboveThreshold(epsilon=2.0**-8))
    stop = threading.Event()
    thread = threading.Thread(target=_asking, args=(curator, diary, stop, chance.random(), 200 if busy else 0))
    thread.start()
    ended = [_ends(fork(lambda _: _try_all(opened, children))) for _ in range(3)]
    stop.set()
    thread.join()
    if chance.random() < 0.3 and all(ended):
        _pool(opened["gate"], children)
    with curator.reserve(8 * QUANTUM):
        ended.append(_ends(fork(lambda _: _try_all(opened, children))))
    os.write(pipe, b"ended" if all(ended) else b"hung")


def _ends(child: Child) -> bool:
    """Whether it comes to an end; else it is ended, and listed as unfinished."""
    if not select.select([child.pipe], [], [], PATIENCE)[0]:
        child.kill()
        return False
    child.wait()
    return True


def _asking(curator: Any, diary: Diary, stop: threading.Event, seed: float, times: int) -> None:
    chance = random.Random(seed)
    for _ in range(times):
        asked, action = chance.choice(ways(curator))
        note(diary, [STEP] * asked, action)
        if stop.is_set():
            return


def _try_all(opened: dict[str, Any], children: Diary) -> None:
    for what, action in _attempts(opened).items():
        note(children, [what], action)


def _attempts(opened: dict[str, Any]) -> dict[str, Callable[[], object]]:
    from dpcurate import queries as r
    from dpcurate.accounting import Cost, Event

    score = r.Score(r.Tau("a", "b"), 5.0, "above")
    small = r.Release(r.Counts(("a",)), r.Laplace(epsilon=2.0**-9))
    event = Event("gaussian", "forked*1", Cost.concentrated(QUANTUM))
    ledger, curator, sample = (opened[name] for name in ("ledger", "curator", "sample"))
    return {
        "gate": lambda: opened["gate"].ask(score),
        "gate, many scores": lambda: opened["gate"].first([score, score]),
        "curator": lambda: curator.ask(r.Release(r.Counts(("a",)), r.Gaussian(rho=2.0**-16))),
        "curator's new gate": lambda: curator.open(r.AboveThreshold(epsilon=2.0**-7)),
        "curator's new sample": lambda: curator.open(r.Sample(rate=0.5, epsilon=2.0**-7)),
        "sample": lambda: sample.ask(small),
        "sample's new gate": lambda: sample.open(r.AboveThreshold(epsilon=2.0**-9)),
        "sample's gate": lambda: opened["inner gate"].ask(score),
        "ledger": lambda: ledger.charge([event]),
        "ledger's new block": lambda: ledger.reserve(QUANTUM).__enter__(),
    }


_POOLED: list[Any] = []


def _pool(gate: Any, children: Diary) -> None:
    """The same through a pool of forked processes, as a user would come by it."""
    _POOLED[:] = [gate, children]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        list(pool.map(_pooled, range(2)))


def _pooled(_number: int) -> int:
    from dpcurate import queries as r

    gate, children = _POOLED
    note(children, ["gate in a pool"], lambda: gate.ask(r.Score(r.Tau("a", "b"), 5.0, "above")))
    return os.getpid()
