"""Public facts about a table, chosen without looking at it: columns, persons, row count.

A schema is an input. Levels, bounds and bins taken from the rows would tell what the rows hold,
so `dpcurate.draft`, the one helper that looks, says so in what it writes.
"""

from __future__ import annotations

import codecs
import enum
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as kept
from pathlib import Path
from typing import Any

from dpcurate import _files
from dpcurate._messages import did_you_mean, how_many, listed, shown
from dpcurate._tables import table_html
from dpcurate.errors import QueryError, SchemaError
from dpcurate.schema.column_order import Order, checked_order
from dpcurate.schema.columns import Categorical, Column, Numeric, check_name

MOST_SPELLINGS = 100
"""Texts that stand for a missing cell."""
MOST_SKIPPED = 1000
"""Lines before the header."""


@dataclass(frozen=True, slots=True)
class TextFormat:
    """A CSV file: its separator, its encoding, its decimal mark, and the texts that mean a missing cell.

    Without a separator it is a comma, in .tsv files a tab. An empty cell is always missing. `skip` is the number of
    lines before the header, such as a title or a source.
    """

    separator: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    missing: tuple[str, ...] = ()
    skip: int = 0

    def __post_init__(self) -> None:
        if self.separator is not None and not _is_separator(self.separator):
            raise _refused("separator", f'must be one character, such as ";" or "\\t", got {shown(self.separator)}')
        if self.decimal not in (".", ","):
            raise _refused("decimal", f'must be "." or ",", got {shown(self.decimal)}')
        if not _is_encoding(self.encoding):
            known = '"utf-8", "windows-1252", "latin-1" or another that Python knows'
            raise _refused("encoding", f"must be {known}, got {shown(self.encoding)}")
        if isinstance(self.skip, bool) or not isinstance(self.skip, int) or not 0 <= self.skip <= MOST_SKIPPED:
            raise _refused("skip", f"must be a whole number from 0 to {MOST_SKIPPED:,}, got {shown(self.skip)}")
        object.__setattr__(self, "missing", _texts(self.missing))

    def separates(self, file: str) -> str:
        """The separator of a file."""
        tabs = file.lower().removesuffix(".gz").endswith(".tsv")
        return self.separator or ("\t" if tabs else ",")

    @property
    def is_utf8(self) -> bool:
        """Whether the encoding is UTF-8, which needs no conversion."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig", "ascii")


def _refused(setting: str, why: str) -> SchemaError:
    return SchemaError(f"file: {setting} {why}", setting=setting)


def _is_separator(value: object) -> bool:
    """One ASCII character that stands in no number and in no word."""
    return (
        isinstance(value, str)
        and len(value) == 1
        and value.isascii()
        and not value.isalnum()
        and value not in '"\r\n+-.'
    )


def _is_encoding(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(value.encode() and "".encode(value) is not None)
    except (LookupError, ValueError):  # unknown, or no encoding of texts; a NUL in the name
        return False


def _texts(given: Any) -> tuple[str, ...]:
    listed = isinstance(given, (list, tuple)) and len(given) <= MOST_SPELLINGS
    if not listed or not all(isinstance(x, str) and "\x00" not in x for x in given):
        raise _refused(
            "missing", f'must be a list of at most {MOST_SPELLINGS} texts, such as ["NA"], got {shown(given)}'
        )
    return tuple(given)


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


LARGEST_COUNT = 2**63 - 1
"""Of rows: what TOML and every engine can hold."""


@dataclass(frozen=True, slots=True)
class Person:
    """The unit of privacy when a person may have several rows: at most `rows` of them are used."""

    column: str
    rows: int

    def __post_init__(self) -> None:
        check_name(self.column)
        if not _is_count(self.rows):
            raise SchemaError(
                f"person: rows must be a whole number of at least 1, got {shown(self.rows)}", setting="rows"
            )

    @property
    def cap(self) -> str:
        """How many rows of a person are used, in words."""
        return f"at most {how_many(self.rows, 'row')} each"


@dataclass(frozen=True, slots=True)
class Schema:
    """The public description of a table.

    `rows` is a public constant near the number of rows, or None. Under add-remove the real
    number of rows is private, so it is never taken from the table. `file` says how a text file is
    written; it concerns no other kind of table. `order` says what comes first, as groups of columns from early to
    late: a column of a later group never causes one of an earlier group, and "*" stands for all that are not named.
    """

    columns: tuple[Column, ...]
    rows: int | None = None
    person: Person | None = None
    file: TextFormat = kept(default_factory=TextFormat)
    order: Order = ()
    _named: dict[str, Column] = kept(init=False, repr=False, compare=False)
    """Columns by name: a search looks sizes up by the thousand."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        if any(not isinstance(c, (Categorical, Numeric)) for c in self.columns):
            raise SchemaError("the columns of a schema are Categorical, Ordinal or Numeric values")
        if not isinstance(self.file, TextFormat):
            raise SchemaError(f"file must be a TextFormat, got {shown(self.file)}", setting="file")
        names = [c.name for c in self.columns]
        object.__setattr__(self, "_named", dict(zip(names, self.columns, strict=True)))
        if not names:
            raise SchemaError("a schema needs at least one column")
        repeated = sorted(name for name, count in Counter(names).items() if count > 1)
        if repeated:
            raise SchemaError(f"the schema names the {listed('column', repeated[:8])} more than once")
        if self.rows is not None and not _is_count(self.rows):
            raise SchemaError(
                f"rows must be a whole number of at least 1, or left out; got {shown(self.rows)}", setting="rows"
            )
        if self.person is not None and self.person.column in names:
            raise SchemaError(
                f"column {self.person.column!r} names persons, so it cannot be analysed too", setting="person.column"
            )
        object.__setattr__(self, "order", checked_order(self.order, names))

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(c.name for c in self.columns)

    def __getitem__(self, name: str) -> Column:
        column = self._named.get(name)
        if column is None:
            raise QueryError(f"the schema has no column {name!r}{did_you_mean(name, self.names)}")
        return column

    def sizes(self, names: Iterable[str]) -> tuple[int, ...]:
        """Number of levels or bins of each named column; 1 for a number without bins."""
        return tuple([self[n].size for n in names])

    def check_levels(self, names: Iterable[str], who: str) -> None:
        """Refuse a number without bins where levels are needed; `who` needs them."""
        for name in names:
            if not self[name].has_levels:
                raise QueryError(
                    f"column {name!r} is a number without bins, and {who} needs levels: give it bins, "
                    "e.g. bins = 4, or use method='auto'"
                )

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        rows = "rows not given" if self.rows is None else f"about {self.rows:,} rows"
        unit = "" if self.person is None else f"; persons by {self.person.column}, {self.person.cap}"
        heads = ("column", "kind", "values", "missing cells", "other values")
        told = [(c.name, c.kind, _values(c), c.missing or "-", c.outside) for c in self.columns]
        return table_html(heads, told, f"Schema of {len(self.columns)} columns, {rows}{unit}")

    @property
    def rows_per_unit(self) -> int:
        """How many rows one unit of privacy may hold."""
        return 1 if self.person is None else self.person.rows

    @property
    def unit(self) -> str:
        """What one unit of privacy is, in words."""
        return "one row" if self.person is None else f"one person, {self.person.cap}"

    @property
    def hash(self) -> str:
        """A fingerprint of the public facts, for the ledger and the report."""
        return hashlib.sha256(self.dumps().encode()).hexdigest()[:16]

    def dumps(self) -> str:
        """The schema as TOML."""
        from dpcurate.schema.toml import dumps

        return dumps(self)

    def save(self, path: str | Path) -> None:
        """Write the schema as a TOML file."""
        _files.save_text(path, self.dumps())

    @classmethod
    def loads(cls, text: str) -> Schema:
        """Read TOML text; an error names its line."""
        from dpcurate.schema.toml import loads

        return loads(text)

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a TOML file; an error names its line."""
        return _files.load(path, cls.loads, SchemaError)

    def to_csvw(self, *, url: str | None = None, max_rows: int | None = None) -> str:
        """The schema as CSVW-EO: W3C table metadata (JSON) with the Swiss Federal Statistical Office's privacy terms.

        Args:
            url: where the table is, relative to the document; W3C tools need it.
            max_rows: a public upper bound on the number of rows (`maxLength`). `rows` is none, so it is not used.

        Returns:
            JSON; `from_csvw` gives back this very schema. Terms and losses: docs/schema-file.md.

        Raises:
            SchemaError: `max_rows` is no whole number, or below the rows that one person may have.

        Example:
            >>> schema = dpcurate.Schema((dpcurate.Numeric("age", 0, 120),))
            >>> assert dpcurate.Schema.from_csvw(schema.to_csvw()) == schema
        """
        from dpcurate.schema.csvw import dumps

        return dumps(self, url=url, max_rows=max_rows)

    @classmethod
    def from_csvw(cls, source: str | Path, *, notes: list[str] | None = None) -> Schema:
        """Read CSVW or CSVW-EO metadata of one table: a path, or the text itself, which begins with a brace.

        Columns without public levels or bounds are left out. Sentences on what was left out or needs a look are
        added to `notes`.

        Raises:
            SchemaError: the document is no such metadata, its unit of privacy is unclear, or its standard part and
                our own part disagree.
        """
        from dpcurate.schema import csvw

        found: list[str] = [] if notes is None else notes
        if isinstance(source, str) and source.lstrip().startswith("{"):
            return csvw.load(source, found)
        return _files.load(source, lambda text: csvw.load(text, found), SchemaError)

    @classmethod
    def of(cls, value: Schema | str | Path | Mapping[str, Sequence[Any]] | None) -> Schema:
        """Accept a schema, a path to one, or a mapping from column to levels; for None say how to get one."""
        if isinstance(value, Schema):
            return value
        if isinstance(value, (str, Path)):
            return cls.load(value)
        if isinstance(value, Mapping):
            return cls(tuple(Categorical(name, tuple(levels)) for name, levels in value.items()))
        if value is None:
            raise SchemaError(f"a schema is needed, the public description of the columns. {_DRAFTED}")
        raise SchemaError(
            f"a schema is a Schema, a path or a mapping of levels, got {type(value).__name__}. {_DRAFTED}"
        )


def _values(column: Column) -> str:
    """Its levels, the first few of many; of a number its bounds, and how many bins."""
    if isinstance(column, Numeric):
        return f"{column.low:g} to {column.high:g}" + (f" in {column.size} bins" if column.has_levels else "")
    more = f", ... ({column.size} levels)" if column.size > MOST_SHOWN else ""
    return ", ".join(column.levels[:MOST_SHOWN]) + more


MOST_SHOWN = 8
"""Levels of a column."""
_DRAFTED = (
    "`print(dpcurate.draft(table))`, or `dpcurate schema draft TABLE -o schema.toml`, drafts one from the table for "
    "you to check"
)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LARGEST_COUNT
