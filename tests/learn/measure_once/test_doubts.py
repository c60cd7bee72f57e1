"""What is bought last where noise is larger: the contrasts that decide what is still in doubt."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from test_arrows import Known, path
from test_confidence import ExplainedAway, families_of
from test_family_search import Numbers, pairwise

from dpcurate import Budget, Curator, Knowledge, networks
from dpcurate.learn.measure_once import Constants, MeasureOnce, release_plan
from dpcurate.learn.measure_once.arrows import Weighed, no_interaction
from dpcurate.learn.measure_once.decide import Decision


def in_doubt(evidence, decision, interaction=no_interaction, knowledge=None):
    return release_plan.sets_in_doubt(decision, families_of(evidence, knowledge), interaction)


def pairs_and_triples(*columns):
    return sorted(u for size in (2, 3) for u in combinations(columns, size))


# --- pairs -------------------------------------------------------------------------------------------------------


def beside(value):
    """X1 - X2 - X3, and X4 apart; X3 leaves this much of the evidence for X1 - X2."""
    decision = Decision(((1,), (), (1,), ()), (1, 0, 2, 3), np.zeros((4, 4)))
    return ExplainedAway(pairwise(4, X1X2=max(value, 20.0), X2X3=60.0), value), decision, at_levels_of_x2


def at_levels_of_x2(asked):
    """X2 is surely a collider."""
    return [60.0 * (1 in given) for *_, given in asked]


def test_a_doubtful_edge_asks_for_itself_and_for_what_may_explain_it():
    assert in_doubt(*beside(-4.0)) == pairs_and_triples(0, 1, 2)


def test_a_sure_edge_asks_for_nothing():
    assert in_doubt(*beside(60.0)) == []


def test_what_may_not_be_measured_is_not_asked_for():
    evidence, *rest = beside(-4.0)
    evidence.measured[0, 2] = evidence.measured[2, 0] = False
    assert in_doubt(evidence, *rest) == [(0, 1), (1, 2)]


@pytest.mark.parametrize(("unsure", "asked"), [(0.001, True), (0.49, False)])
def test_how_unsure_a_pair_must_be(monkeypatch, unsure, asked):
    monkeypatch.setattr(release_plan, "UNSURE", unsure)
    assert bool(in_doubt(*beside(-4.0))) == asked


def test_a_required_edge_is_not_in_doubt():
    assert in_doubt(*beside(-4.0), knowledge=Knowledge(required_edges=[("X1", "X2")])) == []


# --- colliders ---------------------------------------------------------------------------------------------------


class Sure(Known):
    """X1 - X2 - X3 whatever is given; of X1 and X3 what is said."""

    def row(self, column, given):
        row = super().row(column, given)
        for a, b in ((0, 1), (1, 2)):
            if column in (a, b):
                row[b if column == a else a] = 60.0
        return row


@pytest.mark.parametrize(("with_it", "asked"), [(-5.0, True), (-7.9, True), (-8.1, False), (-1.9, False)])
def test_a_collider_is_in_doubt_while_its_log_odds_are_even(with_it, asked):
    evidence = Sure(3, {(0, 2, ()): -5.0, (0, 2, (1,)): with_it})
    assert in_doubt(evidence, path(3)) == (pairs_and_triples(0, 1, 2) if asked else [])


def test_what_comes_nearest_to_separating_the_ends_decides_with_the_one_between_and_without():
    assert Weighed(((), (3,), (4, 5)), without=[2.0, 9.0, 1.0], having=[2.0, 3.0, 7.0]).deciding == {3, 4, 5}
    assert Weighed(((), (3,), (4, 5)), without=[9.0, 2.0, 1.0], having=[2.0, 3.0, 1.0]).deciding == {3}


def test_a_doubtful_collider_asks_for_its_columns_with_those_that_decide():
    """X1 - X2 - X3, and X4, a neighbour of X1, which separates the ends best."""
    said = {(0, 2, (3,)): -9.0, (0, 2, (1, 3)): -9.0} | {(0, 3, s): 60.0 for s in ((), (1,), (2,), (1, 2))}
    decision = Decision(((), (0,), (1,), (0,)), tuple(range(4)), np.zeros((4, 4)))
    assert set(pairs_and_triples(0, 1, 2, 3)) <= set(in_doubt(Sure(4, said), decision))


# --- the release -------------------------------------------------------------------------------------------------


def asked(rho, **constants):
    door = Numbers(1, 20_000, rho)
    found = MeasureOnce(constants=Constants(effort=0, **constants)).fit(door)
    return door, found


def test_the_share_kept_for_doubts_follows_triples_and_nothing_else():
    for rho, shares in ((1e-4, [0.5, 0.5]), (0.02, [0.5, 0.35, 0.15]), (100.0, [0.5, 0.25, 0.25])):
        door, _ = asked(rho)
        assert [noise.rho / rho for _, noise in door.asked] == pytest.approx(shares)


def test_nothing_is_kept_for_doubts_where_noise_is_laplace():
    world = networks.load("survey")
    shares = {}
    for name, budget in (("pure", Budget(epsilon=4, delta=0)), ("zcdp", Budget(epsilon=1, delta=1e-10))):
        table = world.sample(100_000, seed=1)
        found = MeasureOnce().fit(Curator(table, world.schema, budget=budget, insecure_seed=1))
        assert "triples" in found.notes[0]
        shares[name] = [cost / sum(found.leaked) for cost in found.leaked]
    assert shares == {"pure": pytest.approx([0.5, 0.5]), "zcdp": pytest.approx([0.5, 0.35, 0.15])}


def test_where_nothing_is_in_doubt_the_same_is_bought_again(monkeypatch):
    monkeypatch.setattr("dpcurate.learn.measure_once.release_plan.sets_in_doubt", lambda *_: [])
    door, _ = asked(0.02)
    assert door.asked[2][0] == door.asked[1][0]
    assert sum(noise.rho for _, noise in door.asked) == pytest.approx(0.02)


def test_what_is_in_doubt_is_known_with_less_noise_than_the_rest(monkeypatch):
    monkeypatch.setattr("dpcurate.learn.measure_once.release_plan.sets_in_doubt", lambda *_: [(0, 1)])
    door, found = asked(0.02)
    assert door.asked[2][0].sets == ((), ("X1",), ("X2",), ("X1", "X2"))
    others = [v for u, v in found.released.variances.items() if len(u) == 2 and u != (0, 1)]
    assert found.released.variances[0, 1] < 0.7 * min(others)
