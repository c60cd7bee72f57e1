"""AIM as a rival in benchmarks: it spends its budget and no more, with the noise it says, and fits what it measured."""

from __future__ import annotations

import sys
from itertools import combinations

import numpy as np
import pytest
from benchmarks.junction import Fit, Model, Noisy, Tree, consistent, fitted, megabytes, predictions, total_of
from benchmarks.synthetic_rival import Aim

from benchmarks import synthetic_rival
from dpcurate.benchmark import compare

SIZES = {"a": 2, "b": 300, "c": 2}
FIVE = {"a": 2, "b": 3, "c": 2, "d": 4, "e": 2}
CLIQUES = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "b"), ("e",)]


class Watched(Aim):
    """AIM whose model never changes, so that every round finds nothing new; it notes what choices cost."""

    def _fit(self, model, steps):
        return Unmoved(self.true)

    def _affordable(self, columns):
        return True

    def _choose(self, guess):
        self.chosen = [*getattr(self, "chosen", ()), self.epsilon]
        return super()._choose(guess)


class Unmoved:
    def __init__(self, true):
        self.flat = {columns: np.full_like(table, table.mean()) for columns, table in true.items()}

    def tables(self):
        return self.flat


@pytest.fixture
def aim(monkeypatch):
    draw = np.random.default_rng(0)
    codes = {name: draw.integers(0, size, 5000) for name, size in SIZES.items()}
    monkeypatch.setattr(synthetic_rival, "predictions", Unmoved.tables)
    return Watched(codes, SIZES, 0.02, draw)


def test_it_spends_its_budget_and_no_more(aim):
    aim.run()
    measured = sum(m.weight / 2 for m in aim.measured.values())
    chosen = sum(epsilon**2 / 8 for epsilon in aim.chosen)
    assert measured + chosen == pytest.approx(0.02, rel=1e-9)


def test_its_noise_is_what_it_says(aim):
    aim.run()
    far = [((m.values - aim.true[c]) * np.sqrt(m.weight)).ravel() for c, m in aim.measured.items()]
    assert np.concatenate(far).std() == pytest.approx(1, abs=0.1)


# --- the model ------------------------------------------------------------------------------------------------------


@pytest.fixture
def model():
    draw = np.random.default_rng(0)
    tables = {clique: draw.normal(0, 1, [FIVE[c] for c in clique]) for clique in CLIQUES}
    return Model(Tree(FIVE, CLIQUES), 1000.0, tables)


def every_cell(model):
    """The whole table, by multiplying all potentials out."""
    letters = dict(zip(FIVE, "abcde", strict=True))
    factors = [np.exp(t) for t in model.potentials.values()]
    axes = ",".join("".join(letters[c] for c in clique) for clique in model.potentials)
    return np.einsum(f"{axes}->abcde", *factors)


def summed_to(table, columns):
    return table.sum(axis=tuple(i for i, c in enumerate(FIVE) if c not in columns))


def test_margins_and_pairs_are_those_of_the_whole_table(model):
    whole = every_cell(model)
    assert model.log_sum == pytest.approx(np.log(whole.sum()))
    found = predictions(model)
    assert found.keys() == {(c,) for c in FIVE} | set(combinations(FIVE, 2))
    for columns, table in found.items():
        assert table == pytest.approx(1000 * summed_to(whole, columns) / whole.sum())


def test_rows_have_the_pairs_of_the_model(model):
    rows = model.rows(50_000, np.random.default_rng(1))
    for (a, b), table in ((c, t) for c, t in predictions(model).items() if len(c) == 2):
        counts = np.zeros(table.shape)
        np.add.at(counts, (rows[a], rows[b]), 1)
        assert counts / 50_000 == pytest.approx(table / 1000, abs=0.002)


def test_a_model_with_the_tables_measured_is_found(model):
    measured = {c: Noisy(table, 0.01) for c, table in model.tables().items()}
    best = fitted(FIVE, measured, None, 40)
    for columns, table in predictions(model).items():
        assert predictions(best)[columns] == pytest.approx(table, abs=0.5)


def test_of_noisy_tables_no_model_nearby_fits_better(model):
    draw = np.random.default_rng(2)
    measured = {c: Noisy(t + draw.normal(0, 8, t.shape), 1 / 64) for c, t in model.tables().items()}
    best, total = fitted(FIVE, measured, None, 40), total_of(measured)
    fit = Fit(Tree(FIVE, CLIQUES), total, consistent(measured, total))
    here = np.concatenate([t.ravel() for t in best.potentials.values()])
    near = (fit.loss(fit.model(here + draw.normal(0, size, here.shape))) for size in (1e-3, 1e-2) for _ in range(50))
    assert fit.loss(best) < min(near)


def test_the_size_is_that_of_the_largest_tables():
    """a, b and c in a circle, and b, c, d: 12 and 24 cells; e alone."""
    assert megabytes(FIVE, CLIQUES) == pytest.approx((12 + 24 + 2) * 8 / 2**20)


# --- as a method of the benchmark -----------------------------------------------------------------------------------


def test_the_benchmark_takes_it_as_a_method_that_claims_its_epsilon(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (run,) = compare([], ["cancer"], [20.0], add=[f"{synthetic_rival.__file__}:AIM_PC"], rows=20_000, seeds=1).runs
    assert (run.method, run.guarantee, run.spent, run.problem) == ("AIM_PC", "claimed", 20.0, "")
    assert run.skeleton_f1 > 0.7
