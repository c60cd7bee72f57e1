"""The benchmarks' worlds: every family gives tables that fit their schema, and a truth about every pair."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.worlds import FAMILIES, World, faults, levels, numbers, tables

from dpcurate import Budget, Curator
from dpcurate.graphs.graph import Dag
from dpcurate.schema import Categorical, Schema


def test_no_two_families_have_one_name():
    assert len(FAMILIES) == sum(len(module.FAMILIES) for module in (levels, numbers, tables, faults))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_gives_tables_that_fit_their_schema(family):
    world = FAMILIES[family](1, 40)
    assert (world.family, world.seed, world.rows) == (family, 1, 40)
    assert tuple(world.table) == world.columns
    Curator(dict(world.table), world.schema, budget=Budget.unlimited())


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_seeds_give_equal_worlds_and_others_do_not(family):
    first, again, other = (FAMILIES[family](seed, 30) for seed in (3, 3, 4))
    assert first.schema == again.schema
    assert np.array_equal(first.adjacent, again.adjacent)
    assert _text(first) == _text(again) != _text(other)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_truth_is_of_one_piece(family):
    world = FAMILIES[family](5, 30)
    assert world.adjacent.shape == world.cause_of.shape == (len(world.columns),) * 2
    assert np.array_equal(world.adjacent, world.adjacent.T)
    assert (world.cause_of & world.cause_of.T).any() == family.startswith("cycles")
    assert world.adjacent.any() == (not family.startswith("independent"))
    assert (world.graph is None) == family.startswith("cycles")
    if world.graph is not None:
        assert world.adjacent.sum() == 2 * len(world.graph.edges)


def test_what_is_hidden_leaves_the_table_and_links_its_effects():
    dag = Dag.of("abc", [("b", "a"), ("b", "c")])
    schema = Schema(tuple(Categorical(name, ("0", "1")) for name in "abc"))
    world = World.of("fork", 0, dict.fromkeys("abc", np.array(["0", "1"])), schema, dag, hidden="b")
    assert world.columns == tuple(world.table) == ("a", "c")
    assert world.adjacent[0, 1]
    assert not world.cause_of.any()


@pytest.mark.parametrize("kind", faults.KINDS)
@pytest.mark.parametrize("name", faults.FAULTS)
def test_a_fault_joins_more_pairs_than_are_linked_and_never_fewer(name, kind):
    worlds = [faults.fault(seed, 30, name, kind) for seed in range(3)]
    for world in worlds:
        assert np.array_equal(world.inseparable, world.inseparable.T)
        assert not world.inseparable.diagonal().any()
        assert not (world.adjacent & ~world.inseparable).any()
    more = any((world.inseparable & ~world.adjacent).any() for world in worlds)
    assert more == (name in ("weak", "factors", "error", "selection", "cycles"))


def test_columns_measured_with_error_are_separated_by_nothing_but_the_empty_set():
    world = faults.fault(1, 100_000, "error", "numbers")
    correlated = np.abs(np.corrcoef([world.table[x] for x in world.columns])) > 0.03
    np.fill_diagonal(correlated, False)
    assert not (correlated & ~world.inseparable).any()
    assert (correlated & ~world.adjacent).sum() > 4


def _text(world: World) -> str:
    return str({name: list(map(str, cells)) for name, cells in world.table.items()})
