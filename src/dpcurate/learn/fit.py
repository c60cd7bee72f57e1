"""How well a graph explains the answers it was found from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How much dependence a graph leaves unexplained, from released answers alone.

    A graph claims that two columns without an edge are independent given the parents of the later one. `apart` counts
    the pairs for which it claims this, `dependent` those of them that the answers say are dependent nevertheless.
    Dependences too weak to be seen one by one show in all pairs together: `share` is the share of dependent pairs that
    makes the answers likeliest, and `log_ratio` the log of how much likelier they are with it than with no such pair.
    """

    columns: int
    edges: int
    apart: int
    dependent: int
    share: float = 0.0
    log_ratio: float = 0.0

    @property
    def unexplained(self) -> float:
        """The share of pairs without an edge that stay dependent; 0 if every pair has an edge."""
        return self.dependent / self.apart if self.apart else 0.0

    @property
    def edges_per_column(self) -> float:
        """Edges divided by columns."""
        return self.edges / self.columns

    def to_dict(self) -> dict[str, float]:
        """As a result's JSON holds it."""
        return {
            "columns": self.columns,
            "edges": self.edges,
            "apart": self.apart,
            "dependent": self.dependent,
            "share": self.share,
            "log_ratio": self.log_ratio,
            "unexplained": self.unexplained,
            "edges_per_column": self.edges_per_column,
        }
