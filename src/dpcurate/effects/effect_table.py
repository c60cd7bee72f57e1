"""What becomes of an outcome when its cause is set to each level, with errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dpcurate._messages import did_you_mean
from dpcurate._typing import FloatArray
from dpcurate.errors import QueryError
from dpcurate.schema import MISSING

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
        heads = self.outcomes
        width = max(len(x) for x in self.causes)
        cells = []
        for values, errors in zip(self.values, self.errors, strict=True):
            cells.append([f"{v:.3g} ± {e:.1g}" for v, e in zip(values, errors, strict=True)])
        wide = [max(len(h), *(len(row[j]) for row in cells)) for j, h in enumerate(heads)]
        lines = [" " * width + "  " + "  ".join(h.rjust(w) for h, w in zip(heads, wide, strict=True))]
        for name, row in zip(self.causes, cells, strict=True):
            lines.append(name.ljust(width) + "  " + "  ".join(c.rjust(w) for c, w in zip(row, wide, strict=True)))
        return "\n".join(lines)


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
