"""P(linked) of pairs: what lowers it, what it never exceeds, and what the truth says of it."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from test_family_search import Oracle, names, pairwise

from dpcurate import Budget, Curator, Knowledge, fit, networks
from dpcurate.learn.measure_once import Constants
from dpcurate.learn.measure_once.arrows import no_interaction
from dpcurate.learn.measure_once.confidence import (
    BOUND,
    MOST_IF_WEAK,
    UNLIKELY,
    confidence,
    edge_probability,
)
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.decide import Decision, decide
from dpcurate.learn.measure_once.evidence import DependenceEvidence
from dpcurate.learn.measure_once.family_search import FamilySearch
from dpcurate.networks.worlds import random_dag


def families_of(evidence, knowledge=None):
    return FamilySearch.of(evidence, Constraints.of(names(len(evidence.measured)), knowledge), Constants())


def sure(evidence, decision=None, knowledge=None):
    families = families_of(evidence, knowledge)
    return confidence(decision or decide(families, Random(0)), families, no_interaction, Random(0))


class ExplainedAway(DependenceEvidence):
    """Like other evidence, but for X1 and X2 given a set that holds X3."""

    def __init__(self, evidence, value):
        self.evidence, self.value, self.measured = evidence, value, evidence.measured

    def one(self, column, other, given):
        explained = {column, other} == {0, 1} and 2 in given
        return self.value if explained else self.evidence.one(column, other, given)

    def row(self, column, given):
        return np.array([self.one(column, x, given) if x != column else 0.0 for x in range(len(self.measured))])


@pytest.mark.parametrize("seed", range(6))
def test_evidence_without_errors_is_sure_of_what_is_there_and_of_what_is_not(seed):
    dag = random_dag(8, degree=2.0, seed=seed)
    found = sure(Oracle(dag)).linked
    for a in range(8):
        for b in range(a):
            linked = frozenset((dag.nodes[a], dag.nodes[b])) in dag.edges
            assert found[a, b] > 0.9 if linked else found[a, b] < 0.05
    assert (found == found.T).all()


def test_an_edge_that_a_neighbour_explains_away_is_less_sure():
    """X1 - X2 beside X2 - X3: found at an order that never asks for X1 and X2 given X3."""
    plain = pairwise(4, X1X2=20.0, X2X3=20.0)
    decision = Decision(((1,), (), (1,), ()), (1, 0, 2, 3), sure(plain).linked)
    kept = [sure(ExplainedAway(plain, value), decision).linked[0, 1] for value in (20.0, 2.0, -4.0)]
    assert kept[0] > 0.97 > kept[1] > kept[2]
    assert kept[2] < 0.9


def test_more_evidence_is_surer_up_to_a_bound_and_never_certain():
    rising = [sure(pairwise(6, X1X2=x)).linked[0, 1] for x in (1.0, 2.0, 3.0, 20.0, 1e6)]
    assert rising[:4] == sorted(set(rising[:4]))
    assert rising[3] == rising[4] == edge_probability(BOUND, BOUND)
    assert 0.97 < rising[-1] < 0.98


def test_even_odds_are_even_and_the_parents_count_more():
    assert 0.4 < edge_probability(0.0, 0.0) < 0.5
    assert edge_probability(-BOUND, BOUND) < 0.5 < edge_probability(BOUND, -BOUND) < edge_probability(BOUND, BOUND)
    assert edge_probability(-50.0, -50.0) == edge_probability(-BOUND, -BOUND) < 0.02


def test_what_a_search_left_out_is_as_sure_as_the_evidence_and_what_its_walk_never_saw_is_unlikely():
    evidence = pairwise(6, X1X2=30.0)
    walked = np.where(np.arange(36).reshape(6, 6) % 7 == 1, 0.99, UNLIKELY / 2)
    found = sure(evidence, Decision(((),) * 6, tuple(range(6)), np.maximum(walked, walked.T))).linked
    assert found[0, 1] == edge_probability(BOUND, BOUND)
    assert found[0, 2] == UNLIKELY / 2


def test_what_knowledge_requires_is_certain_and_what_it_forbids_is_nothing():
    known = Knowledge.of(required_edges=[("X1", "X2")], forbidden_edges=[("X3", "X4")])
    evidence = pairwise(5, X3X4=0.0)
    evidence.measured[2, 3] = evidence.measured[3, 2] = False
    found = sure(evidence, knowledge=known).linked
    assert found[0, 1] == 1.0
    assert found[2, 3] == 0.0


def test_every_allowed_pair_has_both_numbers():
    world = networks.load("asia")
    curator = Curator(
        world.sample(20_000, seed=1), world.schema, budget=Budget(epsilon=1, delta=1e-10), insecure_seed=1
    )
    learned = fit(curator).learned
    assert len(learned.linked) == len(learned.direction) == 28
    for a, b in learned.direction:
        assert 0 <= learned.direction[a, b] <= 1
    edges = learned.skeleton.edges
    assert min(learned.linked[pair] for pair in edges) > max(
        p for pair, p in learned.linked.items() if pair not in edges
    )


class Weak(ExplainedAway):
    """Evidence that X1 and X2 may depend on each other only as products of the same columns do."""

    def weak(self):
        return np.isin(np.add.outer(np.arange(4), 10 * np.arange(4)), (1, 10))


def test_an_edge_that_products_may_explain_is_drawn_and_less_sure():
    plain = pairwise(4, X1X2=20.0, X3X4=20.0)
    found = sure(Weak(plain, 20.0)).linked
    assert 0.5 < found[0, 1] == found[1, 0] == MOST_IF_WEAK < found[2, 3]
    required = sure(Weak(plain, 20.0), knowledge=Knowledge(required_edges=[("X1", "X2")])).linked
    assert required[0, 1] == 1
