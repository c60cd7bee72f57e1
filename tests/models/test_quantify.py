"""A model of a found graph: right, within its budget, paid once, and free to ask."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from dpcurate import Budget, Curator, Dag, Schema, fit, networks, quantify
from dpcurate.errors import BudgetExceeded, DomainTooLarge, QueryError
from dpcurate.learn.measure_once.blocks import helmert, rotate, subsets
from dpcurate.learn.measure_once.central_moments import Released
from dpcurate.learn.measure_once.release import buy
from dpcurate.models import fitting
from dpcurate.models.family import Shares, _bounded, fit_family
from dpcurate.models.fitting import MOST_CELLS, checked, families, family_weights, fitted, graph_of, importance

ROWS = 100_000
ASIA = networks.load("asia")


def far(one, other):
    """Mean total variation over all pairs."""
    pairs = list(combinations(ASIA.nodes, 2))
    return float(np.mean([np.abs(one.marginal(p) - other.marginal(p)).sum() / 2 for p in pairs]))


def curator_of(epsilon, seed=1, **more):
    table = ASIA.sample(ROWS, seed=seed)
    return Curator(table, ASIA.schema, budget=Budget(epsilon=epsilon, delta=1e-10), insecure_seed=seed, **more)


@pytest.fixture(scope="module")
def curator():
    return curator_of(1)


@pytest.fixture(scope="module")
def found(curator):
    return fit(curator, share=curator.remaining / 2)


@pytest.fixture(scope="module")
def model(found, curator):
    return quantify(found, curator)


def test_spends_what_was_left_in_one_release(found, model, curator):
    assert curator.remaining == pytest.approx(0, abs=1e-9)
    assert len(curator.ledger.events) == 1 + len(found.learned.tests) + 1  # the seed, the search, the model


def test_asking_a_model_is_free(model, curator):
    before = curator.ledger.spent, len(curator.ledger.events), curator.passes
    model.table("dysp")
    model.marginal(["asia", "tub"])
    model.predict({"smoke": "yes"}, "lung")
    model.log_likelihood()
    model.effect("smoke", "dysp")
    model.sample(10, seed=1)
    str(model)
    assert (curator.ledger.spent, len(curator.ledger.events), curator.passes) == before


def test_pairs_are_nearly_those_of_the_world(model):
    assert far(model, ASIA) < 0.003


def test_what_was_released_before_counts():
    """With the search's answers the model is better than from the second half of the budget alone."""
    alone, both, blind = [], [], Released.nothing([2] * 8)
    for seed in range(3):
        one = curator_of(0.1, seed)
        half = fit(one, share=one.remaining / 2)
        other = curator_of(0.1, seed)
        bought = buy(other, family_weights(blind, ASIA.dag, other.remaining), one.remaining)
        both.append(far(quantify(half, one, dag=ASIA.dag), ASIA))
        alone.append(far(fitted(blind.merged(bought.answers), ASIA.dag, ASIA.schema), ASIA))
    assert np.mean(both) < np.mean(alone)


def test_a_share_is_a_limit():
    one = curator_of(1)
    half = fit(one, share=one.remaining / 2)
    left = one.remaining
    quantify(half, one, share=left / 4)
    assert one.remaining == pytest.approx(left * 3 / 4)


def test_any_method_can_be_quantified():
    one = curator_of(1)
    half = fit(one, "em-pc", share=one.remaining / 2)
    assert half.learned.released is None
    assert far(quantify(half, one, dag=ASIA.dag), ASIA) < 0.004


def test_nothing_left_is_refused(found, model, curator):
    with pytest.raises(BudgetExceeded, match="nothing is left"):
        quantify(found, curator)


def test_another_schema_is_refused(found):
    schema = Schema(ASIA.schema.columns, rows=5)
    with pytest.raises(QueryError, match="another schema"):
        quantify(found, Curator(ASIA.sample(5, seed=1), schema, budget=Budget(rho=1)))


# --- tables ------------------------------------------------------------------------------------------


def exact(table, noise=1e-6):
    """Contrasts of all sets of the columns of a table of counts, nearly without noise."""
    levels = table.shape
    axes = range(len(levels))
    answers = {(): (np.asarray(table.sum()), noise)}
    for u in subsets(tuple(axes)):
        margin = table.sum(axis=tuple(a for a in axes if a not in u))
        answers[u] = rotate(rotate(margin, [helmert(levels[a]) for a in u]), [helmert(levels[a]).T for a in u]), noise
    return Released.nothing(levels).merged(answers)


def test_without_noise_a_table_is_that_of_the_rows():
    counts = np.random.default_rng(1).integers(500, 3000, (2, 3, 4)).astype(float)
    parents = counts.sum(axis=2).ravel() / counts.sum()
    known = Shares.of(parents, np.tile(parents, (2, 1)))
    got = fit_family(exact(counts), (0, 1), 2, known, np.zeros((2, 24))).table
    assert got == pytest.approx((counts / counts.sum(axis=2, keepdims=True)).reshape(6, 4), abs=2e-3)


def test_the_order_of_columns_does_not_matter():
    counts = np.random.default_rng(1).integers(500, 3000, (2, 3, 4)).astype(float)
    turned = counts.transpose(2, 0, 1)
    parents = counts.sum(axis=2).ravel() / counts.sum()
    known = Shares.of(parents, np.tile(parents, (2, 1)))
    one = fit_family(exact(counts), (0, 1), 2, known, np.zeros((2, 24)))
    other = fit_family(exact(turned), (1, 2), 0, known, np.zeros((2, 24)))
    assert one.table == pytest.approx(other.table, abs=1e-6)


def test_errors_are_those_of_sampling_and_noise():
    """Over many noised samples of one table its errors are as wide as they say."""
    random = np.random.default_rng(2)
    chances = np.array([[0.3, 0.1], [0.15, 0.45]])
    scores = []
    for _ in range(300):
        counts = random.multinomial(5000, chances.ravel()).reshape(2, 2).astype(float)
        noised = exact(counts)
        sums = {u: s + random.normal(size=np.shape(s)) * 30 for u, s in noised.sums.items()}
        released = Released(noised.levels, sums, dict.fromkeys(sums, 900.0))
        root = fit_family(released, (), 0, Shares(np.ones(1), np.zeros((200, 1))), random.normal(size=(200, 2)))
        got = fit_family(released, (0,), 1, Shares.of(root.table, root.draws[:, 0]), random.normal(size=(200, 4)))
        scores.append((got.table[0, 0] - 0.75) / got.errors[0, 0])
    assert 0.88 < np.std(scores) < 1.12
    assert abs(np.mean(scores)) < 0.2


def test_a_table_has_no_negative_entry_and_rows_that_add_up():
    random = np.random.default_rng(3)
    counts = np.zeros((2, 3, 3))
    counts[0, :, 0], counts[1, :, 2] = 2000, 300
    noised = exact(counts)
    sums = {u: s + random.normal(size=np.shape(s)) * 200 for u, s in noised.sums.items()}
    released = Released(noised.levels, sums, dict.fromkeys(sums, 200.0**2))
    shares = Shares(np.full(6, 1 / 6), np.zeros((50, 6)))
    got = fit_family(released, (0, 1), 2, shares, random.normal(size=(50, 18)))
    assert (got.table == 0).any()
    for tables in (got.table, got.draws):
        assert (tables >= 0).all()
        assert tables.sum(axis=-1) == pytest.approx(np.ones(tables.shape[:-1]))


def test_shares_are_drawn_where_they_cannot_be_computed(model, monkeypatch):
    def too_large(*args):
        raise DomainTooLarge("too large")

    monkeypatch.setattr(fitting, "joint", too_large)
    before = list(model.network.variables)
    drawn = fitting._shares({v.name: v for v in before}, model.families, ("bronc", "either"))
    assert drawn.values == pytest.approx(model.marginal(["bronc", "either"]).ravel(), abs=0.01)


def test_an_entry_that_is_lifted_takes_along_what_errs_with_it():
    """The nearest table without negative entries in the metric of its errors, as a general solver has it."""
    random = np.random.default_rng(5)
    root = random.normal(size=(2, 2, 2)) * [[[1.0], [0.0]], [[1.0], [0.0]]]
    root[:, 1] = -root[:, 0]
    table = np.array([[-0.1, 1.1], [0.3, 0.7]])
    got = _bounded(table[None], root)[0]
    inside = root[:, 0] @ root[:, 0].T
    apart = got[:, 0] - table[:, 0]
    assert got[0, 0] == pytest.approx(0)
    assert apart[1] == pytest.approx(0.1 * inside[1, 0] / inside[0, 0])  # the conditional mean of a normal


# --- what is bought ------------------------------------------------------------------------------------------


def test_every_set_of_every_family_matters():
    dag = Dag.of("abcd", [("a", "c"), ("b", "c"), ("c", "d")])
    assert families(dag) == [(0,), (1,), (0, 1, 2), (2, 3)]
    assert set(importance([2] * 4, families(dag), 1.0)) == {
        (), (0,), (1,), (2,), (3,), (0, 1), (0, 2), (1, 2), (2, 3), (0, 1, 2)
    }  # fmt: skip


def test_importance_is_what_variance_adds_to_tables():
    """A contrast of variance 1 adds the squared length of its map into cells, summed over tables."""
    levels = [2, 3, 4]
    matters = importance(levels, [(0,), (1,), (0, 1, 2)], 3.0)
    # a pair's own table has it in (r - 1)(s - 1) coordinates; the triple's spreads it over the third column
    assert matters[0, 1] == pytest.approx(2 * (3 + 1 / 4))
    assert matters[0,] == pytest.approx(3 * (1 / 3 + 1 / 4) + 1 / 12)


def test_water_fills_up_to_one_level():
    dag = Dag.of("ab", [("a", "b")])
    before = Released((2, 2), {(): np.array(1.0), (0,): np.zeros(1)}, {(): 1e-9, (0,): 4.0})
    matters, price = importance([2, 2], families(dag), 1.0), {(): 1.0, (0,): 0.5, (1,): 0.5, (0, 1): 0.25}
    weights = family_weights(before, dag, 10.0)
    assert () not in weights  # known well enough
    bought = {u: w * w for u, w in weights.items()}
    scale = 10.0 / sum(price[u] * x for u, x in bought.items())
    after = {u: (1 / before.variances[u] if u in before.variances else 0) + scale * x for u, x in bought.items()}
    levels = [after[u] / np.sqrt(matters[u] / price[u]) for u in bought]
    assert levels == pytest.approx([levels[0]] * len(levels), rel=1e-6)


def test_pairs_count_less_where_sampling_rules():
    """A row count that dwarfs the noise turns the budget to families."""
    dag = Dag.of("abc", [("a", "c"), ("b", "c")])

    def weight(rows):
        before = Released((2, 2, 2), {(): np.array(rows)}, {(): 1.0})
        weights = family_weights(before, dag, 0.01)
        return weights[0, 1, 2] / weights[0, 1]

    assert weight(1e7) > 1.3 * weight(1e2)


# --- the graph --------------------------------------------------------------------------------------------


def test_the_graph_is_that_of_the_highest_expected_f1(found):
    assert graph_of(found).edges == found.at("best-f1").graph.edges


def test_a_graph_of_other_columns_or_of_huge_tables_is_refused():
    schema = networks.load("child").schema
    with pytest.raises(QueryError, match="other columns"):
        checked(Dag.of("ab", []), schema)
    some = schema.names
    with pytest.raises(QueryError, match=f"more than {MOST_CELLS:,}"):
        checked(Dag.of(some, [(x, some[-1]) for x in some[:9]]), schema)


def test_a_graph_that_is_none_is_refused_and_costs_nothing(found, curator):
    spent = curator.ledger.spent
    with pytest.raises(QueryError, match=r"dag is a Dag, such as found\.to_dag\(\), got str"):
        quantify(found, curator, dag="[a][b|a]")
    assert curator.ledger.spent == spent
