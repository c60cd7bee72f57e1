"""Tests of independence against SciPy, and their level under the null."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpcurate.learn.constraint.independence import TABLE_TESTS, fisher_test, p_values, partial_correlation

RNG = np.random.default_rng(0)
TABLE = RNG.integers(5, 60, (3, 4)).astype(float)


def p_value(name, table):
    return float(p_values(name, [table])[0])


def expand(table):
    x, y = np.nonzero(np.ones_like(table))
    count = table.astype(int).ravel()
    return np.repeat(x, count), np.repeat(y, count)


def test_they_agree_with_scipy_on_one_table():
    g = stats.chi2_contingency(TABLE, correction=False, lambda_="log-likelihood")
    chi = stats.chi2_contingency(TABLE, correction=False)
    assert p_value("g", TABLE) == pytest.approx(g.pvalue, rel=1e-9)
    assert p_value("chi-squared", TABLE) == pytest.approx(chi.pvalue, rel=1e-9)
    x, y = expand(TABLE)
    assert p_value("kendall", TABLE) == pytest.approx(stats.kendalltau(x, y, method="asymptotic").pvalue, rel=1e-6)
    r = stats.spearmanr(x, y).statistic
    assert p_value("spearman", TABLE) == pytest.approx(math.erfc(abs(r) * math.sqrt((len(x) - 1) / 2)), rel=1e-6)


def test_strata_add_up():
    strata = np.stack([TABLE, TABLE.T.repeat(1, axis=0)[:3, :3].repeat(1)[:9].reshape(3, 3) @ np.ones((3, 4))], axis=-1)
    g = [stats.chi2_contingency(strata[..., k], correction=False, lambda_="log-likelihood") for k in range(2)]
    expected = stats.chi2.sf(sum(t.statistic for t in g), sum(t.dof for t in g))
    assert p_value("g", strata) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", TABLE_TESTS)
def test_the_level_holds_under_independence_with_ties_and_strata(name):
    rng = np.random.default_rng(3)
    p_values = []
    for _ in range(1500):
        strata = [
            rng.multinomial(120, np.outer(a, b).ravel()).reshape(2, 3)
            for a, b in (((0.9, 0.1), (0.2, 0.3, 0.5)), ((0.4, 0.6), (0.6, 0.3, 0.1)))
        ]
        p_values.append(p_value(name, np.stack(strata, axis=-1).astype(float)))
    rejected = int((np.array(p_values) < 0.05).sum())
    assert stats.binomtest(rejected, 1500, 0.05).pvalue > 1e-4


@pytest.mark.parametrize("name", TABLE_TESTS)
def test_dependence_is_seen_and_nothing_is_claimed_of_nothing(name):
    strong = np.array([[50.0, 5.0], [5.0, 50.0]])
    assert p_value(name, strong) < 1e-6
    assert p_value(name, np.zeros((2, 3))) == 1.0
    assert p_value(name, np.array([[7.0, 0.0], [0.0, 0.0]])) == 1.0


@pytest.mark.parametrize("name", TABLE_TESTS)
def test_a_batch_of_any_shapes_gives_what_each_table_gives_alone(name):
    """Also when x and y change places, when strata are turned, and when levels that do not occur are added."""
    rng = np.random.default_rng(4)
    tables = [rng.poisson(8.0, rng.integers(2, 5, rng.integers(2, 5))).astype(float) for _ in range(60)]
    tables += [t.swapaxes(0, 1) for t in tables] + [t.transpose(0, 1, *range(t.ndim - 1, 1, -1)) for t in tables]
    tables += [np.pad(t, [(0, 1)] * t.ndim) for t in tables[:60]]
    together = p_values(name, tables)
    assert together == pytest.approx([p_value(name, t) for t in tables], rel=1e-9)
    for other in np.split(together, 4)[1:]:
        assert other == pytest.approx(together[:60], rel=1e-7)


def test_the_likelihood_ratio_is_the_textbook_sum_over_cells():
    """It is computed from sums of n log n, which are large and almost cancel."""
    rng = np.random.default_rng(5)
    for rows in (1000, 100_000, 10**9):
        table = rng.multinomial(rows, rng.dirichlet(np.full(24, 20.0))).reshape(2, 3, 4).astype(float)
        expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / table.sum((0, 1))
        g = 2 * (table * np.log(table / expected)).sum()
        assert p_value("g", table) == pytest.approx(stats.chi2.sf(g, 8), rel=1e-5)
        independent = np.round(expected)
        assert p_value("g", independent) > 0.99


def test_partial_correlation_of_a_chain_vanishes():
    rng = np.random.default_rng(1)
    x = rng.normal(size=5000)
    z = x + rng.normal(size=5000)
    y = z + rng.normal(size=5000)
    rows = np.column_stack([np.ones(5000), x, y, z])
    moments = rows.T @ rows
    assert partial_correlation(moments, 0, 1, ()) == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-9)
    residual = [v - np.polyval(np.polyfit(z, v, 1), z) for v in (x, y)]
    assert partial_correlation(moments, 0, 1, (2,)) == pytest.approx(np.corrcoef(*residual)[0, 1], abs=1e-6)
    assert fisher_test(moments, 0, 1, ()) < 1e-9
    assert fisher_test(moments, 0, 1, (2,)) > 0.01
    few = np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    assert fisher_test(few, 0, 1, ()) == 1.0
