"""Where DuckDB may put rows that do not fit into memory: a folder that is ours alone and goes when we go.

A process holds a lock on its folder for as long as it lives, so a folder without a lock belongs to nobody: it was
left behind by a process that was killed, whatever process has its number now. The next one removes it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from types import ModuleType

PREFIX = "dpcurate-spill-"
TRIES = 5


@dataclass(frozen=True, slots=True)
class SpillFolder:
    """A process's own folder."""

    path: Path
    numbers: Iterator[int] = field(default_factory=count)

    def fresh(self) -> str:
        """A place for one connection, which must not write into another's; DuckDB makes it when it is needed."""
        return str(self.path / str(next(self.numbers)))


def place() -> str:
    """Where a new connection may spill; nowhere, if there is no folder that can be kept from others."""
    folder = _folder_of(os.getpid())
    return folder.fresh() if folder else ""


def remove(path: Path, process: int) -> None:
    """A connection's place, by the process that made it and by no copy of it."""
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


@cache
def _folder_of(process: int) -> SpillFolder | None:
    """The folder of this process, made after those that others left behind are gone."""
    locks = _locks()
    if locks is None:
        return None
    with suppress(OSError):
        root = Path(tempfile.gettempdir())
        _sweep(root, locks)
        return _made(root, locks, process)
    return None


def _locks() -> ModuleType | None:
    """Locks that end with a process; Windows has none, and no mode of a folder either."""
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl


def _made(root: Path, locks: ModuleType, process: int) -> SpillFolder | None:
    for _ in range(TRIES):
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))  # of mode 0700
        lock = _locked(path, locks)
        if lock is not None and _same(path, lock):
            atexit.register(_remove, path, lock, process)
            return SpillFolder(path)
        # Another process took it before it was locked, or the disk knows no locks.
        _remove(path, lock, process)
    return None


def _sweep(root: Path, locks: ModuleType) -> None:
    """Remove folders of ours that no process holds."""
    for path in root.glob(f"{PREFIX}*"):
        lock = _locked(path, locks)
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def _locked(path: Path, locks: ModuleType) -> int | None:
    """The lock of a real folder that belongs to this user alone; None if it is none, or a process holds it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        facts = os.fstat(handle)
        if facts.st_uid == os.geteuid() and not facts.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            locks.flock(handle, locks.LOCK_EX | locks.LOCK_NB)
            return handle
    except OSError:
        pass
    os.close(handle)
    return None


def _same(path: Path, lock: int) -> bool:
    """Whether a folder is still there."""
    with suppress(OSError):
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(lock))
    return False


def _remove(path: Path, lock: int | None, process: int) -> None:
    """At the end."""
    remove(path, process)
    if lock is not None:
        os.close(lock)
