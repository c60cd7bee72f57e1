"""Budgets in plain words, and as bars."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from dpcurate import Budget, Ledger
from dpcurate.errors import FormatError
from dpcurate.planning.estimate import Outlook

STRONG, USUAL, WEAK = 0.5, 3.0, 10.0
"""Epsilons up to which a promise is called strong, usual and weak."""


@dataclass(frozen=True, slots=True)
class BudgetBar:
    """What a ledger has spent, in percent and as an epsilon by itself, and its whole."""

    percent: float
    spent: float
    whole: float
    left: float
    """The largest epsilon that one more run may have."""
    empty: bool


def bar_of(ledger: Ledger) -> BudgetBar:
    """A ledger as a bar."""
    budget = ledger.budget
    percent = min(100.0, 100 * ledger.spent / float(budget.ceiling))
    left = ledger.remaining
    return BudgetBar(
        round(percent, 1), budget.as_epsilon(ledger.spent), float(budget.epsilon or 0), largest(budget, left),
        budget.is_negligible(left),
    )  # fmt: skip


def largest(budget: Budget, left: float) -> float:
    """What is left as an epsilon of a run, rounded down to three digits: a run may not ask for more."""
    epsilon = budget.as_epsilon(left)
    if epsilon <= 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(epsilon)) - 2)
    return round(math.floor(epsilon / step + 1e-6) * step, 12)


def factor(epsilon: float) -> str:
    """How many times as likely something may become."""
    times = math.exp(min(epsilon, 50.0))
    return f"{times:.2f}" if times < 10 else f"{times:,.0f}"


def strength(epsilon: float) -> str:
    """The promise in one word."""
    if epsilon <= STRONG:
        return "strong"
    return "usual" if epsilon <= USUAL else "weak" if epsilon <= WEAK else "very weak"


def promise(epsilon: float) -> str:
    """What an epsilon means for one person in the table."""
    return (
        f"Whatever anybody concludes about a person from what you publish becomes at most {factor(epsilon)} times as "
        "likely because that person's row is in the table."
    )


def typed_number(text: str, what: str) -> float:
    """A number as people type it, with a decimal comma too; `what` says what it is, for the refusal."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise FormatError(f"{what}, not {text!r}") from None


def needed(outlook: Outlook) -> str:
    """What a run that finds hardly any links would need, without the names of measures and commands."""
    advice = outlook.advice.partition(" `dpcurate plan`")[0]
    return re.sub("^An F1 of [0-9.]+ takes", "To find about half of the links takes", advice)


def total_promise(epsilon: float) -> str:
    """What a total budget is."""
    return (
        f"All runs on this table together will never spend more than {epsilon:g}. It belongs to the people in the "
        "table: a new project or file is not a new budget."
    )
