"""What it takes to leave rows where they are: an engine that answers queries."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpcurate.errors import OwnerError, SchemaError
from dpcurate.private.noise import Randomness
from dpcurate.private.row_sums import Counted, CountRows, Integers, IntervalRows, RowSum
from dpcurate.private.sources import formulas
from dpcurate.private.sources.encode import Dialect, Kind, code_name, interval_sql, value_name
from dpcurate.private.sources.persons import check_stored
from dpcurate.schema import Schema, did_you_mean

MOST_ROWS = 1_000_000_000
"""Sums of so many rows fit into 64 bits."""
RESULT_CELLS = 1 << 22
"""The largest result of one query: keys and counts, 64 MB."""


class Source(Protocol):
    """Encoded rows that can be added up."""

    @property
    def made(self) -> int:
        """Passes over the table so far."""

    def totals(self, row_sums: Sequence[RowSum]) -> list[Integers]:
        """Each row_sum's sum over all rows, in as few passes as can be."""

    def passes(self, row_sums: Sequence[RowSum]) -> int:
        """How many passes `totals` would take now, from public facts."""

    def check(self, row_sum: RowSum) -> None:
        """Refuse, from public facts, what cannot be added up here."""

    def check_sample(self) -> None:
        """Refuse, from public facts, if no sample can be drawn."""

    def sample(self, rate: int, randomness: Randomness) -> Source:
        """A Poisson sample at rate / 2**32."""


class Encoded(Protocol):
    """Encoded rows that stay where they are."""

    def scan(self) -> int:
        """Read every cell once; the number of rows."""

    def count(self, tables: Sequence[Counted]) -> list[Integers]:
        """Tables in one pass."""

    def add(self, row_sums: Sequence[formulas.RowKernel]) -> list[Integers]:
        """The sums over rows of moments, gradients, features or norms."""

    def add_passes(self, row_sums: Sequence[formulas.RowKernel]) -> int:
        """How many passes `add` takes."""

    def check(self, row_sum: RowSum) -> None:
        """Refuse, from public facts, what cannot be added up here."""


class Engine(ABC):
    """A table that stays where it is, and SQL to ask about it."""

    dialect: Dialect = Dialect()
    most_sums = 1600
    """Sums in one query: PostgreSQL takes 1,664 columns."""
    relation: str

    @abstractmethod
    def stored(self) -> Mapping[str, str]:
        """Every column and the engine's name for its type."""

    @abstractmethod
    def kind(self, stored: str) -> Kind:
        """What a type of the engine's is to us."""

    @abstractmethod
    def fetch(self, query: str) -> dict[str, NDArray[Any]]:
        """A small result, by column."""

    def close(self) -> None:  # noqa: B027 - most engines hold nothing
        """Let go of the table, after it was refused."""

    def count(self, tables: Sequence[Counted], encoded: str, schema: Schema) -> list[Integers]:
        """Tables in one pass."""
        starts = np.cumsum([0, *(t.cells for t in tables)])
        keys = [key_sql(t, int(start), schema, self.dialect) for t, start in zip(tables, starts[:-1], strict=True)]
        parts = np.split(_dense(*self.tally(self.grouped(keys, encoded)), starts[-1]), starts[1:-1])
        return [p.reshape(t.sizes) for p, t in zip(parts, tables, strict=True)]

    def collapse(self, table: CountRows, weighted: str, schema: Schema) -> Integers:
        """The table over all columns, from rows that were grouped by their cells first."""
        keyed = f"SELECT {key_sql(table, 0, schema, self.dialect)} AS k, w FROM ({weighted}) AS e"
        found = self.tally(f"SELECT k, CAST(sum(w) AS BIGINT) AS c FROM ({keyed}) AS q GROUP BY k")
        return _dense(*found, table.cells).reshape(table.sizes)

    def grouped(self, keys: Sequence[str], encoded: str) -> str:
        """The query that counts rows by key."""
        return grouped_sql(keys, encoded)

    def tally(self, query: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Keys and counts of a query."""
        found = self.fetch(query)
        return found["k"], found["c"]

    def add(self, row_sum: formulas.RowKernel, encoded: str, schema: Schema) -> Integers:
        """The sums over rows of moments, gradients, features or norms."""
        found: list[int] = []
        for query in formulas.queries(row_sum, encoded, schema, self.dialect, self.most_sums):
            found += [int(column[0]) for column in self.fetch(query).values()]
        return formulas.total(row_sum, np.array(found, dtype=np.int64))

    def add_passes(self, row_sum: formulas.RowKernel, schema: Schema) -> int:
        """How many passes `add` takes."""
        return -(-formulas.count(row_sum) // self.most_sums)

    def check(self, row_sum: RowSum) -> None:
        """Refuse, from public facts, what cannot be added up here."""
        formulas.check(row_sum)


@dataclass(frozen=True, slots=True)
class EngineRows:
    """Rows that a query encodes, in an engine."""

    engine: Engine
    sql: str
    schema: Schema
    weighted: str | None = None

    def scan(self) -> int:
        """Read every cell once; the number of rows."""
        fields = [code_name(self.schema, n) for n in self.schema.names]
        fields += [value_name(self.schema, c.name) for c in self.schema.columns if not c.has_levels]
        sums = ", ".join(f"sum({field}) AS s{i}" for i, field in enumerate(fields))
        return int(self.engine.fetch(f"SELECT count(*) AS n, {sums} FROM ({self.sql}) AS e")["n"][0])

    def count(self, tables: Sequence[Counted]) -> list[Integers]:
        """Tables in one pass."""
        first = tables[0]
        if self.weighted and isinstance(first, CountRows) and len(first.columns) == len(self.schema.names):
            return [self.engine.collapse(first, self.weighted, self.schema)]  # it is then the only one
        return self.engine.count(tables, self.sql, self.schema)

    def add(self, row_sums: Sequence[formulas.RowKernel]) -> list[Integers]:
        """The sums over rows of moments, gradients, features or norms."""
        return [self.engine.add(row_sum, self.sql, self.schema) for row_sum in row_sums]

    def add_passes(self, row_sums: Sequence[formulas.RowKernel]) -> int:
        """How many passes `add` takes."""
        return sum(self.engine.add_passes(row_sum, self.schema) for row_sum in row_sums)

    def check(self, row_sum: RowSum) -> None:
        """Refuse, from public facts, what cannot be added up here."""
        self.engine.check(row_sum)


def _dense(keys: NDArray[Any], counts: NDArray[Any], cells: int) -> Integers:
    """All cells of a table from those that hold rows."""
    table = np.zeros(cells, dtype=np.int64)
    table[np.asarray(keys, dtype=np.int64)] = np.asarray(counts, dtype=np.int64)
    return table


def key_sql(table: Counted, start: int, schema: Schema, say: Dialect) -> str:
    """A row's cell in a table as one integer."""
    if isinstance(table, IntervalRows):
        return f"({interval_sql(schema, table.column, table.intervals, say)}) + {start}"
    key = "CAST(0 AS BIGINT)"
    for column, size in zip(table.columns, table.sizes, strict=True):
        key = f"({key} * {size} + {code_name(schema, column)})"
    return f"{key} + {start}"


def grouped_sql(keys: Sequence[str], encoded: str) -> str:
    """How many rows have each key, for several kinds of key in one pass."""
    if len(keys) == 1:
        return f"SELECT k, count(*) AS c FROM (SELECT {keys[0]} AS k FROM ({encoded}) AS e) AS q GROUP BY k"
    names = [f"k{i}" for i in range(len(keys))]
    parts = ", ".join(f"{key} AS {name}" for key, name in zip(keys, names, strict=True))
    sets = ", ".join(f"({name})" for name in names)
    return (
        f"SELECT coalesce({', '.join(names)}) AS k, count(*) AS c FROM (SELECT {parts} FROM ({encoded}) AS e) AS q "
        f"GROUP BY GROUPING SETS ({sets})"
    )


def kinds_of(engine: Engine, schema: Schema) -> dict[str, Kind]:
    """How every column the schema names is stored."""
    stored = engine.stored()
    if not stored:
        raise OwnerError("the table has no columns")
    wanted = check_columns(list(stored), schema)
    if schema.person:
        check_stored(schema.person.column, stored[schema.person.column])
    for name in schema.names:
        if stored[name].upper().startswith(("TIME", "INTERVAL")):
            raise OwnerError(f"column {name!r} holds points in time ({stored[name]}), not levels: store it as text")
    return {name: engine.kind(stored[name]) for name in wanted}


def check_columns(names: Sequence[str], schema: Schema) -> list[str]:
    """The columns that a schema reads, if a table has them all."""
    wanted = [*schema.names, *([schema.person.column] if schema.person else [])]
    for name in wanted:
        if name not in names:
            raise SchemaError(f"the table has no column {name[:99]!r}{did_you_mean(name, names)}")
    return wanted


def check_unique(names: Sequence[str]) -> None:
    """Refuse a table two of whose columns have one name."""
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise SchemaError(f"the table has more than one column called {', '.join(map(repr, repeated))}: rename them")


def check_size(rows: int) -> None:
    """Refuse a table whose sums might not fit."""
    if rows > MOST_ROWS:
        raise OwnerError(f"the table has {rows:,} rows, above the limit of {MOST_ROWS:,} that 64-bit sums can hold")


_NAMES = {"column", "columns", "table", "relation", "view", "schema", "database", "user", "role", "host", "server",
          "type", "dtype", "file", "folder", "directory", "codec", "encoding", "module", "named"}  # fmt: skip
"""Words after which an engine quotes a name; whatever else it quotes may be a cell."""
_QUOTED = re.compile(r"""(?:(?<=^)|(?<=[^\w"'`]))(?:(\w+)([ :]+))?(["'`])""")
_NUMBER = re.compile(r"\b([Vv]alue|string|number) [-+]?\.?\d\S*")


def first_line(error: Exception, names: Collection[str] = ()) -> str:
    """An engine's complaint without its stack and without cells; `names` are public, such as those of the schema."""
    return without_cells(complaint(error), names)


def complaint(error: Exception) -> str:
    """What an engine says, without its stack; after Java's first line the second says what happened."""
    if isinstance(error, MemoryError):
        return "it does not fit into memory"
    said = str(error)
    if isinstance(error, KeyError) and said.endswith(' not in index"'):  # Python quotes pandas' whole sentence
        said = said.strip('"')
    lines = [line.strip(" :") for line in said.splitlines() if line.strip(" :")] or [type(error).__name__]
    return lines[min(1, len(lines) - 1)] if lines[0].startswith("An error occurred while calling") else lines[0]


def without_cells(text: str, names: Collection[str] = ()) -> str:
    """A complaint without what it quotes, but for names of columns and the like.

    A cell may hold quotes, so all goes from the first one that does not follow such a word to the last of its kind.
    """
    start = 0
    while found := _QUOTED.search(text, start):
        mark, begin = found[3], found.start(3)
        end = text.find(mark, begin + 1)
        if text[begin + 1 : end] in names or (found[1] in _NAMES and ":" not in found[2] and end > begin):
            start = end + 1
            continue
        last = text.rfind(mark)
        rest = text[last + 1 :] if last > begin else ""  # it was cut off within what is quoted
        text, start = f"{text[:begin]}...{rest}", begin + len("...")
    return _NUMBER.sub(r"\1 ...", text)


class OneAtATime:
    """A source for sessions in several threads: a proxy that makes one pass at a time."""

    def __init__(self, source: Source, lock: threading.RLock | None = None) -> None:
        self._source = source
        self._lock = threading.RLock() if lock is None else lock
        self.check, self.check_sample = source.check, source.check_sample

    @property
    def made(self) -> int:
        """Passes over the table so far, of all sessions."""
        return self._source.made

    def passes(self, row_sums: Sequence[RowSum]) -> int:
        """How many passes `totals` would take now."""
        return self._source.passes(row_sums)

    def totals(self, row_sums: Sequence[RowSum]) -> list[Integers]:
        """Each sum over all rows."""
        with self._lock:
            return self._source.totals(row_sums)

    def sample(self, rate: int, randomness: Randomness) -> Source:
        """A Poisson sample, which is read by one session at a time, too."""
        with self._lock:
            return OneAtATime(self._source.sample(rate, randomness), self._lock)
