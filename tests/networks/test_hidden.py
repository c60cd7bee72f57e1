"""Worlds with hidden columns."""

from __future__ import annotations

import numpy as np
import pytest

from dpcurate import networks
from dpcurate.errors import QueryError
from dpcurate.networks.interventions import true_pag

DAG = networks.random_dag(6, edges=7, seed=3)


@pytest.mark.parametrize(
    "world",
    [
        networks.load("asia"),
        networks.random_linear(DAG, seed=1),
        networks.random_nonlinear(DAG, seed=1),
        networks.random_mixed(DAG, seed=1),
    ],
    ids=lambda world: type(world).__name__,
)
def test_hidden_columns_are_in_the_graph_and_nowhere_else(world: networks.Network) -> None:
    first, second = world.dag.nodes[:2]
    hidden = world.hide(first)
    assert hidden.hide(second).hidden == world.hide(first, second).hidden == (first, second)
    rows, whole = hidden.sample(50, seed=4), world.sample(50, seed=4)
    assert tuple(rows) == hidden.schema.names == hidden.nodes == hidden.pag.nodes == world.dag.nodes[1:]
    assert all(np.array_equal(rows[name], whole[name]) for name in rows)
    assert hidden.dag == world.dag
    assert hidden.pag == true_pag(world.dag, [first])


def test_unknown_columns_and_all_of_them_are_refused() -> None:
    with pytest.raises(QueryError, match="no column 'smok' to hide; did you mean 'smoke'"):
        networks.load("asia").hide("smok")
    with pytest.raises(QueryError, match="every column would be hidden"):
        networks.load("asia").hide(*networks.load("asia").nodes)
