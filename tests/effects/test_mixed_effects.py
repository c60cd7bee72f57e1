"""Effects in tables of numbers and levels: intervals that hold the truth, nothing charged, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dpcurate
from dpcurate import Budget, Cpdag, Curator, Dag, Numeric, Pag, Schema, quantify
from dpcurate.effects import in_dag
from dpcurate.effects import in_graph as estimate
from dpcurate.effects.effect import EffectQuestion
from dpcurate.effects.in_dag import InDag, if_levels
from dpcurate.effects.in_graph import Effects
from dpcurate.effects.links import MultinomialLogit, NormalLink, OrderedProbit
from dpcurate.effects.matching import Matched, Targets, _fitting, matched, sizes
from dpcurate.effects.simulated import SimulatedNumber, even_numbers
from dpcurate.models.regression_model import buy_products
from dpcurate.networks.mixed import MixedColumn, MixedWorld

ROWS = 20_000
DAG = Dag.of("abcd", [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("a", "d")])


def column(kind, levels=0, products=None, **effects):
    return MixedColumn(kind, levels, "plain", {k: np.array(v) for k, v in effects.items()}, products or {})


WORLD = MixedWorld(
    DAG,
    {
        "a": column("number"),
        "b": column("category", 3, a=[0.8, -0.3, -0.5]),
        "c": column("ordinal", 3, a=[0.7]),
        "d": column("number", b=[[0.6], [-0.8], [0.2]], c=[0.5], a=[-0.6]),
    },
)
PAIRS = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "d"), ("c", "d")]
PRODUCT = column("number", products={("a", "c"): 1.0}, b=[[0.0], [0.0], [0.0]], c=[0.3], a=[0.5])
BENT = replace(WORLD, columns={**WORLD.columns, "d": PRODUCT})


def bought(world, epsilon, seed):
    budget = Budget(epsilon=epsilon, delta=1e-10)
    curator = Curator(world.sample(ROWS, seed=seed), world.schema, budget=budget, insecure_seed=seed)
    return buy_products(curator, None, curator.remaining)


def in_graph(world, epsilon=2.0, seed=1):
    return InDag(bought(world, epsilon, seed), world.dag, world.schema)


def ask(given, cause, outcome, **more):
    return given.effect(EffectQuestion(cause=cause, outcome=outcome, **more))


def truth(world, effect):
    at, rows = 0 if effect.level is None else int(effect.level), 200_000
    settings, width = (effect.to, effect.instead_of), 1.0
    if effect.to is None:
        own = np.random.default_rng(3).permutation(world.sample(rows, seed=3)[effect.cause])
        settings, width = (own + 0.15, own - 0.15), 0.3
    after, before = (world.expected(effect.outcome, rows, seed=2, do={effect.cause: x})[at] for x in settings)
    return float(after - before) / width


@pytest.fixture(scope="module")
def given():
    return in_graph(WORLD)


@pytest.fixture(scope="module")
def truths(given):
    return {pair: truth(WORLD, ask(given, *pair)) for pair in PAIRS}


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 5.0])
def test_intervals_hold_the_truth_as_often_as_they_say(epsilon, truths):
    """The root mean square of 20 distances in standard errors; half of the errors would double it."""
    off = []
    for seed in range(4):
        one = in_graph(WORLD, epsilon, seed)
        effects = {pair: ask(one, *pair) for pair in PAIRS}
        off += [(e.estimate - truths[pair]) / e.error for pair, e in effects.items()]
    assert 0.6 < np.sqrt(np.mean(np.square(off))) < 1.4


def test_an_effect_says_what_was_set_and_what_was_adjusted_for(given, truths):
    number, category, slope = ask(given, "a", "d"), ask(given, "b", "d"), ask(given, "a", "b", level="0")
    assert number.adjusted_for == ()
    assert category.adjusted_for == ("a",)
    assert category.to == "2"
    assert category.instead_of == "0"
    assert category.table is not None
    assert category.table.of_number
    assert slope.level == "0"
    assert slope.low > 0
    assert slope.estimate == pytest.approx(-sum(ask(given, "a", "b", level=x).estimate for x in "12"), abs=0.01)
    assert ask(given, "b", "d", to="0", instead_of="2").estimate == pytest.approx(-category.estimate)
    assert ask(given, "d", "a").state == "none"


def test_what_is_not_as_it_is_taken_to_be_is_refused():
    effect = ask(in_graph(BENT, 5.0), "a", "d")
    assert effect.state == "not determined"
    assert "links that add up" in effect.reason
    assert "bins" in effect.reason


def test_a_clear_misfit_widens_errors(given):
    fitted = given.fitted
    assert fitted.widening == 1.0
    worse = replace(fitted, misfit=2.9)
    assert worse.widening == 2.9
    one, other = (if_levels(x, "b", "d", 3).covariances for x in (fitted, worse))
    assert other[0, 0, 0] > 2.5 * one[0, 0, 0]


def test_too_many_products_are_refused(given, monkeypatch):
    monkeypatch.setattr(in_dag, "MOST_MATCHED", 20)
    effect = ask(InDag(given.released, given.dag, given.schema), "a", "d")
    assert effect.state == "not determined"
    assert "group levels" in effect.reason


def test_numbers_with_missing_cells_of_their_own_are_refused(given):
    columns = [Numeric("a", -5, 5, missing="own"), *WORLD.schema.columns[1:]]
    effect = ask(InDag(given.released, given.dag, Schema(columns)), "a", "d")
    assert effect.state == "not determined"
    assert "missing" in effect.reason


@pytest.fixture(scope="module")
def curator():
    return Curator(WORLD.sample(ROWS, seed=5), WORLD.schema, budget=Budget(epsilon=5, delta=1e-10), insecure_seed=5)


@pytest.fixture(scope="module")
def found(curator):
    return dpcurate.fit(curator, quantify=0.5)


@pytest.mark.parametrize("bought", [False, True], ids=["after discover", "after quantify"])
def test_effects_along_edges_are_told_and_charge_nothing(found, curator, tmp_path, bought):
    before = curator.ledger.spent, curator.passes
    told = found if bought else replace(found, model=None)
    known = [effect for effect in told.effects() if effect.low is not None]
    assert known
    written = told.report(tmp_path / "edges.csv").read_text()
    assert known[0].brief in written
    assert (curator.ledger.spent, curator.passes) == before


@pytest.mark.slow
def test_what_a_model_has_bought_makes_errors_smaller(found):
    free, more = (one._effects.estimator.released for one in (replace(found, model=None), found))
    assert free is found.learned.released
    one, other = (Effects.of(DAG, released, WORLD.schema).effect("b", "d").error for released in (free, more))
    assert other < one


@pytest.mark.slow
def test_in_a_class_of_graphs_every_possible_effect_is_that_of_a_member(given):
    lines = Cpdag.of("abcd", arrows=[("b", "d"), ("c", "d"), ("a", "d")], lines=["ab", "ac"])
    told = Effects.of(lines, given.released, WORLD.schema)
    effect = told.effect("a", "d")
    assert {one.adjusted_for for one in effect.possible} == {(), ("b",), ("c",)}
    for one in effect.possible:
        arrows = [(x, "a") if x in one.adjusted_for else ("a", x) for x in "bc"]
        member = InDag(given.released, Dag.of("abcd", [*lines.arrows, *arrows]), WORLD.schema)
        assert one.estimate == pytest.approx(ask(member, "a", "d").estimate, abs=1e-9)
    truly = truth(WORLD, ask(given, "a", "d"))
    assert effect.low < truly < effect.high


def test_where_there_is_no_dag_nothing_is_told(given):
    hidden = Pag.of("abcd", [("a", "o->", "b"), ("c", "o->", "b"), ("b", "->", "d")])
    effect = Effects.of(hidden, given.released, WORLD.schema).effect("b", "d")
    assert effect.state == "not determined"
    assert "hidden" in effect.reason
    assert "bins" in effect.reason


def test_reports_leave_out_what_takes_long_and_say_so(found, monkeypatch):
    assert not found.reported_effects.why_none
    monkeypatch.setattr(estimate, "MOST_SIMULATED", 3)
    assert "found.effects()" in found.reported_effects.why_none
    assert len(found.reported_effects) == len(found.effects())


def test_a_model_of_a_given_graph_answers_in_it(curator, found):
    other = Curator(WORLD.sample(ROWS, seed=6), WORLD.schema, budget=Budget(epsilon=5, delta=1e-10), insecure_seed=6)
    model = quantify(dpcurate.fit(other, share=other.remaining / 2), other, dag=Dag.of("abcd", [("b", "d")]))
    assert model.effect("a", "d").state == "none"
    assert model.effect("b", "d").adjusted_for == ()


# the parts


@pytest.mark.parametrize(
    ("link", "at"),
    [
        (NormalLink(1), np.array([0.2, 0.7, -0.3])),
        (OrderedProbit(1, np.array([0.2, 0.5, 0.3])), np.array([-0.5, 0.6, 0.8])),
        (MultinomialLogit(1, np.array([0.2, 0.5, 0.3])), np.array([0.3, 0.8, -0.2, -0.5])),
    ],
    ids=["number", "ordinal", "category"],
)
def test_scores_say_how_a_mean_moves_with_parameters(link, at):
    even = even_numbers(1 << 16, 2)
    parent = np.asarray(even[:, :1] * 2 - 1)

    def mean(parameters):
        return float((link.draw(parameters, parent, even[:, 1]) * (1 + parent[:, 0])).mean())

    assert len(link.start) == len(link.prior) == len(at)
    values = link.draw(at, parent, even[:, 1])
    scores = link.scores(at, parent, values)
    assert scores.mean(axis=0) == pytest.approx(0, abs=0.005)
    slopes = (values * (1 + parent[:, 0])) @ scores / len(scores)
    for i in range(len(at)):
        step = np.eye(len(at))[i] * 0.05
        assert slopes[i] == pytest.approx((mean(at + step) - mean(at - step)) / 0.1, abs=0.01)


SKEWED = MixedWorld(
    Dag.of("xy", [("x", "y")]),
    {"x": replace(column("number"), margin="skewed"), "y": column("category", 2, x=[0.5, -0.5])},
)


class Narrow:
    """The same rows, within bounds as narrow as someone may know."""

    dag = SKEWED.dag
    schema = Schema((Numeric("x", 0, 12), SKEWED.schema["y"]))
    sample = SKEWED.sample


def test_a_skewed_number_is_compared_at_its_quartiles():
    narrow = in_graph(Narrow, 20.0)
    shown = narrow.simulator.shown["x"]
    assert isinstance(shown, SimulatedNumber)
    assert shown.ends is not None
    numbers = np.array([0.5, 1.0, 3.0])
    assert shown.numbers(shown.latent(numbers)) == pytest.approx(numbers, rel=0.02)
    assert shown.latent(np.array([1.0])) == pytest.approx(0, abs=0.1)  # the median of a log-normal number
    effect = ask(narrow, "x", "y")
    assert [float(effect.instead_of), float(effect.to)] == pytest.approx(np.exp([-0.674, 0.674]), rel=0.05)
    assert effect.low < truth(SKEWED, effect) < effect.high
    assert "instead of" in effect.sentence


class Counts:
    """A number of which many rows hold the same: visits, which bring about a level."""

    dag = SKEWED.dag
    schema = Narrow.schema

    @staticmethod
    def sample(rows, *, seed, most=0.6):
        random = np.random.default_rng(seed)
        x = np.where(random.random(rows) < most, 2.0, random.poisson(5, rows) + 1.0).clip(0, 12)
        return {"x": x, "y": (random.random(rows) < 0.2 + 0.05 * x).astype(int).astype(str)}


class Constant(Counts):
    sample = staticmethod(lambda rows, seed: Counts.sample(rows, seed=seed, most=0.97))


def test_a_number_of_few_values_is_compared_further_out():
    effect = ask(in_graph(Counts, 5.0), "x", "y")
    assert float(effect.instead_of) == pytest.approx(2, abs=0.05)
    assert effect.estimate == pytest.approx(0.05 * (float(effect.to) - 2), abs=0.06)


def test_a_number_that_hardly_varies_is_refused():
    effect = ask(in_graph(Constant, 5.0), "x", "y")
    assert effect.state == "not determined"
    assert "nearly the same x" in effect.reason


def test_fewer_rows_are_simulated_of_small_tables_and_of_wide_ones():
    assert _fitting(1 << 16, 1e6, 100) == 1 << 16
    assert _fitting(1 << 16, 20_000, 100) == 1 << 15
    assert _fitting(1 << 16, 100, 100) == 1 << 14
    assert _fitting(1 << 16, 1e6, 1000) == 1 << 14


def test_noise_that_hides_how_a_number_lies_is_said():
    effect = ask(in_graph(SKEWED, 0.2), "x", "y")
    assert effect.state == "not determined"
    assert "bounds" in effect.reason


def test_what_is_matched_is_what_the_world_itself_would_release(given):
    """Rows of the world in the place of simulated ones: nothing is left but errors."""
    table = WORLD.sample(ROWS, seed=1)
    simulator, targets = given.simulator, Targets.of(given.released, given.simulator)
    shown = simulator.shown
    values = {x: shown[x].latent(v) if WORLD.columns[x].kind == "number" else v.astype(int) for x, v in table.items()}
    left = targets.of_rows(simulator, values).mean(axis=0) - targets.values
    assert np.sqrt(np.mean(left**2 / np.diagonal(targets.noise))) < 1.3  # the very rows: no sampling error
    assert sum(sizes(given.released, simulator)) >= len(targets.values) + simulator.size


def test_other_simulated_rows_give_the_same_parameters(given):
    again = matched(given.released, given.simulator, turn=1)
    assert isinstance(again, Matched)
    moved = (again.parameters - given.fitted.parameters) / np.sqrt(np.diagonal(again.covariance))
    assert np.abs(moved).max() < 0.3
    assert again.settled < 0.1


def test_what_a_world_expects_is_what_its_rows_show():
    rows = WORLD.do(b="1").sample(200_000, seed=7)
    assert WORLD.expected("d", 100_000, seed=8, do={"b": "1"})[0] == pytest.approx(rows["d"].mean(), abs=0.01)
    for name in "bc":
        shown = [np.mean(WORLD.do(a=0.5).sample(100_000, seed=7)[name] == x) for x in "012"]
        assert WORLD.expected(name, 1000, seed=8, do={"a": 0.5}) == pytest.approx(shown, abs=0.01)
