"""A schema as SQL: every cell becomes a small integer, by a rule that sees that row alone.

All engines speak this SQL, so all sources return the same integers.
"""

from __future__ import annotations

from dpcurate.schema import DROP, GRID, Categorical, Column, Numeric, level_number

_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"}
_NUMBERS = _WHOLE | {f"U{kind}" for kind in _WHOLE} | {"FLOAT", "REAL", "DOUBLE", "DECIMAL"}


def quote(name: str) -> str:
    """A column name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def number(value: float) -> str:
    """A number as an SQL double, digit for digit."""
    return f"CAST('{value!r}' AS DOUBLE)"


def _is_number(storage: str) -> bool:
    return storage.split("(")[0].upper() in _NUMBERS


def code_sql(column: Column, storage: str) -> str:
    """The level or bin of a cell stored as `storage`; NULL where the row is to be dropped."""
    return _bin_sql(column, storage) if isinstance(column, Numeric) else _level_sql(column, storage)


def missing_sql(column: Column, storage: str) -> str:
    """Whether a cell is missing; something that is no number is missing in a numeric column."""
    if isinstance(column, Numeric) or _is_number(storage):
        cell = _double(column.name, storage)
        return f"({cell} IS NULL OR isnan({cell}))"
    return f"({quote(column.name)} IS NULL)"


def outside_sql(column: Column, storage: str) -> str:
    """Whether a cell that is not missing lies outside the schema."""
    if isinstance(column, Numeric):
        cell = _double(column.name, storage)
        return f"({cell} < {number(column.low)} OR {cell} > {number(column.high)})"
    tests = [t for level in column.levels if (t := _is_level(column.name, storage, level))]
    return f"NOT coalesce({' OR '.join(tests) or 'FALSE'}, FALSE)"


def _level_sql(column: Categorical, storage: str) -> str:
    rules = {rule: "NULL" if rule == DROP else column.levels.index(rule) for rule in (column.missing, column.outside)}
    cases = [f"WHEN {missing_sql(column, storage)} THEN {rules[column.missing]}"]
    for code, level in enumerate(column.levels):
        test = _is_level(column.name, storage, level)
        if test:
            cases.append(f"WHEN {test} THEN {code}")
    return f"CASE {' '.join(cases)} ELSE {rules[column.outside]} END"


def _is_level(name: str, storage: str, level: str) -> str | None:
    """A test for one level: the same text, or the same number.

    A frame stores 1 as 1, 1.0 or '1' and true as true or 'True', depending on what else the column
    holds. One missing cell must not change what the other cells mean, so all of these match.
    """
    value = level_number(level)
    tests = [] if value is None else [f"{_double(name, storage)} = {number(value)}"]
    if not _is_number(storage) and storage.upper() != "BOOLEAN":
        tests.append(f"CAST({quote(name)} AS VARCHAR) = {text(level)}")
    return f"({' OR '.join(tests)})" if tests else None


def _double(name: str, storage: str) -> str:
    """A cell as a number, whatever it is stored as; NULL if it is none."""
    if _is_number(storage) or storage.upper() == "BOOLEAN":
        return f"CAST({quote(name)} AS DOUBLE)"
    cell = f"CAST({quote(name)} AS VARCHAR)"
    truth = f"CASE lower({cell}) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
    return f"CAST(coalesce(TRY_CAST({cell} AS DOUBLE), {truth}) AS DOUBLE)"


def _bin_sql(column: Numeric, storage: str) -> str:
    cell = _double(column.name, storage)
    drop = column.outside == DROP
    missing = "NULL" if column.missing == DROP else str(sum(float(column.missing) >= e for e in column.edges))
    cases = [f"WHEN {missing_sql(column, storage)} THEN {missing}"]
    if drop:
        cases.append(f"WHEN {outside_sql(column, storage)} THEN NULL")
    cases += [f"WHEN {cell} < {number(edge)} THEN {code}" for code, edge in enumerate(column.edges)]
    return f"CASE {' '.join(cases)} ELSE {column.bins - 1} END"


def value_sql(column: Numeric, storage: str) -> str:
    """A cell on the integer grid from -GRID to GRID, rounded toward the middle of the bounds."""
    middle, half = (column.low + column.high) / 2, (column.high - column.low) / 2
    cell = _double(column.name, storage)
    if column.missing != DROP:
        cell = f"CASE WHEN {missing_sql(column, storage)} THEN {number(float(column.missing))} ELSE {cell} END"
    inside = f"least(greatest({cell}, {number(column.low)}), {number(column.high)})"
    scaled = f"trunc(({inside} - {number(middle)}) / {number(half)} * {number(float(GRID))})"
    return f"CAST(least(greatest({scaled}, {number(-GRID)}), {number(GRID)}) AS SMALLINT)"
