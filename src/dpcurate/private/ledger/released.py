"""What runs have released, read from a ledger or from a copy of one: nothing is written, nothing can be spent."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from dpcurate.accounting import Event
from dpcurate.errors import LedgerError
from dpcurate.private.ledger import format as form
from dpcurate.private.ledger import notes, place, runs
from dpcurate.private.ledger.amounts import LedgerFacts, float_up
from dpcurate.private.ledger.file import GATE, File
from dpcurate.private.ledger.runs import LoggedRun
from dpcurate.private.ledger.store import look_at


@dataclass(frozen=True, slots=True)
class StoredRun:
    """What a ledger says of one run: `answers` holds units and bytes of requests, by their names without the price."""

    facts: LedgerFacts
    logged: LoggedRun
    schemas: tuple[notes.UsedSchema, ...]
    answers: dict[str, tuple[int, bytes]]
    spent: float
    events: tuple[Event, ...]
    private: bool


def stored_runs(path: Path) -> dict[int, StoredRun]:
    """Runs with stored answers, of a ledger or of a copy of one: it is read as it is, and no path is refused."""
    file = File(path)
    with GATE:
        look_at(path)
        with file.reading() as connection:
            form.check_tables(connection)
            _check_whole(path, notes.home(connection))
            facts = form.check_contents(connection, path)
            book, schemas = form.read_book(connection), notes.schemas(connection)
            events = tuple(map(form.read_event, form.event_rows(connection)))
            state = float_up(int(book["spent"])), events, book["unproved"] != "1"
            answers = _answers(connection)
            told = runs.stories(connection)
        file.close()
    return {n: StoredRun(facts, told[n].logged(), schemas, each, *state) for n, each in answers.items()}


def _check_whole(path: Path, home: Path) -> None:
    """Refuse what was moved out of a crash: an answer that was half stored will be undone, and drawn once more."""
    if home != path and os.path.exists(journal := place.journal(home)):
        raise LedgerError(
            f"{journal} is still there, so {path} was copied or moved while a transaction was under way, or another is "
            f"now; nothing was read from it. Open the ledger at {home} once ('dpcurate ledger show') and copy it again"
        )


def _answers(connection: sqlite3.Connection) -> dict[int, dict[str, tuple[int, bytes]]]:
    """Units and bytes of every stored answer, by run and by the request's name without its price."""
    answers: dict[int, dict[str, tuple[int, bytes]]] = {}
    for note in notes.each(connection):
        word, _, rest = note.kind.partition(" ")
        if word == "stored":
            number, _, request = rest.partition(" ")
            (query, priced), nth = request.partition(".")[0].split("-"), request.partition(".")[2]
            body = form.answer(connection, note.facts)
            answers.setdefault(int(number), {})[f"{query}.{nth}"] = int(priced, 16), body
    return answers
