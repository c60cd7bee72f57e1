"""Where rows come from: frames and arrays in memory, Parquet, CSV and DuckDB files.

DuckDB reads them all, and one SQL text encodes them all. A table whose public domain is small is
held as distinct rows with weights; another one in memory is held as codes; another one on disk is
asked again for every table.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterator, Mapping, Sequence
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from dpcurate.errors import DpcurateError, OwnerError, RequestError, SchemaError
from dpcurate.private.encode import code_sql, missing_sql, outside_sql, quote, text, value_sql
from dpcurate.private.kernels import CountRows, GradientRows, Integers, Kernel, MomentRows, NormRows, Rows
from dpcurate.private.noise import Randomness
from dpcurate.schema import Numeric, Schema, did_you_mean

SMALL_DOMAIN = 1 << 22
"""A table on disk is collapsed to distinct rows if its public domain has at most this many cells."""
MOST_ROWS = 1_000_000_000
SORTABLE_DOMAIN = 1 << 62
"""A table in memory is tried for collapsing if its combinations of codes fit into one integer."""


class Source(Protocol):
    """Encoded rows that can be added up."""

    def total(self, kernel: Kernel) -> Integers:
        """The kernel's sum over all rows."""

    def check(self, kernel: Kernel) -> None:
        """Refuse, from public facts, what cannot be added up here."""

    def check_sample(self) -> None:
        """Refuse, from public facts, if no sample can be drawn."""

    def sample(self, rate: int, randomness: Randomness) -> Source:
        """A Poisson sample at rate / 2**32."""


class Held:
    """Rows held in memory, collapsed to distinct ones where that is smaller."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def total(self, kernel: Kernel) -> Integers:
        """The kernel's sum over all rows."""
        return kernel.apply(self._rows)

    def check(self, kernel: Kernel) -> None:
        """Held rows can be added up in any way."""

    def check_sample(self) -> None:
        """Held rows can be sampled."""

    def sample(self, rate: int, randomness: Randomness) -> Held:
        """Every row stays with its own coin."""
        rows = self._rows
        weights = np.ones(rows.size, dtype=np.int64) if rows.weights is None else rows.weights
        kept = randomness.thin(weights, rate)
        some = np.flatnonzero(kept)
        codes = {name: column[some] for name, column in rows.codes.items()}
        values = {name: column[some] for name, column in rows.values.items()}
        return Held(Rows(codes, values, kept[some], len(some)))


class Queried:
    """Rows left where they are; each sum is a query."""

    def __init__(self, connection: Any, encoded: str, schema: Schema) -> None:
        self._connection, self._encoded, self._schema = connection, encoded, schema

    def total(self, kernel: Kernel) -> Integers:
        """The kernel's sum over all rows."""
        if isinstance(kernel, CountRows):
            return self._count(kernel)
        return self._stream(kernel)

    def check(self, kernel: Kernel) -> None:
        """Sums other than counts stream the rows, which takes Arrow."""
        if not isinstance(kernel, CountRows) and find_spec("pyarrow") is None:
            raise RequestError(
                "moments and gradients of a table that stays on disk need pyarrow: pip install 'dpcurate[files]', "
                "or load the table into memory"
            )

    def check_sample(self) -> NoReturn:
        """Refused: the coins of a secret sample would have to be kept for every row."""
        raise RequestError(
            "this table stays on disk and its domain is too large to hold, so no secret sample can be drawn: "
            "load it into memory, or use a method without sub-sampling"
        )

    def sample(self, rate: int, randomness: Randomness) -> NoReturn:
        """Never reached by way of the door."""
        self.check_sample()

    def _count(self, kernel: CountRows) -> Integers:
        key = "CAST(0 AS BIGINT)"
        for column, size in zip(kernel.columns, kernel.sizes, strict=True):
            key = f"({key} * {size} + {_code(self._schema, column)})"
        found = self._connection.execute(
            f"SELECT {key} AS k, count(*) AS c FROM ({self._encoded}) GROUP BY k"
        ).fetchnumpy()
        counts = np.zeros(kernel.cells, dtype=np.int64)
        counts[np.asarray(found["k"])] = np.asarray(found["c"])
        return counts.reshape(kernel.sizes)

    def _stream(self, kernel: MomentRows | GradientRows | NormRows) -> Integers:
        reader = self._connection.sql(self._encoded).to_arrow_reader(1 << 17)
        none = {name: np.zeros(0, dtype=np.int16) for n in self._schema.names for name in _names(self._schema, n)}
        total = kernel.apply(_rows(none, self._schema))
        for batch in reader:
            columns = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in batch.schema.names}
            total += kernel.apply(_rows(columns, self._schema))
        return total


def _code(schema: Schema, name: str) -> str:
    return f"c{schema.names.index(name)}"


def _value(schema: Schema, name: str) -> str:
    return f"v{schema.names.index(name)}"


def _names(schema: Schema, name: str) -> tuple[str, str]:
    return _code(schema, name), _value(schema, name)


def _rows(columns: Mapping[str, NDArray[Any]], schema: Schema) -> Rows:
    """Named arrays of a query's result as rows."""
    codes = {name: np.ascontiguousarray(columns[_code(schema, name)]) for name in schema.names}
    values = {
        c.name: np.ascontiguousarray(columns[_value(schema, c.name)]) for c in schema.columns if isinstance(c, Numeric)
    }
    weights = np.asarray(columns["w"], dtype=np.int64) if "w" in columns else None
    rows = Rows(codes, values, weights, len(codes[schema.names[0]]))
    _check_rows(rows.total)
    return rows


# --- opening --------------------------------------------------------------------------------------


def open_source(table: Any, schema: Schema) -> Source:
    """Open a table for a schema. What is wrong with the table is told to its owner here and now."""
    connection, relation, in_memory = connect(table, schema)
    try:
        encoded = encoded_sql(relation, schema, storage(connection, relation, schema))
        domain = math.prod(schema.sizes(schema.names))
        numeric = any(isinstance(c, Numeric) for c in schema.columns)
        if in_memory:
            return Held(_load(connection, encoded, schema, collapse=domain <= SORTABLE_DOMAIN and not numeric))
        if domain <= SMALL_DOMAIN and not numeric:
            return Held(_fetch(connection, _grouped(encoded, schema), schema))
        _scan(connection, encoded, schema)
        return Queried(connection, encoded, schema)
    except DpcurateError:
        raise
    except Exception as error:
        raise OwnerError(f"the table could not be read: {_first_line(error)}") from error


def _scan(connection: Any, encoded: str, schema: Schema) -> None:
    """Read every cell once, so that a row that cannot be read is the owner's affair, not the analyst's."""
    sums = ", ".join(f"sum({_code(schema, n)})" for n in schema.names)
    _check_rows(int(connection.execute(f"SELECT count(*), {sums} FROM ({encoded})").fetchone()[0]))


def _check_rows(rows: int) -> None:
    if rows > MOST_ROWS:
        raise OwnerError(f"the table has {rows:,} rows, above the limit of {MOST_ROWS:,} that 64-bit sums can hold")


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]


def _grouped(encoded: str, schema: Schema) -> str:
    names = ", ".join(_code(schema, n) for n in schema.names)
    return f"SELECT {names}, count(*) AS w FROM ({encoded}) GROUP BY ALL"


def _fetch(connection: Any, query: str, schema: Schema) -> Rows:
    return _rows(connection.execute(query).fetchnumpy(), schema)


def _load(connection: Any, encoded: str, schema: Schema, *, collapse: bool) -> Rows:
    """Hold the rows; as distinct rows if those are at most half as many."""
    rows = _fetch(connection, encoded, schema)
    if not collapse or rows.size == 0:
        return rows
    distinct = connection.execute(f"SELECT count(*) FROM ({_grouped(encoded, schema)})").fetchone()[0]
    if distinct > rows.size / 2:
        return rows
    return _fetch(connection, _grouped(encoded, schema), schema)


def connect(table: Any, schema: Schema | None) -> tuple[Any, str, bool]:
    """A DuckDB connection, the SQL name of the table in it, and whether the table is in memory."""
    import duckdb

    connection = duckdb.connect()
    # Text stays text: no type is guessed from what the cells hold.
    connection.execute("SET pandas_analyze_sample = 0")
    if isinstance(table, (str, Path)):
        relation = _file_relation(connection, str(table))
        return connection, relation, False
    frame = _frame(table, schema)
    try:
        connection.register("dpcurate_table", frame)
    except Exception as error:
        raise OwnerError(f"a table of type {type(table).__name__} could not be opened: {_first_line(error)}") from error
    return connection, "dpcurate_table", True


def _file_relation(connection: Any, path: str) -> str:
    file, _, inner = path.partition("#")
    suffix = file.lower().removesuffix(".gz").rsplit(".", 1)[-1]
    if suffix == "parquet" or Path(file).is_dir():
        where = str(Path(file) / "**" / "*.parquet") if Path(file).is_dir() else file
        return f"read_parquet({text(where)})"
    if suffix in ("csv", "tsv"):
        return _csv_relation(file, "\t" if suffix == "tsv" else ",")
    if suffix in ("duckdb", "db"):
        if not inner:
            raise SchemaError(f"name the table in {file!r} after a hash: {file}#patients")
        try:
            connection.execute(f"ATTACH {text(file)} AS given (READ_ONLY)")
        except Exception as error:
            raise OwnerError(f"cannot open {file!r}: {_first_line(error)}") from error
        return f"given.{quote(inner)}"
    raise SchemaError(f"cannot tell what {path!r} is; known are .parquet, .csv, .csv.gz, .tsv and file.duckdb#table")


def _csv_relation(file: str, delimiter: str) -> str:
    """A CSV whose dialect is fixed here: nothing about it is guessed from the rows."""
    header = _csv_header(file, delimiter)
    _check_unique(header)
    columns = ", ".join(f"{text(name)}: 'VARCHAR'" for name in header)
    return (
        f"read_csv({text(file)}, auto_detect = false, header = true, skip = 0, comment = '', nullstr = '', "
        f"delim = {text(delimiter)}, quote = '\"', escape = '\"', columns = {{{columns}}})"
    )


def _csv_header(file: str, delimiter: str) -> list[str]:
    first = min(glob(file), default=file)
    try:
        with (gzip.open if first.endswith(".gz") else open)(first, "rt", newline="", encoding="utf-8") as handle:
            header = next(csv.reader(handle, delimiter=delimiter), [])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise OwnerError(f"cannot read the header of {file!r}: {error}") from None
    if not header:
        raise OwnerError(f"{file!r} is empty: it has no header")
    header[0] = header[0].removeprefix("\ufeff")
    return header


def _frame(table: Any, schema: Schema | None) -> Any:
    """Something DuckDB can register: frames as they are, arrays as a mapping."""
    if isinstance(table, np.ndarray):
        return _array_frame(table, schema)
    if isinstance(table, Mapping):
        columns = {str(k): np.asarray(v) for k, v in table.items()}
        lengths = {len(v) for v in columns.values() if v.ndim == 1}
        if len(lengths) != 1 or any(v.ndim != 1 for v in columns.values()):
            raise OwnerError(f"the columns of a mapping must be lists of one length, got lengths {sorted(lengths)}")
        return columns
    names = getattr(table, "column_names", None) or getattr(table, "columns", None)
    if names is not None and not callable(names):
        _check_unique([str(n) for n in names])
    return table


def _array_frame(table: NDArray[Any], schema: Schema | None) -> dict[str, NDArray[Any]]:
    if table.dtype.names:
        return {name: np.ascontiguousarray(table[name]) for name in table.dtype.names}
    names = schema.names if schema else tuple(f"x{i}" for i in range(table.shape[-1]))
    if table.ndim != 2 or table.shape[1] != len(names):
        raise SchemaError(
            f"an array of shape {table.shape} does not fit a schema of {len(names)} columns; "
            "its columns are taken in the schema's order"
        )
    return {name: np.ascontiguousarray(table[:, i]) for i, name in enumerate(names)}


def _check_unique(names: Sequence[str]) -> None:
    repeated = sorted({n for n in names if names.count(n) > 1})
    if repeated:
        raise SchemaError(f"the table has more than one column called {', '.join(map(repr, repeated))}: rename them")


def storage(connection: Any, relation: str, schema: Schema) -> dict[str, str]:
    """The SQL type of every column the schema names."""
    types = column_types(connection, relation)
    wanted = [*schema.names, *([schema.person.column] if schema.person else [])]
    for name in wanted:
        if name not in types:
            raise SchemaError(f"the table has no column {name!r}{did_you_mean(name, list(types))}")
    if schema.person and types[schema.person.column].upper() in ("DOUBLE", "FLOAT", "REAL"):
        raise OwnerError(
            f"column {schema.person.column!r} names persons but is stored as floating-point numbers, which may "
            "run two persons together: store it as text or whole numbers"
        )
    return {name: types[name] for name in wanted}


def column_types(connection: Any, relation: str) -> dict[str, str]:
    """Name and SQL type of every column."""
    try:
        found = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    except Exception as error:
        raise OwnerError(f"the table could not be opened: {_first_line(error)}") from error
    return {row[0]: row[1] for row in found}


def encoded_sql(relation: str, schema: Schema, types: Mapping[str, str]) -> str:
    """A query for the encoded rows that are kept."""
    parts = []
    for column in schema.columns:
        kind = "UTINYINT" if column.size <= 256 else "USMALLINT"
        parts.append(f"CAST({code_sql(column, types[column.name])} AS {kind}) AS {_code(schema, column.name)}")
        if isinstance(column, Numeric):
            parts.append(f"{value_sql(column, types[column.name])} AS {_value(schema, column.name)}")
    if schema.person is not None:
        parts.append(f"{quote(schema.person.column)} AS person")
    kept = " AND ".join(f"{_code(schema, n)} IS NOT NULL" for n in schema.names)
    rows = f"SELECT * FROM (SELECT {', '.join(parts)} FROM {relation}) WHERE {kept}"
    return rows if schema.person is None else _capped(rows, schema)


def _capped(rows: str, schema: Schema) -> str:
    """At most so many rows a person, chosen by a fixed mix of what the rows hold.

    The rule sees the person's own rows only. Rows that name no person are left out.
    """
    assert schema.person is not None
    fields = [_code(schema, n) for n in schema.names]
    fields += [_value(schema, c.name) for c in schema.columns if isinstance(c, Numeric)]
    # A fixed pseudo-random order of possible rows, so that no level is favoured.
    mix = " + ".join(f"(CAST({f} AS BIGINT) + 5000) * {7919 + 104729 * i}" for i, f in enumerate(fields))
    order = f"((({mix}) % 2147483647) * 15485863) % 2147483647, {', '.join(fields)}"
    nth = f"row_number() OVER (PARTITION BY person ORDER BY {order}) AS nth"
    ranked = f"SELECT *, {nth} FROM ({rows}) WHERE person IS NOT NULL"
    return f"SELECT {', '.join(fields)} FROM ({ranked}) WHERE nth <= {schema.person.rows}"


def check_rows(table: Any, schema: Schema) -> Iterator[str]:
    """What an owner should know about the rows, a sentence each. LOOKS AT THE DATA."""
    connection, relation, _ = connect(table, schema)
    types = storage(connection, relation, schema)
    try:
        yield from _sentences(connection, relation, schema, types)
    except Exception as error:
        raise OwnerError(f"the table could not be read: {_first_line(error)}") from error


def _sentences(connection: Any, relation: str, schema: Schema, types: Mapping[str, str]) -> Iterator[str]:
    total = connection.execute(f"SELECT count(*) FROM {relation}").fetchone()[0]
    kept = connection.execute(f"SELECT count(*) FROM ({encoded_sql(relation, schema, types)})").fetchone()[0]
    yield f"{total} rows, {kept} of them used" + ("; the table is empty" if total == 0 else "")
    for column in schema.columns:
        kind = types[column.name]
        missing, outside = missing_sql(column, kind), outside_sql(column, kind)
        query = f"SELECT count(*) FILTER ({missing}), count(*) FILTER (NOT {missing} AND {outside}) FROM {relation}"
        empty, strange = connection.execute(query).fetchone()
        if empty:
            every = ", that is all of them" if empty == total else ""
            yield f"column {column.name!r}: {empty} missing cell(s){every}; rule: {column.missing}"
        if strange:
            yield f"column {column.name!r}: {strange} cell(s) outside the schema; rule: {column.outside}"
