"""Runs that are killed, raced for and taken over: each request is paid once, and one draw of its answer is ever seen.

A worker runs the default method in a run of the ledger and writes down a hash of every answer it was given.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.chaos import worker
from benchmarks.chaos.arena import Arena, apart, fork
from benchmarks.chaos.diary import Diary
from benchmarks.chaos.instants import Killer, Pace, can_trace, measure, stops_of
from benchmarks.chaos.worker import LEVELS, TABLE, Ready, prepare, work

KILLS = 12
"""Of one run, before it may end."""
Paid = list[tuple[str, Any]]


def resumes(arena: Arena) -> Iterator[None]:
    """One command killed many times, raced for, or taken from a process that sleeps; then given once more."""
    prepare()
    worker.KINDS["runs"] = runs
    whole, pace = _undisturbed(arena)
    killer = Killer(pace, arena.rng, arena.broken)
    while True:
        with arena.place() as folder, arena.diary(folder) as diary:
            path = folder / "books.ledger"
            arena.create(path)
            alone = arena.rng.random() < 0.6
            if alone or arena.rng.random() < 0.5:
                _killed(arena, killer, path, diary, crowd=1 if alone else 2)
            else:
                _asleep(arena, path, diary)
            _finish(arena, path, diary)
            arena.fault("a run", apart(_check, path, diary.path, whole if alone else None))
            arena.tried["checks"] += 1
        yield


def _undisturbed(arena: Arena) -> tuple[Paid, Pace]:
    """What a run that nobody disturbs is charged, and how many stops at system calls it makes."""
    with arena.place() as folder, arena.diary(folder, "whole") as diary:
        seconds = measure(folder).seconds
        arena.create(folder / "whole.ledger")
        fork(lambda _: _work(folder / "whole.ledger", diary, "whole", lambda: None)).wait()
        arena.create(folder / "paced.ledger")
        stops = stops_of(partial(_work, folder / "paced.ledger", diary, "paced")) if can_trace() else 0
        return apart(_paid, folder / "whole.ledger"), Pace(20 * seconds, stops)


def _finish(arena: Arena, path: Path, diary: Diary) -> None:
    """The same command once more, unless it has come to its end."""
    if not apart(_finished, path):
        fork(lambda _: _work(path, diary, "last", lambda: None), arena.broken).wait()


def _work(path: Path, diary: Diary, name: str, ready: Ready) -> None:
    work("runs", path, diary, name, 0, ready, 1)


def _killed(arena: Arena, killer: Killer, path: Path, diary: Diary, *, crowd: int) -> None:
    for turn in range(KILLS):
        jobs = [partial(_work, path, diary, f"{turn}-{i}") for i in range(crowd)]
        # What is left of a run gets shorter as it is resumed.
        killed, at_calls = killer.strike(list(jobs), charges=arena.rng.choice((0.1, 0.3, 0.6, 1.1)))
        arena.tried["kills of runs"] += killed
        arena.tried["of them at a system call"] += at_calls
        if apart(_finished, path):  # the same command would be another run
            return


def _asleep(arena: Arena, path: Path, diary: Diary) -> None:
    """A process sleeps somewhere in its run, passes for dead, and wakes up when another has finished it."""
    sleeper = fork(lambda pipe: _work(path, diary, "sleeper", lambda: os.write(pipe, b"r")), arena.broken)
    if sleeper.hear(1):
        while len(diary.read("answered")) < arena.rng.randrange(3) and not diary.read("finished"):
            os.sched_yield()
        os.kill(sleeper.pid, signal.SIGSTOP)
        for lock in path.parent.glob(f"{path.name}-run-*"):
            lock.unlink(missing_ok=True)
        child = fork(lambda _: _work(path, diary, "other", lambda: None), arena.broken)
        os.kill(sleeper.pid, signal.SIGCONT) if arena.rng.random() < 0.3 else child.wait()
        os.kill(sleeper.pid, signal.SIGCONT)
        child.wait() if child.pipe >= 0 else None
    sleeper.wait()
    arena.tried["processes asleep"] += 1


def runs(path: Path, diary: Diary, _name: str, _chance: random.Random, ready: Ready, _steps: Iterable[int]) -> None:
    """The default method in a run of the ledger."""
    from dpcurate import Curator
    from dpcurate.learn.measure_once import MeasureOnce
    from dpcurate.private.ledger import RunFacts
    from dpcurate.queries.proxies import Proxy

    class Telling(Proxy):
        def ask(self, query: Any) -> Any:
            answer = super().ask(query)
            seen = _hash(b"".join(part.tobytes() for part in answer.parts))
            diary.write("answered", [f"{run.number} {_hash(repr(query).encode())} {seen}"])
            return answer

    curator = Curator(TABLE, LEVELS, ledger=path)
    facts = RunFacts(command="the same command", method="auto", schema=curator.schema.hash, by="chaos")
    ready()
    with curator.run(facts, share=0.5) as run:
        MeasureOnce().fit(Telling(curator))
    diary.write("finished", [f"{run.number}"])


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _paid(path: Path) -> Paid:
    from dpcurate.private.ledger import Ledger

    return [(event.about, event.cost) for event in Ledger.open(path).events]


def _finished(path: Path) -> bool:
    from dpcurate.private.ledger import Ledger

    return any(run.outcome == "finished" for run in Ledger.open(path).log())


def _check(path: Path, diary: Path, whole: Paid | None) -> list[str]:
    """Faults after the command has come to its end; `whole` is what it must have paid if nobody else gave it."""
    from dpcurate.private.ledger import Ledger

    written, draws = Diary(diary), defaultdict(set)
    for line in written.read("answered"):
        request, _, seen = line.rpartition(" ")
        draws[request].add(seen)
    written.close()
    faults = [f"{len(seen)} draws of one answer were seen" for seen in draws.values() if len(seen) > 1]
    faults += [f"a trace, not a sentence: {text}" for text in written.read("trace")]
    ledger, events = Ledger.open(path), _paid(path)
    if not _finished(path):
        faults.append(f"the command did not come to its end: {sorted(written.read('ended'))}")
    if whole is not None and events != whole:
        faults.append(f"{len(events)} payments, and an undisturbed run makes {len(whole)}")
    return faults + (["something stayed reserved"] if ledger.reserved else [])
