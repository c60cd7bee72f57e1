"""Deliberate breakage, so that each attack can show that it sees a fault. Applied in attacked processes alone."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any


def apply(name: str | None) -> None:
    """Break this process in the way named."""
    if name is not None:
        WAYS[name]()


def _charging(wrap: Callable[[Callable[..., None], Any, Any], None]) -> None:
    from dpcurate.private.ledger import Ledger

    real = Ledger.charge
    Ledger.charge = lambda self, events: wrap(real, self, events)  # type: ignore[method-assign]


def _lossy() -> None:
    """Every third payment is forgotten."""
    count = iter(range(1 << 60))
    _charging(lambda real, self, events: None if next(count) % 3 == 2 else real(self, events))


def _free() -> None:
    """Nothing is ever paid."""
    _charging(lambda *_: None)


def _late() -> None:
    """A payment is written when the next one is asked for: the answer comes first."""
    waiting: list[Any] = []

    def wrap(real: Callable[..., None], self: Any, events: Any) -> None:
        due = list(waiting)
        waiting[:] = events
        real(self, due)

    _charging(wrap)


def _twice() -> None:
    """Every payment is taken twice."""
    _charging(lambda real, self, events: real(self, [*events, *events]))


def _careless() -> None:
    """A charge that was refused or failed passes for one that was paid."""
    from dpcurate.errors import DpcurateError

    def wrap(real: Callable[..., None], self: Any, events: Any) -> None:
        with suppress(DpcurateError):
            real(self, events)

    _charging(wrap)


def _one_process() -> None:
    """A fork takes itself for its parent."""
    from dpcurate.private import process as sessions
    from dpcurate.private.ledger import filter as ledgers

    sessions.process = ledgers.process = lambda: (0, 0)  # type: ignore[assignment]


def _forgiving() -> None:
    """A ledger that cannot be opened is replaced by a fresh one."""
    from benchmarks.chaos.worker import create
    from dpcurate.errors import LedgerError
    from dpcurate.private.ledger import Ledger

    real = Ledger.open

    def opened(path: Any, **facts: Any) -> Any:
        try:
            return real(path, **facts)
        except LedgerError:
            for one in (Path(path), Path(f"{path}-journal")):
                one.unlink(missing_ok=True)
            return create(path)

    Ledger.open = opened  # type: ignore[method-assign]


def _any_name() -> None:
    """A ledger opens under whatever name: what is charged to it goes elsewhere."""
    from benchmarks.chaos.worker import create
    from dpcurate.private.ledger import Ledger

    real = Ledger.open

    def opened(path: Any, **facts: Any) -> Any:
        if Path(path).name == "books.ledger":
            return real(path, **facts)
        shutil.rmtree(f"{path}.d", ignore_errors=True)
        os.mkdir(f"{path}.d")
        return create(Path(f"{path}.d") / "copy")

    Ledger.open = opened  # type: ignore[method-assign]


def _by_the_clock() -> None:
    """A payment is written when the clock has moved on since the last one."""
    last = [0.0]

    def wrap(real: Callable[..., None], self: Any, events: Any) -> None:
        before, last[0] = last[0], time.time()
        if last[0] >= before:
            real(self, events)

    _charging(wrap)


def _littering() -> None:
    """Rows are written where everybody can read them, and stay."""
    from dpcurate.private.curator import Curator

    real = Curator.ask

    def ask(self: Any, query: Any) -> Any:
        litter = Path("spilled.tmp")
        litter.write_bytes(b"rows" * 1000)
        litter.chmod(0o644)
        return real(self, query)

    Curator.ask = ask  # type: ignore[method-assign]


def _forgetful() -> None:
    """A run that was stopped is never resumed: the same command pays again."""
    from dpcurate.private.ledger import run_log

    run_log.resumable = lambda *_: iter(())  # type: ignore[assignment]


def _unstored() -> None:
    """An answer is returned and never stored: whoever resumes the run draws it again."""
    from dpcurate.private.ledger import Ledger

    Ledger.keep = lambda *_: None  # type: ignore[method-assign]


WAYS = {
    "free": _free, "lossy": _lossy, "late": _late, "twice": _twice, "careless": _careless, "one-process": _one_process,
    "forgiving": _forgiving, "any-name": _any_name, "by-the-clock": _by_the_clock, "littering": _littering,
    "forgetful": _forgetful, "unstored": _unstored,
}  # fmt: skip
