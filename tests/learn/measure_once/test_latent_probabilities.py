"""The plain and the latent reading of the same answers state the same P(edge), and buy the same answers."""

from __future__ import annotations

import pytest

from dpcurate import Budget, Curator, discover, networks
from dpcurate.learn.measure_once import MeasureOnce
from dpcurate.networks import random_dag, random_mixed
from dpcurate.study.calls import discover_from


def worlds():
    yield "small levels", networks.load("asia"), 1.0
    yield "small levels, loud", networks.load("asia"), 0.1
    yield "wide levels", networks.load("child"), 0.1
    yield "features", random_mixed(random_dag(8, degree=2.0, seed=3), seed=3), 1.0


@pytest.mark.parametrize(("world", "epsilon"), [pytest.param(w, e, id=name) for name, w, e in worlds()])
def test_both_readings_state_the_same_probabilities(world, epsilon):
    table = world.sample(5000, seed=4)

    def learned(**options):
        curator = Curator(table, world.schema, budget=Budget(epsilon=epsilon, delta=1e-10), insecure_seed=5)
        return MeasureOnce(**options).fit(curator)

    plain, latent = learned(), learned(latent=True)
    assert plain.linked == latent.linked
    assert plain.leaked == latent.leaked
    assert plain.tests == latent.tests


def test_stored_answers_of_a_plain_run_are_read_with_hidden_causes(tmp_path):
    world = networks.load("cancer")
    found = discover(world.sample(5000, seed=1), world.schema, epsilon=1, ledger=tmp_path / "l.ledger")
    again = discover_from(tmp_path / "l.ledger", latent=True)
    assert again.learned.linked == found.learned.linked
