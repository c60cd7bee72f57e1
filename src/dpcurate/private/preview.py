"""Releases before a table is there and after it was read: what noise one will have, and how it is named."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.accounting import Event
from dpcurate.errors import DecodeError, NotPrivate, QueryError
from dpcurate.private.mechanisms import Exponential, Mechanism, Sensitivity, build
from dpcurate.private.row_sums import no_rows
from dpcurate.private.statistics.numbers import number
from dpcurate.private.statistics.registry import sensitivity, transformation
from dpcurate.private.statistics.transformation import Transformation
from dpcurate.queries import Answer, Noise, PairStatistic, Quantile, Query, Release, Statistic
from dpcurate.queries.encoding import LARGEST_SCALE, SMALLEST_SCALE
from dpcurate.schema import Neighbours, Schema

_LARGEST = np.iinfo(np.int64).max


def mechanism_of(noise: Noise, computed: Transformation, bound: Sensitivity) -> Mechanism:
    """What a release asks for; noise that is too large for the integers of its parts is refused."""
    mechanism = build(noise, bound)
    for unit in set(computed.units):
        mechanism.check(unit)
    return mechanism


def scales_of(mechanism: Mechanism, computed: Transformation) -> tuple[float, ...]:
    """The standard deviation of the noise in each part of an answer; what could not be stored or sent is refused."""
    scales = tuple(mechanism.deviation / weight for weight in computed.weights())
    for scale in scales:
        if scale and not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
            raise QueryError(
                f"this asks for noise of {scale:.3g}, which is outside {SMALLEST_SCALE:g} to {LARGEST_SCALE:g}: "
                "ask for other noise or weights"
            )
    return scales


def largest_parts(computed: Transformation) -> tuple[FloatArray, ...]:
    """Arrays of the shapes of a statistic's answer that hold the largest integers a noised total can be."""
    nobody = no_rows(computed.schema)
    blank = computed.integers(tuple(row_sum.apply(nobody) for row_sum in computed.row_sums))
    return tuple(np.abs(part) for part in computed.natural(tuple(np.full_like(part, _LARGEST) for part in blank)))


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
    mechanism = mechanism_of(query.noise, computed, sensitivity(computed, schema, neighbours))
    scales_of(mechanism, computed)
    return mechanism.deviation


def event_of(release: Release, schema: Schema, neighbours: Neighbours) -> Event:
    """What a session charges for a proved release; what no session would answer is refused."""
    computed = transformation(release.statistic, schema)
    if not computed.proved:
        raise NotPrivate(f"{describe(release.statistic)} has no proved sensitivity")
    mechanism = mechanism_of(release.noise, computed, sensitivity(computed, schema, neighbours))
    scales_of(mechanism, computed)
    return Event(mechanism.name, describe(release.statistic), mechanism.cost, mechanism.multiplier)


def sensitivity_of(statistic: Statistic, schema: Schema, neighbours: Neighbours) -> float:
    """How far one unit can move a statistic (L1), from public facts."""
    return float(sensitivity(transformation(statistic, schema), schema, neighbours).l1)


def named(query: Query[Any], answer: Any, schema: Schema) -> Any:
    """The answer to a release with what was asked, public as it is, so that it can show itself."""
    return replace(answer, statistic=query.statistic, schema=schema) if isinstance(query, Release) else answer


def check_answer(query: Query[Any], answer: object, schema: Schema, neighbours: Neighbours) -> None:
    """Refuse an answer that no session gives to this release: of other shapes, other noise, or absurd numbers."""
    if not isinstance(query, Release):
        raise DecodeError("this is no answer to a release")
    computed = transformation(query.statistic, schema)
    scales = scales_of(mechanism_of(query.noise, computed, sensitivity(computed, schema, neighbours)), computed)
    check_fits(query, answer, computed)
    assert isinstance(answer, Answer)
    if not np.allclose(answer.scales, scales, rtol=1e-6, atol=0.0):
        raise DecodeError(f"an answer to {describe(query.statistic)} states other noise than was asked for")


def check_fits(query: Release, answer: object, computed: Transformation) -> None:
    """Refuse an answer whose shapes or sizes no release of this query has."""
    largest = largest_parts(computed)
    if not isinstance(answer, Answer) or [p.shape for p in answer.parts] != [p.shape for p in largest]:
        raise DecodeError(f"an answer does not fit its query, {describe(query.statistic)}")
    if len(answer.scales) != len(largest) or not all(answer.scales):
        raise DecodeError(f"an answer does not fit its query, {describe(query.statistic)}")
    if any(not (np.abs(part) <= bound).all() for part, bound in zip(answer.parts, largest, strict=True)):
        raise DecodeError(f"an answer to {describe(query.statistic)} holds numbers larger than any table gives")


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
