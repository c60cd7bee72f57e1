"""Moments, clipped gradients and features as SQL: the row_sums' own arithmetic, in their own order of operations.

Every step is one that IEEE 754 rounds in one way only (+ - * / and the root), so an engine's rows
equal NumPy's bit for bit, and their integers add up to the same totals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dpcurate.errors import QueryError
from dpcurate.private.row_sums import (
    GRADIENT_STEPS,
    SAFE,
    Counted,
    FeatureNormRows,
    FeatureRows,
    GradientRows,
    Integers,
    Lookup,
    MomentRows,
    NormRows,
    RowSum,
)
from dpcurate.private.sources.encode import Dialect, code_name, interval_sql, value_name
from dpcurate.schema import GRID, MISSING_VALUE, OWN, Numeric, Schema

OfColumns = MomentRows | GradientRows | NormRows
OfFeatures = FeatureRows | FeatureNormRows
RowKernel = OfColumns | OfFeatures
MOST_IN_SQL = 250
"""Features of a row: their norm is one expression, and their products are half the square of so many sums."""
MOST_COLUMNS = 64
"""Columns of a gradient or of clipped moments: one row's matrix is one expression."""


def check(row_sum: RowSum) -> None:
    """Refuse, from public facts, what would be too long a formula."""
    if isinstance(row_sum, OfFeatures):
        size = sum(len(one.vectors[0]) for one in row_sum.lookups)
        if size > MOST_IN_SQL:
            raise QueryError(
                f"a table that stays where it is takes at most {MOST_IN_SQL} features, got {size}: load it"
            )
        return
    plain = isinstance(row_sum, Counted) or (isinstance(row_sum, MomentRows) and row_sum.clip is None)
    if not plain and len(row_sum.columns) > MOST_COLUMNS:
        raise QueryError(
            f"gradients and clipped moments of a table that stays where it is take at most {MOST_COLUMNS} columns, "
            f"got {len(row_sum.columns)}: load it into memory, or ask for moments without a clip"
        )


def queries(row_sum: RowKernel, encoded: str, schema: Schema, say: Dialect, most: int) -> list[str]:
    """Queries whose single rows, one after the other, hold the row_sum's sums, at most so many each."""
    rows: Formula | FeatureFormula
    if isinstance(row_sum, OfFeatures):
        rows = FeatureFormula(row_sum, encoded, schema, say)
    else:
        rows = Formula(row_sum, encoded, schema, say)
    sums, relation = list(rows.sums()), rows.relation()
    parts = [sums[i : i + most] for i in range(0, len(sums), most)]
    return [f"SELECT {', '.join(f'{s} AS s{i}' for i, s in enumerate(part))} FROM {relation}" for part in parts]


def count(row_sum: RowKernel) -> int:
    """How many sums it takes."""
    if isinstance(row_sum, NormRows | FeatureNormRows):
        return len(row_sum.edges) + 1
    d = _size(row_sum)
    return d * (d - 1) if isinstance(row_sum, GradientRows) else (d + 1) * (d + 2) // 2


def _size(row_sum: RowKernel) -> int:
    return row_sum.size if isinstance(row_sum, FeatureRows) else len(row_sum.columns)


def total(row_sum: RowKernel, found: Integers) -> Integers:
    """The row_sum's value from its sums."""
    d = _size(row_sum)
    if isinstance(row_sum, NormRows | FeatureNormRows):
        return found - np.append(found[1:], np.int64(0))
    if isinstance(row_sum, GradientRows):
        whole = np.zeros((d, d), dtype=np.int64)
        whole[~np.eye(d, dtype=bool)] = found
        return whole
    matrix = np.zeros((d + 1, d + 1), dtype=np.int64)
    matrix[np.triu_indices(d + 1)] = found
    return matrix + np.triu(matrix, 1).T


def _sum(term: str) -> str:
    return f"CAST(coalesce(sum({term}), 0) AS BIGINT)"


def _products(size: int) -> Iterator[str]:
    """Sums of products of 1, y0, y1, ..., the upper triangle row by row."""
    names = ["1", *(f"y{i}" for i in range(size))]
    for i in range(size + 1):
        yield from (_sum(f"CAST({names[i]} AS BIGINT) * {names[j]}") for j in range(i, size + 1))


def _at_least(edges: Sequence[float], say: Dialect) -> Iterator[str]:
    """How many rows there are, and how many whose norm is at least each edge."""
    yield _sum("CAST(1 AS BIGINT)")
    yield from (_sum(f"CASE WHEN norm >= {say.number(edge)} THEN 1 ELSE 0 END") for edge in edges)


class Formula:
    """One row_sum of columns in one dialect."""

    def __init__(self, row_sum: OfColumns, encoded: str, schema: Schema, say: Dialect) -> None:
        self._row_sum, self._encoded, self._schema, self._say = row_sum, encoded, schema, say
        self._d = len(row_sum.columns)
        self._pairs = [(i, j) for i in range(self._d) for j in range(self._d) if i != j]

    def sums(self) -> Iterator[str]:
        """The sums over rows, in the order that `total` takes them."""
        row_sum = self._row_sum
        if isinstance(row_sum, MomentRows):
            yield from _products(self._d)
        elif isinstance(row_sum, GradientRows):
            yield from (_sum(self._say.whole(f"x{i} * r{j} * factor")) for i, j in self._pairs)
        else:
            yield from _at_least(row_sum.edges, self._say)

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


class FeatureFormula:
    """One row_sum of features in one dialect; a feature is looked up by the place of its column's cell."""

    def __init__(self, row_sum: OfFeatures, encoded: str, schema: Schema, say: Dialect) -> None:
        self._row_sum, self._encoded, self._schema, self._say = row_sum, encoded, schema, say
        self._size = sum(len(one.vectors[0]) for one in row_sum.lookups)

    def sums(self) -> Iterator[str]:
        """The sums over rows, in the order that `total` takes them."""
        if isinstance(self._row_sum, FeatureRows):
            yield from _products(self._size)
        else:
            yield from _at_least(self._row_sum.edges, self._say)

    def relation(self) -> str:
        """The rows that are summed, with what the sums need."""
        return self._shrunk(self._row_sum.clip) if isinstance(self._row_sum, FeatureRows) else self._normed()

    def _places(self) -> str:
        parts = [f"{self._place(one)} AS p{i}" for i, one in enumerate(self._row_sum.lookups)]
        return f"(SELECT {', '.join(parts)} FROM ({self._encoded}) AS e{self._say.fence}) AS q"

    def _place(self, one: Lookup) -> str:
        if one.intervals:
            return interval_sql(self._schema, one.column, one.intervals, self._say)
        return f"CAST({code_name(self._schema, one.column)} AS BIGINT)"

    def _features(self) -> str:
        found = [
            (f"p{i}", values)
            for i, one in enumerate(self._row_sum.lookups)
            for values in zip(*one.vectors, strict=True)
        ]
        parts = [f"{self._say.looked_up(values, place)} AS z{i}" for i, (place, values) in enumerate(found)]
        return f"(SELECT {', '.join(parts)} FROM {self._places()}{self._say.fence}) AS q"

    def _normed(self) -> str:
        """With the squared norm, a whole number below 2^53 and so exact as a double."""
        squares = " + ".join(f"CAST(z{i} AS BIGINT) * z{i}" for i in range(self._size))
        norm = f"CAST({squares} AS {self._say.double}) AS norm"
        return f"(SELECT *, {norm} FROM {self._features()}{self._say.fence}) AS q"

    def _shrunk(self, clip: float) -> str:
        say = self._say
        ratio = f"{say.number(clip * SAFE)} / sqrt(greatest(norm, {say.number(1)}))"
        shrink = f"(SELECT *, least({say.number(1)}, {ratio}) AS shrink FROM {self._normed()}{say.fence}) AS q"
        parts = [f"{say.whole(f'CAST(z{i} AS {say.double}) * shrink')} AS y{i}" for i in range(self._size)]
        return f"(SELECT {', '.join(parts)} FROM {shrink}{say.fence}) AS q"
