"""What the attacked processes wrote down, held against what a ledger says.

A worker writes *asked* before it asks and *answered* after it has the answer, to an append-only file that a kill -9
cannot undo. So whatever was answered must be in the ledger, and whatever is in the ledger must have been asked for.
A kill may cut a write short where it crosses a page of memory; so a line starts afresh, and counts if it has its end.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import takewhile
from pathlib import Path

QUANTUM = Fraction(1, 1 << 20)
"""A charge of a worker is a small multiple of this; a token `x*3` says that it costs three."""
END = ";"
"""Of a line that was written to its end."""
STEP = "step of a curator"
"""The token of whatever a curator charges, in its own words."""


class Diary:
    """An append-only file of one line a fact."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)

    def write(self, mark: str, tokens: Iterable[str]) -> None:
        """One write, which a kill may cut; what follows does not join a line that was cut."""
        os.write(self.file, "".join(f"\n{mark} {token}{END}" for token in tokens).encode())

    def read(self, mark: str) -> Counter[str]:
        lines = self.path.read_bytes().decode(errors="replace").split("\n")
        whole = (line.removesuffix(END) for line in lines if line.endswith(END))
        return Counter(line.partition(" ")[2] for line in whole if line.startswith(f"{mark} "))

    def close(self) -> None:
        os.close(self.file)


def note(diary: Diary, tokens: Sequence[str], action: Callable[[], object]) -> str:
    """Ask, and write down before and after."""
    from dpcurate.errors import DpcurateError, RefusedError

    diary.write("asked", tokens)
    mark = "answered"
    try:
        action()
    except RefusedError:
        mark = "refused"
    except DpcurateError:
        mark = "failed"  # whether it was paid for is not known
    except Exception as problem:
        mark = "failed"
        diary.write("trace", [f"{type(problem).__name__}: {problem}".splitlines()[0][:200]])
    diary.write(mark, tokens)
    return mark


@dataclass(frozen=True, slots=True)
class Sight:
    """What an opening of a ledger showed; `refused` is the sentence of one that was not opened."""

    events: tuple[tuple[str, Fraction], ...] = ()
    spent: float = 0.0
    reserved: float = 0.0
    ceiling: float = 0.0
    refused: str = ""
    trace: str = ""


def look(path: Path) -> Sight:
    """Open a ledger and read all of it."""
    from dpcurate.errors import DpcurateError
    from dpcurate.private.ledger import Ledger

    try:
        ledger = Ledger.open(path)
        events = tuple((_token(event.about), Fraction(event.cost.rho)) for event in ledger.events)
        return Sight(events, ledger.spent, ledger.reserved, float(ledger.budget.ceiling))
    except DpcurateError as problem:
        return Sight(refused=str(problem))
    except Exception as problem:
        return Sight(trace=f"{type(problem).__name__}: {problem}")


def _token(about: str) -> str:
    return about.strip() if "*" in about else STEP


def cost(token: str) -> Fraction:
    """What a token of a worker's own says it costs."""
    return int(token.rpartition("*")[2]) * QUANTUM if "*" in token else Fraction(0)


def compare(diary: Diary, now: Sight, before: Sight | None = None) -> list[str]:
    """Every answer that was not paid, every payment that was lost or not asked for, and sums that are wrong."""
    if now.trace:
        return [f"opening the ledger ended in a trace: {now.trace}"]
    if now.refused:
        return [f"the ledger is refused: {now.refused}"]
    faults = [f"a trace, not a sentence: {text}" for text in diary.read("trace")]
    return faults + _payments(diary, now) + _sums(now) + ([] if before is None else _history(before, now))


def _payments(diary: Diary, now: Sight) -> list[str]:
    asked, answered, refused = map(diary.read, ("asked", "answered", "refused"))
    paid = Counter(token for token, _ in now.events)
    unpaid, extra = answered - paid, paid - (asked - refused)
    # A block that a kill left open has paid for its answers without naming them.
    in_blocks = all("*" in token for token in unpaid) and sum(map(cost, unpaid.elements())) <= now.reserved
    faults = [] if in_blocks else [f"answer not paid: {token!r} x {n}" for token, n in unpaid.items()]
    faults += [f"paid without being asked, or though refused: {token!r} x {n}" for token, n in extra.items()]
    wrong = [token for token, price in now.events if price <= 0 or ("*" in token and price != cost(token))]
    return faults + [f"paid at another price: {token!r}" for token in wrong]


def _sums(now: Sight) -> list[str]:
    total = sum((price for _, price in now.events), Fraction(now.reserved))
    faults = [] if abs(now.spent - float(total)) <= 1e-12 else [f"spent {now.spent} is not the sum {float(total)}"]
    return faults + ([f"the ceiling {now.ceiling} is exceeded: {now.spent}"] if now.spent > now.ceiling else [])


def _history(before: Sight, now: Sight) -> list[str]:
    kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before.events, now.events, strict=False)))
    faults = [] if kept == len(before.events) else [f"payment lost: {len(before.events) - kept} earlier event(s)"]
    return faults + ([f"payment lost: spent {before.spent} -> {now.spent}"] if now.spent < before.spent else [])
