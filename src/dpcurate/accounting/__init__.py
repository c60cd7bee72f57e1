"""The arithmetic of privacy: budgets, costs, conversions and composition rules. Nothing here sees a row."""

from dpcurate.accounting.budget import DELTA, SMALLEST_DELTA, Budget, Cost, Event, Privacy, cautions
from dpcurate.accounting.conversions import (
    after_sampling,
    amplified,
    before_sampling,
    delta_of,
    epsilon_of,
    gaussian_epsilon,
    gaussian_multiplier,
    rho_of,
)
from dpcurate.accounting.summed_noise import LEAST_STEPS, log_ratio, summed_rho

__all__ = [
    "DELTA", "LEAST_STEPS", "SMALLEST_DELTA", "Budget", "Cost", "Event", "Privacy",
    "after_sampling", "amplified", "before_sampling", "cautions", "delta_of", "epsilon_of", "gaussian_epsilon",
    "gaussian_multiplier", "log_ratio", "rho_of", "summed_rho",
]  # fmt: skip
