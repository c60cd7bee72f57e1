"""What an owner should know about the rows. This LOOKS AT THE DATA and says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dpcurate._messages import how_many
from dpcurate.private.row_sums import Counted, CountRows, IntervalRows
from dpcurate.private.sources.encode import Kind, cells, cells_sql
from dpcurate.private.sources.engine import Encoded, Engine
from dpcurate.schema import OWN, Column, Schema

PARTS = 10
"""Equal parts of its bounds in which a number without bins is shown."""


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
    return TableLook(looked[0], used, tuple(ColumnLook(*facts) for facts in columns), tuple(ids))


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
