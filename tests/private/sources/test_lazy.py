"""Polars lazy frames and Ibis tables: the integers of the table in memory, and nothing collected."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from contract import (
    IDS,
    PEOPLE,
    PLAIN,
    SCHEMA,
    SCHEMAS,
    VISITS,
    frame,
    persons_are_kept_apart,
    persons_are_refused,
    row_sums,
    rows_of_empty_cells_are_rows,
    same_integers,
    text_frame,
)

from dpcurate import discover, draft
from dpcurate.errors import OwnerError, SchemaError
from dpcurate.private import sources
from dpcurate.private.row_sums import CountRows
from dpcurate.private.sources import InMemory, PushedDown, check_rows, lazy, open_engine, open_source, pushed_down
from dpcurate.schema import Categorical, Numeric, Schema


def lazy_forms(table, folder):
    eager = pl.from_pandas(table)
    eager.write_parquet(folder / "t.parquet")
    texts = pl.from_pandas(text_frame(table).replace({"grade": {"": None}}))
    levels = pl.Enum(["mauve", "red", "green", "blu'e"])
    return {
        "file": pl.scan_parquet(folder / "t.parquet"),
        "parts": pl.concat([eager[:100].lazy(), eager[:0].lazy(), eager[100:].lazy()]),
        "category": eager.lazy().with_columns(pl.col("colour").cast(pl.Categorical)),
        "enum": eager.lazy().with_columns(pl.col("colour").cast(levels)),
        "texts": texts.lazy(),
    }


@pytest.mark.slow(but=["levels", "numbers"])
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_lazy_frames_return_the_integers_of_the_table(schema, tmp_path, monkeypatch):
    monkeypatch.setattr(lazy, "BATCH", 64)
    same_integers(lazy_forms(frame(), tmp_path), schema)


def test_a_lazy_frame_is_read_once_a_pass_in_batches_and_only_as_far_as_needed(monkeypatch):
    monkeypatch.setattr(lazy, "BATCH", 100)
    batches = []

    def spy(batch):
        batches.append((batch.height, batch.width))
        return batch

    table = pl.from_pandas(frame(1000).assign(note="x"))
    columns = [*PLAIN.names, "note"]
    given = pl.concat([table[i : i + 100].lazy().select(columns) for i in range(0, 1000, 100)]).map_batches(
        spy, streamable=True, projection_pushdown=True
    )
    held = open_source(given, PLAIN)
    assert isinstance(held, InMemory)
    assert sum(height for height, _ in batches) == 1000
    assert max(height for height, _ in batches) <= 500
    monkeypatch.setattr(sources, "SMALL_DOMAIN", 4)
    monkeypatch.setattr(pushed_down, "SMALL_DOMAIN", 4)
    batches.clear()
    source = open_source(given, PLAIN)
    assert isinstance(source, PushedDown)
    for row_sum in row_sums(PLAIN):
        assert np.array_equal(source.totals([row_sum])[0], held.totals([row_sum])[0])
    assert sum(height for height, _ in batches) == 1000 * source.made


def test_a_lazy_frame_that_fails_is_the_owners_affair():
    wrong = pl.LazyFrame({"a": ["0"] * 500 + ["x"], "b": ["0"] * 501}).with_columns(pl.col("a").cast(pl.Float64))
    schema = Schema((Numeric("a", 0, 1), Categorical("b", (0, 1))))
    with pytest.raises(OwnerError, match="could not be read"):
        open_source(wrong, schema)
    assert open_source(wrong, Schema(schema.columns[1:])).totals([CountRows((), ())]) == [501]  # never reads a
    with pytest.raises(OwnerError):
        open_source(wrong.select(pl.col("z")), schema)
    with pytest.raises(SchemaError, match="did you mean 'grade'"):
        open_source(pl.from_pandas(frame()).lazy(), Schema((Categorical("grades", (0, 1)),)))


def test_lazy_tables_need_arrow_and_say_so(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(OwnerError, match="takes pyarrow"):
        open_source(pl.from_pandas(frame()).lazy(), PLAIN)


def test_checks_and_drafts_of_a_lazy_frame():
    table = frame()
    given = pl.from_pandas(table)
    assert list(check_rows(given.lazy(), PEOPLE)) == list(check_rows(table, PEOPLE))
    assert draft(given.lazy()) == draft(given)


@pytest.mark.parametrize(
    "name", ["*", "^.*$", "^other$", "a b", "a ", '"', "'; drop", "a\nb", "\u202e", "x" * 10**5, "len"]
)
def test_odd_names_in_a_lazy_frame_are_names_and_nothing_else(name):
    table = pl.DataFrame({name: [0, 1, 1], "other": [1, 1, 1]})
    schema = Schema((Categorical(name, (0, 1)), Categorical("other", (0, 1))))
    for form in (table, table.lazy()):
        counts = open_source(form, schema).totals([CountRows(schema.names, (2, 2))])[0]
        assert counts.tolist() == [[0, 1], [0, 2]]


def test_absurd_lazy_frames():
    plain, schema = pl.LazyFrame({"a": [0, 1]}), Schema((Categorical("a", (0, 1)),))
    deep = plain
    for _ in range(300):
        deep = deep.with_columns(pl.col("a") + 0)
    assert open_source(deep, schema).totals([CountRows((), ())]) == [2]
    wrong = {
        "division": plain.with_columns(pl.col("a").map_elements(lambda x: 1 // 0, return_dtype=pl.Int64)),
        "other columns than said": plain.map_batches(lambda t: t.rename({"a": "b"}), schema={"a": pl.Int64}),
        "other types than said": plain.map_batches(lambda t: t.cast(pl.Float64), schema={"a": pl.Int64}),
        "no columns": pl.LazyFrame(),
        "128 bits": pl.LazyFrame({"a": pl.Series([1], dtype=pl.Int128)}),
        "durations": pl.LazyFrame({"a": pl.Series([1], dtype=pl.Duration)}),
        "no file": pl.scan_parquet("/nowhere.parquet"),
    }
    for table in wrong.values():
        with pytest.raises(OwnerError):
            open_source(table, schema)


def pair():
    rng = np.random.default_rng(3)
    a = rng.normal(size=4000).clip(-3, 3)
    table = pd.DataFrame({"a": a, "b": (a + rng.normal(size=4000)).clip(-3, 3), "c": rng.random(4000) < 0.5})
    return table, Schema((Numeric("a", -3, 3, bins=4), Numeric("b", -3, 3, bins=4), Categorical("c", (False, True))))


def test_a_discovery_from_a_lazy_frame_is_that_of_the_table_in_memory():
    table, schema = pair()
    one, two = (discover(t, schema, epsilon=2.0, insecure_seed=4) for t in (table, pl.from_pandas(table).lazy()))
    assert one.edges == two.edges


def test_rows_of_empty_cells_are_rows():
    rows_of_empty_cells_are_rows(lambda table: pl.from_pandas(table).lazy())


def test_narwhals_frames_are_what_they_wrap():
    narwhals = pytest.importorskip("narwhals", reason="Narwhals is not installed")
    eager = pl.from_pandas(frame())
    same_integers({"lazy": narwhals.from_native(eager.lazy()), "eager": narwhals.from_native(eager)}, PLAIN)
    assert list(check_rows(narwhals.from_native(eager), PLAIN)) == list(check_rows(eager, PLAIN))
    assert draft(narwhals.from_native(eager)) == draft(eager)


# --- Ibis ---------------------------------------------------------------------------------------------


@pytest.fixture
def ibis():
    """Ibis, which still asks DuckDB and pandas for what they are giving up."""
    pytest.importorskip("pyarrow_hotfix", reason="Ibis with its DuckDB backend is not installed")
    return pytest.importorskip("ibis", reason="Ibis is not installed")


old_words = pytest.mark.filterwarnings("ignore:fetch_:DeprecationWarning", "ignore:The 'future.infer_string' option")


@old_words
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_ibis_tables_return_the_integers_of_the_table(ibis, schema, tmp_path):
    pl.from_pandas(frame()).write_parquet(tmp_path / "t.parquet")
    connection = ibis.duckdb.connect()
    connection.con.execute(f"CREATE TABLE given AS FROM '{tmp_path / 't.parquet'}'")
    table = connection.table("given")
    same_integers(
        {
            "table": table,
            "expression": table.mutate(more=table.id + 1).filter(table.id >= 0),
            "view": connection.read_parquet(tmp_path / "t.parquet"),
        },
        schema,
    )


@old_words
def test_an_ibis_connection_is_left_as_it_was(ibis):
    connection = ibis.duckdb.connect()
    connection.con.execute("CREATE TABLE t AS SELECT i % 2 AS to_arrow, i % 3 AS b FROM range(60) AS r(i)")

    def state():
        found = (f"SELECT * FROM duckdb_{what}()" for what in ("settings", "tables", "views"))
        return [sorted(map(str, connection.con.execute(query).fetchall())) for query in found]

    before = state()
    schema = Schema((Categorical("to_arrow", (0, 1)), Categorical("b", (0, 1, 2))))
    source = open_source(connection.table("t"), schema)
    assert source.totals([CountRows(("to_arrow", "b"), (2, 3))])[0].tolist() == [[10] * 3] * 2
    assert state() == before


@old_words
def test_other_ibis_backends_are_streamed(ibis, tmp_path):
    table = frame()
    with sqlite3.connect(tmp_path / "t.db") as connection:
        table.assign(odd=table["odd"].map({True: "true", False: "false"})).to_sql("t", connection, index=False)
    connection.close()
    forms = {"polars": ibis.polars.connect({"t": pl.from_pandas(table).lazy()}).table("t")}
    backend = ibis.sqlite.connect(tmp_path / "t.db")
    same_integers(forms | {"sqlite": backend.table("t")}, SCHEMA)
    backend.disconnect()


@old_words
@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("backend", ["duckdb", "sqlite", "polars"])
def test_persons_in_ibis_tables_are_kept_apart(ibis, kind, backend, tmp_path):
    def form(columns):
        if backend == "polars":
            return ibis.polars.connect({"t": pl.LazyFrame(columns)}).table("t")
        if backend == "duckdb":
            connection = ibis.duckdb.connect()
            connection.con.register("given", pa.table(columns))
            connection.con.execute("CREATE TABLE t AS FROM given")
            return connection.table("t")
        return ibis.sqlite.connect(stored(tmp_path, list(zip(*columns.values(), strict=True)))).table("t")

    persons_are_kept_apart(form, kind, leave_out=IDS[kind][:2])


def stored(folder, rows, declared=""):
    """A table of SQLite, which stores any value in any column."""
    file = folder / "t.db"
    file.unlink(missing_ok=True)
    connection = sqlite3.connect(file)
    connection.execute(f"CREATE TABLE t (id {declared}, a INTEGER)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    connection.commit()
    connection.close()
    return file


@old_words
@pytest.mark.parametrize("declared", ["", "INTEGER", "REAL", "NUMERIC", "BLOB", "BOOLEAN"])
@pytest.mark.parametrize("ids", [(7, 7.5), (7, "x"), (7.5, 8.5), (b"7", None), (7, b"7")], ids=str)
def test_values_of_sqlite_that_cannot_name_persons_are_refused(ibis, declared, ids, tmp_path):
    persons_are_refused(ibis.sqlite.connect(stored(tmp_path, [(i, 0) for i in ids], declared)).table("t"))


@old_words
def test_an_ibis_table_without_ids(ibis, tmp_path):
    for declared in ("", "INTEGER"):
        table = ibis.sqlite.connect(stored(tmp_path, [(None, 0)], declared)).table("t")
        assert open_source(table, VISITS).totals([CountRows((), ())]) == [0]
    with pytest.raises(SchemaError, match="no column 'id'"):
        open_source(table.drop("id"), VISITS)


@old_words
def test_absurd_ibis_tables(ibis):
    connection = ibis.duckdb.connect()
    names = ["*", "a b", "a ", '"', "'; drop table t", "a\nb", "x" * 10**5]
    connection.con.register("given", pa.table({n: [0, 1, 1] for n in names}))
    connection.con.execute("CREATE TABLE t AS FROM given")
    table = connection.table("t")
    schema = Schema(tuple(Categorical(n, (0, 1)) for n in names))
    assert open_source(table, schema).totals([CountRows(tuple(names[:2]), (2, 2))])[0].tolist() == [[1, 0], [0, 2]]
    deep = table.select(a=table["a b"])
    for _ in range(50):
        deep = deep.mutate(a=deep.a + 0)
    schema = Schema((Categorical("a", (0, 1)),))
    assert open_source(deep, schema).totals([CountRows((), ())]) == [3]
    gone = connection.table("t")
    connection.con.execute("DROP TABLE t")
    unbound, wrong = ibis.table({"a": "int64"}, name="u"), deep.mutate(a=ibis.literal("x").cast("int64"))
    for refused in (gone, unbound, wrong):
        with pytest.raises(OwnerError):
            open_source(refused, schema)


@old_words
def test_ibis_tables_that_are_refused(ibis, monkeypatch):
    connection = ibis.duckdb.connect()
    connection.con.execute("CREATE TABLE t AS SELECT 1 AS a")
    table = connection.table("t")
    with pytest.raises(OwnerError, match="pass an Ibis table"):
        open_source(table.a, SCHEMA)
    with pytest.raises(OwnerError, match="pass the frame itself"):
        open_source(ibis.memtable(pa.table({"a": [1]})), SCHEMA)
    monkeypatch.setattr(type(connection), "name", "pyspark")
    with pytest.raises(OwnerError, match="pass the Spark frame itself"):
        open_source(table, SCHEMA)


@old_words
def test_a_discovery_from_an_ibis_table_is_that_of_the_table_in_memory(ibis, tmp_path):
    table, schema = pair()
    pl.from_pandas(table).write_parquet(tmp_path / "t.parquet")
    given = ibis.duckdb.connect().read_parquet(tmp_path / "t.parquet")
    one, two = (discover(t, schema, epsilon=2.0, insecure_seed=4) for t in (table, given))
    assert one.edges == two.edges


@old_words
def test_two_curators_on_one_connection_get_their_own_results(ibis):
    connection = ibis.duckdb.connect()
    connection.con.execute("CREATE TABLE given AS SELECT 0 AS a")
    engines = [open_engine(connection.table("given"), None)[0] for _ in range(2)]

    def answers(which):
        return {int(engines[which].fetch(f"SELECT {which} AS x FROM range(200)")["x"][0]) for _ in range(300)}

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(answers, range(2))) == [{0}, {1}]
