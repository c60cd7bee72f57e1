"""Public facts about a table, chosen without looking at it: columns, persons, row count.

A schema is an input. Levels, bounds and bins taken from the rows would tell what the rows hold,
so `draft`, the one helper that looks, says so in what it writes.
"""

from __future__ import annotations

import enum
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as kept
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from typing import Any

from dpcurate.errors import RequestError, SchemaError

GRID = 4096
"""Steps between the middle of a numeric column's range and its end; values are held on this grid."""
MAX_LEVELS = 1000
DROP = "drop"
CLAMP = "clamp"


class Neighbours(enum.Enum):
    """Which two tables must be hard to tell apart."""

    ADD_REMOVE = "add-remove"
    """One unit (row or person) more or less; the number of rows is private."""
    REPLACE = "replace"
    """One unit changed; the number of rows read is public."""

    @classmethod
    def of(cls, value: Neighbours | str) -> Neighbours:
        """Accept the enum or its text."""
        try:
            return cls(value)
        except ValueError:
            raise SchemaError(f"neighbours must be 'add-remove' or 'replace', got {value!r}") from None


def level_text(level: Any) -> str:
    """The text of a level: 1, 1.0 and '1' are the same level, true and 'true' too."""
    if isinstance(level, bool):
        return "true" if level else "false"
    if isinstance(level, float) and level.is_integer() and abs(level) < 2**53:
        return str(int(level))
    return str(level)


def level_number(level: str) -> float | None:
    """The number a level stands for, if any: true is 1 and false is 0."""
    if level.lower() in ("true", "false"):
        return float(level.lower() == "true")
    try:
        value = float(level)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def no_number(level: str) -> bool:
    """Whether a text spells a number that is none, or endless: a frame may write one for a cell."""
    try:
        return not math.isfinite(float(level))
    except ValueError:
        return False


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name or not _writable(name):
        raise SchemaError(f"a column name must be text of at least one character, got {name!r}")


def _writable(text: str) -> bool:
    """Whether a text can be written to a file."""
    return "\x00" not in text and not any(0xD800 <= ord(c) <= 0xDFFF for c in text)


@dataclass(frozen=True, slots=True)
class Categorical:
    """A column of named levels without order.

    `missing` and `outside` say what becomes of a cell that is empty or holds no declared level:
    'drop' (the row is left out) or one of the levels.
    """

    name: str
    levels: tuple[str, ...]
    missing: str = DROP
    outside: str = DROP

    kind = "categorical"

    def __post_init__(self) -> None:
        _check_name(self.name)
        levels = self._texts()
        object.__setattr__(self, "levels", levels)
        if not 2 <= len(levels) <= MAX_LEVELS:
            raise SchemaError(
                f"column {self.name!r} has {len(levels)} level(s); it needs 2 to {MAX_LEVELS}. "
                "A constant column tells nothing: leave it out of the schema",
                setting="levels",
            )
        keys = [x if level_number(x) is None else level_number(x) for x in levels]
        repeated = sorted({x for x, key in zip(levels, keys, strict=True) if keys.count(key) > 1})
        if repeated:
            raise SchemaError(
                f"column {self.name!r} repeats the level(s) {', '.join(map(repr, repeated))}", setting="levels"
            )
        for field in ("missing", "outside"):
            rule = level_text(getattr(self, field))
            object.__setattr__(self, field, rule)
            if rule != DROP and rule not in levels:
                raise SchemaError(
                    f"column {self.name!r}: {field} = {rule!r} is neither 'drop' nor one of its {len(levels)} levels",
                    setting=field,
                )

    def _texts(self) -> tuple[str, ...]:
        given = self.levels
        plain = isinstance(given, (list, tuple, range)) and all(
            isinstance(x, (str, int)) or (isinstance(x, float) and not math.isnan(x)) for x in given
        )
        if not plain:
            raise SchemaError(
                f"column {self.name!r}: levels must be a list of texts, numbers or truth values, got {given!r}",
                setting="levels",
            )
        levels = tuple(level_text(x) for x in given)
        strange = [x for x in levels if no_number(x)]
        if strange:
            raise SchemaError(
                f"column {self.name!r}: a level may not be called {strange[0]!r}, which is how a missing or endless "
                "number is written: rename it in the table",
                setting="levels",
            )
        if DROP in levels or not all(map(_writable, levels)):
            raise SchemaError(
                f"column {self.name!r}: a level may not be called 'drop', which names a rule, nor hold "
                "characters that no file can hold",
                setting="levels",
            )
        return levels

    @property
    def size(self) -> int:
        """Number of levels."""
        return len(self.levels)

    @property
    def steps(self) -> int:
        """The integer that stands for 1 when the column is used as a number in [-1, 1]."""
        return len(self.levels) - 1

    @property
    def drops(self) -> bool:
        """Whether a cell can make its row vanish."""
        return DROP in (self.missing, self.outside)


@dataclass(frozen=True, slots=True)
class Ordinal(Categorical):
    """A column of named levels from lowest to highest."""

    kind = "ordinal"


@dataclass(frozen=True, slots=True)
class Numeric:
    """A column of numbers between public bounds, cut into public bins for tables.

    `edges` are the inner cuts (bins - 1 of them, equal widths when not given); a value equal to an
    edge belongs to the upper bin. `missing` is 'drop' or a number in the bounds, `outside` 'clamp'
    or 'drop'.
    """

    name: str
    low: float
    high: float
    bins: int = 4
    edges: tuple[float, ...] = ()
    missing: str | float = DROP
    outside: str = CLAMP

    kind = "numeric"

    def __post_init__(self) -> None:
        _check_name(self.name)
        for field in ("low", "high"):
            object.__setattr__(self, field, self._number(field, getattr(self, field)))
        if not self.low < self.high:
            raise SchemaError(
                f"column {self.name!r}: low = {self.low:g} must be below high = {self.high:g}", setting="low"
            )
        if self.high - self.low < 1e-300:
            raise SchemaError(f"column {self.name!r}: high - low is too small for a number", setting="high")
        if not math.isfinite(self.high - self.low):
            raise SchemaError(f"column {self.name!r}: high - low is too large for a number", setting="high")
        if isinstance(self.bins, bool) or not isinstance(self.bins, int) or not 2 <= self.bins <= MAX_LEVELS:
            raise SchemaError(
                f"column {self.name!r}: bins must be a whole number from 2 to {MAX_LEVELS}, got {self.bins!r}",
                setting="bins",
            )
        object.__setattr__(self, "edges", self._cuts())
        if self.missing != DROP:
            value = self._number("missing", self.missing)
            if not self.low <= value <= self.high:
                raise SchemaError(
                    f"column {self.name!r}: missing = {value:g} is outside [{self.low:g}, {self.high:g}]",
                    setting="missing",
                )
            object.__setattr__(self, "missing", value)
        if self.outside not in (CLAMP, DROP):
            raise SchemaError(
                f"column {self.name!r}: outside must be 'clamp' or 'drop', got {self.outside!r}", setting="outside"
            )

    def _number(self, field: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise SchemaError(f"column {self.name!r}: {field} must be a finite number, got {value!r}", setting=field)
        return float(value)

    def _cuts(self) -> tuple[float, ...]:
        if not self.edges:
            width = (self.high - self.low) / self.bins
            return tuple(self.low + width * i for i in range(1, self.bins))
        cuts = tuple(self._number("edges", x) for x in self.edges)
        if len(cuts) != self.bins - 1:
            raise SchemaError(
                f"column {self.name!r}: {self.bins} bins need {self.bins - 1} inner edges, got {len(cuts)}",
                setting="edges",
            )
        if any(a >= b for a, b in pairwise((self.low, *cuts, self.high))):
            raise SchemaError(
                f"column {self.name!r}: edges must rise and lie strictly between low and high", setting="edges"
            )
        return cuts

    @property
    def size(self) -> int:
        """Number of bins."""
        return self.bins

    @property
    def steps(self) -> int:
        """The integer that stands for 1 when the column is used as a number in [-1, 1]."""
        return GRID

    @property
    def drops(self) -> bool:
        """Whether a cell can make its row vanish."""
        return DROP in (self.missing, self.outside)

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the bins."""
        cuts = (self.low, *self.edges, self.high)
        return tuple(f"[{a:g}, {b:g}{']' if b == self.high else ')'}" for a, b in pairwise(cuts))


Column = Categorical | Ordinal | Numeric


@dataclass(frozen=True, slots=True)
class Person:
    """The unit of privacy when a person may have several rows: at most `rows` of them are used."""

    column: str
    rows: int

    def __post_init__(self) -> None:
        _check_name(self.column)
        if isinstance(self.rows, bool) or not isinstance(self.rows, int) or self.rows < 1:
            raise SchemaError(f"person: rows must be a whole number of at least 1, got {self.rows!r}", setting="rows")


@dataclass(frozen=True, slots=True)
class Schema:
    """The public description of a table.

    `rows` is a public constant near the number of rows, or None. Under add-remove the real
    number of rows is private, so it is never taken from the table.
    """

    columns: tuple[Column, ...]
    rows: int | None = None
    person: Person | None = None
    _named: dict[str, Column] = kept(init=False, repr=False, compare=False)
    """Columns by name: a search looks sizes up by the thousand."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if any(not isinstance(c, (Categorical, Numeric)) for c in self.columns):
            raise SchemaError("the columns of a schema are Categorical, Ordinal or Numeric values")
        names = [c.name for c in self.columns]
        object.__setattr__(self, "_named", dict(zip(names, self.columns, strict=True)))
        if not names:
            raise SchemaError("a schema needs at least one column")
        repeated = sorted({n for n in names if names.count(n) > 1})
        if repeated:
            raise SchemaError(f"the schema names the column(s) {', '.join(map(repr, repeated))} more than once")
        if self.rows is not None and (isinstance(self.rows, bool) or not isinstance(self.rows, int) or self.rows < 1):
            raise SchemaError(
                f"rows must be a whole number of at least 1, or left out; got {self.rows!r}", setting="rows"
            )
        if self.person is not None and self.person.column in names:
            raise SchemaError(
                f"column {self.person.column!r} names persons, so it cannot be analysed too", setting="person.column"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(c.name for c in self.columns)

    def __getitem__(self, name: str) -> Column:
        column = self._named.get(name)
        if column is None:
            raise RequestError(f"the schema has no column {name!r}{did_you_mean(name, self.names)}")
        return column

    def sizes(self, names: Iterable[str]) -> tuple[int, ...]:
        """Number of levels or bins of each named column."""
        return tuple([self[n].size for n in names])

    @property
    def drops(self) -> bool:
        """Whether some rule can leave a row out."""
        return any(c.drops for c in self.columns)

    @property
    def rows_per_unit(self) -> int:
        """How many rows one unit of privacy may hold."""
        return 1 if self.person is None else self.person.rows

    @property
    def hash(self) -> str:
        """A fingerprint of the public facts, for the ledger and the report."""
        return hashlib.sha256(self.dumps().encode()).hexdigest()[:16]

    def dumps(self) -> str:
        """The schema as TOML."""
        from dpcurate.schema_toml import dumps

        return dumps(self)

    def save(self, path: str | Path) -> None:
        """Write the schema as a TOML file."""
        Path(path).write_text(self.dumps(), encoding="utf-8")

    @classmethod
    def loads(cls, text: str) -> Schema:
        """Read TOML text; an error names its line."""
        from dpcurate.schema_toml import loads

        return loads(text)

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a TOML file; an error names its line."""
        try:
            return cls.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise SchemaError(f"cannot read the schema {str(path)!r}: {error}") from None

    @classmethod
    def of(cls, value: Schema | str | Path | Mapping[str, Sequence[Any]]) -> Schema:
        """Accept a schema, a path to one, or a mapping from column to levels."""
        if isinstance(value, Schema):
            return value
        if isinstance(value, (str, Path)):
            return cls.load(value)
        if isinstance(value, Mapping):
            return cls(tuple(Categorical(name, tuple(levels)) for name, levels in value.items()))
        raise SchemaError(f"a schema is a Schema, a path or a mapping of levels, got {type(value).__name__}")


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """A hint with the closest known name."""
    close = get_close_matches(str(name), known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; it has {', '.join(map(repr, known[:8]))}{', ...' if len(known) > 8 else ''}"


def draft(table: Any, *, max_levels: int = 20) -> str:
    """Write a draft schema (TOML text) for `table`. It LOOKS AT THE DATA: a person must check it."""
    from dpcurate.private.draft import draft_schema

    return draft_schema(table, max_levels=max_levels)
