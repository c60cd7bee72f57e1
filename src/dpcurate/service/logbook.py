"""The service's log: an SQLite file next to the ledger, only ever added to, each entry hashed with all before it.

The file follows the rules of the ledger's: mode 0600, one name, one link, one transaction at a time that is on the
disk when it ends. The log is no part of the privacy proof: what was spent is in the ledger.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from dpcurate._files import SERVICE_LOG, SQLITE
from dpcurate._messages import shown
from dpcurate.errors import LedgerError, RefusedError
from dpcurate.private.ledger import path as ledger_path
from dpcurate.private.ledger.file import GATE, File
from dpcurate.private.ledger.journal import from_uri, now
from dpcurate.private.process import process

Fact = str | int | float | bool | None
Facts: TypeAlias = Mapping[str, Fact]
LONGEST_TEXT = 500
"""Characters of a text in an entry; the rest is cut off."""
MOST_FACTS = 40
NOT_TOLD = ("command", "request")
"""Facts that only programs read."""
_COLUMNS = ("written", "event", "analyst", "request", "key", "facts", "chain")
_TABLE = (
    "CREATE TABLE entry (id INTEGER PRIMARY KEY, written TEXT NOT NULL, event TEXT NOT NULL, analyst TEXT NOT NULL, "
    "request INTEGER, key TEXT, facts TEXT NOT NULL, chain TEXT NOT NULL)"
)
_INDEXES = (
    "CREATE INDEX by_key ON entry (key) WHERE key IS NOT NULL",
    "CREATE INDEX by_request ON entry (request) WHERE request IS NOT NULL",
    "CREATE INDEX by_analyst ON entry (analyst)",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the log. `request` is the number of the request for consent that it is about."""

    number: int
    written: str
    event: str
    analyst: str
    request: int | None
    facts: Mapping[str, Fact]
    chain: str

    def json(self) -> str:
        """One line of JSON in ASCII: a name or purpose can neither end the line nor steer a terminal."""
        about = {} if self.request is None else {"request": self.request}
        told = {"number": self.number, "at": self.written, "event": self.event, "analyst": self.analyst, **about}
        return json.dumps({**told, "facts": dict(self.facts), "chain": self.chain})


def telling(facts: Facts) -> Iterator[tuple[str, str]]:
    """Facts as words for a person: names and values, without hashes and what is empty."""
    for name, value in facts.items():
        if name in NOT_TOLD or value in (None, ""):
            continue
        text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
        yield name.replace("_", " "), f"{text:.4g}" if isinstance(text, float) else str(text)


class Logbook:
    """The file of entries. It is found next to the ledger, whose name it has with `-service` added."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = File(path)
        self._process = process()

    @classmethod
    def beside(cls, ledger: Path, identity: str) -> Logbook:
        """The log of this ledger; a new one if there is none."""
        book = cls(Path(f"{ledger}-service"))
        if not ledger_path.is_there(book.path):
            _create(book.path, identity)
        with GATE:
            ledger_path.tidy(book.path)
            ledger_path.look(book.path)
            _check_header(book.path)
        book._check_owner(identity)
        return book

    def _check_owner(self, identity: str) -> None:
        """Refuse the log of another ledger, and one that was copied or moved and not its ledger with it."""
        with self.reading() as connection:
            known, home = connection.execute("SELECT identity, home FROM book").fetchone()
        if known != identity:
            raise LedgerError(f"{self.path} is the log of another ledger; it was left as it is. Move it away")
        before = Path(from_uri(home, type(Path())))
        if before == self.path:
            return
        if ledger_path.check_left(before, self.path):
            raise LedgerError(f"{self.path} is a copy: the log of this ledger is at {before}. Remove the copy")
        with self.writing() as connection:
            connection.execute("UPDATE book SET home = ?", (self.path.as_uri(),))
            add(connection, "moved", "", facts={"from": home})

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view."""
        self._check_process()
        with self._file.reading() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction that is on the disk when the block has been left, or never happened."""
        self._check_process()
        with self._file.writing() as connection:
            yield connection

    def _check_process(self) -> None:
        if process() != self._process:
            raise RefusedError("the log was opened by another process; open it again in this one")

    def close(self) -> None:
        """Let go of the file."""
        with GATE:
            self._file.close()


def add(
    connection: sqlite3.Connection,
    event: str,
    analyst: str,
    *,
    facts: Mapping[str, object],
    request: int | None = None,
    key: str | None = None,
) -> int:
    """Add an entry in the caller's transaction; its number."""
    found = connection.execute("SELECT id, chain FROM entry ORDER BY id DESC LIMIT 1").fetchone() or (0, "")
    number = int(found[0]) + 1
    row = (now(), event, analyst, request, key, json.dumps(_plain(facts)))
    places = ", ".join("?" * (len(_COLUMNS) + 1))
    statement = f"INSERT INTO entry (id, {', '.join(_COLUMNS)}) VALUES ({places})"
    connection.execute(statement, (number, *row, link(found[1], number, row)))
    return number


def link(chain: str, number: int, row: tuple[object, ...]) -> str:
    """The hash of an entry together with all before it."""
    return hashlib.sha256((chain + json.dumps([number, *row])).encode()).hexdigest()


def entries(connection: sqlite3.Connection, where: str = "", values: tuple[object, ...] = ()) -> Iterator[Entry]:
    """Entries in order; `where` is a condition of this package, never a caller's text."""
    condition = f"WHERE {where}" if where else ""
    found = connection.execute(
        f"SELECT id, written, event, analyst, request, facts, chain FROM entry {condition} ORDER BY id", values
    )
    for number, written, event, analyst, request, facts, chain in found:
        yield Entry(number, written, event, analyst, request, json.loads(facts), chain)


def check(connection: sqlite3.Connection, path: Path) -> tuple[int, str]:
    """The number and the hash of the last entry, if every entry is as it was written.

    Raises:
        LedgerError: an entry was edited, removed or put in; the message names the first one.
    """
    last, chain = 0, ""
    for number, *row, kept in connection.execute(f"SELECT id, {', '.join(_COLUMNS)} FROM entry ORDER BY id"):
        if number != last + 1 or kept != link(chain, number, tuple(row)):
            raise LedgerError(
                f"the log {path} is broken at entry {last + 1}: this entry was edited or removed, so what follows "
                "proves nothing. Everything before it is as it was written"
            )
        last, chain = number, kept
    return last, chain


def _plain(facts: Mapping[str, object]) -> dict[str, Fact]:
    """Facts of plain types and bounded size, whatever they come from."""
    plain: dict[str, Fact] = {}
    for name, value in list(facts.items())[:MOST_FACTS]:
        plain[str(name)[:LONGEST_TEXT]] = _fact(value)
    return plain


def _fact(value: object) -> Fact:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 1 << 64:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    text = value if isinstance(value, str) else shown(value)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."


def _create(path: Path, identity: str) -> None:
    """An empty log, which has its name only when it is whole; if another process was faster, that one stays."""
    draft = ledger_path.drafted(path)
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    file = File(draft)
    try:
        with file.writing() as connection:
            connection.execute(f"PRAGMA application_id = {SERVICE_LOG}")
            connection.execute("CREATE TABLE book (identity TEXT NOT NULL, home TEXT NOT NULL)")
            connection.execute("INSERT INTO book VALUES (?, ?)", (identity, path.as_uri()))
            for statement in (_TABLE, *_INDEXES):
                connection.execute(statement)
            add(connection, "created", "", facts={})
        with GATE:
            file.close()
        try:
            ledger_path.put(draft, path)
        except LedgerError:
            if not ledger_path.is_there(path):
                raise
    finally:
        draft.unlink(missing_ok=True)


def _check_header(path: Path) -> None:
    """Look at the first 100 bytes without SQLite, which might touch a file that is not ours."""
    with path.open("rb") as file:
        head = file.read(100)
    if not head.startswith(SQLITE) or int.from_bytes(head[68:72], "big") != SERVICE_LOG:
        raise LedgerError(f"{path} is not the log of a service; it was left as it is. Move it away")
