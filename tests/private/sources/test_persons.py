"""Who is one person: the same rule for every source, and a cap that no spelling of an id gets round."""

from __future__ import annotations

import datetime
from decimal import Decimal
from enum import IntEnum
from uuid import UUID

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from contract import CAP, IDS, counts, persons_are_kept_apart, persons_are_refused, visits
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcurate.errors import OwnerError, SchemaError
from dpcurate.private.sources import check_rows
from dpcurate.schema import Categorical, Person, Schema


def objects(values):
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def framed(columns, dtype=object):
    return pd.DataFrame({"id": pd.Series(columns["id"], dtype=dtype), "a": columns["a"]})


def mapped(columns, make):
    return {"id": make(columns["id"]), "a": columns["a"]}


def structured(columns):
    return np.array(list(zip(columns["id"], columns["a"], strict=True)), dtype=[("id", "O"), ("a", "i8")])


EITHER = {
    "list": lambda c: c,
    "objects": lambda c: mapped(c, objects),
    "NaN among objects": lambda c: mapped(c, lambda ids: objects([np.nan if i is None else i for i in ids])),
    "NaT among objects": lambda c: framed(c | {"id": [pd.NaT if i is None else i for i in c["id"]]}),
    "NA among objects": lambda c: framed(c | {"id": [pd.NA if i is None else i for i in c["id"]]}),
    "NumPy's NaT": lambda c: mapped(c, lambda ids: [np.datetime64("NaT") if i is None else i for i in ids]),
    "pandas objects": framed,
    "pandas category": lambda c: framed(c).astype({"id": "category"}),
    "structured": structured,
    "polars": pl.DataFrame,
    "polars column": lambda c: mapped(c, pl.Series),
    "lazy polars": pl.LazyFrame,
    "arrow": pa.table,
    "arrow dictionary": lambda c: pa.table(mapped(c, lambda ids: pa.array(ids).dictionary_encode())),
    "arrow column": lambda c: mapped(c, pa.array),
}
WHOLE = {
    "Int64": lambda c: framed(c, "Int64"),
    "Int64 column": lambda c: mapped(c, lambda ids: pd.Series(ids, dtype="Int64")),
    "category column": lambda c: mapped(c, lambda ids: pd.Series(ids, dtype="Int64").astype("category")),
    "NumPy's own": lambda c: mapped(c, lambda ids: [None if i is None else np.int64(i) for i in ids]),
    "masked": lambda c: mapped(c, lambda ids: np.ma.array([i or 7 for i in ids], mask=[i is None for i in ids])),
    "beyond 64 bits": lambda c: mapped(c, lambda ids: [None if i is None else i * 10**30 for i in ids]),
}
TEXT = {
    "string": lambda c: framed(c, "string"),
    "categories": lambda c: framed(c).astype({"id": "category"}),
    "NumPy's own": lambda c: mapped(c, lambda ids: [None if i is None else np.str_(i) for i in ids]),
}


@pytest.mark.slow(but=["whole"])
@pytest.mark.parametrize("kind", IDS)
def test_persons_in_memory_are_kept_apart(kind):
    for form in (EITHER | (WHOLE if kind == "whole" else TEXT)).values():
        persons_are_kept_apart(form, kind)


@pytest.mark.parametrize("kind", IDS)
def test_persons_in_files_are_kept_apart(kind, tmp_path):
    def parquet(columns):
        pq.write_table(pa.table(columns), tmp_path / "t.parquet")
        return tmp_path / "t.parquet"

    def csv(columns):  # where an empty text is a missing one, so that it needs another name
        cells = ["" if i is None else str(i) or "empty" for i in columns["id"]]
        rows = zip(cells, columns["a"], strict=True)
        (tmp_path / "t.csv").write_text("id,a\n" + "".join(f"{i},{a}\n" for i, a in rows))
        return tmp_path / "t.csv"

    def stored(columns):
        (tmp_path / "t.duckdb").unlink(missing_ok=True)
        with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
            connection.register("t", pa.table(columns))
            connection.execute("CREATE TABLE kept AS FROM t")
        return f"{tmp_path / 't.duckdb'}#kept"

    for form in (parquet, csv, stored):
        persons_are_kept_apart(form, kind)


class Grade(IntEnum):
    LOW = 7


class Spelling(str):
    __slots__ = ()


BAD = {
    "whole and float": [7, 8, 7.0],
    "the mix of the review": [7, 8, 7.0, float("nan"), "A9"],
    "spellings of 7": [7, 7.0, "7", "7.0", Decimal(7), Decimal("7.0"), True],
    "whole and text": [7, "7"],
    "floats": [7.0, 8.0],
    "short floats": [np.float32(7)],
    "decimals": [Decimal(7)],
    "no decimal": [Decimal("NaN"), 7],
    "truth values": [True, False],
    "whole and truth": [1, True],
    "bytes": [b"7"],
    "bytes and text": [b"7", "7"],
    "days": [datetime.date(2020, 1, 1)],
    "moments": [np.datetime64("2020-01-01")],
    "durations": [np.timedelta64(7, "s")],
    "an enumeration": [Grade.LOW, 7],
    "a text of its own": [Spelling("7"), "7"],
    "identifiers": [UUID(int=7)],
    "lists": [[7], [8]],
    "complex": [7j],
}


@pytest.mark.slow
@pytest.mark.parametrize("ids", BAD.values(), ids=BAD)
@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA], ids=["none", "nan", "NA"])
def test_ids_of_another_kind_or_of_two_kinds_are_refused(ids, missing):
    columns = visits([*ids, missing])
    for form in (lambda c: c, lambda c: mapped(c, objects), framed, structured):
        persons_are_refused(form(columns))
    with pytest.raises(OwnerError, match="names persons"):
        list(check_rows(framed(columns), Schema((Categorical("a", (0, 1)),), person=Person("id", 1))))


TYPED = {
    "doubles": np.array([7.0, 8.0]),
    "a whole number and a missing one": pd.Series([7, None]),
    "halves": np.array([7, 8], dtype="f2"),
    "nullable floats": pd.array([7, None], dtype="Float64"),
    "truth values": np.array([True, False]),
    "nullable truth": pd.array([True, None], dtype="boolean"),
    "moments": pd.to_datetime(["2020-01-01", None]),
    "categories of floats": pd.Categorical([7.0, None]),
    "categories of two kinds": pd.Categorical(objects([7, "7"])),
    "an unused category of another kind": pd.Categorical([7, 7], categories=objects([7, "8"])),
    "arrow decimals": pd.array([Decimal(7), None], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
}
ARROW = {
    "dictionary of doubles": pa.array([7.0, 8.0]).dictionary_encode(),
    "decimals": pa.array([Decimal(7), None]),
    "bytes": pa.array([b"7", b"8"]),
    "lists": pa.array([[7], [8]]),
    "records": pa.array([{"x": 7}, {"x": 8}]),
    "union": pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([7, 8]), pa.array(["7", "8"])]),
    "days": pa.array([datetime.date(2020, 1, 1), None]),
}


@pytest.mark.parametrize("ids", TYPED.values(), ids=TYPED)
def test_types_that_cannot_name_persons_are_refused(ids):
    persons_are_refused(pd.DataFrame({"id": ids, "a": [0, 1]}))
    persons_are_refused({"id": pd.Series(ids), "a": [0, 1]})


@pytest.mark.parametrize("ids", ARROW.values(), ids=ARROW)
def test_arrow_types_that_cannot_name_persons_are_refused(ids, tmp_path):
    table = pa.table({"id": ids, "a": [0, 1]})
    persons_are_refused(table)
    if not pa.types.is_union(ids.type):  # which Parquet cannot hold
        pq.write_table(table, tmp_path / "t.parquet")
        persons_are_refused(tmp_path / "t.parquet")
        persons_are_refused(pl.scan_parquet(tmp_path / "t.parquet"))


def test_python_objects_in_polars_are_refused():
    table = pl.DataFrame({"id": pl.Series([7, "7"], dtype=pl.Object), "a": [0, 1]})
    for form in (table, table.lazy()):
        with pytest.raises(OwnerError, match="'id'"):
            counts(form)


def test_files_that_store_ids_in_different_types_are_refused(tmp_path):
    for i, ids in enumerate(([7], ["7"])):
        pq.write_table(pa.table(visits(ids)), tmp_path / f"{i}.parquet")
    with pytest.raises(OwnerError, match="store 'id' in different types"):
        counts(tmp_path / "*.parquet")
    for i, ids in enumerate(([7], [7.0])):
        (tmp_path / f"n={i}").mkdir()
        pq.write_table(pa.table(visits(ids)), tmp_path / f"n={i}" / "t.parquet")
        (tmp_path / f"{i}.parquet").unlink()
    with pytest.raises(OwnerError, match="store 'id' in different types"):
        counts(tmp_path)


def test_a_union_of_types_in_a_database_file_is_refused(tmp_path):
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE t (id UNION(n BIGINT, s VARCHAR), a INTEGER)")
        connection.execute("CREATE VIEW floats AS SELECT 7 AS id, 0 AS a UNION ALL SELECT 7.5, 1")
        connection.execute(
            "CREATE VIEW texts AS SELECT 7 AS id, 0 AS a UNION ALL SELECT '7', 1 UNION ALL SELECT '07', 1"
        )
    for name in ("t", "floats"):
        persons_are_refused(f"{tmp_path / 't.duckdb'}#{name}")
    assert counts(f"{tmp_path / 't.duckdb'}#texts").sum() == 3  # its engine says it is text, and 7 and 07 are two


def test_tables_in_which_nobody_is_named():
    for ids in ([None] * 3, [float("nan")] * 3, [pd.NA, None, pd.NaT]):
        for form in (lambda c: c, framed):
            assert counts(form(visits(ids))).sum() == 0
    for table in (pl.DataFrame(visits([None] * 3)), pa.table(visits([None] * 3)), framed(visits([]))):
        assert counts(table).sum() == 0


def test_texts_are_told_apart_to_the_last_character():
    ids = ["a", "a\0", "a\0b", "a ", "\u200ba", "A", "ａ"]
    for form in (lambda c: c, framed, pa.table, pl.DataFrame):
        assert counts(form(visits(ids))).sum() == len(ids)
    with pytest.raises(OwnerError, match="surrogate"):
        counts(visits(["\ud800", "a"]))


def test_an_array_without_names_cannot_name_persons():
    with pytest.raises(SchemaError, match="no column 'id'"):
        counts(np.array([[0], [1]]))


# --- the cap, whatever the ids are --------------------------------------------------------------------

NUMBERS = st.sampled_from([7, 7.0, np.int8(7), np.float64(7), Decimal(7), True, 1, 1.0, 8, 2**53, 2**53 + 1, 2.0**53])
TEXTS = st.sampled_from(["7", "7.0", "07", "1", "True", "nan", "None", "", np.str_("7")])
MISSING = st.sampled_from([None, float("nan"), np.float32("nan"), pd.NA, pd.NaT])
ADVERSARIAL = st.one_of(
    *(st.lists(kind | MISSING, min_size=1, max_size=12) for kind in (NUMBERS, TEXTS, NUMBERS | TEXTS)),
    st.lists(st.sampled_from([7, np.int8(7), 8, 2**53, 2**53 + 1, 2**70]) | MISSING, min_size=1, max_size=12),
)


def one_person(value):
    """Values that somebody would take for one person: equal numbers, or equal texts."""
    missing = value is None or value is pd.NA or value is pd.NaT or value != value
    return None if missing else (isinstance(value, str), value)


@settings(deadline=None, max_examples=60)
@given(ids=ADVERSARIAL, form=st.sampled_from(["list", "objects", "pandas objects", "structured"]))
def test_a_person_moves_counts_by_no_more_than_the_cap(ids, form):
    columns, kinds = visits(ids), {type(i) for i in ids if one_person(i)}
    if not (kinds <= {str, np.str_} or kinds <= {int, np.int8}):
        persons_are_refused(EITHER[form](columns))
        return
    whole, persons = counts(EITHER[form](columns)), {one_person(i) for i in ids} - {None}
    assert whole.sum() <= CAP * len(persons)
    for person in persons:
        others = [i for i, one in enumerate(ids) if one_person(one) != person]
        rest = counts(EITHER[form]({name: [values[i] for i in others] for name, values in columns.items()}))
        assert np.abs(whole - rest).sum() <= CAP
