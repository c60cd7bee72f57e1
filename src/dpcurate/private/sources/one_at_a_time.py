"""A source for sessions in several threads: one pass at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from dpcurate.private.noise import Randomness
from dpcurate.private.row_sums import Integers, RowSum
from dpcurate.private.sources.engine import Source


class OneAtATime:
    """Hands everything on; whoever reads rows waits until nobody else does."""

    def __init__(self, source: Source, lock: threading.RLock | None = None) -> None:
        self._source = source
        self._lock = threading.RLock() if lock is None else lock
        self.check, self.check_sample = source.check, source.check_sample

    @property
    def made(self) -> int:
        """Passes over the table so far, of all sessions."""
        return self._source.made

    def passes(self, row_sums: Sequence[RowSum]) -> int:
        """How many passes `totals` would take now."""
        return self._source.passes(row_sums)

    def totals(self, row_sums: Sequence[RowSum]) -> list[Integers]:
        """Each sum over all rows."""
        with self._lock:
            return self._source.totals(row_sums)

    def sample(self, rate: int, randomness: Randomness) -> Source:
        """A Poisson sample, which is read by one session at a time, too."""
        with self._lock:
            return OneAtATime(self._source.sample(rate, randomness), self._lock)
