"""Dask frames: the integers of one table, whatever its partitions hold, and only totals for the client."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from contract import PEOPLE, PLAIN, SCHEMA, SCHEMAS, frame, kernels, same_integers, text_frame
from dpcurate import discover
from dpcurate.errors import OwnerError, SchemaError
from dpcurate.private import sources
from dpcurate.private.sources import Held, Queried, check_rows, open_source, partitions, queried
from dpcurate.schema import Categorical, Numeric, Schema, draft

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


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_partitions_return_the_integers_of_one_table(schema):
    same_integers(every_form(frame()), schema)


def test_a_small_domain_is_read_once_and_a_large_one_in_few_passes(monkeypatch):
    table = dd.from_pandas(frame(), npartitions=3)
    held = open_source(table, PLAIN)
    assert isinstance(held, Held)
    assert held.made == 1
    monkeypatch.setattr(sources, "SMALL_DOMAIN", 4)
    monkeypatch.setattr(queried, "SMALL_DOMAIN", 4)
    monkeypatch.setattr(queried, "COVER_CELLS", 6)
    source, asked = open_source(table, PLAIN), kernels(PLAIN)
    assert isinstance(source, Queried)
    assert source.made == 1
    assert source.passes(asked) == 2  # counts, then sums
    for kernel, found, right in zip(asked, source.totals(asked), held.totals(asked), strict=True):
        source.check(kernel)
        assert np.array_equal(found, right)
    assert source.made == 3
    assert source.passes(asked[:3]) == 0


def test_the_client_gets_totals_and_no_rows():
    got = []

    def spy(graph, keys, **settings):
        found = dask.get(graph, keys, **settings)
        got.append(found)
        return found

    rows = frame(3000)
    with dask.config.set(scheduler=spy):
        source = open_source(dd.from_pandas(rows, npartitions=20), SCHEMA)
        source.totals(kernels(SCHEMA)[:1] + kernels(SCHEMA)[3:])
    assert len(got) == source.made == 3

    def size(x):
        return sum(map(size, x)) if isinstance(x, (list, tuple)) else x.size

    assert [size(found) for found in got] == [1, 144, 6 * 6 * 2 + 5 * 5 + 3]  # rows, all cells, sums


def test_totals_are_added_in_a_tree(monkeypatch):
    added, plain = [], partitions._sum

    def spy(found):
        added.append(len(found))
        return plain(found)

    monkeypatch.setattr(partitions, "_sum", spy)
    assert partitions._added([dask.delayed(i) for i in range(70)], lambda part, more: [np.array(part + more)], 1) == [
        2485
    ]
    assert sorted(added) == [1, 2, 6, *[8] * 9]


def test_other_processes_count_the_same():
    schema = Schema(PLAIN.columns, person=PEOPLE.person)
    with dask.config.set(scheduler="processes", num_workers=2):
        source = open_source(dd.from_pandas(frame(), npartitions=2), schema)
    right = open_source(frame(), schema)
    for kernel in kernels(schema):
        assert np.array_equal(source.totals([kernel])[0], right.totals([kernel])[0])


# --- persons ------------------------------------------------------------------------------------------


def test_rows_of_a_person_in_many_partitions_are_capped_together():
    table = frame()
    names = np.array(["", "nan", "None", "1", "1.0", "é", None], dtype=object)
    texts = table.assign(id=names[table["id"] % len(names)])
    wide = table.assign(id=table["id"] + 2**53)  # told apart by whole numbers only
    for given in (texts, wide):
        source, right = open_source(dd.from_pandas(given, npartitions=3), PEOPLE), open_source(given, PEOPLE)
        for found, wanted in zip(source.totals(kernels(PEOPLE)), right.totals(kernels(PEOPLE)), strict=True):
            assert np.array_equal(found, wanted)
    narrow = parted(wide[:200].astype({"id": "uint64"}), wide[200:].astype({"id": "Int64"}))
    assert open_source(narrow, PEOPLE).totals(kernels(PEOPLE)[:1]) == right.totals(kernels(PEOPLE)[:1])
    category = texts.assign(id=texts["id"].astype("category"))
    right = open_source(texts, PEOPLE)
    found = open_source(parted(texts[:200], category[200:]), PEOPLE)
    assert found.totals(kernels(PEOPLE)[:1]) == right.totals(kernels(PEOPLE)[:1])


@pytest.mark.parametrize("other", [str, "float64", "datetime64[ns]", bool], ids=str)
def test_persons_stored_in_different_ways_are_refused(other):
    table = frame()
    with pytest.raises(OwnerError, match=r"different ways|floating-point"):
        open_source(parted(table[:200], table[200:].astype({"id": other})), PEOPLE)


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
    assert open_source(dd.from_pandas(table, npartitions=2, sort=False), schema).totals(kernels(schema)[:1]) == [3]


def test_a_discovery_is_that_of_the_table_in_memory():
    rng = np.random.default_rng(3)
    a = rng.normal(size=4000).clip(-3, 3)
    table = pd.DataFrame({"a": a, "b": (a + rng.normal(size=4000)).clip(-3, 3), "c": rng.random(4000) < 0.5})
    schema = Schema((Numeric("a", -3, 3), Numeric("b", -3, 3), Categorical("c", (False, True))))
    for given in (schema, Schema((*schema.columns[2:], Categorical("d", (0, 1))))):
        rows = table.assign(d=table["a"] > 0)
        one, two = (
            discover(t, given, epsilon=2.0, insecure_seed=4) for t in (rows, dd.from_pandas(rows, npartitions=3))
        )
        assert one.edges == two.edges
