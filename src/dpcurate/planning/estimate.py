"""What a run of the default is worth before it is made: in closed form, from schema, rows and budget alone.

The noise is that of the design the default would choose, for margins as tables mostly have them; what is seen
through such noise is in `learn.power`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from dpcurate.accounting import Budget
from dpcurate.errors import QueryError
from dpcurate.learn.measure_once.constants import LONGEST, MOST_GROUPS, Constants, FeatureConstants
from dpcurate.learn.measure_once.release import Weights, first_weights
from dpcurate.learn.power import Power
from dpcurate.queries import BRANCHES, DEEPEST
from dpcurate.result.verdict import HOPELESS, WORTHWHILE, visible, ways_to
from dpcurate.schema import Column, Neighbours, Ordinal, Schema

LEVELS_MARGIN = 0.5
"""Squared spread of a level's coordinate over that of even levels, typically: some levels are rare."""
PAIRS_CLIP = 1.15
"""Squared norm at which rows are clipped, over its mean, where pairs are measured around margins."""
FEATURES_CLIP = 1.6
"""The same where features of any column are measured."""
FEW_LEVELS = 32
"""Up to so many levels a column is measured by contrasts."""


def estimate(schema: Schema, rows: int, *, budget: Budget, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Power:
    """What the default would see of a table with these columns and rows; rises with rows and with the budget."""
    if len(schema.names) < 2:
        raise QueryError(f"a graph needs at least two columns, the schema has {len(schema.names)}")
    few = all(c.has_levels and not isinstance(c, Ordinal) and c.size <= FEW_LEVELS for c in schema.columns)
    noise = _of_levels(schema, budget) if few else _of_features(schema, budget)
    times = schema.rows_per_unit**2 * (1 if neighbours is Neighbours.ADD_REMOVE else 2)
    sizes = [c.size - 1 if few else _features(c) for c in schema.columns]
    pair = median(a * b for i, a in enumerate(sizes) for b in sizes[:i])
    return Power.of(
        variance=1 / rows + times * noise.pair / rows**2,
        coordinates=round(pair),
        columns=len(sizes),
        rows=rows,
        rows_noise=math.sqrt(times * noise.count),
    )


@dataclass(frozen=True, slots=True)
class _Noise:
    """Noise variances of sums over rows."""

    pair: float
    """Of a pair's coordinate, where both its columns have variance 1."""
    count: float
    """Of the number of rows."""


def _of_levels(schema: Schema, budget: Budget) -> _Noise:
    """By contrasts of pairs, or in a wide table around margins if that is less noisy."""
    levels = [column.size for column in schema.columns]
    constants = Constants()
    pairs = [(a, b) for b in range(len(levels)) for a in range(b)]
    weights = first_weights(levels, pairs, constants.skew)
    unit = _unit(levels, weights, budget, 1.0)
    contrasts = _Noise(unit * (median(levels) / LEVELS_MARGIN) ** 2, unit / weights[()] ** 2)
    if len(levels) < constants.wide or budget.pure:
        return contrasts
    rho = float(budget.ceiling) * (1 - constants.share_margins) * (1 - constants.share_norms)
    products = _products(schema.columns, rho, PAIRS_CLIP)
    if contrasts.pair <= products:
        return contrasts
    margins = {columns: weight for columns, weight in weights.items() if len(columns) < 2}
    return _Noise(products, _unit(levels, margins, budget, constants.share_margins) / margins[()] ** 2)


def _unit(levels: Sequence[int], weights: Weights, budget: Budget, share: float) -> float:
    """Noise variance of a set of weight 1 in one release of all these for a share of the budget."""
    lengths = [(r - 1) / r for r in levels]
    squares = sum(w**2 * math.prod(lengths[a] for a in u) for u, w in weights.items())
    absolute = sum(w * math.prod(2 * lengths[a] for a in u) for u, w in weights.items())
    cost = share * budget.ceiling
    return float(2 * (absolute / cost) ** 2 if budget.pure else squares / (2 * cost))


def _of_features(schema: Schema, budget: Budget) -> _Noise:
    constants = FeatureConstants()
    cost = float(budget.ceiling) * (1 - constants.share_histograms - constants.share_norms)
    count = _counted(schema.columns, budget, constants.share_histograms)
    if not budget.pure:
        return _Noise(_products(schema.columns, cost, FEATURES_CLIP), count)
    size = sum(map(_features, schema.columns))
    clip = FEATURES_CLIP * sum(map(_length, schema.columns))
    return _Noise(2 * (((size - 1) / 2 + 0.71) * clip / cost) ** 2 / _spread(schema.columns) ** 2, count)


def _counted(columns: Sequence[Column], budget: Budget, share: float) -> float:
    """Noise variance of the number of rows, as the histograms of all columns have it."""
    histograms = sum(1 if column.has_levels else DEEPEST for column in columns)
    first = sum(column.size if column.has_levels else BRANCHES for column in columns)
    cost = share * budget.ceiling
    each = 2 * (histograms / cost) ** 2 if budget.pure else histograms / (2 * cost)
    return float(each * first / len(columns) ** 2)


def _products(columns: Sequence[Column], rho: float, clip: float) -> float:
    """The same for products of features, rows being clipped at so many times their mean squared norm."""
    square = clip * sum(map(_length, columns))
    return square**2 / 2 / (2 * rho) / _spread(columns) ** 2


def _features(column: Column) -> int:
    """How many features a column has: scores count as one, since curvature is bought where noise is small."""
    scored = not column.has_levels or isinstance(column, Ordinal) or column.kind == "numeric"
    return 1 if scored else min(column.size, MOST_GROUPS) - 1


def _length(column: Column) -> float:
    """The mean squared length of a column's features."""
    return min(math.sqrt(_features(column)), LONGEST)


def _spread(columns: Sequence[Column]) -> float:
    return median(_length(column) / _features(column) for column in columns)


# ---------------------------------------------------------------------------------------------------------------------
# What a run is expected to find, before it spends anything, and whether that is worth its budget.


MOST_TIMES = 1e6
"""Advice names no more than so many times the epsilon or the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What the default method is expected to find, in closed form, from public facts alone.

    `budget` is what the run may spend; `part` of it is for the graph, the rest for a model of the graph.
    """

    schema: Schema
    rows: int
    budget: Budget
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    part: float = 1.0

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise QueryError(f"the rough number of rows is at least 1, not {self.rows}")

    @property
    def power(self) -> Power:
        """The smallest effect that shows, and how much of a graph that tends to be."""
        return self._power(1, 1)

    @property
    def hopeless(self) -> bool:
        """Whether the run is expected to find hardly any links."""
        return self.power.f1 < HOPELESS

    @property
    def sentences(self) -> tuple[str, ...]:
        """The power in words."""
        return visible(self.power)

    @property
    def advice(self) -> str:
        """How much more epsilon, or how many more rows, a hopeless run needs."""
        ways = ways_to(
            WORTHWHILE, self._power, epsilon=float(self.budget.epsilon or 0), rows=self.rows, most=MOST_TIMES
        )
        needed = f"An F1 of {WORTHWHILE:g} takes about {ways}; f" if ways else "F"
        return f"{needed}ewer columns and fewer levels help. `dpcurate plan` shows what to expect and is free."

    def _power(self, times_epsilon: float, times_rows: float) -> Power:
        """The power with so many times the epsilon and so many times the rows."""
        whole = self.budget
        if times_epsilon != 1:
            whole = Budget(epsilon=float(whole.epsilon or 0) * times_epsilon, delta=whole.delta)
        rows = max(round(self.rows * times_rows), 1)
        budget = whole if self.part == 1 else whole.with_ceiling(whole.ceiling * self.part)
        return estimate(self.schema, rows, budget=budget, neighbours=self.neighbours)
