"""The arithmetic of privacy: budgets, costs, conversions and composition rules. Nothing here sees a row."""

from dpcurate.accounting.budget import DELTA, SMALLEST_DELTA, Budget, Cost, Event, Privacy, cautions
from dpcurate.accounting.conversions import (
    LEAST_STEPS,
    after_sampling,
    amplified,
    before_sampling,
    delta_of,
    epsilon_of,
    gaussian_epsilon,
    gaussian_multiplier,
    log_ratio,
    rho_of,
    summed_rho,
)

__all__ = [
    "DELTA", "LEAST_STEPS", "SMALLEST_DELTA", "Budget", "Cost", "Event", "Privacy",
    "after_sampling", "amplified", "before_sampling", "cautions", "delta_of", "epsilon_of", "gaussian_epsilon",
    "gaussian_multiplier", "log_ratio", "rho_of", "summed_rho",
]  # fmt: skip
