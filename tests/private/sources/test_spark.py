"""Spark frames: the integers of every other source, few jobs, no rows at the driver, no task counted twice.

The workers of this session cannot import dpcurate: what they run travels as its code.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from contract import (
    IDS,
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

import dpcurate
from dpcurate import Budget, Curator, draft
from dpcurate.errors import OwnerError, QueryError, SchemaError, SourceError
from dpcurate.private import sources
from dpcurate.private.row_sums import CountRows, GradientRows, MomentRows
from dpcurate.private.sources import InMemory, PushedDown, check_rows, open_source, packing, pushed_down, spark
from dpcurate.private.sources.encode import cells_sql
from dpcurate.private.sources.engine import kinds_of
from dpcurate.queries import Counts, Gaussian, Means, Moments, Release
from dpcurate.schema import Categorical, Numeric, Person, Schema

pyspark = pytest.importorskip("pyspark", reason="the extra dpcurate[spark] is not installed")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java, and there is none on the path"),
]

SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
}


@pytest.fixture(scope="session")
def session(tmp_path_factory):
    """Two cores, three tries a task, and workers without this package."""
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("workers")
    (folder / "dpcurate.py").write_text("raise ImportError('not on the workers')")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master("local[2,3]").config("spark.executorEnv.PYTHONPATH", str(folder))
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        gateway = session.sparkContext._gateway
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # on which the JVM ends
        gateway.proc.wait()


@pytest.fixture
def put(session):
    """Set a setting for one test."""
    changed = []

    def change(name, value):
        changed.append(name)
        session.conf.set(name, value)

    yield change
    for name in changed:
        session.conf.unset(name)


def lifted(session, table):
    return session.createDataFrame(pa.Table.from_pandas(table, preserve_index=False))


def texts(table):
    """Every cell a text; empty ones are NULL."""
    table = text_frame(table)
    return pd.DataFrame(
        {n: pd.Series([None if x in (None, "") or x != x else str(x) for x in table[n]], dtype=object) for n in table}
    )


def equal(one, two, schema, asked=None):
    asked = asked or row_sums(schema)
    pairs = zip(open_source(one, schema).totals(asked), open_source(two, schema).totals(asked), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


# --- the same integers ----------------------------------------------------------------------------


def test_rows_of_empty_cells_are_rows(session):
    rows_of_empty_cells_are_rows(lambda table: lifted(session, table))


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_spark_returns_the_integers_of_the_frame_in_memory(schema, session):
    typed, written = lifted(session, frame()), lifted(session, texts(frame()))
    whole = typed.selectExpr("*", "CAST(grade AS DECIMAL(10, 2)) AS g").drop("grade").withColumnRenamed("g", "grade")
    scattered = written.repartition(3).union(written.limit(0)).union(written.limit(0))
    same_integers({"typed": typed, "decimals, one partition": whole.coalesce(1), "texts": scattered}, schema)


def test_a_large_domain_is_asked_again_and_agrees(session, monkeypatch):
    monkeypatch.setattr(sources, "SMALL_DOMAIN", 4)
    monkeypatch.setattr(pushed_down, "SMALL_DOMAIN", 4)
    table = lifted(session, frame())
    assert isinstance(open_source(table, PLAIN), PushedDown)
    assert equal(frame(), table, PLAIN)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_settings_of_the_session_change_nothing(ansi, session, put):
    for name in ("parser.escapedStringLiterals", "ansi.doubleQuotedIdentifiers", "caseSensitive"):
        put(f"spark.sql.{name}", "true")
    put("spark.sql.ansi.enabled", ansi)
    put("spark.sql.ansi.enforceReservedKeywords", ansi)
    put("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
    assert equal(frame(), lifted(session, texts(frame())), SCHEMAS["people"])


ODD_NUMBERS = (
    *("5", " 5", "5 ", "5\n", "5\r\n", "\t5", "\u00a05", "\uff15", "1d", "5f", "0x1", "1_000", ".", "+.5", "5."),
    *("1E+05", "1e999", "-1e999", "1e-400", "Inf", "iNFINITY ", "\u0130nf", "-inf", "nan", "NaN", "TRUE", "1" * 250),
)
ODD_TEXTS = (
    *("", "\\", "'", '"', "a\nb", "a\\nb", "${x}", "${spark.app.name}", "{table}", "{}", "'';--", "\u00e9", "e\u0301"),
    "fAl\u017fe",
)


def test_strange_cells_read_as_they_do_in_memory(session):
    table = pd.DataFrame({"a": pd.Series([*ODD_NUMBERS, *ODD_TEXTS, None], dtype=object)})
    schema = Schema((Numeric("a", -1e9, 1e9),))
    found = []
    for form in (table, lifted(session, table)):
        engine, _ = sources.open_engine(form, schema)
        read = engine.fetch(cells_sql(engine.relation, schema, kinds_of(engine, schema), engine.dialect))
        numbers = np.ma.filled(np.ma.asarray(read["n0"], dtype=float), np.nan)
        found.append([str(x) for x in numbers])
    assert found[0] == found[1]
    levels = Schema((Categorical("a", ODD_TEXTS, missing="drop", outside="\\"),))
    assert equal(table, lifted(session, table), levels, [CountRows(("a",), levels.sizes(("a",)))])


def test_strange_names(session):
    names = ["a.b", "a`b", "A b", "a b", "it's", 'say "x"', "größe", "{table}", "${x}", "*", "x1", "c0"]
    table = pd.DataFrame({n: np.arange(60) % (i + 2) for i, n in enumerate(names)})
    plain = table.set_axis([f"n{i}" for i in range(len(names))], axis=1)  # in memory A and a are one name
    strange, usual = (Schema(tuple(Categorical(n, (0, 1, 2)) for n in t)) for t in (table, plain))
    one, two = open_source(lifted(session, table), strange), open_source(plain, usual)
    pairs = zip(one.totals(row_sums(strange)), two.totals(row_sums(usual)), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(
    ("stored", "level"), [("DATE '2020-01-02'", "2020-01-02"), ("CAST('a' AS BINARY)", "a"), ("NULL", None), ("1Y", 1)]
)
def test_stored_types(stored, level, session):
    table = session.sql(f"SELECT {stored} AS a FROM range(3)")
    found = open_source(table, Schema((Categorical("a", (level or "x", "z"), missing="drop"),)))
    assert found.totals([CountRows(("a",), (2,))])[0].tolist() == [0 if level is None else 3, 0]


def test_persons_and_levels_that_only_a_collation_calls_equal(session):
    table = session.sql(
        "SELECT (CASE WHEN id % 2 = 0 THEN 'A' ELSE 'a' END) COLLATE UTF8_LCASE AS p, 'RED' COLLATE UTF8_LCASE AS a "
        "FROM range(10)"
    )
    schema = Schema((Categorical("a", ("red", "RED")),), person=Person("p", 1))
    assert open_source(table, schema).totals([CountRows(("a",), (2,))])[0].tolist() == [0, 2]


@pytest.mark.parametrize(("kind", "stored"), [("whole", "bigint"), ("text", "string")])
def test_persons_in_spark_are_kept_apart(kind, stored, session):
    def form(columns):
        rows = list(zip(*columns.values(), strict=True))
        return session.createDataFrame(rows, f"id {stored}, a int").repartition(2)

    persons_are_kept_apart(form, kind, leave_out=[IDS[kind][0]])


@pytest.mark.parametrize("stored", ["FLOAT", "DOUBLE", "DECIMAL(9, 0)", "BOOLEAN", "DATE", "BINARY", "ARRAY<INT>"])
def test_types_that_cannot_name_persons_in_spark(stored, session):
    persons_are_refused(session.sql(f"SELECT CAST(NULL AS {stored}) AS id, 0 AS a"))


def test_a_spark_frame_in_which_nobody_is_named(session):
    assert open_source(session.sql("SELECT NULL AS id, 0 AS a"), VISITS).totals([CountRows((), ())]) == [0]


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_no_rows_and_no_partitions(schema, session):
    table = lifted(session, frame())
    for empty in (table.limit(0), table.where("id < 0"), session.createDataFrame([], table.schema)):
        assert not any(total.any() for total in open_source(empty, schema).totals(row_sums(schema)))


# --- jobs, tries, and what reaches the driver -----------------------------------------------------


def jobs(session, work):
    """How many jobs some work takes."""
    group = f"counted {id(work)} {os.urandom(4).hex()}"
    session.sparkContext.setJobGroup(group, "a test")
    work()
    session.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    return len(session.sparkContext.statusTracker().getJobIdsForGroup(group))


WIDE = Schema(tuple(Categorical(f"a{i}", (0, 1, 2)) for i in range(12)))


def wide(rows=600):
    return pd.DataFrame({n: np.arange(rows) * (7 + 3 * i) % 11 % 4 for i, n in enumerate(WIDE.names)})


def test_a_batch_of_tables_is_one_job(session, put, monkeypatch):
    put("spark.sql.adaptive.enabled", "false")  # which would make a job of every stage
    monkeypatch.setattr(sources, "SMALL_DOMAIN", 4)
    monkeypatch.setattr(pushed_down, "SMALL_DOMAIN", 4)
    monkeypatch.setattr(pushed_down, "COVER_CELLS", 27)
    asked = [CountRows(pair, (3, 3)) for pair in combinations(WIDE.names, 2)]
    held, table = open_source(wide(), WIDE), lifted(session, wide()).repartition(3).cache()
    source = open_source(table, WIDE)
    assert jobs(session, lambda: source.totals(asked[:1])) == 1
    assert jobs(session, lambda: source.totals(asked)) == 1
    monkeypatch.setattr(pushed_down, "RESULT_CELLS", 200)
    source = open_source(table, WIDE)
    batch = packing.passes(list(packing.covers(asked, 27)), 200)
    assert jobs(session, lambda: source.totals(asked)) == len(batch) == source.made - 1 > 2
    assert all(np.array_equal(a, b) for a, b in zip(source.totals(asked), held.totals(asked), strict=True))
    moments = MomentRows(WIDE.names, (2,) * 12, None)
    assert source.passes([moments]) == 1
    assert jobs(session, lambda: source.totals([moments])) == 1


def test_a_task_that_fails_and_runs_again_counts_once(session, monkeypatch):
    monkeypatch.setattr(sources, "SMALL_DOMAIN", 4)

    def failing(batches):
        from pyspark import TaskContext

        yield from batches  # the task has added up all its rows when it fails
        if TaskContext.get().attemptNumber() < 2:
            raise RuntimeError("lost")

    table = lifted(session, frame()).repartition(3)
    with pytest.warns(FutureWarning, match="pandas"):
        shaky = table.mapInArrow(failing, table.schema)
    assert equal(frame(), shaky, SCHEMA)


def test_the_driver_fetches_tables_and_never_rows(session, monkeypatch):
    from pyspark.sql.classic.dataframe import DataFrame

    fetched = []

    def recorded(self, found=DataFrame.toArrow):
        fetched.append(found(self))
        return fetched[-1]

    def forbidden(*_, **__):
        raise AssertionError("rows were asked for")

    table = lifted(session, pd.concat([frame(5000, seed) for seed in range(3)]))
    monkeypatch.setattr(DataFrame, "toArrow", recorded)
    for name in ("collect", "toPandas", "take", "head", "tail", "first", "toLocalIterator"):
        monkeypatch.setattr(DataFrame, name, forbidden)
    for schema in SCHEMAS.values():
        for row_sum in row_sums(schema):
            fetched.clear()
            (found,) = open_source(table, schema).totals([row_sum])
            cells = max(np.prod(schema.sizes(schema.names)), found.size, 36)
            assert max(t.num_rows for t in fetched) <= cells < 500


# --- end to end -----------------------------------------------------------------------------------


def linked(rows=4000):
    rng = np.random.default_rng(2)
    a = rng.integers(0, 2, rows)
    b = np.where(rng.random(rows) < 0.9, a, 1 - a)
    return pd.DataFrame({"a": a, "b": b, "c": rng.integers(0, 3, rows), "x": (a + rng.normal(size=rows)).clip(-3, 4)})


LEVELS = (Categorical("a", (0, 1)), Categorical("b", (0, 1)), Categorical("c", (0, 1, 2)))


@pytest.mark.parametrize(
    ("schema", "method"),
    [
        (Schema(LEVELS), "auto"),
        (Schema((*LEVELS[:2], Numeric("x", -3, 4, bins=3))), "auto"),
        (Schema((*LEVELS[:2], Numeric("x", -3, 4))), "noleaks"),
    ],
)
def test_discover_finds_the_same_graph(schema, method, session):
    table = linked()
    found = [
        dpcurate.discover(form, schema, epsilon=5.0, method=method, insecure_seed=3)
        for form in (table, lifted(session, table))
    ]
    assert found[0].graph == found[1].graph
    assert replace(found[0], run=None).to_dict() == replace(found[1], run=None).to_dict()


def test_a_curator_answers_the_same(session):
    schema, table = Schema(LEVELS), linked()
    sessions = [Curator(t, schema, budget=Budget(rho=1.0), insecure_seed=1) for t in (table, lifted(session, table))]
    one, two = (session.ask(Release(Counts(("a", "b")), Gaussian(rho=0.1))) for session in sessions)
    assert np.array_equal(one.value, two.value)
    assert isinstance(sessions[1]._source, InMemory)


def test_draft_and_check(session):
    table = lifted(session, frame())
    assert list(check_rows(table, SCHEMA)) == list(check_rows(frame(), SCHEMA))
    prices = table.selectExpr("colour", "CAST(dose AS DECIMAL(6, 3)) AS price")
    assert Schema.loads(draft(prices))["price"].kind == "numeric"


# --- frames that fail or change after they were opened --------------------------------------------

SECRET = "Mr Secret 1234"
NUMBERS = Schema((Categorical("a", (0, 1)), Numeric("v", 0, 10)))
ASKED = [Release(query, Gaussian(rho=0.5)) for query in (Means(("v",)), Moments(("v",)))]
UNREADABLE = (
    "the table could not be read; what was charged stays charged. Ask its owner to look at it, and then the same "
    "again: that is not charged twice"
)


@pytest.mark.parametrize("fails_in", ["a cell", "a partition"])
def test_a_frame_that_fails_after_opening_says_nothing_of_why(fails_in, session, tmp_path, capfd):
    from pyspark.sql import functions as f

    bomb = str(tmp_path / "bomb")

    def cell(value):
        if os.path.exists(bomb) and value == 7:
            raise ValueError("Mr Secret 1234 is not a number")
        return value

    def partition(batches):
        from pyspark import TaskContext

        yield from batches
        if os.path.exists(bomb) and TaskContext.get().partitionId() == 1:
            raise ValueError("Mr Secret 1234 was in this partition")

    frame = session.range(100, numPartitions=2).selectExpr("id % 2 AS a", "CAST(id % 10 AS DOUBLE) AS v")
    with pytest.warns(FutureWarning, match="pandas"):
        forms = {
            "a cell": frame.withColumn("v", f.udf(cell, "double")("v")),
            "a partition": frame.mapInArrow(partition, frame.schema),
        }
    curator = Curator(forms[fails_in], NUMBERS, budget=Budget(rho=10))
    (tmp_path / "bomb").touch()
    with pytest.raises(SourceError) as refused:
        curator.ask(ASKED[0])
    assert str(refused.value) == UNREADABLE
    assert refused.value.__cause__ is refused.value.__context__ is None
    assert curator.ledger.spent == pytest.approx(0.5)
    assert SECRET not in "".join(capfd.readouterr())


def test_random_columns_cost_what_others_do(session):
    frame = session.range(100).selectExpr("id % 2 AS a", "CAST(id % 10 AS DOUBLE) AS v")
    random = frame.selectExpr("a", "rand() * 30 - 10 AS v").where("rand() < 0.5")
    curators = [Curator(table, NUMBERS, budget=Budget(rho=10)) for table in (frame, random)]
    for curator in curators:
        for query in ASKED:
            curator.ask(query)
    assert len({(c.ledger.spent, c.passes, str(c.ledger.events)) for c in curators}) == 1


# --- what is refused ------------------------------------------------------------------------------


def test_what_is_refused(session):
    schema = Schema((Categorical("a", (0, 1)),))
    with pytest.raises(SchemaError, match="more than one column called 'a'"):
        open_source(session.sql("SELECT 1 AS a, 2 AS a"), schema)
    with pytest.raises(SchemaError, match="no column 'a'"):
        open_source(session.sql("SELECT 1 AS A"), schema)
    with pytest.raises(OwnerError, match="no last row"):
        open_source(session.readStream.format("rate").load(), schema)
    with pytest.raises(OwnerError, match="could not be read"):
        open_source(session.sql("SELECT raise_error('late') AS a FROM range(3)"), schema)
    source = open_source(lifted(session, frame()), SCHEMA)
    source.check(MomentRows(("age",), (1,), None))
    with pytest.raises(QueryError, match="at most 2047 columns"):
        source.check(MomentRows(("age",) * 2048, (1,) * 2048, None))
    with pytest.raises(QueryError, match="load it into memory"):
        source.check_sample()


def test_what_is_no_frame_or_cannot_be_read_is_told_in_a_sentence(session, tmp_path):
    schema = Schema((Categorical("a", (0, 1)),))
    for other in (session, session.range(2).id, session.range(2).groupBy("id")):
        with pytest.raises(OwnerError, match="pass a Spark DataFrame"):
            open_source(other, schema)
    session.range(3).selectExpr("id % 2 AS a").write.parquet(str(tmp_path / "t"))
    gone = session.read.parquet(str(tmp_path / "t"))
    shutil.rmtree(tmp_path / "t")
    for table in (gone, session.sql("SELECT CAST('x' AS INT) AS a FROM range(2)")):
        with pytest.raises(OwnerError, match=r"could not be read: (?!An error occurred)") as told:
            open_source(table, schema)
        assert "\n" not in str(told.value)


def test_levels_and_expressions_that_are_absurd(session):
    levels = ("x'y", "a\\b", "'; drop table t --", "${x}", "{}", "a\nb", "z" * 10**5, "\\u0041", "\\'")
    table = session.createDataFrame([(x,) for x in levels], "a string")
    found = open_source(table, Schema((Categorical("a", levels),)))
    assert found.totals([CountRows(("a",), (len(levels),))])[0].tolist() == [1] * len(levels)
    deep = session.range(4).selectExpr("CAST(id % 2 AS INT) AS a")
    for _ in range(50):
        deep = deep.withColumn("a", deep.a + 0)
    assert open_source(deep, Schema((Categorical("a", (0, 1)),))).totals([CountRows((), ())]) == [4]


def test_an_owner_hears_of_workers_that_cannot_work(session, monkeypatch):
    def broken(batches, **_):
        raise ImportError("no numpy here")

    monkeypatch.setattr(spark, "_task", broken)
    with pytest.raises(OwnerError, match="workers need numpy and pyarrow"):
        open_source(lifted(session, frame()), PLAIN)


def test_workers_do_without_this_package(session):
    def tried(batches):
        for _ in batches:
            try:
                import dpcurate  # noqa: F401

                said = "there"
            except ImportError as error:
                said = str(error)
            yield pa.record_batch({"said": [said]})

    with pytest.warns(FutureWarning, match="pandas"):
        found = session.range(1).mapInArrow(tried, "said string").toArrow()
    assert found["said"].to_pylist() == ["not on the workers"]


def test_wide_gradients(session):
    rows, d = 300, 30
    rng = np.random.default_rng(5)
    table = pd.DataFrame({f"a{i}": rng.uniform(-1.2, 1.2, rows) for i in range(d)})
    schema = Schema(tuple(Numeric(n, -1, 1) for n in table))
    weights = tuple(map(tuple, rng.normal(size=(d, d)) * 0.1))
    steps = tuple(c.steps for c in schema.columns)
    asked = [GradientRows(schema.names, steps, weights, 0.5), MomentRows(schema.names, steps, 1.0)]
    assert equal(table, lifted(session, table).repartition(2), schema, asked)


def test_frames_of_pandas_on_spark_and_sessions_that_refuse_settings(session):
    class DataFrame:
        def to_spark(self):
            return session.sql("SELECT 1 AS a")

    assert spark.Spark(DataFrame()).stored() == {"a": "int"}

    class Locked:
        conf = property(lambda self: self)

        def get(self, *_):
            return None

        def set(self, *_):
            raise RuntimeError("locked")

        unset = set

    with spark._short_methods(Locked()):
        pass
    with spark._short_methods(session):
        assert session.conf.get(spark.METHOD_LIMIT[0]) == spark.METHOD_LIMIT[1]
    assert session.conf.get(spark.METHOD_LIMIT[0]) == "65535"


def test_a_task_adds_up_its_batches_and_hands_on_what_is_not_zero(monkeypatch):
    monkeypatch.setattr(spark, "PART", 10)
    batches = [pa.record_batch({"c0": pa.array(np.arange(n) % 3, pa.int16())}) for n in (4, 0, 7, 1)]
    asked = (CountRows(("a",), (5,)), CountRows((), ()), MomentRows(("a",), (4,), None))
    work = {"row_sums": asked, "codes": {"a": "c0"}, "values": {}}
    (found,) = spark._task(batches, **work)
    y = 2 * np.concatenate([np.arange(n) % 3 for n in (4, 0, 7, 1)]) - 4
    assert found["place"].to_pylist() == [0, 1, 2, 5, 6, 7, 8, 9]
    assert found["total"].to_pylist() == [6, 3, 3, 12, 12, y.sum(), y.sum(), y @ y]
    (none,) = spark._task([], **work)
    assert none.num_rows == 0
    with pytest.raises(NotImplementedError):
        spark._Shipped(spark._task)(batches)
