"""A disk that fills up: a small file system where one may be mounted, and a limit on the size of files."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.chaos.arena import Arena, Child, fork
from benchmarks.chaos.diary import Diary
from benchmarks.chaos.worker import pay

SIZE = 256 * 1024
CHARGES = 150
LONG = " " * 700
"""After a token, so that a charge takes session."""


def full_disk(arena: Arena) -> Iterator[None]:
    """Charge until there is no room, with a kill on the way or not; then make room and read the ledger."""
    with arena.place() as folder, _small(folder / "small") as small:
        if small is None:
            arena.tried["no file system could be mounted, files were limited instead"] = 1
        while True:
            limited = small is None or arena.rng.random() < 0.4
            place = folder if limited or small is None else small
            with arena.diary(folder, f"diary-{arena.tried['checks']}") as diary:
                _fill(arena, place, diary, limited=limited)
            yield


@contextmanager
def _small(folder: Path) -> Iterator[Path | None]:
    """A small file system in memory; None where it may not be mounted."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "dpcurate-chaos", str(folder)]
    mount = shutil.which("mount")
    if mount is None or subprocess.run(words, capture_output=True).returncode != 0:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _fill(arena: Arena, place: Path, diary: Diary, *, limited: bool) -> None:
    path, filler = place / "books.ledger", place / "filler"
    arena.create(path)
    session = arena.rng.randrange(0, 96 * 1024)
    if not limited:
        filler.write_bytes(bytes(max(0, shutil.disk_usage(place).free - session)))
    child = fork(lambda pipe: _charge(path, diary, session if limited else None, pipe), arena.broken)
    _stop(arena, child)
    arena.tried["files limited" if limited else "disks filled"] += 1
    filler.unlink(missing_ok=True)
    arena.check("after session was made", path, diary)
    for one in (path, Path(f"{path}-journal")):
        one.unlink(missing_ok=True)


def _stop(arena: Arena, child: Child) -> None:
    """Let it come to its end, or kill it after some of its steps."""
    if arena.rng.random() < 0.4:
        for _ in range(arena.rng.randrange(CHARGES)):
            if not child.hear(1):
                break
        arena.tried["kills on a full disk"] += child.kill()
    else:
        child.wait()


def _charge(path: Path, diary: Diary, most: int | None, pipe: int) -> None:
    from dpcurate.private.ledger import Ledger

    ledger = Ledger.open(path)
    if most is not None:
        limit = path.stat().st_size + most
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    failed = 0
    for n in range(CHARGES):
        failed += pay(ledger, diary, f"{n}*1{LONG}") != "answered"
        os.write(pipe, b".")
        if failed > 10:
            return
