"""Which tables are neighbours: the relation a privacy guarantee is about."""

from __future__ import annotations

import enum

from dpcurate._messages import shown
from dpcurate.errors import SchemaError


class Adjacency(enum.Enum):
    """Which two tables must be hard to tell apart."""

    ADD_REMOVE = "add-remove"
    """One unit (row or person) more or less; the number of rows is private."""
    REPLACE = "replace"
    """One unit changed; its rows may also become fewer, so the number of rows is not taken as public."""

    @classmethod
    def of(cls, value: Adjacency | str) -> Adjacency:
        """Accept the enum or its text."""
        try:
            return cls(value)
        except ValueError:
            raise SchemaError(f"neighbours must be 'add-remove' or 'replace', got {shown(value)}") from None
