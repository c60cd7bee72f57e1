"""Cost and noise come from one object; every rounding goes to the safe side."""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpcurate.accounting import amplified, gaussian_multiplier
from dpcurate.errors import QueryError
from dpcurate.private.mechanisms import (
    STEPS,
    Exponential,
    FirstAbove,
    GaussianNoise,
    LaplaceNoise,
    NoNoise,
    Sensitivity,
    build,
    integer_scale,
    root_up,
)
from dpcurate.private.noise import Secure, Seeded
from dpcurate.queries import Exact, Gaussian, Laplace

positive = st.floats(1e-6, 1e6)
fractions = st.fractions(Fraction(1, 10**6), 10**6)


@given(positive, fractions)
def test_noise_asked_by_its_cost_never_costs_more(cost, square):
    bound = Sensitivity(root_up(square), square)
    gaussian = build(Gaussian(rho=cost), bound)
    assert Fraction(cost) * Fraction(999_999, 10**6) < gaussian.cost.rho <= Fraction(cost)
    assert math.isinf(gaussian.cost.epsilon)
    laplace = build(Laplace(epsilon=cost), bound)
    assert laplace.cost.epsilon == Fraction(cost)
    assert laplace.cost.rho == Fraction(cost) ** 2 / 2


def test_noise_asked_by_its_scale_costs_what_the_scale_says():
    bound = Sensitivity(Fraction(3), Fraction(4))
    gaussian, laplace = build(Gaussian(sigma=10.0), bound), build(Laplace(scale=6.0), bound)
    assert gaussian.cost.rho == Fraction(4, 200)
    assert gaussian.multiplier == 5.0
    assert gaussian.deviation == 10.0
    assert laplace.cost.epsilon == Fraction(1, 2)
    assert laplace.multiplier == 2.0
    assert laplace.deviation == pytest.approx(6 * math.sqrt(2))


def test_integer_noise_is_never_smaller_than_charged_for():
    for scale in (Fraction(1, 3), Fraction(10**17 + 1, 7), Fraction(5)):
        assert Fraction(integer_scale(scale, Fraction(10, 3))) >= scale * Fraction(10, 3)
    with pytest.raises(QueryError, match="less noise"):
        build(Gaussian(sigma=1e30), Sensitivity(Fraction(1), Fraction(1))).check(Fraction(1))
    with pytest.raises(QueryError, match="less noise"):
        build(Laplace(scale=1e30), Sensitivity(Fraction(1), Fraction(1))).check(Fraction(1))
    for kind in (Exponential, FirstAbove):
        with pytest.raises(QueryError, match="less noise"):
            kind(Fraction(1, 10**30))


@pytest.mark.secure_noise
@pytest.mark.parametrize("randomness", [Secure(), Seeded(5)], ids=["secure", "seeded"])
def test_what_is_drawn_is_what_is_charged(randomness):
    bound = Sensitivity(Fraction(1), Fraction(1))
    drawn = GaussianNoise(Fraction(7), bound).draw(Fraction(100), 20_000, randomness)
    assert np.std(drawn) == pytest.approx(700, rel=0.03)
    drawn = LaplaceNoise(Fraction(7), bound).draw(Fraction(100), 20_000, randomness)
    assert np.mean(np.abs(drawn)) == pytest.approx(700, rel=0.04)


def test_an_exact_release_has_no_guarantee():
    exact = build(Exact(), Sensitivity(Fraction(1), Fraction(1)))
    assert isinstance(exact, NoNoise)
    assert math.isinf(exact.cost.rho)
    assert math.isinf(exact.cost.epsilon)
    exact.check(Fraction(1))
    assert not exact.draw(Fraction(1), 4, Secure()).any()


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-10), (1.0, 1e-6), (8.0, 1e-10), (1e-3, 1e-5)])
def test_analytic_calibration_is_tight(epsilon, delta):
    """Equation (1) of the paper holds at the multiplier found and fails a thousandth below it."""

    def left(sigma):
        a, b = 1 / (2 * sigma), epsilon * sigma
        return stats.norm.cdf(a - b) - math.exp(epsilon) * stats.norm.cdf(-a - b)

    sigma = gaussian_multiplier(epsilon=epsilon, delta=delta)
    assert left(sigma) <= delta
    assert left(sigma * 0.999) > delta
    made = build(Gaussian(epsilon=epsilon, delta=delta), Sensitivity(Fraction(1), Fraction(9)))
    assert made.multiplier == pytest.approx(sigma)


def test_selection_and_gate_cost_what_the_table_says():
    assert Exponential(Fraction(1, 2)).cost.rho == Fraction(1, 32)
    assert Exponential(Fraction(1, 2)).cost.epsilon == Fraction(1, 2)
    assert FirstAbove(Fraction(1, 2)).cost.rho == Fraction(1, 8)
    gate, coins = FirstAbove(Fraction(1, 2)), Seeded(1)
    assert np.mean([abs(gate.threshold(coins)) for _ in range(4000)]) == pytest.approx(4 * STEPS, rel=0.08)
    assert np.mean([abs(gate.query(coins)) for _ in range(4000)]) == pytest.approx(8 * STEPS, rel=0.08)


@given(st.floats(0.01, 8), st.integers(1, 2**32))
def test_sampling_amplifies_as_the_formula_says(epsilon, numerator):
    rate = Fraction(numerator, 2**32)
    q = float(rate)
    added = amplified(epsilon, rate, replace=False)
    assert float(added) == pytest.approx(math.log(1 + q * (math.exp(epsilon) - 1)), rel=1e-6, abs=1e-12)
    assert added <= Fraction(epsilon)
    swapped = amplified(epsilon, rate, replace=True)
    ratio = (1 + q * (math.exp(epsilon) - 1)) / (1 - q * (1 - math.exp(-epsilon)))
    assert float(swapped) == pytest.approx(math.log(ratio), rel=1e-6, abs=1e-12)
    assert added <= swapped <= 2 * Fraction(epsilon)


def sampled(epsilon, rate, relation):
    """The formulas of the table in privacy texts, with four hundred digits."""
    with localcontext(Context(prec=400, Emin=MIN_EMIN, Emax=MAX_EMAX)):
        e, q = Decimal(epsilon), Decimal(rate.numerator) / rate.denominator
        gain, kept = 1 + q * (e.exp() - 1), 1 - q + q * (-e).exp()
        return Fraction((gain if relation == "add-remove" else gain / kept).ln())


EPSILONS = [*(10.0**k for k in range(-12, 5)), 0.7, 12.3, 37.4, 40.0, 499.9, 500.1, 744.5, 1e-90, 9e3]
RATES = [1, 2, 3, 2**16, 2**31, 2**31 + 1, *(2**32 - 2**k for k in (30, 20, 10, 3, 1, 0)), 2**32]


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_sample_is_never_charged_less_than_it_costs(epsilon, relation):
    for rate in (Fraction(k, 2**32) for k in RATES):
        true = sampled(epsilon, rate, relation)
        charged = amplified(epsilon, rate, replace=relation == "replace")
        most = Fraction(epsilon) * (2 if relation == "replace" else 1)
        slack = Fraction(1, 10**300)  # what four hundred digits leave of 1 + q (e^eps - 1) where the rate is 1
        assert true <= charged + slack
        assert charged <= min(most, true * (1 + Fraction(1, 2**51)) + slack)
        if rate == 1:
            assert charged == most


def test_a_sample_of_any_epsilon_a_query_may_have_is_priced():
    for epsilon in (1e-99, 10**99, Fraction(10**99), 1e17, 1e25, Fraction(1, 3)):
        for rate in (Fraction(1, 2**32), Fraction(2**32 - 1, 2**32), Fraction(1)):
            added, swapped = (amplified(epsilon, rate, replace=r) for r in (False, True))
            assert 0 < added <= swapped <= 2 * Fraction(epsilon)
            assert added <= Fraction(epsilon)
    assert amplified(40.0, Fraction(1), replace=True) == 80
    assert amplified(37.4, Fraction(1), replace=True) == 2 * Fraction(37.4)


def test_larger_takes_the_larger_of_each():
    assert Sensitivity(Fraction(1), Fraction(5)).larger(Sensitivity(Fraction(2), Fraction(3))) == Sensitivity(
        Fraction(2), Fraction(5)
    )
