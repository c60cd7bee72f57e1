"""Processes and threads that go for the last of a budget at the same moment."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.chaos.arena import Arena, Child, fork
from benchmarks.chaos.diary import STEP, Diary, cost, note
from benchmarks.chaos.worker import create, open_curator, pay, prepare, ways

ENOUGH = 60
"""Steps of a runner, more than any budget here allows."""
LEDGERS, CURATORS = {"charges": 65, "blocks": 22, "creates": 13}, {"asks": 1}


def ledgers(arena: Arena) -> Iterator[None]:
    """Races to charge a ledger."""
    return _races(arena, LEDGERS)


def curators(arena: Arena) -> Iterator[None]:
    """Races to ask a curator."""
    prepare()
    return _races(arena, CURATORS)


def _races(arena: Arena, shares: dict[str, int]) -> Iterator[None]:
    """Two to four processes of one to three threads each, from one starting shot until they are refused."""
    while True:
        kind = arena.rng.choices(list(shares), list(shares.values()))[0]
        with arena.place() as folder, arena.diary(folder) as diary:
            path = folder / "books.ledger"
            if kind != "creates":
                arena.create(path, quanta=160 if kind == "asks" else arena.rng.randint(6, 24))
            killed = _race(arena, kind, path, diary)
            _verdict(arena, kind, path, diary, killed=killed)
        arena.tried["races"] += 1
        yield


def _race(arena: Arena, kind: str, path: Path, diary: Diary) -> bool:
    """One race; in some of them one runner is killed on the way."""
    processes, threads = arena.rng.randint(2, 2 if kind == "asks" else 4), arena.rng.randint(1, 3)
    gate, shot = os.pipe()
    seeds = [arena.rng.randrange(2**32) for _ in range(processes)]

    def runner(number: int) -> Child:
        def job(pipe: int) -> None:
            os.close(shot)
            _run(kind, path, diary, f"{number}", random.Random(seeds[number]), threads, gate, pipe)

        return fork(job, arena.broken)

    children = [runner(number) for number in range(processes)]
    for child in children:
        child.hear(1)
    os.close(gate)
    os.close(shot)  # the starting shot: whoever waits at the gate reads its end
    killed = arena.rng.random() < 0.2 and children[0].kill()
    for child in children[killed:]:
        child.wait()
    arena.tried["processes in races"] += processes
    arena.tried["threads in races"] += processes * threads
    arena.tried["races with a kill"] += killed
    return killed


def _run(
    kind: str, path: Path, diary: Diary, name: str, chance: random.Random, threads: int, gate: int, pipe: int
) -> None:
    """One process: open, wait for the shot, and let the threads run on what it opened."""
    held = None if kind == "creates" else open_curator(path) if kind == "asks" else _ledger(path)
    os.write(pipe, b"r")
    os.read(gate, 1)
    if held is None:
        held = _made(path)
    if held is not None:
        runners = [
            threading.Thread(target=_until_refused, args=(kind, held, diary, f"{name}-{i}", chance.random()))
            for i in range(threads)
        ]
        for runner in runners:
            runner.start()
        for runner in runners:
            runner.join()


def _ledger(path: Path) -> Any:
    from dpcurate.private.ledger import Ledger

    return Ledger.open(path)


def _made(path: Path) -> Any:
    """Make the ledger or open the one that is there; None while another process is still making it."""
    from dpcurate.errors import LedgerError

    for attempt in (lambda: create(path, 12), lambda: _ledger(path)):
        try:
            return attempt()
        except LedgerError:
            continue
    return None


def _until_refused(kind: str, held: Any, diary: Diary, name: str, seed: float) -> None:
    from dpcurate.errors import DpcurateError

    chance = random.Random(seed)
    for n in range(ENOUGH):
        if kind == "asks":
            asked, action = chance.choice(ways(held))
            if note(diary, [STEP] * asked, action) != "answered":
                return
        elif kind == "blocks":
            try:
                with held.reserve(1 / (1 << 18)):
                    pay(held, diary, f"{name}.{n}*{chance.randint(1, 2)}")
            except DpcurateError:  # no room, or another thread has its block open
                return
        elif pay(held, diary, f"{name}.{n}*{chance.randint(1, 3)}") != "answered":
            return


def _verdict(arena: Arena, kind: str, path: Path, diary: Diary, *, killed: bool) -> None:
    """Beside the usual: nobody was refused while there was session, and without a kill nothing is paid for nothing."""
    if kind == "creates" and killed and not diary.read("answered"):
        return
    now = arena.check(f"race of {kind}", path, diary)
    if kind in ("charges", "creates") and not now.refused:
        early = [t for t in diary.read("refused") if now.spent + cost(t) <= now.ceiling]
        arena.fault(f"race of {kind}", [f"refused though there was session: {token}" for token in early])
    if not killed and kind != "blocks" and not now.refused:
        lost = len(now.events) - diary.read("answered").total() - diary.read("failed").total()
        arena.fault(f"race of {kind}", [f"{lost} payments without an answer"] if lost > 0 else [])
