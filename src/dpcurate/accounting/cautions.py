"""Budgets that are allowed and promise little: said once, from public facts."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable

from dpcurate.accounting.budgets import Budget
from dpcurate.errors import PrivacyWarning

LARGE_EPSILON = 10
LIBRARY_CALL = 3
"""Levels of the stack from here to whoever called `discover` or `ask`."""


def cautions(budget: Budget, rows: int | None) -> tuple[str, ...]:
    """What to know of this budget for a table of so many rows, if the number is public."""
    epsilon, delta = float(budget.epsilon or 0), float(budget.delta or 0)
    said = []
    if LARGE_EPSILON < epsilon < math.inf:
        said.append(
            f"epsilon = {epsilon:.4g} is a weak promise: what anyone concludes about a person may become up to "
            f"exp({epsilon:.4g}) times as likely because of that person's data. Most releases use 1 or less"
        )
    if rows is not None and delta * rows > 1:
        said.append(
            f"delta = {delta:.3g} is above 1 / rows, which is {1 / rows:.3g} for {rows:,} rows: it would allow a "
            "release that publishes somebody's row outright. Choose a delta far below it, such as the default, 1e-10"
        )
    return tuple(said)


def warn(said: Iterable[str]) -> None:
    """Cautions as warnings, for callers of the library."""
    for caution in said:
        warnings.warn(caution, PrivacyWarning, stacklevel=LIBRARY_CALL)
