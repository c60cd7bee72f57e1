"""Which table one is, as far as that can be told without a look at its rows."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class TableOrigin:
    """A table's path, or the object in memory for as long as that lives; of a copy that was saved nothing is known."""

    place: str = ""
    held: weakref.ref[Any] | None = None

    @classmethod
    def from_table(cls, table: Any) -> TableOrigin:
        """The origin of a table: its path, or the object itself."""
        if isinstance(table, (str, Path)):
            return cls(place=place_of(table))
        try:
            return cls(held=weakref.ref(table))
        except TypeError:  # a mapping of lists
            return cls()

    def differs(self, other: TableOrigin) -> bool:
        """Whether the two are certainly not one table: two paths, or two objects that are both still there."""
        if self.place and other.place:
            return self.place != other.place
        mine, theirs = (None if one.held is None else one.held() for one in (self, other))
        return mine is not None and theirs is not None and mine is not theirs

    def __reduce__(self) -> tuple[type[TableOrigin], tuple[()]]:
        return TableOrigin, ()


def place_of(table: Any) -> str:
    """Where a table is, without a password; of one in memory its kind."""
    if not isinstance(table, (str, Path)):
        return type(table).__name__
    scheme, colon, rest = str(table).partition("://")
    return f"{scheme}{colon}{rest.rpartition('@')[2]}" if colon else str(Path(table).absolute())
