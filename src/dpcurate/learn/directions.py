"""Whether the directions of a graph can be read: from its fit and the noise, which are released numbers."""

from __future__ import annotations

from dpcurate.result.fit import DirectionVerdict, GoodnessOfFit, NoiseLevel

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


MISSING = "Something outside the table seems to drive many of its columns."
ADVICE = (
    "To direct edges, say which columns come first (an order, such as 'sex, age | *'): that is free, also from stored "
    "answers."
)


def verdict_on_directions(fit: GoodnessOfFit, noise: NoiseLevel | None) -> DirectionVerdict:
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


def _smallest_effect(fit: GoodnessOfFit, noise: NoiseLevel | None) -> float:
    from dpcurate.learn.power import Power  # it needs the method's constants, and the method this module

    if noise is None:
        return 1.0
    few = min(noise.coordinates, STRAIGHT)
    return Power.of(variance=noise.variance, coordinates=few, columns=fit.columns).effect


def _unexplained(fit: GoodnessOfFit) -> str:
    stay = "stays" if fit.dependent == 1 else "stay"
    pairs = "pair" if fit.apart == 1 else "pairs"
    return f"{fit.dependent} of the {fit.apart} {pairs} without an edge {stay} dependent given the graph's parents."


def _too_many(fit: GoodnessOfFit) -> str:
    if fit.share < UNEXPLAINED or fit.log_ratio < CLEARLY:
        return ""
    return f"About {fit.share:.0%} of the {fit.apart} pairs without an edge depend a little on each other. {MISSING}"


def _too_dense(fit: GoodnessOfFit) -> str:
    crowded = fit.columns >= FEW and fit.edges >= CROWDED * (fit.edges + fit.apart)
    if fit.edges_per_column < DENSE and not crowded:
        return ""
    return (
        f"The graph has {fit.edges} edges among {fit.columns} columns: so many are found where something outside the "
        "table drives most of its columns."
    )
