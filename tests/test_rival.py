"""AIM as a rival in benchmarks: it spends its budget and no more, with the noise it says."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks import synthetic_rival
from benchmarks.synthetic_rival import Aim, predictions

SIZES = {"a": 2, "b": 300, "c": 2}


class Watched(Aim):
    """AIM whose model never changes, so that every round finds nothing new; it notes what choices cost."""

    def _fit(self, model):
        return "model"

    def _affordable(self, columns):
        return True

    def _choose(self, guess):
        self.chosen = [*getattr(self, "chosen", ()), self.epsilon]
        return super()._choose(guess)


@pytest.fixture
def aim(monkeypatch):
    monkeypatch.setitem(
        sys.modules,
        "mbi",
        SimpleNamespace(LinearMeasurement=lambda y, clique, s: SimpleNamespace(y=y, clique=clique, s=s)),
    )
    draw = np.random.default_rng(0)
    codes = {name: draw.integers(0, size, 5000) for name, size in SIZES.items()}
    watched = Watched(codes, SIZES, 0.02, draw)
    guess = {columns: np.full_like(table, table.mean()) for columns, table in watched.true.items()}
    monkeypatch.setattr(synthetic_rival, "predictions", lambda model, sizes: guess)
    return watched


def test_it_spends_its_budget_and_no_more(aim):
    aim.run()
    measured = sum(1 / (2 * m.s**2) for m in aim.measured)
    chosen = sum(epsilon**2 / 8 for epsilon in aim.chosen)
    assert measured + chosen == pytest.approx(0.02, rel=1e-9)
    assert len(aim.measured) == len(SIZES) + len(aim.chosen)


def test_its_noise_is_what_it_says(aim):
    aim.run()
    far = [(m.y - aim.true[m.clique].ravel()) / m.s for m in aim.measured]
    assert np.concatenate(far).std() == pytest.approx(1, abs=0.15)


def test_pairs_are_those_of_the_model():
    mbi = pytest.importorskip("mbi")
    from mbi.estimation import MirrorDescent

    draw, sizes = np.random.default_rng(0), {"a": 2, "b": 3, "c": 2, "d": 4, "e": 2}
    cliques = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e",)]
    cells = [int(np.prod([sizes[x] for x in clique])) for clique in cliques]
    asked = [mbi.LinearMeasurement(draw.uniform(50, 200, n), c, 5.0) for n, c in zip(cells, cliques, strict=True)]
    model = MirrorDescent().estimate(mbi.Domain.fromdict(sizes), asked, iters=200)
    for columns, table in predictions(model, sizes).items():
        assert np.asarray(model.project(columns).datavector(flatten=False)) == pytest.approx(table, rel=1e-3)
