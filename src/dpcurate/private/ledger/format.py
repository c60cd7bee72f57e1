"""What a ledger's file holds: its tables, its rows, and the hashes by which damage shows."""

from __future__ import annotations

import hashlib
import json
import math
import re
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain as chained
from pathlib import Path
from typing import Any, cast

from dpcurate._files import LEDGER, SQLITE
from dpcurate._validation import Number
from dpcurate.accounting import Budget, Cost, Event
from dpcurate.errors import LedgerError
from dpcurate.private.ledger import journal, shares
from dpcurate.private.ledger.file import Damage, damaged
from dpcurate.private.ledger.journal import TextRow
from dpcurate.private.ledger.units import UNIT, LedgerFacts, price, round_up

# Every column is text: the amounts are wider than SQLite's integers, and text comes back as it went in.
_FACTS = ("identity", "table_name", "schema_hash", "neighbours", "epsilon", "delta", "rho", "allow_unproved",
          "created")  # fmt: skip
_STATE = ("spent", "unproved", "chain", "seal")
_EVENT = ("mechanism", "about", "epsilon", "rho", "noise", "claimed")
TABLES = {
    "book": f"CREATE TABLE book ({', '.join(f'{name} TEXT NOT NULL' for name in _FACTS + _STATE)})",
    "event": f"CREATE TABLE event (id INTEGER PRIMARY KEY, {', '.join(f'{name} TEXT' for name in _EVENT)})",
    "hold": "CREATE TABLE hold (id INTEGER PRIMARY KEY, units TEXT NOT NULL, opened TEXT NOT NULL)",
    "note": journal.NOTES,
    "by_kind": journal.BY_KIND,
    "answer": journal.ANSWERS,
}


# --- checks ----------------------------------------------------------------------------------------------


def check_header(path: Path) -> None:
    """Look at the first 100 bytes without SQLite, which might touch a file that is not ours."""
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except OSError as problem:
        raise LedgerError(f"{path} could not be read: {problem.strerror}; Ledger.create makes a new one") from None
    if not head:
        raise LedgerError(
            f"{path} is empty; it was left as it is. If its creation was cut short nothing was charged to it: "
            "remove it, with the -journal beside it if there is one, and create it again. If it ever was a ledger, "
            "restore it from a copy"
        )
    if len(head) < 100 or not head.startswith(SQLITE):
        raise LedgerError(f"{path} is not a dpcurate ledger (not an SQLite file); it was left as it is")
    if int.from_bytes(head[68:72], "big") != LEDGER:
        raise LedgerError(f"{path} is an SQLite file of another program, not a dpcurate ledger; it was left as it is")
    version = int.from_bytes(head[60:64], "big")
    if version != journal.VERSION:
        raise LedgerError(
            f"{path} has ledger format {version}, and this version of dpcurate reads only format {journal.VERSION}; it "
            "was left as it is. Use the version that wrote it"
        )
    if head[18:20] != b"\x01\x01":
        raise damaged(path, "its journal mode was changed (to WAL?) by another program")


def check_tables(connection: sqlite3.Connection) -> None:
    """Nothing but the tables dpcurate makes: no trigger, no view, none missing."""
    if dict(connection.execute("SELECT name, sql FROM sqlite_schema")) != TABLES:
        raise Damage("its tables are not the ones dpcurate makes")


def check_contents(connection: sqlite3.Connection, path: Path) -> LedgerFacts:
    """All else that can be wrong with a file that says it is ours; the facts if nothing is."""
    if connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
        raise Damage("SQLite finds its pages inconsistent")
    pages = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")]
    size = path.stat().st_size  # after the first reading, which keeps writers away
    if pages[0] * pages[1] != size:
        raise Damage(f"it is {size} bytes long and should be {pages[0] * pages[1]}")
    book = read_book(connection)
    rows = list(event_rows(connection))
    if book["chain"] != journal.hashed(journal.hashed("", [tuple(book[name] for name in _FACTS)]), rows):
        raise Damage("what it says about itself or its events was edited")
    journal.check(connection)
    facts = _read_facts(book, path)
    events = map(read_event, rows)
    total = sum(chained((price(event.cost, pure=facts.budget.pure) for event in events), holds(connection)))
    if int(book["spent"]) != total:
        raise Damage("its total is not the sum of its events and open blocks")
    shares.check(connection, total)
    return facts


# --- the row of `book` --------------------------------------------------------------------------------------------


def read_book(connection: sqlite3.Connection) -> dict[str, str]:
    """The one row of `book`, if its seal fits."""
    rows = connection.execute(f"SELECT {', '.join(_FACTS + _STATE)} FROM book").fetchall()
    if len(rows) != 1:
        raise Damage("it does not have exactly one row of facts")
    book: dict[str, str] = dict(zip(_FACTS + _STATE, rows[0], strict=True))
    if book["seal"] != _seal(connection, book["chain"], book["spent"], book["unproved"]):
        raise Damage("its total was edited")
    return book


def write_new(connection: sqlite3.Connection, facts: LedgerFacts) -> None:
    """The tables of a new ledger, and the one row of `book`."""
    connection.execute(f"PRAGMA application_id = {LEDGER}")
    connection.execute(f"PRAGMA user_version = {journal.VERSION}")
    for statement in TABLES.values():
        connection.execute(statement)
    written = _facts_row(facts)
    row = (*written, "0", "0", journal.hashed("", [written]), "")
    connection.execute(f"INSERT INTO book VALUES ({', '.join('?' * len(row))})", row)
    write_home(connection, Path(facts.path))


def write(
    connection: sqlite3.Connection, book: dict[str, str], spent: int, events: Sequence[Event], *, unproved: bool
) -> None:
    """Add events and set the total."""
    rows = [_event_row(event) for event in events]
    _insert(connection, "event", _EVENT, rows)
    mark = "1" if unproved else book["unproved"]
    _write_state(connection, str(spent), mark, journal.hashed(book["chain"], rows))


def event_rows(connection: sqlite3.Connection) -> Iterator[TextRow]:
    """The events as they are written, in order."""
    return iter(connection.execute(f"SELECT {', '.join(_EVENT)} FROM event ORDER BY id"))


def holds(connection: sqlite3.Connection) -> list[int]:
    """What open blocks hold."""
    return [int(units) for (units,) in connection.execute("SELECT units FROM hold")]


def _write_state(connection: sqlite3.Connection, spent: str, mark: str, chain: str) -> None:
    state = (spent, mark, chain, _seal(connection, chain, spent, mark))
    connection.execute("UPDATE book SET spent = ?, unproved = ?, chain = ?, seal = ?", state)


def _seal(connection: sqlite3.Connection, *state: str) -> str:
    return hashlib.sha256(json.dumps(state + journal.last(connection)).encode()).hexdigest()


def _insert(connection: sqlite3.Connection, table: str, columns: Sequence[str], rows: Iterable[TextRow]) -> None:
    places = ", ".join("?" * len(columns))
    connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)


# --- notes: what the ledger learnt after it was made -----------------------------------------------------


def write_note(connection: sqlite3.Connection, kind: str, body: str) -> None:
    """Add a note, and seal."""
    journal.add(connection, kind, body)
    ((spent, mark, chain),) = connection.execute("SELECT spent, unproved, chain FROM book").fetchall()
    _write_state(connection, spent, mark, chain)


def write_home(connection: sqlite3.Connection, path: Path) -> None:
    """From now on the ledger is kept here."""
    write_note(connection, journal.KEPT_AT, path.as_uri())


def write_answer(connection: sqlite3.Connection, body: bytes) -> dict[str, object]:
    """Put an answer into the file; what a note says of it."""
    added = connection.execute("INSERT INTO answer (body) VALUES (?)", (body,))
    return {"answer": added.lastrowid, "sha256": hashlib.sha256(body).hexdigest()}


def answers_size(connection: sqlite3.Connection, notes: Sequence[dict[str, Any]]) -> int:
    """How many bytes answers take, by what their notes say; they are not read."""
    statement = "SELECT coalesce(max(length(body)), 0) FROM answer WHERE id = ?"
    return sum(int(connection.execute(statement, (note["answer"],)).fetchone()[0]) for note in notes)


def answer(connection: sqlite3.Connection, note: dict[str, Any]) -> bytes:
    """An answer as it was stored, by what its note says."""
    row = connection.execute("SELECT body FROM answer WHERE id = ?", (note["answer"],)).fetchone()
    if row is None or hashlib.sha256(row[0]).hexdigest() != note["sha256"]:
        raise Damage("a stored answer was edited")
    return bytes(row[0])


# --- facts and events as text ----------------------------------------------------------------------------


def new_facts(
    path: Path, *, table: str, schema_hash: str, neighbours: str, budget: Budget, allow_unproved: bool
) -> LedgerFacts:
    """Facts of a ledger made now. The identity tells it from another ledger put in its place."""
    return LedgerFacts(
        table=table, schema_hash=schema_hash, neighbours=neighbours, budget=budget, path=str(path),
        allow_unproved=allow_unproved, created=journal.now(), identity=secrets.token_hex(16),
    )  # fmt: skip


def _facts_row(facts: LedgerFacts) -> tuple[str, ...]:
    budget = facts.budget
    exact = (_exact(value) for value in (budget.epsilon, budget.delta, budget.rho) if value is not None)
    return (facts.identity, facts.table, facts.schema_hash, facts.neighbours, *exact,
            "1" if facts.allow_unproved else "0", facts.created)  # fmt: skip


def _read_facts(book: dict[str, str], path: Path) -> LedgerFacts:
    return LedgerFacts(
        table=book["table_name"], schema_hash=book["schema_hash"], neighbours=book["neighbours"],
        budget=Budget.from_numbers(*(_number(book[name]) for name in ("epsilon", "delta", "rho"))),
        allow_unproved=book["allow_unproved"] == "1", created=book["created"], identity=book["identity"],
        path=str(path),
    )  # fmt: skip


def _exact(value: Number) -> str:
    return "inf" if value == math.inf else str(Fraction(value))


def _number(text: str) -> float:
    """The number as written; a fraction that no float equals stays one, or a ceiling could rise."""
    if text == "inf":
        return math.inf
    if not re.fullmatch(r"\d{1,1300}(/\d{1,1300})?", text):  # an exponent could ask for more digits than memory holds
        raise Damage("an amount in it is not a fraction")
    value = Fraction(text)
    near = float(value)
    return near if near == value else cast(float, value)


def _event_row(event: Event) -> TextRow:
    epsilon, rho = ("inf" if cost == math.inf else str(round_up(cost)) for cost in (event.cost.epsilon, event.cost.rho))
    noise, claimed = (None if value is None else repr(float(value)) for value in (event.noise, event.claimed))
    return event.mechanism, event.about, epsilon, rho, noise, claimed


def read_event(row: TextRow) -> Event:
    """An event from its row."""
    mechanism, about, epsilon, rho, noise, claimed = row
    cost = Cost(*(math.inf if units == "inf" else int(units or "") * UNIT for units in (epsilon, rho)))
    numbers = (None if value is None else float(value) for value in (noise, claimed))
    return Event(str(mechanism), str(about), cost, *numbers)
