"""Dask frames: the integers of one table, whatever its partitions hold, and only totals for the client."""

from __future__ import annotations

import numpy as np
import pandas as pd
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
from dpcurate.private.sources import InMemory, PushedDown, check_rows, dask_frames, open_source, pushed_down
from dpcurate.schema import Categorical, Numeric, Person, Schema

dask = pytest.importorskip("dask", reason="Dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="Dask's data frames are not installed")


def parted(*parts, meta=None):
    """A Dask frame of just these partitions."""
    return dd.from_map(lambda i: parts[i], range(len(parts)), meta=parts[0].iloc[:0] if meta is None else meta)


def every_form(table):
    texts = text_frame(table).replace({"grade": {"": None}})
    objects = {name: table[name].astype(object) for name in ("grade", "odd", "age")}
    other = table.assign(**objects)
    first, last = (t.assign(colour=t["colour"].astype("category")) for t in (table[:3], table[300:]))
    return {
        "with an empty one": parted(table[:200], table[:0], table[200:]),
        "stored in different ways": parted(first, other[3:300], last),
        "texts": dd.from_pandas(texts, npartitions=2),
    }


def test_rows_of_empty_cells_are_rows():
    rows_of_empty_cells_are_rows(lambda table: parted(table[:1], table[1:5], table[5:]))


@pytest.mark.slow(but=["levels"])
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_partitions_return_the_integers_of_one_table(schema):
    same_integers(every_form(frame()), schema)


def test_a_small_domain_is_read_once_and_a_large_one_in_few_passes(monkeypatch):
    table = dd.from_pandas(frame(), npartitions=3)
    held = open_source(table, PLAIN)
    assert isinstance(held, InMemory)
    assert held.made == 1
    monkeypatch.setattr(sources, "SMALL_DOMAIN", 4)
    monkeypatch.setattr(pushed_down, "SMALL_DOMAIN", 4)
    monkeypatch.setattr(pushed_down, "COVER_CELLS", 6)
    source, asked = open_source(table, PLAIN), row_sums(PLAIN)
    assert isinstance(source, PushedDown)
    assert source.made == 1
    assert source.passes(asked) == 2  # counts, then sums
    for row_sum, found, right in zip(asked, source.totals(asked), held.totals(asked), strict=True):
        source.check(row_sum)
        assert np.array_equal(found, right)
    assert source.made == 3
    assert source.passes(asked[:3]) == 0


@pytest.mark.slow
def test_the_client_gets_totals_and_no_rows():
    got = []

    def spy(graph, keys, **settings):
        found = dask.get(graph, keys, **settings)
        got.append(found)
        return found

    rows = frame(3000)
    with dask.config.set(scheduler=spy):
        source = open_source(dd.from_pandas(rows, npartitions=20), SCHEMA)
        source.totals(row_sums(SCHEMA)[:1] + row_sums(SCHEMA)[3:])
    assert len(got) == source.made == 3

    def size(x):
        return sum(map(size, x)) if isinstance(x, (list, tuple)) else x.size

    cells, intervals, features = 144, 2 * 64, 11 * 11 + 5 * 5 + 4
    assert [size(found) for found in got] == [
        1,
        cells + intervals,
        6 * 6 * 2 + 5 * 5 + 3 + features,
    ]  # rows, counts, sums


def test_totals_are_added_in_a_tree(monkeypatch):
    added, plain = [], dask_frames._sum

    def spy(found):
        added.append(len(found))
        return plain(found)

    monkeypatch.setattr(dask_frames, "_sum", spy)
    assert dask_frames._added([dask.delayed(i) for i in range(70)], lambda part, more: [np.array(part + more)], 1) == [
        2485
    ]
    assert sorted(added) == [1, 2, 6, *[8] * 9]


@pytest.mark.slow
def test_other_processes_count_the_same():
    schema = Schema(PLAIN.columns, person=PEOPLE.person)
    with dask.config.set(scheduler="processes", num_workers=2):
        source = open_source(dd.from_pandas(frame(), npartitions=2), schema)
    right = open_source(frame(), schema)
    for row_sum in row_sums(schema):
        assert np.array_equal(source.totals([row_sum])[0], right.totals([row_sum])[0])


# --- persons ------------------------------------------------------------------------------------------


@pytest.fixture
def unconverted():
    with dask.config.set({"dataframe.convert-string": False}):
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("unconverted")
def test_rows_of_a_person_in_many_partitions_are_capped_together():
    table = frame()
    names = np.array(["", "nan", "None", "1", "1.0", "é", None], dtype=object)
    texts = table.assign(id=names[table["id"] % len(names)])
    wide = table.assign(id=table["id"] + 2**53)  # told apart by whole numbers only
    for given in (texts, wide):
        source, right = open_source(dd.from_pandas(given, npartitions=3), PEOPLE), open_source(given, PEOPLE)
        for found, wanted in zip(source.totals(row_sums(PEOPLE)), right.totals(row_sums(PEOPLE)), strict=True):
            assert np.array_equal(found, wanted)
    narrow = parted(wide[:200].astype({"id": "uint64"}), wide[200:].astype({"id": "Int64"}))
    assert open_source(narrow, PEOPLE).totals(row_sums(PEOPLE)[:1]) == right.totals(row_sums(PEOPLE)[:1])
    category = texts.assign(id=texts["id"].astype("category"))
    right = open_source(texts, PEOPLE)
    found = open_source(parted(texts[:200], category[200:]), PEOPLE)
    assert found.totals(row_sums(PEOPLE)[:1]) == right.totals(row_sums(PEOPLE)[:1])


def ids(*values, dtype=object):
    return pd.DataFrame({"id": pd.Series(values, dtype=dtype), "a": [0] * len(values)})


@pytest.fixture(params=[True, False], ids=["objects made texts", "objects as they are"])
def convert(request):
    """Dask makes texts of objects unless told otherwise."""
    with dask.config.set({"dataframe.convert-string": request.param}):
        yield request.param


@pytest.mark.slow
@pytest.mark.usefixtures("unconverted")
@pytest.mark.parametrize("kind", IDS)
def test_persons_in_partitions_are_kept_apart(kind):
    def form(columns):
        table = pd.DataFrame(columns | {"id": pd.Series(columns["id"], dtype=object)})
        typed = table.astype({"id": "Int64" if kind == "whole" else "str"})
        category = typed.astype({"id": "category"})
        return parted(typed[:4], table[4:8], category[8:])

    persons_are_kept_apart(form, kind, leave_out=IDS[kind][:2])


MIXES = {
    "one partition of two kinds": (ids(7, 8), ids("7", 7)),
    "whole numbers as objects, then text": (ids(7, 8), ids("7")),
    "whole numbers, then text": (ids(7, dtype="int64"), ids("7", dtype="string")),
    "whole numbers, then text as objects": (ids(7, dtype="int64"), ids("7")),
    "text, then whole numbers": (ids("7"), ids(7, dtype="Int64")),
    "text, then categories of whole numbers": (ids("7"), ids(7, dtype="category")),
    "whole numbers and floats": (ids(7, 7.0), ids(8)),
    "the mix of the review": (ids(7, 8, 7.0, float("nan"), "A9"),),
    "a missing one makes floats": (ids(7, dtype="int64"), ids(7, None, dtype="float64")),
    "floats as objects": (ids("a"), ids(7.0)),
    "categories of floats": (ids("a"), ids(7.0, dtype="category")),
    "truth values": (ids(7, dtype="int64"), ids(True, dtype=bool)),
    "moments": (ids("a"), ids("2020-01-01", dtype="datetime64[ns]")),
}


@pytest.mark.slow
@pytest.mark.parametrize("parts", MIXES.values(), ids=MIXES)
def test_partitions_of_different_kinds_are_refused(parts, convert):
    persons_are_refused(parted(*parts))
    renamed = Schema(VISITS.columns, person=Person("who", 1))
    persons_are_refused(parted(*parts).rename(columns={"id": "who"}), renamed)
    persons_are_refused(dd.from_delayed([dask.delayed(p) for p in parts], meta=parts[0][:0], verify_meta=False))


def test_objects_are_refused_as_ids_if_dask_made_texts_of_them(convert):
    for mixed in (ids(7, 8, 7.0, float("nan"), "A9"), ids(7, "7", 8, "8")):
        table = dd.from_pandas(mixed, npartitions=2, sort=False)
        persons_are_refused(table)
        persons_are_refused(table.rename(columns={"id": "who"}), Schema(VISITS.columns, person=Person("who", 1)))
    fine = ids("7", None, "8", float("nan"), "7").assign(note=[1, "x", 2.5, None, b""])
    table = dd.from_pandas(fine, npartitions=2, sort=False)
    column = dd.from_pandas(fine["id"], npartitions=2, sort=False).to_frame().assign(a=0)
    category = table.assign(id=table["id"].astype("category"))
    for given in (table, column, category):
        if convert:
            persons_are_refused(given)
        else:
            assert open_source(given, VISITS).totals([CountRows((), ())]) == [3]
    whole = dd.from_pandas(ids(7, None, 8, 7, dtype="Int64"), npartitions=2, sort=False)
    assert open_source(whole, VISITS).totals([CountRows((), ())]) == [3]


def test_partitions_without_rows_or_ids_may_have_any_type(convert):
    parts = ids(7, dtype="int64"), ids(7.0, dtype="float64")[:0], ids("x")[:0], ids(None, None), ids(7, dtype="int8")
    parts += ids(None, dtype="float64"), ids(None, dtype="datetime64[ns]"), ids(None, dtype="string")
    assert open_source(parted(*parts), VISITS).totals([CountRows((), ())]) == [2]


# --- owners -------------------------------------------------------------------------------------------


def fails(_):
    raise ValueError("disk on fire")


def test_a_partition_that_cannot_be_read_is_the_owners_affair():
    table = frame()
    broken = dd.from_map(lambda i: table if i == 0 else fails(i), range(2), meta=table[:0])
    for schema in (SCHEMA, PLAIN, PEOPLE):
        with pytest.raises(OwnerError, match="disk on fire"):
            open_source(broken, schema)
    with pytest.raises(OwnerError, match="'dose'"):
        open_source(parted(table, table.drop(columns="dose"), meta=table[:0]), SCHEMA)
    with pytest.raises(OwnerError, match="disk on fire"):
        list(check_rows(broken, SCHEMA))


def test_owners_hear_of_what_is_no_table_of_theirs():
    table = dd.from_pandas(frame(), npartitions=2)
    with pytest.raises(SchemaError, match="did you mean 'grade'"):
        open_source(table, Schema((Categorical("grades", (0, 1)),)))
    for other in (table["grade"], table.to_delayed()[0], table[["grade"]].to_dask_array()):
        with pytest.raises(OwnerError, match="pass a Dask DataFrame"):
            open_source(other, SCHEMA)
    with pytest.raises(OwnerError, match="head"):
        draft(table)


def test_the_owners_check_adds_up_over_partitions():
    table = frame()
    for schema in (SCHEMA, PEOPLE):
        assert list(check_rows(every_form(table)["with an empty one"], schema)) == list(check_rows(table, schema))


def test_columns_named_by_numbers():
    table = pd.DataFrame({0: [0, 1, 1], 1: ["x", "y", "y"], 2: [object()] * 3})
    schema = Schema((Categorical("0", (0, 1)), Categorical("1", ("x", "y"))))
    assert open_source(dd.from_pandas(table, npartitions=2, sort=False), schema).totals(row_sums(schema)[:1]) == [3]


def test_a_discovery_is_that_of_the_table_in_memory():
    rng = np.random.default_rng(3)
    a = rng.normal(size=4000).clip(-3, 3)
    table = pd.DataFrame({"a": a, "b": (a + rng.normal(size=4000)).clip(-3, 3), "c": rng.random(4000) < 0.5})
    schema = Schema((Numeric("a", -3, 3, bins=4), Numeric("b", -3, 3, bins=4), Categorical("c", (False, True))))
    for given in (schema, Schema((*schema.columns[2:], Categorical("d", (0, 1))))):
        rows = table.assign(d=table["a"] > 0)
        one, two = (
            discover(t, given, epsilon=2.0, insecure_seed=4) for t in (rows, dd.from_pandas(rows, npartitions=3))
        )
        assert one.edges == two.edges
