"""How CURATE spreads budget over iterations: its three increments, Lemma 2, and schedules that fit.

The published increments are eps_i = eps_0 (1 + i/I), eps_0 exp(i/I) and eps_0^(1 + i/I), i < I.
The third falls when eps_0 < 1. `spread` makes schedules that rise and spend the total exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Literal

from dpcurate.errors import RequestError

Increment = Literal["additive", "exponential", "multiplicative"]
Shape = Literal["even", "additive", "exponential", "geometric"]

INCREMENTS: dict[str, Callable[[float, float], float]] = {
    "additive": lambda first, t: first * (1 + t),
    "exponential": lambda first, t: first * math.exp(t),
    "multiplicative": lambda first, t: math.exp((1 + t) * math.log(first)),
}
"""eps_i from eps_0 and t = i / I."""


def published(kind: str, first: float, iterations: int, *, divisor: int | None = None) -> tuple[float, ...]:
    """The budgets eps_0 .. eps_{I-1}; `divisor` is I (the appendix) unless given (Algorithm 2 has I - 1)."""
    rise = _increment(kind)
    _check(first, iterations)
    below = iterations if divisor is None else max(1, divisor)
    return tuple(rise(first, i / below) for i in range(iterations))


def algorithm_2(first: float, iterations: int) -> tuple[float, ...]:
    """The budgets of Algorithm 2's gradients as printed: eps_0, then eps_0, eps_1, ..., eps_{I-2}.

    The first gradient is taken before the loop; that of step k + 1 uses eps_k = eps_0^(1 + k/(I-1)).
    """
    inside = published("multiplicative", first, iterations, divisor=iterations - 1)
    return (first, *inside[: iterations - 1])


def lemma_2(kind: str, total: float, first: float) -> float:
    """The number of iterations that Lemma 2 states, not rounded.

    At eps_0 = 1 the multiplicative formula is 0/0 and its limit, total / eps_0, is given. Where the
    total is at most eps_0 (1 - eps_0) not even one iteration of the closed form exists: 0.
    """
    _increment(kind)
    _check(first, 1)
    if kind == "additive":
        return (total + first / 2) / (1.5 * first)
    if kind == "exponential":
        return total / (math.e * first)
    inside = -first * (1 - first) / total
    if inside == 0:
        return total / first
    return math.log(first) / math.log1p(inside) if inside > -1 else 0.0


def exact_count(kind: str, total: float, first: float) -> int:
    """The largest I whose I budgets, summed in closed form, stay within the total."""
    _increment(kind)
    _check(first, 1)
    low, high = 0, 1
    while closed_sum(kind, first, high) <= total * (1 + 1e-12):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        fits = closed_sum(kind, first, middle) <= total * (1 + 1e-12)
        low, high = (middle, high) if fits else (low, middle)
    return low


def closed_sum(kind: str, first: float, iterations: int) -> float:
    """Sum of eps_0 .. eps_{I-1}: an arithmetic or a geometric series."""
    if kind == "additive":
        return first * (1.5 * iterations - 0.5)
    ratio = 1.0 / iterations if kind == "exponential" else math.log(first) / iterations
    if ratio == 0:
        return first * iterations
    return first * math.expm1(ratio * iterations) / math.expm1(ratio)


def simulated_count(kind: str, total: float, first: float) -> int:
    """The largest I found by running every schedule step by step until the total would be exceeded."""
    iterations = 0
    while _runs_through(kind, total, first, iterations + 1):
        iterations += 1
    return iterations


def _runs_through(kind: str, total: float, first: float, iterations: int) -> bool:
    left = total * (1 + 1e-12)
    for budget in published(kind, first, iterations):
        left -= budget
        if left < 0:
            return False
    return True


def spread(total: float, iterations: int, shape: Shape = "geometric", *, ratio: float = 4.0) -> tuple[float, ...]:
    """Never falling budgets that sum to the total exactly, and not a rounding error more.

    'additive' rises from 1 to 2, 'exponential' from 1 to e, 'geometric' from 1 to `ratio` >= 1 (the
    multiplicative increment with the factor the right way round).
    """
    _check(total, iterations)
    if not 1 <= ratio < math.inf:
        raise RequestError(f"a rising schedule needs a ratio of at least 1, got {ratio!r}")
    last = {"even": 1.0, "additive": 2.0, "exponential": math.e, "geometric": ratio}.get(shape)
    if last is None:
        raise RequestError(f"shape must be 'even', 'additive', 'exponential' or 'geometric', got {shape!r}")
    steps = [i / max(1, iterations - 1) for i in range(iterations)]
    weights = [1 + t if shape == "additive" else last**t for t in steps]
    whole = math.fsum(weights)
    parts = [total * w / whole for w in weights]
    parts[-1] = total - math.fsum(parts[:-1])
    while math.fsum(parts) > total:
        parts[-1] = math.nextafter(parts[-1], 0.0)
    return tuple(parts)


def rises(budgets: tuple[float, ...]) -> bool:
    """Whether no budget is smaller than the one before."""
    return all(b >= a * (1 - 1e-12) for a, b in pairwise(budgets))


def analytic_sigma(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The smallest sigma with (epsilon, delta)-DP for Gaussian noise (Balle and Wang 2018), by bisection."""
    _check(epsilon, 1)
    if not 0 < delta < 1:
        raise RequestError(f"delta must lie between 0 and 1, got {delta!r}")
    low, high = 1e-6, 1.0
    while _gaussian_delta(high, epsilon) > delta:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if _gaussian_delta(middle, epsilon) <= delta else (middle, high)
    return high * sensitivity


def _gaussian_delta(sigma: float, epsilon: float) -> float:
    """Phi(1/(2 sigma) - eps sigma) - e^eps Phi(-1/(2 sigma) - eps sigma)."""
    from scipy.special import log_ndtr

    first = float(log_ndtr(0.5 / sigma - epsilon * sigma))
    second = epsilon + float(log_ndtr(-0.5 / sigma - epsilon * sigma))
    return math.exp(first) - math.exp(min(second, first))


def _increment(kind: str) -> Callable[[float, float], float]:
    found = INCREMENTS.get(kind)
    if found is None:
        raise RequestError(f"an increment is one of {', '.join(map(repr, INCREMENTS))}, got {kind!r}")
    return found


def _check(amount: float, iterations: int) -> None:
    if not 0 < amount < math.inf:
        raise RequestError(f"a budget to spread must be a finite number above 0, got {amount!r}")
    if isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 1:
        raise RequestError(f"iterations must be a whole number of at least 1, got {iterations!r}")
