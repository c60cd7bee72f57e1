"""A draft schema from a table, for its owner to check. This is the one helper that looks."""

from __future__ import annotations

from typing import Any

from dpcurate.errors import OwnerError
from dpcurate.private.sources import open_engine
from dpcurate.private.sources.encode import parsed
from dpcurate.private.sources.engine import Engine
from dpcurate.schema import Categorical, Column, Numeric, Schema, level_number, no_number

_FAR = "-1.7e308", "1.7e308"
"""Beyond these a number is infinite or none."""
_WARNING = """\
# DRAFT: dpcurate LOOKED AT THE DATA to write this. Check every line before use:
# a level or a bound that only one person's row holds would tell that the person is in the table.
# Put what is known beforehand (a codebook, a questionnaire, physical limits) in its place,
# add levels that could occur, then delete these lines.
"""


def draft(table: Any, *, max_levels: int = 20) -> str:
    """Write a draft schema (TOML text) for `table`. It LOOKS AT THE DATA: a person must check it.

    Columns with too many levels are left out and named.
    """
    engine, _ = open_engine(table, None)
    drafted, left_out = [], []
    for name in engine.stored():
        try:
            column = _column(engine, name, max_levels)
        except Exception as error:
            raise OwnerError(f"column {name!r} could not be read: {error}") from error
        if isinstance(column, str):
            left_out.append(f"# left out: {name!r}: {column}")
        else:
            drafted.append(column)
    if not drafted:
        raise OwnerError("no column of the table can be used:\n" + "\n".join(left_out))
    written = Schema(tuple(drafted)).dumps().split("\n", 1)[1]
    return _WARNING + "\n".join([*left_out, ""] if left_out else []) + written


def _column(engine: Engine, name: str, max_levels: int) -> Column | str:
    """A drafted column, or why there is none."""
    cell = engine.dialect.quote(name)
    levels = engine.fetch(
        f"SELECT DISTINCT {cell} AS x FROM {engine.relation} WHERE {cell} IS NOT NULL ORDER BY x LIMIT {max_levels + 1}"
    )["x"].tolist()
    if len(levels) > max_levels:
        return _many(engine, name, max_levels, levels)
    if len(levels) < 2:
        return "fewer than two different values"
    kept = [x for x in levels if not no_number(str(x))]
    if all(level_number(str(x)) is not None for x in kept):  # a CSV holds texts, whose order puts 10 before 2
        kept.sort(key=lambda x: level_number(str(x)) or 0.0)
    return Categorical(name, tuple(kept)) if len(kept) > 1 else "fewer than two different numbers"


def _many(engine: Engine, name: str, max_levels: int, some: list[Any]) -> Column | str:
    """A number, stored as one or written as text; other texts are left out."""
    numbers = [x for x in some if isinstance(x, (int, float)) and not isinstance(x, bool) and x == x]
    stored, spelt = engine.dialect.quote(name), [str(x) for x in some]
    if numbers:
        return _number(engine, name, f"CAST({stored} AS {engine.dialect.double})")
    if all(level_number(x) is not None for x in spelt):
        text = f"CAST({stored} AS {engine.dialect.string})"
        drafted = _number(engine, name, parsed(text, engine.dialect))
        if not isinstance(drafted, str):
            return drafted
    if all(level_number(x.replace(",", ".")) is not None for x in spelt):
        return "its numbers are texts, perhaps with a decimal comma: store them as numbers, 3,5 as 3.5"
    return f"more than {max_levels} different texts; names, dates and free text cannot be analysed"


def _number(engine: Engine, name: str, value: str) -> Column | str:
    """Between the least and the greatest number that the table holds."""
    read = f"(SELECT {value} AS x FROM {engine.relation}) AS c WHERE x > {_FAR[0]} AND x < {_FAR[1]}"
    ends = engine.fetch(f"SELECT count(x) AS n, min(x) AS low, max(x) AS high FROM {read}")
    if not int(ends["n"][0]):
        return "it holds no number"
    low, high = float(ends["low"][0]), float(ends["high"][0])
    return Numeric(name, low, high) if low < high else "all its numbers are equal"
