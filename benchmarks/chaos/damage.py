"""Bit flips, truncations and worse in a ledger and the journal beside it, at rest and while a process has it open."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.chaos.arena import Arena, apart, fork
from benchmarks.chaos.diary import Diary, Sight, compare, look
from benchmarks.chaos.instants import Killer, measure
from benchmarks.chaos.worker import pay, work

DAMAGES = 8
"""To one ledger, each to the file as it was before."""


def damage(arena: Arena) -> Iterator[None]:
    """Every answer given afterwards is paid for and no earlier payment is lost, or the file is refused."""
    with arena.place() as folder:
        killer = Killer(measure(folder), arena.rng)
    while True:
        with arena.place() as folder:
            path, first = folder / "books.ledger", Diary(folder / "first")
            arena.create(path)
            killer.strike([partial(work, "charges", path, first, "first", 1)], charges=12)
            whole = _keep(path)  # before the look, which would undo a journal that is still hot
            before = apart(look, path)
            arena.tried["ledgers with a journal"] += Path(f"{path}-journal") in whole
            for number in range(DAMAGES):
                _put_back(path, whole)
                _once(arena, folder / f"diary-{number}", path, first, before)
            first.close()
        yield


def _keep(path: Path) -> dict[Path, bytes]:
    return {one: one.read_bytes() for one in (path, Path(f"{path}-journal")) if one.exists()}


def _put_back(path: Path, whole: dict[Path, bytes]) -> None:
    Path(f"{path}-journal").unlink(missing_ok=True)
    for one, content in whole.items():
        one.write_bytes(content)  # in place: the file stays the same file


def _once(arena: Arena, name: Path, path: Path, first: Diary, before: Sight) -> None:
    name.write_bytes(first.path.read_bytes())
    diary = Diary(name)
    if arena.rng.random() < 0.3:
        _while_open(arena, path, diary)
    else:
        _harm(arena, path)
        fork(lambda _: _go_on(path, diary), arena.broken).wait()
    now = apart(look, path)
    faults = [] if now.refused else compare(diary, now, before)
    arena.fault("in a damaged ledger", faults)
    arena.tried["damaged and refused" if now.refused else "damaged and in order"] += 1
    diary.close()


def _while_open(arena: Arena, path: Path, diary: Diary) -> None:
    gate, shot = os.pipe()

    def job(pipe: int) -> None:
        os.close(shot)
        _go_on(path, diary, lambda: (os.write(pipe, b"r"), os.read(gate, 1)))

    child = fork(job, arena.broken)
    os.close(gate)
    child.hear(1)
    _harm(arena, path)
    os.close(shot)
    child.wait()
    arena.tried["damages while it was open"] += 1


def _go_on(path: Path, diary: Diary, ready: Callable[[], object] = lambda: None) -> None:
    from dpcurate.errors import DpcurateError
    from dpcurate.private.ledger import Ledger

    try:
        ledger = Ledger.open(path)
    except DpcurateError:
        ready()
        return
    except Exception as problem:
        diary.write("trace", [f"{type(problem).__name__}: {problem}".splitlines()[0]])
        return
    ready()
    for n in range(3):
        pay(ledger, diary, f"after.{n}*2")


# --- harm ---------------------------------------------------------------------------------------------


def _harm(arena: Arena, path: Path) -> None:
    journal = Path(f"{path}-journal")
    target = journal if journal.exists() and arena.rng.random() < 0.5 else path
    content = bytearray(target.read_bytes())
    name, change = arena.rng.choice(list(CHANGES.items()))
    target.write_bytes(change(content, arena.rng) if content else b"\0" * 512)
    arena.tried[f"{name}, {'journal' if target == journal else 'ledger'}"] += 1


def _flip(content: bytearray, rng: random.Random) -> bytearray:
    for _ in range(rng.choice((1, 1, 1, 8))):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return content


def _flip_header(content: bytearray, rng: random.Random) -> bytearray:
    content[rng.randrange(min(100, len(content)))] ^= 1 << rng.randrange(8)
    return content


def _truncate(content: bytearray, rng: random.Random) -> bytearray:
    return content[: rng.choice((rng.randrange(len(content)), len(content) // 4096 * 4096 - 4096, 0))]


def _zero(content: bytearray, rng: random.Random) -> bytearray:
    start = rng.randrange(len(content)) // 512 * 512
    content[start : start + 512] = bytes(len(content[start : start + 512]))
    return content


def _append(content: bytearray, rng: random.Random) -> bytearray:
    return content + rng.randbytes(rng.choice((1, 512, 4096)))


def _swap(content: bytearray, rng: random.Random) -> bytearray:
    pages = max(1, len(content) // 4096)
    one, other = (rng.randrange(pages) * 4096 for _ in range(2))
    content[one : one + 4096], content[other : other + 4096] = content[other : other + 4096], content[one : one + 4096]
    return content


CHANGES: dict[str, Callable[[bytearray, random.Random], bytearray]] = {
    "bits flipped": _flip, "a header's bit flipped": _flip_header, "truncated": _truncate,
    "a sector zeroed": _zero, "bytes appended": _append, "pages swapped": _swap,
}  # fmt: skip
