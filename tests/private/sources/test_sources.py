"""One contract for every source: the same table gives the same integers, whatever holds it."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from contract import (
    NUMBERS,
    PLAIN,
    SCHEMA,
    SCHEMAS,
    frame,
    lookups,
    row_sums,
    rows_of_empty_cells_are_rows,
    same_integers,
    text_frame,
)

from dpcurate import draft
from dpcurate.errors import DpcurateError, OwnerError, QueryError, SchemaError
from dpcurate.private import sources
from dpcurate.private.noise import Seeded
from dpcurate.private.row_sums import CountRows, FeatureRows, GradientRows, IntervalRows, Lookup, MomentRows, Rows
from dpcurate.private.sources import InMemory, PushedDown, check_rows, duck, formulas, in_memory, open_source, textfile
from dpcurate.private.sources.encode import encoded_sql
from dpcurate.private.sources.engine import Engine, first_line, kinds_of
from dpcurate.schema import GRID, Categorical, Numeric, Person, Schema


def every_form(table, folder):
    """The same table in every form a source can take."""
    csv, parquet, database = folder / "t.csv", folder / "t.parquet", folder / "t.duckdb"
    text_frame(table).to_csv(csv, index=False)
    arrow = pa.Table.from_pandas(table)
    pq.write_table(arrow, parquet)
    (folder / "parts").mkdir()
    pq.write_table(arrow.slice(0, 200), folder / "parts" / "a.parquet")
    pq.write_table(arrow.slice(200), folder / "parts" / "b.parquet")
    with duckdb.connect(str(database)) as connection:
        connection.register("t", arrow)
        connection.execute('CREATE TABLE "my table" AS SELECT * FROM t')
    category = table.assign(colour=table["colour"].astype("category"))
    columns = {name: table[name].to_numpy() for name in table}
    return {
        "pandas": table,
        "pandas category": category,
        "polars": pl.from_pandas(table),
        "arrow": arrow,
        "mapping": columns,
        "parquet": str(parquet),
        "folder": folder / "parts",
        "csv": csv,
        "duckdb": f"{database}#my table",
    }


@pytest.mark.slow(but=["levels", "people"])
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_all_sources_return_identical_integers(schema, tmp_path):
    same_integers(every_form(frame(), tmp_path), schema)


def held_as(kind, folder):
    """A form of a table for the contract of rows of empty cells."""

    def csv(table, **options):
        table.to_csv(folder / "t.csv", index=False, **options)
        return folder / "t.csv"

    def bare_csv(table):
        """As other writers leave it: no quotes around nothing, and no line break after the last row."""
        text = csv(table).read_text().replace('""', "").removesuffix("\n")
        (folder / "t.csv").write_text(text)
        return folder / "t.csv"

    def parquet(table):
        pq.write_table(pa.Table.from_pandas(table), folder / "t.parquet")
        return folder / "t.parquet"

    def database(table):
        (folder / "t.duckdb").unlink(missing_ok=True)
        with duckdb.connect(str(folder / "t.duckdb")) as connection:
            connection.register("t", table)
            connection.execute("CREATE TABLE rows AS SELECT * FROM t")
        return f"{folder / 't.duckdb'}#rows"

    return {
        "pandas": lambda table: table,
        "polars": pl.from_pandas,
        "arrow": pa.Table.from_pandas,
        "mapping": lambda table: {name: table[name].to_numpy() for name in table},
        "csv": csv,
        "bare csv": bare_csv,
        "csv of Windows": lambda table: csv(table, lineterminator="\r\n"),
        "packed csv": lambda table: csv(table).rename(folder / "u.csv") and packed(folder / "u.csv"),
        "parquet": parquet,
        "duckdb": database,
    }[kind]


def packed(path):
    place = path.with_suffix(".csv.gz")
    place.write_bytes(gzip.compress(path.read_bytes()))
    return place


KINDS = ("pandas", "polars", "arrow", "mapping", "csv", "bare csv", "csv of Windows", "packed csv", "parquet", "duckdb")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_empty_cells_are_rows(kind, tmp_path):
    rows_of_empty_cells_are_rows(held_as(kind, tmp_path))


def test_duckdb_agrees_without_pyarrow_where_features_are_sums_in_sql(tmp_path, monkeypatch):
    duck.streams.cache_clear()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert not duck.streams()
    monkeypatch.undo()  # the frames of this test need it; `streams` remembers
    try:
        same_integers({"parquet": every_form(frame(), tmp_path)["parquet"]}, NUMBERS)
        source = open_source(tmp_path / "t.parquet", NUMBERS)
        wide = tuple(Lookup("age", 512, ((1,) * 251,) * 513) for _ in range(1))
        with pytest.raises(QueryError, match="at most 250 features, got 251"):
            source.check(FeatureRows(wide, 1.0))
    finally:
        duck.streams.cache_clear()
    source.check(FeatureRows(wide, 1.0))


def test_histograms_and_features_are_one_pass_each(tmp_path):
    source = open_source(every_form(frame(), tmp_path)["parquet"], NUMBERS)
    histograms = [k for k in row_sums(NUMBERS) if isinstance(k, IntervalRows)] + [CountRows(("colour",), (3,))]
    features = FeatureRows(lookups(NUMBERS), 900.0)
    assert (source.passes(histograms), source.passes([features])) == (1, 1)
    source.totals(histograms)
    assert source.made == 2


def test_row_order_does_not_matter(tmp_path):
    schema = Schema(SCHEMA.columns, person=Person("id", 2))
    table = frame()
    shuffled = table.sample(frac=1.0, random_state=3)
    for row_sum in row_sums(schema):
        one, other = (open_source(t, schema).totals([row_sum])[0] for t in (table, shuffled))
        assert np.array_equal(one, other)


def test_large_domains_on_disk_are_asked_again_and_agree(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "SMALL_DOMAIN", 4)
    forms = every_form(frame(), tmp_path)
    asked, held = open_source(forms["parquet"], PLAIN), open_source(forms["pandas"], PLAIN)
    assert isinstance(asked, PushedDown)
    for row_sum in row_sums(PLAIN):
        assert np.array_equal(asked.totals([row_sum])[0], held.totals([row_sum])[0])
    for refuse in (asked.check_sample, lambda: asked.sample(5, Seeded(1))):
        with pytest.raises(QueryError, match="load it into memory"):
            refuse()


def test_the_rules_of_the_schema_cell_by_cell():
    table = pd.DataFrame(
        {
            "colour": ["red", None, "mauve", "green", "red", "red", "red"],
            "grade": [1, 2, 3, None, 9, 1, 1],
            "odd": [True, False, True, True, True, None, True],
            "age": [float("inf"), -5.0, 18.0, None, 3.0, 3.0, 17.9],
            "dose": [1.0, -1.0, 0.0, 0.5, 0.5, 0.5, 2.0],
        }
    )
    rows = open_source(table, SCHEMA)._rows
    # Row 4 has an unknown grade, row 5 no answer, row 6 a dose outside: dropped.
    assert rows.total == 4
    assert sorted(zip(*(rows.codes[n].tolist() for n in SCHEMA.names), strict=True)) == sorted(
        [(0, 0, 0, 3, 1), (0, 1, 1, 0, 0), (2, 2, 0, 1, 1), (1, 1, 0, 1, 1)]
    )
    assert sorted(rows.values["age"].tolist()) == sorted([GRID, -GRID, int(-0.64 * GRID), int(-0.4 * GRID)])
    assert sorted(rows.values["dose"].tolist()) == [-GRID, 0, GRID // 2, GRID]


def test_distinct_rows_are_collapsed_where_that_is_smaller():
    few = pd.DataFrame({"a": ["x", "y"] * 500, "b": ["u", "u", "v", "v"] * 250})
    schema = Schema((Categorical("a", ("x", "y")), Categorical("b", ("u", "v"))))
    rows = open_source(few, schema)._rows
    assert (rows.size, rows.total) == (4, 1000)
    wide = Schema(tuple(Categorical(f"c{i}", tuple(range(9))) for i in range(8)))
    many = {f"c{i}": np.random.default_rng(i).integers(0, 9, 400) for i in range(8)}
    assert open_source(many, wide)._rows.weights is None


def test_a_person_keeps_at_most_so_many_rows_and_others_do_not_matter():
    schema = Schema((Categorical("a", tuple(range(9))),), person=Person("id", 2))
    ids, levels = ["p"] * 5 + ["q"] + [None], [0, 1, 2, 3, 4, 5, 6]
    row_sum = CountRows(("a",), (9,))
    with_q = open_source({"id": np.array(ids, dtype=object), "a": np.array(levels)}, schema).totals([row_sum])[0]
    alone = open_source({"id": np.array(ids[:5], dtype=object), "a": np.array(levels[:5])}, schema).totals([row_sum])[0]
    assert with_q.sum() == 3
    assert alone.sum() == 2
    assert np.array_equal(with_q[:5], alone[:5])
    assert with_q[6] == 0  # a row that names no person


def test_numbers_and_truth_values_match_their_levels():
    schema = Schema((Categorical("a", ("0", "1", "x")), Categorical("b", ("False", "True"))))
    table = pd.DataFrame({"a": [0.0, 1.0, 1.0], "b": [True, False, True]})
    assert open_source(table, schema).totals([CountRows(("a", "b"), (3, 2))])[0].tolist() == [[0, 1], [1, 1], [0, 0]]
    wrong = Schema((Categorical("a", ("0", "1")), Categorical("b", ("yes", "no"), outside="no")))
    assert open_source(table, wrong).totals([CountRows(("b",), (2,))])[0].tolist() == [0, 3]
    none_fit = Schema((Categorical("a", ("none", "such")),))
    assert open_source(table, none_fit).totals([CountRows((), ())])[0] == 0


def test_numeric_text_is_read_as_numbers():
    schema = Schema((Numeric("x", 0, 10, bins=2, missing=0),))
    table = {"x": np.array(["1", "9.5", "many", None], dtype=object)}
    assert open_source(table, schema).totals([CountRows(("x",), (2,))])[0].tolist() == [3, 1]
    truth = {"x": np.array([True, False])}
    assert open_source(truth, schema).totals([CountRows(("x",), (2,))])[0].tolist() == [2, 0]


def test_arrays_follow_the_schema_order():
    schema = Schema((Categorical("a", (0, 1)), Categorical("b", (0, 1, 2))))
    array = np.array([[0, 2], [1, 1], [1, 1]])
    counts = open_source(array, schema).totals([CountRows(("a", "b"), (2, 3))])[0]
    assert counts.tolist() == [[0, 0, 1], [0, 2, 0]]
    named = np.array([(0, 2), (1, 1), (1, 1)], dtype=[("a", "i8"), ("b", "i8")])
    assert np.array_equal(open_source(named, schema).totals([CountRows(("a", "b"), (2, 3))])[0], counts)
    with pytest.raises(SchemaError, match=r"shape \(3, 2\).*3 columns"):
        open_source(array, Schema((*schema.columns, Categorical("c", (0, 1)))))


def test_an_empty_table_opens_like_any_other():
    empty = frame().iloc[:0]
    for schema in (SCHEMA, PLAIN):
        for row_sum in row_sums(schema):
            assert not open_source(empty, schema).totals([row_sum])[0].any()


def test_owner_hears_of_a_table_that_cannot_be_opened(tmp_path):
    schema = Schema((Categorical("a", (0, 1)),))
    table = pd.DataFrame({"A": [1], "b": [2]})
    with pytest.raises(SchemaError, match="no column 'a'"):
        open_source(table, schema)
    with pytest.raises(SchemaError, match="did you mean 'grade'"):
        open_source(frame(), Schema((Categorical("grades", (0, 1)),)))
    double = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(SchemaError, match="more than one column called 'a'"):
        open_source(double, schema)
    with pytest.raises(SchemaError, match="more than one column called 'b c'"):
        open_source({"a": [1], "B c": [1], "b C": [1]}, schema)
    (tmp_path / "d.csv").write_text("a,a\n1,2\n")
    with pytest.raises(SchemaError, match="more than one column called 'a'"):
        open_source(tmp_path / "d.csv", schema)
    (tmp_path / "bad.parquet").write_text("not parquet")
    for path in ("bad.parquet", "absent.csv", "absent.duckdb#t", "bad.parquet.gz"):
        with pytest.raises(OwnerError):
            open_source(tmp_path / path, schema)
    for path in ("t.pickle", "t.duckdb"):
        with pytest.raises(SchemaError, match=r"#table|after a hash"):
            open_source(tmp_path / path, schema)
    with pytest.raises(OwnerError, match="one length"):
        open_source({"a": [1, 2], "b": [1]}, schema)
    with pytest.raises(OwnerError, match="type int"):
        open_source(5, schema)


def late_trouble(path):
    """A file whose header and first rows are fine, and a later row is not."""
    path.write_text("a,b\n" + "0,1\n" * 50_000 + '0,1,"2,3\n')


def test_a_table_that_fails_while_it_is_read_is_the_owners_affair(tmp_path):
    late_trouble(tmp_path / "t.csv")
    with pytest.raises(OwnerError, match=r"cannot read .* line 50002: "):
        open_source(tmp_path / "t.csv", Schema((Categorical("a", (0, 1)),)))


def test_the_check_reports_what_an_owner_should_know(tmp_path):
    table = frame()
    table["odd"] = None
    said = "\n".join(check_rows(table, SCHEMA))
    assert "500 rows, 0 of them used" in said
    assert "'odd': 500 missing cells, that is all of them" in said
    assert "'grade'" in said
    assert "outside the schema; rule: clamp" in said
    assert "the table is empty" in "\n".join(check_rows(table.iloc[:0], SCHEMA))
    clean = {"a": [0, 1]}
    assert list(check_rows(clean, Schema((Categorical("a", (0, 1)),)))) == ["2 rows, 2 of them used"]
    late_trouble(tmp_path / "t.csv")
    with pytest.raises(OwnerError, match=r"cannot read .* line 50002"):
        list(check_rows(tmp_path / "t.csv", Schema((Categorical("a", (0, 1)),))))


def test_a_draft_says_that_it_looked_and_can_be_loaded(tmp_path):
    table = frame().assign(note=[f"free text {i}" for i in range(500)], same="x", flat=1.0)
    table["half"] = np.linspace(0, 1, 500)
    text = draft(table)
    assert "LOOKED AT THE DATA" in text
    assert "left out: 'note'" in text
    assert "left out: 'same'" in text
    schema = Schema.loads(text)
    assert schema["colour"].levels == ("blu'e", "green", "mauve", "red", "missing")
    assert schema["age"].kind == "numeric"
    assert schema["half"].high == 1.0
    assert "note" not in schema.names
    with pytest.raises(OwnerError, match="no column"):
        draft(table[["note", "same"]])
    constant = pd.DataFrame({"a": [float("inf")] + [float(i) for i in range(3)] * 9, "x": [1, 2] * 14})
    assert Schema.loads(draft(constant)).names == ("a", "x")
    spread = pd.DataFrame({"a": [3.0] * 25 + [float("inf"), float("-inf")], "b": ["u", "v", "v"] * 9})
    assert "all its numbers are equal" in draft(spread, max_levels=2)
    infinite = pd.DataFrame({"a": [1.0, float("inf")], "b": ["u", "v"]})
    assert "fewer than two different numbers" in draft(infinite)
    late_trouble(tmp_path / "t.csv")
    with pytest.raises(OwnerError, match=r"cannot read .* line 50002"):
        draft(tmp_path / "t.csv")


def test_sampling_keeps_rows_with_their_values():
    source = open_source(frame(), SCHEMA)
    half = source.sample(2**31, Seeded(4))
    assert isinstance(half, InMemory)
    whole = CountRows(SCHEMA.names, SCHEMA.sizes(SCHEMA.names))
    assert (half.totals([whole])[0] <= source.totals([whole])[0]).all()
    assert 0 < half.totals([CountRows((), ())])[0] < source.totals([CountRows((), ())])[0]
    source.check_sample()


# --- one row must not change what the other rows mean -------------------------------------------------

AB = Schema((Categorical("a", ("x", "#y")), Categorical("b", ("u", "v"))))


@pytest.mark.parametrize("extra", ["#,u\n", "x,u\n", '"x",u\n', "\\,u\n", ",\n"])
def test_a_csv_row_does_not_change_how_the_others_are_read(extra, tmp_path):
    rows = "a,b\n" + "x,u\n#y,v\n" * 1000
    tables = []
    for text in (rows, rows + extra):
        (tmp_path / "t.csv").write_text(text)
        tables.append(open_source(tmp_path / "t.csv", AB).totals([CountRows(("a", "b"), (2, 2))])[0])
    assert np.abs(tables[1] - tables[0]).sum() <= 1
    assert tables[0].sum() == 2000


def test_a_csv_row_of_another_length_is_told_to_the_owner(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "x,u\n" * 1000 + "a,b,c\n")
    with pytest.raises(OwnerError):
        open_source(tmp_path / "t.csv", AB)


@pytest.mark.parametrize("levels", [(0, 1), ("0", "1"), ("1.0", "0.0"), ("01", "00"), ("true", "false")], ids=str)
@pytest.mark.parametrize("cells", [[True, False], [1, 0], [1.0, 0.0], ["1", "0"], ["True", "False"]], ids=str)
@pytest.mark.parametrize(
    "odd", ["seven", *(pytest.param(x, marks=pytest.mark.slow) for x in (None, 2, float("nan"), 2.5))], ids=str
)
def test_a_strange_cell_does_not_change_what_the_others_mean(levels, cells, odd):
    schema = Schema((Categorical("a", levels),))
    row_sum = CountRows(("a",), (2,))
    plain, mixed = pd.Series(cells * 50), pd.Series([*cells * 50, odd])
    assert open_source({"a": plain}, schema).totals([row_sum])[0].tolist() == [50, 50]
    for table in (pd.DataFrame({"a": mixed}), {"a": [*cells * 50, odd]}, {"a": mixed.to_numpy()}):
        assert open_source(table, schema).totals([row_sum])[0].tolist() == [50, 50]
    number = Schema((Numeric("a", 0, 1, bins=2, missing="drop", outside="drop"),))
    for table in ({"a": plain}, pd.DataFrame({"a": mixed})):
        assert open_source(table, number).totals([row_sum])[0].tolist() == [50, 50]


def test_a_file_that_stays_on_disk_is_read_through_when_it_is_opened(tmp_path):
    schema = Schema((Numeric("a", 0, 1), Numeric("b", 0, 1)))
    for tail in (b"0,1,2\n", b'0,"1\n', b"0,\xff\xfe\n"):
        (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"0,1\n" * 50_000 + tail)
        with pytest.raises(OwnerError):
            open_source(tmp_path / "t.csv", schema)


def test_headers_that_cannot_be_read(tmp_path):
    schema = Schema((Categorical("a", (0, 1)),))
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\n")
    for name in ("empty.csv", "bytes.csv"):
        with pytest.raises(OwnerError, match="header"):
            open_source(tmp_path / name, schema)
    (tmp_path / "mark.csv").write_text("\ufeffa\n1\n", encoding="utf-8")
    assert open_source(tmp_path / "mark.csv", schema).totals([CountRows(("a",), (2,))])[0].tolist() == [0, 1]
    with gzip.open(tmp_path / "z.csv.gz", "wt") as handle:
        handle.write("a\n1\n0\n")
    assert open_source(tmp_path / "z.csv.gz", schema).totals([CountRows(("a",), (2,))])[0].tolist() == [1, 1]
    (tmp_path / "t.tsv").write_text("a\tb\n1\tx\n")
    assert open_source(tmp_path / "t.tsv", schema).totals([CountRows((), ())])[0] == 1


def test_persons_named_by_floating_point_numbers_are_refused():
    schema = Schema((Categorical("a", (0, 1)),), person=Person("id", 2))
    with pytest.raises(OwnerError, match="run two persons together"):
        open_source({"a": [0, 1], "id": np.array([2.0**53, 2.0**53 + 1])}, schema)


def test_too_many_rows_are_the_owners_affair(monkeypatch):
    monkeypatch.setattr("dpcurate.private.sources.engine.MOST_ROWS", 10)
    with pytest.raises(OwnerError, match="above the limit of 10"):
        open_source(frame(), PLAIN)


def test_formulas_that_would_be_too_long_are_refused_before_they_are_asked(tmp_path):
    wide = Schema(tuple(Numeric(f"x{i}", -1, 1) for i in range(65)))
    pd.DataFrame({name: [0.0, 0.5] for name in wide.names}).to_parquet(tmp_path / "w.parquet")
    source = open_source(tmp_path / "w.parquet", wide)
    steps, weights = (GRID,) * 65, ((0.0,) * 65,) * 65
    source.check(MomentRows(wide.names, steps, None))
    for row_sum in (MomentRows(wide.names, steps, 0.5), GradientRows(wide.names, steps, weights, 0.5)):
        with pytest.raises(QueryError, match="at most 64 columns, got 65"):
            source.check(row_sum)
    row_sum = MomentRows(wide.names, steps, None)
    assert source.passes([row_sum]) == 1
    assert Engine.add_passes(Engine, row_sum, wide) == 2  # 66 * 67 / 2 sums, 1,600 a query
    assert np.array_equal(source.totals([row_sum])[0], row_sum.apply(rows_in_memory(tmp_path / "w.parquet", wide)))


def rows_in_memory(path, schema):
    return open_source(pd.read_parquet(path), schema)._rows


def test_moments_are_exact_beyond_floating_point():
    heavy = np.array([3 * 10**8, 1], dtype=np.int64)
    rows = Rows({"a": np.array([999, 998], dtype=np.uint16)}, {}, heavy, 2)
    row_sum = MomentRows(("a",), (999,), None)
    light = Rows({"a": np.array([999], dtype=np.uint16)}, {}, heavy[:1], 1)
    moved = row_sum.apply(rows) - row_sum.apply(light)
    assert moved.tolist() == [[1, 997], [997, 997**2]]
    huge = Rows({"a": np.array([999], dtype=np.uint16)}, {}, np.array([10**12], dtype=np.int64), 1)
    assert row_sum.apply(huge)[1, 1] == 999**2 * 10**12


# --- no row, no file and no name may change what others mean ---------------------------------------------


@pytest.mark.parametrize("name", ["w", "W", "k", "c", "weight0", "t0", "n0", "c0", "person", "alike"])
def test_no_name_of_a_column_is_taken_for_one_of_ours(name, tmp_path):
    schema = Schema((Categorical("a", (0, 1)), Categorical(name, (0, 1000), outside=0)))
    table = pd.DataFrame({"a": [0, 1, 1, 1, 1], name: [0, 0, 1000, 10**9, -5]})
    table.to_parquet(tmp_path / "t.parquet")
    row_sum = CountRows(("a", name), (2, 2))
    for form in (table, tmp_path / "t.parquet"):
        assert open_source(form, schema).totals([row_sum])[0].tolist() == [[1, 0], [3, 1]], name


def test_files_of_one_table_must_store_a_column_alike(tmp_path):
    pd.DataFrame({"a": [1, 2], "b": [0, 1]}).to_parquet(tmp_path / "0.parquet")
    pd.DataFrame({"a": [1.5] * 20, "b": [0] * 20}).to_parquet(tmp_path / "1.parquet")
    with pytest.raises(OwnerError, match="store 'a' in different types"):
        open_source(tmp_path, Schema((Numeric("a", 0, 2, bins=2),)))
    with pytest.raises(OwnerError, match="no file is there"):
        open_source(tmp_path / "none*.parquet", Schema((Numeric("a", 0, 2, bins=2),)))


@pytest.mark.parametrize("other", ["2020-1-2", "unknown"])
def test_a_folder_name_is_a_text_whatever_the_others_are(other, tmp_path):
    for value, rows in (("2020-1-1", 20), (other, 1)):
        (tmp_path / f"d={value}").mkdir()
        pd.DataFrame({"a": [0] * rows}).to_parquet(tmp_path / f"d={value}" / "t.parquet")
    schema = Schema((Categorical("d", ("2020-1-1", "x"), outside="x"), Categorical("a", (0, 1))))
    assert open_source(tmp_path, schema).totals([CountRows(("d",), (2,))])[0].tolist() == [20, 1]


@pytest.mark.parametrize("odd", [float("nan"), np.float32("nan"), np.nan], ids=["python", "short", "numpy"])
def test_a_text_in_a_column_does_not_change_what_a_missing_number_is(odd):
    schema = Schema((Categorical("a", (0, 1), missing=0, outside=1),))
    numbers, mixed = [odd] * 20, [odd] * 20 + ["zzz"]
    objects = np.empty(21, dtype=object)
    objects[:] = mixed
    for table in ({"a": mixed}, {"a": objects}, pd.DataFrame({"a": objects}), {"a": [str(x) for x in mixed]}):
        assert open_source(table, schema).totals([CountRows(("a",), (2,))])[0].tolist() == [20, 1]
    for table in ({"a": numbers}, pd.DataFrame({"a": numbers})):
        assert open_source(table, schema).totals([CountRows(("a",), (2,))])[0].tolist() == [20, 0]


@pytest.mark.parametrize("level", ["nan", "NaN", "inf", "-Infinity"])
def test_a_level_may_not_be_spelt_like_a_number_that_is_none(level):
    with pytest.raises(SchemaError, match="may not be called"):
        Categorical("a", (0, level))


@pytest.mark.parametrize("extra", [None, "text"])
def test_a_short_float_means_the_same_alone_and_among_objects(extra):
    schema = Schema((Numeric("a", 0, 1, bins=2, edges=(0.7,), missing=0),))
    alone, among = [np.float32(0.7)] * 20, [np.float32(0.7)] * 20 + [extra]
    for table in ({"a": np.array(alone)}, {"a": among}, pd.DataFrame({"a": pd.Series(among, dtype=object)})):
        counts = open_source(table, schema).totals([CountRows(("a",), (2,))])[0]
        assert counts[1] == 0  # as a number 0.7 is a little less there
    category = pd.DataFrame({"a": pd.Categorical(pd.Series(among, dtype=object))})
    assert open_source(category, schema).totals([CountRows(("a",), (2,))])[0][1] == 0


def test_texts_in_lists_keep_their_last_character():
    schema = Schema((Categorical("a", ("x", "y")),))
    row_sum = CountRows(("a",), (2,))
    for cells in (["x\0"] * 20, ["x\0"] * 20 + [None]):
        assert open_source({"a": cells}, schema).totals([row_sum])[0].tolist() == [0, 0]


def test_points_in_time_are_no_levels():
    table = pd.DataFrame({"a": pd.to_datetime(["2020-01-01"] * 3)})
    with pytest.raises(OwnerError, match="points in time"):
        open_source(table, Schema((Categorical("a", ("2020-01-01 00:00:00", "x")),)))


def test_persons_whose_names_differ_are_two(tmp_path):
    schema = Schema((Categorical("a", (0, 1)),), person=Person("id", 1))
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE t (id VARCHAR COLLATE NOCASE, a INTEGER, s STRUCT(x DOUBLE))")
        connection.execute("INSERT INTO t VALUES ('A', 0, {'x': 0.0}), ('a', 1, {'x': -0.0})")
    source = open_source(f"{tmp_path / 't.duckdb'}#t", schema)
    assert source.totals([CountRows(("a",), (2,))])[0].tolist() == [1, 1]
    with pytest.raises(OwnerError, match="run two persons together"):
        open_source(f"{tmp_path / 't.duckdb'}#t", Schema(schema.columns, person=Person("s", 1)))


def test_what_may_be_a_password_is_not_repeated():
    for path in ("postgresql:/me:secret@host/db#t", "host=h password=secret"):
        with pytest.raises(SchemaError) as caught:
            open_source(path, PLAIN)
        assert "secret" not in str(caught.value)


def test_owner_hears_of_files_and_tables_that_do_not_fit_together(tmp_path):
    schema = Schema((Categorical("a", (0, 1)),))
    (tmp_path / "1.csv").write_text("a,b\n0,1\n")
    (tmp_path / "2.csv").write_text("b,a\n0,1\n")
    with pytest.raises(OwnerError, match="other columns"):
        open_source(tmp_path / "*.csv", schema)
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
    with pytest.raises(OwnerError, match="could not be opened"):
        open_source(f"{tmp_path / 't.duckdb'}#absent", schema)
    with pytest.raises(SchemaError, match="no column 'a'"):
        list(check_rows({"b": [1]}, schema))


def test_sums_leave_an_engine_as_integers():
    schema = Schema((Numeric("a", -1, 1),))
    engine = duck.open_frame({"a": np.array([0.5, 1.0])}, schema)
    encoded = encoded_sql(engine.relation, schema, kinds_of(engine, schema), engine.dialect)
    for query in formulas.queries(MomentRows(("a",), (GRID,), None), encoded, schema, engine.dialect, most=9):
        assert {column.dtype for column in engine.fetch(query).values()} == {np.dtype(np.int64)}


def test_a_column_without_a_name_gets_one(tmp_path):
    schema = Schema((Categorical("a", (0, 1)), Categorical("column1", (0, 1))))
    pd.DataFrame({"a": [0, 1, 1], "column0": [7, 8, 9]}).to_csv(tmp_path / "t.csv")  # with its index
    assert open_source(tmp_path / "t.csv", schema).totals([CountRows(("column1",), (2,))])[0].tolist() == [1, 1]
    (tmp_path / "t.csv").write_text("a,,\n0,1,2\n")
    assert open_source(tmp_path / "t.csv", schema).totals([CountRows((), ())])[0] == 0  # the second is 2


NO_TABLES = {
    "nothing": (None, "pass a pandas"),
    "a number": (5, "pass a pandas"),
    "rows": ([{"a": 1}], "pass a pandas"),
    "bytes": (b"t.csv", "pass a pandas"),
    "a frame without columns": (pd.DataFrame(index=[1, 2]), "at least one column"),
    "one column": (pd.Series([1]), "no column 'a'"),
    "no columns": ({}, "one length"),
    "a number as a column": ({"a": 5}, "'a' of a mapping is of type int: make it a list"),
    "a text as a column": ({"a": "0101"}, "'a' of a mapping is of type str: make it a list"),
    "a generator": ({"a": (i for i in range(2))}, "of type generator: make it a list"),
    "a mapping in a mapping": ({"a": {"x": 1}}, "of type dict: make it a list"),
    "a matrix as a column": ({"a": np.zeros((2, 2))}, "one length"),
    "two names that read the same": ({1: [0, 1], "1": [0, 1], "a": [0, 1]}, "more than one column called '1'"),
    "bytes in an array": (np.array([(b"0",)], dtype=[("a", "S1")]), "pass a pandas"),
    "no path": ("", "an empty path names no table"),
    "no path but a table": ("#a", "an empty path names no table"),
    "a path with NUL": ("a\0.csv", "null byte"),
    "half a character": ("\ud800.csv", "surrogates"),
    "a long path": ("x" * 5000 + ".csv", "too long"),
    "the web": ("https://host/t.parquet", "known is postgresql"),
}


@pytest.mark.parametrize(("table", "words"), NO_TABLES.values(), ids=NO_TABLES)
def test_what_is_no_table_is_told_in_a_sentence(table, words):
    schema = Schema((Categorical("a", (0, 1)),))
    for look in (lambda: open_source(table, schema), lambda: list(check_rows(table, schema))):
        with pytest.raises(DpcurateError, match=words) as told:
            look()
        assert "\n" not in str(told.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.duckdb#t", "t.csv.gz", "*.tsv"])
def test_nothing_waits_for_a_pipe(name, tmp_path):
    os.mkfifo(tmp_path / name.partition("#")[0].replace("*", "t"))
    with pytest.raises(OwnerError, match="not a regular file"):
        open_source(f"{tmp_path}/{name}", PLAIN)


def test_a_header_is_not_read_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(textfile, "LONGEST_HEADER", 1000)
    schema = Schema((Categorical("a", (0, 1)),))
    for text in ("a," * 1000, "a" * 1001, '"' + "a\n" * 1000):
        with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
            file.write(text)
        with pytest.raises(OwnerError, match="longer than 1,000 characters"):
            open_source(tmp_path / "t.csv.gz", schema)
    (tmp_path / "t.csv").write_text("a,b\n" + "0,1\n" * 1000)
    assert open_source(tmp_path / "t.csv", schema).totals([CountRows((), ())]) == [1000]
    (tmp_path / "short.csv.gz").write_bytes(gzip.compress(b"a\n" + os.urandom(5000))[:-2000])
    with pytest.raises(OwnerError):
        open_source(tmp_path / "short.csv.gz", schema)


def test_damaged_files_are_told_in_a_sentence(tmp_path):
    schema, rng = Schema((Categorical("a", (0, 1)),)), np.random.default_rng(7)
    pd.DataFrame({"a": [0, 1] * 50}).to_parquet(tmp_path / "good.parquet")
    good = np.frombuffer((tmp_path / "good.parquet").read_bytes(), dtype=np.uint8)
    told = 0
    for i in range(100):
        bad = good.copy()
        bad[rng.integers(0, len(bad), 3)] ^= np.uint8(1 << i % 8)
        (tmp_path / "bad.parquet").write_bytes(bad[: rng.integers(0, len(bad)) if i % 2 else None].tobytes())
        try:
            open_source(tmp_path / "bad.parquet", schema)
        except DpcurateError:
            told += 1
    assert told >= 50  # all that were cut short


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("first\n  at stack", "first"),
        ("An error occurred while calling o7.getResult.\n: java.lang.Error: lost\n\tat stack", "java.lang.Error: lost"),
        ("An error occurred while calling o7.getResult.", "An error occurred while calling o7.getResult."),
        ("", "ValueError"),
        ("\n\nlate", "late"),
    ],
)
def test_an_engines_complaint_is_one_line_that_says_something(said, kept):
    assert first_line(ValueError(said)) == kept


# --- what a platform lacks is found out before anything is charged ------------------------------------

ASKED = """
import importlib, os, sys
import numpy as np
{without}
from dpcurate import Budget, Curator
from dpcurate.private.sources import in_memory
from dpcurate.queries import Counts, Gaussian, Moments, Release
from dpcurate.schema import Categorical, Numeric, Schema
in_memory.MANY = in_memory.PART = 64  # so that threads pay
rows = np.arange(1000)
schema = Schema((Categorical("a", (0, 1)), Categorical("b", (0, 1, 2)), Numeric("x", 0, 1, bins=4)))
table = {{"a": rows % 2, "b": rows % 3, "x": rows / 1000}}
curator = Curator(table, schema, budget=Budget(rho=1.0))
for statistic in (Counts(("a", "b")), Counts(("b", "x")), Moments(("x",))):
    curator.ask(Release(statistic, Gaussian(rho=0.1)))
print("answered")
"""
WITHOUT = {
    "affinity": "del os.sched_getaffinity",
    "any number of processors": "del os.sched_getaffinity; os.cpu_count = lambda: None",
    "permission to ask": "def refuse(_): raise OSError\nos.sched_getaffinity = refuse",
    "locks": "sys.modules['fcntl'] = None",
    "a temporary folder": "import tempfile; tempfile.tempdir = '/nowhere/at/all'",
    "more threads": "import threading\ndef refuse(_): raise RuntimeError('no thread')\nthreading.Thread.start = refuse",
    "other engines": "sys.modules.update(dict.fromkeys(('pandas', 'polars', 'pyarrow', 'pyspark', 'dask'), None))",
}


@pytest.mark.parametrize("without", WITHOUT.values(), ids=WITHOUT)
def test_an_answer_comes_where_a_platform_lacks_something(without, tmp_path):
    several = "" if "affinity" in without or "cpu_count" in without else "os.sched_getaffinity = lambda _: range(4)\n"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    words = [sys.executable, "-c", ASKED.format(without=several + without)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.stdout == "answered\n", done.stderr


def test_rows_are_counted_the_same_by_one_thread_and_by_several(monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(in_memory, "PART", 64)
    monkeypatch.setattr(in_memory, "MANY", 64)
    monkeypatch.setattr(in_memory, "_processors", lambda: 3)
    table, asked = frame(), [CountRows(("colour", "odd"), (3, 2)), CountRows(("grade",), (3,))]
    several = open_source(table, SCHEMA).totals(asked)
    monkeypatch.setattr(in_memory.ThreadPoolExecutor, "submit", lambda *_: refuse(_))
    alone = open_source(table, SCHEMA).totals(asked)
    assert all(np.array_equal(a, b) for a, b in zip(several, alone, strict=True))


def test_processors_are_counted_everywhere(monkeypatch):
    assert in_memory._processors() >= 1
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert in_memory._processors() == os.cpu_count()
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert in_memory._processors() == 1
