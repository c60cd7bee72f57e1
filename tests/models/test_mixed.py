"""Models of tables with numbers: distributions and links that are kept, cells within bounds, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import spearmanr

import dpcurate
from dpcurate import Budget, Categorical, Curator, Dag, Numeric, Ordinal, Schema, fit, quantify
from dpcurate.errors import QueryError
from dpcurate.learn.measure_once.feature_release import ReleasedFeatures
from dpcurate.models.regression_model import Covariance, RegressionModel

ROWS = 20_000
SCHEMA = Schema(
    (
        Numeric("age", 0, 100),
        Categorical("region", ("north", "south", "west")),
        Ordinal("health", ("poor", "fair", "good")),
        Numeric("cost", 0, 1000, missing="own"),
    )
)
DAG = Dag.of(SCHEMA.names, [("age", "health"), ("region", "cost"), ("age", "cost")])


def table():
    """Older people are less healthy and cost more; the west costs more; one cost in ten is missing."""
    random = np.random.default_rng(4)
    age = np.clip(random.normal(50, 15, ROWS), 0, 100)
    region = random.choice(3, ROWS, p=[0.5, 0.3, 0.2])
    health = np.digitize(-(age - 50) / 15 + random.normal(size=ROWS), [-0.8, 0.8])
    cost = np.clip(np.exp(4 + (age - 50) / 30 + 0.5 * (region == 2) + 0.4 * random.normal(size=ROWS)), 0, 1000)
    cost[random.random(ROWS) < 0.1] = np.nan
    names = [np.array(SCHEMA[x].levels, dtype=object) for x in ("region", "health")]
    return {"age": age, "region": names[0][region], "health": names[1][health], "cost": cost}


@pytest.fixture(scope="module")
def curator():
    return Curator(table(), SCHEMA, budget=Budget(epsilon=5, delta=1e-10), insecure_seed=1)


@pytest.fixture(scope="module")
def found(curator):
    return fit(curator, share=curator.remaining / 2)


@pytest.fixture(scope="module")
def model(found, curator):
    return quantify(found, curator, dag=DAG)


@pytest.fixture(scope="module")
def drawn(model):
    return model.sample(ROWS, seed=1)


def test_products_are_bought_once_more_and_merged(found, model, curator):
    assert isinstance(model, RegressionModel)
    before = found.learned.released
    assert isinstance(before, ReleasedFeatures)
    assert model.released.products.noise < before.products.noise
    assert curator.remaining == pytest.approx(0, abs=1e-9)


def test_asking_it_is_free(model, curator):
    before = curator.ledger.spent, curator.passes
    model.sample(10, seed=1)
    model.predict({"age": 30}, "cost")
    model.effect("age", "cost")
    str(model)
    assert (curator.ledger.spent, curator.passes) == before


def test_columns_have_their_distributions(drawn):
    real = table()
    for name in ("age", "cost"):
        inside = drawn[name][~np.isnan(drawn[name])]
        assert (inside >= SCHEMA[name].low).all()
        assert (inside <= SCHEMA[name].high).all()
        ends = np.nanquantile(real[name], [0.1, 0.5, 0.9])
        assert np.quantile(inside, [0.1, 0.5, 0.9]) == pytest.approx(ends, rel=0.08)
    assert np.isnan(drawn["cost"]).mean() == pytest.approx(0.1, abs=0.02)
    for name in ("region", "health"):
        for level in SCHEMA[name].levels:
            assert np.mean(drawn[name] == level) == pytest.approx(np.mean(real[name] == level), abs=0.02)


def test_links_are_kept(drawn):
    real = table()

    def links(cells):
        good = np.isfinite(cells["cost"])
        health = np.array([SCHEMA["health"].levels.index(x) for x in cells["health"]])
        costs = cells["cost"][good]
        return [
            spearmanr(cells["age"], health).statistic,
            spearmanr(cells["age"][good], costs).statistic,
            np.log(np.median(costs[cells["region"][good] == "west"]) / np.median(costs)),
        ]

    assert links(drawn) == pytest.approx(links(real), abs=0.08)
    assert abs(links(real)[0]) > 0.4


def test_the_same_seed_gives_the_same_rows(model, drawn):
    again = model.sample(ROWS, seed=1)
    assert (again["age"] == drawn["age"]).all()
    assert (again["age"] != model.sample(ROWS, seed=2)["age"]).any()


def test_predictions_move_with_what_is_given(model):
    young, old = (model.predict({"age": age}, "health") for age in (25, 75))
    assert sum(young.values()) == pytest.approx(1)
    assert young["good"] > old["good"] + 0.2
    cost = model.predict({"age": 75, "region": "west"}, "cost")
    assert cost["low"] < cost["mean"] < cost["high"]
    assert cost["mean"] > model.predict({"age": 25, "region": "north"}, "cost")["mean"]


@pytest.mark.parametrize(
    ("given", "outcome", "why"),
    [
        ({"age": 30}, "age", "given and asked for"),
        ({"age": 300}, "cost", "from 0 to 100"),
        ({"region": "east"}, "cost", "no level 'east'"),
        ({"ages": 30}, "cost", "did you mean 'age'"),
    ],
)
def test_predictions_of_what_is_not_there_are_refused(model, given, outcome, why):
    with pytest.raises(QueryError, match=why):
        model.predict(given, outcome)


def test_an_effect_says_why_it_has_none(model):
    effect = model.effect("age", "cost")
    assert effect.state == "not determined"
    assert "bins" in effect.reason
    assert model.effect("cost", "age").state == "none"


def test_its_marginals_are_those_of_its_rows(model, drawn):
    joint = model.marginal(["health", "region"])
    assert joint.shape == (3, 3)
    assert joint.sum() == pytest.approx(1)
    for i, health in enumerate(SCHEMA["health"].levels):
        for j, region in enumerate(SCHEMA["region"].levels):
            seen = np.mean((drawn["health"] == health) & (drawn["region"] == region))
            assert joint[i, j] == pytest.approx(seen, abs=0.015)
    cost = model.marginal(["cost"])
    assert cost[-1] == pytest.approx(np.isnan(drawn["cost"]).mean(), abs=0.02)  # the last part is missing cells


def test_what_a_column_depends_on_makes_its_rows_likelier(model, found, curator):
    """By the mutual information of the columns, as the same released answers have it without edges."""
    apart = type(model).of(model.released, Dag(DAG.nodes, frozenset()), SCHEMA)
    gain = model.log_likelihood() - apart.log_likelihood()
    assert 0.1 < gain < 2


def test_a_column_without_parents_is_as_likely_as_its_entropy(model):
    alone = type(model).of(model.released, Dag(DAG.nodes, frozenset()), SCHEMA)
    entropy = sum(float((p * np.log(np.where(p > 0, p, 1))).sum()) for p in (alone.marginal([x]) for x in SCHEMA.names))
    assert alone.log_likelihood() == pytest.approx(entropy, abs=0.1)


def test_its_table_is_the_regression_of_a_column(model):
    table = model.table("health")
    assert (table.features[0], table.given[0]) == ("health", "age")
    assert table.weights[0, 0] < -0.4  # older people are less healthy
    assert "left over" in str(table)
    with pytest.raises(QueryError, match="did you mean 'age'"):
        model.table("ages")


def test_a_model_is_saved_as_json(model, tmp_path):
    path = model.save(tmp_path / "model.json")
    said = json.loads(path.read_text())
    assert said["columns"]["cost"]["parents"] == ["age", "region"]
    with pytest.raises(QueryError, match=r"model\.json"):
        model.save(tmp_path / "model.bif")


def test_a_method_without_features_buys_all_of_them():
    schema = Schema((Numeric("x", -4, 4), Numeric("y", -8, 8)))
    random = np.random.default_rng(1)
    x = random.normal(size=5000)
    rows = {"x": x, "y": 2 * x + random.normal(size=5000)}
    one = Curator(rows, schema, budget=Budget(epsilon=20, delta=1e-10), insecure_seed=1)
    half = fit(one, share=one.remaining / 2)
    bare = dpcurate.Discovery(
        type(half.learned)(half.learned.graph, half.learned.skeleton), half.privacy, "none", schema
    )
    cells = quantify(bare, one, dag=Dag.of("xy", [("x", "y")])).sample(5000, seed=1)
    assert np.corrcoef(cells["x"], cells["y"])[0, 1] == pytest.approx(np.corrcoef(x, rows["y"])[0, 1], abs=0.05)


def test_covariances_have_no_negative_direction(model):
    covariance = Covariance.of(model.released)
    assert np.linalg.eigvalsh(covariance.matrix).min() > -1e-9
    step = covariance.step(3, [0, 1])
    assert np.linalg.eigvalsh(step.rest).min() > -1e-9
