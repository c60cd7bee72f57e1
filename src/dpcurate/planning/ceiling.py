"""What exact methods reach on the simulated worlds without privacy: the ceiling beside every figure of a plan."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpcurate.errors import QueryError
from dpcurate.learn.methods import PC, Method, OrderSearch
from dpcurate.schema import Column, Schema

EXACT = {"PC": "exact PC", "BIC search": "an exact search over orders by BIC"}
"""The methods, none of them private, and what they are."""
SEARCHED_COLUMNS = 20
SEARCHED_CELLS = 2_000_000
"""Columns, and columns times distinct rows, up to which the search adds little to a plan's time."""


def exact(name: str, schema: Schema, rows: int) -> Method:
    """The exact method of this name for tables with this schema, refused where it cannot work or would take long."""
    levels = all(column.has_levels for column in schema.columns)
    if not levels and any(column.kind != "numeric" for column in schema.columns):
        raise QueryError("it reads levels alone or numbers alone; give the numbers bins to see it")
    if name == "PC":
        return PC() if levels else PC(test="partial-correlation")
    _check_time(len(schema.columns), schema.columns if levels else (), rows)
    return OrderSearch(starts=1, patience=3)  # enough for so few columns


def _check_time(count: int, counted: Sequence[Column], rows: int) -> None:
    """Numbers are read once; what is counted again and again are columns of levels."""
    cells = len(counted) * min(rows, math.prod(column.size for column in counted))
    if count > SEARCHED_COLUMNS:
        raise QueryError(f"{count} columns would take long; a plan runs it up to {SEARCHED_COLUMNS}")
    if cells > SEARCHED_CELLS:
        raise QueryError(f"{cells:,} cells in distinct rows would take long; a plan runs it up to {SEARCHED_CELLS:,}")
