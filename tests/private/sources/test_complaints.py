"""What engines say of cells: at opening a sentence without them for the owner, afterwards nothing."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpcurate import Budget, Curator
from dpcurate.errors import OwnerError, SourceError
from dpcurate.private.sources import open_source
from dpcurate.private.sources.engine import first_line
from dpcurate.queries import Gaussian, Means, Moments, Release
from dpcurate.schema import Categorical, Numeric, Schema

SCHEMA = Schema((Categorical("a", ("x", "y")), Numeric("v", 0, 10)))
SECRET = "Mr Secret 1234"
BAD = {"a": ["x", "y", "x"], "v": ["1", "2", SECRET]}
UNREADABLE = (
    "the table could not be read; what was charged stays charged. Ask its owner to look at it, and then the same "
    "again: that is not charged twice"
)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (f'invalid input syntax for type integer: "{SECRET}"', "invalid input syntax for type integer"),
        (f"could not parse `{SECRET}` as dtype `i64` at column 'v'", "at column 'v'"),
        (f"Could not convert string '{SECRET}' to DOUBLE", "to DOUBLE"),
        (f"failed in column 'v' for 1 out of 1 values: [\"{SECRET}\"]", "in column 'v' for 1 out of 1 values"),
        (f"[CAST_INVALID_INPUT] The value '{SECRET}' of the type \"STRING\" is malformed", 'the type "STRING"'),
        (f'invalid input: "x" column "{SECRET}"', "invalid input"),
        (f"The value 'O'{SECRET}' is bad", "is bad"),
        (f'unterminated "{SECRET}', "unterminated"),
        ("Type INT64 with value 1234 can't be cast", "can't be cast"),
        ('column "age" does not exist', 'column "age" does not exist'),
        ('password authentication failed for user "bob"', 'user "bob"'),
        ("it can't be read, and won't", "it can't be read, and won't"),
    ],
)
def test_what_an_engine_quotes_is_left_out_but_for_names(said, kept):
    told = first_line(ValueError(said))
    assert kept in told
    assert "Secret" not in told
    assert "1234" not in told


def of_polars(folder):
    return pl.DataFrame(BAD).lazy().with_columns(pl.col("v").cast(pl.Float64))


def of_polars_csv(folder):
    pl.DataFrame(BAD).write_csv(folder / "t.csv")
    return pl.scan_csv(folder / "t.csv", schema_overrides={"v": pl.Int64})


def of_dask(folder):
    dask = pytest.importorskip("dask.dataframe")
    return dask.from_pandas(pd.DataFrame(BAD), npartitions=1).astype({"v": float})


def of_a_view(folder):
    connection = duckdb.connect(folder / "t.duckdb")
    connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES ('x', '1'), ('y', 'Mr Secret 1234')) AS r(a, v)")
    connection.execute("CREATE VIEW w AS SELECT a, CAST(v AS DOUBLE) AS v FROM t")
    connection.close()
    return f"{folder / 't.duckdb'}#w"


@pytest.mark.parametrize("form", [of_polars, of_polars_csv, of_dask, of_a_view])
def test_no_cell_is_repeated_at_opening(form, tmp_path):
    with pytest.raises(OwnerError) as refused:
        open_source(form(tmp_path), SCHEMA)
    assert SECRET not in str(refused.value)


def failing_later(passes):
    """A step of the owner's own that works in the first passes over a table, and then raises with a cell."""
    made = iter(range(10**9))

    def step(part):
        if next(made) >= passes:
            raise ValueError(f"{SECRET} is not a number")
        return part

    return step


def polars_later(passes):
    frame = pl.DataFrame({"a": ["x", "y"] * 50, "v": np.arange(100.0)}).lazy()
    return frame.with_columns(pl.col("v").map_batches(failing_later(passes), return_dtype=pl.Float64))


def dask_later(passes):
    dask = pytest.importorskip("dask.dataframe")
    frame = dask.from_pandas(pd.DataFrame({"a": ["x", "y"] * 50, "v": np.arange(100.0)}), npartitions=1)
    return frame.map_partitions(failing_later(passes), meta=frame._meta)


@pytest.mark.parametrize("form", [polars_later, dask_later])
def test_a_source_that_fails_after_opening_says_nothing_of_why(form):
    """Every failure has one text, no cause, and the charge that was made before."""
    curator = Curator(form(1), SCHEMA, budget=Budget(rho=10))
    texts = set()
    for asked, query in enumerate((Means(("v",)), Moments(("v",))), start=1):
        with pytest.raises(SourceError) as refused:
            curator.ask(Release(query, Gaussian(rho=0.5)))
        assert refused.value.__cause__ is refused.value.__context__ is None
        assert curator.ledger.spent == pytest.approx(0.5 * asked)
        texts.add(str(refused.value))
    assert texts == {UNREADABLE}


def test_rows_that_change_between_passes_cost_what_they_always_do():
    """A frame that is drawn anew for each pass gives other rows each time; what is charged does not depend on them."""
    frame = pl.DataFrame({"a": ["x", "y"] * 500, "v": np.arange(1000.0) % 10}).lazy()
    drawn = frame.filter(pl.int_range(pl.len()).shuffle() < 500)
    curators = [Curator(table, SCHEMA, budget=Budget(rho=10)) for table in (frame, drawn)]
    for curator in curators:
        for query in (Means(("v",)), Moments(("v",))):
            curator.ask(Release(query, Gaussian(rho=0.5)))
    assert len({(c.ledger.spent, c.passes, str(c.ledger.events)) for c in curators}) == 1


ibis_words = pytest.mark.filterwarnings("ignore:fetch_:DeprecationWarning", "ignore:The 'future.infer_string' option")


def ibis_table(frame, tmp_path):
    ibis = pytest.importorskip("ibis")
    path = tmp_path / "t.duckdb"
    with duckdb.connect(path) as made:
        made.register("frame", frame)
        made.execute("CREATE TABLE t AS SELECT CAST(a AS VARCHAR) AS a, CAST(v AS VARCHAR) AS v FROM frame")
    connection = ibis.duckdb.connect(path)
    return connection, connection.table("t")


READABLE = pd.DataFrame({"a": ["x", "y"] * 50, "v": [str(n % 10) for n in range(100)]})


@ibis_words
def test_an_ibis_expression_that_fails_on_a_cell_is_told_without_the_cell(tmp_path):
    _, table = ibis_table(pd.concat([READABLE, pd.DataFrame({"a": ["x"], "v": [SECRET]})]), tmp_path)
    with pytest.raises(OwnerError) as refused:
        open_source(table.mutate(v=table.v.cast("float64")), SCHEMA)
    assert SECRET not in str(refused.value)


SABOTAGE = {
    "a cell that cannot be cast": f"INSERT INTO t VALUES ('x', '{SECRET}')",
    "no table": "DROP TABLE t",
    "another type": "ALTER TABLE t ALTER v TYPE DATE USING DATE '2020-01-01'",
    "another column": "ALTER TABLE t RENAME v TO w",
}


@ibis_words
@pytest.mark.parametrize("change", SABOTAGE.values(), ids=SABOTAGE)
def test_an_ibis_table_that_changes_after_opening_says_nothing_of_why(change, tmp_path):
    connection, table = ibis_table(READABLE, tmp_path)
    curator = Curator(table.mutate(v=table.v.cast("float64")), SCHEMA, budget=Budget(rho=10))
    connection.raw_sql(change)
    for asked, query in enumerate((Means(("v",)), Moments(("v",))), start=1):
        with pytest.raises(SourceError) as refused:
            curator.ask(Release(query, Gaussian(rho=0.5)))
        assert str(refused.value) == UNREADABLE
        assert refused.value.__cause__ is refused.value.__context__ is None
        assert curator.ledger.spent == pytest.approx(0.5 * asked)


@ibis_words
def test_rows_added_to_an_ibis_table_after_opening_cost_nothing_more(tmp_path):
    connection, table = ibis_table(READABLE, tmp_path)
    curator = Curator(table.mutate(v=table.v.cast("float64")), SCHEMA, budget=Budget(rho=10))
    connection.raw_sql("INSERT INTO t VALUES ('x', '3'), (NULL, NULL), ('z', '11')")
    curator.ask(Release(Means(("v",)), Gaussian(rho=0.5)))
    connection.raw_sql("DELETE FROM t")
    curator.ask(Release(Moments(("v",)), Gaussian(rho=0.5)))
    assert curator.ledger.spent == pytest.approx(1)
