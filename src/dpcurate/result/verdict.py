"""How far a result can be trusted, in a few sentences at its top: from released numbers alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

from dpcurate._messages import how_many
from dpcurate.accounting import Budget
from dpcurate.accounting.conversions import least
from dpcurate.learn.power import CLEAR_DEVIATIONS, Power, lost
from dpcurate.result.fit import GoodnessOfFit, NoiseLevel

Level = Literal["fine", "partial", "weak", "hopeless"]

HOPELESS = 0.3
"""A skeleton F1 expected below this is no result; `dpcurate discover` asks before it spends on one."""
WORTHWHILE = 0.5
"""The skeleton F1 for which it is told what would be needed where all is noise."""
PARTIAL, WEAK = 0.8, 0.55
"""Expected skeleton F1 below which power is moderate, and low."""
RIGHT = 0.8
"""Where at least this share of the drawn edges is expected to be right, they can be read, however few they are."""
MISSED_OF_DEPENDENT = 0.5
"""Of the likeliest share of pairs that stay dependent so many are taken for edges that are missed. The method forgives
such a dependence, because its regressions may miss something: in wide tables of many levels many are links. (Counts of
such pairs would not do: where noise hides everything, every sixth one is a little likelier dependent than not.)"""
CLEAR_SHARE = 2.0
"""A share of dependent pairs is told if it makes the answers likelier by this log ratio than no such pair: where noise
hides nearly everything the likeliest share is often far from 0 by chance."""
F1_IF_BLIND = 0.15
"""Below this F1 is where even the strongest links are hidden."""
MOST_DROPPED = 0.5
"""Of the rows a schema declares; where fewer are seen, it is told."""
MOST_TIMES = 1000.0
"""More than so many times the budget or the rows is no advice."""
TITLES = {"fine": "Power: good", "partial": "Power: moderate", "weak": "Power: low", "hopeless": "MOSTLY NOISE"}
BELOW, ABOVE = 1.2, 0.16
"""In 8 of 10 tables F1 lies at most BELOW times what the expected one lacks below it, and ABOVE above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """`right` of the `drawn` edges are expected to be right, and `missed` edges to be missing from the graph."""

    drawn: int
    right: float
    missed: float

    @classmethod
    def of(cls, probabilities: Iterable[float], least: float, fit: GoodnessOfFit | None = None) -> Expected:
        """If pairs are drawn from this P(edge) on, and the graph leaves this much dependence unexplained."""
        every = tuple(probabilities)
        drawn = [p for p in every if p >= least]
        forgiven = 0.0
        if fit is not None and fit.log_ratio >= CLEAR_SHARE:
            forgiven = MISSED_OF_DEPENDENT * fit.share * fit.apart
        return cls(drawn=len(drawn), right=sum(drawn), missed=sum(every) - sum(drawn) + forgiven)

    @property
    def edges(self) -> float:
        """How many edges the table is expected to have."""
        return self.right + self.missed

    @property
    def precision(self) -> float:
        """The share of drawn edges that are right; 0 if none is drawn."""
        return self.right / self.drawn if self.drawn else 0.0

    @property
    def f1(self) -> float:
        """Of the skeleton, as if one edge more were there and found: a table may have none."""
        return 2 * (self.right + 1) / (self.drawn + self.edges + 2)

    @property
    def range(self) -> tuple[float, float]:
        """Where it lies in 8 of 10 tables."""
        return max(self.f1 - BELOW * (1 - self.f1), 0.0), min(self.f1 + ABOVE, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a run could see of the links between columns, and how much of what it shows is expected to be right.

    `effect` is the smallest correlation that would show with probability 1/2 (above 1: none). About `found` of `edges`
    edges are found, with a skeleton F1 of `f1` (8 of 10 tables: `low` to `high`).
    """

    level: Level
    effect: float
    found: float
    edges: float
    f1: float
    low: float
    high: float
    sentences: tuple[str, ...]

    @property
    def title(self) -> str:
        """The level in words."""
        return TITLES[self.level]

    @property
    def lines(self) -> tuple[str, ...]:
        """For a terminal."""
        return f"{self.title}.", *(f"  {sentence}" for sentence in self.sentences)

    def __str__(self) -> str:
        return f"{self.title}. {' '.join(self.sentences)}"


def verdict_on(
    noise: NoiseLevel,
    *,
    columns: int,
    declared: int | None,
    expected: Expected | None = None,
    fit: GoodnessOfFit | None = None,
    repeated: Sequence[str] = (),
    budget: Budget | None = None,
) -> Verdict:
    """The verdict on a run with this noise.

    `declared` is the row count in the schema, `expected` what the edge probabilities imply for the graph that is drawn
    (without it, what runs with this noise find on average), `repeated` the columns that repeat others,
    `budget` what the run spent, if it has an epsilon.
    """
    power = Power.of(
        variance=noise.variance,
        coordinates=noise.coordinates,
        columns=columns,
        rows=noise.rows,
        rows_noise=noise.rows_noise,
    )
    empty = lost(noise.rows, noise.rows_noise)
    few = declared is not None and noise.rows + CLEAR_DEVIATIONS * noise.rows_noise < MOST_DROPPED * declared
    misfit = fit is not None and not fit.explains and fit.log_ratio >= CLEAR_SHARE
    f1 = power.f1 if expected is None else expected.f1
    level: Level = "fine" if f1 >= PARTIAL else "partial" if f1 >= WEAK else "weak"
    if level == "fine" and (misfit or repeated):
        level = "partial"
    if few:
        level = "weak"
    if empty or (f1 < HOPELESS and (expected is None or expected.precision < RIGHT)):
        level = "hopeless"
    said = [*_rows(noise, declared, empty=empty, few=few)]
    said += visible(power) if expected is None else [_shown(power, expected, level), *_drawn(expected, level)]
    said += _advice(noise, power, columns, budget, level=level, misfit=misfit, repeated=repeated, fit=fit)
    low, high = power.range if expected is None else expected.range
    return Verdict(
        level=level,
        effect=power.effect,
        found=power.recall * power.edges if expected is None else expected.right,
        edges=power.edges if expected is None else expected.edges,
        f1=f1,
        low=low,
        high=high,
        sentences=tuple(said),
    )


def _drawn(expected: Expected, level: Level) -> tuple[str, ...]:
    """What the graph holds, as its probabilities have it."""
    if level == "hopeless":
        return ("No edge is drawn, because no link stands out from the noise.",)
    count = round(expected.missed)
    missed = f"about {how_many(count, 'edge')}" if count else "fewer than 1 edge"
    if not expected.drawn:
        return (f"No edge is drawn; {missed} {'is' if count < 2 else 'are'} expected to be missing.",)
    low, high = expected.range
    return (
        f"Of {how_many(expected.drawn, 'drawn edge')} about {expected.right:.0f} "
        f"{'is' if round(expected.right) == 1 else 'are'} expected to be right, and {missed} to be missing: "
        f"skeleton F1 about {expected.f1:.2f} ({low:.2f} to {high:.2f} in 8 of 10 tables).",
    )


def _advice(
    noise: NoiseLevel,
    power: Power,
    columns: int,
    budget: Budget | None,
    *,
    level: Level,
    misfit: bool,
    repeated: Sequence[str],
    fit: GoodnessOfFit | None,
) -> list[str]:
    """What to do about it."""
    said = []
    if repeated:
        said.append(f"Columns that repeat others blur their links: leave out {', '.join(repeated)}.")
    if misfit and fit is not None and level != "hopeless":
        said.append(
            f"The graph does not explain the table: about {fit.still_dependent:.0%} of the pairs without an edge stay "
            "dependent. Causes may be missing, so read its edges as associations."
        )
    if level == "fine":
        return said
    if power.f1 >= PARTIAL:
        return said or ["A larger budget would change little: what is unsure is not unsure because of noise."]
    if level == "hopeless":
        said.append("Do not read the graph: it needs more rows, a larger epsilon or fewer columns.")
    return [*said, *_needed(noise, columns, budget, power, level)]


def _needed(noise: NoiseLevel, columns: int, budget: Budget | None, power: Power, level: Level) -> list[str]:
    """What a clear view of a typical table takes, or, where all is noise, one that is worth its budget."""
    sampling = 1 / max(noise.rows, 1.0)
    private = max(noise.variance - sampling, 0.0)

    def seen(epsilons: float, rows: float) -> Power:
        quieter = 1.0 if budget is None or epsilons == 1 else _quieter(budget, epsilons)
        return Power.of(
            variance=sampling / rows + private * quieter / rows**2,
            coordinates=noise.coordinates,
            columns=columns,
            rows=max(noise.rows, 1.0) * rows,
            rows_noise=noise.rows_noise * sqrt(quieter),
        )

    goal = WORTHWHILE if level == "hopeless" and power.f1 < WORTHWHILE else PARTIAL
    ways = ways_to(goal, seen, epsilon=None if budget is None else budget.epsilon, rows=max(noise.rows, 1.0))
    what = f"An F1 of {WORTHWHILE:g}" if goal == WORTHWHILE else "Good power"
    return [f"{what} takes about {ways}."] if ways else []


def _quieter(budget: Budget, epsilons: float) -> float:
    """Noise variance with so many times the epsilon, over what it is."""
    more = Budget(epsilon=float(budget.epsilon or 0) * epsilons, delta=budget.delta)
    ratio = float(budget.ceiling / more.ceiling)
    return ratio**2 if budget.pure else ratio


def ways_to(
    goal: float, seen: Callable[[float, float], Power], *, epsilon: float | None, rows: float, most: float = MOST_TIMES
) -> str:
    """How much epsilon, or how many rows, this F1 takes, in words; `seen` is told how many times of both there are."""

    def enough(epsilons: float, times_rows: float) -> bool:
        return seen(epsilons, times_rows).f1 >= goal

    ways = []
    if epsilon and enough(most, 1):
        ways.append(f"epsilon = {_rounded(epsilon * least(lambda times: enough(times, 1), 1, most)):g}")
    if enough(1, most):
        ways.append(f"{_rounded(rows * least(lambda times: enough(1, times), 1, most)):,.0f} rows")
    return " or ".join(ways)


def _rounded(value: float) -> float:
    """To two digits."""
    return float(f"{value:.2g}")


def _shown(power: Power, expected: Expected, level: Level) -> str:
    """The smallest effect in words; a graph with edges is no sign of noise that hides them all."""
    if power.effect >= 1 and expected.drawn and level != "hopeless":
        return "Noise hides all but the strongest links."
    return visible(power)[0]


def visible(power: Power) -> tuple[str, str]:
    """What is seen and how much that tends to be, in words."""
    if power.effect >= 1:
        return (
            "Noise hides every link, even between columns that determine each other.",
            f"On tables of this shape such a run finds hardly any edges: skeleton F1 below {F1_IF_BLIND:g}.",
        )
    low, high = power.range
    return (
        f"Detects correlations above about {power.effect:.2g}; most weaker ones are missed.",
        f"On tables of this shape such a run finds about {power.recall:.0%} of the edges; "
        f"skeleton F1 about {power.f1:.2f} ({low:.2f} to {high:.2f} in 8 of 10 tables).",
    )


def _rows(noise: NoiseLevel, declared: int | None, *, empty: bool, few: bool) -> tuple[str, ...]:
    counted = f"The released row count is {noise.rows:,.0f}, with noise of {noise.rows_noise:,.0f}"
    if empty:
        return (
            f"{counted}: no different from none. Either epsilon is too small for this table, or it is empty or tiny, "
            "or the schema drops its rows, which `dpcurate schema check` tells the owner.",
        )
    if few:
        return (
            f"{counted}, far below the {declared:,} rows that the schema declares: it may drop most rows (levels it "
            "does not list, missing cells), which `dpcurate schema check` tells the owner.",
        )
    return ()
