"""The arithmetic of privacy: budgets, costs, conversions and composition rules. Nothing here sees a row."""

from dpcurate.accounting.budgets import DELTA, Budget, Cost, Event, Number, Privacy
from dpcurate.accounting.conversions import delta_of, epsilon_of, gaussian_epsilon, gaussian_multiplier, rho_of

__all__ = [
    "DELTA", "Budget", "Cost", "Event", "Number", "Privacy",
    "delta_of", "epsilon_of", "gaussian_epsilon", "gaussian_multiplier", "rho_of",
]  # fmt: skip
