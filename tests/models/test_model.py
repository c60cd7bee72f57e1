"""What a fitted model says: tables, chances, effects, rows, files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpcurate import Budget, Curator, Numeric, Schema, fit, networks, quantify
from dpcurate.errors import QueryError
from dpcurate.models.table_model import cells_of

ASIA = networks.load("asia")


@pytest.fixture(scope="module")
def model():
    one = Curator(ASIA.sample(100_000, seed=3), ASIA.schema, budget=Budget(epsilon=5, delta=1e-10), insecure_seed=3)
    return quantify(fit(one, share=one.remaining / 2), one, dag=ASIA.dag)


def test_a_row_of_which_nothing_is_known_says_so(model):
    table = model.table("dysp")
    errors = np.array(table.errors)
    errors[1] = 0.4
    lines = str(replace(table, errors=errors)).splitlines()
    assert lines[2].count("not seen") == 2
    assert "not seen" not in lines[1]


def test_a_table_prints_its_parents_chances_and_errors(model):
    table = model.table("dysp")
    lines = str(table).splitlines()
    assert lines[0].split() == ["bronc", "either", "dysp=yes", "dysp=no", "of", "rows"]
    assert len(lines) == 5
    assert "±" in lines[1]
    assert lines[1].endswith("%")
    assert np.abs(table.values - ASIA["dysp"].table).max() < 0.05
    assert (table.errors > 0).all()
    assert table.shares.sum() == pytest.approx(1)


def test_a_column_without_parents_has_one_row(model):
    assert str(model.table("smoke")).splitlines()[0].split() == ["smoke=yes", "smoke=no"]


def test_predictions_are_conditional_probabilities(model):
    said = model.predict({"smoke": "yes", "xray": "yes"}, "lung")
    joint = model.marginal(["smoke", "xray", "lung"])[0, 0]
    assert list(said.values()) == pytest.approx((joint / joint.sum()).tolist())
    assert model.predict({}, "lung")["yes"] == pytest.approx(float(model.marginal(["lung"])[0]))


def test_predictions_of_what_is_not_there_are_refused(model):
    with pytest.raises(QueryError, match="no level 'perhaps'"):
        model.predict({"smoke": "perhaps"}, "lung")
    with pytest.raises(QueryError, match="given and asked for"):
        model.predict({"lung": "yes"}, "lung")


def test_effects_are_interventions_in_the_world(model):
    effect = model.effect("smoke", "dysp", to="yes", instead_of="no", level="yes")
    truth = ASIA.do(smoke="yes").marginal(["dysp"])[0] - ASIA.do(smoke="no").marginal(["dysp"])[0]
    assert abs(effect.estimate - truth) < 4 * effect.error < 0.03
    assert effect.low < truth < effect.high


def test_an_effect_against_the_arrows_is_none(model):
    assert model.effect("dysp", "smoke").state == "none"
    with pytest.raises(QueryError, match="twice"):
        model.effect("dysp", "dysp")


def test_the_log_likelihood_is_that_of_the_rows(model):
    codes = ASIA.codes(100_000, seed=3)
    place = {name: i for i, name in enumerate(ASIA.nodes)}
    total = np.zeros(len(codes))
    for v in model.network.variables:
        at = np.zeros(len(codes), dtype=int)
        for p in v.parents:
            at = at * 2 + codes[:, place[p]]
        total += np.log(np.maximum(v.probabilities[at, codes[:, place[v.name]]], 1e-6))
    assert model.log_likelihood() == pytest.approx(float(total.mean()), abs=0.01)


def test_a_synthetic_table_has_the_columns_and_levels_of_the_schema(model):
    table = model.sample(20_000, seed=5)
    assert list(table) == list(ASIA.schema.names)
    assert set(table["smoke"]) == {"yes", "no"}
    assert np.mean(table["smoke"] == "yes") == pytest.approx(float(model.marginal(["smoke"])[0]), abs=0.02)
    assert all((table[x] == model.sample(20_000, seed=5)[x]).all() for x in table)
    assert "good for" in model.note


def test_numbers_with_bins_are_drawn_within_them():
    schema = Schema((Numeric("x", 0, 10, edges=(1.0, 4.0)),))
    cells = cells_of(schema, np.array([[0], [1], [2], [2]], dtype=np.uint8), 1)["x"]
    assert (np.array([0, 1, 4, 4]) <= cells).all()
    assert (cells <= np.array([1, 4, 10, 10])).all()


def test_a_model_is_saved_as_bif(model, tmp_path):
    path = model.save(tmp_path / "model.bif")
    again = networks.load(path)
    assert again.dag == model.dag
    assert again["dysp"].table == pytest.approx(model.network["dysp"].table)
    assert "good for" in path.read_text()
    with pytest.raises(QueryError, match=r"model\.bif"):
        model.save(tmp_path / "model.xml")


def test_a_model_says_what_it_is(model):
    assert str(model).startswith("a model of 8 columns and 8 arrows, 18 free probabilities")
    assert "for rho = " in str(model)
