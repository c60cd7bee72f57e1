"""Entries of the log that are written a moment later, many in one transaction, so that no answer waits for them.

What was spent is in the ledger before an answer leaves; the log says who asked and why. A service that is killed may
lose the entries of the last moment, never a charge.
"""

from __future__ import annotations

import threading
from typing import Any

from dpcurate.errors import LedgerError
from dpcurate.service.records import LogNote, Records

MOST_WAITING = 10_000
PAUSE = 0.2
"""Seconds between two transactions: while one is under way, no other file of ours is written."""


class LateNotes:
    """Writes entries in order, in a thread of its own that ends with `close`."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._changed = threading.Condition()
        self._waiting: list[LogNote] = []
        self._taken = 0
        self._failed = self._closing = self._hurried = False
        self._thread: threading.Thread | None = None

    def add(self, event: str, analyst: str, **facts: Any) -> None:
        """Take down an entry."""
        with self._changed:
            self._waiting.append(LogNote(event, analyst, facts))
            self._taken += 1
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(target=self._write, name="log of the service", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def check(self) -> None:
        """Refuse to go on if nothing can be written; called before anything is charged.

        Raises:
            LedgerError: the log cannot be written, for want of space or because it is locked.
        """
        if self._failed or len(self._waiting) > MOST_WAITING:
            raise LedgerError("the log cannot be written")

    def flush(self) -> None:
        """Wait until everything taken down so far is written, or cannot be; what comes meanwhile is not waited for."""
        with self._changed:
            self._hurried, last = True, self._taken
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._failed or self._taken - len(self._waiting) >= last)

    def close(self) -> None:
        """Write what is left, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _write(self) -> None:
        done = False
        while not done:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                notes, closing = list(self._waiting), self._closing
            failed = bool(notes) and not self._written(notes)
            with self._changed:
                self._failed, self._hurried = failed, False
                if not failed:
                    del self._waiting[: len(notes)]
                done = closing and (failed or not self._waiting)
                self._changed.notify_all()
                if not done:
                    self._changed.wait_for(lambda: self._closing or self._hurried, PAUSE)

    def _written(self, notes: list[LogNote]) -> bool:
        """Whether these are on the disk; what could not be written is tried again, and `check` refuses meanwhile."""
        try:
            self._records.write_all(notes)
        except Exception:  # a full disk, a lock: the reason is the owner's, and is seen when the log is read
            return False
        return True
