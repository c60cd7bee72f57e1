"""The total causal effect of one column on another, as a value that reads as a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, Protocol

import numpy as np

from dpcurate._messages import aligned, did_you_mean, one_line
from dpcurate._typing import FloatArray
from dpcurate.errors import QueryError
from dpcurate.graphs.adjustment import Adjustment
from dpcurate.schema import MISSING, Schema

MEAN_COLUMN = "mean"
"""The one column of the table of an outcome that is a number."""
POSITIVE_LEVELS = ("yes", "true", "present", "positive", "on", "high")
"""The level that is asked about where it is one of these, or 1 of two levels; otherwise the last."""
NEGATIVE_LEVELS = ("no", "false", "absent", "negative", "off", "never", "none", "normal")
"""What it is compared with where it is one of these, or 0 of two levels; otherwise the first."""
VAGUE_LEVELS = (MISSING, "other", "others", "unknown", "na", "n/a")
"""Levels that say little: asked about only where there are no two others."""


@dataclass(frozen=True, slots=True, eq=False)
class EffectTable:
    """P(outcome = column | do(cause = row)); of an outcome that is a number its mean, in one column.

    `covariances[j]` is the covariance, between the cause's levels, of the errors in column j.
    """

    causes: tuple[str, ...]
    outcomes: tuple[str, ...]
    values: FloatArray
    covariances: FloatArray

    def __post_init__(self) -> None:
        rows, columns = len(self.causes), len(self.outcomes)
        if self.values.shape != (rows, columns) or self.covariances.shape != (columns, rows, rows):
            raise QueryError(
                f"{rows} levels of a cause and {columns} of an outcome need values of shape {(rows, columns)} and "
                f"covariances of shape {(columns, rows, rows)}; got {self.values.shape} and {self.covariances.shape}"
            )

    @property
    def errors(self) -> FloatArray:
        """The standard error of every entry."""
        return np.sqrt(np.maximum(np.diagonal(self.covariances, axis1=1, axis2=2).T, 0.0))

    @property
    def of_number(self) -> bool:
        """Whether the outcome is a number."""
        return self.outcomes == (MEAN_COLUMN,)

    def difference(self, to: str, instead_of: str, level: str) -> tuple[float, float]:
        """What changes in a column from one of the cause's levels to another, and its standard error."""
        a, b = (place_of(x, self.causes, "the cause") for x in (to, instead_of))
        j = place_of(level, self.outcomes, "the outcome")
        c = self.covariances[j]
        variance = c[a, a] + c[b, b] - 2 * c[a, b]
        return float(self.values[a, j] - self.values[b, j]), float(np.sqrt(max(variance, 0.0)))

    @property
    def possible(self) -> EffectTable:
        """The same with probabilities none of which is below 0 or above 1; errors and differences want it as it was."""
        if self.of_number or (self.values.min() >= 0 and self.values.max() <= 1):
            return self
        within = np.clip(self.values, 0.0, 1.0)
        return replace(self, values=within / np.maximum(within.sum(axis=1, keepdims=True), 1e-12))

    @property
    def strength(self) -> float:
        """The largest total variation distance between the outcome's distributions under two levels of the cause."""
        if self.of_number:
            return float("nan")
        pairs = combinations(range(len(self.causes)), 2)
        most = max((float(np.abs(self.values[a] - self.values[b]).sum()) / 2 for a, b in pairs), default=0.0)
        return min(most, 1.0)

    def __str__(self) -> str:
        rows = [["", *self.outcomes]]
        for cause, values, errors in zip(self.causes, self.values, self.errors, strict=True):
            rows.append([cause, *(f"{v:.3g} ± {e:.1g}" for v, e in zip(values, errors, strict=True))])
        return "\n".join(aligned(rows, range(1, len(rows[0]))))


def place_of(level: str, levels: tuple[str, ...], whose: str) -> int:
    """Where a level stands."""
    if level not in levels:
        raise QueryError(f"{whose} has no level {level!r}{did_you_mean(level, levels)}")
    return levels.index(level)


def usual(levels: tuple[str, ...]) -> tuple[str, str]:
    """What is asked about, and instead of what, unless someone says: by their names, or the last and the first."""
    telling = [level for level in levels if level.lower() not in VAGUE_LEVELS]
    meant = telling if len(telling) > 1 else list(levels)
    number = ("1", "0") if len(meant) == 2 else ()
    asked = _named(meant[::-1], (*POSITIVE_LEVELS, *number[:1]))
    before = _named(meant, (*NEGATIVE_LEVELS, *number[1:])) or next((x for x in meant if x != asked), meant[0])
    return asked or next((x for x in meant[::-1] if x != before), before), before


def _named(levels: Sequence[str], names: Sequence[str]) -> str | None:
    return next((level for level in levels if level.lower() in names), None)


EffectState = Literal["estimated", "none", "several", "undecided", "not identified", "not determined"]
"""*none*: the graph rules an effect out. *undecided*: it does so unless pairs that are
undecided are linked. *several*: it depends on which graph of the class is true. *not identified*: no adjustment in the
graph tells it. *not determined*: the graph would tell it, but what was released does not."""
INTERVAL_ERRORS = 1.959963984540054
"""Standard errors on either side of a 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What setting `cause` does to `outcome`: estimate, standard error (sampling and privacy noise), interval.

    Of a cause with levels: setting it `to` one level `instead_of` another; of a number: one more unit. Of an outcome
    with levels: how the probability of `level` changes; of a number: how its mean does. `table` has every level.
    `low` and `high` are the ends of a 95 % interval; where several effects are possible (`possible`), of all of them.
    `strength` lies between 0 and 1: the largest change of a distribution (total variation) between two levels of the
    cause, or standard deviations of the outcome for each of the cause. `reason` says why there is no estimate, and
    what to do next.
    """

    cause: str
    outcome: str
    state: EffectState = "estimated"
    estimate: float | None = None
    error: float | None = None
    low: float | None = None
    high: float | None = None
    adjusted_for: tuple[str, ...] = ()
    to: str | None = None
    instead_of: str | None = None
    level: str | None = None
    table: EffectTable | None = None
    strength: float | None = None
    reason: str = ""
    possible: tuple[Effect, ...] = ()

    @classmethod
    def of_levels(
        cls,
        cause: str,
        outcome: str,
        table: EffectTable,
        *,
        adjusted_for: Sequence[str] = (),
        to: str | None = None,
        instead_of: str | None = None,
        level: str | None = None,
        spread: float | None = None,
    ) -> Effect:
        """Of a cause with levels. `spread` is the standard deviation of an outcome that is a number."""
        usually = usual(table.causes)
        to = usually[0] if to is None else to
        instead_of = _other(to, usually, table.causes) if instead_of is None else instead_of
        level = usual(table.outcomes)[0] if level is None else level
        estimate, error = table.difference(to, instead_of, level)
        low, high = _interval(estimate, error, furthest=math.inf if table.of_number else 1.0)
        strength = _strength(float(np.ptp(table.values)), spread) if table.of_number else table.strength
        return cls(
            cause=cause,
            outcome=outcome,
            estimate=min(max(estimate, low), high),
            error=error,
            low=low,
            high=high,
            adjusted_for=tuple(adjusted_for),
            to=to,
            instead_of=instead_of,
            level=None if table.of_number else level,
            table=table.possible,
            strength=strength,
        )

    @classmethod
    def per_unit(
        cls,
        cause: str,
        outcome: str,
        estimate: float,
        error: float,
        *,
        adjusted_for: Sequence[str] = (),
        level: str | None = None,
        spread: float | None = None,
    ) -> Effect:
        """Of a cause that is a number; `spread` is the outcome's standard deviation over its own."""
        low, high = _interval(estimate, error)
        return cls(
            cause=cause,
            outcome=outcome,
            estimate=estimate,
            error=error,
            low=low,
            high=high,
            adjusted_for=tuple(adjusted_for),
            level=level,
            strength=_strength(estimate, spread),
        )

    @classmethod
    def none(cls, cause: str, outcome: str, reason: str = "") -> Effect:
        """The graph has no way from the cause to the outcome."""
        reason = reason or f"no directed path leads from {cause} to {outcome}"
        made = cls(cause=cause, outcome=outcome, state="none", reason=reason)
        return replace(made, estimate=0.0, error=0.0, low=0.0, high=0.0, strength=0.0)

    @classmethod
    def unknown(
        cls,
        cause: str,
        outcome: str,
        state: Literal["undecided", "not identified", "not determined"],
        reason: str,
        *,
        adjusted_for: Sequence[str] = (),
    ) -> Effect:
        """No estimate, why not, and what to do next."""
        return cls(cause=cause, outcome=outcome, state=state, reason=reason, adjusted_for=tuple(adjusted_for))

    @classmethod
    def several(cls, possible: Sequence[Effect]) -> Effect:
        """Of a class of graphs: the one effect that all of them have, or all that are possible.

        Two that were adjusted for the same are one, and so are those of which nothing is known.
        """
        possible = list({(one.state, one.adjusted_for): one for one in possible}.values())
        first = possible[0]
        if len(possible) == 1 or all(one.state == "not determined" for one in possible):
            return first
        lows, highs = [e.low for e in possible], [e.high for e in possible]
        known = all(x is not None for x in (*lows, *highs))
        strengths = [e.strength for e in possible if e.strength is not None]
        return cls(
            cause=first.cause,
            outcome=first.outcome,
            state="several",
            low=min(x for x in lows if x is not None) if known else None,
            high=max(x for x in highs if x is not None) if known else None,
            to=next((e.to for e in possible if e.to), None),
            instead_of=next((e.instead_of for e in possible if e.instead_of), None),
            level=next((e.level for e in possible if e.level), None),
            strength=max(strengths, default=None) if known else None,
            reason=f"the graph leaves open what causes {first.cause}",
            possible=tuple(possible),
        )

    @property
    def supposed(self) -> Effect:
        """Of several possible effects those that are left if the cause acts on the outcome at all; else itself."""
        acting = [one for one in self.possible if one.state != "none"]
        return Effect.several(acting) if 0 < len(acting) < len(self.possible) else self

    @property
    def sign(self) -> int | None:
        """1 or -1 where the interval lies on one side of zero, 0 where the graph has no effect, else None."""
        if self.low is None or self.high is None:
            return None
        if self.state == "none":
            return 0
        return 1 if self.low > 0 else -1 if self.high < 0 else None

    def __str__(self) -> str:
        return one_line(f"{self.cause} -> {self.outcome}: {self.sentence}")

    @property
    def brief(self) -> str:
        """The effect in words, without why it is not known: `why` says that, often the same of many effects."""
        return self.sentence.replace(self.why, self.supposed.state) if self.why else self.sentence

    @property
    def why(self) -> str:
        """Why it is not known, and what to do next; nothing if it is known."""
        acting = self.supposed
        return f"{acting.state}: {acting.reason}" if acting.state.startswith("not ") else ""

    @property
    def sentence(self) -> str:
        """The effect in words, without its ends."""
        if self.state == "none":
            return f"no effect: {self.reason}"
        if self.state == "several":
            return self._of_several
        if self.estimate is None or self.low is None or self.high is None:
            return f"{self.state}: {self.reason}"
        given = f", adjusted for {', '.join(self.adjusted_for)}" if self.adjusted_for else ""
        size, ends = short_number(abs(self.estimate)), f"({short_number(self.low)} to {short_number(self.high)})"
        if self.sign is None:
            return f"{self.change} changes {self.what} by {short_number(self.estimate)} {ends}{given}; sign uncertain"
        verb = "raises" if self.estimate > 0 else "lowers"
        return f"{self.change} {verb} {self.what} by {size} {ends}{given}"

    @property
    def _of_several(self) -> str:
        acting = self.supposed
        if acting is not self:
            return f"{acting.sentence}; or no effect, if {self.cause} does not cause {self.outcome}"
        if self.low is None or self.high is None:
            known = sum(e.estimate is not None for e in self.possible)
            return f"one of {len(self.possible)} effects, of which {known} could be estimated"
        ends = f"{short_number(self.low)} to {short_number(self.high)}"
        return (
            f"{self.change} changes {self.what} by {ends}, one of {len(self.possible)} effects, because {self.reason}"
        )

    @property
    def change(self) -> str:
        """What is done, in words: `yes instead of no`, or `one more unit`."""
        return "one more unit" if self.to is None else f"{self.to} instead of {self.instead_of}"

    @property
    def what(self) -> str:
        """What changes, in words."""
        return f"the mean of {self.outcome}" if self.level is None else f"P({self.outcome} = {self.level})"


def _other(to: str, usually: tuple[str, str], levels: tuple[str, ...]) -> str:
    """What a level is compared with: as usual, or the other end if that is the level itself."""
    return next(x for x in (usually[1], usually[0], *levels) if x != to)


def _interval(estimate: float, error: float, furthest: float = math.inf) -> tuple[float, float]:
    """No probability changes by more than 1; an interval that lies beyond is drawn to the end."""
    ends = estimate - INTERVAL_ERRORS * error, estimate + INTERVAL_ERRORS * error
    return min(max(ends[0], -furthest), furthest), max(min(ends[1], furthest), -furthest)


def _strength(change: float, spread: float | None) -> float | None:
    """Standard deviations that a change is, 1 at most."""
    return None if spread is None or not spread > 0 else min(abs(change) / spread, 1.0)


def short_number(value: float) -> str:
    """Three decimals of what is below 1, three digits of what is above."""
    if not math.isfinite(value) or abs(value) >= 1:
        return f"{value:.3g}"
    text = f"{value:.3f}" if abs(value) >= 0.01 or value == 0 else f"{value:.2g}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def covariance_of(draws: FloatArray) -> FloatArray:
    """The covariances of an EffectTable from draws of its values, (draws, causes, outcomes)."""
    centred = draws - draws.mean(axis=0)
    return np.asarray(np.einsum("sij,skj->jik", centred, centred) / max(len(draws) - 1, 1))


@dataclass(frozen=True, slots=True, eq=False)
class IfSet:
    """Means of an outcome (one of a number, the chances of levels) under settings of its cause, and their errors."""

    values: FloatArray
    """(settings, outcomes)."""
    covariances: FloatArray
    """(outcomes, settings, settings)."""


def mean_table(causes: Sequence[str], means: FloatArray, covariance: FloatArray) -> EffectTable:
    """The table of an outcome that is a number."""
    return EffectTable(tuple(causes), (MEAN_COLUMN,), np.asarray(means)[:, None], np.asarray(covariance)[None])


ADVICE_QUANTIFY = "ask found.model.effect after a run with quantify=0.5, or dpcurate.quantify(found, curator).effect"
"""What to do next where released answers do not tell."""
ADVICE_BINS = "give numbers `bins` in the schema, and ask found.model.effect after a run with quantify=0.5"
"""The same where a table has numbers without levels, and nothing else."""


def way_on(schema: Schema) -> str:
    """What to do next with such a table."""
    return ADVICE_QUANTIFY if any(column.has_levels for column in schema.columns) else ADVICE_BINS


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectQuestion:
    """The effect of one column on another; levels as usual where none are named."""

    cause: str
    outcome: str
    to: str | None = None
    instead_of: str | None = None
    level: str | None = None

    def undetermined(self, why: str, given: Sequence[str] = (), then: str = ADVICE_QUANTIFY) -> Effect:
        """That what was released does not tell, and what to do then."""
        reason = f"{why}; {then}"
        return Effect.unknown(self.cause, self.outcome, "not determined", reason, adjusted_for=given)


class Estimator(Protocol):
    """Effects from released answers."""

    def estimate(self, asked: EffectQuestion, possible: Adjustment) -> Effect:
        """By adjustment for one of its sets, whichever the answers tell most of, or in its DAG."""
        ...
