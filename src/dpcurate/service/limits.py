"""What one token may ask of a service, checked before anything is charged."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dpcurate._messages import how_many
from dpcurate.errors import QueryError, RefusedError

HOUR = 3600.0


class TooMuch(RefusedError):
    """More than a token may ask at a time, or within an hour; nothing was read and nothing was spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one token may ask. `cells` are those of the tables read and of the numbers released by one request."""

    body_bytes: int = 4 << 20
    body_seconds: float = 30.0
    """A body that has not arrived by then is refused."""
    queries: int = 20_000
    candidates: int = 50_000
    """Of all choices and scores of one request."""
    cells: int = 4_000_000
    numbers: int = 1_000_000
    """Of the answers of one request: drawing the noise of a number takes about ten microseconds."""
    at_once: int = 4
    """Requests that may be answered at a time."""
    runs: int = 8
    """Runs that may be open at a time."""
    gates: int = 200
    """Gates that may be open in one run."""
    samples: int = 2
    """Secret samples of one run: each holds the sampled rows in memory until the run ends."""
    seconds: float = 1200.0
    """Of work within an hour."""
    hourly_bytes: int = 1 << 30
    """Of answers, with their questions, that the ledger stores for one token within an hour: a release that costs
    next to nothing is stored, too, and nothing is ever removed from a ledger."""
    idle_seconds: float = 1800.0
    """A run whose client has been silent for so long is ended."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise QueryError(f"the limit {name} of a service must be above 0, got {getattr(self, name)!r}")


class HourlySum:
    """For each analyst the sum of what was added within the last hour. The caller has a lock."""

    def __init__(self) -> None:
        self._added: dict[str, deque[tuple[float, int]]] = {}
        self._sums: dict[str, int] = {}

    def add(self, analyst: str, amount: int) -> None:
        """Add an amount now."""
        self._added.setdefault(analyst, deque()).append((time.monotonic(), amount))
        self._sums[analyst] = self._sums.get(analyst, 0) + amount

    def total(self, analyst: str) -> int:
        """The sum. It is kept and not added up again, so that many small amounts take no time."""
        added, start = self._added.get(analyst, deque()), time.monotonic() - HOUR
        while added and added[0][0] < start:
            self._sums[analyst] -= added.popleft()[1]
        return self._sums.get(analyst, 0)


class Meter:
    """Counts what each analyst has under way, and the seconds of work within the last hour."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._under_way: dict[str, int] = {}
        self._nanoseconds = HourlySum()

    @contextmanager
    def work(self, analyst: str) -> Iterator[None]:
        """One request of an analyst.

        Raises:
            TooMuch: too many are under way, or the hour's seconds are used up.
        """
        start = time.monotonic()
        with self._lock:
            self._check(analyst)
            self._under_way[analyst] = self._under_way.get(analyst, 0) + 1
        try:
            yield
        finally:
            taken = round((time.monotonic() - start) * 10**9)
            with self._lock:
                self._under_way[analyst] -= 1
                self._nanoseconds.add(analyst, taken)

    def seconds(self, analyst: str) -> float:
        """The seconds of work of an analyst within the last hour."""
        with self._lock:
            return self._nanoseconds.total(analyst) / 10**9

    def _check(self, analyst: str) -> None:
        limits = self._limits
        if self._under_way.get(analyst, 0) >= limits.at_once:
            raise TooMuch(
                f"{how_many(limits.at_once, 'request')} of yours {'is' if limits.at_once == 1 else 'are'} under way: "
                "wait for an answer before asking again. Nothing was spent"
            )
        if self._nanoseconds.total(analyst) >= limits.seconds * 10**9:
            raise TooMuch(
                f"your requests have taken {limits.seconds:g} seconds of work within an hour, which is the limit; try "
                "again later. Nothing was spent"
            )
