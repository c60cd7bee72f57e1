"""For every proved statistic of the registry: what to ask, and the pair of tables that one row moves most."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

from dpcurate.audit import pairs
from dpcurate.audit.controls import published_pair
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
    Gradient,
    GradientNorms,
    Histograms,
    KendallP,
    Means,
    Moments,
    Statistic,
    Tables,
    Tau,
)
from dpcurate.schema import Neighbours

AB, ABC = ("a", "b"), ("a", "b", "c")
ZERO = ((0.0, 0.0), (0.0, 0.0))


@dataclass(frozen=True, slots=True)
class Example:
    """What is asked of one kind of statistic, and its pair of tables under either relation."""

    asked: Mapping[str, Statistic]
    pair: Callable[[Neighbours], Pair]


def _known() -> dict[type[Statistic], Example]:
    sets = tuple(s for k in range(3) for s in combinations(ABC, k))
    weights = (0.5, 1.5, 1.5, 1.5, 1.0, 1.0, 1.0)
    return {
        Counts: Example({"counts": Counts(ABC)}, pairs.sums),
        Tables: Example(
            {"tables": Tables(sets), "count and margin": Tables(((), ("a",))), "one margin": Tables((("a",),))},
            pairs.sums,
        ),
        Contrasts: Example({"contrasts": Contrasts(sets), "weighted contrasts": Contrasts(sets, weights)}, pairs.sums),
        Means: Example({"means": Means(AB), "one mean": Means(AB[:1])}, pairs.bounds),
        Moments: Example({"moments": Moments(ABC), "clipped moments": Moments(ABC, clip=1.0)}, pairs.sums),
        Gradient: Example({"gradient": Gradient(AB, ZERO, clip=1.0)}, pairs.gradients),
        GradientNorms: Example({"gradient norms": GradientNorms(AB, ZERO, edges=(0.5, 1.0))}, pairs.norms),
        Histograms: Example({"histograms": Histograms(ABC)}, pairs.three_tests),
        FeatureMoments: Example({"feature moments": FeatureMoments(tuple(map(_sign, ABC)), clip=1.732)}, pairs.sums),
        FeatureNorms: Example({"feature norms": FeatureNorms((FeatureMap("a", ((0,), (1,))),), (1e-9,))}, pairs.sums),
        Tau: Example({"tau": Tau("a", "b", ("c",))}, pairs.ranks),
        KendallP: Example({"kendall-p": KendallP("a", "b", ("c",))}, pairs.p_values),
    }


def _sign(column: str) -> FeatureMap:
    """-1 and 1 for the two levels of a column."""
    return FeatureMap(column, ((-FEATURE_STEPS,), (FEATURE_STEPS,)))


def examples() -> dict[str, Statistic]:
    """Every proved statistic over the columns of its pair; refuses to leave one out."""
    known = _known()
    missing = [kind.__name__ for kind in proved_statistics() if kind not in known]
    if missing:
        raise QueryError(
            f"{', '.join(missing)}: proved, and nothing here says how to audit it. Add an example and its pair of "
            "tables to audit/examples.py"
        )
    return {name: one for kind in proved_statistics() for name, one in known[kind].asked.items()}


def worst_pair(statistic: Statistic, relation: Neighbours) -> Pair:
    """The built-in pair for a statistic over the columns that the pair has: a, b and c."""
    published = published_pair(statistic)
    if published is not None:
        return published
    known = _known().get(type(statistic))
    if known is None:
        raise QueryError(f"there is no built-in pair of tables for {type(statistic).__name__}: give pair=")
    return known.pair(relation)
