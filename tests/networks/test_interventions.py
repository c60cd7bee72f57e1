"""Worlds with columns set from outside."""

import numpy as np
import pytest

from dpcurate import networks
from dpcurate.errors import QueryError
from dpcurate.networks import random_dag, random_linear, random_mixed, random_nonlinear

DAG = random_dag(6, edges=8, seed=1)


def test_a_set_column_tells_nothing_of_its_causes_and_all_of_its_effects() -> None:
    asia = networks.load("asia")
    smoking = asia.do(smoke="yes")
    assert smoking["smoke"].parents == ()
    assert smoking.marginal(["lung"]) == pytest.approx([0.1, 0.9])
    sick = asia.do({"lung": "yes"})
    assert sick.marginal(["smoke"]) == pytest.approx(asia.marginal(["smoke"]))
    assert sick.marginal(["either"]) == pytest.approx([1, 0])
    assert sick.dag.arrows == asia.dag.arrows - {("smoke", "lung")}
    with pytest.raises(QueryError, match="no column 'smok' to set; did you mean 'smoke'"):
        asia.do(smok="yes")
    with pytest.raises(QueryError, match="no level 'maybe'"):
        asia.do(smoke="maybe")
    with pytest.raises(QueryError, match="needs a column and its value"):
        asia.do()


def test_a_linear_effect_is_what_rows_show() -> None:
    world = random_linear(DAG, seed=3)
    one, two = (world.do(X1=x).sample(50, seed=4) for x in (1.0, 2.0))
    for name in DAG.nodes:
        change = np.unique(np.round(two[name] - one[name], 9))
        assert change == pytest.approx(world.effect("X1", name))
    with pytest.raises(QueryError, match="no column 'X9'"):
        world.do(X9=1.0)


def test_a_nonlinear_world_keeps_what_is_not_below() -> None:
    world = random_nonlinear(DAG, seed=3)
    plain, done = world.sample(50, seed=4), world.do({"X1": 0.5}).sample(50, seed=4)
    assert set(done["X1"]) == {0.5}
    for name in DAG.parents("X1"):
        assert (plain[name] == done[name]).all()


def test_a_mixed_world_sets_levels_and_numbers() -> None:
    world = random_mixed(DAG, ordinals=0.34, categories=0.34, margins=("plain", "skewed", "cubic", "heavy"), seed=5)
    plain = world.sample(200, seed=6)
    for name, column in world.columns.items():
        value = plain[name][0]
        done = world.do({name: value}).sample(200, seed=6)
        assert len(set(done[name])) == 1
        assert done[name][0] == (value if column.kind != "number" else pytest.approx(value))
        below = {x for x in DAG.nodes if not (plain[x] == done[x]).all()}
        assert below - {name} <= {x for x in DAG.nodes if DAG.order().index(x) > DAG.order().index(name)}
        # the first row had this value anyhow, so nothing changes in it
        assert all(
            done[x][0] == (plain[x][0] if world.columns[x].kind != "number" else pytest.approx(plain[x][0]))
            for x in DAG.nodes
        )
    levels = next(name for name, column in world.columns.items() if column.kind == "category")
    with pytest.raises(QueryError, match="no level '99'"):
        world.do({levels: "99"}).sample(1, seed=1)


def test_counts_with_many_zeros_cannot_be_set() -> None:
    world = random_mixed(DAG, ordinals=0, categories=0, margins=("zeros",), seed=5)
    with pytest.raises(QueryError, match="many latent ones"):
        world.do(X1=3).sample(5, seed=1)
