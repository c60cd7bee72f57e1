"""What an owner is shown of the rows: exact numbers, and what to look at."""

from __future__ import annotations

import dask.dataframe
import numpy as np
import pandas as pd
import pytest

from dpcurate.errors import OwnerError
from dpcurate.private.owner.check import Fill, TableCheck, check_table
from dpcurate.schema import Categorical, Numeric, Ordinal, Person, Schema


def warnings(table, *columns, **facts):
    return [line[2:] for line in check_table(table, Schema(columns, **facts)).splitlines() if line.startswith("! ")]


def test_how_full_levels_bins_and_numbers_are():
    table = {
        "a": ["x"] * 60 + ["y"] * 30 + [None] * 10,
        "b": list(range(100)),
        "c": [*range(90), *[None] * 10],
    }
    schema = Schema(
        (Categorical("a", ("x", "y"), missing="own"), Numeric("b", 0, 100, bins=2), Numeric("c", 0, 100, missing="own"))
    )
    text = check_table(table, schema)
    lines = [line.split() for line in text.splitlines()]
    assert text.splitlines()[0] == "100 rows, 100 of them used (100.0%)"
    for wanted in (
        ["x", "60", "60.0%", "#" * 14],
        ["missing", "10", "10.0%", "##"],
        ["[0,", "50)", "50", "50.0%", "#" * 12],
    ):
        assert wanted in lines
    assert ["0", "to", "10", "10", "10.0%", "##"] in lines
    assert ["90", "to", "100", "0", "0.0%"] in lines
    assert "10 cells empty (10.0% of all rows): their rows stay" in text
    assert text.endswith("nothing stands out")


def test_all_kinds_of_tables_are_looked_at_alike(tmp_path):
    rng = np.random.default_rng(2)
    table = pd.DataFrame(
        {"a": rng.choice(["x", "y"], 400), "b": rng.normal(50, 30, 400), "id": rng.integers(0, 90, 400)}
    )
    schema = Schema((Categorical("a", ("x", "y")), Numeric("b", 0, 100)), person=Person("id", 4))
    table.to_parquet(tmp_path / "t.parquet")
    seen = {
        check_table(t, schema)
        for t in (table, tmp_path / "t.parquet", dask.dataframe.from_pandas(table, npartitions=3))
    }
    assert len(seen) == 1
    (tmp_path / "s.toml").write_text(schema.dumps())
    assert check_table(table, tmp_path / "s.toml") in seen


def test_what_stands_out():
    rows = {"a": ["x"] * 97 + ["y"] * 3}
    nearly, few = warnings(rows, Categorical("a", ("x", "y")))
    assert nearly == "a: nearly all rows (97.0%) are in x"
    assert few.startswith("a: fewer than 10 rows are in y: keep such a level only if it is public")
    assert "a: no row is in z" in warnings(rows, Categorical("a", ("x", "y", "z")))
    assert warnings({"a": ["x"] * 90 + ["y"] * 10}, Categorical("a", ("x", "y"))) == []
    income = {"a": [i / 10 for i in range(100)]}
    (bounds,) = warnings(income, Numeric("a", 0, 1000))
    assert bounds == "a: nearly all rows (100.0%) are in 0 to 100: narrower public bounds would tell more"


def test_what_rules_drop():
    gaps = {"a": [1] * 40 + [2] * 40 + [None] * 20}
    for column, kept in (
        (Categorical("a", (1, 2)), 'missing = "own"'),
        (Numeric("a", 0, 3), 'missing = "own"'),
        (Ordinal("a", (1, 2)), "one of its levels for missing"),
        (Numeric("a", 0, 3, bins=3), "one of its levels for missing"),
    ):
        told = warnings(gaps, column)
        assert "20.0% of the rows are left out, by the rules of all columns together" in told
        assert f"a: 20.0% of the rows are left out for an empty cell; {kept} would keep them" in told
    strange = {"a": [1] * 40 + [2] * 40 + [7] * 5}
    assert "a: 5.9% of the rows are left out for a cell that is no level" in warnings(strange, Categorical("a", (1, 2)))
    assert "a: 5.9% of the rows are left out for a value beyond the bounds" in warnings(
        strange, Numeric("a", 1, 3, outside="drop")
    )
    clamped = "a: 5.9% of the cells are outside the schema, and counted as the bound"
    assert clamped in warnings(strange, Numeric("a", 1, 3))
    assert warnings({"a": [7] * 5}, Categorical("a", (1, 2)))[0].startswith("no row is used")
    assert warnings({"a": np.array([], dtype=int)}, Categorical("a", (1, 2)))[0].startswith("no row is used")


def test_the_cap_of_persons_and_the_public_number_of_rows():
    table = {"a": [0, 1] * 50, "id": [1] * 60 + list(range(2, 42))}
    told = warnings(table, Categorical("a", (0, 1)), person=Person("id", 2))
    assert told == ["58.0% of the rows are left out, by the rules of columns and the cap of 2 rows a person"]
    table = {"a": [0, 1] * 50}
    assert warnings(table, Categorical("a", (0, 1)), rows=95) == []
    assert warnings(table, Categorical("a", (0, 1)), rows=70) == []
    for far in (60, 170, 5000):
        assert warnings(table, Categorical("a", (0, 1)), rows=far) == [
            f"the schema says rows = {far:,}, and the table has 100"
        ]


def test_how_often_an_id_repeats():
    """Every id on several rows is a person, perhaps, of whom one row is not all."""
    rows = pd.DataFrame({"a": [0, 1] * 40, "nr": [i // 8 for i in range(80)], "unique_id": range(80)})
    both = "10 ids in 'nr': 8.0 rows each, at most 8"
    for table in (rows, dask.dataframe.from_pandas(rows, npartitions=3)):
        (told,) = warnings(table, Categorical("a", (0, 1)))
        assert told == f"{both}. If they identify persons, name the column under [person]"
    assert warnings(rows, Categorical("a", (0, 1)), person=Person("nr", 8)) == []
    text = check_table(rows, Schema((Categorical("a", (0, 1)),), person=Person("nr", 8)))
    assert text.splitlines()[1] == f"{both}; at most 8 of them are used"
    some = rows.assign(nr=rows["nr"].where(rows["nr"] > 2).astype("Int64"))
    text = check_table(some, Schema((Categorical("a", (0, 1)),), person=Person("nr", 8)))
    assert "7 ids in 'nr': 8.0 rows each, at most 8; at most 8 of them are used; 24 rows name nobody" in text
    none = check_table(
        rows.assign(nr=pd.Series([None] * 80, dtype=object)),
        Schema((Categorical("a", (0, 1)),), person=Person("nr", 8)),
    )
    assert "0 ids in 'nr': on no row" in none


def test_many_levels_and_long_names_are_cut():
    levels = tuple(f"{'long' * 50}{i}" for i in range(100))
    text = check_table({"a": levels}, Schema((Categorical("a", levels),)))
    assert "and 70 more levels" in text
    assert max(map(len, text.splitlines())) < 1000
    assert "and 92 more: keep" in text


def test_what_is_wrong_with_a_table_is_told(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n1,2\n")
    with pytest.raises(OwnerError, match="line 3"):
        check_table(tmp_path / "t.csv", Schema((Categorical("a", (0, 1)),)))


def test_what_is_shown_can_be_had_as_values():
    rows = {"a": ["x"] * 97 + ["y"] * 2 + [None], "b": ["u", "v"] * 50}
    checked = TableCheck.of(rows, Schema((Categorical("a", ("x", "y")), Categorical("b", ("u", "v")))))
    assert checked.columns["a"] == Fill((("x", 97), ("y", 2)), 1, 0)
    assert (checked.rows, checked.used) == (100, 99)
    assert any("fewer than 10 rows are in y" in remark for remark in checked.of_column("a"))
    assert not checked.of_column("b")
    assert all(f"! {remark}" in str(checked) for remark in checked.remarks)


def test_near_copies_are_pointed_out_and_relatives_are_not():
    rng = np.random.default_rng(5)
    town = rng.integers(0, 4, 2000)
    weight = rng.normal(70, 12, 2000)
    table = {
        "town": np.array(["a", "b", "c", "d"])[town],
        "code": np.array(["7", "3", "9", "1"])[np.where(rng.random(2000) < 0.005, 0, town)],
        "kilograms": weight,
        "pounds": weight * 2.2046 + rng.normal(0, 1, 2000),
        "waist": weight + rng.normal(0, 6, 2000),
        "same": ["x"] * 1999 + ["y"],
    }
    columns = (
        Categorical("town", ("a", "b", "c", "d")),
        Categorical("code", ("1", "3", "7", "9")),
        *(Numeric(name, 0, 300, outside="clamp") for name in ("kilograms", "pounds", "waist")),
        Categorical("same", ("x", "y")),
    )
    found = [line for line in warnings(table, *columns) if "copy" in line]
    assert found == [
        "code: it is nearly a copy of 'town': leave one of the two out",
        "pounds: it is nearly a copy of 'kilograms': leave one of the two out",
    ]
