"""How well the graph that was found explains the released answers, and whether its directions can be read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.learn.measure_once.arrows import adjacency
from dpcurate.learn.measure_once.blocks import Columns
from dpcurate.learn.measure_once.constants import (
    CROWDED,
    DENSE,
    FEWEST,
    NOISY,
    SEEN,
    STRAIGHT,
    WEAK_EFFECT,
)
from dpcurate.learn.measure_once.decide import Decision
from dpcurate.learn.measure_once.family_search import FamilySearch
from dpcurate.learn.measure_once.hidden_causes import left_over
from dpcurate.result.fit import DirectionVerdict, GoodnessOfFit, NoiseLevel

SHARES = np.linspace(0.0, 0.99, 100)
MOST_LOG_ODDS = 30.0
"""No pair counts for more."""


def fit_of(decision: Decision, families: FamilySearch) -> GoodnessOfFit:
    """Count the pairs left apart that are likelier dependent than independent given the parents of the later column.

    The search forgives small dependences, because a regression may miss something. Here they count: many of them mean
    that the table has causes that the graph lacks.
    """
    joined = adjacency(decision, families.constraints)
    apart = np.triu(~joined, 1)
    clear = _left(decision, families.judging())[apart]
    weak = _left(decision, families.judging(WEAK_EFFECT))[apart]
    share, log_ratio = likeliest_share(weak[np.isfinite(weak)])
    return GoodnessOfFit(
        columns=families.columns,
        edges=int(np.triu(joined).sum()),
        apart=int(np.isfinite(clear).sum()),
        dependent=int((clear > SEEN).sum()),
        share=share,
        log_ratio=log_ratio,
    )


def _left(decision: Decision, strict: FamilySearch) -> FloatArray:
    """The evidence that each two columns depend on each other given the parents of the later one."""

    def dependence(asked: Sequence[tuple[int, int, Columns]]) -> list[float]:
        strict.remember((b, a, given) for a, b, given in asked)
        return [strict.dependence(b, a, given) for a, b, given in asked]

    return left_over(decision, strict, dependence)


def likeliest_share(evidence: FloatArray) -> tuple[float, float]:
    """The share of dependent pairs with the highest likelihood, and the log of its ratio to that of no such pair.

    Evidence is a log Bayes factor, so a pair is 1 - share + share * exp(evidence) times as likely as if none depended.
    """
    factors = np.expm1(np.clip(evidence, -MOST_LOG_ODDS, MOST_LOG_ODDS))
    likelihoods = np.log1p(np.outer(SHARES, factors)).sum(axis=1)
    best = int(np.argmax(likelihoods))
    return float(SHARES[best]), float(likelihoods[best])


MISSING = "Something outside the table seems to drive many of its columns."
ADVICE = (
    "To direct edges, say which columns come first (an order, such as 'sex, age | *'): that is free, also from stored "
    "answers."
)


def verdict_on_directions(fit: GoodnessOfFit, noise: NoiseLevel | None) -> DirectionVerdict:
    """The verdict on the directions of a graph with this fit, found in answers with this noise."""
    effect = _smallest_effect(fit, noise)
    if effect >= NOISY:
        hidden = f"correlations below {effect:.2g}" if effect < 1 else "all but the strongest correlations"
        return DirectionVerdict(
            level="noisy",
            sentences=(
                f"Noise hides {hidden}, and directions rest on such small differences.",
                f"Use more rows or a larger epsilon. {ADVICE}",
            ),
        )
    why = _too_many(fit) or _too_dense(fit)
    if why:
        return DirectionVerdict(level="unreadable", sentences=(why, ADVICE))
    return DirectionVerdict(
        level="readable",
        sentences=(
            f"{_unexplained(fit)} That is no sign of a missing common cause of many columns.",
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
    if fit.explains:
        return ""
    share = f"About {fit.still_dependent:.0%} of the {fit.apart} pairs without an edge"
    return f"{share} still depend on each other. {MISSING}"


def _too_dense(fit: GoodnessOfFit) -> str:
    crowded = fit.columns >= FEWEST and fit.edges >= CROWDED * (fit.edges + fit.apart)
    if fit.edges_per_column < DENSE and not crowded:
        return ""
    return (
        f"The graph has {fit.edges} edges among {fit.columns} columns: so many are found where something outside the "
        "table drives most of its columns."
    )
