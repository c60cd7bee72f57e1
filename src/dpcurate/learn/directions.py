"""Whether the directions of a graph can be read: from its fit and the noise, which are released numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from dpcurate.learn.fit import Fit
from dpcurate.learn.outcome import NoiseLevel

Level = Literal["readable", "unreadable", "noisy"]

UNEXPLAINED = 0.10
CLEARLY = 1.0
"""Directions cannot be read if the likeliest share of dependent pairs among those without an edge is so large, and
makes the answers likelier by this log ratio."""
DENSE = 2.0
CROWDED, FEW = 0.65, 6
"""Nor if a graph has so many edges a column, or of FEW columns and more an edge for so many of its pairs: then the
edges themselves are what hidden causes leave behind."""
NOISY = 0.12
"""Where no smaller correlation than this can be seen, nothing shows whether directions can be read."""
STRAIGHT = 4
"""Directions rest on so many coordinates of a pair at most: curved features are for links that bend."""
TRUST: Mapping[Level, float] = MappingProxyType({"readable": 1.0, "unreadable": 0.27, "noisy": 0.4})
"""What is left of the distance of P(direction) from 1/2. All of these were chosen on random worlds, and checked on real
tables (docs/confidence.md)."""
TITLES: Mapping[Level, str] = MappingProxyType(
    {
        "readable": "Directions can be read",
        "unreadable": "Directions cannot be read here: shown as lines",
        "noisy": "Too noisy for directions",
    }
)
NOT_IDENTIFIED: Mapping[Level, str] = MappingProxyType(
    {
        "unreadable": "directions cannot be read here; add an order of the columns",
        "noisy": "too noisy for directions; add an order of the columns",
    }
)
"""Why there is no effect along a direction that cannot be read."""
MISSING = "Something outside the table seems to drive many of its columns."
ADVICE = (
    "To direct edges, say which columns come first (an order, such as 'sex, age | *'): that is free, also from stored "
    "answers."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionVerdict:
    """Whether directions can be read, the evidence in a sentence, and what to do."""

    level: Level
    sentences: tuple[str, ...]

    @property
    def title(self) -> str:
        """The level in words."""
        return TITLES[self.level]

    @property
    def readable(self) -> bool:
        """Whether P(direction) is what the evidence for directions says."""
        return self.level == "readable"

    @property
    def trust(self) -> float:
        """What is left of the distance of P(direction) from 1/2."""
        return TRUST[self.level]

    @property
    def lines(self) -> tuple[str, ...]:
        """For a terminal."""
        return f"{self.title}:", *(f"  {sentence}" for sentence in self.sentences)

    def to_dict(self) -> dict[str, object]:
        """As a result's JSON holds it."""
        return {"level": self.level, "title": self.title, "sentences": list(self.sentences)}

    def __str__(self) -> str:
        return f"{self.title}: {' '.join(self.sentences)}"


def verdict_on_directions(fit: Fit, noise: NoiseLevel | None) -> DirectionVerdict:
    """The verdict on the directions of a graph with this fit, found in answers with this noise."""
    effect = _smallest_effect(fit, noise)
    if effect >= NOISY:
        return DirectionVerdict(
            level="noisy",
            sentences=(
                f"Noise hides correlations below {min(effect, 1):.2g}, and directions rest on such small differences.",
                f"Use more rows or a larger epsilon. {ADVICE}",
            ),
        )
    why = _too_many(fit) or _too_dense(fit)
    if why:
        return DirectionVerdict(level="unreadable", sentences=(why, ADVICE))
    return DirectionVerdict(
        level="readable",
        sentences=(
            f"{_unexplained(fit)} That is what a table looks like that lacks no common cause of many columns.",
            "A cause of a few columns may still be missing: read what each arrow says.",
        ),
    )


def _smallest_effect(fit: Fit, noise: NoiseLevel | None) -> float:
    from dpcurate.learn.power import Power  # it needs the method's constants, and the method this module

    if noise is None:
        return 1.0
    few = min(noise.coordinates, STRAIGHT)
    return Power.of(variance=noise.variance, coordinates=few, columns=fit.columns).effect


def _unexplained(fit: Fit) -> str:
    stay = "stays" if fit.dependent == 1 else "stay"
    pairs = "pair" if fit.apart == 1 else "pairs"
    return f"{fit.dependent} of the {fit.apart} {pairs} without an edge {stay} dependent given the graph's parents."


def _too_many(fit: Fit) -> str:
    if fit.share < UNEXPLAINED or fit.log_ratio < CLEARLY:
        return ""
    return f"About {fit.share:.0%} of the {fit.apart} pairs without an edge depend a little on each other. {MISSING}"


def _too_dense(fit: Fit) -> str:
    crowded = fit.columns >= FEW and fit.edges >= CROWDED * (fit.edges + fit.apart)
    if fit.edges_per_column < DENSE and not crowded:
        return ""
    return (
        f"The graph has {fit.edges} edges among {fit.columns} columns: so many are found where something outside the "
        "table drives most of its columns."
    )
