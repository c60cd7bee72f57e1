"""What a ledger learnt since it was made: notes, only ever added, each hashed together with all before it.

Every reader gets the same answer from the notes alone: where the ledger is kept, what its unit of privacy is,
which schemas were used, and what became of every run.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any
from urllib.parse import unquote_to_bytes

from dpcurate.private.ledger.file import Damage

VERSION = 4
"""The format of the file, which is the only one that is read."""
_NOTE = ("kind", "body", "written", "chain")
NOTES = f"CREATE TABLE note (id INTEGER PRIMARY KEY, {', '.join(f'{name} TEXT NOT NULL' for name in _NOTE)})"
BY_KIND = "CREATE INDEX by_kind ON note (kind)"
ANSWERS = "CREATE TABLE answer (id INTEGER PRIMARY KEY, body BLOB NOT NULL)"
KEPT_AT, UNIT, SCHEMA, RUN = "kept at", "unit", "schema", "run"

TextRow = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """One note: what it is about, what it says, when it was written."""

    kind: str
    body: str
    written: str
    place: int = 0
    """Its number among all notes."""

    @property
    def facts(self) -> dict[str, Any]:
        """The body of a note that holds several facts."""
        return dict(json.loads(self.body))


def now() -> str:
    """The time, for a person to read; nothing depends on it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def hashed(chain: str, rows: Iterable[TextRow]) -> str:
    """A hash over all rows in order: damage to any of them shows. It is no defence against a forger."""
    for row in rows:
        chain = hashlib.sha256((chain + json.dumps(row)).encode()).hexdigest()
    return chain


def add(connection: sqlite3.Connection, kind: str, body: str) -> None:
    """Add a note; the caller seals."""
    note = (kind, body, now())
    columns, places = ", ".join(_NOTE), ", ".join("?" * len(_NOTE))
    row = (*note, hashed("".join(last(connection)), [note]))
    connection.execute(f"INSERT INTO note ({columns}) VALUES ({places})", row)


def last(connection: sqlite3.Connection) -> tuple[str, ...]:
    """The hash over all notes, if there are any."""
    return tuple(connection.execute("SELECT chain FROM note ORDER BY id DESC LIMIT 1").fetchone() or ())


def check(connection: sqlite3.Connection) -> None:
    """Whether every note is as it was written."""
    chain = ""
    for *note, link in _rows(connection):
        chain = hashed(chain, [tuple(note)])
        if link != chain:
            raise Damage("its notes were edited")


def each(connection: sqlite3.Connection, *kinds: str) -> Iterator[Note]:
    """Notes of these kinds, in order; of all kinds if none is named."""
    return (Note(kind, body, when) for kind, body, when, _ in _rows(connection) if not kinds or kind in kinds)


def newest(connection: sqlite3.Connection, kind: str) -> Note | None:
    """The last note of a kind."""
    found = connection.execute("SELECT body, written, id FROM note WHERE kind = ? ORDER BY id DESC LIMIT 1", (kind,))
    row = found.fetchone()
    return None if row is None else Note(kind, *row)


def beginning(connection: sqlite3.Connection, word: str) -> list[Note]:
    """Notes whose kind begins with this word and a space, in order."""
    columns, bounds = "kind, body, written, id", (f"{word} ", f"{word}!")  # the character after a space
    found = connection.execute(f"SELECT {columns} FROM note WHERE kind >= ? AND kind < ? ORDER BY id", bounds)
    return [Note(*row) for row in found.fetchall()]


def _rows(connection: sqlite3.Connection) -> Iterable[tuple[str, ...]]:
    return connection.execute(f"SELECT {', '.join(_NOTE)} FROM note ORDER BY id").fetchall()


# --- what single notes say -------------------------------------------------------------------------------


def home(connection: sqlite3.Connection) -> Path:
    """Where the ledger is kept."""
    note = newest(connection, KEPT_AT)
    if note is None:
        raise Damage("it does not say where it is kept")
    return path_of(note)


def path_of(note: Note) -> Path:
    """A path, which is kept as an URI because it need not be text."""
    return Path(from_uri(note.body, type(Path())))


def from_uri(uri: str, kind: type[PurePath]) -> PurePath:
    """The path whose `as_uri` this is; on Windows it begins with a letter, or with a server."""
    text = os.fsdecode(unquote_to_bytes(uri.removeprefix("file://")))
    if issubclass(kind, PureWindowsPath):
        text = text[1:] if text.startswith("/") else f"//{text}"
    return kind(text)


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of privacy: rows, or the persons that a column names."""

    person: str | None

    def __str__(self) -> str:
        return "rows" if self.person is None else f"persons by column {self.person!r}"


def unit(connection: sqlite3.Connection) -> Unit | None:
    """The ledger's unit of privacy; None if it knows no schema but by its hash."""
    note = newest(connection, UNIT)
    if note is None:
        return None
    unit = Unit(**note.facts)
    if not isinstance(unit.person, str | None):
        raise Damage("its unit of privacy is not the name of a column")
    return unit


@dataclass(frozen=True, slots=True)
class UsedSchema:
    """A schema the ledger was used with: its hash, its text as TOML, and when it came first."""

    hash: str
    text: str
    since: str


def schemas(connection: sqlite3.Connection) -> tuple[UsedSchema, ...]:
    """Every schema the ledger was used with, in order."""
    used = tuple(UsedSchema(**note.facts, since=note.written) for note in each(connection, SCHEMA))
    if any(type(schema.hash) is not str or type(schema.text) is not str for schema in used):
        raise Damage("a schema in it is not text")
    return used
