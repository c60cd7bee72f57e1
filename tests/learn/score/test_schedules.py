import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcurate.accounting import gaussian_multiplier
from dpcurate.errors import QueryError
from dpcurate.learn.score.noised_gradients import spread
from dpcurate.published.schedules import (
    INCREMENTS,
    algorithm_2,
    closed_sum,
    exact_count,
    lemma_2,
    published,
    simulated_count,
)


def rises(budgets):
    return all(b >= a * (1 - 1e-12) for a, b in pairwise(budgets))


@pytest.mark.parametrize("kind", INCREMENTS)
@pytest.mark.parametrize("first", [0.01, 0.1, 1.0, 1.7])
def test_closed_sums_are_sums(kind, first):
    for iterations in (1, 2, 5, 40):
        assert closed_sum(kind, first, iterations) == pytest.approx(sum(published(kind, first, iterations)))


@pytest.mark.parametrize("kind", INCREMENTS)
@pytest.mark.parametrize(
    ("total", "first"), [(0.1, 0.01), (1, 0.01), (1, 0.1), (10, 0.1), (10, 1), (10, 1.5), (10, 2), (3, 2.9)]
)
def test_simulation_agrees_with_the_exact_count(kind, total, first):
    assert simulated_count(kind, total, first) == exact_count(kind, total, first)


@pytest.mark.parametrize(("total", "first"), [(0.1, 0.001), (1, 0.01), (10, 0.1), (10, 1.0), (10, 1.5), (20, 2.0)])
def test_lemma_2_is_right_for_two_increments_and_low_for_the_third(total, first):
    for kind in ("additive", "multiplicative"):
        assert math.floor(lemma_2(kind, total, first) + 1e-9) == exact_count(kind, total, first)
    low, right = lemma_2("exponential", total, first), exact_count("exponential", total, first)
    assert low < right
    # Its bound replaces the sum, about (e - 1) I, by e I.
    assert right == pytest.approx(total / first / (math.e - 1) + 0.5, abs=1.01)


def test_the_exponential_bound_of_lemma_2_fails_at_one_iteration():
    assert sum(math.exp(i) for i in range(2)) > math.e  # sum_{i=0}^{I} exp(i/I) <= e I at I = 1, as printed


def test_lemma_2_where_it_is_not_defined():
    assert lemma_2("multiplicative", 10, 1.0) == 10  # the limit
    assert lemma_2("multiplicative", 10, 1 + 1e-9) == pytest.approx(10, rel=1e-6)
    assert lemma_2("multiplicative", 0.2, 0.5) == 0.0  # total below eps_0 (1 - eps_0)


def test_the_published_multiplicative_schedule_falls_below_one():
    assert not rises(published("multiplicative", 0.1, 10))
    assert rises(published("multiplicative", 1.5, 10))
    assert rises(published("additive", 0.1, 10))
    assert rises(published("exponential", 0.1, 10))


def test_algorithm_2_as_printed():
    assert algorithm_2(0.1, 1) == (0.1,)
    budgets = algorithm_2(0.1, 5)
    assert len(budgets) == 5
    assert budgets[:2] == (0.1, pytest.approx(0.1))
    assert budgets[4] == pytest.approx(0.1 ** (1 + 3 / 4))


@settings(max_examples=200, deadline=None)
@given(
    st.floats(1e-8, 1e3),
    st.integers(1, 200),
    st.sampled_from(["even", "additive", "exponential", "geometric"]),
    st.floats(1, 50),
)
def test_schedules_rise_and_spend_exactly_the_total(total, iterations, shape, ratio):
    parts = spread(total, iterations, shape, ratio=ratio)
    assert len(parts) == iterations
    assert rises(parts)
    assert math.fsum(parts) <= total
    assert math.fsum(parts) == pytest.approx(total, rel=1e-14)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-10), (0.1, 1e-5), (1.0, 1e-10), (5.0, 1e-3)])
def test_the_analytic_gaussian_is_tight(epsilon, delta):
    def lost(sigma):
        def phi(t):
            return 0.5 * math.erfc(-t / math.sqrt(2))

        return phi(0.5 / sigma - epsilon * sigma) - math.exp(epsilon) * phi(-0.5 / sigma - epsilon * sigma)

    sigma = gaussian_multiplier(epsilon=epsilon, delta=delta)
    assert lost(sigma) <= delta * (1 + 1e-5)
    assert lost(0.999 * sigma) > delta


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: published("cubic", 0.1, 3),
        lambda: published("additive", 0.0, 3),
        lambda: published("additive", 0.1, 0),
        lambda: lemma_2("cubic", 1, 0.1),
        lambda: spread(1.0, 3, "geometric", ratio=0.5),
        lambda: spread(1.0, 3, "falling"),
        lambda: spread(math.inf, 3),
    ],
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(QueryError):
        wrong()
