"""Public facts about a table: columns, persons, row count, and which tables are neighbours."""

from importlib import import_module
from typing import Any

from dpcurate._messages import did_you_mean
from dpcurate.schema.adjacency import Adjacency
from dpcurate.schema.columns import (
    CLAMP,
    DROP,
    GRID,
    MAX_LEVELS,
    MISSING,
    MISSING_VALUE,
    OWN,
    Categorical,
    Column,
    Numeric,
    Ordinal,
    level_number,
    level_text,
    no_number,
)
from dpcurate.schema.table import Person, Schema
from dpcurate.schema.text_format import TextFormat

__all__ = [
    "CLAMP",
    "DROP",
    "GRID",
    "MAX_LEVELS",
    "MISSING",
    "MISSING_VALUE",
    "OWN",
    "Adjacency",
    "Categorical",
    "Column",
    "Neighbours",
    "Numeric",
    "Ordinal",
    "Person",
    "Schema",
    "TextFormat",
    "did_you_mean",
    "level_number",
    "level_text",
    "no_number",
]

Neighbours = Adjacency


def __getattr__(name: str) -> Any:
    """`draft` lives in `dpcurate` now, as it looks at rows; this name for it goes with the next release."""
    if name == "draft":
        return import_module("dpcurate").draft
    raise AttributeError(f"module 'dpcurate.schema' has no attribute {name!r}")
