"""Threshold and margins from released answers."""

from __future__ import annotations

import numpy as np
import pytest

from dpcurate import Budget, Curator, networks
from dpcurate.errors import QueryError
from dpcurate.learn.constraint import recipes
from dpcurate.learn.constraint.budget_plan import DecisionRule, expected_f1, tuned
from dpcurate.learn.methods import CuratePC, CurateScore

GIVEN = DecisionRule(0.05, 0.2, 0.2)


def answers(stream, strength, dependent, independent):
    """P-values of normal scores: uniform where independent."""
    from scipy.special import ndtr

    score = np.concatenate([stream.normal(strength, 1, dependent), stream.normal(0, 1, independent)])
    return ndtr(-score), np.arange(dependent + independent) < dependent


def f1(decision, p, truth):
    kept = decision.kept(p)
    return 2 * (kept * truth).sum() / (kept.sum() + truth.sum())


def test_expected_f1_is_near_the_real_one():
    stream = np.random.default_rng(1)
    for strength in (2.0, 4.0):  # weaker ones pass for independent in part, so fewer are expected
        p, truth = answers(stream, strength, 300, 700)
        for decision in (GIVEN, DecisionRule(0.2, 0.0, 0.1), DecisionRule(0.001, 0.1, 0.0)):
            assert expected_f1(decision, p) == pytest.approx(f1(decision, p, truth), abs=0.06)


def test_weak_signals_get_a_larger_threshold_and_strong_ones_leave_it():
    stream = np.random.default_rng(2)
    weak, truth = answers(stream, 1.2, 100, 100)
    strong, _ = answers(stream, 9.0, 100, 100)
    assert tuned(strong, GIVEN) == GIVEN
    assert tuned(weak, GIVEN).level > 0.1
    assert f1(tuned(weak, GIVEN), weak, truth) > f1(GIVEN, weak, truth) + 0.1


@pytest.mark.parametrize("statistic", ["tau", "g", "chi-squared", "spearman"])
def test_tuning_costs_nothing_sees_every_answer_of_order_0_and_its_choice_is_used(statistic, monkeypatch):
    network = networks.load("asia")
    table = network.sample(5000, seed=1)
    seen = []
    monkeypatch.setattr(recipes, "tuned", lambda p, given: seen.append(p) or DecisionRule(0.3, 0.0, 0.0))

    def run(tune):
        curator = Curator(table, network.schema, budget=Budget(epsilon=0.3, delta=1e-9), insecure_seed=2)
        return CuratePC(statistic=statistic, tune=tune, max_order=0).fit(curator), curator.ledger.spent

    (_, spent), (found, tuned_spent) = run("none"), run("released")
    assert spent == tuned_spent
    assert [len(p) for p in seen] == [28]
    for p, e in zip(seen[0], found.evidence, strict=True):
        assert e.threshold == pytest.approx(0.5244, abs=1e-4)
        assert e.verdict == ("cut" if p > 0.3 else "kept")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: CuratePC(tune="released", statistic="kendall-p"),
        lambda: CuratePC(tune="released", style="sequential"),
        lambda: CuratePC(tune="always"),
        lambda: CurateScore(tune="always"),
        lambda: CurateScore(tune="released", clipping="quantile"),
    ],
)
def test_what_cannot_be_tuned_is_refused(wrong):
    with pytest.raises(QueryError, match="tune"):
        wrong()
