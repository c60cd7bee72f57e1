"""How a budget is spread over the iterations of a descent: rising schedules that spend the total exactly."""

from __future__ import annotations

import math
from typing import Literal

from dpcurate.errors import QueryError

Shape = Literal["even", "additive", "exponential", "geometric"]


def spread(total: float, iterations: int, shape: Shape = "geometric", *, ratio: float = 4.0) -> tuple[float, ...]:
    """Never falling budgets that sum to the total exactly, and not a rounding error more.

    'additive' rises from 1 to 2, 'exponential' from 1 to e, 'geometric' from 1 to `ratio` >= 1 (the
    multiplicative increment with the factor the right way round).
    """
    check_spread(total, iterations)
    if not 1 <= ratio < math.inf:
        raise QueryError(f"a rising schedule needs a ratio of at least 1, got {ratio!r}")
    last = {"even": 1.0, "additive": 2.0, "exponential": math.e, "geometric": ratio}.get(shape)
    if last is None:
        raise QueryError(f"shape must be 'even', 'additive', 'exponential' or 'geometric', got {shape!r}")
    steps = [i / max(1, iterations - 1) for i in range(iterations)]
    weights = [1 + t if shape == "additive" else last**t for t in steps]
    whole = math.fsum(weights)
    parts = [total * w / whole for w in weights]
    parts[-1] = total - math.fsum(parts[:-1])
    while math.fsum(parts) > total:
        parts[-1] = math.nextafter(parts[-1], 0.0)
    return tuple(parts)


def check_spread(amount: float, iterations: int) -> None:
    if not 0 < amount < math.inf:
        raise QueryError(f"a budget to spread must be a finite number above 0, got {amount!r}")
    if isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 1:
        raise QueryError(f"iterations must be a whole number of at least 1, got {iterations!r}")
