"""Exact score search: scores as the textbooks print them, graphs found exactly, knowledge held, budgets refused."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from random import Random

import numpy as np
import pytest
from scipy.stats import multivariate_t

from dpcurate import Budget, Curator, Knowledge, Schema, discover, networks
from dpcurate.errors import BudgetExceeded, NotPrivate, QueryError
from dpcurate.learn.measure_once.blocks import bits
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.order_search import (
    BestParents,
    SearchOrder,
    climbed_on,
    equivalent_order,
    lawful_order,
)
from dpcurate.learn.methods import OrderSearch
from dpcurate.learn.score.exact_search import BIC, BDeu, BGe, GaussianBIC, ParentSearch, TableScores, row_count
from dpcurate.schema import Categorical, Numeric

LEVELS = (2, 3, 2)
FAMILIES = [(0, ()), (1, ()), (1, (0,)), (2, (0, 1)), (0, (1, 2))]
CHAIN, FORK, BACKWARD = ((), (0,), (1,)), ((1,), (), (1,)), ((1,), (2,), ())
COLLIDER = ((), (0, 2), ())


def unlimited(table, schema):
    return Curator(table, schema, budget=Budget.unlimited(), insecure_seed=0)


def sampled(name, rows=100_000, seed=3):
    world = networks.load(name)
    return world, unlimited(world.sample(rows, seed=seed), world.schema)


@pytest.fixture(scope="module")
def codes():
    """200 rows in which c depends on a and b, and one combination never occurs."""
    draw = np.random.default_rng(0)
    a, b = draw.integers(0, 2, 200), draw.integers(0, 3, 200)
    a[b == 2] = 0
    return np.column_stack([a, b, (a + b + (draw.random(200) < 0.2)) % 2])


@pytest.fixture(scope="module")
def curator(codes):
    schema = Schema(tuple(Categorical(n, tuple(range(r))) for n, r in zip("abc", LEVELS, strict=True)))
    return unlimited({n: codes[:, i].tolist() for i, n in enumerate("abc")}, schema)


@pytest.fixture(scope="module")
def numbers():
    draw = np.random.default_rng(1)
    a, b = draw.normal(size=(2, 40))
    x = np.column_stack([a, b, a - 0.5 * b + draw.normal(size=40)])
    return (x - x.mean(axis=0)) / x.std(axis=0)


def searched(scores, size=3, knowledge=None, max_parents=6):
    return ParentSearch(scores, Constraints.of([f"x{i}" for i in range(size)], knowledge), max_parents)


def all_scores(curator, numbers):
    correlation = np.corrcoef(numbers.T)
    tables = [TableScores(curator, score, 200) for score in (BIC(200), BDeu(1.0), BDeu(10.0))]
    return [searched(s) for s in (*tables, GaussianBIC(correlation, 40), BGe(correlation, 40))]


# --- scores ---------------------------------------------------------------------------------------


def counts_of(codes, y, parents):
    """N_jk for every configuration j of the parents and level k of y, by looking at every row."""
    for j in product(*(range(LEVELS[p]) for p in parents)):
        here = [row for row in codes if all(row[p] == v for p, v in zip(parents, j, strict=True))]
        yield [sum(row[y] == k for row in here) for k in range(LEVELS[y])]


@pytest.mark.parametrize(("y", "parents"), FAMILIES)
def test_bic_is_the_log_likelihood_less_half_a_log_for_each_parameter(codes, curator, y, parents):
    families = searched(TableScores(curator, BIC(200), 200))
    strata = list(counts_of(codes, y, parents))
    fit = sum(n * math.log(n / sum(cells)) for cells in strata for n in cells if n)
    price = math.log(200) / 2 * (LEVELS[y] - 1) * len(strata)
    assert families.family(y, parents) == pytest.approx(fit - price, abs=1e-8)


@pytest.mark.parametrize("size", [1.0, 10.0])
@pytest.mark.parametrize(("y", "parents"), FAMILIES)
def test_bdeu_is_the_product_of_gamma_functions(codes, curator, y, parents, size):
    families = searched(TableScores(curator, BDeu(size), 200))
    strata = list(counts_of(codes, y, parents))
    prior = size / len(strata)
    each, expected = prior / LEVELS[y], 0.0
    for cells in strata:
        expected += math.lgamma(prior) - math.lgamma(prior + sum(cells))
        expected += sum(math.lgamma(each + n) - math.lgamma(each) for n in cells)
    assert families.family(y, parents) == pytest.approx(expected, abs=1e-8)


def predicted(x, freedom):
    """Log density of the rows, each by Student's t given those before it: no formula of BGe in it."""
    size, weight, mean, matrix, total = x.shape[1], 1.0, np.zeros(x.shape[1]), np.eye(x.shape[1]) / 2, 0.0
    for row in x:
        left = freedom - size + 1
        total += multivariate_t.logpdf(row, mean, matrix * (weight + 1) / (weight * left), df=left)
        matrix = matrix + weight / (weight + 1) * np.outer(row - mean, row - mean)
        mean = (weight * mean + row) / (weight + 1)
        weight, freedom = weight + 1, freedom + 1
    return total


@pytest.mark.parametrize(("y", "parents"), FAMILIES)
def test_bge_is_the_density_of_the_rows_predicted_one_after_another(numbers, y, parents):
    families = searched(BGe(np.corrcoef(numbers.T), 40))
    # Of 3 columns with alpha_w = 5 a set of l has alpha_w - 3 + l degrees of freedom (Kuipers et al. 2014).
    expected = predicted(numbers[:, [*parents, y]], 3 + len(parents))
    expected -= predicted(numbers[:, list(parents)], 2 + len(parents)) if parents else 0.0
    assert families.family(y, parents) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("y", "parents"), FAMILIES)
def test_gaussian_bic_is_that_of_a_regression(numbers, y, parents):
    families = searched(GaussianBIC(np.corrcoef(numbers.T), 40))
    design = np.column_stack([np.ones(40), numbers[:, list(parents)]])
    rest = numbers[:, y] - design @ np.linalg.lstsq(design, numbers[:, y], rcond=None)[0]
    expected = -20 * math.log(rest @ rest / 40) - math.log(40) / 2 * (len(parents) + 2)
    assert families.family(y, parents) == pytest.approx(expected, abs=1e-8)


def test_equivalent_graphs_score_the_same_and_others_do_not(curator, numbers):
    for families in all_scores(curator, numbers):
        chain, fork, backward, collider = (
            sum(families.family(y, parents) for y, parents in enumerate(graph))
            for graph in (CHAIN, FORK, BACKWARD, COLLIDER)
        )
        assert fork == pytest.approx(chain, abs=1e-7)
        assert backward == pytest.approx(chain, abs=1e-7)
        assert abs(collider - chain) > 0.1


def test_scores_asked_together_are_those_asked_one_by_one(curator, numbers):
    for families, fresh in zip(all_scores(curator, numbers), all_scores(curator, numbers), strict=True):
        row = families.with_one_more(2, (0,), np.array([False, True, False]))
        assert row[1] == pytest.approx(fresh.family(2, (0, 1)), abs=1e-9)
        assert np.isnan(row[[0, 2]]).all()  # not asked for


# --- the search -----------------------------------------------------------------------------------


@pytest.mark.parametrize("score", ["bic", "bdeu"])
@pytest.mark.parametrize("name", ["cancer", "earthquake", "survey", "asia", "sachs"])
def test_it_finds_the_networks_exactly_arrows_included(name, score):
    world, curator = sampled(name)
    assert OrderSearch(score=score).fit(curator).graph == world.cpdag


def test_it_finds_child_exactly():
    world, curator = sampled("child")
    assert OrderSearch(starts=1, patience=3).fit(curator).graph == world.cpdag


@pytest.mark.parametrize("score", ["bic", "bge"])
def test_it_finds_linear_worlds_exactly(score):
    for seed in range(3):
        world = networks.random_linear(networks.random_dag(8, degree=2, seed=seed), seed=seed)
        curator = unlimited(world.sample(50_000, seed=1), world.schema)
        assert OrderSearch(score=score).fit(curator).graph == world.dag.cpdag()


def test_the_order_of_columns_does_not_matter():
    world, _ = sampled("sachs")
    table = world.sample(20_000, seed=5)
    found = [
        OrderSearch().fit(unlimited(table, replace(world.schema, columns=columns))).graph
        for columns in (world.schema.columns, world.schema.columns[::-1])
    ]
    assert found[0].arrows == found[1].arrows
    assert found[0].lines == found[1].lines


@pytest.mark.slow
def test_climbing_from_equivalent_graphs_helps():
    world, curator = sampled("child", rows=20_000)
    rows = row_count(curator)
    scores = TableScores(curator, BIC(rows), rows)
    gained = []
    for seed in range(4):
        families = ParentSearch(scores, Constraints.of(world.schema.names, None), 6)
        random = Random(seed)
        order = SearchOrder(families, lawful_order(families.constraints, random))
        order.climb(random)
        gained.append(climbed_on(order, order.families.constraints, random, 3).total() - order.total())
    assert min(gained) >= 0
    assert max(gained) > 1


def test_orders_of_equivalent_graphs_are_all_of_them_and_no_others():
    free = Constraints.of(list("abc"), None)
    orders = {tuple(equivalent_order(CHAIN, free, Random(seed))) for seed in range(100)}
    assert orders == {(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)}
    from_a = Constraints.of(list("abc"), Knowledge(forbidden_arrows=[("b", "a")]))
    assert {tuple(equivalent_order(CHAIN, from_a, Random(seed))) for seed in range(100)} == {(0, 1, 2)}


class NoLargerThan:
    """Scores that rise with every column, of which no more than `most` fit."""

    rows = 10.0

    def __init__(self, most):
        self.most = most

    def fits(self, columns):
        return len(columns) <= self.most

    def of(self, sets):
        assert all(map(self.fits, sets))
        return np.array([float(sum(x + 1 for x in columns) ** 2) for columns in sets])


def test_what_is_too_large_is_not_asked_for_and_parents_are_limited():
    assert searched(NoLargerThan(3), 5).best(0, bits([1, 2, 3, 4]))[0] == (3, 4)
    assert searched(NoLargerThan(9), 5).best(0, bits([1, 2, 3, 4]))[0] == (1, 2, 3, 4)
    assert searched(NoLargerThan(9), 5, max_parents=3).best(0, bits([1, 2, 3, 4]))[0] == (2, 3, 4)


# --- knowledge ------------------------------------------------------------------------------------


def test_background_knowledge_holds():
    _, curator = sampled("asia", rows=5_000)
    knowledge = Knowledge(
        required_arrows=[("dysp", "asia"), ("xray", "either")],  # against the data: neither is so
        forbidden_edges=[("smoke", "lung")],
        forbidden_arrows=[("bronc", "smoke")],
    )
    graph = OrderSearch().fit(curator, knowledge).graph
    assert {("dysp", "asia"), ("xray", "either")} <= graph.arrows
    assert ("smoke", "bronc") in graph.arrows
    assert frozenset(("smoke", "lung")) not in graph.skeleton.edges


def test_required_edges_whose_table_is_too_large_are_refused():
    names = [f"x{i}" for i in range(8)]
    schema = Schema(tuple(Categorical(n, tuple(range(9))) for n in names))
    curator = unlimited({n: [0, 1, 2] for n in names}, schema)
    with pytest.raises(QueryError, match=r"requires 7 edges at 'x0'.*too large"):
        OrderSearch().fit(curator, Knowledge(required_edges=[("x0", n) for n in names[1:]]))


# --- refusals -------------------------------------------------------------------------------------


def test_a_finite_budget_is_refused_and_stays_whole():
    world = networks.load("cancer")
    table = world.sample(500, seed=1)
    curator = Curator(table, world.schema, budget=Budget(epsilon=1e9, delta=1e-9))
    with pytest.raises((BudgetExceeded, NotPrivate)):
        OrderSearch().fit(curator)
    assert curator.ledger.spent == 0
    with pytest.raises(NotPrivate, match="order-search is NOT PRIVATE"):
        discover(table, world.schema, method="order-search", epsilon=1)


@pytest.mark.parametrize(
    ("score", "why"), [("bic", "'x'.*needs levels"), ("bdeu", "'x'.*needs levels"), ("bge", "'a'")]
)
def test_mixed_kinds_are_refused(score, why):
    schema = Schema((Categorical("a", (0, 1)), Numeric("x", 0, 1)))
    with pytest.raises(QueryError, match=why):
        OrderSearch(score=score).fit(unlimited({"a": [0, 1], "x": [0.1, 0.9]}, schema))


def test_a_table_without_rows_has_no_edges():
    schema = Schema((Categorical("a", (0, 1)), Categorical("b", (0, 1))))
    for score in ("bic", "bdeu"):
        assert not OrderSearch(score=score).fit(unlimited({"a": [], "b": []}, schema)).skeleton.edges


@pytest.mark.parametrize(
    "options",
    [
        {"score": "k2"},
        {"equivalent_sample_size": 1.0},
        {"score": "bdeu", "equivalent_sample_size": 0.0},
        {"max_parents": 0},
        {"starts": 0},
        {"patience": -1},
    ],
)
def test_options_that_are_none_are_refused(options):
    with pytest.raises(QueryError):
        OrderSearch(**options)


def test_one_column_is_no_graph():
    with pytest.raises(QueryError, match="at least two columns"):
        OrderSearch().fit(unlimited({"a": [0, 1]}, Schema((Categorical("a", (0, 1)),))))


class TwoColumns(BestParents):
    """The first of two is the parent of the other."""

    columns = 2

    def best(self, column, before):
        return ((1 - column,), 0.0) if before else ((), 0.0)

    def change(self, column, before, other):
        return 0.0
