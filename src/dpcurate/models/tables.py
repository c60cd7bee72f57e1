"""A conditional table with its errors, as people read one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from dpcurate._typing import FloatArray

MOST_ROWS = 40
"""Rows of a table that are printed."""
GUESS = 0.29
"""The error of a probability of which nothing is known: the spread of even numbers between 0 and 1."""


@dataclass(frozen=True, slots=True, eq=False)
class ConditionalTable:
    """P(column = level) in each combination of its parents' levels, with standard errors.

    `values` and `errors` have a row for every combination, the last parent changing fastest, and a column for every
    level. `shares` says how often each combination occurs in the model.
    """

    column: str
    levels: tuple[str, ...]
    parents: tuple[str, ...]
    combinations: tuple[tuple[str, ...], ...]
    values: FloatArray
    errors: FloatArray
    shares: FloatArray

    def __str__(self) -> str:
        heads = [
            *self.parents,
            *(f"{self.column}={level}" for level in self.levels),
            *(["of rows"] * bool(self.parents)),
        ]
        rows = [
            [*labels, *(_cell(p, e) for p, e in zip(*row, strict=True)), *([f"{share:.1%}"] * bool(labels))]
            for labels, row, share in zip(
                self.combinations, zip(self.values, self.errors, strict=True), self.shares, strict=True
            )
        ]
        left = len(rows) - MOST_ROWS
        lines = _aligned([heads, *rows[:MOST_ROWS]])
        return "\n".join(lines + ([f"and {left} more rows"] if left > 0 else []))


def _cell(probability: float, error: float) -> str:
    """With its error, or that it is no more than a guess: so few rows have these parents."""
    return f"{probability:.3f} ± {error:.3f}" if error < GUESS else f"{probability:.3f}, not seen"


def combinations_of(levels: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Every combination of some columns' levels, the last column changing fastest."""
    return tuple(product(*levels))


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
