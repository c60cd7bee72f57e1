"""What the default can see through a level of noise: the smallest effect, and how much of a graph that tends to be.

The smallest effect follows from the noise and the method's own prior, in closed form. How much of a graph is found
when effects of that size are seen is a matter of what tables hold; the curves here were fitted to runs on published
networks and random worlds, none of them private (docs/choosing-epsilon.md, `benchmarks/plan_check.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log, log1p, sqrt

from dpcurate.accounting.conversions import doubled, least
from dpcurate.learn.measure_once.constants import Constants

CLEAR_DEVIATIONS = 3.0
"""Standard deviations of noise that make a difference clear."""
UNSEEN_EFFECT = 10.0
"""An effect that no pair has, since it is no correlation: nothing is seen."""
EDGES_PER_COLUMN = 1.2
"""In published networks of 5 to 76 columns."""


@dataclass(frozen=True, slots=True)
class PowerCurve:
    """A figure that falls from `top` towards 0 as the smallest effect seen grows, halfway at `middle`."""

    top: float
    middle: float
    steepness: float

    def at(self, effect: float) -> float:
        """The value at this effect size."""
        return float(self.top / (1 + (effect / self.middle) ** self.steepness))


RECALL = PowerCurve(1.0, 0.21, 1.7)
PRECISION = PowerCurve(0.95, 1.3, 4.0)
LOW = PowerCurve(0.90, 0.11, 4.0)
HIGH = PowerCurve(1.0, 0.96, 2.2)
"""Of edges more likely than not, which is what a result shows; LOW and HIGH: where F1 lies in 8 of 10 tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """What a run sees: the smallest effect, a correlation, and what tables of this shape then give."""

    effect: float
    columns: int

    @classmethod
    def of(
        cls, *, variance: float, coordinates: int, columns: int, rows: float = inf, rows_noise: float = 0.0
    ) -> Power:
        """At this variance of each of a typical pair's coordinates, and this noise of the row count (see `NoiseLevel`).

        Where the count is lost in its noise nothing is seen: every share of the rows is a share of that number.
        """
        effect = smallest_effect(variance=variance, coordinates=coordinates, columns=columns)
        return cls(effect=max(effect, UNSEEN_EFFECT) if lost(rows, rows_noise) else effect, columns=columns)

    @property
    def edges(self) -> float:
        """How many edges a table of this shape has, typically."""
        return min(EDGES_PER_COLUMN * self.columns, self.columns * (self.columns - 1) / 4)  # at most half of the pairs

    @property
    def recall(self) -> float:
        """The share of true edges that are found, as expected."""
        return RECALL.at(self.effect)

    @property
    def precision(self) -> float:
        """The share of found edges that are true, as expected."""
        return PRECISION.at(self.effect)

    @property
    def missed(self) -> float:
        """How many of the edges are not drawn."""
        return (1 - self.recall) * self.edges

    @property
    def false(self) -> float:
        """How many edges are drawn that are not there."""
        return self.recall * self.edges * (1 / self.precision - 1)

    @property
    def f1(self) -> float:
        """Of the skeleton: what recall and precision amount to."""
        return 2 * self.recall * self.precision / (self.recall + self.precision)

    @property
    def range(self) -> tuple[float, float]:
        """Where it lies in 8 of 10 tables."""
        return min(LOW.at(self.effect), self.f1), max(HIGH.at(self.effect), self.f1)


def lost(rows: float, rows_noise: float) -> bool:
    """Whether a released number of rows does not differ from none."""
    return rows < CLEAR_DEVIATIONS * rows_noise


def smallest_effect(*, variance: float, coordinates: int, columns: int, constants: Constants | None = None) -> float:
    """The correlation of two columns that is seen with probability about 1/2; above 1 none is.

    A pair of k coordinates, white and of this variance without a link, holds the effect phi if the sum of its
    squares is about phi^2 + k variance. It is seen where the Bayes factor of that sum, the method's own, outweighs
    its prior odds against an edge, and where that sum is beyond what one pair in twenty reaches without a link: among
    two or three columns the prior odds are even.
    """
    constants = constants or Constants()
    needed = -log_prior_odds(columns, constants)

    def seen(squared: float) -> bool:
        return _log_bayes_factor(squared / variance + coordinates, coordinates, variance, constants) >= needed

    high = doubled(seen, variance)
    by_chance = 2 * sqrt(2 * coordinates) * variance  # two standard deviations of the sum without a link
    return sqrt(max(least(seen, 0.0, high), by_chance)) if high < inf else inf


def log_prior_odds(columns: int, constants: Constants) -> float:
    """Of an edge, as the search has them."""
    p = min(0.5, constants.expected_neighbours(columns) / (columns - 1))
    return log(p / (1 - p))


def _log_bayes_factor(squares: float, coordinates: int, variance: float, constants: Constants) -> float:
    """As `measure_once.bayes_factor` has it, for one block of coordinates that are alike; squares over the variance."""
    ratios = [size**2 / variance for size in constants.effect_sizes]
    logs = [0.5 * squares * r / (1 + r) - 0.5 * coordinates * log1p(r) for r in ratios]
    top = max(logs)
    return top + log(sum(exp(one - top) for one in logs) / len(logs))
