"""How good a graph is expected to be, by its own edge probabilities."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

BELOW, ABOVE = 1.2, 0.16
"""In 8 of 10 tables F1 lies at most BELOW times what the expected one lacks below it, and ABOVE above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Of `drawn` edges `right` are expected to be right; `missed` linked pairs are expected among those not drawn."""

    drawn: int
    right: float
    missed: float

    @classmethod
    def of(cls, probabilities: Iterable[float], least: float) -> Expected:
        """If pairs are drawn from this P(edge) on."""
        every = tuple(probabilities)
        drawn = [p for p in every if p >= least]
        return cls(drawn=len(drawn), right=sum(drawn), missed=sum(every) - sum(drawn))

    @property
    def edges(self) -> float:
        """How many edges the table is expected to have."""
        return self.right + self.missed

    @property
    def precision(self) -> float:
        """The share of drawn edges that are right; 0 if none is drawn."""
        return self.right / self.drawn if self.drawn else 0.0

    @property
    def f1(self) -> float:
        """Of the skeleton, as if one edge more were there and found: a table may have none."""
        return 2 * (self.right + 1) / (self.drawn + self.edges + 2)

    @property
    def range(self) -> tuple[float, float]:
        """Where it lies in 8 of 10 tables."""
        return max(self.f1 - BELOW * (1 - self.f1), 0.0), min(self.f1 + ABOVE, 1.0)
