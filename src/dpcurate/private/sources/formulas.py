"""Moments and clipped gradients as SQL: the row_sums' own arithmetic, in their own order of operations.

Every step is one that IEEE 754 rounds in one way only (+ - * / and the root), so an engine's rows
equal NumPy's bit for bit, and their integers add up to the same totals.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpcurate.errors import QueryError
from dpcurate.private.row_sums import (
    GRADIENT_STEPS,
    SAFE,
    CountRows,
    FeatureNormRows,
    FeatureRows,
    GradientRows,
    Integers,
    IntervalRows,
    MomentRows,
    NormRows,
    RowSum,
)
from dpcurate.private.sources.encode import Dialect, code_name, value_name
from dpcurate.schema import GRID, MISSING_VALUE, OWN, Numeric, Schema

Formulated = MomentRows | GradientRows | NormRows
RowKernel = Formulated | IntervalRows | FeatureRows | FeatureNormRows
MOST_SUMS = 1024
"""Sums in one query."""
MOST_COLUMNS = 64
"""Columns of a gradient or of clipped moments: one row's matrix is one expression."""


def check(row_sum: RowSum) -> None:
    """Refuse, from public facts, what would be too long a formula."""
    plain = isinstance(row_sum, CountRows) or (isinstance(row_sum, MomentRows) and row_sum.clip is None)
    if not plain and len(row_sum.columns) > MOST_COLUMNS:
        raise QueryError(
            f"gradients and clipped moments of a table that stays where it is take at most {MOST_COLUMNS} columns, "
            f"got {len(row_sum.columns)}: load it into memory, or ask for moments without a clip"
        )


def queries(row_sum: RowKernel, encoded: str, schema: Schema, say: Dialect) -> list[str]:
    """Queries whose single rows, one after the other, hold the row_sum's sums."""
    if not isinstance(row_sum, Formulated):
        raise QueryError("features of a table that stays where it is cannot be added up yet: load it into memory")
    rows = Formula(row_sum, encoded, schema, say)
    sums, relation = list(rows.sums()), rows.relation()
    parts = [sums[i : i + MOST_SUMS] for i in range(0, len(sums), MOST_SUMS)]
    return [f"SELECT {', '.join(f'{s} AS s{i}' for i, s in enumerate(part))} FROM {relation}" for part in parts]


def total(row_sum: RowKernel, found: Integers) -> Integers:
    """The row_sum's value from its sums."""
    d = len(row_sum.columns)
    if isinstance(row_sum, NormRows):
        return found - np.append(found[1:], np.int64(0))
    if isinstance(row_sum, GradientRows):
        whole = np.zeros((d, d), dtype=np.int64)
        whole[~np.eye(d, dtype=bool)] = found
        return whole
    matrix = np.zeros((d + 1, d + 1), dtype=np.int64)
    matrix[np.triu_indices(d + 1)] = found
    return matrix + np.triu(matrix, 1).T


class Formula:
    """One row_sum in one dialect."""

    def __init__(self, row_sum: Formulated, encoded: str, schema: Schema, say: Dialect) -> None:
        self._row_sum, self._encoded, self._schema, self._say = row_sum, encoded, schema, say
        self._d = len(row_sum.columns)
        self._pairs = [(i, j) for i in range(self._d) for j in range(self._d) if i != j]

    def sums(self) -> Iterator[str]:
        """The sums over rows, in the order that `total` takes them."""
        row_sum = self._row_sum
        if isinstance(row_sum, MomentRows):
            names = ["1", *(f"y{i}" for i in range(self._d))]
            for i in range(self._d + 1):
                yield from (self._sum(f"CAST({names[i]} AS BIGINT) * {names[j]}") for j in range(i, self._d + 1))
        elif isinstance(row_sum, GradientRows):
            yield from (self._sum(self._say.whole(f"x{i} * r{j} * factor")) for i, j in self._pairs)
        else:
            yield self._sum("CAST(1 AS BIGINT)")
            for edge in row_sum.edges:
                yield self._sum(f"CASE WHEN norm >= {self._say.number(edge)} THEN 1 ELSE 0 END")

    def _sum(self, term: str) -> str:
        return f"CAST(coalesce(sum({term}), 0) AS BIGINT)"

    def relation(self) -> str:
        """The rows that are summed, with what the sums need."""
        row_sum = self._row_sum
        if isinstance(row_sum, MomentRows):
            return self._integers() if row_sum.clip is None else self._clipped(row_sum.clip)
        if isinstance(row_sum, GradientRows):
            shrink = self._shrink(row_sum.clip)
            factor = f"(-{shrink}) * {self._say.number(GRADIENT_STEPS / row_sum.clip)} AS factor"
            return self._with(factor, self._gradients(row_sum))
        return self._gradients(row_sum)

    def _with(self, more: str, relation: str) -> str:
        return f"(SELECT *, {more} FROM {relation}{self._say.fence}) AS q"

    def _integers(self) -> str:
        """Columns as integers from -steps to steps."""
        parts = [f"{self._scaled(i)} AS y{i}" for i in range(self._d)]
        return f"(SELECT {', '.join(parts)} FROM ({self._encoded}) AS e) AS q"

    def _scaled(self, i: int) -> str:
        name = self._row_sum.columns[i]
        column = self._schema[name]
        if isinstance(column, Numeric):
            value = f"CAST({value_name(self._schema, name)} AS BIGINT)"
            return value if column.missing != OWN else f"coalesce(nullif({value}, {MISSING_VALUE}), 0)"
        return f"(2 * CAST({code_name(self._schema, name)} AS BIGINT) - {self._row_sum.steps[i]})"

    def _units(self) -> str:
        say, steps = self._say, self._row_sum.steps
        parts = [f"CAST(y{i} AS {say.double}) / {say.number(steps[i])} AS x{i}" for i in range(self._d)]
        return f"(SELECT {', '.join(parts)} FROM {self._integers()}{say.fence}) AS q"

    def _clipped(self, clip: float) -> str:
        say = self._say
        norm = self._with(f"sqrt({self._added([f'x{i} * x{i}' for i in range(self._d)])}) AS norm", self._units())
        shrunk = self._with(f"{self._shrink(clip)} AS shrink", norm)
        parts = [f"{say.whole(f'x{i} * shrink * {say.number(GRID)}')} AS y{i}" for i in range(self._d)]
        return f"(SELECT {', '.join(parts)} FROM {shrunk}{say.fence}) AS q"

    def _shrink(self, clip: float) -> str:
        say = self._say
        return f"least({say.number(1)}, {say.number(clip * SAFE)} / greatest(norm, {say.number(1e-200)}))"

    def _gradients(self, row_sum: GradientRows | NormRows) -> str:
        say, d = self._say, self._d
        terms = [[f"x{k} * {say.number(row_sum.weights[k][j])}" for k in range(d)] for j in range(d)]
        rest = ", ".join(f"x{j} - ({self._added(terms[j])}) AS r{j}" for j in range(d))
        rows = self._with(rest, self._units())
        squares = [[f"(x{i} * r{j}) * (x{i} * r{j})" for j in range(d) if j != i] for i in range(d)]
        norm = f"sqrt({self._added([f'({self._added(row)})' for row in squares])}) AS norm"
        return self._with(norm, rows)

    def _added(self, terms: list[str]) -> str:
        """From left to right, beginning with 0, as the row_sums add."""
        return " + ".join([self._say.number(0), *terms])
