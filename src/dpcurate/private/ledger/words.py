"""What a ledger says of budgets and events when it refuses."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NoReturn

from dpcurate.accounting import Budget, Event
from dpcurate.errors import LedgerError


def named(event: Event) -> str:
    """An event in words."""
    return f"{event.about!r} ({event.mechanism})"


def worth(budget: Budget) -> str:
    """A budget in words, in its currency and in epsilon."""
    if math.isinf(budget.ceiling):
        return "unlimited (NOT PRIVATE)"
    rho = "" if budget.pure else f"rho = {float(budget.ceiling):.6g}, that is "
    return f"{rho}epsilon = {float(budget.epsilon or 0):.6g} at delta = {budget.delta:.3g}"


def same(one: Budget, other: Budget) -> bool:
    """Whether two budgets were given by the same numbers: the converted one may differ in its last bit."""
    return one.delta == other.delta and (one.epsilon == other.epsilon or one.rho == other.rho)


def mismatch(path: Path, what: str, asked: str, written: str) -> NoReturn:
    raise LedgerError(
        f"{path} is the ledger for {what} {written}, not for {asked}; it was left as it is. Open it with "
        "what it was made for, or create another ledger, knowing that the budget belongs to the table"
    )
