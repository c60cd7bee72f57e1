"""A ledger with two names: hard links, renames and moved folders, at rest after a kill and while a process charges."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.chaos.arena import Arena, apart, fork
from benchmarks.chaos.diary import Diary, look
from benchmarks.chaos.instants import Killer, measure
from benchmarks.chaos.worker import work

Move = tuple[Callable[[Path, Path], object], Callable[[Path, Path], object]]
"""How a second name comes and goes again."""
MOVES: dict[str, Move] = {
    "hard link": (os.link, lambda _, other: other.unlink()),
    "rename": (os.rename, lambda path, other: os.rename(other, path)),
    "moved folder": (
        lambda path, other: os.rename(path.parent, other.parent),
        lambda path, other: os.rename(other.parent, path.parent),
    ),
    "symbolic link": (lambda path, other: other.symlink_to(path), lambda _, other: other.unlink()),
}


def names(arena: Arena) -> Iterator[None]:
    """A kill under the first name, charges under the second, and back: nothing paid may be undone."""
    with arena.place() as folder:
        killer = Killer(measure(folder), arena.rng, arena.broken)
    while True:
        kind = arena.rng.choice(list(MOVES))
        with arena.place() as folder, arena.diary(folder) as diary:
            home = folder / "home"
            home.mkdir()
            path = home / "books.ledger"
            other = folder / "away" / "books.ledger" if kind == "moved folder" else home / "other.ledger"
            arena.create(path)
            for turn in range(4):
                if arena.rng.random() < 0.5:
                    _killed_then_moved(arena, killer, kind, path, other, diary, turn)
                else:
                    _moved_while_running(arena, kind, path, other, diary, turn)
        yield


def _killed_then_moved(
    arena: Arena, killer: Killer, kind: str, path: Path, other: Path, diary: Diary, turn: int
) -> None:
    """No look before the move: it would undo the journal that the second name hides."""
    there, back = MOVES[kind]
    killer.strike([partial(work, "charges", path, diary, f"first-{turn}", turn)])
    arena.tried[f"{kind} after a kill"] += 1
    arena.tried["with a journal"] += Path(f"{path}-journal").exists()
    there(path, other)
    _under_second_name(arena, kind, other, diary, turn)
    back(path, other)
    arena.check(f"{kind} after a kill", path, diary)


def _moved_while_running(arena: Arena, kind: str, path: Path, other: Path, diary: Diary, turn: int) -> None:
    """The runner may fail while its file is away; whatever it was answered is paid for once the file is back."""
    there, back = MOVES[kind]

    def job(pipe: int) -> None:
        work("charges", path, diary, f"run-{turn}", turn, lambda: os.write(pipe, b"r"), steps=60)

    child = fork(job, arena.broken)
    child.hear(1)
    arena.tried[f"{kind} while running"] += 1
    there(path, other)
    _under_second_name(arena, kind, other, diary, turn)
    if arena.rng.random() < 0.5:
        child.kill()
    back(path, other)
    if child.status is None:
        child.wait()
    arena.check(f"{kind} while running", path, diary)


def _under_second_name(arena: Arena, kind: str, other: Path, diary: Diary, turn: int) -> None:
    """Refused, as it must be (a symbolic link leads to the one name, so it may open)."""
    fork(lambda _: work("charges", other, diary, f"second-{turn}", turn, lambda: None, 3), arena.broken).wait()
    answers = [t for t in diary.read("answered") if t.startswith(f"second-{turn}.")]
    if kind != "symbolic link":
        opened = not apart(look, other).refused or answers
        arena.fault(kind, [f"a ledger opens under a second name ({len(answers)} answers)"] if opened else [])
