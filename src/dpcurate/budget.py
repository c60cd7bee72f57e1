"""Moved to dpcurate.accounting."""

from dpcurate.accounting import Budget, Cost, Event, Number, Privacy, delta_of, epsilon_of, rho_of

__all__ = ["Budget", "Cost", "Event", "Number", "Privacy", "delta_of", "epsilon_of", "rho_of"]
