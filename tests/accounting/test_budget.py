"""Privacy arithmetic: the tight conversion, its safe side, and budgets that mean nothing."""

from __future__ import annotations

import dataclasses
import math
import re
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from dpcurate.accounting import Budget, Cost, Event, Privacy, delta_of, epsilon_of, rho_of
from dpcurate.errors import BudgetError

RHOS = st.floats(1e-8, 50)
EPSILONS = st.floats(1e-3, 100)
DELTAS = st.floats(1e-15, 0.5)


def log_delta(alpha, rho, epsilon):
    """The bound of Canonne, Kamath, Steinke 2020, Prop. 7 at one order, written out again."""
    return (alpha - 1) * (alpha * rho - epsilon) + (alpha - 1) * math.log(1 - 1 / alpha) - math.log(alpha)


def least_log_delta(rho, epsilon):
    """The bound minimised over orders by scipy, on the logarithm of alpha - 1 and in several brackets."""
    ends = np.linspace(-16, math.log(epsilon / rho + 1 / math.sqrt(rho) + 2), 6)
    found = [
        minimize_scalar(lambda t: log_delta(1 + math.exp(t), rho, epsilon), bounds=pair, method="bounded").fun
        for pair in pairwise(ends)
    ]
    return min(0.0, *map(float, found))


@settings(max_examples=200, deadline=None)
@given(RHOS, EPSILONS)
def test_the_conversion_is_the_minimum_over_all_orders(rho, epsilon):
    ours, theirs = delta_of(rho=rho, epsilon=epsilon), least_log_delta(rho, epsilon)
    if theirs < -600:
        assert ours < math.exp(-599)
        return
    assert math.log(ours) >= theirs - 1e-6  # never below what the best order gives
    assert math.log(ours) == pytest.approx(theirs, abs=1e-6, rel=1e-7)


def test_the_conversion_is_tight_for_small_epsilon_too():
    assert math.log(delta_of(rho=0.125, epsilon=0.0625)) == pytest.approx(least_log_delta(0.125, 0.0625), abs=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "simple", "tight"),
    [(0.1, 1.08e-4, 1.54e-4), (1, 0.0106, 0.0132), (5, 0.245, 0.281), (10, 0.899, 0.994)],
)
def test_the_figures_at_delta_1e_10(epsilon, simple, tight):
    assert rho_of(epsilon=epsilon, delta=1e-10) == pytest.approx(tight, rel=5e-3)
    log = math.log(1e10)
    assert (math.sqrt(epsilon + log) - math.sqrt(log)) ** 2 == pytest.approx(simple, rel=5e-3)


@settings(max_examples=100, deadline=None)
@given(RHOS, DELTAS)
def test_the_tight_conversion_is_never_worse_than_the_simple_one(rho, delta):
    assert epsilon_of(rho=rho, delta=delta) <= (rho + 2 * math.sqrt(rho * math.log(1 / delta))) * (1 + 1e-9)


@settings(max_examples=100, deadline=None)
@given(RHOS, st.floats(1e-12, 1e-2))
def test_the_conversion_never_promises_more_than_gaussian_noise_keeps(rho, delta):
    """The Gaussian mechanism is rho-zCDP, so its true delta may not exceed what is stated."""
    from scipy.stats import norm

    epsilon, mu = epsilon_of(rho=rho, delta=delta), math.sqrt(2 * rho)
    true = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
    assert true <= delta


@settings(max_examples=100, deadline=None)
@given(EPSILONS, DELTAS)
def test_round_trips_stay_on_the_safe_side(epsilon, delta):
    rho = rho_of(epsilon=epsilon, delta=delta)
    assert delta_of(rho=rho, epsilon=epsilon) <= delta
    assert epsilon_of(rho=rho, delta=delta) <= epsilon * (1 + 1e-9)
    if rho < 0.99:  # the search for rho stops at 1 where epsilon is small and delta large
        assert epsilon_of(rho=rho, delta=delta) >= epsilon * (1 - 1e-6)


@settings(max_examples=100, deadline=None)
@given(RHOS, DELTAS)
def test_and_the_other_way_round(rho, delta):
    epsilon = epsilon_of(rho=rho, delta=delta)
    assert delta_of(rho=rho, epsilon=epsilon) <= delta * (1 + 1e-9)
    if epsilon > 1e-3:
        assert rho_of(epsilon=epsilon, delta=delta) <= rho * (1 + 1e-6)


@settings(max_examples=100, deadline=None)
@given(RHOS, EPSILONS, DELTAS, st.floats(1.01, 3))
def test_more_is_more(rho, epsilon, delta, factor):
    assert epsilon_of(rho=rho * factor, delta=delta) > epsilon_of(rho=rho, delta=delta) or delta > 0.3
    assert epsilon_of(rho=rho, delta=delta / factor) >= epsilon_of(rho=rho, delta=delta)
    assert rho_of(epsilon=epsilon * factor, delta=delta) >= rho_of(epsilon=epsilon, delta=delta)
    assert rho_of(epsilon=epsilon, delta=delta / factor) <= rho_of(epsilon=epsilon, delta=delta)
    # Where delta is within 1e-7 of 1 the best order is too near 1 for floating point.
    assert delta_of(rho=rho, epsilon=epsilon * factor) <= delta_of(rho=rho, epsilon=epsilon) + 1e-7
    assert delta_of(rho=rho * factor, epsilon=epsilon) >= delta_of(rho=rho, epsilon=epsilon) - 1e-7


def test_edges_of_the_conversion():
    assert delta_of(rho=0, epsilon=1) == 0
    assert epsilon_of(rho=0, delta=1e-6) == 0
    assert epsilon_of(rho=math.inf, delta=1e-6) == math.inf
    assert epsilon_of(rho=1, delta=0) == math.inf
    assert rho_of(epsilon=math.inf, delta=1e-6) == math.inf
    assert delta_of(rho=100, epsilon=0.01) == pytest.approx(1)
    for rho in np.geomspace(1e-30, 1e4, 40):  # down to one unit of the ledger
        assert 0 < epsilon_of(rho=float(rho), delta=1e-10) < math.inf


# --- budgets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -1, -0.0, math.nan, "1", b"1", True, [1], 1j])
def test_an_epsilon_or_rho_that_means_nothing_is_refused(value):
    with pytest.raises(BudgetError, match="epsilon must be a number greater than 0"):
        Budget(epsilon=value, delta=1e-6)
    with pytest.raises(BudgetError, match="epsilon must be a number greater than 0"):
        Budget(epsilon=value, delta=0)
    with pytest.raises(BudgetError, match="rho must be a number greater than 0"):
        Budget(rho=value)


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, math.nan, math.inf, "1e-6", True])
def test_a_delta_outside_is_refused(delta):
    for given_ in ({"epsilon": 1}, {"rho": 1}):
        with pytest.raises(BudgetError, match=r"delta must be at least 0 and below 1.*1e-10"):
            Budget(delta=delta, **given_)


def test_a_budget_is_given_one_way():
    for wrong in ({}, {"delta": 1e-6}, {"epsilon": 1, "rho": 1}, {"epsilon": 1, "rho": 1, "delta": 1e-6}):
        with pytest.raises(BudgetError, match="either epsilon= with delta=, or rho="):
            Budget(**wrong)
    with pytest.raises(BudgetError, match="epsilon= needs delta="):
        Budget(epsilon=1)
    with pytest.raises(TypeError):
        Budget(1, 1e-6)


def test_three_kinds_of_budget():
    approximate = Budget(epsilon=1, delta=1e-10)
    assert (approximate.currency, approximate.pure) == ("rho", False)
    assert approximate.ceiling == rho_of(epsilon=1, delta=1e-10)
    assert str(approximate) == "epsilon = 1, delta = 1e-10 (rho = 0.0132426)"
    pure = Budget(epsilon=2, delta=0)
    assert (pure.currency, pure.pure, pure.ceiling, pure.rho) == ("epsilon", True, 2, 2.0)
    assert str(pure) == "epsilon = 2, delta = 0"
    given_rho = Budget(rho=0.5)
    assert (given_rho.currency, given_rho.ceiling, given_rho.delta) == ("rho", 0.5, 1e-10)
    assert given_rho.epsilon == epsilon_of(rho=0.5, delta=1e-10)
    assert Budget(rho=0.5, delta=1e-3).epsilon == epsilon_of(rho=0.5, delta=1e-3)
    assert Budget(rho=Fraction(1, 3)).ceiling == Fraction(1, 3)
    free = Budget.unlimited()
    assert free.ceiling == math.inf
    assert str(free) == "unlimited (NOT PRIVATE)"


def test_budgets_are_values():
    assert Budget(rho=0.5) == Budget(rho=0.5)
    assert len({Budget(rho=0.5), Budget(rho=0.5), Budget(rho=0.25)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        Budget(rho=0.5).rho = 1


# --- costs and events -----------------------------------------------------------------------------


def test_costs_in_both_currencies():
    half = Fraction(1, 2)
    assert Cost.pure(half) == Cost(half, Fraction(1, 8))
    assert Cost.bounded_range(half) == Cost(half, Fraction(1, 32))
    assert Cost.concentrated(half) == Cost(math.inf, half)
    assert Cost.infinite() == Cost(math.inf, math.inf)
    pure, approximate = Budget(epsilon=1, delta=0), Budget(rho=1)
    assert Cost.pure(half).within(pure) == half
    assert Cost.pure(half).within(approximate) == Fraction(1, 8)
    assert Cost.concentrated(half).within(pure) == math.inf
    assert isinstance(Cost.pure(Fraction(1, 3)).rho, Fraction)  # exact, so that the ledger can round it


@settings(max_examples=50, deadline=None)
@given(st.floats(0.01, 3), st.floats(1.001, 60))
def test_pure_and_bounded_range_costs_cover_their_worst_mechanisms(epsilon, alpha):
    """Renyi divergence of randomised response, and of a bounded-range pair, against alpha rho."""

    def renyi(p, q):
        return math.log(sum(a**alpha * b ** (1 - alpha) for a, b in zip(p, q, strict=True))) / (alpha - 1)

    yes = math.exp(epsilon) / (1 + math.exp(epsilon))
    exact = Fraction(epsilon)
    assert renyi((yes, 1 - yes), (1 - yes, yes)) <= alpha * float(Cost.pure(exact).rho) * (1 + 1e-9)
    for share in np.linspace(0.01, 0.99, 15):  # loss t with chance p, t - epsilon otherwise
        t = epsilon - math.log(share * math.exp(epsilon) + 1 - share)
        other = (share, 1 - share)
        one = (share * math.exp(t), (1 - share) * math.exp(t - epsilon))
        assert sum(one) == pytest.approx(1)
        bound = alpha * float(Cost.bounded_range(exact).rho)
        assert renyi(one, other) <= bound * (1 + 1e-9) + 1e-12
        assert renyi(other, one) <= bound * (1 + 1e-9) + 1e-12


def test_events_are_values_and_know_whether_they_are_private():
    event = Event("laplace", "Counts(a)", Cost.pure(Fraction(1, 2)), 2.0)
    assert event.private
    assert event == Event("laplace", "Counts(a)", Cost.pure(Fraction(1, 2)), 2.0)
    assert hash(event) == hash(Event("laplace", "Counts(a)", Cost.pure(Fraction(1, 2)), 2.0))
    assert not Event("exact", "Counts(a)", Cost.infinite()).private
    assert Event("gaussian", "Counts(a)", Cost.concentrated(Fraction(1, 9))).private
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.cost = Cost.infinite()


def test_privacy_in_public_words():
    events = (Event("laplace", "Counts(a)", Cost.pure(Fraction(1, 10))),)
    told = Privacy(Budget(epsilon=1, delta=1e-6), "add-remove", "one row", 0.005, events, private=True)
    assert (told.delta, told.rho) == (1e-6, 0.005)
    assert told.epsilon == epsilon_of(rho=0.005, delta=1e-6)
    for part in ("epsilon = 1", "delta = 1e-06", "add/remove one row", "spent"):
        assert part in str(told)
    pure = Privacy(Budget(epsilon=1, delta=0), "replace", "one row", 0.1, events, private=True)
    assert (pure.epsilon, pure.delta) == (0.1, 0)
    assert "(replace one row; spent 0.1 of 1)" in str(pure)
    bare = Privacy(Budget.unlimited(), "replace", "one row", 0.0, events, private=False)
    assert (bare.epsilon, bare.rho) == (math.inf, math.inf)
    assert str(bare).startswith("NOT PRIVATE")


def test_privacy_tells_this_run_from_all_and_in_digits_that_a_person_reads():
    budget = Budget(epsilon=2, delta=1e-10)
    first = Budget(epsilon=1, delta=1e-10).ceiling
    told = Privacy(budget, "add-remove", "one row", 2 * first, (), private=True, run=first)
    assert "(add/remove one row; spent 1 in this run, 1.435 of 2)" in str(told)
    assert told.run_epsilon == pytest.approx(1)
    assert "(add/remove one row; spent 1 of 2)" in str(dataclasses.replace(told, spent=first))
    assert "; spent 1.435 of 2)" in str(dataclasses.replace(told, run=None))
    assert dataclasses.replace(told, run=None).run_epsilon is None
    assert not re.search(r"[0-9.]{9}", repr(told).replace("0.0499868", "")), repr(told)
    assert dataclasses.replace(told, private=False).run_epsilon == math.inf


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1, 2, 3, 5, 7.7, 10])
def test_a_budget_that_is_spent_reads_as_the_budget(epsilon):
    budget = Budget(epsilon=epsilon, delta=1e-10)
    assert Privacy(budget, "add-remove", "one row", budget.ceiling, (), private=True).epsilon == epsilon


@pytest.mark.parametrize(
    "delta",
    [5e-324, 9e-301, -0.1, 1, math.nan, math.inf, True, 10**5000, "0.1"],
    ids=lambda delta: type(delta).__name__,
)
def test_a_delta_that_means_nothing_or_is_too_small_for_floating_point(delta):
    """At 5e-324, half of which is 0, the rho of a budget was 1.5 times what it may be."""
    for budget in ({"epsilon": 1}, {"rho": 1}):
        with pytest.raises(BudgetError, match="delta must be at least 0 and below 1"):
            Budget(delta=delta, **budget)


@pytest.mark.parametrize(
    "epsilon",
    [0, -1, 1e-300, 1e300, math.nan, -math.inf, 10**5000, True, "1", None],
    ids=lambda epsilon: type(epsilon).__name__,
)
def test_an_epsilon_outside_what_can_be_computed(epsilon):
    for amount in ({"epsilon": epsilon, "delta": 0}, {"epsilon": epsilon, "delta": 1e-10}, {"rho": epsilon}):
        with pytest.raises(BudgetError):
            Budget(**amount)


@pytest.mark.parametrize("epsilon", [1e-20, 1e-8, 1, 1e3, 1e16, 9e99])
@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-10, 0.1, 0.999])
def test_extreme_budgets_promise_no_more_than_the_bound_gives(epsilon, delta):
    """Checked in 250 digits at the best order, both ways."""
    rho = Budget(epsilon=epsilon, delta=delta).rho
    for stated in (epsilon, epsilon_of(rho=rho, delta=delta)):
        assert _exact_log_delta(rho, stated) <= Decimal(delta).ln()


def _exact_log_delta(rho, epsilon):
    with localcontext() as context:
        context.prec = 250
        rho, epsilon = Decimal(rho), Decimal(epsilon)
        low, high = Decimal(-400), ((epsilon + 1) / rho + 1).ln()  # of the logarithm of alpha - 1
        for _ in range(60):
            middle = (low + high) / 2
            alpha = 1 + middle.exp()
            rising = (2 * alpha - 1) * rho - epsilon + (1 - 1 / alpha).ln() > 0
            low, high = (low, middle) if rising else (middle, high)
        alpha = 1 + high.exp()
        return (alpha - 1) * (alpha * rho - epsilon) + alpha * (1 - 1 / alpha).ln() - (alpha - 1).ln()
