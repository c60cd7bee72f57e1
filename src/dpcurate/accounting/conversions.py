"""From one way of stating privacy to another: zCDP, (epsilon, delta), Gaussian noise, samples. All rounded safely."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it imports NumPy, which a command's help need not wait for
    from dpcurate._validation import Number


KEPT = 1024
"""Conversions that are remembered: the same few budgets are stated again and again, and each takes a bisection."""
MARGIN = 1e-12
"""What a converted value is moved to the safe side, which covers the rounding of the formula itself."""


def delta_of(*, rho: float, epsilon: float) -> float:
    """Smallest delta for which rho-zCDP is known to give (epsilon, delta)-DP.

    Canonne, Kamath, Steinke 2020, Prop. 7. Every order gives a valid bound, so a search that
    stops early is still safe.
    """
    if rho <= 0:
        return 0.0
    alpha = _best_order(rho, epsilon)
    log_delta = (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)
    return math.exp(min(0.0, log_delta))


def _best_order(rho: float, epsilon: float) -> float:
    """The order alpha that minimises the delta bound: the root of its increasing derivative."""

    def rising(alpha: float) -> bool:
        return (2 * alpha - 1) * rho - epsilon + math.log1p(-1 / alpha) > 0

    return least(rising, 1.0 + 1e-12, (epsilon + 1) / rho + 2.0)


def epsilon_of(*, rho: float, delta: float) -> float:
    """Smallest epsilon for which rho-zCDP is known to give (epsilon, delta)-DP, rounded up."""
    return _epsilon_of(float(rho), float(delta))


@lru_cache(maxsize=KEPT)
def _epsilon_of(rho: float, delta: float) -> float:
    if rho <= 0:
        return 0.0
    if math.isinf(rho) or delta <= 0:
        return math.inf
    safe = delta * (1 - MARGIN)
    simple = rho + 2 * math.sqrt(rho * math.log(1 / delta))  # the simple conversion, which is larger
    return least(lambda epsilon: delta_of(rho=rho, epsilon=epsilon) <= safe, 0.0, simple) * (1 + MARGIN)


def rho_of(*, epsilon: float, delta: float) -> float:
    """Largest rho whose zCDP guarantee is known to imply (epsilon, delta)-DP, rounded down."""
    return _rho_of(float(epsilon), float(delta))


@lru_cache(maxsize=KEPT)
def _rho_of(epsilon: float, delta: float) -> float:
    if math.isinf(epsilon):
        return math.inf
    most = max(1.0, 2 * epsilon)
    return greatest(lambda rho: delta_of(rho=rho, epsilon=epsilon) <= delta, 0.0, most) * (1 - MARGIN)


def after_sampling(*, epsilon: float, rate: float) -> float:
    """The epsilon of an epsilon-DP step on a Poisson sub-sample of this rate, under add-remove.

    Balle, Barthe, Gaboardi 2018, Theorem 8. In floats, for planning; what is charged is `amplified`, rounded up.
    """
    return math.log1p(rate * math.expm1(min(epsilon, 500.0)))


def before_sampling(*, epsilon: float, rate: float) -> float:
    """The epsilon that a step on a Poisson sub-sample may have if it is to cost `epsilon`."""
    return math.log1p(math.expm1(min(epsilon, 500.0)) / rate)


def gaussian_delta(*, mu: float, epsilon: float) -> float:
    """The delta of Gaussian noise with sensitivity / sigma = mu (Balle and Wang 2018, Theorem 8)."""
    upper, lower = _tail(epsilon / mu - mu / 2), _tail(epsilon / mu + mu / 2)
    return upper - (math.exp(epsilon + math.log(lower)) if lower > 0 else 0.0)  # logs: e^epsilon may overflow


def _tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


def gaussian_epsilon(*, mu: float, delta: float) -> float:
    """The epsilon of Gaussian noise with sensitivity / sigma = mu."""
    if delta <= 0:
        return math.inf
    most = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta))  # by the tail bound of the privacy loss
    return least(lambda epsilon: gaussian_delta(mu=mu, epsilon=epsilon) <= delta, 0.0, most)


def gaussian_multiplier(*, epsilon: float, delta: float) -> float:
    """The least sigma / sensitivity of Gaussian noise with (epsilon, delta)-DP, rounded up.

    Equation (1) of the CURATE paper is this condition.
    """

    def enough(multiplier: float) -> bool:
        return gaussian_delta(mu=1 / multiplier, epsilon=epsilon) <= delta

    high = doubled(enough)
    return least(enough, high / 2 if high > 1 else 0.0, high) * (1 + 1e-9)


_DIGITS = Context(prec=200, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
"""Any epsilon of a query, from 1e-100 to 1e100, keeps ninety digits after cancellation."""


def amplified(epsilon: Number, rate: Fraction, *, replace: bool) -> Fraction:
    """What an add-remove epsilon-DP block on a fresh Poisson sample costs, rounded up.

    Guarantee: never below the cost, never above epsilon (twice epsilon under replace), which it is at rate 1.
    Sensitivity: one row is in the sample with probability q, whatever the others do.
    Proof: add-remove ln(1 + q (e^eps - 1)) = eps + ln(q + (1 - q) t) with t = e^-eps; under replace the sample may
    gain one row and lose another, which adds -ln(1 - q + q t). The first rises with t, the second falls; exp and ln
    are off by half a digit at most, so each takes t's next neighbour on its safe side, and sums round up.
    Cites: Balle, Barthe, Gaboardi 2018, Theorem 8.
    """
    whole = Fraction(epsilon)
    most = 2 * whole if replace else whole
    if rate == 1:
        return most
    with localcontext(_DIGITS):
        eps = Decimal(whole.numerator) / whole.denominator
        q = Decimal(rate.numerator) / rate.denominator  # exact: the denominator is at most 2**32
        t = (-eps).exp()
        cost = eps + (q + (1 - q) * t.next_plus()).ln().next_plus()
        if replace:
            cost += _fall(q, t.next_minus())
        return min(most, Fraction(_float_up(cost)))


def _fall(q: Decimal, t: Decimal) -> Decimal:
    """At least -ln(1 - q + q t)."""
    with localcontext() as downwards:
        downwards.rounding = ROUND_FLOOR
        return -(1 - q + q * t).ln().next_minus()


def _float_up(value: Decimal) -> float:
    near = float(value)
    return near if Decimal(near) >= value else math.nextafter(near, math.inf)


# --- bisection ------------------------------------------------------------------------------------------


HALVINGS = 200  # more than any interval of floats needs; the loop ends when the middle is an end


def least(holds: Callable[[float], bool], low: float, high: float) -> float:
    """About the least value at which `holds` becomes true; it was true at the value returned, or that is `high`."""
    return _narrowed(lambda value: not holds(value), low, high)[1]


def greatest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """About the greatest value at which `holds` is still true; it was true at the value returned, or that is `low`."""
    return _narrowed(holds, low, high)[0]


def _narrowed(below: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Two neighbouring floats between which `below` turns from true to false."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if below(middle) else (low, middle)
    return low, high


def doubled(holds: Callable[[float], bool], high: float = 1.0) -> float:
    """The first of high, 2 high, 4 high, ... at which `holds` is true; infinity if there is none."""
    while math.isfinite(high) and not holds(high):
        high *= 2
    return high


# --- what shares of discrete Gaussian noise are worth as a sum; proof: docs/proofs/shared-noise.md ------------------

LEAST_STEPS = 4
"""The least scale of a share in integer steps; there the sum differs from one discrete Gaussian by less than 1e-65."""
ROUNDED = 1 + 1e-9
"""Covers the rounding of the few floating-point operations here."""


def log_ratio(shares: int, steps: float) -> float:
    """The most by which log-probabilities of a sum of discrete Gaussians and of one of its size differ, rounded up.

    The sum has `shares` independent terms of parameter `steps`, which is at least 1. With
    q_k = exp(-2 pi^2 steps^2 k / (k + 1)) it is at most 5 (q_1 + ... + q_(shares - 1)), half of tau in Kairouz, Liu,
    Steinke 2021, Section 3.
    """
    if steps < 1:
        raise ValueError(f"the bound holds for shares of one integer step and more, got {steps}")
    terms = (math.exp(-2 * math.pi**2 * steps**2 * k / (k + 1)) for k in range(1, shares))
    return 5 * math.fsum(terms) * ROUNDED


def summed_rho(rho: Fraction, *, shares: int, steps: float, numbers: int) -> Fraction:
    """The zCDP cost of noise that is a sum of shares, where one discrete Gaussian of its size would cost `rho`.

    At most rho + 2 sqrt(T rho) + 2 T, with T = `numbers` times `log_ratio`; rounded up to a float.
    """
    total = Fraction(numbers) * Fraction(log_ratio(shares, steps))
    root = math.sqrt(total * rho) * ROUNDED
    exact = rho + 2 * Fraction(root) + 2 * total
    rounded = float(exact)
    return Fraction(rounded if rounded >= exact else math.nextafter(rounded, math.inf))
