"""A ledger belongs to a table: schemas change and spend one budget; the unit and the relation do not."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_ledger import ZCDP, _folder, gaussian
from test_ledger_path import interrupted, journal

from dpcurate import Curator
from dpcurate.cli import main
from dpcurate.errors import LedgerError
from dpcurate.private.ledger import Ledger
from dpcurate.private.ledger import journal as ledger_journal
from dpcurate.queries import Counts, Gaussian, Release
from dpcurate.schema import Categorical, Numeric, Person, Schema

TABLE = {"a": [0, 1, 1, 0] * 5, "b": [1, 1, 0, 0] * 5, "age": [20.0, 40.0, 60.0, 80.0] * 5, "who": list(range(10)) * 2}
A, B = Categorical("a", (0, 1)), Categorical("b", (0, 1))
ROWS = Schema((A, B, Numeric("age", 0, 100, bins=2)))
PERSONS = replace(ROWS, person=Person("who", 2))
OTHERS = {
    "bins": Schema((A, B, Numeric("age", 0, 100, bins=3))),
    "bounds": Schema((A, B, Numeric("age", 0, 120, bins=2))),
    "levels": Schema((Categorical("a", (0, 1, 2)), B, Numeric("age", 0, 100, bins=2))),
    "columns": Schema((A, B)),
    "a rule that drops rows": Schema((Categorical("a", (0, 2), outside="drop"), B)),
}
QUERY = Release(Counts(("a", "b")), Gaussian(sigma=20.0))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.ledger"


def curator(path: Path, schema: Schema, **more: Any) -> Curator:
    return Curator(TABLE, schema, ledger=path, budget=None if path.exists() else ZCDP, **more)


@pytest.mark.parametrize("change", OTHERS)
def test_a_changed_schema_goes_on_spending_the_same_budget(path: Path, change: str) -> None:
    curator(path, ROWS).ask(QUERY)
    once = Ledger.open(path).spent
    curator(path, OTHERS[change]).ask(QUERY)
    ledger = Ledger.open(path)
    assert once > 0
    assert ledger.spent == pytest.approx(2 * once)
    assert [used.hash for used in ledger.schemas] == [ROWS.hash, OTHERS[change].hash]
    assert [Schema.loads(used.text) for used in ledger.schemas] == [ROWS, OTHERS[change]]
    curator(path, ROWS)
    assert len(Ledger.open(path).schemas) == 2  # each once


def test_a_changed_cap_costs_what_its_own_sensitivity_says(path: Path) -> None:
    spent = [0.0]
    for cap in (1, 3):
        curator(path, replace(PERSONS, person=Person("who", cap))).ask(QUERY)
        spent.append(Ledger.open(path).spent)
    assert spent[2] - spent[1] == pytest.approx(9 * spent[1])


@pytest.mark.parametrize(
    ("first", "other", "words"),
    [
        (ROWS, PERSONS, "protects rows, and this schema would protect persons by column 'who'"),
        (PERSONS, ROWS, "protects persons by column 'who', and this schema would protect rows"),
        (PERSONS, Schema((A, B), person=Person("age", 2)), "would protect persons by column 'age'"),
        (PERSONS, replace(ROWS, person=Person("who ", 2)), "would protect persons by column 'who '"),
        (PERSONS, replace(ROWS, person=Person("Who", 2)), "would protect persons by column 'Who'"),
    ],
)
def test_a_changed_unit_is_refused(path: Path, first: Schema, other: Schema, words: str) -> None:
    Ledger.create(path, table="people", schema=first, neighbours="add-remove", budget=ZCDP)
    before = _folder(path)
    with pytest.raises(LedgerError, match=words):
        Ledger.open(path).use(other)
    assert _folder(path) == before


def test_a_session_of_a_changed_unit_or_relation_is_refused(path: Path) -> None:
    curator(path, ROWS).ask(QUERY)
    before = _folder(path)
    with pytest.raises(LedgerError, match="would protect persons"):
        curator(path, PERSONS)
    with pytest.raises(LedgerError, match="neighbours 'add-remove', not for 'replace'"):
        curator(path, OTHERS["bins"], neighbours="replace")
    assert _folder(path) == before


def test_the_table_has_the_name_it_is_given_or_its_files(tmp_path: Path) -> None:
    (tmp_path / "visits 2024.csv").write_text("a,b\n0,1\n1,1\n")
    places = {
        "given": ({"table": TABLE, "name": "people"}, "people"),
        "file": ({"table": tmp_path / "visits 2024.csv"}, "visits 2024"),
        "frame": ({"table": TABLE}, "frame"),
    }
    for ledger, (options, name) in places.items():
        table = options.pop("table")
        Curator(table, Schema((A, B)), ledger=tmp_path / f"{ledger}.ledger", budget=ZCDP, **options)  # type: ignore[arg-type]
        facts = Ledger.open(tmp_path / f"{ledger}.ledger").facts
        assert facts is not None
        assert facts.table == name


def test_a_name_from_a_database(tmp_path: Path) -> None:
    from dpcurate.private.curator import _name_of

    assert _name_of("postgresql://me:secret@host/db#visits") == "visits"
    assert _name_of("postgresql://me:secret@host/db") == ""
    assert _name_of("shop.duckdb#sales") == "sales"
    assert _name_of("part-*.parquet") == "part-"


def test_in_memory_there_is_nothing_to_write_down() -> None:
    ledger = Ledger(ZCDP)
    ledger.use(ROWS)
    assert (ledger.unit, ledger.schemas) == (None, ())


# --- a ledger that knows its schema by its hash alone ------------------------------------------------------


def by_hash(path: Path, schema: Schema = ROWS) -> Path:
    ledger = Ledger.create(path, table="people", schema_hash=schema.hash, neighbours="add-remove", budget=ZCDP)
    ledger.charge([gaussian(0.25)])
    return path


def test_a_schema_known_by_its_hash_is_used_before_others(path: Path) -> None:
    before = by_hash(path).read_bytes()
    ledger = Ledger.open(path, schema_hash=ROWS.hash)
    assert (ledger.spent, ledger.unit, ledger.schemas) == (0.25, None, ())
    with pytest.raises(LedgerError, match=f"by its hash alone, {ROWS.hash}"):
        ledger.use(OTHERS["bins"])
    with pytest.raises(LedgerError, match="the schema it was made for once"):
        curator(path, PERSONS)
    assert path.read_bytes() == before
    ledger.use(ROWS)
    curator(path, OTHERS["bins"])
    again = Ledger.open(path)
    assert (again.spent, str(again.unit), len(again.schemas)) == (0.25, "rows", 2)
    with pytest.raises(LedgerError, match="would protect persons"):
        curator(path, PERSONS)


def test_a_first_use_that_is_killed_leaves_the_ledger_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_hash(path)
    interrupted(path, monkeypatch, lambda: Ledger.open(path).use(ROWS))
    ledger = Ledger.open(path)
    assert (ledger.spent, ledger.unit) == (0.25, None)
    assert not journal(path).exists()
    ledger.use(ROWS)
    assert str(Ledger.open(path).unit) == "rows"


def test_the_seal_is_the_one_an_earlier_process_that_has_it_open_writes(path: Path) -> None:
    Ledger.create(path, table="people", schema=ROWS, neighbours="add-remove", budget=ZCDP).charge([gaussian(0.5)])
    connection = sqlite3.connect(path)
    ((chain, spent, mark, seal),) = connection.execute("SELECT chain, spent, unproved, seal FROM book").fetchall()
    *_, (link,) = connection.execute("SELECT chain FROM note ORDER BY id").fetchall()
    connection.close()
    assert seal == hashlib.sha256(json.dumps((chain, spent, mark, link)).encode()).hexdigest()


def test_a_note_of_the_unit_that_is_edited_is_damage(path: Path) -> None:
    Ledger.create(path, table="people", schema=PERSONS, neighbours="add-remove", budget=ZCDP)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE note SET body = '{\"person\": null}' WHERE kind = ?", (ledger_journal.UNIT,))
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match="notes were edited"):
        Ledger.open(path)


# --- commands --------------------------------------------------------------------------------------------


def test_the_command_shows_unit_and_schemas(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    by_hash(path)
    assert main(["ledger", "show", str(path)]) == 0
    assert f"that of the schema {ROWS.hash}, which it has not seen yet" in capsys.readouterr().out
    Ledger.open(path).use(ROWS)
    Ledger.open(path).charge([gaussian(0.75)])
    assert main(["ledger", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "unit     rows" in shown
    assert f"schema   {ROWS.hash} since" in shown
    assert "left     nothing left" in shown
