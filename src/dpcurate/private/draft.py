"""A draft schema from a table, for its owner to check. This is the one helper that looks."""

from __future__ import annotations

import math
from typing import Any

from dpcurate.errors import OwnerError
from dpcurate.private.encode import quote
from dpcurate.private.sources import column_types, connect
from dpcurate.schema import Categorical, Column, Numeric, Schema

_WARNING = """\
# DRAFT: dpcurate LOOKED AT THE DATA to write this. Check every line before use:
# a level or a bound that only one person's row holds would tell that the person is in the table.
# Put what is known beforehand (a codebook, a questionnaire, physical limits) in its place,
# add levels that could occur, then delete these lines.
"""


def draft_schema(table: Any, *, max_levels: int) -> str:
    """TOML text for a person to check. Columns with too many levels are left out and named."""
    connection, relation, _ = connect(table, None)
    drafted, left_out = [], []
    for name in column_types(connection, relation):
        try:
            column = _column(connection, relation, name, max_levels)
        except Exception as error:
            raise OwnerError(f"column {name!r} could not be read: {error}") from error
        if isinstance(column, str):
            left_out.append(f"# left out: {name!r}: {column}")
        else:
            drafted.append(column)
    if not drafted:
        raise OwnerError("no column of the table can be used:\n" + "\n".join(left_out))
    text = Schema(tuple(drafted)).dumps().split("\n", 1)[1]
    return _WARNING + "\n".join([*left_out, ""] if left_out else []) + text


def _column(connection: Any, relation: str, name: str, max_levels: int) -> Column | str:
    """A drafted column, or why there is none."""
    cell = quote(name)
    levels = [
        row[0]
        for row in connection.execute(
            f"SELECT DISTINCT {cell} FROM {relation} WHERE {cell} IS NOT NULL ORDER BY 1 LIMIT {max_levels + 1}"
        ).fetchall()
    ]
    numbers = [x for x in levels if isinstance(x, (int, float)) and not isinstance(x, bool) and x == x]
    if len(levels) > max_levels and numbers:
        low, high = connection.execute(
            f"SELECT min(x), max(x) FROM (SELECT CAST({cell} AS DOUBLE) AS x FROM {relation}) "
            "WHERE x IS NOT NULL AND isfinite(x)"
        ).fetchone()
        return Numeric(name, low, high) if low < high else "all its numbers are equal"
    if len(levels) > max_levels:
        return f"more than {max_levels} different texts; names, dates and free text cannot be analysed"
    if len(levels) < 2:
        return "fewer than two different values"
    finite = [x for x in levels if not isinstance(x, float) or math.isfinite(x)]
    return Categorical(name, tuple(finite)) if len(finite) > 1 else "fewer than two different numbers"
