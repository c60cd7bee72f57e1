"""Frames and tables for notebooks, and edges.csv for other programs."""

from __future__ import annotations

import math

import pandas as pd
import pytest

import dpcurate
from dpcurate import Budget, Categorical, Ledger, Numeric, Ordinal, Person, Schema, networks
from dpcurate.effects.effect import Effect, usual
from dpcurate.effects.in_graph import FoundEffects
from dpcurate.errors import DpcurateError
from dpcurate.graphs.formats import loads

HOSTILE = "<script>alert(1)</script>\u202e"


@pytest.fixture(scope="module")
def found():
    network = networks.load("asia")
    return dpcurate.discover(network.sample(50_000, seed=1), network.schema, epsilon=3, insecure_seed=1)


def test_edges_as_a_frame(found):
    frame = found.to_frame()
    assert list(zip(frame["from"], frame["to"], strict=True)) == [(e.a, e.b) for e in found.edges]
    assert set(frame["edge"]) <= {"arrow", "line"}
    assert frame["linked"].tolist() == pytest.approx([e.linked for e in found.edges], abs=1e-4)
    assert pd.api.types.is_float_dtype(frame["effect_low"])


def test_edges_csv_is_one_clean_table(found, tmp_path):
    path = found.report(tmp_path / "edges.csv")
    frame = pd.read_csv(path)
    assert len(frame) == len(found.edges)
    assert not frame[["from", "to", "edge"]].isna().any().any()
    pd.testing.assert_frame_equal(frame, found.to_frame(), check_dtype=False)
    assert loads(path.read_text(), "csv").edges == found.graph.edges


def test_effects_as_a_frame(found):
    effects = found.effects()
    frame = effects.to_frame()
    assert frame["cause"].tolist() == [e.cause for e in effects]
    known = [e.estimate for e in effects]
    assert [None if math.isnan(x) else x for x in frame["estimate"]] == known
    assert {"low", "high", "strength", "in_words", "why_unknown"} < set(frame.columns)


def test_no_edges_are_an_empty_frame_with_its_columns(found):
    none = found.at(0.999999)
    if len(none.edges) == 0:
        assert {"from", "to"} <= set(none.to_frame().columns)
    assert FoundEffects().to_frame().empty


def test_without_pandas_it_says_what_to_install(found, monkeypatch):
    monkeypatch.setattr("dpcurate._tables.import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
    with pytest.raises(DpcurateError, match="pip install pandas"):
        found.to_frame()


def test_effects_that_are_not_known_are_left_out_of_the_table_with_one_sentence():
    known = Effect.per_unit("a", "b", 0.5, 0.1)
    open_ones = [Effect.unknown("c", x, "not identified", "too many lines") for x in ("d", HOSTILE)]
    html = FoundEffects([known, *open_ones])._repr_html_()
    assert html.count("<tr>") == 2  # the head, and the one that is known
    assert html.endswith("<p>2 of 3 effects are left out. not identified: too many lines</p>")
    assert "<p>" not in FoundEffects([known])._repr_html_()


def test_plans_schemas_and_ledgers_show_as_tables(tmp_path):
    columns = (
        Categorical("sex", ("f", "m"), missing="own"),
        Ordinal(HOSTILE, tuple(f"stage {i}" for i in range(20))),
        Numeric("age", 0, 120),
        Numeric("bmi", 10, 50, bins=4),
    )
    schema = Schema(columns, rows=20_000, person=Person("id", 3))
    html = schema._repr_html_()
    for said in ("about 20,000 rows; persons by id, at most 3 rows each", "(20 levels)", "0 to 120", "in 4 bins"):
        assert said in html
    assert "<script" not in html
    assert "\u202e" not in html
    plan = dpcurate.plan(schema, 20_000, epsilons=(1,), worlds=1)
    assert f"<td>{plan.cells['auto', 1.0].f1:.2f}</td>" in plan._repr_html_()
    ledger = Ledger(Budget(epsilon=2, delta=1e-10))
    assert "<td>ceiling</td><td>epsilon = 2" in ledger._repr_html_()
    assert "NOT PRIVATE" in Ledger(Budget.unlimited())._repr_html_()
    network, path = networks.load("cancer"), tmp_path / "c.ledger"
    dpcurate.discover(network.sample(2000, seed=1), network.schema, epsilon=1, ledger=path, by=HOSTILE)
    shown = Ledger.open(path)._repr_html_()
    assert "<td>auto</td>" in shown
    assert "<script" not in shown


@pytest.mark.parametrize(
    ("levels", "asked"),
    [
        (("no", "yes"), ("yes", "no")),
        (("Yes", "No"), ("Yes", "No")),
        (("1", "0"), ("1", "0")),
        (("low", "middle", "high"), ("high", "low")),
        (("no", "yes", "missing"), ("yes", "no")),
        (("current", "former", "never"), ("former", "never")),
        (("north", "south", "other", "Unknown"), ("south", "north")),
        (("other", "missing"), ("missing", "other")),
        (("1", "2", "3"), ("3", "1")),
        (("mean",), ("mean", "mean")),
    ],
)
def test_the_usual_levels_are_those_that_tell_something(levels, asked):
    assert usual(levels) == asked
