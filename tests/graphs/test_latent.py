"""The true PAG of a DAG with hidden and selected columns, against every ancestral graph there is."""

from __future__ import annotations

from random import Random

import pytest
from markov_class import KINDS, brute_pag, independences, walk

from dpcurate import networks
from dpcurate.errors import GraphError
from dpcurate.graphs.graph import Dag, Skeleton
from dpcurate.graphs.pag import Pag
from dpcurate.graphs.pag_orientation import (
    HIDDEN,
    HIDDEN_AND_SELECTED,
    PagMarks,
    PagRule,
    orient_pag,
    rule_1,
    rule_2,
    rule_3,
    rule_4,
    rule_5,
    rule_6,
    rule_7,
    rule_8,
    rule_9,
    rule_10,
)
from dpcurate.networks.interventions import ancestral_graph, true_pag, visible_skeleton

FEW = (0, 1, *range(3, 13))  # the graph of seed 2 is dense, and has very many marked graphs


def world(seed: int, visible: int, hidden: int, selected: int, degree: float) -> tuple[Dag, list[str], list[str]]:
    """A random DAG, and which of its nodes are hidden and selected: hidden ones with children, if there are."""
    random = Random(seed)
    total = visible + hidden + selected
    dag = networks.random_dag(total, edges=round(total * degree / 2), seed=seed)
    children = {n: sum(a == n for a, _ in dag.arrows) for n in dag.nodes}
    by_children = sorted(dag.nodes, key=lambda n: (-children[n], random.random()))
    unseen = by_children[:hidden]
    kept = sorted(by_children[hidden:], key=lambda n: (-len(dag.parents(n)), random.random()))[:selected]
    return dag, unseen, kept


@pytest.mark.parametrize("seed", FEW)
def test_the_pag_is_what_all_graphs_of_the_class_share(seed: int) -> None:
    dag, hidden, _ = world(seed, 5, 2, 0, 2.4)
    pag = true_pag(dag, hidden)
    assert pag == brute_pag(pag.nodes, independences(dag, pag.nodes), KINDS[:3])


@pytest.mark.parametrize("seed", FEW)
def test_the_same_where_rows_were_selected(seed: int) -> None:
    dag, hidden, selected = world(seed, 4, 1, 2, 2.8)
    pag = true_pag(dag, hidden, selected)
    assert pag == brute_pag(pag.nodes, independences(dag, pag.nodes, tuple(selected)))


@pytest.mark.parametrize("seed", FEW)
def test_every_circle_of_a_larger_pag_varies_and_no_other_mark_does(seed: int) -> None:
    dag, hidden, _ = world(seed, 4 + seed % 9, 1 + seed % 3, 0, 2.6)
    pag, met = true_pag(dag, hidden), walk(ancestral_graph(dag, hidden), 4000, Random(seed))
    for end, mark in pag.marks.items():
        assert met[end] == ({"tail", "arrow"} if mark == "circle" else {mark})


@pytest.mark.parametrize("seed", FEW)
def test_the_ancestral_graph_has_the_marks_of_the_pag(seed: int) -> None:
    dag, hidden, selected = world(seed, 8, 2, seed % 2, 2.6)
    mag, pag = ancestral_graph(dag, hidden, selected), true_pag(dag, hidden, selected)
    assert mag.edges == pag.edges
    assert all(mark in ("circle", mag.marks[end]) for end, mark in pag.marks.items())


def test_without_hidden_columns_arrows_of_the_cpdag_remain() -> None:
    dag = Dag.of("abc", [("a", "c"), ("b", "c")])
    assert true_pag(dag) == Pag.of("abc", [("a", "o->", "c"), ("b", "o->", "c")])


def test_a_hidden_common_cause_is_an_edge_without_a_tail() -> None:
    dag = Dag.of("habcd", [("h", "b"), ("h", "c"), ("a", "b"), ("d", "c")])
    assert true_pag(dag, "h") == Pag.of("abcd", [("a", "o->", "b"), ("b", "<->", "c"), ("d", "o->", "c")])


def test_unknown_and_doubly_used_columns_are_refused() -> None:
    dag = Dag.of("ab", [("a", "b")])
    with pytest.raises(GraphError, match="unknown node 'x'"):
        true_pag(dag, ["x"])
    with pytest.raises(GraphError, match="hidden and have chosen the rows"):
        true_pag(dag, ["a"], ["a"])


def without(rule: PagRule, rules: tuple[tuple[PagRule, ...], ...]) -> tuple[tuple[PagRule, ...], ...]:
    return tuple(tuple(other for other in group if other is not rule) for group in rules)


NEEDED = [(rule_1, 14), (rule_2, 32), (rule_3, 6), (rule_4, 5), (rule_9, 13), (rule_10, 204)]


@pytest.mark.parametrize(("rule", "seed"), NEEDED, ids=lambda x: getattr(x, "__name__", x))
def test_a_graph_that_needs_the_rule(rule: PagRule, seed: int) -> None:
    dag, hidden, _ = world(seed, 4 + seed % 9, 1 + seed % 3, 0, (2.6, 3.2)[seed % 2])
    pag, met = true_pag(dag, hidden), walk(ancestral_graph(dag, hidden), 8000, Random(seed))
    assert orient_pag(visible_skeleton(dag, hidden), rules=without(rule, HIDDEN)) != pag
    assert all(met[end] == {mark} for end, mark in pag.marks.items() if mark != "circle")
    assert all(len(met[end]) == 2 for end, mark in pag.marks.items() if mark == "circle")


def test_a_ring_of_selection_needs_rules_5_to_7() -> None:
    ring = ["ab", "bc", "cd", "da"]
    arrows = [(end, f"kept {pair}") for pair in ring for end in pair]
    selected = tuple(f"kept {pair}" for pair in ring)
    dag = Dag.of(("a", "b", "c", "d", "e", "f", *selected), [*arrows, ("a", "e"), ("e", "f")])
    pag = true_pag(dag, selected=selected)
    lines = [(a, "--", b) for a, b in ring]
    assert pag == Pag.of("abcdef", [*lines, ("e", "o--", "a"), ("f", "o--", "e")])
    assert pag == brute_pag(pag.nodes, independences(dag, pag.nodes, selected))
    skeleton = visible_skeleton(dag, selected=selected)
    for rule in (rule_5, rule_6, rule_7):
        assert orient_pag(skeleton, rules=without(rule, HIDDEN_AND_SELECTED)) != pag


def test_rule_8_by_hand() -> None:
    marks = PagMarks(Skeleton.of("abc", ["ab", "bc", "ac"]))
    marks.draw([("a", "b", "arrow"), ("b", "a", "tail"), ("b", "c", "arrow"), ("c", "b", "tail"), ("a", "c", "arrow")])
    assert rule_8(marks) == {("c", "a", "tail")}
    marks.draw([("b", "a", "arrow")])
    assert rule_8(marks) == set()
