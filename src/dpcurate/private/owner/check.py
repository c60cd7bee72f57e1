"""How the rows fit a schema, in exact numbers for the owner alone. This LOOKS AT THE DATA: NOT PRIVATE."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from dpcurate._messages import how_many, shown
from dpcurate.private.owner.seen import is_id
from dpcurate.private.sources import look_at
from dpcurate.private.sources.owner_report import PARTS, ColumnLook, IdLook, TableLook
from dpcurate.schema import DROP, OWN, Numeric, Schema

NEARLY_ALL = 0.95
MUCH = 0.1
"""A rule that drops more of the rows than this is worth a thought."""
FAR = 1.5
"""A public number of rows may be so many times too large or too small: a draft rounds it to one digit."""
FEW = 10
"""Rows of a level, below which it may tell who holds it."""
_BAR = 24
_MOST_SHOWN = 30


@dataclass(frozen=True, slots=True)
class Remark:
    """What stands out: a sentence about a column, or about the table if `column` is None."""

    column: str | None
    text: str

    def __str__(self) -> str:
        return self.text if self.column is None else f"{shown(self.column)[1:-1]}: {self.text}"


@dataclass(frozen=True, slots=True)
class Fill:
    """How the cells of a column fit the schema: rows of each level (or of equal parts of the bounds), and the others.

    `missing` cells are empty, `outside` cells hold something that the schema does not declare.
    """

    levels: tuple[tuple[str, int], ...]
    missing: int
    outside: int


@dataclass(frozen=True, slots=True)
class TableCheck:
    """How the rows fit a schema, in exact numbers. NOT PRIVATE: for the owner's eyes only. Prints as text."""

    rows: int
    used: int
    columns: dict[str, Fill]
    remarks: tuple[Remark, ...]
    text: str

    @classmethod
    def of(cls, table: Any, schema: Schema | str | Path) -> TableCheck:
        """Look at a table: LOOKS AT THE DATA."""
        facts = Schema.of(schema)
        look = look_at(table, facts, is_id)
        remarks = tuple(_remarks(look, facts))
        told = [line for column in look.columns for line in ("", *_column(column, look))]
        stands_out = [f"! {remark}" for remark in remarks] or ["nothing stands out"]
        fills = {
            c.column.name: Fill(tuple(zip(_names(c), c.filled, strict=False)), c.missing, c.outside)
            for c in look.columns
        }
        text = "\n".join([_rows(look), *_persons(look, facts), *told, "", *stands_out])
        return cls(look.rows, look.used, fills, remarks, text)

    def of_column(self, name: str) -> tuple[str, ...]:
        """What stands out in a column."""
        return tuple(remark.text for remark in self.remarks if remark.column == name)

    def __str__(self) -> str:
        return self.text


def check_table(table: Any, schema: Schema | str | Path) -> str:
    """How full levels and bins are, what rules drop, and what to look at. NOT PRIVATE: for the owner's eyes only."""
    return str(TableCheck.of(table, schema))


def _rows(look: TableLook) -> str:
    return f"{look.rows:,} rows, {look.used:,} of them used ({_share(look.used, look.rows)})"


def _persons(look: TableLook, schema: Schema) -> Iterator[str]:
    for one in look.ids:
        if schema.person is not None and one.column == schema.person.column:
            nobody = look.rows - one.rows
            nameless = f"; {nobody:,} rows name nobody and are left out" if nobody else ""
            yield f"{_ids(one)}; at most {schema.person.rows} of them are used{nameless}"


def _ids(one: IdLook) -> str:
    each = f"{one.rows / one.ids:,.1f} rows each, at most {one.most:,}" if one.ids else "on no row"
    return f"{one.ids:,} ids in {shown(one.column)}: {each}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "none"


# --- one column -------------------------------------------------------------------------------------------


def _column(one: ColumnLook, look: TableLook) -> Iterator[str]:
    parts = "" if one.column.has_levels else f", in {PARTS} equal parts"
    yield f"{shown(one.column.name)[1:-1]} ({one.column.kind}{parts})"
    yield from _levels(one, look.used)
    for what, count, rule in (("empty", one.missing, one.column.missing), ("outside", one.outside, one.column.outside)):
        if count:
            yield f"  {how_many(count, 'cell')} {what} ({_share(count, look.rows)} of all rows): {_fate(rule)}"


def _levels(one: ColumnLook, used: int) -> Iterator[str]:
    names = _names(one)
    width = max(map(len, names[:_MOST_SHOWN]))
    for name, count in zip(names[:_MOST_SHOWN], one.filled, strict=False):
        bar = "#" * round(_BAR * count / used) if used else ""
        yield f"  {name:<{width}}  {count:>11,}  {_share(count, used):>6}  {bar}".rstrip()
    if len(names) > _MOST_SHOWN:
        yield f"  and {len(names) - _MOST_SHOWN:,} more levels"


def _names(one: ColumnLook) -> list[str]:
    column = one.column
    if isinstance(column, Numeric) and not column.has_levels:
        ends = [column.low + (column.high - column.low) * i / PARTS for i in range(PARTS + 1)]
        parts = [f"{a:g} to {b:g}" for a, b in pairwise(ends)]
        return [*parts, *(["missing"] if column.missing == OWN else [])]
    return [shown(level)[1:-1] for level in column.levels]


def _fate(rule: str | float) -> str:
    if rule == DROP:
        return "their rows are left out"
    return {"clamp": "counted as the bound", OWN: "their rows stay"}.get(str(rule), f"counted as {rule}")


# --- what to look at --------------------------------------------------------------------------------------


def _remarks(look: TableLook, schema: Schema) -> Iterator[Remark]:
    yield from (Remark(None, sentence) for sentence in _of_table(look, schema))
    for one in look.columns:
        for sentence in (*_dropped(one, look.rows), *_filled(one, look.used)):
            yield Remark(one.column.name, sentence)
    for first, second in look.copies:
        yield Remark(second, f"it is nearly a copy of {shown(first)}: leave one of the two out")


def _of_table(look: TableLook, schema: Schema) -> Iterator[str]:
    if look.used == 0:
        yield "no row is used: a rule drops every one of them, or the table is empty"
    elif look.used < (1 - MUCH) * look.rows:
        yield f"{_share(look.rows - look.used, look.rows)} of the rows are left out{_whose(schema)}"
    if schema.rows is not None and not 1 / FAR <= look.rows / schema.rows <= FAR:
        yield f"the schema says rows = {schema.rows:,}, and the table has {look.rows:,}"
    for ids in look.ids:
        if schema.person is None and ids.most > 1:
            yield f"{_ids(ids)}. If they identify persons, name the column under [person]"


def _whose(schema: Schema) -> str:
    if schema.person is None:
        return ", by the rules of all columns together"
    return f", by the rules of columns and the cap of {how_many(schema.person.rows, 'row')} a person"


def _dropped(one: ColumnLook, rows: int) -> Iterator[str]:
    column = one.column
    if column.missing == DROP and one.missing > MUCH * rows:
        own = column.kind == "categorical" or not column.has_levels
        kept = 'missing = "own"' if own else "one of its levels for missing"
        yield f"{_share(one.missing, rows)} of the rows are left out for an empty cell; {kept} would keep them"
    if column.outside == DROP and one.outside:
        told = "a value beyond the bounds" if column.kind == "numeric" else "a cell that is no level"
        yield f"{_share(one.outside, rows)} of the rows are left out for {told}"
    elif one.outside:
        yield f"{_share(one.outside, rows)} of the cells are outside the schema, and {_fate(column.outside)}"


def _filled(one: ColumnLook, used: int) -> Iterator[str]:
    if not used:
        return
    names, counts = _names(one), one.filled
    most = max(range(len(counts)), key=counts.__getitem__)
    if counts[most] >= NEARLY_ALL * used:
        advice = "" if one.column.has_levels else ": narrower public bounds would tell more"
        yield f"nearly all rows ({_share(counts[most], used)}) are in {names[most]}{advice}"
    if not one.column.has_levels:
        return
    never = [name for name, count in zip(names, counts, strict=True) if count == 0]
    few = [name for name, count in zip(names, counts, strict=True) if 0 < count < FEW]
    if never:
        yield f"no row is in {_listed(never)}"
    if few:
        yield f"fewer than {FEW} rows are in {_listed(few)}: keep such a level only if it is public that it exists"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8:,} more" if len(names) > 8 else "")
