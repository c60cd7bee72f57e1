"""What an owner should know about the rows. This LOOKS AT THE DATA and says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpcurate._messages import how_many
from dpcurate._typing import FloatArray, IntArray
from dpcurate.private.row_sums import Counted, CountRows, IntervalRows, MomentRows
from dpcurate.private.sources.encode import Kind, cells, cells_sql
from dpcurate.private.sources.engine import Encoded, Engine
from dpcurate.schema import GRID, OWN, Column, Schema

PARTS = 10
"""Equal parts of its bounds in which a number without bins is shown."""
COPY = 0.98
"""Two columns are nearly copies from such a correlation on, or if so many rows follow one renaming of levels."""
COMPARED = 50
"""Columns that are compared with each other; of a wider table the first ones."""


@dataclass(frozen=True, slots=True)
class ColumnLook:
    """How many cells of a column are missing, how many are outside the schema, and how many used rows each level has.

    A number without bins has `PARTS` equal parts of its bounds instead; last, if they stay, the missing cells.
    """

    column: Column
    missing: int
    outside: int
    filled: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IdLook:
    """A column of ids: how many different ones, on how many rows they stand, and one of them at most."""

    column: str
    ids: int
    rows: int
    most: int


@dataclass(frozen=True, slots=True)
class TableLook:
    """How many rows there are, how many are used, every column, and columns that may name persons."""

    rows: int
    used: int
    columns: tuple[ColumnLook, ...]
    ids: tuple[IdLook, ...]
    copies: tuple[tuple[str, str], ...] = ()
    """Pairs of columns of which the second is nearly a copy of the first."""


def look(engine: Engine, schema: Schema, kinds: Mapping[str, Kind]) -> list[int]:
    """The number of rows, then every column's cells that are missing and those outside the schema, in one pass."""
    tests = []
    for cell in cells(schema, kinds, engine.dialect):
        tests += [cell.missing, f"(NOT {cell.missing} AND {cell.outside})"]
    sums = ", ".join(f"coalesce(sum(CASE WHEN {t} THEN 1 ELSE 0 END), 0) AS s{i}" for i, t in enumerate(tests))
    stored = cells_sql(engine.relation, schema, kinds, engine.dialect)
    found = engine.fetch(f"SELECT count(*) AS n, {sums} FROM ({stored}) AS s")
    return [int(column[0]) for column in found.values()]


def repeated(engine: Engine, column: str) -> IdLook:
    """How often the ids of a column repeat, in one pass."""
    name = engine.dialect.quote(column)
    alike = f"SELECT count(*) AS w FROM {engine.relation} WHERE {name} IS NOT NULL GROUP BY {name}"
    sums = "count(*) AS n, coalesce(sum(w), 0) AS r, coalesce(max(w), 0) AS m"
    found = engine.fetch(f"SELECT {sums} FROM ({alike}) AS g")
    return IdLook(column, *(int(found[key][0]) for key in "nrm"))


def full(looked: Sequence[int], used: int, encoded: Encoded, ids: Sequence[IdLook], schema: Schema) -> TableLook:
    """The same, with how full every level is, in one pass more."""
    tables: list[Counted] = [_table(column) for column in schema.columns]
    filled = [tuple(map(int, counts.ravel())) for counts in encoded.count(tables)]
    columns = zip(schema.columns, looked[1::2], looked[2::2], filled, strict=True)
    return TableLook(
        looked[0],
        used,
        tuple(ColumnLook(*facts) for facts in columns),
        tuple(ids),
        _copies(encoded, schema, filled, used),
    )


def _copies(
    encoded: Encoded, schema: Schema, filled: Sequence[tuple[int, ...]], used: int
) -> tuple[tuple[str, str], ...]:
    """Columns that are nearly the same, as numbers or as levels under other names; two passes at most."""
    columns = schema.columns[:COMPARED]
    steps = tuple(column.size - 1 if column.has_levels else GRID for column in columns)
    moments = encoded.add([MomentRows(tuple(column.name for column in columns), steps, None)])[0]
    alike = np.abs(_correlations(moments)) >= COPY
    pairs = list(combinations(range(len(columns)), 2))
    found = {(i, j) for i, j in pairs if alike[i, j]}
    renamed = [
        (i, j) for i, j in pairs
        if (i, j) not in found and _may_be_renamed(columns[i], columns[j])
        and _equally_full(filled[i], filled[j], used)
    ][:COMPARED]  # fmt: skip
    sizes = [(columns[i].size, columns[j].size) for i, j in renamed]
    names = [(columns[i].name, columns[j].name) for i, j in renamed]
    tables = [CountRows(*one) for one in zip(names, sizes, strict=True)]
    counted = encoded.count(tables) if tables else []
    shaped = [counts.reshape(size) for counts, size in zip(counted, sizes, strict=True)]
    found |= {pair for pair, counts in zip(renamed, shaped, strict=True) if _is_renaming(counts)}
    return tuple((columns[i].name, columns[j].name) for i, j in sorted(found))


def _may_be_renamed(a: Column, b: Column) -> bool:
    """Of two levels, a renaming shows as a correlation."""
    return a.has_levels and b.has_levels and 2 < a.size == b.size <= COMPARED


def _equally_full(a: Sequence[int], b: Sequence[int], used: int) -> bool:
    """Whether one could be the other with other names: the fullest levels hold about as many rows, and so on."""
    apart = sum(abs(x - y) for x, y in zip(sorted(a), sorted(b), strict=True))
    return apart <= 2 * (1 - COPY) * used


def _correlations(moments: IntArray) -> FloatArray:
    """Of a sum of y y^T, y = (1, x); 0 where a column does not vary."""
    rows, sums = float(moments[0, 0]) or 1.0, moments[0, 1:].astype(float)
    covariance = moments[1:, 1:].astype(float) / rows - np.outer(sums / rows, sums / rows)
    spread = np.sqrt(np.maximum(np.diagonal(covariance), 0))
    scale = np.outer(spread, spread)
    correlations: FloatArray = np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > 1e-9)
    return correlations


def _is_renaming(counts: IntArray) -> bool:
    """Whether nearly every row is in the fullest cell of its row and of its column, and no cell alone holds most."""
    kept = (counts == counts.max(axis=0)) & (counts == counts.max(axis=1)[:, None]) & (counts > 0)
    total = counts.sum()
    return bool(counts[kept].sum() >= COPY * total > 0 and counts.max() < COPY * total)


def _table(column: Column) -> Counted:
    if column.has_levels:
        return CountRows((column.name,), (column.size,))
    return IntervalRows(column.name, PARTS, column.missing == OWN)


def sentences(looked: Sequence[int], kept: int, schema: Schema) -> Iterator[str]:
    """How many rows are used, and what is missing or outside the schema in each column."""
    total = looked[0]
    yield f"{total} rows, {kept} of them used" + ("; the table is empty" if total == 0 else "")
    for column, empty, strange in zip(schema.columns, looked[1::2], looked[2::2], strict=True):
        if empty:
            missing = f"{how_many(empty, 'missing cell')}{_all(empty, total, column)}"
            yield f"column {column.name!r}: {missing}; rule: {column.missing}"
        if strange:
            yield f"column {column.name!r}: {how_many(strange, 'cell')} outside the schema; rule: {column.outside}"


def _all(empty: int, total: int, column: Column) -> str:
    if empty < total:
        return ""
    text = (
        " (in a column of numbers texts count as missing, 3,5 too unless the schema says so under [file])"
        if column.kind == "numeric"
        else ""
    )
    return f", that is all of them{text}"
