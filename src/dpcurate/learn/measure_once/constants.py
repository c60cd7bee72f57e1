"""The one set of constants of the default method, chosen on random worlds (docs/methods.md)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Constants:
    """What the default method believes before it sees anything, and how hard it looks."""

    skew: float = 0.4
    """Assumed squared length of a centred margin, as a share of the largest possible."""
    effect_sizes: tuple[float, ...] = (0.05, 0.12, 0.3)
    """Effect sizes of the prior, on the scale of canonical correlations."""
    misfit: float = 0.01
    """Size of what an additive regression on two or more columns may miss."""
    degree: float = 1.2
    """Expected neighbours of a column; sets the prior odds of an edge. More costs precision in small tables."""
    max_parents: int = 4
    tries: int = 2
    """Candidate parents tried in a greedy step."""
    near_top: float = 0.3
    """The second is tried if its evidence is at least this share of the first one's; it saves a sixth of the work."""
    share_later: float = 0.5
    """Share of the budget kept for a second look."""
    later_from: float = 1.0
    """Triples are bought if the noise variance of pairs is below this multiple of the sampling variance."""
    effort: int = 40
    """Starts of the order search: effort / columns, between 2 and 8."""
    maybe: float = 0.2
    """P(edge) from which a pair counts as a possible link when triples are chosen."""
    open_from: float = 0.02
    """A pair whose P(edge) lies between this and 1 minus this is looked at again."""
    doubt: float = 0.02
    """Share of the surest calls that were wrong on random worlds."""
    walk: int = 300
    """Steps of the walk over orders behind P(edge)."""
