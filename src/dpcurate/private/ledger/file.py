"""Transactions on a ledger's SQLite file: durable, one at a time, and on the file that has the ledger's name.

Every transaction begins by looking at that name (ledger_path.py): which file is there, and that it has no other.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpcurate._files import LEDGER_GATE
from dpcurate.errors import LedgerError
from dpcurate.private.ledger import path as ledger_path

WAIT_SECONDS = 30.0  # how long to wait for another process before giving up

# Held during every transaction of this process, and across a fork: a fork would copy SQLite's idea of its
# locks into the child, and closing a plain file handle drops every POSIX lock this process has on it.
GATE = LEDGER_GATE
_OPEN: weakref.WeakSet[File] = weakref.WeakSet()


def _before_fork() -> None:
    """Wait for the transaction under way, and leave no connection for the child to inherit."""
    GATE.acquire()
    for file in tuple(_OPEN):
        file.close()


def _forks_are_seen() -> bool:
    """Have forks wait; whether none can happen unseen, so that connections may be kept between transactions."""
    register = getattr(os, "register_at_fork", None)  # Windows has none, nor a fork
    if register is None:
        return not hasattr(os, "fork")
    register(before=_before_fork, after_in_parent=GATE.release, after_in_child=GATE.release)
    return True


_KEEP = _forks_are_seen()


class Damage(Exception):
    """Why a check of the ledger failed; leaves a transaction as a LedgerError."""


_UNREADABLE = (Damage, sqlite3.Error, OSError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError,
               RecursionError)  # fmt: skip
"""What reading a file can end in that was not written by dpcurate."""


class File:
    """One SQLite file, and between transactions an idle connection to it, which holds no lock.

    All use is under `GATE`. The connection is closed by any failure, before a fork, and when another file
    is found at the path: the next transaction then opens what is there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._opened: ledger_path.FileIdentity | None = None

    def close(self) -> None:
        """Let go of the connection; what was not committed is rolled back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    __del__ = close

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view, in which nothing can be written."""
        with self._transaction("PRAGMA query_only = ON", "BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction that is on the disk when the block has been left, or never happened.

        The rollback journal (DELETE), not WAL: after a commit all is in the one file, so copying that file
        copies the ledger, and a kill -9 leaves either nothing or a journal that the next opener undoes.
        EXTRA, not FULL: the commit is the journal's removal, and only EXTRA syncs the folder after it, so
        that a power cut cannot bring the journal, and with it the old total, back.
        IMMEDIATE: the lock comes before the reading, so two cannot both see enough left.
        """
        with self._transaction(
            "PRAGMA query_only = OFF",
            "PRAGMA journal_mode = DELETE",
            "PRAGMA synchronous = EXTRA",
            "PRAGMA fullfsync = ON",
            "BEGIN IMMEDIATE",
        ) as connection:
            yield connection

    @contextmanager
    def _transaction(self, *begin: str) -> Iterator[sqlite3.Connection]:
        with GATE:
            try:
                connection = self._ready()
                for statement in begin:
                    connection.execute(statement)
                if ledger_path.look(self.path) != self._opened:  # again, now that nobody else can write
                    raise LedgerError(
                        f"{self.path} was replaced while it was being opened. No answer was given. Try again"
                    )
                yield connection
                connection.execute("COMMIT")
            except BaseException as problem:
                self.close()
                if isinstance(problem, _UNREADABLE):
                    raise _explain(self.path, problem) from problem
                raise
            if not _KEEP:
                self.close()

    def _ready(self) -> sqlite3.Connection:
        """A connection to the file that is at the path now."""
        here = ledger_path.look(self.path)
        if here != self._opened:
            self.close()
        if self._connection is None:
            ledger_path.refuse_mounted(self.path)
            # mode=rw never creates a file; autocommit: the only transactions are the ones we spell out;
            # whichever thread comes, `GATE` lets in one at a time.
            self._connection = sqlite3.connect(
                f"{self.path.as_uri()}?mode=rw",
                uri=True,
                timeout=WAIT_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            self._opened = here
            _OPEN.add(self)
            self._connection.execute("PRAGMA trusted_schema = OFF")
        return self._connection


def damaged(path: Path, why: str) -> LedgerError:
    """The refusal of a file that is not as it was written."""
    return LedgerError(
        f"{path} is damaged: {why}. It was left as it is and no answer was given. "
        "Restore it from a copy made after its last use; a fresh ledger would forget what was spent"
    )


def _explain(path: Path, problem: Exception) -> LedgerError:
    """What went wrong while the file was open, in plain words."""
    name = getattr(problem, "sqlite_errorname", "")
    if isinstance(problem, Damage):
        return damaged(path, str(problem))
    if isinstance(problem, OSError):
        problem = OSError(problem.strerror)  # the path is said already
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return LedgerError(
            f"{path} was held by another process for {WAIT_SECONDS:g} seconds; no answer was given. Try again"
        )
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or not isinstance(
        problem, sqlite3.Error | OSError | UnicodeError
    ):
        return damaged(path, f"a part of it cannot be read ({problem})")
    return LedgerError(
        f"{path} could not be read or written: {problem}. No answer was given. "
        "The file and its folder must exist, be writable and not full"
    )
