"""Quantiles with intervals, asked of a queryable: post-processing of what the exponential mechanism picks.

Mechanism and interval are proved in docs/proofs/quantiles.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpcurate import _validation
from dpcurate.accounting import Budget
from dpcurate.accounting.conversions import least
from dpcurate.errors import QueryError
from dpcurate.queries import (
    CELLS,
    Answer,
    Estimate,
    Estimates,
    Gaussian,
    Laplace,
    Means,
    Noise,
    Quantile,
    Query,
    Queryable,
    Release,
    places,
)
from dpcurate.schema import GRID, OWN, Neighbours, Numeric, Schema

COUNT, POINT, END = Fraction(1, 20), Fraction(9, 20), Fraction(1, 4)
"""Shares of the budget: for the count, for where the quantiles lie, and for each end of their intervals."""
KEPT_BACK = Fraction(1, 10**6)
"""Left unspent, for the rounding of costs."""
END_ERROR = 0.0225
"""The chance that an end lies on the wrong side of its quantile, because of noise or of sampling."""
COUNT_DEVIATIONS = 2.807034
"""How many standard deviations a noised count may be off, with a chance of 0.0025 to one side."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The quantiles of a column of numbers that are asked for, such as (0.25, 0.5, 0.75)."""

    column: str
    probabilities: tuple[float, ...] = (0.25, 0.5, 0.75)

    def __post_init__(self) -> None:
        given = _validation.listed(self.probabilities, "the probabilities of quantiles come as a tuple of numbers")
        asked = [Quantile(column=self.column, probability=p, epsilon=1) for p in given]  # refuses what is wrong
        if not asked:
            raise QueryError("quantiles need at least one probability, such as 0.5")
        _validation.keep(self, column=asked[0].column, probabilities=tuple(float(q.probability) for q in asked))
        if len(set(self.probabilities)) < len(self.probabilities):
            raise QueryError("a probability stands more than once; ask for it once")


def noise_of(amount: Fraction, budget: Budget) -> Noise:
    """The noise of a release that costs an amount, in the budget's currency."""
    return Laplace(epsilon=amount) if budget.pure else Gaussian(rho=amount)  # type: ignore[arg-type]


def _epsilon(amount: Fraction, budget: Budget) -> float:
    """The epsilon of a choice that costs an amount, which in zCDP is epsilon^2 / 8; rounded down."""
    return (float(amount) if budget.pure else math.sqrt(8 * amount)) * (1 - 1e-12)


def first_queries(asked: Quantiles, amount: float, budget: Budget) -> list[Query[object]]:
    """What is asked at first: where each quantile lies, and a count."""
    epsilon = _epsilon(_part(asked, amount, POINT), budget)
    counts = Release(Means((asked.column,)), noise_of(Fraction(amount) * (1 - KEPT_BACK) * COUNT, budget))
    return [*(Quantile(column=asked.column, probability=p, epsilon=epsilon) for p in asked.probabilities), counts]


def last_epsilon(asked: Quantiles, amount: float, budget: Budget) -> float:
    """The epsilon of every end."""
    return _epsilon(_part(asked, amount, END), budget)


def _part(asked: Quantiles, amount: float, share: Fraction) -> Fraction:
    return Fraction(amount) * (1 - KEPT_BACK) * share / len(asked.probabilities)


def measure(queryable: Queryable, asked: Quantiles) -> Estimates:
    """Quantiles within all that the queryable may spend, with intervals of at least 95 %."""
    amount, budget = queryable.remaining, queryable.budget
    column = _number(queryable.schema, asked.column)
    first = first_queries(asked, amount, budget)
    *cells, counts = queryable.ask_all(first)
    assert isinstance(counts, Answer)
    ends = _Ends(column, *_present(column, counts), last_epsilon(asked, amount, budget), _row_units(queryable))
    each = zip(asked.probabilities, map(_whole, cells), strict=True)
    more = [query for p, cell in each for side in (-1, 1) if (query := ends.query(p, cell, side)) is not None]
    pairs = zip((*first, *more), (*cells, counts, *queryable.ask_all(more)), strict=True)
    return tell(queryable.schema, tuple(pairs))


def tell(schema: Schema, released: Sequence[tuple[Query[Any], Any]]) -> Estimates:
    """Quantiles with their intervals, from all queries and what was answered."""
    picked = [(query, _whole(index)) for query, index in released if isinstance(query, Quantile)]
    (counts,) = (answer for query, answer in released if isinstance(query, Release))
    column = _number(schema, picked[0][0].column)
    ends = {(q.probability, q.shift > 0): (q.cuts[i], q.cuts[i + 1]) for q, i in picked if q.cuts}
    points = [(q.probability, cell) for q, cell in picked if not q.cuts]
    rows = tuple(_estimate(column, p, cell, ends.get((p, False)), ends.get((p, True))) for p, cell in points)
    notes = (
        "low and high: an interval of at least 95 % for noise and sampling together, from about "
        f"{_present(column, counts)[0]:,.0f} rows",
        "each is picked by the exponential mechanism; rows are taken to be independent of each other",
    )
    return Estimates((f"quantile of {column.name}",), "value", rows, notes)


def _number(schema: Schema, name: str) -> Numeric:
    column = schema[name]
    assert isinstance(column, Numeric)
    return column


def _whole(index: object) -> int:
    assert isinstance(index, int)
    return index


def _present(column: Numeric, counts: Answer) -> tuple[float, float]:
    """About how many rows have a number, and the noise in that."""
    if column.missing != OWN:
        return float(counts.parts[0]), counts.scales[0]
    return float(counts.parts[0]) - float(counts.parts[2]), counts.scales[0] * math.sqrt(2)


def _row_units(queryable: Queryable) -> tuple[int, bool]:
    return queryable.schema.rows_per_unit, queryable.neighbours is Neighbours.REPLACE


@dataclass(frozen=True, slots=True)
class _Ends:
    """The ends of intervals, from what is known of the column, its rows and the noise."""

    column: Numeric
    rows: float
    noise: float
    epsilon: float
    unit: tuple[int, bool]

    def query(self, p: float, cell: int, side: int) -> Quantile | None:
        """Where an end lies: so many rows beyond the quantile that noise and sampling seldom reach back to it.

        None if there may be too few rows for that: then it is the end of the range.
        """
        cuts, (rows, replace) = ladder(cell, side), self.unit
        moved = rows * (1 if replace else max(p, 1 - p))
        most, least_rows = (self.rows + sign * COUNT_DEVIATIONS * self.noise for sign in (1, -1))
        shift = reach(2 * moved / self.epsilon, math.sqrt(max(1.0, most) * p * (1 - p)), len(cuts) - 1)
        if (p if side < 0 else 1 - p) * least_rows <= shift:
            return None
        return Quantile(column=self.column.name, probability=p, epsilon=self.epsilon, shift=side * shift, cuts=cuts)


def _estimate(
    column: Numeric, p: float | Fraction, cell: int, low: tuple[int, int] | None, high: tuple[int, int] | None
) -> Estimate:
    """A point and its interval; an end that was not asked for is that of the range."""

    def natural(steps: int) -> float:
        return column.low + (column.high - column.low) * steps / (2 * GRID)

    first = 0 if low is None else min(low[0], cell)
    last = CELLS if high is None else max(high[1], cell + 1)
    # A fine interval holds what lies up to one grid step above it.
    ends = natural(2 * first), natural(min(2 * last + 1, 2 * GRID))
    return Estimate((f"{float(p):g}",), natural(int(places()[cell]) + GRID), None, *ends)


def ladder(cell: int, side: int) -> tuple[int, ...]:
    """Cuts below an interval (side -1) or above it (1), the further the wider apart.

    Few candidates, and all that lies on the other side in one: so noise reaches less far.
    """
    steps = {0} | {round(2 ** (k / 2)) for k in range(2 * CELLS.bit_length())}
    rungs = {cell - step if side < 0 else cell + 1 + step for step in steps}
    inside = sorted(place for place in rungs if 0 < place < CELLS)
    return (0, *inside, CELLS) if inside else (0, CELLS // 2, CELLS)


def reach(scale: float, spread: float, candidates: int) -> int:
    """The rows beyond a quantile at which an end is sought, so that it is wrong with a chance of at most END_ERROR.

    `scale` is that of the mechanism's weights, exp(-rows / scale), `spread` the standard deviation of the
    quantile's rank in a sample: E min(1, candidates exp(-(reach - spread Z) / scale)) for a normal Z.
    """
    from scipy.special import log_ndtr  # takes long to import

    def good(rows: float) -> bool:
        certain = (rows - scale * math.log(candidates)) / spread
        rest = math.log(candidates) - rows / scale + (spread / scale) ** 2 / 2 + log_ndtr(certain - spread / scale)
        return bool(math.exp(log_ndtr(-certain)) + math.exp(min(rest, 1.0)) <= END_ERROR)

    return math.ceil(least(good, 0.0, scale * math.log(candidates / END_ERROR) + 3 * spread)) + 1
