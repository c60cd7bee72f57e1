"""Directions of the default method: the evidence of three-way contrasts, and what is made of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from random import Random

import numpy as np
import pytest
from test_evidence import LEVELS, PAIRS, A, B, S, chained, conditional_covariances, evidence, exact
from test_family_search import Oracle, decided, names

from dpcurate import Budget, Curator, Knowledge, networks
from dpcurate.graphs.graph import Skeleton
from dpcurate.graphs.orient import orient
from dpcurate.learn.measure_once import Constants, MeasureOnce, contrast_evidence
from dpcurate.learn.measure_once.arrows import collider_log_odds, directed, no_interaction
from dpcurate.learn.measure_once.bayes_factor import Residuals, log_bayes_factors
from dpcurate.learn.measure_once.blocks import helmert, kron, rotate
from dpcurate.learn.measure_once.central_moments import CentralMoments, Released
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.contrast_evidence import ContrastEvidence
from dpcurate.learn.measure_once.decide import Decision, skeleton_of
from dpcurate.learn.measure_once.evidence import DependenceEvidence
from dpcurate.learn.measure_once.family_search import FamilySearch
from dpcurate.learn.measure_once.interactions import Crossed, interaction_residuals, observed
from dpcurate.learn.measure_once.method import SETS
from dpcurate.learn.measure_once.method import drawn as best_f1
from dpcurate.networks.worlds import random_dag

WITH_TRIPLE = (*PAIRS, (A, B, S))


def common_effect(rng):
    """a -> s <- b with an interaction, and t on its own: a and b are independent until s is known."""
    ab = np.multiply.outer(rng.dirichlet([3.0] * 3), rng.dirichlet([3.0] * 2))
    return np.einsum("ab,abs,t->abst", ab, rng.dirichlet([1.5] * 2, size=(3, 2)), rng.dirichlet([3.0] * 3))


# --- the three-way residual --------------------------------------------------------------------------------------


def residuals(released):
    found = evidence(released)
    setting = found.regressions.designs.settings[(S,), found.terms(A, B, (S,))]
    return interaction_residuals(found.regressions, [Crossed((A, B, S), setting)])


def test_a_triple_is_centred_with_its_pairs_as_released():
    """Of 300 rows the filter takes much from the pairs; the central moment is the true one all the same."""
    joint = common_effect(np.random.default_rng(1))
    abs_table = joint.sum(axis=3)
    sides = [helmert(r) - p @ helmert(r) for r, p in zip(LEVELS, (abs_table.sum((1, 2)), abs_table.sum((0, 2)),
             abs_table.sum((0, 1))), strict=False)]  # fmt: skip
    moments = evidence(exact(joint, 300.0, WITH_TRIPLE)).moments
    true = rotate(abs_table, sides)
    assert observed(moments, (A, B, S)) == pytest.approx(true, abs=1e-9)
    assert observed(moments, (S, B, A)) == pytest.approx(true.transpose(2, 1, 0), abs=1e-9)
    assert np.abs(moments.blocks[A, B, S].observed - true).max() > 1e-3


def test_the_residual_is_zero_given_a_common_cause_and_not_given_a_common_effect():
    for seed in range(3):
        cause, effect = (
            exact(world(np.random.default_rng(seed)), 1e9, WITH_TRIPLE) for world in (chained, common_effect)
        )
        assert np.abs(residuals(cause).values).max() < 1e-6
        assert np.abs(residuals(effect).values).max() > 1e-3


@pytest.mark.parametrize("loud", [(A, B, S), (A, B), (A, S), (B, S), (A,), (B,)])
def test_the_noise_of_the_triple_and_what_centres_it_enters_as_its_derivative_says(loud):
    released = exact(chained(np.random.default_rng(3)), 1e9, WITH_TRIPLE, loud)
    sums, step, slopes = released.sums[loud], 1e-5 * 1e9, []
    for i in range(sums.size):
        moved = np.array(sums)
        moved.flat[i] += step
        slopes.append((residuals(replace(released, sums={**released.sums, loud: moved})).values[0]) / step)
    true = np.array(slopes).T @ np.array(slopes)
    quiet = residuals(exact(chained(np.random.default_rng(3)), 1e9, WITH_TRIPLE)).null[0]
    stated = residuals(released).null[0] - quiet
    assert np.abs(true - stated).max() <= 0.02 * np.abs(true).max()


def test_the_sampling_part_of_the_triple_is_that_of_a_multinomial_table():
    rows, joint = 1e7, chained(np.random.default_rng(5))
    p = joint.sum(axis=(0, 1, 3))
    member = helmert(2) - p @ helmert(2)
    cells = [(w, a, b, member[i // 3]) for i, (w, a, b) in enumerate(conditional_covariances(joint))]
    true = sum(w * kron(kron(a, b), np.outer(s, s)) for w, a, b, s in cells)
    assert residuals(exact(joint, rows, WITH_TRIPLE)).null[0] * rows == pytest.approx(true, rel=0.01, abs=1e-4)


def test_what_was_not_measured_is_no_evidence():
    joint = common_effect(np.random.default_rng(1))
    assert evidence(exact(joint, 1e5, PAIRS)).interactions([(A, B, (S,))])[0] == 0
    measured = evidence(exact(joint, 1e5, WITH_TRIPLE))
    assert measured.interactions([(A, B, (S,))])[0] > 10
    assert measured.interactions([(A, B, ())])[0] == 0
    assert evidence(exact(chained(np.random.default_rng(1)), 1e5, WITH_TRIPLE)).interactions([(A, B, (S,))])[0] < -1


def test_an_interaction_of_too_many_numbers_says_nothing(monkeypatch):
    measured = evidence(exact(common_effect(np.random.default_rng(1)), 1e5, WITH_TRIPLE))
    monkeypatch.setattr(contrast_evidence, "MOST_CROSSED", 10)
    assert measured.interactions([(A, B, (S,))]) == [0]


def test_interactions_of_unlike_sizes_asked_for_together_are_those_asked_for_alone():
    """Columns of 2 to 6 levels, one to three of them given, with and without larger terms."""
    rng, levels = np.random.default_rng(5), (2, 6, 3, 2, 4)
    sets = [u for size in range(4) for u in combinations(range(5), size) if u != (0, 3, 4)]
    sums = {u: np.array(1e4) if not u else 60 * rng.normal(size=[levels[a] - 1 for a in u]) for u in sets}
    moments = CentralMoments.of(Released(levels, sums, dict.fromkeys(sets, 900.0)))
    asked = [
        (a, b, given)
        for a, b in combinations(range(5), 2)
        for size in range(4)
        for given in combinations([x for x in range(5) if x not in (a, b)], size)
    ]
    found = ContrastEvidence(moments, Constants())
    for together, key in zip(found.interactions(asked), asked, strict=True):
        assert together == pytest.approx(sum(_alone(found, *key)), rel=1e-9, abs=1e-9)


def _alone(found, a, b, given):
    for s in (x for x in given if found.moments.measured(a, b, x)):
        setting = found.regressions.designs.settings[given, found.terms(a, b, given)]
        values, null, effect = interaction_residuals(found.regressions, [Crossed((a, b, s), setting)])
        assert values.shape[1] == np.prod([found.moments.levels[x] - 1 for x in (a, b, s)])  # nothing is padded
        null = null + effect * (found.constants.misfit**2 if setting.lacks_terms else 0)
        yield log_bayes_factors(Residuals(values, null, effect), found.constants.effect_sizes)[0]


# --- what is made of it ------------------------------------------------------------------------------------------


class Known(DependenceEvidence):
    """Evidence of dependence by pair and set, -5 where nothing is said."""

    def __init__(self, size, said):
        self.said, self.measured = said, ~np.eye(size, dtype=bool)

    def one(self, column, other, given):
        return float(self.row(column, given)[other])

    def row(self, column, given):
        row = np.full(len(self.measured), -5.0)
        for (a, b, among), value in self.said.items():
            if column in (a, b) and set(among) == set(given):
                row[b if column == a else a] = value
        return row


def path(size):
    """X1 -> X2 -> ... as a decision."""
    return Decision(tuple((x - 1,) if x else () for x in range(size)), tuple(range(size)), np.zeros((size, size)))


def drawn(said, size, interaction=no_interaction, knowledge=None, decision=None):
    constraints = Constraints.of(names(size), knowledge)
    families = FamilySearch.of(Known(size, said), constraints, Constants())
    found = directed(decision or path(size), families, interaction, Random(0))
    return orient(skeleton_of(names(size), constraints, found), knowledge)


COLLIDER = {(0, 2, ()): -4.0, (0, 2, (1,)): 9.0}
CHAIN = {(0, 2, ()): 9.0, (0, 2, (1,)): -4.0}


def test_a_triple_apart_without_its_middle_is_a_collider_and_one_apart_given_it_is_not():
    assert drawn(COLLIDER, 3).arrows == {("X1", "X2"), ("X3", "X2")}
    assert drawn(CHAIN, 3).lines == {frozenset(("X1", "X2")), frozenset(("X2", "X3"))}


def test_three_way_evidence_decides_where_pairs_say_nothing():
    def shown(value):
        return lambda asked: [value if key == (0, 2, (1,)) else 0.0 for key in asked]

    assert drawn({}, 3, shown(6.0)).arrows == {("X1", "X2"), ("X3", "X2")}
    assert not drawn({}, 3, shown(-6.0)).arrows


def test_log_odds_are_the_difference_of_the_evidence():
    families = FamilySearch.of(Known(3, COLLIDER), Constraints.of(names(3), None), Constants())
    adjacent = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool)
    assert collider_log_odds(path(3), adjacent, families, no_interaction) == {(0, 1, 2): pytest.approx(13.0)}


@pytest.mark.parametrize(("separating", "log_odds"), [((3,), -2.0), ((1, 3), -2.0), ((1,), 40.0)])
def test_beside_a_set_that_separates_the_ends_other_sets_say_nothing(separating, log_odds):
    """X1 - X2 - X3 and X1 - X4 - X3: without X4 the ends depend on each other, with X2 given and without."""
    said = {(0, 2, ()): 50.0, (0, 2, (1,)): 90.0, (0, 2, (3,)): -3.0, (0, 2, (1, 3)): -5.0}
    adjacent = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]], dtype=bool)
    families = FamilySearch.of(Known(4, said), Constraints.of(names(4), None), Constants())
    odds = collider_log_odds(path(4), adjacent, families, no_interaction, {(0, 2): separating})
    assert odds[0, 1, 2] == pytest.approx(log_odds)


@pytest.mark.parametrize(("least", "log_odds"), [(-np.inf, -9.0), (-1.0, 0.0), (-20.0, -9.0)])
def test_that_a_common_effect_shows_no_interaction_can_count_for_little(least, log_odds):
    """Causes that only add up: they are as independent without their effect as with it."""
    families = FamilySearch.of(
        Known(3, {(0, 2, ()): -6.0, (0, 2, (1,)): -5.0}), Constraints.of(names(3), None), Constants()
    )
    adjacent = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool)

    def none_seen(asked):
        return [-10.0 * len(given) for *_, given in asked]

    odds = collider_log_odds(path(3), adjacent, families, none_seen, {(0, 2): ()}, least)
    assert odds == {(0, 1, 2): pytest.approx(log_odds)}


def test_what_the_one_between_takes_from_an_interaction_with_others_is_bounded_too():
    """At levels of the fourth column, which separates the ends, 2 speak for an interaction: with c 1 is left of it."""
    families = FamilySearch.of(Known(4, {}), Constraints.of(names(4), None), Constants())
    adjacent = np.zeros((4, 4), dtype=bool)
    adjacent[[0, 1, 1, 2], [1, 0, 2, 1]] = True
    odds = collider_log_odds(
        path(4), adjacent, families, lambda asked: [2.0 if given == (3,) else -10.0 for *_, given in asked],
        {(0, 2): (3,)}, -1.0,
    )  # fmt: skip
    assert odds == {(0, 1, 2): pytest.approx(-1.0)}


def test_an_interaction_that_is_seen_counts_in_full():
    families = FamilySearch.of(
        Known(3, {(0, 2, ()): -6.0, (0, 2, (1,)): -5.0}), Constraints.of(names(3), None), Constants()
    )
    adjacent = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool)
    odds = collider_log_odds(
        path(3), adjacent, families, lambda asked: [7.0 * len(given) for *_, given in asked], {(0, 2): ()}, -1.0
    )
    assert odds == {(0, 1, 2): pytest.approx(8.0)}


@pytest.mark.parametrize(("second", "third"), [(9.0, 2.0), (2.0, 9.0)])
def test_of_two_colliders_that_exclude_each_other_the_likelier_one_is_drawn(second, third):
    """X1 - X2 - X3 - X4: a collider at X2 points X3 away from X3, one at X3 points it there."""
    said = {(0, 2, ()): -4.0, (0, 2, (1,)): second, (1, 3, ()): -4.0, (1, 3, (2,)): third}
    graph = drawn(said, 4)
    assert (("X3", "X2") in graph.arrows) == (second > third)
    assert (("X2", "X3") in graph.arrows) == (third > second)


def test_edges_on_which_nothing_speaks_for_a_collider_stay_lines():
    graph = drawn({**COLLIDER, (3, 5, ()): 9.0}, 6, decision=two_paths())
    assert graph.arrows == {("X1", "X2"), ("X3", "X2")}
    assert graph.lines == {frozenset(("X4", "X5")), frozenset(("X5", "X6"))}


def two_paths():
    return Decision(((), (0,), (1,), (), (3,), (4,)), tuple(range(6)), np.zeros((6, 6)))


def test_knowledge_is_stronger_than_any_evidence():
    arrow, tiers = Knowledge.of(required_arrows=[("X2", "X1")]), Knowledge.of(tiers=[["X2"], ["X1", "X3"]])
    for knowledge in (arrow, tiers):
        families = FamilySearch.of(Known(3, COLLIDER), Constraints.of(names(3), knowledge), Constants())
        found = directed(backwards(), families, no_interaction, Random(0))
        assert 0 not in found.parents[1]
        assert ("X2", "X1") in drawn(COLLIDER, 3, knowledge=knowledge, decision=backwards()).arrows


def backwards():
    """X1 <- X2 -> X3."""
    return Decision(((1,), (), (1,)), (1, 0, 2), np.zeros((3, 3)))


def test_evidence_without_errors_keeps_the_edges_and_gives_the_true_class():
    for seed in range(30):
        dag = random_dag(4 + seed % 5, degree=1.5 + seed % 2 / 2, seed=seed)
        oracle, constraints = Oracle(dag), Constraints.of(dag.nodes, None)
        before = decided(oracle)
        after = directed(before, FamilySearch.of(oracle, constraints, Constants()), no_interaction, Random(0))
        skeleton = skeleton_of(dag.nodes, constraints, after)
        assert skeleton.edges == skeleton_of(dag.nodes, constraints, before).edges
        assert orient(skeleton) == dag.cpdag()


@pytest.mark.parametrize("network", ["survey", "cancer"])
def test_a_collider_that_pairs_do_not_show_is_found(network):
    """Causes of weak effects: their product is lost in sampling noise, the three-way contrast is not."""
    world = networks.load(network)
    budget = Budget(epsilon=5, delta=1e-10)
    for seed in (3, 5):
        found = MeasureOnce().fit(
            Curator(world.sample(100_000, seed=seed), world.schema, budget=budget, insecure_seed=seed)
        )
        heads = {"survey": {("A", "E"), ("S", "E")}, "cancer": {("Pollution", "Cancer"), ("Smoker", "Cancer")}}
        assert heads[network] <= found.graph.arrows


# --- arrows of the best-f1 graph --------------------------------------------------------------------------------------


JOINED = [((), 0.5, "->"), ((), 0.42, "->"), ((), 0.38, "--"), ("c", 0.85, "--"), ("c", 0.95, "->"), ("c", 0.05, "<-")]


@pytest.mark.parametrize(("separator", "p", "sign"), JOINED)
def test_an_arrow_needs_separating_sets_and_its_probability_together(separator, p, sign):
    """a - c - b: without c in the separating set of a and b two arrows into c, with it two lines."""
    skeleton = Skeleton.of("abc", [frozenset("ac"), frozenset("bc")], {frozenset("ab"): tuple(separator)})
    graph = best_f1(skeleton, {("a", "b"): 0.5, ("a", "c"): p, ("b", "c"): 0.5}, None, SETS)
    assert ("->" if ("a", "c") in graph.arrows else "<-" if ("c", "a") in graph.arrows else "--") == sign
    assert (("b", "c") in graph.arrows) == (not separator)


def test_what_knowledge_says_of_an_arrow_holds_against_both():
    skeleton = Skeleton.of("abc", [frozenset("ac"), frozenset("bc")], {frozenset("ab"): ()})
    graph = best_f1(skeleton, {("a", "c"): 1.0, ("b", "c"): 1.0}, Knowledge.of(forbidden_arrows=[("a", "c")]), SETS)
    assert graph.arrows == {("c", "a"), ("b", "c")}
