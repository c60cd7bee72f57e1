"""The DAG that is picked from a class: one of it, the likeliest way round, always the same."""

from __future__ import annotations

from random import Random

import pytest
from test_graph import random_dag

from dpcurate.errors import GraphError
from dpcurate.graphs.graph import Cpdag, Dag
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.orient import INSIDE, OUTSIDE, member


def unknown(a: str, b: str) -> None:
    return None


@pytest.mark.parametrize("seed", range(20))
def test_the_likely_dag_of_a_class_is_the_one_that_is_picked(seed: int) -> None:
    dag = random_dag(12, seed)
    picked = member(dag.cpdag(), lambda a, b: 0.7 if (a, b) in dag.arrows else 0.3)
    assert picked == dag
    assert picked.note.startswith(INSIDE if dag.cpdag().lines else "")


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_chances_it_is_one_of_the_class_and_the_surest_line_has_its_way(seed: int) -> None:
    cpdag, draw = random_dag(12, seed).cpdag(), Random(seed)
    probabilities = {(a, b): draw.random() for i, a in enumerate(cpdag.nodes) for b in cpdag.nodes[i + 1 :]}

    def way(a: str, b: str) -> float:
        return probabilities[a, b] if (a, b) in probabilities else 1 - probabilities[b, a]

    picked = member(cpdag, way)
    assert picked.cpdag() == cpdag
    assert member(cpdag, way) == picked
    lines = [tuple(line) for line in cpdag.lines]
    if lines:
        a, b = max(lines, key=lambda line: abs(way(*line) - 0.5))
        assert ((a, b) if way(a, b) > 0.5 else (b, a)) in picked.arrows


def test_lines_of_no_known_way_point_to_the_later_column() -> None:
    assert member(Cpdag.of("cab", lines=["ac", "ab"]), unknown) == Dag.of("cab", [("c", "a"), ("a", "b")])


def test_a_turn_that_would_make_a_collider_is_not_made() -> None:
    graph = Cpdag.of("abc", lines=["ab", "bc"])
    probabilities = {("a", "b"): 0.9, ("b", "c"): 0.2}
    picked = member(graph, lambda a, b: probabilities[a, b])
    assert picked == Dag.of("abc", [("a", "b"), ("b", "c")])
    assert picked.note == f"{INSIDE}: 2 of 2 edges had no direction and were given the likelier one that fits"


def test_a_collider_of_arrows_that_were_drawn_counts_too() -> None:
    graph = Cpdag.of("abc", [("a", "b")], ["bc"])
    assert member(graph, lambda a, b: 0.1) == Dag.of("abc", [("a", "b"), ("b", "c")])


def test_of_a_graph_that_is_no_class_only_cycles_are_avoided() -> None:
    square = Cpdag.of("abcd", lines=["ab", "bc", "cd", "da"])
    picked = member(square, lambda a, b: 0.9 if (a, b) != ("a", "d") else 0.2)
    assert picked.edges == square.edges
    assert {("a", "b"), ("b", "c"), ("c", "d")} <= picked.arrows
    assert picked.note.startswith(OUTSIDE)


def test_knowledge_is_stronger_than_chances() -> None:
    graph = Cpdag.of("abc", lines=["ab", "bc"])
    known = Knowledge.of(forbidden_arrows=[("a", "b")])
    assert ("b", "a") in member(graph, lambda a, b: 0.99, known).arrows
    assert ("a", "b") in member(graph, lambda a, b: 0.99).arrows
    with pytest.raises(GraphError, match="cycle"):
        member(Cpdag.of("abc", [("a", "b"), ("b", "c")], ["ac"]), unknown, Knowledge.of(tiers=["c", "a"]))


def test_a_dag_and_a_graph_without_lines_stay_as_they_are() -> None:
    dag = Dag.of("ab", [("b", "a")])
    assert member(dag, unknown) is dag
    assert member(Cpdag.of("ab", [("b", "a")]), unknown) == dag
    assert not member(Cpdag.of("ab", [("b", "a")]), unknown).note


def test_a_note_is_no_part_of_what_a_graph_says() -> None:
    plain, noted = Dag.of("ab", [("b", "a")]), Dag(("a", "b"), frozenset({("b", "a")}), "picked")
    assert plain == noted
    assert hash(plain) == hash(noted)
