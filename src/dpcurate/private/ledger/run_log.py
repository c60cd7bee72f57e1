"""Runs of methods on a ledger: what each was for, what it paid, and what became of it. Proof: docs/proofs/answers.md.

A run is told by the ledger's notes alone: `run`, then for each process that worked on it a `claim`, for each
request `paid` and `stored`, for all else it paid (gates, blocks) `charged`, and `ended`.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import NoneType

from dpcurate._messages import shown
from dpcurate._validation import HUGE
from dpcurate.errors import QueryError
from dpcurate.private.ledger import journal
from dpcurate.private.ledger.file import Damage
from dpcurate.private.ledger.units import float_down, float_up


class Liveness:
    """Whether the process of a run is still alive: a file lock, which the system releases when the process exits.

    A courtesy, not a safeguard: a run that is taken from a live process costs that process its run, and nobody any
    privacy (docs/proofs/answers.md). SQLite's lock on an empty file serves because every system has it.
    """

    def __init__(self, file: Path, connection: sqlite3.Connection) -> None:
        self._file = file
        self._connection = connection

    @classmethod
    def take(cls, ledger: Path, run: int) -> Liveness | None:
        """The lock, unless somebody has it or the name is that of another file."""
        file = _file(ledger, run)
        if _is_foreign(file):
            return None
        connection = sqlite3.connect(file, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as problem:
            connection.close()
            if problem.sqlite_errorname.startswith("SQLITE_BUSY"):
                return None
            raise
        return cls(file, connection)

    def end(self) -> None:
        """Let go, and leave no file behind; where a file in use cannot be removed, after it."""
        self._remove()
        self._connection.close()
        self._remove()

    def _remove(self) -> None:
        with suppress(OSError):
            if not _is_foreign(self._file):
                self._file.unlink(missing_ok=True)

    def __del__(self) -> None:
        self._connection.close()  # the file stays: a forked copy ends this way too


def _file(ledger: Path, run: int) -> Path:
    return Path(f"{ledger}-run-{run}")


def _is_foreign(file: Path) -> bool:
    """Whether it is no lock, which is empty: a ledger may be named so, and must be neither locked nor removed."""
    return file.is_file() and file.stat().st_size > 0


LONGEST_FACT = 10_000
"""Characters of a fact about a run; a path takes at most some thousands."""
FINISHED, OPEN = "finished", "not ended"
"""A run that is under way has not ended, and neither has one whose process was killed."""
_FOLDED = ("claim", "paid", "stored", "charged", "ended")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What a run is about, in public words; `command` is a hash of all that makes it the same command."""

    command: str
    method: str
    schema: str
    by: str
    purpose: str = ""
    epsilon: float | None = None
    result: str = ""
    quantify: float | None = None
    """The part that was set aside for a model."""


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """A line of the log. `units` and `allowance` are exact; `answers` is how many requests have stored answers."""

    number: int
    facts: RunFacts
    started: str
    outcome: str
    units: int
    answers: int
    allowance: int | None
    ended: str | None

    @property
    def finished(self) -> bool:
        """Whether its result was delivered; a run that was stopped, or is under way, is not finished."""
        return self.outcome == FINISHED

    @property
    def spent(self) -> float:
        """What it was charged, in the budget's currency; rounded up."""
        return float_up(self.units)

    @property
    def allowed(self) -> float | None:
        """What it might spend; rounded down. None is no limit."""
        return None if self.allowance is None else float_down(self.allowance)


@dataclass(slots=True)
class LedgerRun:
    """A run under way in this process, and what its requests have cost, stored ones included."""

    number: int
    allowance: int | None
    lock: Liveness | None
    earlier: int = 0
    """Requests that earlier processes paid."""
    paid: int = 0
    """Units that earlier processes were charged."""
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    used: int = 0
    charged: int = 0
    """Units that this process was charged."""
    replayed: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    owed: dict[str, list[str]] = field(default_factory=dict)
    """Names of requests that this process paid and could not answer, by request."""

    @property
    def replaying(self) -> bool:
        """Whether an earlier process paid for more than was asked so far."""
        return self.replayed < self.earlier

    def left(self, ledger: int | None) -> int | None:
        """What the run may still spend; `ledger` is what the ledger has left. None is no limit.

        While a run is replayed it is the same number as when it was first asked for.
        """
        if self.allowance is None:
            return ledger
        if self.replaying:
            return self.allowance - self.used
        mine = self.allowance - self.paid - self.charged
        return mine if ledger is None else min(mine, ledger)

    def next(self, request: str) -> str:
        """The request's own name, since a query may be asked more than once; one that is owed an answer comes first."""
        owed = self.owed.get(request)
        return owed[-1] if owed else f"{request}.{self.asked[request]}"

    def leave(self) -> None:
        """No longer the process that works on it."""
        if self.lock is not None:
            self.lock.end()

    def kind(self, what: str, request: str = "") -> str:
        """The kind of a note about the run."""
        return f"{what} {self.number} {request}".rstrip()


@dataclass(frozen=True, slots=True)
class Payment:
    """A request that is paid: its name, its answer if it is stored, and whether this process had paid it before."""

    name: str
    stored: bytes | None
    owed: bool


def new_note(number: int, facts: RunFacts, allowance: int | None) -> str:
    """The body of the note that begins a run."""
    return json.dumps({"number": number, "allowance": None if allowance is None else str(allowance)} | asdict(facts))


@dataclass(slots=True)
class Story:
    """A run as its notes tell it, read in order."""

    started: journal.Note
    outcome: str = OPEN
    ended: str | None = None
    units: int = 0
    paid: int = 0
    answers: int = 0
    lost: bool = False
    """Whether it paid for what is not stored, and would have to pay for it again."""

    def claim(self, _note: journal.Note) -> None:
        """A process works on the run again."""
        self.outcome, self.ended = OPEN, None

    def pay(self, note: journal.Note) -> None:
        """Count a request that was paid."""
        self.paid += 1
        self.units += int(note.facts["units"])

    def store(self, _note: journal.Note) -> None:
        """Count an answer that was stored."""
        self.answers += 1

    def charge(self, note: journal.Note) -> None:
        """Add what was paid outside stored requests."""
        self.lost = True
        self.units += int(note.facts["units"])

    def end(self, note: journal.Note) -> None:
        """Note how and when the run ended."""
        self.outcome, self.ended = note.facts["outcome"], note.written

    def resumed(self, lock: Liveness) -> LedgerRun:
        """The run in another process."""
        known = self.logged()
        return LedgerRun(known.number, known.allowance, lock, self.paid, known.units)

    def logged(self) -> LoggedRun:
        """The run as a line of the log."""
        told = self.started.facts
        allowance = None if told["allowance"] is None else int(told["allowance"])
        facts = RunFacts(**{f.name: told[f.name] for f in fields(RunFacts) if f.name in told})
        _check_types(facts)
        return LoggedRun(
            told["number"], facts, self.started.written, self.outcome, self.units, self.answers, allowance, self.ended
        )


def check_facts(facts: RunFacts) -> None:
    """Refuse what must not stand in a ledger, which keeps it for good; a service hands on what its clients say.

    Raises:
        QueryError: a fact is of another type than it is read as, or longer or larger than anything that is meant.
    """
    for one in fields(RunFacts):
        value = getattr(facts, one.name)
        if not _has_its_type(one.name, value):
            raise QueryError(f"the {one.name} of a run cannot be {shown(value)}")
        if isinstance(value, str) and len(value) > LONGEST_FACT:
            raise QueryError(f"the {one.name} of a run may have {LONGEST_FACT:,} characters, got {len(value):,}")
        if isinstance(value, int | float) and not 0 <= value <= HUGE:
            raise QueryError(f"the {one.name} of a run is a finite number, got {shown(value)}")


def _has_its_type(name: str, value: object) -> bool:
    return type(value) in (int, float, NoneType) if name in ("epsilon", "quantify") else type(value) is str


def _check_types(facts: RunFacts) -> None:
    """Refuse facts of other types than they are written with."""
    for one in fields(RunFacts):
        if not _has_its_type(one.name, getattr(facts, one.name)):
            raise Damage(f"the {one.name} of a run is {shown(getattr(facts, one.name))}")


def stories(connection: sqlite3.Connection) -> dict[int, Story]:
    """All runs by number."""
    told: dict[int, Story] = {}
    tell = dict(zip(_FOLDED, (Story.claim, Story.pay, Story.store, Story.charge, Story.end), strict=True))
    for note in journal.each(connection):
        word, _, rest = note.kind.partition(" ")
        if note.kind == journal.RUN:
            told[note.facts["number"]] = Story(note)
        elif word in tell:
            tell[word](told[int(rest.partition(" ")[0])], note)
    return told


def resumable(told: dict[int, Story], command: str) -> Iterator[int]:
    """Runs of a command that paid for requests alone and did not finish, the newest first; some may be alive."""
    for number, story in sorted(told.items(), reverse=True):
        unfinished = story.outcome != FINISHED and not story.lost
        if story.paid and unfinished and story.started.facts["command"] == command:
            yield number
