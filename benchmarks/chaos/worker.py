"""What an attacked process does: open a ledger or a curator and ask, writing everything down.

Also a program: `python -m benchmarks.chaos.worker KIND LEDGER DIARY NAME SEED PIPE [SABOTAGE]`, a process started from
nothing. It imports the ledger alone unless it opens a curator.
"""

from __future__ import annotations

import atexit
import gc
import os
import random
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.chaos.diary import QUANTUM, STEP, Diary, note

MOST = 3000
"""Steps after which a worker that nobody stops ends by itself."""
TABLE = {"a": [0, 1, 0, 1] * 6, "b": [0, 0, 1, 1] * 6, "c": [0, 1, 1, 0] * 6}
LEVELS = {"a": (0, 1), "b": (0, 1), "c": (0, 1)}
Ready = Callable[[], object]


def prepare() -> None:
    """Import what forks need that open a curator, and open nothing. opendp imports polars when it first draws."""
    for name in ("dpcurate.private.curator", "duckdb", "opendp.prelude", "polars"):
        import_module(name)
    _freeze()


def prepare_ledger() -> None:
    """The same for forks that open a ledger alone."""
    import_module("dpcurate.private.ledger")
    _freeze()


def _freeze() -> None:
    """Else every fork would copy what its collector touches."""
    gc.freeze()
    atexit.register(gc.unfreeze)


def create(path: Path, quanta: int = 1 << 20) -> Any:
    from dpcurate.accounting import Budget
    from dpcurate.private.ledger import Ledger
    from dpcurate.schema import Schema

    facts = {"table": "chaos", "neighbours": "add-remove", "schema_hash": Schema.of(LEVELS).hash}
    return Ledger.create(path, **facts, budget=Budget(rho=float(quanta * QUANTUM)))


def pay(ledger: Any, diary: Diary, token: str) -> str:
    """Charge what the token says."""
    from dpcurate.accounting import Cost, Event

    quanta = int(token.rpartition("*")[2])
    event = Event("gaussian", token, Cost.concentrated(quanta * QUANTUM))
    return note(diary, [token.strip()], lambda: ledger.charge([event]))


def charges(path: Path, diary: Diary, name: str, chance: random.Random, ready: Ready, steps: Iterable[int]) -> None:
    """One charge after the other."""
    from dpcurate.private.ledger import Ledger

    ledger = Ledger.open(path)
    ready()
    for n in steps:
        pay(ledger, diary, f"{name}.{n}*{chance.randint(1, 3)}")


def blocks(path: Path, diary: Diary, name: str, chance: random.Random, ready: Ready, steps: Iterable[int]) -> None:
    """Small charges in blocks that were reserved."""
    from dpcurate.private.ledger import Ledger

    ledger = Ledger.open(path)
    ready()
    for n in steps:
        with ledger.reserve(8 * QUANTUM):
            for i in range(chance.randint(1, 4)):
                pay(ledger, diary, f"{name}.{n}.{i}*2")


def creates(path: Path, diary: Diary, name: str, chance: random.Random, ready: Ready, steps: Iterable[int]) -> None:
    """Make the ledger, unless it is there, and charge."""
    from dpcurate.errors import LedgerError

    ready()
    with suppress(LedgerError):  # another one was first
        create(path)
    charges(path, diary, name, chance, lambda: None, steps)


def asks(path: Path, diary: Diary, _name: str, chance: random.Random, ready: Ready, steps: Iterable[int]) -> None:
    """All ways in that a curator has."""
    curator = open_curator(path)
    ready()
    for _ in steps:
        asked, action = chance.choice(ways(curator))
        note(diary, [STEP] * asked, action)


def open_curator(path: Path) -> Any:
    from dpcurate import Curator

    return Curator(TABLE, LEVELS, ledger=path)


def ways(curator: Any) -> list[tuple[int, Callable[[], object]]]:
    """Steps of a curator, each with the number of events it is charged as."""
    from dpcurate import queries as r

    noise = r.Gaussian(rho=2.0**-16)
    releases = [r.Release(r.Counts(columns), noise) for columns in (("a",), ("a", "b"), ("c",))]
    scores = tuple(r.Score(r.Tau(x, y), 5.0, "above") for x, y in (("a", "b"), ("b", "c")))
    return [
        (1, lambda: curator.ask(releases[0])),
        (3, lambda: curator.ask_all(releases)),
        (1, lambda: curator.ask(r.Choose(candidates=scores, epsilon=2.0**-7))),
        (1, lambda: curator.open(r.AboveThreshold(epsilon=2.0**-7)).first(scores)),
        (1, lambda: curator.open(r.Sample(rate=0.5, epsilon=2.0**-7)).ask(_small(r))),
    ]


def _small(r: Any) -> Any:
    return r.Release(r.Counts(("a",)), r.Laplace(epsilon=2.0**-9))


KINDS: dict[str, Callable[..., None]] = {"charges": charges, "blocks": blocks, "creates": creates, "asks": asks}


def work(kind: str, path: Path, diary: Diary, name: str, seed: int, ready: Ready, steps: int = MOST) -> None:
    """A kind of work; an error that ends it is written down, unless it is a sentence."""
    from dpcurate.errors import DpcurateError

    try:
        KINDS[kind](path, diary, name, random.Random(seed), ready, range(steps))
    except DpcurateError as problem:
        diary.write("ended", [str(problem).splitlines()[0]])
    except Exception as problem:
        diary.write("trace", [f"{type(problem).__name__}: {problem}".splitlines()[0][:200]])


def main(words: list[str]) -> None:
    from benchmarks.chaos import sabotage

    kind, path, diary, name, seed, pipe, *broken = words
    sabotage.apply(*broken or [None])
    work(kind, Path(path), Diary(Path(diary)), name, int(seed), lambda: os.write(int(pipe), b"r"))


if __name__ == "__main__":
    main(sys.argv[1:])
