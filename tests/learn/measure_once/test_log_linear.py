"""Effects that add up on the log scale: exact tables, and what is left of a dependence that they explain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_evidence import LEVELS, PAIRS, SILENT, A, B, S, T, additive, exact

from dpcurate import Budget, Curator, networks
from dpcurate.learn.measure_once import Constants, MeasureOnce, contrast_evidence, log_linear
from dpcurate.learn.measure_once.central_moments import CentralMoments, Released
from dpcurate.learn.measure_once.contrast_evidence import ContrastEvidence

ROWS = 100_000
TERMS = ((S,), (T,))
LINEAR = replace(Constants(), misfit_bounds=(0.0, 0.01))
CURVED = replace(LINEAR, log_linear=True)


def logistic(rng, levels, strength=1.5):
    """(2, 3, levels): distributions on which s and t act by factors."""
    effects = [strength * rng.normal(size=shape) for shape in ((2, 1, levels), (1, 3, levels))]
    weights = np.exp(sum(effects))
    return weights / weights.sum(axis=2, keepdims=True)


def curved(rng):
    """a and b are independent given s and t, which add up on the log scale in the distribution of either."""
    table = rng.dirichlet([3.0] * 6).reshape(2, 3)
    return np.einsum("st,sta,stb->abst", table, logistic(rng, LEVELS[A]), logistic(rng, LEVELS[B]))


def linear_fit(cells, table):
    """The least-squares fit of distributions (s, t, levels) by s and t, as (levels, cells)."""
    s, t = (index.ravel() for index in np.indices(table.shape))
    design = np.c_[np.ones(table.size), s == 1, t == 1, t == 2]
    weighted = design * table.reshape(-1, 1)
    return (design @ np.linalg.solve(design.T @ weighted, weighted.T @ cells.reshape(table.size, -1))).T


@pytest.mark.parametrize("seed", range(5))
def test_the_pairs_of_a_log_linear_table_give_it_back(seed):
    rng = np.random.default_rng(seed)
    table, true = rng.dirichlet([3.0] * 6).reshape(2, 3), logistic(rng, 3)
    linear = linear_fit(true, table)
    found, settled = log_linear.log_linear(linear[None], table[None], 1e-12)
    expected = true.reshape(6, 3).T
    assert settled.all()
    assert np.abs(found[0] - expected).max() < 1e-4
    assert np.abs(linear - expected).max() > 0.02


def test_cells_that_noise_made_impossible_become_distributions():
    table = np.full((2, 2), 0.25)
    linear = np.array([[[1.3, 0.6, 0.5, -0.2], [-0.3, 0.4, 0.5, 1.2]]])
    found, _ = log_linear.log_linear(linear, table[None], 1e-12)
    assert (found >= 0).all()
    assert found.sum(axis=1) == pytest.approx(np.ones((1, 4)))


def test_what_is_fitted_together_is_what_is_fitted_alone():
    rng = np.random.default_rng(3)
    tables = rng.dirichlet([3.0] * 6, size=4).reshape(4, 2, 3)
    linear = np.array([linear_fit(logistic(rng, 3, strength=2.0**i / 4), table) for i, table in enumerate(tables)])
    together = log_linear.log_linear(linear, tables, 1e-5)
    for i in range(4):
        alone = log_linear.log_linear(linear[i : i + 1], tables[i : i + 1], 1e-5)
        assert (together[0][i] == alone[0][0]).all()
        assert together[1][i] == alone[1][0]


def noised(joint, noise, rng):
    """Rows are drawn, and every pair has noise."""
    counts = rng.multinomial(ROWS, joint.ravel()).reshape(joint.shape) / ROWS
    sums = {u: x + noise * rng.normal(size=x.shape) * (len(u) == 2) for u, x in exact(counts, ROWS, PAIRS).sums.items()}
    return Released(LEVELS, sums, {u: noise**2 if len(u) == 2 else SILENT for u in PAIRS})


def left_over(released, constants):
    """The statistic of a and b given s and t over its degrees of freedom."""
    evidence = ContrastEvidence(CentralMoments.of(released), constants)
    residuals = evidence.residuals([A], B, (S, T), TERMS)
    values, null = residuals.values[0], residuals.null[0]
    return float(values @ np.linalg.solve(null, values)) / len(values)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [100.0, 300.0, 1000.0])
def test_what_adds_up_on_either_scale_is_explained(noise):
    found = {}
    for world in (additive, curved):
        answers = [noised(world(rng), noise, rng) for rng in map(np.random.default_rng, range(120))]
        found[world] = [np.mean([left_over(x, constants) for x in answers]) for constants in (LINEAR, CURVED)]
    assert max(found[additive][1], found[curved][1]) < 1.3  # noise alone leaves 1, less for what the misfit adds
    if noise == 100.0:
        assert found[curved][0] > 2.0


def test_a_fit_that_does_not_settle_changes_nothing(monkeypatch):
    rng = np.random.default_rng(5)
    answers = noised(curved(rng), 100.0, rng)
    assert left_over(answers, CURVED) != pytest.approx(left_over(answers, LINEAR), rel=0.01)
    monkeypatch.setattr(log_linear, "MOST_ROUNDS", 1)
    assert left_over(answers, CURVED) == pytest.approx(left_over(answers, LINEAR))


def test_where_products_cannot_matter_nothing_is_fitted(monkeypatch):
    rng = np.random.default_rng(5)
    answers = noised(curved(rng), 100.0, rng)
    monkeypatch.setattr(log_linear, "log_linear", lambda *_: pytest.fail("no fit was needed"))
    monkeypatch.setattr(contrast_evidence, "MATTERS", 1e9)
    left_over(answers, CURVED)


@pytest.mark.slow
def test_two_strong_causes_make_no_edge_between_their_effects():
    """Erk and PKA separate Akt from Mek in Sachs; of these a linear regression leaves a correlation of .13."""
    network, joined = networks.load("sachs"), 0
    for seed in range(5):
        budget = Budget(epsilon=0.1, delta=1e-10)
        curator = Curator(network.sample(ROWS, seed=seed), network.schema, budget=budget, insecure_seed=seed)
        found = MeasureOnce(constants=Constants()).fit(curator)
        joined += frozenset(("Akt", "Mek")) in {frozenset(edge) for edge in found.graph.skeleton.edges}
    assert joined <= 2
