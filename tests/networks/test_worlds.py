"""Random graphs and the three kinds of mechanism on them."""

from __future__ import annotations

import pickle
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from dpcurate.errors import DomainTooLarge, GraphError, QueryError
from dpcurate.graphs.graph import Dag
from dpcurate.networks import (
    LinearWorld,
    NonlinearWorld,
    ParentEffect,
    random_dag,
    random_linear,
    random_network,
    random_nonlinear,
)
from dpcurate.networks.worlds import SHAPES, WIDTH

KINDS = ("er", "scale-free")
LEVEL = 1e-4
"""Chance that a right program fails a test of distribution; the seeds are fixed."""
ROWS = 100_000


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 25), st.floats(0, 1), st.sampled_from(KINDS), st.integers(0, 2**70))
def test_a_random_dag_has_exactly_the_edges_asked_for(nodes: int, share: float, kind: str, seed: int) -> None:
    edges = round(share * nodes * (nodes - 1) / 2)
    dag = random_dag(nodes, edges=edges, kind=kind, seed=seed)  # type: ignore[arg-type]
    assert dag.nodes == tuple(f"X{i + 1}" for i in range(nodes))
    assert len(dag.arrows) == len(dag.edges) == edges
    place = {name: i for i, name in enumerate(dag.order())}
    assert all(place[a] < place[b] for a, b in dag.arrows)
    assert dag == random_dag(nodes, edges=edges, kind=kind, seed=seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_degree_is_the_mean_number_of_neighbours(kind: str) -> None:
    dag = random_dag(30, degree=3.0, kind=kind, seed=1)  # type: ignore[arg-type]
    assert np.mean([len(dag.neighbours(x)) for x in dag.nodes]) == 3.0


def test_er_graphs_are_uniform_over_pairs_and_directions() -> None:
    graphs = [random_dag(5, edges=4, seed=seed) for seed in range(1500)]
    pairs = [sum(frozenset(p) in g.edges for g in graphs) for p in combinations(graphs[0].nodes, 2)]
    assert chisquare(pairs).pvalue > LEVEL
    arrows = [sum((a, b) in g.arrows for g in graphs) for a, b in permutations(graphs[0].nodes, 2)]
    assert chisquare(arrows).pvalue > LEVEL


def test_scale_free_graphs_have_hubs_and_few_parents() -> None:
    def largest(kind: str) -> float:
        graphs = [random_dag(60, edges=59, kind=kind, seed=s) for s in range(30)]  # type: ignore[arg-type]
        return float(np.mean([max(len(g.neighbours(x)) for x in g.nodes) for g in graphs]))

    assert largest("scale-free") > 1.5 * largest("er")
    dag = random_dag(60, edges=118, kind="scale-free", seed=3)
    assert max(len(dag.parents(x)) for x in dag.nodes) <= 3


@pytest.mark.parametrize(
    "asked",
    [
        {"nodes": 0, "edges": 0},
        {"nodes": 3},
        {"nodes": 3, "edges": 1, "degree": 1.0},
        {"nodes": 3, "edges": 4},
        {"nodes": 3, "edges": -1},
        {"nodes": 3, "degree": -1.0},
        {"nodes": 3, "degree": float("nan")},
        {"nodes": 3, "edges": 1, "kind": "tree"},
    ],
)
def test_graphs_that_cannot_be_are_refused(asked: dict[str, object]) -> None:
    with pytest.raises(QueryError):
        random_dag(**asked, seed=1)  # type: ignore[arg-type]


def test_random_networks_have_the_graph_the_levels_and_dirichlet_rows() -> None:
    dag = random_dag(12, edges=16, seed=2)
    network = random_network(dag, levels=(2, 5), seed=3)
    assert network.dag == dag
    assert {len(v.levels) for v in network.variables} == {2, 3, 4, 5}
    assert network == random_network(dag, levels=(2, 5), seed=3)
    flat = random_network(random_dag(1500, edges=0, seed=1), levels=(3, 3), concentration=0.5, seed=4)
    rows = np.vstack([v.table for v in flat.variables])
    # One entry of a symmetric Dirichlet(a) over k levels is Beta(a, (k - 1) a).
    assert kstest(rows[:, 0], "beta", args=(0.5, 1.0)).pvalue > LEVEL
    assert kstest(rows[:, 0], "beta", args=(1.0, 2.0)).pvalue < LEVEL


@pytest.mark.parametrize("asked", [{"levels": (1, 2)}, {"levels": (3, 2)}, {"concentration": 0.0}])
def test_networks_that_cannot_be_are_refused(asked: dict[str, object]) -> None:
    with pytest.raises(QueryError):
        random_network(random_dag(3, edges=2, seed=1), **asked, seed=1)  # type: ignore[arg-type]


def test_a_network_too_large_for_memory_is_refused_before_it_is_drawn() -> None:
    names = tuple(f"v{i}" for i in range(40))
    star = Dag(names, frozenset((x, "v0") for x in names[1:]))
    with pytest.raises(DomainTooLarge, match="fewer levels or edges"):
        random_network(star, seed=1)


def test_a_linear_world_has_its_exact_covariance() -> None:
    world = random_linear(random_dag(8, edges=12, seed=4), variances=(0.5, 2.0), seed=5)
    sample = np.column_stack(list(world.sample(ROWS, seed=6).values()))
    exact = world.covariance
    spread = np.sqrt((np.outer(np.diag(exact), np.diag(exact)) + exact**2) / ROWS)
    z = (sample.T @ sample / ROWS - exact) / spread
    assert np.abs(z).max() < 5
    # Power: the transposed weights, a common mistake, are far away.
    assert np.abs(exact - exact.T).max() < 1e-12
    turned = np.linalg.inv(np.eye(8) - world.weights)
    wrong = turned @ (world.variances[:, None] * turned.T)
    assert np.abs((sample.T @ sample / ROWS - wrong) / spread).max() > 50


def test_a_chain_has_the_covariance_worked_by_hand() -> None:
    weights = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, -1.0], [0.0, 0.0, 0.0]])
    world = LinearWorld(Dag(("a", "b", "c"), frozenset({("a", "b"), ("b", "c")})), weights, np.array([1.0, 3.0, 2.0]))
    np.testing.assert_allclose(world.covariance, [[1, 2, -2], [2, 7, -7], [-2, -7, 9]])


def test_weights_lie_where_the_arrows_are_and_in_their_range() -> None:
    dag = random_dag(20, edges=60, seed=7)
    world = random_linear(dag, weights=(0.5, 2.0), seed=8)
    held = world.weights[dag.adjacency() == 1]
    assert ((np.abs(held) >= 0.5) & (np.abs(held) <= 2.0)).all()
    assert (held > 0).any()
    assert (held < 0).any()
    assert (world.weights[dag.adjacency() == 0] == 0).all()
    assert (world.variances == 1).all()


def test_a_standardised_world_keeps_correlations_and_loses_the_scale() -> None:
    world = random_linear(random_dag(10, edges=20, seed=9), seed=10)
    plain = world.standardised()
    scale = np.sqrt(np.diag(world.covariance))
    np.testing.assert_allclose(plain.covariance, world.covariance / np.outer(scale, scale), atol=1e-10)
    assert plain.dag == world.dag


def test_a_nonlinear_world_is_its_effects_plus_normal_noise() -> None:
    world = random_nonlinear(random_dag(8, edges=14, seed=11), variances=(0.3, 1.5), seed=12)
    assert {e.shape for e in world.effects.values()} == set(SHAPES)
    sample = world.sample(20_000, seed=13)
    noise = {}
    for j, node in enumerate(world.dag.nodes):
        left = sample[node] - sum(world.effects[p, node](sample[p]) for p in world.dag.parents(node))
        noise[node] = left / np.sqrt(world.variances[j])
        assert kstest(noise[node], "norm").pvalue > LEVEL
    mixed = np.corrcoef(np.array(list(noise.values())))
    assert np.abs(mixed - np.eye(8)).max() < 5 / np.sqrt(20_000)


def test_shapes_stay_within_one() -> None:
    grid = np.linspace(-50, 50, 10_001)
    for shape in SHAPES:
        assert np.abs(ParentEffect(shape, 1.0)(grid)).max() <= 1
    assert np.array_equal(ParentEffect("bowl", 1.0)(grid), ParentEffect("bowl", 1.0)(-grid))


@pytest.mark.parametrize("make", [random_linear, random_nonlinear])
def test_bounds_follow_the_rule_and_hold_nearly_every_value(make) -> None:  # type: ignore[no-untyped-def]
    world = make(random_dag(10, edges=15, seed=14), seed=15)
    sample = world.sample(ROWS, seed=16)
    assert world.schema.names == world.dag.nodes
    for column in world.schema.columns:
        assert column.low == -column.high
        # A normal value lies beyond 4 standard deviations with chance 6.3e-5.
        assert (np.abs(sample[column.name]) > column.high).mean() < 1.5e-4
    assert world.schema == make(random_dag(10, edges=15, seed=14), seed=15).schema


def test_linear_bounds_are_four_exact_standard_deviations() -> None:
    world = random_linear(random_dag(4, edges=4, seed=1), seed=1)
    ends = [c.high for c in world.schema.columns]  # type: ignore[union-attr]
    np.testing.assert_allclose(ends, WIDTH * np.sqrt(np.diag(world.covariance)))


@pytest.mark.parametrize("make", [random_linear, random_nonlinear])
def test_worlds_depend_on_their_seeds_alone_and_can_be_pickled(make) -> None:  # type: ignore[no-untyped-def]
    world = make(random_dag(5, edges=5, seed=1), seed=2)
    first = world.sample(50, seed=3)
    for other in (make(random_dag(5, edges=5, seed=1), seed=2), pickle.loads(pickle.dumps(world))):
        again = other.sample(80, seed=3)
        assert all(np.array_equal(first[x], again[x][:50]) for x in world.dag.nodes)
    assert not np.array_equal(first["X1"], world.sample(50, seed=4)["X1"])
    with pytest.raises(ValueError, match="read-only"):
        world.variances[0] = 1


DAG = Dag(("a", "b"), frozenset({("a", "b")}))


@pytest.mark.parametrize(
    "make",
    [
        lambda: LinearWorld(DAG, np.zeros((3, 3)), np.ones(2)),
        lambda: LinearWorld(DAG, np.ones((2, 2)), np.ones(2)),
        lambda: LinearWorld(DAG, np.full((2, 2), np.nan), np.ones(2)),
        lambda: LinearWorld(DAG, np.zeros((2, 2)), np.zeros(2)),
        lambda: NonlinearWorld(DAG, {}, np.ones(2)),
        lambda: NonlinearWorld(DAG, {("b", "a"): ParentEffect("tanh", 1.0)}, np.ones(2)),
        lambda: ParentEffect("cube", 1.0),
        lambda: ParentEffect("tanh", float("inf")),
    ],
)
def test_worlds_that_contradict_themselves_are_refused(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(GraphError):
        make()


def test_ranges_must_rise() -> None:
    with pytest.raises(QueryError, match="rising range"):
        random_linear(DAG, weights=(2.0, 1.0), seed=1)
    with pytest.raises(QueryError, match="rising range"):
        random_nonlinear(DAG, variances=(-1.0, 1.0), seed=1)
