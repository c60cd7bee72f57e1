"""A sum of discrete Gaussians is nearly one: checked by exact convolution."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpcurate.accounting import LEAST_STEPS, log_ratio, summed_rho


def discrete_gaussian(variance: float, reach: int) -> np.ndarray:
    x = np.arange(-reach, reach + 1, dtype=np.longdouble)
    weights = np.exp(-x * x / (2 * np.longdouble(variance)))
    return weights / weights.sum()


def convolved(shares: int, steps: float, reach: int) -> np.ndarray:
    one = discrete_gaussian(steps**2, reach)
    found = one
    for _ in range(shares - 1):
        found = np.convolve(found, one)[len(one) // 2 : -(len(one) // 2)]
    return found


def farthest(shares: int, steps: float) -> float:
    """The largest difference of log-probabilities within six deviations of the sum."""
    wide = math.ceil(6 * math.sqrt(shares) * steps)
    reach = wide + math.ceil(12 * math.sqrt(shares) * steps)
    middle = slice(reach - wide, reach + wide + 1)
    whole = discrete_gaussian(shares * steps**2, reach)[middle]
    return float(np.abs(np.log(convolved(shares, steps, reach)[middle] / whole)).max())


@pytest.mark.parametrize("shares", [2, 3, 7])
@pytest.mark.parametrize("steps", [1.0, 1.2, 1.4])
def test_the_bound_holds_for_the_exact_sum(shares: int, steps: float) -> None:
    found, bound = farthest(shares, steps), log_ratio(shares, steps)
    assert found <= bound
    if shares == 2:  # of more, a later share smooths what an earlier one left
        assert bound <= 3 * found  # so a bound a third as large would fail


def test_below_one_step_nothing_is_claimed() -> None:
    with pytest.raises(ValueError, match="one integer step"):
        log_ratio(3, 0.99)
    assert log_ratio(500, LEAST_STEPS) < 1e-64


def renyi(shares: int, steps: float, shift: int, order: float) -> float:
    reach = math.ceil(18 * math.sqrt(shares) * steps) + shift
    law = convolved(shares, steps, reach)
    middle = law[shift : len(law) - shift]
    moved = law[: len(law) - 2 * shift]
    kept = middle > 1e-300
    return float(np.log((middle[kept] ** order * moved[kept] ** (1 - order)).sum()) / (order - 1))


@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 8.0])
def test_the_cost_bounds_the_divergence_of_the_exact_sum(order: float) -> None:
    """At one integer step, where the sum is far enough from one Gaussian to be seen."""
    shares, steps, shift = 3, 1.0, 1
    alone = Fraction(shift**2, shares)
    cost = summed_rho(alone / 2, shares=shares, steps=steps, numbers=1)
    assert renyi(shares, steps, shift, order) <= order * float(cost)
    assert renyi(shares, steps, shift, order) > order * float(cost) * 0.9


def test_the_cost_is_rounded_up_and_rises_with_numbers() -> None:
    for rho in (Fraction(1, 3), Fraction(1, 10**12), Fraction(7)):
        cheap = summed_rho(rho, shares=4, steps=LEAST_STEPS, numbers=1)
        assert rho < cheap <= rho * (1 + Fraction(1, 2**52))
    few, many = (summed_rho(Fraction(1, 100), shares=5, steps=1.0, numbers=n) for n in (1, 100))
    assert Fraction(1, 100) < few < many
