"""What can be seen through noise: the level of noise, the smallest effect, the verdict on a run."""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from dpcurate import Budget, Categorical, Curator, Numeric, Schema, networks
from dpcurate.learn.measure_once.bayes_factor import Residuals, log_bayes_factors
from dpcurate.learn.measure_once.central_moments import CentralMoments, Released
from dpcurate.learn.measure_once.constants import Constants, FeatureConstants
from dpcurate.learn.measure_once.family_search import FamilySearch
from dpcurate.learn.measure_once.feature_release import buy_features
from dpcurate.learn.measure_once.method import MeasureOnce
from dpcurate.learn.measure_once.pair_release import PairDesign, buy_pairs
from dpcurate.learn.measure_once.release import buy, first_weights
from dpcurate.learn.measure_once.released import of_contrasts, of_features
from dpcurate.learn.power import HIGH, LOW, Power, log_prior_odds, smallest_effect
from dpcurate.planning.estimate import _of_features, _of_levels
from dpcurate.result.fit import NoiseLevel
from dpcurate.result.verdict import F1_IF_BLIND, HOPELESS, verdict_on, visible


def noise(rows=10_000.0, *, rows_noise=30.0, variance=1e-4, coordinates=1):
    return NoiseLevel(rows=rows, rows_noise=rows_noise, variance=variance, coordinates=coordinates)


def coins(columns, rows, seed):
    """Independent coins of even chances."""
    flips = np.random.default_rng(seed).integers(0, 2, (rows, columns))
    return {f"c{i}": np.array(["0", "1"], dtype=object)[flips[:, i]] for i in range(columns)}


def by_contrasts(curator, size):
    levels, pairs = [2] * size, list(combinations(range(size), 2))
    bought = buy(curator, first_weights(levels, pairs, 0.4), curator.remaining)
    released = Released.nothing(levels).merged(bought.answers)
    return released, CentralMoments.of(released)


def around_margins(curator, size):
    margins = buy(curator, {(): 1.0} | {(a,): 1.0 for a in range(size)}, 0.1 * curator.remaining)
    released = Released.nothing([2] * size).merged(margins.answers)
    left = curator.remaining
    pairs, _ = buy_pairs(curator, PairDesign.of(curator, released), (0.1 * left, 0.9 * left), (0.9,))
    return released, CentralMoments.around(released, pairs)


@pytest.mark.parametrize("design", [by_contrasts, around_margins])
def test_the_noise_level_is_what_pairs_of_even_coins_vary_by(design):
    rows, size = 2000, 8
    schema, values, levels = {f"c{i}": ("0", "1") for i in range(size)}, [], []
    for seed in range(8):
        curator = Curator(coins(size, rows, seed), schema, budget=Budget(epsilon=1, delta=1e-10), insecure_seed=seed)
        released, moments = design(curator, size)
        levels.append(of_contrasts(released, moments))
        values += [2 * float(block.observed.item()) for block in moments.blocks.values()]  # a coin's coordinate has 1/2
        assert abs(levels[-1].rows - rows) < 5 * levels[-1].rows_noise
    assert levels[0].coordinates == 1
    assert np.mean([level.variance for level in levels]) == pytest.approx(np.mean(np.square(values)), rel=0.25)
    assert levels[0].variance > 1.5 / rows


@pytest.mark.slow
def test_the_noise_level_of_features_is_what_their_correlations_vary_by():
    rows, size = 3000, 6
    schema = Schema(tuple(Numeric(f"x{i}", -4, 4) for i in range(size)))
    values, levels = [], []
    for seed in range(12):
        drawn = np.random.default_rng(seed).standard_normal((rows, size))
        table = {f"x{i}": drawn[:, i] for i in range(size)}
        curator = Curator(table, schema, budget=Budget(epsilon=1, delta=1e-10), insecure_seed=seed)
        bought = buy_features(curator, curator.remaining, FeatureConstants())
        spread = np.sqrt(np.diag(bought.released.covariance))
        values.extend((bought.released.covariance / np.outer(spread, spread))[np.triu_indices(size, 1)])
        levels.append(of_features(bought))
        assert abs(levels[-1].rows - rows) < 5 * levels[-1].rows_noise
    assert np.mean([level.variance for level in levels]) == pytest.approx(np.mean(np.square(values)), rel=0.25)
    assert np.std([level.rows for level in levels]) == pytest.approx(levels[0].rows_noise, rel=0.6)


@pytest.mark.parametrize(("coordinates", "variance"), [(1, 1e-5), (1, 1e-3), (4, 1e-4), (9, 1e-2)])
def test_the_smallest_effect_is_where_the_methods_own_odds_are_even(coordinates, variance):
    columns = 13
    effect = smallest_effect(variance=variance, coordinates=coordinates, columns=columns)
    values = np.full((1, coordinates), math.sqrt(effect**2 / coordinates + variance))
    same = np.eye(coordinates)[None]
    found = log_bayes_factors(Residuals(values, variance * same, same), Constants().effect_sizes)
    prior = Constants().expected_neighbours(columns) / (columns - 1)
    assert found[0] == pytest.approx(math.log((1 - prior) / prior))


def test_among_three_columns_noise_hides_effects_although_the_prior_odds_are_even():
    for variance in (0.01, 0.1, 0.5):
        assert smallest_effect(variance=variance, coordinates=1, columns=3) > 1.5 * math.sqrt(variance)


def test_nothing_is_seen_where_the_row_count_is_lost_in_its_noise():
    clear, lost = (Power.of(variance=1e-4, coordinates=1, columns=8, rows=rows, rows_noise=20) for rows in (61.0, 59.0))
    assert clear == Power.of(variance=1e-4, coordinates=1, columns=8)
    assert lost.f1 < F1_IF_BLIND
    assert visible(lost)[0] == "Noise hides every link, even between columns that determine each other."


@pytest.mark.parametrize(
    ("schema", "rows"),
    [
        (networks.load("asia").schema, 500),
        (networks.load("child").schema, 500),
        (Schema(tuple(Numeric(x, -4, 4) for x in "abc")), 900),
        (Schema((Numeric("a", -4, 4), Categorical("b", ("0", "1", "2")))), 900),
    ],
    ids=["levels", "wide", "numbers", "mixed"],
)
def test_the_noise_of_the_row_count_is_forecast(schema, rows):
    budget = Budget(epsilon=1, delta=1e-10)
    drawn = np.random.default_rng(3)
    table = {c.name: drawn.choice(c.levels if c.has_levels else np.linspace(-3, 3, 30), rows) for c in schema.columns}
    few = all(c.has_levels for c in schema.columns)
    forecast = _of_levels(schema, budget) if few else _of_features(schema, budget)
    found = MeasureOnce().fit(Curator(table, schema, budget=budget, insecure_seed=1)).noise
    assert math.sqrt(forecast.count) == pytest.approx(found.rows_noise, rel=0.1)


def test_prior_odds_are_those_of_the_search():
    """A column of a wide table is expected to have more neighbours: the search and its forecast must agree."""
    for columns in (3, 5, 12, 60):
        evidence = SimpleNamespace(measured=range(columns))
        odds = FamilySearch.of(evidence, None, Constants()).edge_log_odds
        assert log_prior_odds(columns, Constants()) == pytest.approx(odds)


def test_below_what_f1_nothing_shows():
    assert Power(effect=1, columns=8).f1 < F1_IF_BLIND < HOPELESS
    before, after = (visible(Power(effect=effect, columns=8)) for effect in (1.2, 3.0))
    assert before == after  # two estimates of nothing say the same
    assert visible(Power(effect=0.9, columns=8)) != before


def test_power_falls_with_noise_and_ranges_do_not_cross():
    powers = [Power.of(variance=10.0**e, coordinates=3, columns=20) for e in np.linspace(-6, 3, 60)]
    for better, worse in pairwise(powers):
        assert better.effect < worse.effect
        assert better.f1 > worse.f1
        assert better.recall > worse.recall
    assert all(p.range[0] <= p.f1 <= p.range[1] for p in powers)
    assert all(0 <= LOW.at(p.effect) <= HIGH.at(p.effect) <= 1 for p in powers)


def test_verdicts():
    fine = verdict_on(noise(), columns=8, declared=None)
    assert fine.level == "fine"
    assert "Do not read" not in str(fine)
    weak = verdict_on(noise(variance=1.2e-2, coordinates=3), columns=8, declared=10_000)
    assert weak.level == "weak"
    hopeless = verdict_on(noise(variance=0.5), columns=20, declared=None)
    assert (hopeless.level, hopeless.title) == ("hopeless", "MOSTLY NOISE")
    assert "hides every link" in str(hopeless)
    assert fine.f1 > weak.f1 > hopeless.f1
    assert 0 < hopeless.found < weak.found < fine.found < fine.edges


def test_rows_that_are_not_there_are_told():
    few = verdict_on(noise(rows=200.0), columns=8, declared=10_000)
    assert few.level == "weak"
    assert "200, with noise of 30, far below the 10,000 rows" in str(few)
    assert "far below" not in str(verdict_on(noise(rows=200.0, rows_noise=2000.0), columns=8, declared=5000))
    assert "far below" not in str(verdict_on(noise(rows=6000.0), columns=8, declared=10_000))
    for rows in (-50.0, 3.0, 80.0):
        assert verdict_on(noise(rows=rows), columns=8, declared=None).level == "hopeless"
        assert "no different from none" in str(verdict_on(noise(rows=rows), columns=8, declared=None))
    assert verdict_on(noise(rows=100.0), columns=8, declared=None).level == "fine"


@pytest.mark.parametrize("rows", [0, 3])
def test_a_table_of_hardly_any_rows_is_told(rows):
    network = networks.load("asia")
    for schema, table in (
        (network.schema, network.sample(rows, seed=1)),
        (Schema((Numeric("x", 0, 1), Numeric("y", 0, 1))), {"x": np.full(rows, 0.5), "y": np.full(rows, 0.2)}),
    ):
        curator = Curator(table, schema, budget=Budget(epsilon=1, delta=1e-10), insecure_seed=2)
        noise_level = MeasureOnce().fit(curator).noise
        assert verdict_on(noise_level, columns=len(schema.names), declared=None).level == "hopeless"
