"""Graph values and d-separation, against brute force and networkx."""

from __future__ import annotations

import pickle
import random
from itertools import chain, combinations, pairwise, product

import networkx as nx
import numpy as np
import pytest

from counting import steps
from dpcurate.errors import GraphError
from dpcurate.graphs.graph import Cpdag, Dag, Skeleton, ordered_edges

FOUR = ("a", "b", "c", "d")


def all_dags(nodes: tuple[str, ...]) -> list[Dag]:
    """Every DAG on the nodes: each pair has no arrow or one of two."""
    pairs = list(combinations(nodes, 2))
    found = []
    for choice in product((0, 1, 2), repeat=len(pairs)):
        arrows = [(a, b) if c == 1 else (b, a) for (a, b), c in zip(pairs, choice, strict=True) if c]
        if nx.is_directed_acyclic_graph(nx.DiGraph(arrows)):
            found.append(Dag.of(nodes, arrows))
    return found


def random_dag(size: int, seed: int, degree: float = 2.0) -> Dag:
    rng = random.Random(seed)
    names = [f"x{i}" for i in range(size)]
    order = rng.sample(names, size)
    chance = min(0.5, 2 * degree / max(1, size - 1))
    return Dag.of(names, [pair for pair in combinations(order, 2) if rng.random() < chance])


def subsets(names: list[str]) -> list[tuple[str, ...]]:
    return list(chain.from_iterable(combinations(names, k) for k in range(len(names) + 1)))


def moral_separated(dag: Dag, a: str, b: str, given: tuple[str, ...]) -> bool:
    """Lauritzen's criterion: apart in the moral graph of the smallest ancestral set."""
    directed = nx.DiGraph(list(dag.arrows))
    directed.add_nodes_from(dag.nodes)
    kept = set().union(*(nx.ancestors(directed, x) | {x} for x in (a, b, *given)))
    inside = directed.subgraph(kept)
    moral = nx.Graph(inside.to_undirected())
    for node in inside:
        moral.add_edges_from(combinations(inside.predecessors(node), 2))
    moral.remove_nodes_from(given)
    return not nx.has_path(moral, a, b)


def test_there_are_543_dags_on_four_nodes() -> None:
    assert len(all_dags(FOUR)) == 543


def test_d_separation_is_the_moral_graph_criterion_on_all_dags_of_four_nodes() -> None:
    for dag in all_dags(FOUR):
        for a, b in combinations(FOUR, 2):
            for given in subsets([x for x in FOUR if x not in (a, b)]):
                assert dag.d_separated(a, b, given) == moral_separated(dag, a, b, given), (dag, a, b, given)


@pytest.mark.parametrize("size", [5, 12, 30])
def test_d_separation_agrees_with_networkx(size: int) -> None:
    answers = set()
    for seed in range(20):
        dag = random_dag(size, seed)
        graph, rng = dag.to_networkx(), random.Random(seed)
        for _ in range(40):
            a, b, *given = rng.sample(dag.nodes, rng.randint(2, min(size, 8)))
            expected = nx.is_d_separator(graph, {a}, {b}, set(given))
            answers.add(expected)
            assert dag.d_separated(a, b, given) == expected
            assert dag.d_separated(b, a, given) == expected
    assert answers == {True, False}


def test_d_separation_visits_a_node_at_most_twice() -> None:
    """An oracle asks thousands of times: every node is passed once from above and once from below."""
    dag = random_dag(30, 1)
    for a, b in combinations(dag.nodes, 2):
        for c in dag.nodes[:10]:
            if c not in (a, b):
                assert steps(lambda: dag.d_separated(a, b, (c,))) < 30 + 2 * 4 * len(dag.nodes)  # noqa: B023


@pytest.mark.parametrize("given", [("a",), ("b", "c")])
def test_d_separation_refuses_overlap(given: tuple[str, ...]) -> None:
    with pytest.raises(GraphError, match="overlap"):
        Dag.of(FOUR, []).d_separated("a", "b", given)


def test_d_separation_names_the_closest_node() -> None:
    with pytest.raises(GraphError, match="unknown node 'smok'; did you mean 'smoke'"):
        Dag.of(["smoke", "lung"]).d_separated("lung", "smok")


def test_what_lies_upstream_ends_where_a_column_is_set() -> None:
    dag = Dag.of("abcdz", ["ab", "bc", "cd", "bd"])
    assert dag.upstream(["c", "z"]) == {"a", "b", "c", "z"}
    assert dag.upstream(["d"], ["b"]) == {"b", "c", "d"}
    assert dag.leads("a", "d")
    assert not dag.leads("d", "a")
    assert not dag.leads("z", "d")


def test_the_order_puts_parents_first_and_then_follows_the_nodes() -> None:
    assert Dag.of(FOUR, [("d", "a")]).order() == ("b", "c", "d", "a")
    for seed in range(10):
        dag = random_dag(20, seed)
        place = {name: i for i, name in enumerate(dag.order())}
        assert sorted(place) == sorted(dag.nodes)
        assert all(place[a] < place[b] for a, b in dag.arrows)


@pytest.mark.parametrize(
    ("arrows", "message"),
    [
        ([("a", "b"), ("b", "c"), ("c", "a")], "cycle: 'a' -> 'b' -> 'c' -> 'a'"),
        ([("a", "b"), ("b", "a")], "cycle"),
        ([("a", "a")], "two different nodes"),
        ([("a", "x")], "unknown node 'x'"),
        ([("a", "b"), ("a", "b")], "given twice"),
        ([("a", "b", "c")], "two different nodes"),
    ],
)
def test_a_dag_refuses_what_is_none(arrows: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        Dag.of(FOUR, arrows)
    with pytest.raises(GraphError, match=message):
        Dag(FOUR, arrows)  # type: ignore[arg-type]


def test_the_cycle_in_the_message_is_a_cycle() -> None:
    arrows = [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")]
    with pytest.raises(GraphError) as caught:
        Dag.of(FOUR, arrows)
    walk = str(caught.value).split(": ")[1].replace("'", "").split(" -> ")
    assert walk[0] == walk[-1]
    assert len(walk) == 3
    assert all(step in arrows for step in pairwise(walk))


@pytest.mark.parametrize("nodes", ["abc", ("a", "a"), ("a", ""), ("a", 1)])
def test_nodes_are_distinct_names(nodes: tuple[str, ...]) -> None:
    with pytest.raises(GraphError):
        Dag(nodes, frozenset())
    with pytest.raises(GraphError):
        Skeleton(nodes, frozenset())
    with pytest.raises(GraphError):
        Cpdag(nodes, frozenset(), frozenset())


def test_a_cpdag_refuses_cycles_and_double_edges() -> None:
    with pytest.raises(GraphError, match="cycle"):
        Cpdag.of(FOUR, [("a", "b"), ("b", "c"), ("c", "a")])
    with pytest.raises(GraphError, match="'a' and 'b' are joined by an arrow and by a line"):
        Cpdag.of(FOUR, [("b", "a")], [("a", "b")])
    with pytest.raises(GraphError, match="given twice"):
        Cpdag.of(FOUR, [], [("a", "b"), ("b", "a")])


@pytest.mark.parametrize(
    ("separators", "message"),
    [
        ({frozenset("ab"): ()}, "an edge and a separating set"),
        ({frozenset("ac"): ("c",)}, "holds one of the two"),
        ({frozenset("ac"): ("x",)}, "unknown node"),
        ({frozenset("a"): ()}, "two different"),
    ],
)
def test_a_skeleton_refuses_separators_that_mean_nothing(
    separators: dict[frozenset[str], tuple[str, ...]], message: str
) -> None:
    with pytest.raises(GraphError, match=message):
        Skeleton.of(FOUR, [("a", "b")], separators)


def test_graphs_are_equal_and_hash_by_value() -> None:
    first = Skeleton.of(FOUR, [("a", "b")], {frozenset("cd"): ["a"]})
    second = Skeleton.of(FOUR, [("b", "a")], {frozenset("dc"): ("a",)})
    assert first == second
    assert hash(first) == hash(second)
    assert first != Skeleton.of(FOUR, [("a", "b")])
    assert Dag.of(FOUR, [("a", "b")]) == Dag.of(FOUR, [("a", "b")])
    assert len({Dag.of(FOUR, [("a", "b")]), Dag.of(FOUR, [("a", "b")]), Dag.of(FOUR, [("b", "a")])}) == 2
    assert len({Cpdag.of(FOUR, [], ["ab"]), Cpdag.of(FOUR, [], ["ba"])}) == 1


def test_a_skeleton_does_not_change_with_the_mapping_it_was_made_from() -> None:
    separators = {frozenset("cd"): ("a",)}
    skeleton = Skeleton(FOUR, frozenset(), separators)
    separators.clear()
    assert skeleton.separator("d", "c") == ("a",)
    assert skeleton.separator("a", "c") is None
    with pytest.raises(TypeError):
        skeleton.separators[frozenset("ab")] = ()  # type: ignore[index]


def test_graphs_can_be_pickled() -> None:
    skeleton = Skeleton.of(FOUR, ["ab"], {frozenset("cd"): ("a",)})
    for graph in (skeleton, Dag.of(FOUR, [("a", "b")]), Cpdag.of(FOUR, [("a", "b")], ["cd"])):
        assert pickle.loads(pickle.dumps(graph)) == graph
    assert pickle.loads(pickle.dumps(Dag.of(FOUR, [("a", "b")]))).d_separated("a", "c")


def test_views_keep_the_node_order() -> None:
    cpdag = Cpdag.of("dcba", [("a", "b"), ("d", "b")], ["cb"])
    assert cpdag.parents("b") == ("d", "a")
    assert cpdag.neighbours("b") == ("d", "c", "a")
    assert cpdag.skeleton == Skeleton.of("dcba", ["ab", "bc", "bd"])
    assert cpdag.skeleton.skeleton.neighbours("b") == ("d", "c", "a")
    dag = Dag.of("dcba", [("a", "b"), ("d", "b"), ("b", "c")])
    assert dag.parents("b") == ("d", "a")
    assert dag.neighbours("b") == ("d", "c", "a")
    assert dag.skeleton == cpdag.skeleton
    assert ordered_edges(cpdag) == [("d", "->", "b"), ("c", "--", "b"), ("a", "->", "b")]
    assert str(cpdag) == "Cpdag of 4 nodes: d -> b, c -- b, a -> b"
    assert str(Dag.of("a")) == "Dag of 1 node: no edges"


def test_adjacency_has_rows_as_causes() -> None:
    matrix = Cpdag.of("abc", [("a", "b")], ["bc"]).adjacency()
    assert matrix.dtype == np.int8
    assert matrix.tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 0]]
    assert Dag.of("abc", [("c", "a")]).adjacency().tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 0]]
    assert Skeleton.of("ab", ["ab"]).adjacency().tolist() == [[0, 1], [1, 0]]


def test_networkx_graphs_have_all_nodes_and_a_line_both_ways() -> None:
    graph = Cpdag.of("abcd", [("a", "b")], ["bc"]).to_networkx()
    assert list(graph.nodes) == ["a", "b", "c", "d"]
    assert set(graph.edges) == {("a", "b"), ("b", "c"), ("c", "b")}
    assert not Skeleton.of("ab", ["ab"]).to_networkx().is_directed()
