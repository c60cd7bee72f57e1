"""What to audit for every proved statistic and mechanism, and the pair of tables that one row moves most."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

from dpcurate.audit import pairs
from dpcurate.audit.pairs import Pair
from dpcurate.errors import QueryError
from dpcurate.private.replay import proved_statistics
from dpcurate.queries import (
    FEATURE_STEPS,
    Contrasts,
    Counts,
    FeatureMap,
    FeatureMoments,
    FeatureNorms,
    Gaussian,
    Gradient,
    GradientNorms,
    Histograms,
    KendallP,
    Laplace,
    Means,
    Moments,
    Noise,
    Statistic,
    Tables,
    Tau,
)
from dpcurate.schema import Neighbours

AB, ABC = ("a", "b"), ("a", "b", "c")
ZERO = ((0.0, 0.0), (0.0, 0.0))
SETS = tuple(columns for size in range(3) for columns in combinations(ABC, size))
WEIGHTS = (0.5, 1.5, 1.5, 1.5, 1.0, 1.0, 1.0)
EITHER: tuple[type[Noise], ...] = (Gaussian, Laplace)
GAUSSIAN: tuple[type[Noise], ...] = (Gaussian,)
LAPLACE: tuple[type[Noise], ...] = (Laplace,)


@dataclass(frozen=True, slots=True)
class Example:
    """A statistic, its pair of tables under either relation, and the noise with which it is audited.

    Gaussian noise shows all of its cost however many numbers move. Laplace noise shows it only if every number that
    moves is beyond its value, so its examples move few numbers.
    """

    name: str
    statistic: Statistic
    pair: Callable[[Neighbours], Pair]
    noises: tuple[type[Noise], ...]


def _signs(*columns: str, size: int = 1) -> tuple[FeatureMap, ...]:
    """-size and size for the two levels of each column."""
    return tuple(FeatureMap(c, ((-size * FEATURE_STEPS,), (size * FEATURE_STEPS,))) for c in columns)


_EXAMPLES = (
    Example("counts", Counts(ABC), pairs.sums, EITHER),
    Example("tables", Tables(SETS), pairs.opposite, GAUSSIAN),
    Example("count and margin", Tables(((), ("a",))), pairs.sums, LAPLACE),
    Example("contrasts", Contrasts(SETS), pairs.sums, GAUSSIAN),
    Example("weighted contrasts", Contrasts(SETS, WEIGHTS), pairs.opposite, GAUSSIAN),
    Example("one contrast", Contrasts((("a",),)), pairs.sums, LAPLACE),
    Example("means", Means(AB), pairs.bounds, GAUSSIAN),
    Example("one mean", Means(AB[:1]), pairs.bounds, LAPLACE),
    Example("moments", Moments(ABC), pairs.sums, GAUSSIAN),
    Example("clipped moments", Moments(AB, clip=1.0), pairs.sums, GAUSSIAN),
    Example("moments of one column", Moments(ABC[:1]), pairs.sums, LAPLACE),
    Example("gradient", Gradient(AB, ZERO, clip=1.0), pairs.gradients, EITHER),
    Example("gradient norms", GradientNorms(AB, ZERO, edges=(0.5, 1.0)), pairs.norms, EITHER),
    Example("histograms", Histograms(ABC), pairs.opposite, GAUSSIAN),
    Example("one histogram", Histograms(ABC[:1]), pairs.sums, LAPLACE),
    # The rows of both are longer than the clip, so that a missing clip shows.
    Example("feature moments", FeatureMoments(_signs("a", "b"), clip=1.0), pairs.sums, GAUSSIAN),
    Example("feature sums", FeatureMoments(_signs("a", size=2), clip=1.0, singles=50.0), pairs.sums, LAPLACE),
    Example("feature norms", FeatureNorms((FeatureMap("a", ((0,), (1,))),), (1e-9,)), pairs.sums, EITHER),
    Example("tau", Tau("a", "b", ("c",)), pairs.ranks, EITHER),
    Example("kendall-p", KendallP("a", "b", ("c",)), pairs.p_values, EITHER),
)


def examples() -> tuple[Example, ...]:
    """The examples of every proved statistic; refuses to leave a statistic, or a kind of noise for it, out."""
    missing = [kind.__name__ for kind in proved_statistics() if not _has_both(kind)]
    if missing:
        raise QueryError(
            f"{', '.join(missing)}: proved, and nothing here says how to audit it. Add examples with Gaussian and "
            "Laplace noise and their pair of tables to audit/examples.py"
        )
    return _EXAMPLES


def _has_both(kind: type[Statistic]) -> bool:
    return {noise for e in _EXAMPLES if type(e.statistic) is kind for noise in e.noises} == {Gaussian, Laplace}


def worst_pair(statistic: Statistic, relation: Neighbours) -> Pair:
    """The built-in pair for a statistic over the columns that the pair has: a, b and c."""
    if "dpcurate.published" in sys.modules:  # or there is no published statistic
        from dpcurate.audit.controls import published_pair

        published = published_pair(statistic)
        if published is not None:
            return published
    known = [e for e in _EXAMPLES if type(e.statistic) is type(statistic)]
    if not known:
        raise QueryError(f"there is no built-in pair of tables for {type(statistic).__name__}: give pair=")
    return next((e for e in known if e.statistic == statistic), known[0]).pair(relation)
