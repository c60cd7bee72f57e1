"""The recipes on data: accuracy without noise, promises kept with it, published figures reproduced."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcurate import Budget, Curator, networks
from dpcurate.errors import BudgetExceeded, NotPrivate
from dpcurate.graphs.metrics import skeleton_rates
from dpcurate.learn.methods import EMPC, PC, SVTPC, CuratePC, PrivPC
from dpcurate.networks.worlds import random_dag, random_network
from dpcurate.private.ledger import Ledger
from dpcurate.private.noise import Seeded
from dpcurate.private.session import Session
from dpcurate.published import (
    Claim,
    CurateReading,
    PublishedCuratePC,
    PublishedEMPC,
    PublishedPC,
    PublishedPrivPC,
    PublishedSVTPC,
)
from dpcurate.queries import Laplace, Release, Tau
from dpcurate.schema import Categorical, Neighbours, Numeric, Schema
from helpers import Wild
from oracle import OracleQueryable

PROVED = [EMPC(), SVTPC(), PrivPC(), CuratePC()]
ON_TAU = [EMPC(), SVTPC(), PrivPC(statistic="tau"), CuratePC(statistic="tau")]
PUBLISHED = [PublishedEMPC(), PublishedSVTPC(), PublishedPrivPC(), PublishedCuratePC()]
SIX = ("cancer", "earthquake", "survey", "asia", "sachs", "child")


def world(name, rows=100_000, seed=1):
    network = networks.load(name)
    return network, network.sample(rows, seed=seed), replace(network.schema, rows=rows)


@pytest.mark.parametrize(("name", "least"), [*((n, 1.0) for n in SIX if n != "asia"), ("asia", 0.85)])
def test_pc_without_privacy_finds_the_networks(name, least):
    network, table, schema = world(name)
    found = PC().fit(Curator(table, schema, budget=Budget.unlimited()))
    assert skeleton_rates(found.graph, network.dag).f1 >= least


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("cancer", 0.85, 1), ("earthquake", 0.85, 1), ("survey", 1, 1), ("asia", 0.77, 0.94), ("sachs", 0.87, 0.95)],
)
def test_pc_with_the_published_kendall_test(name, low, high):
    network, table, schema = world(name)
    curator = Curator(table, schema, budget=Budget.unlimited())
    found = PublishedPC(alpha=0.05).fit(curator)
    assert low <= skeleton_rates(found.graph, network.dag).f1 <= high


@pytest.mark.slow(but=["cancer", "survey"])
@pytest.mark.parametrize("name", SIX)
def test_with_a_huge_budget_proved_methods_return_what_exact_pc_returns(name):
    _, table, schema = world(name, rows=20_000)
    exact = PC(test="kendall-proved", alpha=0.05).fit(Curator(table, schema, budget=Budget.unlimited()))
    for method in ON_TAU:
        curator = Curator(table, schema, budget=Budget(rho=1e14), insecure_seed=3)
        assert method.fit(curator).skeleton.edges == exact.skeleton.edges, method


WAYS = [
    *(method(statistic=name) for method in (PrivPC, CuratePC) for name in ("tau", "g", "chi-squared", "spearman")),
    *(method(statistic=name, rate=0.3) for method in (PrivPC, CuratePC) for name in ("tau", "chi-squared")),
    *(CuratePC(statistic=name, tune="released") for name in ("tau", "g")),
]


@pytest.mark.parametrize("method", [EMPC(), SVTPC(), *WAYS, CuratePC(max_order=1)], ids=str)
@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    columns=st.integers(2, 6),
    budget=st.sampled_from(
        [Budget(rho=1e-4), Budget(rho=0.3), Budget(epsilon=1, delta=0), Budget(epsilon=4, delta=1e-9)]
    ),
    rows=st.sampled_from([None, 50, 5000]),
)
def test_no_method_exceeds_its_budget_whatever_the_answers(method, seed, columns, budget, rows):
    schema = Schema(tuple(Categorical(f"c{i}", tuple(range(2 + i % 3))) for i in range(columns)), rows=rows)
    ledger = Ledger(budget)
    session = Session(Wild(seed), schema, Neighbours.ADD_REMOVE, ledger, Seeded(seed), allow_unproved=False)
    found = method.fit(session)
    assert 0 <= ledger.spent <= budget.ceiling
    assert sum(float(e.cost.within(budget)) for e in ledger.events) <= budget.ceiling * (1 + 1e-12)
    assert ledger.private
    assert set(found.skeleton.nodes) == set(schema.names)
    assert found.claimed is None


@pytest.mark.parametrize(
    ("method", "published"), list(zip(PROVED, PUBLISHED, strict=True)), ids=[type(m).__name__ for m in PROVED]
)
def test_proved_methods_need_no_consent_and_published_ones_do(method, published):
    _, table, schema = world("cancer", rows=5000)
    private = Curator(table, schema, budget=Budget(epsilon=1, delta=1e-10))
    method.fit(private)
    assert private.ledger.private
    assert private.remaining < private.ledger.budget.rho
    with pytest.raises(NotPrivate):
        published.fit(Curator(table, schema, budget=Budget(epsilon=1, delta=1e-10)))
    told = published.fit(Curator(table, schema, budget=Budget.unlimited(), insecure_seed=1))
    assert told.claimed is not None
    assert any("NOT PRIVATE" in note for note in told.notes)


def test_the_cost_of_fixed_noise_falls_as_rows_grow():
    costs = []
    for rows in (1000, 10_000, 100_000):
        _, table, schema = world("cancer", rows=rows)
        curator = Curator(table, schema, budget=Budget(rho=10))
        curator.ask(Release(Tau("Smoker", "Cancer"), Laplace(scale=0.01 * rows)))
        costs.append(float(curator.ledger.events[0].cost.epsilon))
    assert costs[0] == pytest.approx(10 * costs[1])
    assert costs[1] == pytest.approx(10 * costs[2])


@pytest.mark.slow
@pytest.mark.parametrize("method", PROVED, ids=lambda m: type(m).__name__)
def test_more_rows_help_at_a_fixed_budget(method):
    """At one epsilon the same noise matters less and less."""
    scores = []
    for rows in (1000, 100_000):
        network, table, schema = world("survey", rows=rows)
        f1 = [
            skeleton_rates(
                method.fit(Curator(table, schema, budget=Budget(epsilon=1, delta=1e-10), insecure_seed=s)).graph,
                network.dag,
            ).f1
            for s in range(8)
        ]
        scores.append(np.mean(f1))
    assert scores[1] > scores[0] + 0.1
    assert scores[1] > 0.85


@pytest.mark.slow(but=["CURATE", "Priv-PC", "SVT-PC"])
@pytest.mark.parametrize(
    ("method", "target", "authors", "deviation"),
    [
        (PublishedCuratePC(total=10, reading=CurateReading.script()), 9.0, 0.83, 0.10),
        (PublishedPrivPC(epsilon=0.426), 10.0, 0.70, 0.15),
        (PublishedSVTPC(epsilon=0.371), 10.0, 0.30, 0.25),
        (PublishedEMPC(epsilon=0.0367), 1.0, 0.89, 0.15),
    ],
    ids=["CURATE", "Priv-PC", "SVT-PC", "EM-PC"],
)
def test_published_variants_reproduce_their_authors_code_on_cancer(method, target, authors, deviation):
    """Figures measured from the authors' code; the deviation is that of one run."""
    network, table, schema = world("cancer")
    curator = Curator(table, schema, budget=Budget.unlimited(), insecure_seed=2)
    found = [method.fit(curator) for _ in range(30)]
    f1 = np.mean([skeleton_rates(f.graph, network.dag).f1 for f in found])
    assert np.mean([f.claimed for f in found]) == pytest.approx(target, rel=0.15)
    assert abs(f1 - authors) < 2 * deviation * np.sqrt(1 / 30 + 1 / 30) + 0.005


def test_published_curate_runs_on_a_secret_sample():
    _, table, schema = world("cancer")
    curator = Curator(table, schema, budget=Budget.unlimited(), insecure_seed=4)
    for reading in (CurateReading.printed(), CurateReading.script()):
        found = PublishedCuratePC(total=5, rate=0.5, reading=reading).fit(curator)
        assert 0 < found.claimed < 2 * found.nominal


def test_claims_follow_their_formulas():
    square, advanced = Claim(), Claim(1e-3, "expm1")
    assert square.total(4, 0.5) == pytest.approx(1 + np.sqrt(2 * np.log(1e14)))
    assert advanced.total(4, 0.5) == pytest.approx(0.5 * np.sqrt(8 * np.log(1e3)) + 2 * np.expm1(0.5))
    halves = 2 * (0.25 * np.sqrt(8 * np.log(2e3)) + np.expm1(0.25))
    assert advanced.total(4, 0.5, parts=2) == pytest.approx(halves)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [2, 25, 100])
def test_any_schema_from_2_to_100_columns_runs(columns):
    dag = random_dag(columns, degree=min(1.5, columns - 1), seed=2)
    network = random_network(dag, levels=(2, 4), concentration=1.0, seed=2)
    table = network.sample(2000, seed=1)
    table["income"] = np.linspace(0, 10, 2000)
    schema = Schema((*network.schema.columns, Numeric("income", 0, 10, bins=4)), rows=2000)
    order = 1 if columns < 50 else 0  # a hundred columns have a hundred thousand tests of order 1
    for method in (SVTPC(max_order=order), CuratePC(max_order=order)):
        found = method.fit(Curator(table, schema, budget=Budget(epsilon=2, delta=1e-6), insecure_seed=1))
        assert set(found.graph.nodes) == set(schema.names)


def test_repeated_runs_reuse_the_exact_statistics():
    _, table, schema = world("sachs", rows=20_000)
    curator = Curator(table, schema, budget=Budget.unlimited(), insecure_seed=1)
    reads = []
    read = curator._source.totals
    curator._source.totals = lambda row_sums: reads.extend(row_sums) or read(row_sums)
    method = PublishedSVTPC(epsilon=0.1)
    for _ in range(10):
        method.fit(curator)
    assert len(reads) == len(set(reads))


@pytest.mark.parametrize(("method", "most"), [(PC(), 30), (SVTPC(), 90), (CuratePC(), 90)], ids=["PC", "SVT", "CURATE"])
def test_tests_are_read_in_rounds(method, most):
    """Reads are as many as rounds: about the logarithm of an edge's tests for exact PC, else its tests."""
    _, table, schema = world("sachs", rows=20_000)
    budget = Budget.unlimited() if isinstance(method, PC) else Budget(rho=1e6)
    curator = Curator(table, schema, budget=budget, insecure_seed=1)
    reads = []
    read = curator._source.totals
    curator._source.totals = lambda row_sums: reads.append(len(row_sums)) or read(row_sums)
    found = method.fit(curator)
    longest = sum(
        max(Counter(e.pair for e in found.evidence if len(e.given) == order).values())
        for order in range(len(found.tests))
    )
    assert len(reads) <= min(most, longest)
    assert sum(found.tests) > 8 * len(reads)


def test_an_exact_search_is_one_event_a_round():
    _, table, schema = world("sachs", rows=20_000)
    curator = Curator(table, schema, budget=Budget.unlimited())
    PC().fit(curator)
    assert curator.ledger.events[0].about == "Tables(55 sets)"
    assert len(curator.ledger.events) <= 30


def test_when_the_budget_ends_inside_an_order_the_edges_not_tested_to_the_end_are_told():
    """All edges go through an order side by side, so those with sets left are unfinished."""
    dag = random_dag(10, degree=2, seed=1)
    full = CuratePC(statistic="tau").fit(Limited(dag, 10**9))
    late = sum(full.tests[:2]) - 3  # three tests before order 1 is over
    found = CuratePC(statistic="tau").fit(Limited(dag, late))
    assert len(found.evidence) == sum(found.tests) == late
    ((order, left),) = found.unfinished.items()
    assert order == 1
    told = [e for e in full.evidence if len(e.given) == 1]
    assert set(left) == {frozenset(e.pair) for e in told[-3:]}


class Limited(OracleQueryable):
    """An oracle that can be asked so often; a batch it cannot answer is refused whole."""

    def __init__(self, dag, answers):
        super().__init__(dag)
        self.answers = answers

    def ask(self, query):
        return self.ask_all([query])[0]

    def ask_all(self, queries):
        if len(queries) > self.answers:
            raise BudgetExceeded("no more")
        self.answers -= len(queries)
        return [OracleQueryable.ask(self, r) for r in queries]


def test_leakage_per_order_is_told():
    _, table, schema = world("survey", rows=20_000)
    curator = Curator(table, schema, budget=Budget(epsilon=1, delta=1e-10), insecure_seed=1)
    found = CuratePC().fit(curator)
    assert len(found.leaked) == len(found.tests)
    assert sum(found.leaked) == pytest.approx(curator.ledger.spent, rel=1e-6)
