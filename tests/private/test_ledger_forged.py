"""Ledgers that a forger wrote, with every hash and seal in order: used as they are, or refused in a sentence."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sqlite3
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcurate
from dpcurate.errors import DpcurateError, LedgerError
from dpcurate.private.ledger import Ledger, journal
from dpcurate.private.ledger import format as form
from dpcurate.private.ledger.disk_store import stored_runs
from dpcurate.private.stored import StoredAnswers, _decoded

TABLE = {name: np.random.default_rng(i).integers(0, 3, 300) for i, name in enumerate("abcd")}
SCHEMA = dpcurate.Schema(tuple(dpcurate.Categorical(name, (0, 1, 2)) for name in TABLE))
WRONG: list[Any] = [
    *(None, True, -1, 0, 1, 2**63, 10**40, 1.5, -1e300, "", "x", "../x", "\x1b[2J", "9" * 5000, "1e999999999"),
    *([], [[]], [None], {}, {"x": 1}, {"Fraction": [1, 0]}, {"Answer": [1]}, {"os.system": ["x"]}, [[[[[[1]]]]]]),
]
NUMBERS = (float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 1e120, 0.0, -1.0, 1e-300)


@pytest.fixture(scope="module")
def true(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ledger") / "true.ledger"
    dpcurate.discover(TABLE, SCHEMA, epsilon=5, ledger=path)
    return path


def used(path: Path, *, by_a_method: bool = True) -> bool:
    """Whether it is believed; every refusal is one of ours."""
    try:
        for run in Ledger.open(path).log():
            str(run)
        stored = StoredAnswers(path)
        stored.released, stored.privacy(), stored.remaining
        if by_a_method:
            str(dpcurate.discover_from(path))
    except DpcurateError:
        return False
    return True


class Forger:
    """A copy of a ledger that is changed and sealed again, as anybody can who has read this repository."""

    def __init__(self, true: Path, folder: Path) -> None:
        self.path = Path(shutil.copy(true, folder / "forged.ledger"))
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        for setting in ("PRAGMA synchronous = OFF", "PRAGMA journal_mode = MEMORY", "BEGIN"):
            self.connection.execute(setting)
        self.connection.execute("UPDATE note SET body = ? WHERE kind = 'kept at'", (self.path.as_uri(),))

    def seal(self) -> Path:
        connection, chain = self.connection, ""
        for number, *note in connection.execute("SELECT id, kind, body, written FROM note ORDER BY id").fetchall():
            chain = journal.hashed(chain, [tuple(note)])
            connection.execute("UPDATE note SET chain = ? WHERE id = ?", (chain, number))
        facts = connection.execute(f"SELECT {', '.join(form._FACTS)} FROM book").fetchone()
        book = journal.hashed(journal.hashed("", [facts]), form.event_rows(connection))
        state = connection.execute("SELECT spent, unproved FROM book").fetchone()
        form._write_state(connection, *state, book)
        connection.execute("COMMIT")
        connection.close()
        return self.path

    def answer(self, body: bytes) -> None:
        """In place of the first stored answer."""
        number, facts = self.connection.execute(
            "SELECT id, body FROM note WHERE kind LIKE 'stored%' ORDER BY id"
        ).fetchone()
        told = json.loads(facts) | {"sha256": hashlib.sha256(body).hexdigest()}
        self.connection.execute("UPDATE answer SET body = ? WHERE id = ?", (body, told["answer"]))
        self.connection.execute("UPDATE note SET body = ? WHERE id = ?", (json.dumps(told), number))


def first_body(path: Path) -> bytes:
    connection = sqlite3.connect(path)
    (body,) = connection.execute("SELECT body FROM answer ORDER BY id").fetchone()
    connection.close()
    return bytes(body)


def split(body: bytes) -> tuple[Any, bytes]:
    end = 8 + int.from_bytes(body[:8], "little")
    return json.loads(body[8:end]), body[end:]


def joined(head: Any, numbers: bytes) -> bytes:
    text = json.dumps(head).encode()
    return len(text).to_bytes(8, "little") + text + numbers


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in nested lists and objects; of long lists the ends."""
    yield at
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*at, key))
    if isinstance(value, list):
        for i in sorted({0, len(value) - 1}) if value else ():
            yield from places(value[i], (*at, i))


def changed(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    if not at:
        return new
    copy = value.copy()
    copy[at[0]] = changed(value[at[0]], at[1:], new)
    return copy


def test_the_forger_is_believed_if_nothing_is_wrong(true: Path, tmp_path: Path) -> None:
    forger = Forger(true, tmp_path)
    forger.answer(first_body(true))
    assert used(forger.seal())


def test_every_field_of_a_stored_answer(true: Path, tmp_path: Path) -> None:
    """Each is tried as a ledger holds it; what is believed is used by a method too."""
    head, numbers = split(first_body(true))
    (run,) = stored_runs(true).values()
    request, (units, _) = next(iter(run.answers.items()))
    believed = []
    for at, wrong in ((at, wrong) for at in places(head) for wrong in WRONG):
        forged = changed(head, at, wrong)
        if json.dumps(forged) == json.dumps(head):
            continue
        body = joined(forged, numbers)
        try:
            _decoded(true, replace(run, answers={request: (units, body)}), SCHEMA)
        except LedgerError:
            continue
        believed.append(at)
        forger = Forger(true, tmp_path)
        forger.answer(body)
        used(forger.seal())
    assert {at[0] for at in believed} <= {"scales"}  # noise of another size is a number like any other
    assert len(believed) <= 2


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_that_nobody_released(true: Path, tmp_path: Path, number: float) -> None:
    head, numbers = split(first_body(true))
    forger = Forger(true, tmp_path)
    forger.answer(joined(head, struct.pack("<d", number) * (len(numbers) // 8)))
    assert used(forger.seal()) == (abs(number) <= 1)


def test_bytes_that_are_no_answers(true: Path, tmp_path: Path) -> None:
    body = first_body(true)
    head, numbers = split(body)
    random_bytes = random.Random(0).randbytes
    deep = b"[" * 100_000
    for wrong in (
        *(b"", b"\0" * 7, body[:-1], body[:-8], body + b"\0" * 8, body[: len(body) // 2], random_bytes(1000)),
        *(b"\xff" * 8 + body, joined({}, numbers), joined([], numbers), len(deep).to_bytes(8, "little") + deep),
        joined(head | {"more": 1}, numbers),
    ):
        forger = Forger(true, tmp_path)
        forger.answer(wrong)
        with pytest.raises(LedgerError):
            StoredAnswers(forger.seal())


def test_every_fact_of_every_note(true: Path, tmp_path: Path) -> None:
    connection = sqlite3.connect(true)
    rows = connection.execute("SELECT id, kind, body FROM note ORDER BY id").fetchall()
    connection.close()
    for number, kind, body in rows:
        facts = json.loads(body) if body.startswith("{") else None
        texts = ["", "x", "9" * 5000, "[" * 100_000, "{}", "NaN"]
        texts += (
            [json.dumps(changed(facts, at, wrong)) for at in places(facts) for wrong in WRONG[::3]] if facts else []
        )
        for text in texts:
            forger = Forger(true, tmp_path)
            forger.connection.execute("UPDATE note SET body = ? WHERE id = ?", (text, number))
            used(forger.seal(), by_a_method=False)
        for other in ("", "stored", "stored x", "stored 1", "stored 1 x", "stored 1 a-b.c", "paid 9", "run", kind[:-1]):
            forger = Forger(true, tmp_path)
            forger.connection.execute("UPDATE note SET kind = ? WHERE id = ?", (other, number))
            used(forger.seal(), by_a_method=False)


def test_every_fact_of_the_book(true: Path, tmp_path: Path) -> None:
    for name in (*form._FACTS, "spent", "unproved"):
        for wrong in ("", "x", "-1", "nan", "inf", "1/0", "1e999999999", "9" * 5000, "1e-400", "0", "\x1b[2J"):
            forger = Forger(true, tmp_path)
            forger.connection.execute(f"UPDATE book SET {name} = ?", (wrong,))
            used(forger.seal(), by_a_method=False)
