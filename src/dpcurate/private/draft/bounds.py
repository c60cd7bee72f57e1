"""Bounds that look public: what the rows hold, rounded outwards so far that no single row can be read off them."""

from __future__ import annotations

import math

NEAR_NOTHING = 0.3
"""A least value below this part of the greatest is rounded to 0."""

CAPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100)
"""Suggested caps on the rows of a person."""


def outwards(low: float, high: float) -> tuple[float, float]:
    """Bounds around two numbers: 18 and 93 become 0 and 100, 1931 and 2004 become 1930 and 2010."""
    if low < 0 < high:
        bounds = -_above(-low), _above(high)
    elif low >= 0 and low <= NEAR_NOTHING * high:
        bounds = 0.0, _above(high)
    elif high <= 0 and high >= NEAR_NOTHING * low:
        bounds = -_above(-low), 0.0
    else:
        exponent = _exponent(high - low)
        step = _power(1, exponent)
        bounds = _power(math.floor(low / step), exponent), _power(math.ceil(high / step), exponent)
    fits = bounds[0] <= low and high <= bounds[1] and math.isfinite(bounds[1] - bounds[0])
    return bounds if fits else (low, high)


def roughly(count: int) -> int:
    """A number of rows to one digit, so that one row more or less hardly ever changes it; at least 10."""
    digit, _, zeros = f"{count:.0e}".partition("e")
    return max(10, int(f"{digit}{'0' * int(zeros)}"))


def cap(mean: float) -> int:
    """The next number above a mean that a cap on rows would be."""
    return next((n for n in CAPS if n >= mean), CAPS[-1])


def _above(value: float) -> float:
    """The next of 1, 2, 3, 5 times a power of ten."""
    exponent = _exponent(value)
    return next(x for x in (_power(k, exponent) for k in (1, 2, 3, 5, 10, 100)) if x >= value)


def _exponent(value: float) -> int:
    return math.floor(math.log10(value))


def _power(times: int, exponent: int) -> float:
    """Without the noise of a product: 3e-1, not 0.30000000000000004."""
    return float(f"{times}e{exponent}")
