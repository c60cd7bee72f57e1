"""Public facts about a table: columns, persons, row count, and which tables are neighbours."""

from dpcurate._messages import did_you_mean
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
from dpcurate.schema.schema import Adjacency, Person, Schema, TextFormat

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
