"""The fit: which dependences a graph leaves unexplained, from released answers alone."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dpcurate
from dpcurate import Budget, Curator
from dpcurate.learn.measure_once import Constants, DependenceEvidence, MeasureOnce
from dpcurate.learn.measure_once.constants import FeatureConstants
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.decide import Decision
from dpcurate.learn.measure_once.family_search import FamilySearch
from dpcurate.learn.measure_once.feature_evidence import FeatureEvidence
from dpcurate.learn.measure_once.feature_release import buy_features
from dpcurate.learn.measure_once.fit_check import fit_of, likeliest_share
from dpcurate.networks import random_dag
from dpcurate.result.fit import GoodnessOfFit
from dpcurate.schema import Categorical, Numeric, Schema

SIZE = 8


def numbers(rows, seed, weak):
    """A linear world; `weak` is the size of an effect of every column on every later one to which it has no arrow."""
    random, dag = np.random.default_rng(seed), random_dag(SIZE, degree=1.8, seed=seed)
    values = {}
    for name in dag.order():
        values[name] = random.standard_normal(rows)
        for other in list(values)[:-1]:
            effect = 0.6 if (other, name) in dag.arrows else weak
            values[name] += effect * random.choice([-1, 1]) * values[other]
        values[name] /= values[name].std()
    return values, Schema(tuple(Numeric(name, -6, 6) for name in dag.nodes))


def levels(rows, seed, weak):
    """The same, but every column chooses one of two levels by logistic noise."""
    random, dag = np.random.default_rng(seed), random_dag(SIZE, degree=1.5, seed=seed)
    values = {}
    for name in dag.order():
        total = random.logistic(size=rows)
        for other in list(values)[:-1]:
            effect = 1.5 if (other, name) in dag.arrows else weak
            total += effect * random.choice([-1, 1]) * (values[other] - 0.5)
        values[name] = (total > 0).astype(int)
    return values, Schema(tuple(Categorical(name, ("0", "1")) for name in dag.nodes))


def learned(table, seed=0, **options):
    values, schema = table
    return MeasureOnce(**options).fit(Curator(values, schema, budget=Budget(rho=5.0), insecure_seed=seed))


@pytest.mark.slow
@pytest.mark.parametrize("make", [numbers, levels])
@pytest.mark.parametrize("latent", [False, True])
def test_weak_effects_everywhere_show_in_the_fit(make, latent):
    sufficient, weak = (
        learned(make(20_000, 0, effect), latent=latent) for effect in (0.0, 0.12 if make is levels else 0.05)
    )
    assert sufficient.fit.unexplained <= 0.09
    assert sufficient.directions.level == "readable"
    assert weak.directions.level == "unreadable"


def test_pairs_apart_and_edges_are_all_pairs():
    found = learned(numbers(5_000, 1, 0.0))
    assert found.fit.edges == len(found.skeleton.edges)
    assert found.fit.columns == SIZE
    assert found.fit.apart + found.fit.edges == SIZE * (SIZE - 1) // 2


class Planted(DependenceEvidence):
    """The first two columns of four are linked, the last two depend on each other, all others do not."""

    measured = ~np.eye(4, dtype=bool)

    def row(self, column, given):
        return np.array([-2.0 if {column, x} not in ({0, 1}, {2, 3}) else 4.0 for x in range(4)])

    def one(self, column, other, given):
        return float(self.row(column, given)[other])


def test_only_dependences_without_an_edge_are_unexplained():
    families = FamilySearch.of(Planted(), Constraints.of("abcd", None), Constants())
    decision = Decision(((), (0,), (), ()), (0, 1, 2, 3), np.zeros((4, 4)))
    fit = fit_of(decision, families)
    assert (fit.columns, fit.edges, fit.apart, fit.dependent) == (4, 1, 5, 1)


def test_pairs_that_knowledge_rules_out_claim_nothing():
    known = dpcurate.Knowledge.of(forbidden_edges=[("c", "d")])
    families = FamilySearch.of(Planted(), Constraints.of("abcd", known), Constants())
    decision = Decision(((), (0,), (), ()), (0, 1, 2, 3), np.zeros((4, 4)))
    assert fit_of(decision, families) == GoodnessOfFit(columns=4, edges=1, apart=4, dependent=0)


def test_the_likeliest_share_is_the_one_that_was_drawn():
    """Evidence of effects as large as the noise: one by one none shows, all together they do."""
    random = np.random.default_rng(0)
    for share in (0.0, 0.3, 0.8):
        dependent = random.random(2_000) < share
        z = random.standard_normal(2_000) * np.where(dependent, 2.0**0.5, 1.0)
        found, log_ratio = likeliest_share(0.25 * z**2 - 0.5 * np.log(2.0))
        assert found == pytest.approx(share, abs=0.1)
        assert (log_ratio > 3) == (share > 0)
    assert likeliest_share(np.zeros(0)) == (0.0, 0.0)
    assert likeliest_share(np.array([1e9]))[0] == pytest.approx(0.99)


def test_what_the_search_forgives_counts():
    values, schema = numbers(20_000, 0, 0.05)
    curator = Curator(values, schema, budget=Budget(rho=5.0), insecure_seed=0)
    released = buy_features(curator, curator.remaining, FeatureConstants()).released
    decision = Decision(((),) * SIZE, tuple(range(SIZE)), np.zeros((SIZE, SIZE)))
    fits = [
        fit_of(
            decision,
            FamilySearch.of(
                FeatureEvidence(released, (0.05, 0.12, 0.3), FeatureConstants(misfit=misfit)),
                Constraints.of(schema.names, None),
                Constants(),
            ),
        )
        for misfit in (0.0, 10.0)
    ]
    assert fits[0] == fits[1]
    assert fits[0].dependent > 10


def test_shares_of_nothing_are_zero():
    full = GoodnessOfFit(columns=3, edges=3, apart=0, dependent=0)
    assert full.unexplained == 0
    assert full.edges_per_column == 1


def test_a_result_has_its_fit_and_writes_it():
    values, schema = levels(5_000, 1, 0.0)
    found = dpcurate.discover(values, schema, epsilon=5)
    assert found.fit is found.learned.fit is not None
    told = json.loads(json.dumps(found.to_dict()))["fit"]
    assert told == found.fit.to_dict()
    assert told["unexplained"] == found.fit.dependent / found.fit.apart
    assert told["edges_per_column"] == len(found.learned.skeleton.edges) / SIZE


def test_a_method_that_does_not_measure_its_fit_has_none():
    values, schema = levels(2_000, 1, 0.0)
    found = dpcurate.discover(values, schema, epsilon=5, method="curate-pc")
    assert found.fit is None
    assert found.to_dict()["fit"] is None
