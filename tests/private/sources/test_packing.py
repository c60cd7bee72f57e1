"""Many tables in few passes: nothing is lost, bounds hold, and rows never decide."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcurate import Budget, Curator
from dpcurate.private.row_sums import CountRows, Rows
from dpcurate.private.sources import InMemory, PushedDown, open_source, packing, pushed_down
from dpcurate.private.sources.packing import Store, covers, cut, ordered, passes, turned
from dpcurate.queries import Counts, Gaussian, Release
from dpcurate.schema import Categorical, Numeric, Schema

SIZES = {f"c{i}": 2 + i % 3 for i in range(9)}


def table_over(names):
    return ordered(CountRows(tuple(names), tuple(SIZES[n] for n in names)))


some_tables = st.lists(st.sets(st.sampled_from(sorted(SIZES)), max_size=4).map(table_over), unique=True, max_size=40)


@given(some_tables, st.integers(1, 300))
def test_covers_hold_every_table_and_no_cover_is_too_large(row_sums, most):
    packed = covers(row_sums, most)
    inside = [k for held in packed.values() for k in held]
    assert sorted(inside, key=str) == sorted(row_sums, key=str)
    for cover, held in packed.items():
        assert list(cover.columns) == sorted(cover.columns)
        assert all(set(k.columns) <= set(cover.columns) for k in held)
        assert cover.cells <= max(most, max(k.cells for k in held))


@given(some_tables, st.integers(1, 300))
def test_passes_keep_to_their_bound(row_sums, most):
    made = passes(row_sums, most)
    assert [k for batch in made for k in batch] == row_sums
    assert all(len(batch) == 1 or sum(k.cells for k in batch) <= most for batch in made)


def test_all_pairs_of_many_columns_need_few_covers():
    row_sums = [CountRows((f"a{i:03}", f"a{j:03}"), (2, 2)) for i, j in combinations(range(200), 2)]
    assert len(covers(row_sums, 1 << 12)) < len(row_sums) / 20


@given(st.integers(0, 10**6), some_tables)
def test_tables_cut_out_of_covers_are_the_tables_themselves(seed, row_sums):
    rng = np.random.default_rng(seed)
    rows = Rows({n: rng.integers(0, r, 50, dtype=np.uint8) for n, r in SIZES.items()}, {}, None, 50)
    for cover, held in covers(row_sums, 200).items():
        whole = cover.apply(rows)
        assert all(np.array_equal(cut(whole, cover, k), k.apply(rows)) for k in held)


def test_a_table_is_turned_to_the_order_asked_for():
    row_sum = CountRows(("c2", "c0", "c1"), (4, 2, 3))
    rng = np.random.default_rng(1)
    rows = Rows({n: rng.integers(0, SIZES[n], 50, dtype=np.uint8) for n in row_sum.columns}, {}, None, 50)
    assert np.array_equal(turned(ordered(row_sum).apply(rows), row_sum), row_sum.apply(rows))


def test_a_store_finds_the_smallest_table_that_serves_and_forgets_the_least_used(monkeypatch):
    monkeypatch.setattr(packing, "STORE_BYTES", 400)
    store = Store()
    tables = {}
    for names in (("c0",), ("c0", "c1"), ("c0", "c1", "c2")):
        tables[names] = table_over(names)
        store.put(tables[names], np.zeros(tables[names].sizes, dtype=np.int64))
    assert store.find(table_over(("c1",))) == tables["c0", "c1"]
    assert store.find(table_over(("c3",))) is None
    assert tables["c0",] in store
    store.get(tables["c0",])
    store.put(table_over(("c3", "c4")), np.zeros(30, dtype=np.int64))
    assert tables["c0", "c1"] not in store
    store.put(table_over(("c5",)), np.zeros(10**4, dtype=np.int64))
    assert table_over(("c5",)) in store  # the last one stays, however large


# --- passes over a table that stays where it is ---------------------------------------------------

WIDE = Schema(tuple(Categorical(f"c{i}", tuple(range(4))) for i in range(14)))
PAIRS = [CountRows(pair, (4, 4)) for pair in combinations(WIDE.names, 2)]


def wide(rows, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.integers(0, 4, rows) for name in WIDE.names})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wide")
    for rows in (0, 3, 2000):
        wide(rows).astype("int64").to_parquet(folder / f"{rows}.parquet")
    return folder


def test_the_number_of_passes_is_public_and_independent_of_rows_and_tables(files, monkeypatch):
    monkeypatch.setattr(pushed_down, "COVER_CELLS", 1 << 10)
    monkeypatch.setattr(pushed_down, "RESULT_CELLS", 1 << 12)
    seen = set()
    for rows in (0, 3, 2000):
        source = open_source(files / f"{rows}.parquet", WIDE)
        assert isinstance(source, PushedDown)
        assert source.made == 1  # the owner's scan
        told = source.passes(PAIRS)
        found = source.totals(PAIRS)
        assert source.made == 1 + told
        assert source.passes(PAIRS) == 0  # kept
        source.totals(PAIRS[:7])
        assert source.made == 1 + told
        assert sum(int(t.sum()) for t in found) == rows * len(PAIRS)
        seen.add(told)
    assert seen == {4}


def test_one_pass_for_all_pairs_of_a_wide_table(files):
    source, held = open_source(files / "2000.parquet", WIDE), open_source(wide(2000), WIDE)
    assert source.passes(PAIRS) == 1
    for one, other in zip(source.totals(PAIRS), held.totals(PAIRS), strict=True):
        assert np.array_equal(one, other)


def test_a_small_domain_with_numbers_is_counted_once_for_all(tmp_path):
    schema = Schema((*(Categorical(f"c{i}", (0, 1, 2)) for i in range(4)), Numeric("x", 0, 1, bins=3)))
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({f"c{i}": rng.integers(0, 3, 300) for i in range(4)} | {"x": rng.random(300)})
    frame.to_parquet(tmp_path / "t.parquet")
    curator = Curator(tmp_path / "t.parquet", schema, budget=Budget(rho=1000))
    asked = [Release(Counts(pair), Gaussian(rho=0.1)) for pair in combinations(schema.names, 2)]
    assert curator.passes == 1
    assert curator.passes_for(asked) == 1
    for query in asked:
        curator.ask(query)
    assert curator.passes == 2


@pytest.mark.parametrize("size", [10, 5000])
def test_held_rows_count_the_same_in_parts_in_threads_and_in_covers(size, monkeypatch):
    frame = wide(size, seed=4)
    rows = Rows({n: frame[n].to_numpy().astype(np.uint8) for n in frame}, {}, None, size)
    wanted = [k.apply(rows) for k in PAIRS]
    for small in ({}, {"COVER_ROWS": 1, "MANY": 1}, {"PART": 700, "COVER_CELLS": 64}):
        for name, value in small.items():
            monkeypatch.setattr(f"dpcurate.private.sources.in_memory.{name}", value)
        source = InMemory(rows)
        for _ in range(2):
            assert all(np.array_equal(a, b) for a, b in zip(source.totals(PAIRS), wanted, strict=True))
        assert source.passes(PAIRS) == source.made == 0
