"""A schema as SQL: every cell becomes a small integer, by a rule that sees that row alone.

The rules are written once; a dialect says how an engine spells a cast. All engines therefore return
the same integers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

from numpy.typing import NDArray

from dpcurate.private.row_sums import CountRows, FeatureNormRows, FeatureRows, Rows, RowSum
from dpcurate.schema import DROP, GRID, MISSING_VALUE, OWN, Categorical, Column, Numeric, Schema, level_number

Kind = Literal["whole", "number", "boolean", "text"]
"""How a column is stored: whole numbers, other numbers, truth values; anything else is read as text."""
DIGITS, LONGEST = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})?$", 400
ENDLESS, ENDLESS_BELOW = ("inf", "+inf", "infinity", "+infinity"), ("-inf", "-infinity")
"""Engines differ in what they take for a number (1d, 0x1, 1_000), so that is settled here."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an engine spells what the rules need. These are DuckDB's words."""

    double: str = "DOUBLE"
    string: str = "VARCHAR"
    small: str = "USMALLINT"
    tick: str = '"'
    decimal: str = "."
    """The decimal mark of numbers that are stored as text."""
    fence: str = ""
    """Ends a subquery that must be computed once, where the planner would else write it out wherever it is used."""

    def quote(self, name: str) -> str:
        """A column name as an SQL identifier."""
        return self.tick + name.replace(self.tick, self.tick * 2) + self.tick

    def text(self, value: str) -> str:
        """A text as an SQL literal."""
        return "'" + value.replace("'", "''") + "'"

    def identity(self, name: str) -> str:
        """What names a person: equal for the same stored value only, byte by byte for texts."""
        return f"encode(CAST({self.quote(name)} AS {self.string}))"

    def number(self, value: float) -> str:
        """A number as an SQL double, digit for digit."""
        return f"CAST('{float(value)!r}' AS {self.double})"

    def matches(self, cell: str, pattern: str) -> str:
        """Whether a text matches a regular expression."""
        return f"regexp_matches({cell}, '{pattern}')"

    def parsed(self, cell: str) -> str:
        """A text that matches DIGITS as a double; beyond the range it is infinite or 0."""
        return f"TRY_CAST({cell} AS {self.double})"

    def as_double(self, cell: str, kind: Kind) -> str:
        """A stored number or truth value as a double."""
        return f"CAST({cell} AS {self.double})"

    def is_nan(self, value: str) -> str:
        """Whether a double is no number."""
        return f"isnan({value})"

    def ratio(self, part: str, whole: float) -> str:
        """A double over a public number."""
        return f"({part}) / {self.number(whole)}"

    def quotient(self, part: str, whole: int) -> str:
        """A whole number of at least 0 over another, rounded down."""
        return f"({part}) // {whole}"

    def looked_up(self, values: Sequence[int], place: str) -> str:
        """The whole number at a place, counted from 0, of a public list."""
        return f"(CAST('[{', '.join(map(str, values))}]' AS INTEGER[]))[{place} + 1]"

    def whole(self, value: str) -> str:
        """A double as a 64-bit integer, rounded toward zero."""
        return f"CAST(trunc({value}) AS BIGINT)"


def parsed(text: str, say: Dialect) -> str:
    """A text as a number: true is 1, and whatever is no number is NULL."""
    # Both marks change places: with a decimal comma 1.234 is no number, rather than one a thousand times too small.
    spelt = text if say.decimal == "." else f"translate({text}, ',.', '.,')"
    cell = f"trim(BOTH ' ' FROM {spelt})"
    words = {"true": 1.0, "false": 0.0} | dict.fromkeys(ENDLESS, math.inf) | dict.fromkeys(ENDLESS_BELOW, -math.inf)
    cases = " ".join(f"WHEN {say.text(word)} THEN {say.number(value)}" for word, value in words.items())
    digits = f"WHEN length({cell}) <= {LONGEST} AND {say.matches(cell, DIGITS)} THEN {say.parsed(cell)}"
    # Not lower() and trim(): engines differ beyond ASCII (a dotted capital I, a no-break space).
    small = f"translate({cell}, 'AEFILNRSTUY', 'aefilnrstuy')"
    return f"CASE {digits} ELSE CASE {small} {cases} END END"


@dataclass(frozen=True, slots=True)
class Cell:
    """One column of the table in SQL: `text` and `number` are its names in the query that reads it."""

    place: int
    column: Column
    kind: Kind
    dialect: Dialect

    @property
    def text(self) -> str:
        """The cell as it is stored; as a text if that is neither a number nor a truth value."""
        return f"t{self.place}"

    @property
    def number(self) -> str:
        """The cell as a number; NULL if it is none. Levels stored as text are seldom asked for it."""
        return parsed(self.text, self.dialect) if self._levels_in_text else f"n{self.place}"

    @property
    def _levels_in_text(self) -> bool:
        return self.kind == "text" and not isinstance(self.column, Numeric)

    @property
    def read(self) -> str:
        """Both, from the stored table."""
        raw = self.dialect.quote(self.column.name)
        if self.kind != "text":
            value = self.dialect.as_double(raw, self.kind)
            number = f"CASE WHEN {self.dialect.is_nan(value)} THEN NULL ELSE {value} END"
            return f"{raw} AS {self.text}, {number} AS {self.number}"
        cell = f"CAST({raw} AS {self.dialect.string})"
        read = f"{cell} AS {self.text}"
        return read if self._levels_in_text else f"{read}, {parsed(cell, self.dialect)} AS {self.number}"

    @property
    def missing(self) -> str:
        """Whether it is missing; something that is no number is missing in a numeric column.

        A text 'nan' is what becomes of a missing number when another cell of its column is a text.
        """
        if self._levels_in_text:
            return f"({self.text} IS NULL OR translate(trim(BOTH ' ' FROM {self.text}), 'AN', 'an') = 'nan')"
        numbers = isinstance(self.column, Numeric) or self.kind in ("whole", "number")
        return f"({self.number if numbers else self.text} IS NULL)"

    @property
    def outside(self) -> str:
        """Whether it lies outside the schema if it is not missing."""
        say, column = self.dialect, self.column
        if isinstance(column, Numeric):
            return f"({self.number} < {say.number(column.low)} OR {self.number} > {say.number(column.high)})"
        tests = [t for text, _ in column.spellings if (t := self._is(text))]
        return f"(NOT coalesce({' OR '.join(tests) or 'FALSE'}, FALSE))"

    @property
    def code(self) -> str:
        """The level or bin; NULL where the row is to be dropped."""
        return self._bin(self.column) if isinstance(self.column, Numeric) else self._level(self.column)

    @property
    def value(self) -> str:
        """The number on the integer grid from -GRID to GRID, rounded toward the middle of the bounds.

        MISSING_VALUE stands for a missing cell whose row is kept.
        """
        column, say = self.column, self.dialect
        assert isinstance(column, Numeric)
        middle, half = (column.low + column.high) / 2, (column.high - column.low) / 2
        # A missing cell gets a harmless number: its row is dropped by the code.
        instead = middle if column.missing in (DROP, OWN) else float(column.missing)
        cell = f"coalesce({self.number}, {say.number(instead)})"
        inside = f"least(greatest({cell}, {say.number(column.low)}), {say.number(column.high)})"
        scaled = f"{say.ratio(f'{inside} - {say.number(middle)}', half)} * {say.number(GRID)}"
        clamped = f"least(greatest({scaled}, {say.number(-GRID)}), {say.number(GRID)})"
        value = f"CAST({say.whole(clamped)} AS SMALLINT)"
        if column.missing != OWN:
            return value
        return f"CASE WHEN {self.missing} THEN CAST({MISSING_VALUE} AS SMALLINT) ELSE {value} END"

    def _level(self, column: Categorical) -> str:
        """The same text, or the same number.

        A frame stores 1 as 1, 1.0 or '1' and true as true or 'True', depending on what else the column
        holds. One missing cell must not change what the other cells mean, so all of these match.
        """

        def rule(given: str) -> str:
            return "NULL" if given == DROP else str(column.levels.index(given))

        cases = self._same_texts(column) if self.kind == "text" else []
        if column.missing != column.outside:
            cases.append(f"WHEN {self.missing} THEN {rule(column.missing)}")
        same = [(level_number(text), code) for text, code in column.spellings]
        equal = [f"WHEN {self.dialect.number(value)} THEN {code}" for value, code in same if value is not None]
        other = rule(column.outside)
        if equal:
            other = f"CASE {self.number} {' '.join(equal)} ELSE {other} END"
        return f"CASE {' '.join(cases)} ELSE {other} END" if cases else other

    def _same_texts(self, column: Categorical) -> list[str]:
        """Most cells are spelt as the schema spells them, so this comes before numbers are read."""
        return [f"WHEN {self.text} = {self.dialect.text(text)} THEN {i}" for text, i in column.spellings]

    def _is(self, level: str) -> str | None:
        """A test for one level."""
        value = level_number(level)
        tests = [] if value is None else [f"{self.number} = {self.dialect.number(value)}"]
        if self.kind == "text":
            tests.append(f"{self.text} = {self.dialect.text(level)}")
        return f"({' OR '.join(tests)})" if tests else None

    def _bin(self, column: Numeric) -> str:
        missing = "NULL" if column.missing == DROP else str(sum(float(column.missing) >= e for e in column.edges))
        cases = [f"WHEN {self.missing} THEN {missing}"]
        if column.outside == DROP:
            cases.append(f"WHEN {self.outside} THEN NULL")
        edges = [self.dialect.number(edge) for edge in column.edges]
        cases += [f"WHEN {self.number} < {edge} THEN {code}" for code, edge in enumerate(edges)]
        return f"CASE {' '.join(cases)} ELSE {column.size - 1} END"


def code_name(schema: Schema, name: str) -> str:
    """The encoded table's column of levels or bins; all 0 for a number without bins."""
    return f"c{schema.names.index(name)}"


def value_name(schema: Schema, name: str) -> str:
    """The encoded table's column of grid values."""
    return f"v{schema.names.index(name)}"


def interval_sql(schema: Schema, name: str, intervals: int, say: Dialect) -> str:
    """The interval in which a number lies, as `row_sums.interval` counts them; a missing one comes after the last."""
    column, value = schema[name], f"CAST({value_name(schema, name)} AS BIGINT)"
    place = say.quotient(f"({value} + {GRID}) * {intervals}", 2 * GRID + 1)
    return f"CASE WHEN {value} = {MISSING_VALUE} THEN {intervals} ELSE {place} END" if column.missing == OWN else place


def cells(schema: Schema, kinds: Mapping[str, Kind], say: Dialect) -> list[Cell]:
    """The schema's columns as a table stores them."""
    return [Cell(i, column, kinds[column.name], say) for i, column in enumerate(schema.columns)]


def cells_sql(relation: str, schema: Schema, kinds: Mapping[str, Kind], say: Dialect, *carried: str) -> str:
    """A query for the cells of every row, each read once, and other columns as they are."""
    parts = [*(cell.read for cell in cells(schema, kinds, say)), *carried]
    return f"SELECT {', '.join(parts)} FROM {relation}{say.fence}"


def encoded_sql(relation: str, schema: Schema, kinds: Mapping[str, Kind], say: Dialect) -> str:
    """A query for the encoded rows that are kept."""
    if schema.person is None:
        return kept_sql(cells_sql(relation, schema, kinds, say), schema, kinds, say)
    return capped_sql(people_sql(relation, schema, kinds, say), schema)


def people_sql(relation: str, schema: Schema, kinds: Mapping[str, Kind], say: Dialect) -> str:
    """A query for the encoded rows that no rule drops, with the person each belongs to."""
    assert schema.person is not None
    person = f"{say.identity(schema.person.column)} AS person"
    return kept_sql(cells_sql(relation, schema, kinds, say, person), schema, kinds, say, "person")


def weighted_sql(relation: str, schema: Schema, kinds: Mapping[str, Kind], say: Dialect) -> str:
    """The encoded rows with weights `w`: stored rows that are equal are counted first, and encoded once."""
    names = ", ".join(say.quote(name) for name in schema.names)
    weight = _free_name(schema)  # no column of the table may be taken for it
    alike = f"(SELECT {names}, count(*) AS {weight} FROM {relation} GROUP BY {names}) AS alike"
    return kept_sql(cells_sql(alike, schema, kinds, say, f"{weight} AS w"), schema, kinds, say, "w")


def _free_name(schema: Schema) -> str:
    taken = {name.casefold() for name in schema.names}
    return next(name for i in count() if (name := f"weight{i}") not in taken)


def kept_sql(stored: str, schema: Schema, kinds: Mapping[str, Kind], say: Dialect, *carried: str) -> str:
    """A query for the encoded rows that no rule drops, from one for their cells."""
    parts = []
    for cell in cells(schema, kinds, say):
        parts.append(f"CAST({cell.code} AS {say.small}) AS {code_name(schema, cell.column.name)}")
        if isinstance(cell.column, Numeric):
            parts.append(f"{cell.value} AS {value_name(schema, cell.column.name)}")
    chosen = ", ".join([*parts, *carried])
    return f"SELECT * FROM (SELECT {chosen} FROM ({stored}) AS stored{say.fence}) AS cells WHERE {_kept(schema)}"


def _kept(schema: Schema) -> str:
    """Whether no code is NULL; one sum is faster than a test a column, and no sum is too deep to parse."""
    codes = [f"CAST({code_name(schema, n)} AS BIGINT)" for n in schema.names]
    sums = [" + ".join(codes[i : i + 50]) for i in range(0, len(codes), 50)]
    return " AND ".join(f"({total}) IS NOT NULL" for total in sums)


def capped_sql(rows: str, schema: Schema) -> str:
    """At most so many rows a person, chosen by a fixed mix of what the rows hold.

    The rule sees the person's own rows only. Rows that name no person are left out.
    """
    assert schema.person is not None
    fields = [code_name(schema, n) for n in schema.names]
    fields += [value_name(schema, c.name) for c in schema.columns if isinstance(c, Numeric)]
    # A fixed pseudo-random order of possible rows, so that no level is favoured.
    mix = " + ".join(f"(CAST({f} AS BIGINT) + 5000) * {7919 + 104729 * i}" for i, f in enumerate(fields))
    order = f"((({mix}) % 2147483647) * 15485863) % 2147483647, {', '.join(fields)}"
    nth = f"row_number() OVER (PARTITION BY person ORDER BY {order}) AS nth"
    ranked = f"SELECT *, {nth} FROM ({rows}) AS kept WHERE person IS NOT NULL"
    return f"SELECT {', '.join(fields)} FROM ({ranked}) AS ranked WHERE nth <= {schema.person.rows}"


# --- which encoded columns some row sums read -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnNeeds:
    """The encoded columns that some row_sums read, by the name of the schema's column."""

    codes: dict[str, str]
    values: dict[str, str]

    @classmethod
    def from_row_sums(cls, row_sums: Sequence[RowSum], schema: Schema) -> ColumnNeeds:
        """Codes for tables and features of levels, grid values for sums over numeric columns."""
        lookups = [one for k in row_sums if isinstance(k, FeatureRows | FeatureNormRows) for one in k.lookups]
        counted = {c for k in row_sums if isinstance(k, CountRows) for c in k.columns}
        counted |= {one.column for one in lookups if not one.intervals}
        added = {c for k in row_sums if not isinstance(k, CountRows | FeatureRows | FeatureNormRows) for c in k.columns}
        added |= {one.column for one in lookups if one.intervals}
        numeric = {c.name for c in schema.columns if isinstance(c, Numeric)}
        codes = sorted(counted | added - numeric) or ([] if added else [schema.names[0]])
        values = sorted(added & numeric)
        return cls({n: code_name(schema, n) for n in codes}, {n: value_name(schema, n) for n in values})

    @property
    def fields(self) -> list[str]:
        """The names in the encoded table."""
        return [*self.codes.values(), *self.values.values()]

    def rows(self, encoded: Mapping[str, NDArray[Any]], size: int) -> Rows:
        """Columns of the encoded table as rows."""
        codes = {name: encoded[field] for name, field in self.codes.items()}
        return Rows(codes, {name: encoded[field] for name, field in self.values.items()}, None, size)
