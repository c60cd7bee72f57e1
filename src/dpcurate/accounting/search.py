"""One bisection for every formula that has no inverse in closed form. The side that is returned is the safe one."""

from __future__ import annotations

import math
from collections.abc import Callable

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
