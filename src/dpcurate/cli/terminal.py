"""The terminal: results on standard output, everything else on standard error, and progress on one line."""

from __future__ import annotations

import math
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TextIO

from dpcurate import messages

if TYPE_CHECKING:  # help appears at once
    from dpcurate import Discovery, OutputFolder

WIDTH = 20
"""Characters of a progress bar."""
REDRAW = 0.1
"""Seconds between two drawings of the bar."""
REPORT = 5.0
"""Seconds between two lines of progress where there is no terminal."""


def say(text: object) -> None:
    """Tell the person: standard error, which leaves the pipe to the result."""
    print(messages.printable(text), file=sys.stderr, flush=True)


def show(text: object) -> None:
    """Print a result: standard output."""
    print(messages.printable(text))


def flush() -> None:
    """Hand over what was shown, because a result was paid for; standard output may have been closed by the caller."""
    if sys.stdout is not None:
        sys.stdout.flush()


def aligned(rows: Iterable[tuple[str, ...]], *, right: frozenset[int] = frozenset()) -> str:
    """Rows as aligned text; columns in `right` are right-aligned."""
    return "\n".join(messages.aligned([tuple(map(messages.one_line, row)) for row in rows], right))


class Bar:
    """A progress bar on a terminal, silent in a pipe; redrawn at most ten times a second, or when its label changes."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self.live: bool = self._stream.isatty()
        self._next, self._label = 0.0, ""

    def draw(self, label: str, full: float, text: str) -> None:
        """A label, a bar that is `full` (0 to 1), and a text."""
        if not self.live or (time.monotonic() < self._next and label == self._label):
            return
        self._next, self._label = time.monotonic() + REDRAW, label
        marks = round(WIDTH * min(max(full, 0.0), 1.0))
        line = f"{label:>9} [{'#' * marks}{'.' * (WIDTH - marks)}] {text}"
        self._stream.write(f"\r{line[: shutil.get_terminal_size().columns - 1]}\x1b[K")
        self._stream.flush()

    def clear(self) -> None:
        """Remove the bar."""
        if self.live:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


class RunProgress:
    """Progress of a run: the stage, the tests so far, and how much of its budget is left."""

    def __init__(self, bar: Bar, remaining: Callable[[], float]) -> None:
        self._bar, self._remaining = bar, remaining
        self._start, self._tests = math.nan, 0

    def __call__(self, stage: str, tests: int) -> None:
        """Called with a stage and a number of tests before they are made."""
        if math.isnan(self._start):  # now, not before: the run may have reserved its share in between
            self._start = self._remaining()
        self._tests += tests
        left = self._remaining() / self._start if 0 < self._start < math.inf else 1.0
        budget = f"{left:.0%} of the budget left" if math.isfinite(self._start) else "NOT PRIVATE"
        self._bar.draw(stage, left, f"{budget}, {self._tests:,} tests")


class Countdown:
    """How many simulations are done and how long the others will take: a bar, or a line now and then."""

    def __init__(self, bar: Bar, what: str = "worlds", clock: Callable[[], float] = time.monotonic) -> None:
        self.bar, self._what = bar, what
        self._clock = clock
        self._start, self._next = clock(), -math.inf

    def __call__(self, done: int, total: int) -> None:
        """Called whenever one is done."""
        now = self._clock()
        left = f", about {(now - self._start) / done * (total - done):.0f} s left" if 0 < done < total else ""
        self.bar.draw(self._what, done / total, f"{done} of {total}{left}")
        if not self.bar.live and (now >= self._next or done == total):
            self._next = now + REPORT
            say(f"{self._what}: {done} of {total}{left}")


# ---------------------------------------------------------------------------------------------------------------------
# A result is delivered: files first, then its edges; what was paid for is shown whatever happens to the files.


def hand_over(result: Discovery, folder: OutputFolder | None, *, mark: str = "", synthetic: int | None = None) -> None:
    """Write the files, each name after `mark`, then print the edges; what cannot be written is printed."""
    rows = None if result.model is None else synthetic  # nothing may fail here: the result was paid for
    problem: Exception | None = None
    if folder is not None:
        texts = {f"{mark}{name}": text for name, text in result.files(synthetic=rows).items()}
        written, problem = folder.write_all(texts)
        if written:
            say(f"written: {', '.join([str(written[0]), *(path.name for path in written[1:])])}")
    for line in result.summary:
        say(messages.one_line(line))
    for edge in result.edges:
        show(messages.one_line(edge))
    if problem is not None:
        _print_instead(result)
        raise problem
    if rows is not None and result.model is not None:
        say(f"note: {messages.how_many(rows, 'synthetic row')} drawn from the model. {result.model.note}")


def _print_instead(result: Discovery) -> None:
    model = result.model
    say(f"not every file could be written, so here is the report as JSON{'' if model is None else ', and the model'}:")
    show(result.report_text("report.json").rstrip("\n"))
    if model is not None:
        show(model.file_text().rstrip("\n"))


def tell_order(result: Discovery, ledger: str | None) -> None:
    """How to add an order of columns, where nothing was known before."""
    if not result.example_order:
        return
    order = shlex.quote(result.example_order)
    say("directions rest on the data alone, because no order of columns was given. If you know which come first,")
    if ledger is None:
        say(messages.one_line(f"add --order {order}; after a run with --ledger it can be added later, at no cost"))
    else:
        command = f"dpcurate discover --from-answers {shlex.quote(ledger)} --order {order}"
        say(messages.one_line(f"add it at no privacy cost: {command}"))
