"""Metrics: hand-worked graphs, the published definition, and gadjid as a second opinion."""

from __future__ import annotations

import math
import random
import sys
from dataclasses import asdict
from itertools import combinations

import gadjid
import pytest
from test_graph import random_dag

from dpcurate.errors import DpcurateError, GraphError
from dpcurate.graphs import metrics
from dpcurate.graphs.graph import Cpdag, Dag, Skeleton
from dpcurate.graphs.metrics import (
    adjustment_distance,
    arc_rates,
    arrow_rates,
    confusion,
    is_class,
    mark_rates,
    score,
    shd,
    skeleton_rates,
)

TRUTH = Cpdag.of("abcd", [("a", "c"), ("b", "c")], ["cd"])
# one right arrow, one line for an arrow, one reversed into an arrow, one extra
GUESS = Cpdag.of("abcd", [("a", "c"), ("c", "d")], ["bc", "ab"])


def test_the_skeleton_counts_pairs() -> None:
    rates = skeleton_rates(GUESS, TRUTH)
    assert (rates.precision, rates.recall) == (3 / 4, 1.0)
    assert rates.f1 == pytest.approx(6 / 7)


def test_the_published_definition_counts_a_line_twice() -> None:
    # guess: ac cd bc cb ab ba; truth: ac bc cd dc; shared: ac cd bc
    rates = arc_rates(GUESS, TRUTH)
    assert (rates.precision, rates.recall) == (3 / 6, 3 / 4)
    assert rates.f1 == pytest.approx(0.6)


def test_marks_count_both_ends() -> None:
    # right of 8 guessed, 6 true: both on ac; b's tail on bc; c's tail on cd
    rates = mark_rates(GUESS, TRUTH)
    assert (rates.precision, rates.recall) == (4 / 8, 4 / 6)


def test_arrows_alone() -> None:
    rates = arrow_rates(GUESS, TRUTH)
    assert (rates.precision, rates.recall) == (1 / 2, 1 / 2)


def test_an_empty_guess_claims_nothing_false() -> None:
    empty = Cpdag.of("abcd")
    for rates in (skeleton_rates(empty, TRUTH), arc_rates(empty, TRUTH), mark_rates(empty, TRUTH)):
        assert (rates.precision, rates.recall, rates.f1) == (1.0, 0.0, 0.0)
    assert arc_rates(empty, empty).f1 == 1.0
    assert arc_rates(TRUTH, empty).precision == 0.0
    assert arc_rates(TRUTH, empty).recall == 1.0


def test_nothing_right_has_f1_zero() -> None:
    assert arc_rates(Dag.of("ab", [("a", "b")]), Dag.of("ab", [("b", "a")])).f1 == 0.0


def test_confusion_gives_every_pair_its_verdict() -> None:
    guess = Cpdag.of("abcde", [("a", "b"), ("c", "b"), ("d", "e")], ["cd", "ae"])
    truth = Cpdag.of("abcde", [("a", "b"), ("b", "c"), ("c", "d")], ["de", "ac"])
    found = [(edge.a, edge.estimated, edge.truth, edge.b, edge.verdict) for edge in confusion(guess, truth)]
    assert found == [
        ("a", "->", "->", "b", "right"),
        ("a", "", "--", "c", "missing"),
        ("a", "--", "", "e", "extra"),
        ("b", "<-", "->", "c", "reversed"),
        ("c", "--", "->", "d", "undirected"),
        ("d", "->", "--", "e", "directed"),
    ]
    assert shd(guess, truth) == 5


def test_confusion_follows_the_nodes_of_the_truth() -> None:
    guess, truth = Dag.of("ab", [("a", "b")]), Dag.of("ba", [("a", "b")])
    (edge,) = confusion(guess, truth)
    assert (edge.a, edge.estimated, edge.b, edge.verdict) == ("b", "<-", "a", "right")


@pytest.mark.parametrize("seed", range(8))
def test_shd_agrees_with_gadjid(seed: int) -> None:
    ours, theirs = random_dag(10, seed).cpdag(), random_dag(10, seed + 100).cpdag()
    _, mistakes = gadjid.shd(metrics._coded(theirs, theirs.nodes), metrics._coded(ours, theirs.nodes))
    assert shd(ours, theirs) == mistakes > 0


@pytest.mark.parametrize("seed", range(6))
def test_the_parent_distance_of_dags_is_the_structural_intervention_distance(seed: int) -> None:
    """SID, by its definition: parents of the guess as an adjustment set, checked by d-separation."""
    ours, theirs = random_dag(6, seed), random_dag(6, seed + 50)
    wrong = sum(not adjusts(theirs, a, b, ours) for a in ours.nodes for b in ours.nodes if a != b)
    assert adjustment_distance(ours, theirs, "parent") == pytest.approx(wrong / 30)


def adjusts(truth: Dag, a: str, b: str, guess: Dag) -> bool:
    """Whether the guess's parents of a give the right effect on b (Peters and Buehlmann 2015)."""
    below = descendants(truth, a)
    given = guess.parents(a)
    if b in given:
        return b not in below
    on_paths = {x for x in below if x == b or b in descendants(truth, x)}
    harmful = set().union(*(descendants(truth, x) | {x} for x in on_paths))
    if harmful & set(given):
        return False
    first_steps = {(a, x) for x in on_paths if (a, x) in truth.arrows}
    return Dag(truth.nodes, truth.arrows - first_steps).d_separated(a, b, given)


def descendants(dag: Dag, node: str) -> set[str]:
    found = {b for a, b in dag.arrows if a == node}
    return found.union(*(descendants(dag, child) for child in found))


def test_a_perfect_guess_has_perfect_scores() -> None:
    dag = random_dag(8, 5)
    found = asdict(score(dag.cpdag(), dag))
    assert {found.pop(name) for name in ("shd", "ancestor_distance", "parent_distance")} == {0}
    assert set(found.values()) == {1.0}


def test_scores_compare_markov_classes() -> None:
    chain, turned = Dag.of("abc", [("a", "b"), ("b", "c")]), Dag.of("abc", [("b", "a"), ("c", "b")])
    assert score(chain, turned).cpdag_f1 == 1.0
    assert score(chain, turned).shd == 0
    assert shd(chain, turned) == 2


def test_scores_hold_what_the_parts_say() -> None:
    found = score(GUESS, TRUTH)
    assert (found.skeleton_precision, found.cpdag_recall, found.arrow_recall) == (3 / 4, 3 / 4, 1 / 2)
    assert (found.mark_recall, found.shd) == (4 / 6, 3)
    assert found.cpdag_f1 == pytest.approx(0.6)


def test_node_order_does_not_matter() -> None:
    rng = random.Random(1)
    ours, theirs = random_dag(9, 1), random_dag(9, 2)
    mixed = Dag.of(rng.sample(ours.nodes, 9), ours.arrows)
    assert score(mixed, theirs) == score(ours, theirs)


def test_an_estimate_that_is_no_cpdag_has_no_adjustment_distance() -> None:
    # No DAG has this class: the arrow would be reversible.
    single = Cpdag.of("ab", [("a", "b")])
    assert not is_class(single)
    assert score(single, Dag.of("ab", [("a", "b")])).ancestor_distance is None
    with pytest.raises(GraphError, match="the estimated graph is the CPDAG of no DAG"):
        adjustment_distance(single, Dag.of("ab", [("a", "b")]))


def test_without_gadjid_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gadjid", None)
    dag = Dag.of("ab", [("a", "b")])
    with pytest.raises(DpcurateError, match="pip install gadjid"):
        adjustment_distance(dag, dag)
    assert score(dag, dag).parent_distance is None


def test_graphs_of_different_nodes_are_refused() -> None:
    with pytest.raises(GraphError, match=r"the estimated graph has a node 'smok' .*did you mean 'smoke'"):
        shd(Dag.of(["smok", "lung"]), Dag.of(["smoke", "lung"]))
    with pytest.raises(GraphError, match="the true graph has a node 'c'"):
        skeleton_rates(Skeleton.of("ab"), Skeleton.of("abc"))


def test_every_class_passes_and_random_marks_fail() -> None:
    for seed in range(10):
        cpdag = random_dag(8, seed).cpdag()
        assert is_class(cpdag)
        for a, b in combinations(cpdag.nodes, 2):
            if frozenset((a, b)) in cpdag.lines:
                pointed = Cpdag(cpdag.nodes, cpdag.arrows | {(a, b)}, cpdag.lines - {frozenset((a, b))})
                assert not is_class(pointed)
    assert not math.isnan(score(random_dag(8, 0), random_dag(8, 1)).cpdag_f1)
