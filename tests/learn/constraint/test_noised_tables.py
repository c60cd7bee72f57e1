"""Tests on noised tables: their null is right at every noise, and they are the usual tests without noise."""

from __future__ import annotations

import numpy as np
import pytest

from dpcurate import Budget, Curator, networks
from dpcurate.errors import QueryError
from dpcurate.learn.constraint.independence import p_values
from dpcurate.learn.constraint.noised_values import LAPLACE_EXCESS, NOISED_TESTS, TableValues, p_value
from dpcurate.learn.constraint.pc_search import PairQuestion
from dpcurate.learn.methods import EMPC, PC, SVTPC, CuratePC, PrivPC

ROWS, RUNS = 50_000, 2500
NOISES = {"gaussian": 0.0, "laplace": LAPLACE_EXCESS}


def world(stream, shape=(3, 4, 2)):
    """Cells of x and y that are independent in every stratum, with margins of its own."""
    x, y, strata = shape
    given, of_x, of_y = (stream.dirichlet(np.full(n, 4.0), k) for n, k in ((strata, 1), (x, strata), (y, strata)))
    return np.einsum("k,kx,ky->xyk", given[0], of_x, of_y)


def noised(stream, kind, deviation, chances):
    cells = stream.multinomial(ROWS, chances.ravel()).reshape(chances.shape).astype(float)
    if kind == "laplace":
        return cells + stream.laplace(0, deviation / np.sqrt(2), cells.shape)
    return cells + stream.normal(0, deviation, cells.shape)


def rejections(statistic, kind, deviation, told=None):
    """Shares of p-values below 0.01 and 0.05 under conditional independence."""
    stream = np.random.default_rng(5)
    worlds = [world(stream) for _ in range(25)]
    told = deviation if told is None else told
    found = np.array(
        [
            p_value(statistic, noised(stream, kind, deviation, worlds[i % 25]), told, NOISES[kind])
            for i in range(RUNS)
        ]
    )  # fmt: skip
    return (found < 0.01).mean(), (found < 0.05).mean()


@pytest.mark.slow
@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("deviation", [0.01, 40.0, 200.0])
@pytest.mark.parametrize("statistic", NOISED_TESTS)
def test_under_independence_the_null_is_right(statistic, deviation, kind):
    """Within three Monte Carlo errors, and a fifth of the level for the two matched moments."""
    for level, share in zip((0.01, 0.05), rejections(statistic, kind, deviation), strict=True):
        assert abs(share - level) < 3 * np.sqrt(level * (1 - level) / RUNS) + level / 5


@pytest.mark.parametrize("statistic", NOISED_TESTS)
def test_a_null_that_knows_half_the_noise_is_wrong(statistic):
    assert rejections(statistic, "gaussian", 200.0, told=100.0)[1] > 0.2


@pytest.mark.parametrize("statistic", NOISED_TESTS)
def test_without_noise_they_are_the_usual_tests(statistic):
    stream = np.random.default_rng(3)
    tables = [noised(stream, "gaussian", 0.0, world(stream, (3, 3, 1))) for _ in range(30)]
    ours = [p_value(statistic, table, 0.0) for table in tables]
    assert ours == pytest.approx(p_values(statistic, tables).tolist(), rel=1e-3)


@pytest.mark.parametrize("statistic", NOISED_TESTS)
def test_dependence_is_seen_through_noise_and_nothing_is_seen_in_noise_alone(statistic):
    chances = np.einsum("xy,k->xyk", np.array([[0.3, 0.2], [0.2, 0.3]]), [0.5, 0.5])
    stream = np.random.default_rng(1)
    assert p_value(statistic, noised(stream, "gaussian", 100.0, chances), 100.0) < 1e-6
    assert p_value(statistic, stream.normal(0, 100.0, (2, 3, 4)), 100.0) == 1.0
    assert p_value(statistic, np.zeros((2, 3, 4)), 0.0) == 1.0


def test_tests_over_the_same_columns_share_one_paid_table():
    curator = Curator(
        networks.load("cancer").sample(2000, seed=1), networks.load("cancer").schema, budget=Budget(rho=1)
    )
    a, b, c = curator.schema.names[:3]
    values = TableValues(curator, "g", 2000.0)
    tests = [PairQuestion(a, b, (c,)), PairQuestion(c, a, (b,)), PairQuestion(b, c, (a,))]
    assert len(list(values.ask(tests, 0.1))) == len(list(values.ask(tests, 0.1))) == 3
    (event,) = curator.ledger.events
    assert (event.mechanism, float(event.cost.rho)) == ("gaussian", pytest.approx(0.1**2 / 2))


@pytest.mark.parametrize("statistic", ["g", "chi-squared"])
@pytest.mark.parametrize("name", ["survey", "asia"])
def test_with_a_huge_budget_it_is_pc_with_that_test(name, statistic):
    network = networks.load(name)
    table = network.sample(20_000, seed=1)
    exact = PC(test=statistic, alpha=0.05).fit(Curator(table, network.schema, budget=Budget.unlimited()))
    curator = Curator(table, network.schema, budget=Budget(rho=1e14), insecure_seed=3)
    assert CuratePC(statistic=statistic).fit(curator).skeleton.edges == exact.skeleton.edges


@pytest.mark.parametrize("recipe", [EMPC, SVTPC])
@pytest.mark.parametrize("statistic", NOISED_TESTS)
def test_scores_inside_the_session_need_a_small_sensitivity(recipe, statistic):
    with pytest.raises(QueryError, match=f"no useful score of '{statistic}' is known"):
        recipe(statistic=statistic)


def test_the_sentence_why_gives_the_right_figures():
    """One more row, in the far corner of a table that is otherwise one cell."""
    n = 1000.0
    before, after = (np.array([[n, 0.0], [0.0, more]])[:, :, None] for more in (0.0, 1.0))
    from dpcurate.learn.constraint.independence import chi_squared, likelihood_ratio

    for measure, move in ((chi_squared, n + 1), (likelihood_ratio, 2 * np.log(n) + 2)):
        assert float(measure(before[None])[0][0]) == pytest.approx(0, abs=1e-9)
        assert float(measure(after[None])[0][0]) == pytest.approx(move, rel=0.01)


@pytest.mark.parametrize("recipe", [PrivPC, CuratePC])
def test_a_name_that_is_none_is_refused(recipe):
    with pytest.raises(QueryError, match="statistic must be one of"):
        recipe(statistic="gini")
