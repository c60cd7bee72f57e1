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
    idle_seconds: float = 1800.0
    """A run whose client has been silent for so long is ended."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise QueryError(f"the limit {name} of a service must be above 0, got {getattr(self, name)!r}")


class Meter:
    """Counts what each analyst has under way, and the seconds of work within the last hour."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._under_way: dict[str, int] = {}
        self._worked: dict[str, deque[tuple[float, int]]] = {}
        self._nanoseconds: dict[str, int] = {}

    @contextmanager
    def work(self, analyst: str) -> Iterator[None]:
        """One request of an analyst.

        Raises:
            TooMuch: too many are under way, or the hour's seconds are used up.
        """
        start = time.monotonic()
        with self._lock:
            self._check(analyst, start)
            self._under_way[analyst] = self._under_way.get(analyst, 0) + 1
        try:
            yield
        finally:
            end = time.monotonic()
            with self._lock:
                self._under_way[analyst] -= 1
                taken = round((end - start) * 10**9)
                self._worked.setdefault(analyst, deque()).append((end, taken))
                self._nanoseconds[analyst] = self._nanoseconds.get(analyst, 0) + taken

    def seconds(self, analyst: str) -> float:
        """The seconds of work of an analyst within the last hour."""
        with self._lock:
            return self._seconds(analyst, time.monotonic())

    def _check(self, analyst: str, now: float) -> None:
        limits = self._limits
        if self._under_way.get(analyst, 0) >= limits.at_once:
            raise TooMuch(
                f"{how_many(limits.at_once, 'request')} of yours {'is' if limits.at_once == 1 else 'are'} under way: "
                "wait for an answer before asking again. Nothing was spent"
            )
        if self._seconds(analyst, now) >= limits.seconds:
            raise TooMuch(
                f"your requests have taken {limits.seconds:g} seconds of work within an hour, which is the limit; try "
                "again later. Nothing was spent"
            )

    def _seconds(self, analyst: str, now: float) -> float:
        worked = self._worked.get(analyst, deque())
        while worked and worked[0][0] < now - HOUR:
            self._nanoseconds[analyst] -= worked.popleft()[1]
        return self._nanoseconds.get(analyst, 0) / 10**9  # a sum that is kept: many small requests cost little each
