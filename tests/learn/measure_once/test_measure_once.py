"""The default method: what it may spend, what it may ask, what it knows of its noise, what it finds."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpcurate import Budget, Curator, Knowledge, networks
from dpcurate.errors import GraphError, QueryError
from dpcurate.graphs.metrics import skeleton_rates
from dpcurate.learn.measure_once import Constants, MeasureOnce
from dpcurate.learn.measure_once.blocks import helmert, rotate, subsets
from dpcurate.learn.measure_once.central_moments import CentralMoments, Released
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.contrast_evidence import ContrastEvidence
from dpcurate.learn.measure_once.family_search import FamilySearch
from dpcurate.learn.measure_once.order_search import SearchOrder
from dpcurate.learn.measure_once.release import noise_over_sampling
from dpcurate.networks.network import Network, Variable
from dpcurate.networks.worlds import random_dag, random_network
from dpcurate.private.ledger import Ledger
from dpcurate.private.noise import Seeded
from dpcurate.private.session import Session
from dpcurate.queries import Contrasts, Gaussian, Release
from dpcurate.schema import Categorical, Neighbours, Numeric, Schema
from helpers import Wild, sampled_session

QUICK = MeasureOnce(constants=Constants(effort=0))


def chain(levels=(3, 2, 4)):
    """c -> a, c -> b: a and b are independent given c, and only then."""
    k, ra, rb = levels
    rng = np.random.default_rng(5)
    c = Variable("c", tuple(f"l{i}" for i in range(k)), (), rng.dirichlet([2.0] * k, size=1))
    a = Variable("a", tuple(f"l{i}" for i in range(ra)), ("c",), rng.dirichlet([1.0] * ra, size=k))
    b = Variable("b", tuple(f"l{i}" for i in range(rb)), ("c",), rng.dirichlet([1.0] * rb, size=k))
    return Network("chain", (c, a, b))


def released(network, rows, rho, seed, sets=None):
    """What a session gives for the pairs (and more) of a network."""
    names = network.schema.names
    columns = range(len(names))
    sets = sets or [(), *((i,) for i in columns), *combinations(columns, 2)]
    ask = Release(Contrasts(tuple(tuple(names[i] for i in u) for u in sets)), Gaussian(rho=rho))
    answer = sampled_session(network, rows, seed).ask(ask)
    answers = dict(zip(sets, zip(answer.parts, answer.scales, strict=True), strict=True))
    return Released.nothing([c.size for c in network.schema.columns]).merged(answers)


def evidence(*args, **kwargs):
    return ContrastEvidence(CentralMoments.of(released(*args, **kwargs)), Constants())


# --- the evidence ---------------------------------------------------------------------------------------


def test_bases_are_orthonormal_and_turn_contrasts_into_fewer_numbers():
    for r in range(2, 9):
        h = helmert(r)
        assert h.T @ h == pytest.approx(np.eye(r - 1))
        assert h.sum(axis=0) == pytest.approx(np.zeros(r - 1))
    table = np.arange(12.0).reshape(3, 4)
    assert rotate(table, [helmert(3), helmert(4)]).shape == (2, 3)
    assert subsets((0, 1)) == ((0,), (1,), (0, 1))


def test_repeated_answers_are_merged_by_their_precision():
    levels, twice = (2, 2), np.array([[3.0, -3.0], [-3.0, 3.0]])
    one = Released.nothing(levels).merged({(): (np.array(100.0), 1.0), (0, 1): (twice, 2.0)})
    two = one.merged({(): (np.array(200.0), 3.0)})
    assert two.rows == pytest.approx((100 * 9 + 200) / 10)
    assert two.variances[()] == pytest.approx(0.9)
    assert two.variances[0, 1] == 4
    assert one.rows == 100  # a value, not an account


def check_null(statistics, freedom):
    """120 draws of R' K^-1 R behave like chi-squared: in the tail, in the middle and on average."""
    tails = stats.chi2.sf(statistics, freedom)
    assert stats.binomtest(int((tails < 0.05).sum()), 120, 0.05, alternative="greater").pvalue > 1e-4
    assert 0.35 < np.median(tails) < 0.65
    assert np.mean(statistics) == pytest.approx(freedom, abs=4 * np.sqrt(2 * freedom / 120))


def statistic(residuals):
    (values,), (null,), _ = residuals
    return float(values @ np.linalg.solve(null, values))


@pytest.mark.slow(but=["levels0-0.0001", "levels0-0.01", "levels0-100.0"])
@pytest.mark.parametrize("rho", [1e-4, 1e-2, 100.0])
@pytest.mark.parametrize("levels", [(3, 2, 4), (2, 2, 2)])
def test_the_null_of_an_order_one_test_knows_its_noise(rho, levels):
    """R' K^-1 R is chi-squared if a and b are independent given c, whatever the noise."""
    network = chain(levels)
    runs = [evidence(network, 20_000, rho, seed) for seed in range(120)]
    check_null([statistic(e.residuals([1], 2, (0,), ((0,),))) for e in runs], (levels[1] - 1) * (levels[2] - 1))


@pytest.mark.parametrize("rho", [1e-4, 1e-2, 100.0])
def test_the_null_of_an_order_zero_test_knows_margins_and_count(rho):
    a = Variable("a", ("x", "y", "z"), (), np.array([[0.9, 0.07, 0.03]]))
    b = Variable("b", ("u", "v"), (), np.array([[0.97, 0.03]]))
    runs = [evidence(Network("apart", (a, b)), 20_000, rho, seed) for seed in range(120)]
    check_null([statistic(e.residuals([0], 1, (), ())) for e in runs], 2)


def test_without_power_the_evidence_says_nothing_and_with_power_it_decides():
    network = chain()
    weak = evidence(network, 20_000, 1e-9, 3)
    assert abs(weak.row(2, (0,))[1]) < 0.5
    strong = evidence(network, 100_000, 1.0, 3)
    assert strong.row(2, ())[1] > 20
    assert strong.row(2, (0,))[1] < -1


# --- the search ---------------------------------------------------------------------------------------------


def test_scores_of_swapped_neighbours_agree_with_scoring_anew():
    network = networks.load("survey")
    constraints = Constraints.of(network.nodes, None)
    families = FamilySearch.of(evidence(network, 20_000, 0.1, 2), constraints, Constants())
    order = SearchOrder(families, range(6))
    for i in range(5):
        first, second = order.columns[i : i + 2]
        gain = families.change(first, order.before[first], second) - families.change(second, order.before[first], first)
        before = order.total()
        order.move(i, i + 1)
        assert order.total() == pytest.approx(before + gain)
        assert order.total() == pytest.approx(SearchOrder(families, order.columns).total())


# --- the promise --------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    columns=st.integers(2, 5),
    budget=st.sampled_from(
        [Budget(rho=1e-4), Budget(rho=0.3), Budget(epsilon=1, delta=0), Budget(epsilon=4, delta=1e-9)]
    ),
    neighbours=st.sampled_from(list(Neighbours)),
)
def test_it_never_exceeds_the_budget_whatever_the_answers(seed, columns, budget, neighbours):
    schema = Schema(tuple(Categorical(f"c{i}", tuple(range(2 + i % 3))) for i in range(columns)))
    ledger = Ledger(budget)
    session = Session(Wild(seed), schema, neighbours, ledger, Seeded(seed), allow_unproved=False)
    found = QUICK.fit(session)
    assert 0 < ledger.spent <= budget.ceiling
    assert ledger.private
    assert len(ledger.events) == len(found.tests) <= 3
    assert set(found.linked) == {frozenset(p) for p in combinations(schema.names, 2)}
    assert all(0 <= p <= 1 for p in found.linked.values())


class Spy:
    """A queryable that remembers which sets were measured."""

    def __init__(self, queryable):
        self._queryable, self.sets = queryable, []

    def __getattr__(self, name):
        return getattr(self._queryable, name)

    def ask(self, request):
        self.sets += request.statistic.sets
        return self._queryable.ask(request)


def test_knowledge_is_enforced_and_saves_budget():
    network = networks.load("asia")
    spy = Spy(Curator(network.sample(20_000, seed=1), network.schema, budget=Budget(rho=1.0), insecure_seed=1))
    knowledge = Knowledge.of(
        forbidden_edges=[("smoke", "lung"), ("asia", "xray")],
        required_edges=[("asia", "smoke")],
        required_arrows=[("dysp", "bronc")],
        forbidden_arrows=[("either", "xray")],
    )
    found = QUICK.fit(spy, knowledge)
    for pair in ({"smoke", "lung"}, {"asia", "xray"}):
        assert not any(pair <= set(u) for u in spy.sets)
        assert frozenset(pair) not in found.skeleton.edges
        assert frozenset(pair) not in found.linked
    assert frozenset(("asia", "smoke")) in found.skeleton.edges
    assert ("dysp", "bronc") in found.graph.arrows
    assert ("either", "xray") not in found.graph.arrows
    with pytest.raises(GraphError):
        QUICK.fit(spy, Knowledge.of(forbidden_edges=[("nobody", "lung")]))


def test_mixed_and_small_schemas_run():
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 80, 20_000)
    table = {
        "age": age,
        "sick": (rng.random(20_000) < age / 100).astype(int).astype(str),
        "coin": rng.integers(0, 2, 20_000),
    }
    schema = Schema((Numeric("age", 0, 100, bins=5), Categorical("sick", (0, 1)), Categorical("coin", (0, 1))))
    found = MeasureOnce().fit(Curator(table, schema, budget=Budget(epsilon=1, delta=1e-10), insecure_seed=1))
    assert found.skeleton.edges == {frozenset(("age", "sick"))}
    pair = Schema(schema.columns[:2])
    for budget in (Budget(epsilon=2, delta=0), Budget.unlimited(), Budget(rho=1e-9)):
        assert len(QUICK.fit(Curator(table, pair, budget=budget, insecure_seed=1)).graph.nodes) == 2
    with pytest.raises(QueryError, match="at least two columns"):
        QUICK.fit(Curator(table, Schema(schema.columns[:1]), budget=Budget(rho=1)))
    for bins, means in ((32, "contrasts"), (33, "features"), (None, "features")):
        wide = Curator(table, Schema((Numeric("age", 0, 100, bins=bins), schema.columns[1])), budget=Budget(rho=1))
        assert means in QUICK.fit(wide).notes[0]


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("budget", [Budget(rho=1e-9), Budget(epsilon=1, delta=0), Budget.unlimited()], ids=str)
def test_tables_with_nothing_to_see_give_an_answer_like_any_other(rows, budget):
    table = {"x": np.full(rows, 3.0), "y": np.full(rows, np.nan), "c": np.zeros(rows, dtype=int)}
    schema = Schema((Numeric("x", 0, 5), Numeric("y", 0, 5, missing="own"), Categorical("c", tuple(range(100)))))
    found = QUICK.fit(Curator(table, schema, budget=budget, insecure_seed=1))
    assert len(found.linked) == 3
    assert all(0 <= p <= 1 for p in found.linked.values())


def test_an_empty_table_gives_an_answer_like_any_other():
    schema = Schema(tuple(Categorical(n, (0, 1)) for n in "abc"))
    empty = {n: np.zeros(0, dtype=int) for n in "abc"}
    found = QUICK.fit(Curator(empty, schema, budget=Budget(epsilon=1, delta=1e-10)))
    assert len(found.linked) == 3


@pytest.mark.parametrize("missing", [(0, 1), (0, 2)])
def test_a_column_that_was_not_measured_with_both_explains_nothing(missing):
    sets = [u for u in ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)) if u != missing]
    here = evidence(chain(), 20_000, 1.0, 1, sets=sets)
    assert here.marginal[1, 2] > 0
    assert [here.one(1, 2, (0,)), here.one(2, 1, (0,))] == pytest.approx([here.marginal[1, 2]] * 2)


def test_a_run_can_be_repeated():
    network = networks.load("cancer")
    table = network.sample(5000, seed=1)
    one, two = (
        MeasureOnce().fit(Curator(table, network.schema, budget=Budget(rho=0.01), insecure_seed=9)) for _ in range(2)
    )
    assert one == two


# --- what it finds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "epsilon", "least"), [("survey", 1, 0.99), ("asia", 1, 0.85), ("cancer", 0.1, 0.7), ("sachs", 0.1, 0.85)]
)
def test_it_finds_the_networks_within_small_budgets(name, epsilon, least):
    """A mean over a few seeds; the full table is in docs/accuracy.md."""
    network, scores = networks.load(name), []
    for seed in range(3):
        table = network.sample(100_000, seed=500 + seed)
        curator = Curator(table, network.schema, budget=Budget(epsilon=epsilon, delta=1e-10), insecure_seed=seed)
        found = MeasureOnce().fit(curator)
        scores.append(skeleton_rates(found.graph, network.dag).f1)
    assert np.mean(scores) >= least


@pytest.mark.slow
def test_confidence_is_calibrated_on_worlds_it_was_not_tuned_on():
    """Brier score of P(edge) on random worlds beats that of the base rate by far."""
    truth, said = [], []
    for seed in range(900, 912):
        dag = random_dag(7, degree=2.2, seed=seed)
        network = random_network(dag, levels=(2, 4), concentration=0.8, seed=seed)
        curator = Curator(
            network.sample(50_000, seed=seed),
            network.schema,
            budget=Budget(epsilon=0.3, delta=1e-10),
            insecure_seed=seed,
        )
        found = MeasureOnce().fit(curator)
        for pair, p in found.linked.items():
            truth.append(pair in dag.edges)
            said.append(p)
    truth, said = np.array(truth, dtype=float), np.array(said)
    assert np.mean((said - truth) ** 2) < 0.35 * truth.mean() * (1 - truth.mean())
    sure = said > 0.9
    assert truth[sure].mean() > 0.85
    assert truth[said < 0.1].mean() < 0.12


def test_noise_that_rules_buys_pairs_again_and_quiet_buys_triples():
    network = networks.load("asia")

    def second(rho):
        spy = Spy(Curator(network.sample(50_000, seed=1), network.schema, budget=Budget(rho=rho), insecure_seed=1))
        QUICK.fit(spy)
        assert len(spy.sets) > 37
        return spy.sets[37:]

    assert {len(u) for u in second(1e-5)} == {0, 1, 2}
    assert 3 in {len(u) for u in second(10.0)}
    loud, quiet = (noise_over_sampling(released(network, 50_000, rho, 1)) for rho in (1e-5, 10.0))
    assert loud > 1 > quiet
    assert math.isfinite(loud)
