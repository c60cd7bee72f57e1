"""Releases before a table is there and after it was read: what noise one will have, and how it is named."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpcurate.errors import QueryError
from dpcurate.private.mechanisms import Exponential, Mechanism, Sensitivity, build
from dpcurate.private.statistics.base import Transformation
from dpcurate.private.statistics.means import number
from dpcurate.private.statistics.registry import sensitivity, transformation
from dpcurate.queries import Noise, PairStatistic, Quantile, Query, Release, Statistic
from dpcurate.schema import Neighbours, Schema


def mechanism_of(noise: Noise, computed: Transformation, bound: Sensitivity) -> Mechanism:
    """What a release asks for; noise that is too large for the integers of its parts is refused."""
    mechanism = build(noise, bound)
    for unit in set(computed.units):
        mechanism.check(unit)
    return mechanism


def preview(query: Query[Any], schema: Schema, neighbours: Neighbours) -> float | None:
    """The standard deviation of a release's noise, None for other queries; what no session would answer is refused.

    From public facts alone, and without a table.
    """
    if type(query) is Quantile:
        Exponential(Fraction(query.epsilon))  # refuses noise that is too large
        number(query.column, schema, "quantile")
        return None
    if type(query) is not Release:
        raise QueryError(f"{type(query).__name__} cannot be previewed: give a Release or a Quantile")
    computed = transformation(query.statistic, schema)
    return mechanism_of(query.noise, computed, sensitivity(computed, schema, neighbours)).deviation


def named(query: Query[Any], answer: Any, schema: Schema) -> Any:
    """The answer to a release with what was asked, public as it is, so that it can show itself."""
    return replace(answer, statistic=query.statistic, schema=schema) if isinstance(query, Release) else answer


def describe(statistic: Statistic) -> str:
    """A statistic in a few words for the ledger; public facts only."""
    kind = type(statistic).__name__
    if isinstance(statistic, PairStatistic):
        given = f" | {', '.join(statistic.given)}" if statistic.given else ""
        return f"{kind}({statistic.x}, {statistic.y}{given})"
    sets = getattr(statistic, "sets", None)
    if sets is not None:
        return f"{kind}({len(sets)} sets)"
    columns: tuple[str, ...] = getattr(statistic, "columns", ())
    return f"{kind}({', '.join(columns) if len(columns) <= 6 else f'{len(columns)} columns'})"
