"""Whether the process of a run still lives: a lock that the system drops when a process ends in whatever way.

Only a courtesy. A run that is taken from a process that lives costs that process its run, and nobody any
privacy (docs/proofs/answers.md). SQLite's lock on an empty file serves, since it is there on every system.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path


class Liveness:
    """The lock of one run, held from `take` to `end`."""

    def __init__(self, file: Path, connection: sqlite3.Connection) -> None:
        self._file = file
        self._connection = connection

    @classmethod
    def take(cls, ledger: Path, run: int) -> Liveness | None:
        """The lock, unless somebody has it or the name is that of another file."""
        file = _file(ledger, run)
        if _is_foreign(file):
            return None
        connection = sqlite3.connect(file, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as problem:
            connection.close()
            if problem.sqlite_errorname.startswith("SQLITE_BUSY"):
                return None
            raise
        return cls(file, connection)

    def end(self) -> None:
        """Let go, and leave no file behind; where a file in use cannot be removed, after it."""
        self._remove()
        self._connection.close()
        self._remove()

    def _remove(self) -> None:
        with suppress(OSError):
            if not _is_foreign(self._file):
                self._file.unlink(missing_ok=True)

    def __del__(self) -> None:
        self._connection.close()  # the file stays: a forked copy ends this way too


def _file(ledger: Path, run: int) -> Path:
    return Path(f"{ledger}-run-{run}")


def _is_foreign(file: Path) -> bool:
    """Whether it is no lock, which is empty: a ledger may be named so, and must be neither locked nor removed."""
    return file.is_file() and file.stat().st_size > 0
