"""Work that takes longer than a page may: done in threads, asked for by key, kept until newer work takes its place."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from dpcurate.errors import DpcurateError

KEPT = 64
"""Jobs whose results are remembered."""


@dataclass(slots=True)
class Job:
    """One piece of work: its value, or what went wrong, once it is done."""

    started: float = field(default_factory=time.monotonic)
    done: bool = False
    value: Any = None
    problem: str = ""
    told: tuple[int, int] = (0, 0)
    """How much is done, of how much."""

    @property
    def seconds(self) -> float:
        """How long it has been under way."""
        return time.monotonic() - self.started


class Jobs:
    """Work under way and its results."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[Hashable, Job] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> Job | None:
        """The work of this key, if it was begun."""
        with self._lock:
            return self._jobs.get(key)

    def start(self, key: Hashable, work: Callable[[Job], Any]) -> Job:
        """Begin the work of this key, unless it was begun already."""
        with self._lock:
            if key in self._jobs:
                self._jobs.move_to_end(key)
                return self._jobs[key]
            job = self._jobs[key] = Job()
            done = [name for name, one in self._jobs.items() if one.done]
            for name in done[: max(0, len(self._jobs) - KEPT)]:
                del self._jobs[name]
        threading.Thread(target=self._work, args=(job, work), daemon=True).start()
        return job

    def forget(self, key: Hashable) -> None:
        """Let the next `start` begin anew."""
        with self._lock:
            self._jobs.pop(key, None)

    @staticmethod
    def _work(job: Job, work: Callable[[Job], Any]) -> None:
        try:
            job.value = work(job)
        except DpcurateError as error:
            job.problem = str(error)
        except Exception as error:  # a page that waits for ever would tell nothing
            job.problem = f"unexpected: {type(error).__name__}: {error}"
        finally:
            job.done = True
