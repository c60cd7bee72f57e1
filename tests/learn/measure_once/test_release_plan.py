"""The plan of releases: shares that add up, steps that are left out, and what is bought again."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from dpcurate import Budget, Curator, networks
from dpcurate.learn.measure_once import release_plan
from dpcurate.learn.measure_once.central_moments import Released
from dpcurate.learn.measure_once.constants import Constants
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.release import first_weights
from dpcurate.learn.measure_once.release_plan import CONTRASTS, EVERY_PAIR, Known, ReleaseStep, run

WORLD = networks.load("cancer")
LEVELS = [column.size for column in WORLD.schema.columns]
PAIRS = Constraints.of(WORLD.schema.names, None)


def known(**more):
    weights = first_weights(LEVELS, PAIRS.pairs, 0.4)
    facts = {"constants": Constants(), "constraints": PAIRS, "random": Random(0), "pure": False, "weights": weights}
    return Known(**facts, released=Released.nothing(LEVELS), **more)


@pytest.fixture
def curator():
    return Curator(WORLD.sample(20_000, seed=1), WORLD.schema, budget=Budget(rho=0.05), insecure_seed=1)


@pytest.mark.parametrize("noise", [0.001, 0.5, 100.0])
@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("loud", [False, True])
def test_shares_of_the_plan_are_the_whole_budget(noise, pure, loud):
    after = replace(known(noise=noise, loud=loud), pure=pure)
    assert sum(step.share(after) for step in CONTRASTS) == pytest.approx(1)


def test_each_release_is_paid_from_the_share_of_its_step(curator):
    done = run(CONTRASTS, curator, known(), 0.05)
    assert [p.cost for p in done.purchases] == pytest.approx([0.05 * step.share(done) for step in CONTRASTS])
    assert done.order
    assert float(curator.remaining) == pytest.approx(0, abs=1e-12)


def test_a_step_without_a_share_is_not_even_looked_at(curator):
    never = ReleaseStep("never", lambda _: 0.0, lambda _: pytest.fail("looked at"))
    assert len(run((EVERY_PAIR, never), curator, known(), 0.01).purchases) == 1


def test_where_nothing_is_in_doubt_the_last_sets_are_released_again(curator):
    first = {(0, 1): 1.0}
    once = ReleaseStep("some", lambda _: 0.25, lambda _: (first, (1, 0, 2, 3, 4)))
    nothing = ReleaseStep("nothing", lambda _: 0.25, lambda _: ({}, (2, 0, 1, 3, 4)))
    done = run((EVERY_PAIR, once, nothing), curator, known(), 0.01)
    assert [set(p.answers) for p in done.purchases[1:]] == [set(first)] * 2
    assert done.order == (2, 0, 1, 3, 4)


def test_what_is_loud_is_decided_once(curator, monkeypatch):
    """A later answer moves the row count, and with it the bound: shares would no longer add up."""
    asked = []
    monkeypatch.setattr(release_plan, "is_loud", lambda *_: asked.append(1) or True)
    done = run(CONTRASTS, curator, known(), 0.05)
    assert (len(asked), len(done.purchases), done.order) == (1, 2, ())
