"""Where a ledger keeps its books: in memory, or in one SQLite file.

Amounts are integers in units of 2**-100 of the budget's currency, so sums are exact. Costs are
rounded up and totals down: an error can only refuse what would have fitted. A store knows how to
write atomically; whether something may be written is the ledger's decision, which it hands over
as a function of what has been spent.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from itertools import chain as chained
from pathlib import Path
from typing import Protocol, cast

from dpcurate.budget import Budget, Cost, Event, Number
from dpcurate.errors import LedgerError

PLACES = 100
UNIT = Fraction(1, 1 << PLACES)
WAIT_SECONDS = 30.0  # how long to wait for another process before giving up
APPLICATION = 0x64704C67  # "dpLg", in the file's header
VERSION = 1
MAGIC = b"SQLite format 3\x00"

# Held while any connection of this process is open, and across a fork. A fork would copy SQLite's idea of
# its locks into the child, and closing a plain file handle drops every POSIX lock this process has on it.
_GATE = threading.RLock()
os.register_at_fork(before=_GATE.acquire, after_in_parent=_GATE.release, after_in_child=_GATE.release)


def round_up(value: Number) -> int:
    """The least number of units that is at least `value`."""
    top, bottom = value.as_integer_ratio()
    return -((-top << PLACES) // bottom)


def round_down(value: Number) -> int:
    """The greatest number of units that is at most `value`."""
    top, bottom = value.as_integer_ratio()
    return (top << PLACES) // bottom


def float_up(units: int) -> float:
    """The least float that is at least `units`."""
    try:
        near = units / (1 << PLACES)
    except OverflowError:
        return math.inf
    return math.nextafter(near, math.inf) if round_down(near) < units else near


def float_down(units: int) -> float:
    """The greatest float that is at most `units`."""
    near = units / (1 << PLACES)
    return math.nextafter(near, -math.inf) if round_up(near) > units else near


def price(cost: Cost, *, pure: bool) -> int:
    """What a step takes from the budget, in units; one without a finite cost takes none and leaves a mark."""
    amount = cost.epsilon if pure else cost.rho
    return 0 if math.inf in (amount, cost.rho) else round_up(amount)


Decide = Callable[[int], int]
"""Given the units spent so far, the units to take; raises to refuse."""


@dataclass(frozen=True, slots=True)
class State:
    """Where the books stand. `spent` includes `reserved`; `unproved` once an infinite cost was admitted."""

    spent: int = 0
    reserved: int = 0
    unproved: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a ledger on disk is about. A ledger that differs in one of these is another ledger."""

    table: str
    schema_hash: str
    neighbours: str
    budget: Budget
    allow_unproved: bool
    created: str
    identity: str


class Store(Protocol):
    """What the ledger needs of its books. Every method is all or nothing."""

    def state(self) -> State:
        """Where the books stand."""

    def events(self) -> tuple[Event, ...]:
        """Everything charged, in order."""

    def charge(self, decide: Decide, events: Sequence[Event], *, unproved: bool) -> None:
        """Add events and what `decide` says they take."""

    def mark_unproved(self) -> None:
        """Record for good that a step without a finite cost was let through."""

    def hold(self, decide: Decide) -> tuple[int, int]:
        """Set aside what `decide` says; the block's number and size."""

    def settle(self, hold: int, used: int, events: Sequence[Event]) -> None:
        """Close a block: write its events, give back what it did not use."""


class Memory:
    """Books that end with the process. The ledger's lock makes each method atomic."""

    def __init__(self) -> None:
        self._spent = 0
        self._held = 0
        self._unproved = False
        self._events: list[Event] = []

    def state(self) -> State:
        """Where the books stand."""
        return State(self._spent, self._held, self._unproved)

    def events(self) -> tuple[Event, ...]:
        """Everything charged, in order."""
        return tuple(self._events)

    def charge(self, decide: Decide, events: Sequence[Event], *, unproved: bool) -> None:
        """Add events and what `decide` says they take."""
        self._spent += decide(self._spent)
        self._unproved |= unproved
        self._events.extend(events)

    def mark_unproved(self) -> None:
        """Record for good that a step without a finite cost was let through."""
        self._unproved = True

    def hold(self, decide: Decide) -> tuple[int, int]:
        """Set aside what `decide` says; the block's number and size."""
        self._held = decide(self._spent)
        self._spent += self._held
        return 0, self._held

    def settle(self, hold: int, used: int, events: Sequence[Event]) -> None:
        """Close a block: write its events, give back what it did not use."""
        self._spent += used - self._held
        self._held = 0
        self._events.extend(events)


# --- on disk ---------------------------------------------------------------------------------------------
# Every column is text: the amounts are wider than SQLite's integers, and text comes back as it went in.
_FACTS = ("identity", "table_name", "schema_hash", "neighbours", "epsilon", "delta", "rho", "allow_unproved",
          "created")  # fmt: skip
_STATE = ("spent", "unproved", "chain", "seal")
_EVENT = ("mechanism", "about", "epsilon", "rho", "noise", "claimed")
_SCHEMA = {
    "book": f"CREATE TABLE book ({', '.join(f'{name} TEXT NOT NULL' for name in _FACTS + _STATE)})",
    "event": f"CREATE TABLE event (id INTEGER PRIMARY KEY, {', '.join(f'{name} TEXT' for name in _EVENT)})",
    "hold": "CREATE TABLE hold (id INTEGER PRIMARY KEY, units TEXT NOT NULL, opened TEXT NOT NULL)",
}
_ADD_EVENT = f"INSERT INTO event ({', '.join(_EVENT)}) VALUES ({', '.join('?' * len(_EVENT))})"

Row = tuple[str | None, ...]


class Disk:
    """Books in one SQLite file, shared by processes and days.

    A connection lives for one use: nothing is left open for a fork, a thread or a crash to inherit.
    """

    def __init__(self, path: Path, facts: Facts) -> None:
        self.path = path
        self.facts = facts

    @classmethod
    def create(cls, path: Path, facts: Facts) -> Disk:
        """Write new books; an existing file, of whatever kind, is refused and left alone."""
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise LedgerError(
                f"{path} exists and is never overwritten; open it with Ledger.open, or choose another name "
                "(the budget belongs to the table: a new file is not a new budget)"
            ) from None
        except OSError as problem:
            raise LedgerError(
                f"{path} could not be created: {problem.strerror}; choose a place you can write"
            ) from None
        try:
            _write_new(path, facts)
        except BaseException:
            path.unlink(missing_ok=True)  # made a moment ago, by us, and nothing was charged to it
            raise
        return cls(path, facts)

    @classmethod
    def open(cls, path: Path) -> Disk:
        """Books that exist, after a check that reads all of them and writes nothing."""
        with _GATE:
            _check_header(path)
            with _reading(path) as connection:
                return cls(path, _check_books(connection, path))

    def state(self) -> State:
        """Where the books stand."""
        with _reading(self.path) as connection:
            book = self._book(connection)
            return State(int(book["spent"]), sum(_holds(connection)), book["unproved"] == "1")

    def events(self) -> tuple[Event, ...]:
        """Everything charged, in order."""
        with _reading(self.path) as connection:
            self._book(connection)
            return tuple(map(_event, _rows(connection)))

    def charge(self, decide: Decide, events: Sequence[Event], *, unproved: bool) -> None:
        """Add events and what `decide` says they take."""
        with _writing(self.path) as connection:
            book = self._book(connection)
            spent = int(book["spent"])
            self._write(connection, book, spent + decide(spent), events, unproved=unproved)

    def mark_unproved(self) -> None:
        """Record for good that a step without a finite cost was let through."""
        self.charge(lambda _spent: 0, (), unproved=True)

    def hold(self, decide: Decide) -> tuple[int, int]:
        """Set aside what `decide` says; the block's number and size."""
        with _writing(self.path) as connection:
            book = self._book(connection)
            spent = int(book["spent"])
            units = decide(spent)
            added = connection.execute("INSERT INTO hold (units, opened) VALUES (?, ?)", (str(units), _now()))
            self._write(connection, book, spent + units, (), unproved=False)
            hold = added.lastrowid
        assert hold is not None
        return hold, units

    def settle(self, hold: int, used: int, events: Sequence[Event]) -> None:
        """Close a block: write its events, give back what it did not use."""
        with _writing(self.path) as connection:
            book = self._book(connection)
            held = connection.execute("SELECT units FROM hold WHERE id = ?", (hold,)).fetchone()
            if held is None:
                raise _Damage("the open block has gone from it")
            connection.execute("DELETE FROM hold WHERE id = ?", (hold,))
            self._write(connection, book, int(book["spent"]) + used - int(held[0]), events, unproved=False)

    def _book(self, connection: sqlite3.Connection) -> dict[str, str]:
        """The one row of `book`, if it is still the file that was opened and still says what was written."""
        book = _book(connection)
        if book is None or book["identity"] != self.facts.identity:
            raise _Damage("it is not the file that was opened")
        if book["seal"] != _seal(book["chain"], book["spent"], book["unproved"]):
            raise _Damage("its total was edited")
        return book

    def _write(
        self,
        connection: sqlite3.Connection,
        book: dict[str, str],
        spent: int,
        events: Sequence[Event],
        *,
        unproved: bool,
    ) -> None:
        rows = [_row(event) for event in events]
        connection.executemany(_ADD_EVENT, rows)
        mark = "1" if unproved else book["unproved"]
        chain = _chain(book["chain"], rows)
        state = (str(spent), mark, chain, _seal(chain, str(spent), mark))
        connection.execute("UPDATE book SET spent = ?, unproved = ?, chain = ?, seal = ?", state)


class _Damage(Exception):
    """Why a check of the books failed; leaves this module as a LedgerError."""


def _damaged(path: Path, why: str) -> LedgerError:
    return LedgerError(
        f"{path} is damaged: {why}. It was left as it is and no answer was given. "
        "Restore it from a copy made after its last use; a fresh ledger would forget what was spent"
    )


def _explain(path: Path, problem: Exception) -> LedgerError:
    """What went wrong while the file was open, in plain words."""
    name = getattr(problem, "sqlite_errorname", "")
    if isinstance(problem, _Damage):
        return _damaged(path, str(problem))
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return LedgerError(
            f"{path} was held by another process for {WAIT_SECONDS:g} seconds; no answer was given. Try again"
        )
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or not isinstance(problem, sqlite3.Error | UnicodeError):
        return _damaged(path, f"a part of it cannot be read ({problem})")
    return LedgerError(
        f"{path} could not be read or written: {problem}. No answer was given. "
        "The file and its folder must exist, be writable and have room"
    )


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection for one use. Closing it rolls back what was not committed."""
    with _GATE:
        try:
            # mode=rw never creates a file; autocommit: the only transactions are the ones we spell out.
            uri = f"{path.absolute().as_uri()}?mode=rw"
            connection = sqlite3.connect(uri, uri=True, timeout=WAIT_SECONDS, isolation_level=None)
            try:
                connection.execute("PRAGMA trusted_schema = OFF")
                yield connection
            finally:
                connection.close()
        except (_Damage, sqlite3.Error, ValueError, TypeError, ArithmeticError) as problem:
            raise _explain(path, problem) from problem


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """One consistent view, in which nothing can be written."""
    with _connected(path) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        yield connection


@contextmanager
def _writing(path: Path) -> Iterator[sqlite3.Connection]:
    """One transaction that is on the disk when the block has been left, or never happened.

    The rollback journal (DELETE), not WAL: after a commit all is in the one file, so copying that file
    copies the books, and a kill -9 leaves either nothing or a journal that the next opener undoes.
    EXTRA, not FULL: the commit is the journal's removal, and only EXTRA syncs the folder after it, so
    that a power cut cannot bring the journal, and with it the old total, back.
    """
    with _connected(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("BEGIN IMMEDIATE")  # the lock comes before the reading, so two cannot both see room
        yield connection
        connection.execute("COMMIT")


def _write_new(path: Path, facts: Facts) -> None:
    with _writing(path) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        for statement in _SCHEMA.values():
            connection.execute(statement)
        written = _facts_row(facts)
        chain = _chain("", [written])
        row = (*written, "0", "0", chain, _seal(chain, "0", "0"))
        connection.execute(f"INSERT INTO book VALUES ({', '.join('?' * len(row))})", row)


def _check_header(path: Path) -> None:
    """Look at the first 100 bytes without SQLite, which might touch a file that is not ours."""
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except OSError as problem:
        raise LedgerError(f"{path} could not be read: {problem.strerror}; Ledger.create makes a new one") from None
    if not head:
        raise LedgerError(
            f"{path} is empty; it was left as it is. If its creation was cut short nothing was charged to it: "
            "remove it and create it again. If it ever held books, restore them from a copy"
        )
    if len(head) < 100 or not head.startswith(MAGIC):
        raise LedgerError(f"{path} is not a dpcurate ledger (not an SQLite file); it was left as it is")
    if int.from_bytes(head[68:72], "big") != APPLICATION:
        raise LedgerError(f"{path} is an SQLite file of another program, not a dpcurate ledger; it was left as it is")
    if int.from_bytes(head[60:64], "big") != VERSION:
        raise LedgerError(
            f"{path} was written by another version of dpcurate (format is not {VERSION}); update dpcurate"
        )
    if head[18:20] != b"\x01\x01":
        raise _damaged(path, "its journal mode was changed (to WAL?) by another program")


def _check_books(connection: sqlite3.Connection, path: Path) -> Facts:
    """All that can be wrong with a file that says it is ours; the facts if nothing is."""
    if connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
        raise _Damage("SQLite finds its pages inconsistent")
    pages = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")]
    size = path.stat().st_size  # after the first reading, which keeps writers away
    if pages[0] * pages[1] != size:
        raise _Damage(f"it is {size} bytes long and should be {pages[0] * pages[1]}")
    if dict(connection.execute("SELECT name, sql FROM sqlite_schema")) != _SCHEMA:
        raise _Damage("its tables are not the ones dpcurate makes")
    book = _book(connection)
    if book is None:
        raise _Damage("it does not hold exactly one book")
    rows = list(_rows(connection))
    if book["chain"] != _chain(_chain("", [tuple(book[name] for name in _FACTS)]), rows):
        raise _Damage("what it says about itself or its events was edited")
    if book["seal"] != _seal(book["chain"], book["spent"], book["unproved"]):
        raise _Damage("its total was edited")
    facts = _read_facts(book)
    events = [_event(row) for row in rows]
    total = sum(chained((price(event.cost, pure=facts.budget.pure) for event in events), _holds(connection)))
    if int(book["spent"]) != total:
        raise _Damage("its total is not the sum of its events and open blocks")
    return facts


def _book(connection: sqlite3.Connection) -> dict[str, str] | None:
    rows = connection.execute(f"SELECT {', '.join(_FACTS + _STATE)} FROM book").fetchall()
    return dict(zip(_FACTS + _STATE, rows[0], strict=True)) if len(rows) == 1 else None


def _rows(connection: sqlite3.Connection) -> Iterator[Row]:
    return iter(connection.execute(f"SELECT {', '.join(_EVENT)} FROM event ORDER BY id"))


def _holds(connection: sqlite3.Connection) -> list[int]:
    return [int(units) for (units,) in connection.execute("SELECT units FROM hold")]


def _chain(chain: str, rows: Iterable[Row]) -> str:
    """A hash over all rows in order: damage to any of them shows. It is no defence against a forger."""
    for row in rows:
        chain = hashlib.sha256((chain + json.dumps(row)).encode()).hexdigest()
    return chain


def _seal(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def new_facts(*, table: str, schema_hash: str, neighbours: str, budget: Budget, allow_unproved: bool) -> Facts:
    """Facts of a ledger made now. The identity tells it from another ledger put in its place."""
    return Facts(
        table=table, schema_hash=schema_hash, neighbours=neighbours, budget=budget,
        allow_unproved=allow_unproved, created=_now(), identity=secrets.token_hex(16),
    )  # fmt: skip


def _facts_row(facts: Facts) -> tuple[str, ...]:
    budget = facts.budget
    exact = (_exact(value) for value in (budget.epsilon, budget.delta, budget.rho) if value is not None)
    return (facts.identity, facts.table, facts.schema_hash, facts.neighbours, *exact,
            "1" if facts.allow_unproved else "0", facts.created)  # fmt: skip


def _read_facts(book: dict[str, str]) -> Facts:
    return Facts(
        table=book["table_name"], schema_hash=book["schema_hash"], neighbours=book["neighbours"],
        budget=_read_budget(*(_number(book[name]) for name in ("epsilon", "delta", "rho"))),
        allow_unproved=book["allow_unproved"] == "1", created=book["created"], identity=book["identity"],
    )  # fmt: skip


def _exact(value: Number) -> str:
    return "inf" if value == math.inf else str(Fraction(value))


def _number(text: str) -> float:
    """The number as written; a fraction that no float equals stays one, or a ceiling could rise."""
    if text == "inf":
        return math.inf
    value = Fraction(text)
    near = float(value)
    return near if near == value else cast(float, value)


def _read_budget(epsilon: float, delta: float, rho: float) -> Budget:
    """The budget as written. Converting again could differ in the last bit on another machine."""
    if delta == 0:
        return Budget(epsilon=epsilon, delta=0)
    budget = Budget(rho=rho, delta=delta)
    object.__setattr__(budget, "epsilon", epsilon)
    return budget


def _row(event: Event) -> Row:
    epsilon, rho = ("inf" if cost == math.inf else str(round_up(cost)) for cost in (event.cost.epsilon, event.cost.rho))
    noise, claimed = (None if value is None else repr(float(value)) for value in (event.noise, event.claimed))
    return event.mechanism, event.about, epsilon, rho, noise, claimed


def _event(row: Row) -> Event:
    mechanism, about, epsilon, rho, noise, claimed = row
    cost = Cost(*(math.inf if units == "inf" else int(units or "") * UNIT for units in (epsilon, rho)))
    numbers = (None if value is None else float(value) for value in (noise, claimed))
    return Event(str(mechanism), str(about), cost, *numbers)
