"""A bar on a terminal; silence in a pipe or a log."""

from __future__ import annotations

import math
import shutil
import sys
import time
from typing import TextIO

from dpcurate.queries.proxies import Notice
from dpcurate.study.study import Study

WIDTH = 20
EVERY = 0.1
"""Seconds between two drawings."""


class Bar:
    """One line that is drawn when its label changes, and else at most ten times a second."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self.live: bool = self._stream.isatty()
        self._next, self._label = 0.0, ""

    def draw(self, label: str, full: float, text: str) -> None:
        """A label, a bar that is `full` (0 to 1), and a text."""
        if not self.live or (time.monotonic() < self._next and label == self._label):
            return
        self._next, self._label = time.monotonic() + EVERY, label
        marks = round(WIDTH * min(max(full, 0.0), 1.0))
        line = f"{label:>9} [{'#' * marks}{'.' * (WIDTH - marks)}] {text}"
        self._stream.write(f"\r{line[: shutil.get_terminal_size().columns - 1]}\x1b[K")
        self._stream.flush()

    def clear(self) -> None:
        if self.live:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def progress(study: Study, bar: Bar) -> Notice:
    """Shows the stage, the tests done and the budget left on the bar."""
    start, done = math.nan, 0

    def notice(stage: str, tests: int) -> None:
        nonlocal start, done
        if math.isnan(start):  # now, not before: the run may have set its share aside
            start = study.remaining
        done += tests
        left = study.remaining / start if 0 < start < math.inf else 1.0
        bar.draw(stage, left, f"{left:.0%} of the budget left, {done:,} tests")

    return notice
