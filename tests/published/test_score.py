"""The published score methods: each reading changes what it says it changes."""

import math

import numpy as np
import pytest

from dpcurate import Budget, Curator
from dpcurate.accounting.conversions import gaussian_multiplier
from dpcurate.errors import BudgetExceeded, QueryError
from dpcurate.learn.score.descent import Descent, Lagrangian, StageOver
from dpcurate.networks import load
from dpcurate.published import PublishedCurateScore, PublishedNoleaks, schedules
from dpcurate.published import score as published_score
from dpcurate.published.gradients import Encoding, PublishedGradients, numbers_of, stated_sensitivity
from dpcurate.published.schedules import Spending


def curator(rows=4000, name="cancer", seed=1):
    network = load(name)
    table = network.sample(rows, seed=0)
    return Curator(table, network.schema, budget=Budget.unlimited(), insecure_seed=seed)


# --- encoding -------------------------------------------------------------------------------------


def test_a_level_becomes_twenty_times_the_middle_of_its_place_by_falling_frequency():
    # Shares .2, .5, .3: places [.8, 1], [0, .5], [.5, .8], middles .9, .25, .65, mean .5.
    np.testing.assert_allclose(numbers_of(np.array([20.0, 50.0, 30.0])), [8.0, -5.0, 3.0])


def test_second_moments_are_those_of_the_encoded_rows():
    network = load("survey")
    table = network.sample(500, seed=3)
    encoded = []
    for column in network.schema.columns:
        codes = np.array([column.levels.index(v) for v in table[column.name]])
        encoded.append(numbers_of(np.bincount(codes, minlength=len(column.levels)).astype(float))[codes])
    found = Encoding(Curator(table, network.schema, budget=Budget.unlimited())).whole
    assert found.count == 500
    np.testing.assert_allclose(found.second, np.cov(np.array(encoded), bias=True), atol=1e-9)


def test_too_few_rows_are_refused():
    with pytest.raises(QueryError, match="too few"):
        Encoding(curator(1))


# --- stated sensitivity, delta, sampled rows -------------------------------------------------------


@pytest.mark.parametrize(
    ("stated", "value"),
    [("artifact", 2 * 3 * math.sqrt(20) / 100), ("printed", math.sqrt(20 * 3) / 100), ("printed-plain", 5 * 3 / 100)],
)
def test_stated_sensitivities(stated, value):
    assert stated_sensitivity(5, 100, 3.0, stated) == pytest.approx(value)


class Recorded(PublishedGradients):
    """Keeps what it was made of."""

    made: list

    def __init__(self, second, spending, sigma, draw, **rest):
        Recorded.made.append({"second": second, "sigma": sigma(0.1), "spending": spending, **rest})
        super().__init__(second, spending, sigma, draw, **rest)


@pytest.fixture
def made(monkeypatch):
    Recorded.made = []
    monkeypatch.setattr(published_score, "PublishedGradients", Recorded)
    return Recorded.made


def sigma(rows, delta, stated, clip=2.0):
    return stated_sensitivity(5, rows, clip, stated) * gaussian_multiplier(epsilon=0.1, delta=delta)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, sigma(4000, 1e-4, "artifact")),
        ({"delta": 1e-12}, sigma(4000, 1e-12, "artifact")),
        ({"sensitivity": "printed-plain"}, sigma(4000, 1e-4, "printed-plain")),
        ({"clip": 1.0}, sigma(4000, 1e-4, "artifact", 1.0)),
    ],
    ids=["default", "delta", "sensitivity", "clip"],
)
def test_the_noise_follows_delta_sensitivity_and_clip(made, options, expected):
    PublishedNoleaks(each=0.1, total=0.3, **options).fit(curator())
    assert made[0]["sigma"] == pytest.approx(expected)


def test_sampled_rows_stand_in_the_sensitivity_and_the_claim(made):
    whole = PublishedNoleaks(each=0.1, total=0.3).fit(curator())
    found = PublishedNoleaks(each=0.1, total=0.03, rate=0.1).fit(curator())
    assert 8 < made[1]["sigma"] / made[0]["sigma"] < 12.5  # about 400 rows of 4,000
    assert not np.allclose(made[0]["second"], made[1]["second"], rtol=1e-3)
    assert whole.tests == found.tests == (3,)
    assert (whole.claimed, found.claimed) == pytest.approx((0.3, 0.03))


def test_public_rows_give_the_values_of_the_line_search(made):
    PublishedNoleaks(each=0.1, total=0.3).fit(curator())
    PublishedNoleaks(each=0.1, total=0.3, values="public").fit(curator())
    assert made[0]["public"] is None
    assert made[1]["public"] is not None
    assert not np.allclose(made[1]["public"], made[1]["second"], rtol=1e-3)


def test_the_gradient_is_of_private_rows_and_the_value_of_public_ones():
    private, public = np.diag([1.0, 2.0]), np.diag([3.0, 4.0])
    private[0, 1] = private[1, 0] = 0.5
    source = PublishedGradients(private, Spending((1.0,)), lambda _: 0.0, lambda: 0.5, public=public)
    value, gradient = source(np.zeros((2, 2)))
    assert value == 0.5 * 7.0
    np.testing.assert_allclose(gradient, [[0, -0.5], [-0.5, 0]])
    np.testing.assert_allclose(
        PublishedGradients(private, Spending((1.0,)), lambda _: 0.0, lambda: 0.5, clip=0.2)(np.zeros((2, 2)))[1],
        [[0, -0.2], [-0.2, 0]],
    )


def test_the_printed_gradient_stays_at_the_first_weights():
    second = np.array([[1.0, 0.5], [0.5, 1.0]])
    elsewhere = np.array([[0.0, 0.3], [0.1, 0.0]])

    def gradient(at):
        loss = PublishedGradients(second, Spending((1.0,)), lambda _: 0.0, lambda: 0.5, at=at).near(np.zeros((2, 2)))
        return loss(elsewhere)[1]

    np.testing.assert_allclose(gradient("first"), [[0, -0.5], [-0.5, 0]])
    assert not np.allclose(gradient("current"), gradient("first"))


# --- schedules ------------------------------------------------------------------------------------


def test_a_minimisation_begins_the_schedule_again_and_a_run_does_not():
    again, once = Spending((3.0, 2.0), "minimisation"), Spending((3.0, 2.0), "run")
    assert [again.pay(), once.pay()] == [3.0, 3.0]
    again.restart()
    once.restart()
    assert [again.pay(), again.pay(), once.pay()] == [3.0, 2.0, 2.0]
    with pytest.raises(StageOver):
        again.pay()
    with pytest.raises(BudgetExceeded):
        once.pay()
    assert (again.spent, again.calls, once.spent) == (8.0, 3, 5.0)


def test_no_gradient_lifts_the_sum_above_the_total():
    spending = Spending((0.4,), total=1.0)
    assert [spending.pay(), spending.pay()] == [0.4, 0.4]
    with pytest.raises(BudgetExceeded):
        spending.pay()


def test_a_used_up_schedule_ends_its_minimisation_and_the_next_begins():
    method = PublishedCurateScore(first=0.5, iterations=4)
    found = method.fit(curator())
    assert found.tests[0] > 2 * 4
    once = PublishedCurateScore(first=0.5, iterations=4, schedule="run").fit(curator())
    assert once.tests == (4,)
    assert once.claimed == pytest.approx(sum(schedules.algorithm_2(0.5, 4)))


def test_the_number_of_iterations_is_lemma_2s_and_the_total_is_kept():
    method = PublishedCurateScore(first=0.01, iterations=None, total=0.1)
    assert len(method.budgets()) == 44  # log(.01) / log(1 - .01 * .99 / .1) = 44.17
    assert len(PublishedCurateScore(first=0.01, iterations=None, total=0.1, increment="additive").budgets()) == 7
    assert 0 < method.fit(curator()).claimed <= 0.1 * (1 + 1e-9)


def test_increments_by_their_names():
    def ask(increment):
        return PublishedCurateScore(first=0.1, iterations=3, increment=increment).budgets()

    assert ask("algorithm-2") == pytest.approx((0.1, 0.1, 0.1**1.5))
    assert ask("multiplicative") == pytest.approx((0.1, 0.1 ** (4 / 3), 0.1 ** (5 / 3)))
    assert ask("additive") == pytest.approx((0.1, 0.4 / 3, 0.5 / 3))


def test_sharing_gives_each_gradient_its_part():
    method = PublishedNoleaks.sharing(2.0, 20, rate=0.5)
    assert (method.each, method.total) == (0.2, 2.0)
    assert method.fit(curator()).claimed <= 2.0 * (1 + 1e-9)


def test_presets():
    for maker in (PublishedNoleaks, PublishedCurateScore):
        assert (maker.printed().sensitivity, maker.printed().delta, maker.printed().rate) == ("printed", 1e-12, 1.0)
        coded = maker.artifact()
        assert (coded.sensitivity, coded.delta, coded.rate, coded.values) == ("artifact", 1e-4, 0.05, "public")
    assert PublishedCurateScore.printed(first=0.2).first == 0.2


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: PublishedCurateScore(schedule="run", total=5.0), "would have no effect"),
        (lambda: PublishedCurateScore(iterations=None), "needs total"),
        (lambda: PublishedCurateScore(first=0.5, iterations=None, total=0.1), "no iteration"),
        (lambda: PublishedCurateScore(schedule="stage"), "schedule must be one of"),
        (lambda: PublishedCurateScore(at="last"), "at must be one of"),
        (lambda: PublishedNoleaks(sensitivity="half"), "sensitivity must be one of"),
        (lambda: PublishedNoleaks(values="rows"), "values must be one of"),
        (lambda: PublishedNoleaks(rate=0.0), "rate lies above 0"),
        (lambda: PublishedNoleaks(delta=0.0), "delta lies between"),
        (lambda: PublishedNoleaks(total=math.inf), "total must be"),
        (lambda: PublishedNoleaks(each=0.0), "finite number above 0"),
    ],
)
def test_what_has_no_effect_or_no_sense_is_refused(make, sentence):
    with pytest.raises(QueryError, match=sentence):
        make()


# --- the descent ----------------------------------------------------------------------------------


class Pushing:
    """Every stage gets two looks, which push all weights up, so that h grows; every start is kept."""

    def __init__(self):
        self.starts = []

    def near(self, weights):
        self.starts.append(float(weights[0, 1]))
        looks = iter(range(2))

        def loss(at):
            if next(looks, None) is None:
                raise StageOver("two looks a stage")
            return 0.0, np.full((2, 2), -1e9)

        return loss


def test_a_retry_starts_at_the_weights_accepted_last():
    source, start = Pushing(), np.array([[0.0, 0.5], [0.5, 0.0]])
    ended = Descent(acyclicity="exp", rule=Lagrangian(most=4)).run(source, ~np.eye(2, dtype=bool), start)
    first, accepted, *retries = source.starts
    assert first == 0.5
    assert accepted > first  # nothing to compare with yet: accepted, though h grew
    assert retries == [accepted, accepted]
    assert [s.rho for s in ended.history] == [1.0, 1.0, 10.0, 100.0]


def test_a_stage_is_accepted_where_h_falls_to_a_quarter_of_the_last_accepted():
    rule = Lagrangian()
    assert [rule.accepts(h, 1.0) for h in (0.25, 0.26)] == [True, False]
    assert rule.after(0.0, 1.0, 0.26, 1.0, 2) == (0.0, 10.0)
    assert rule.after(0.0, 2.0, 0.25, 1.0, 2) == (0.5, 2.0)


def test_curate_at_the_same_first_epsilon_finds_what_noleaks_finds_for_a_third_of_the_claim():
    network = load("earthquake")
    table, edges = network.sample(100_000, seed=1), network.dag.edges

    def heaviest(found):
        sizes = {}
        for e in found.evidence:
            pair = frozenset(e.pair)
            sizes[pair] = max(sizes.get(pair, 0.0), abs(e.value))
        return set(sorted(sizes, key=sizes.get)[-len(edges) :])

    def fit(method):
        return method.fit(Curator(table, network.schema, budget=Budget.unlimited(), insecure_seed=2))

    ours, theirs = fit(PublishedCurateScore(threshold=1e-9)), fit(PublishedNoleaks(threshold=1e-9))
    assert heaviest(ours) == heaviest(theirs) == edges
    assert 3 * ours.claimed < theirs.claimed
