"""One bisection for every formula that has no inverse in closed form. The side that is returned is the safe one."""

from __future__ import annotations

from collections.abc import Callable

HALVINGS = 200  # more than any interval of floats needs; the loop ends when the middle is an end


def least(holds: Callable[[float], bool], low: float, high: float) -> float:
    """About the least value at which `holds` becomes true; it was true at the value returned, or that is `high`."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def greatest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """About the greatest value at which `holds` is still true; it was true at the value returned, or that is `low`."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def doubled(holds: Callable[[float], bool], high: float = 1.0) -> float:
    """The first of high, 2 high, 4 high, ... at which `holds` is true."""
    while not holds(high):
        high *= 2
    return high
