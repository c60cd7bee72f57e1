"""DuckDB: frames and arrays in memory, Parquet and CSV files, folders and globs of them, DuckDB files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache
from glob import glob
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from dpcurate.errors import OwnerError, SchemaError
from dpcurate.private.row_sums import Counted, Integers, IntervalRows, RowSum
from dpcurate.private.sources import formulas, statfiles, tempdir, textfile
from dpcurate.private.sources.encode import ColumnNeeds, Kind
from dpcurate.private.sources.engine import Engine, check_unique, first_line
from dpcurate.private.sources.persons import plain_ids, untyped
from dpcurate.schema import Schema, TextFormat

T = TypeVar("T")
_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"}
_WHOLE |= {f"U{kind}" for kind in _WHOLE}
_NUMBERS = {"FLOAT", "REAL", "DOUBLE", "DECIMAL"}


KNOWN_FILES = (
    "known are .parquet, .csv, .csv.gz and .tsv (globs too), a folder of .parquet, .xlsx, .dta (Stata), .sav (SPSS), "
    ".sas7bdat (SAS), file.duckdb#table and postgresql://host/database#table"
)
KNOWN_TABLES = (
    "pass a pandas, polars, Arrow, Dask, Spark or Ibis table, a mapping of names to lists, a NumPy array, or a path"
)
BATCH = 1 << 18
"""Rows handed to NumPy at a time."""


class Duck(Engine):
    """A DuckDB connection and a table in it."""

    most_sums = 1 << 15  # moments of 254 features: one pass
    codebook: Mapping[str, statfiles.Described] = MappingProxyType({})
    """What the file says of its columns."""

    def __init__(self, connection: Any, relation: str, lock: AbstractContextManager[Any] | None = None) -> None:
        self.connection = connection
        self.relation: str = relation
        self._lock = lock or nullcontext()

    def stored(self) -> dict[str, str]:
        """Every column and its SQL type."""
        try:
            found = self.connection.execute(f"DESCRIBE SELECT * FROM {self.relation}").fetchall()
        except Exception as error:
            raise OwnerError(f"the table could not be opened: {first_line(error)}") from error
        return {row[0]: row[1] for row in found}

    def kind(self, stored: str) -> Kind:
        """What an SQL type is to us."""
        name = stored.split("(")[0].upper()
        if name == "BOOLEAN":
            return "boolean"
        return "whole" if name in _WHOLE else "number" if name in _NUMBERS else "text"

    def fetch(self, query: str) -> dict[str, NDArray[Any]]:
        """A result, by column."""
        with self._lock:  # a connection has one result at a time
            found: dict[str, NDArray[Any]] = self.connection.execute(query).fetchnumpy()
        return found

    def count(self, tables: Sequence[Counted], encoded: str, schema: Schema) -> list[Integers]:
        """Tables in one pass; NumPy counts a number's many intervals sooner than groups are made of them."""
        if any(isinstance(t, IntervalRows) for t in tables) and streams():
            return self._streamed(tables, encoded, schema)
        return super().count(tables, encoded, schema)

    def add(self, row_sum: formulas.RowKernel, encoded: str, schema: Schema) -> Integers:
        """Features in batches, where that can be: a product of matrices takes a tenth of the time of as many sums."""
        if isinstance(row_sum, formulas.OfFeatures) and streams():
            return self._streamed([row_sum], encoded, schema)[0]
        return super().add(row_sum, encoded, schema)

    def check(self, row_sum: RowSum) -> None:
        """Batches can be of any number of features."""
        if not (isinstance(row_sum, formulas.OfFeatures) and streams()):
            super().check(row_sum)

    def _streamed(self, row_sums: Sequence[RowSum], encoded: str, schema: Schema) -> list[Integers]:
        """Sums of rows that stay in this process but for their engine, a batch at a time."""
        needed = ColumnNeeds.from_row_sums(row_sums, schema)
        totals = [k.apply(needed.rows({f: np.zeros(0, np.int16) for f in needed.fields}, 0)) for k in row_sums]
        with self._lock:
            found = self.connection.sql(f"SELECT {', '.join(needed.fields)} FROM ({encoded}) AS e")
            for batch in found.to_arrow_reader(BATCH):
                rows = needed.rows({f: batch[f].to_numpy() for f in needed.fields}, batch.num_rows)
                for total, row_sum in zip(totals, row_sums, strict=True):
                    np.add(total, row_sum.apply(rows), out=total)
        return totals


class Text(Duck):
    """CSV files, by way of a view.

    DuckDB's parallel reader refuses valid files whose quoted cells span lines, so what fails is read once more
    without parallelism, and so is everything after it.
    """

    relation = "dpcurate_text"

    def __init__(self, connection: Any, rows: str, files: Sequence[str]) -> None:
        super().__init__(connection, self.relation)
        self._rows, self._files, self._parallel = rows, files, True
        self._view("true")

    def _view(self, parallel: str) -> None:
        self.connection.execute(f"CREATE OR REPLACE VIEW {self.relation} AS SELECT * FROM {self._rows}{parallel})")

    def fetch(self, query: str) -> dict[str, NDArray[Any]]:
        """A result, by column."""
        return self._read(lambda: super(Text, self).fetch(query))

    def _streamed(self, row_sums: Sequence[RowSum], encoded: str, schema: Schema) -> list[Integers]:
        return self._read(lambda: super(Text, self)._streamed(row_sums, encoded, schema))

    def _read(self, read: Callable[[], T]) -> T:
        if self._parallel:
            try:
                return read()
            except _failure():
                if not textfile.quotes_are_closed(self._files):
                    raise
                self._parallel = False
                self._view("false")
        return read()


@cache
def streams() -> bool:
    """Whether rows can be had in batches, which takes pyarrow."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    return True


def _failure() -> type[Exception]:
    import duckdb

    error: type[Exception] = duckdb.Error
    return error


def _connection() -> Any:
    import duckdb

    connection = duckdb.connect()
    # Text stays text: no type is guessed from what the cells hold.
    connection.execute("SET pandas_analyze_sample = 0")
    connection.execute("SET python_enable_replacements = false")  # no name may mean a variable of the caller's
    connection.execute("SET enable_progress_bar = false")  # a slow query would draw one on standard output
    connection.execute(f"SET temp_directory = {Duck.dialect.text(tempdir.place())}")
    return connection


# --- files ------------------------------------------------------------------------------------------


def open_file(path: str, written: TextFormat) -> Duck:
    """A file, a folder or a glob, read where it is."""
    connection = _connection()
    file, _, inner = path.partition("#")
    _check_regular(file)
    if textfile.is_text(file):
        return _open_text(connection, file, written)
    return Duck(connection, _file_relation(connection, file, inner))


def open_statfile(path: str, schema: Schema | None) -> Duck:
    """A file of another program, in memory."""
    table = statfiles.read(path, schema)
    engine = open_frame(table.columns, schema)
    engine.codebook = table.codebook
    return engine


def _open_text(connection: Any, file: str, written: TextFormat) -> Duck:
    rows, files, folder = textfile.relation(file, written, Duck.dialect)
    engine = Text(connection, rows, files)
    engine.dialect = replace(Duck.dialect, decimal=written.decimal)
    if folder is not None:  # of rows rewritten for this engine, which go when it goes
        finalize(engine, tempdir.remove, folder, os.getpid())
    return engine


def _file_relation(connection: Any, file: str, inner: str) -> str:
    say = Duck.dialect
    suffix = file.lower().removesuffix(".gz").rsplit(".", 1)[-1]
    if suffix == "parquet" or Path(file).is_dir():
        where = str(Path(file) / "**" / "*.parquet") if Path(file).is_dir() else file
        _check_some(file, where)
        _check_alike(connection, where)
        return f"read_parquet({say.text(where)}, hive_types_autocast = false)"
    if suffix in ("duckdb", "db"):
        if not inner:
            raise SchemaError(f"name the table in {file!r} after a hash: {file}#patients")
        try:
            connection.execute(f"ATTACH {say.text(file)} AS given (READ_ONLY)")
        except Exception as error:
            raise OwnerError(f"cannot open {file!r}: {first_line(error)}") from error
        return f"given.{say.quote(inner)}"
    if file.startswith("postgres") or "password" in file:  # which may hold a password, so it is not repeated
        raise SchemaError("a database is named as postgresql://user@host/database#table")
    raise SchemaError(f"cannot tell what {file!r} is; {KNOWN_FILES}")


def _check_some(file: str, where: str) -> None:
    """A folder or a pattern may hold nothing that is read."""
    if glob(where, recursive=True) or Path(file).is_file():  # a name may look like a pattern
        return
    if Path(file).is_dir():
        raise OwnerError(
            f"the folder {file!r} holds no .parquet file; a folder is read as one table of Parquet files. Name a file "
            f"in it, or a pattern, such as {str(Path(file) / '*.csv')!r}"
        )
    raise OwnerError(f"no file is there at {file!r}")


def _check_regular(file: str) -> None:
    """Refuse what may never end, such as a pipe, before anything waits for it."""
    if not file:
        raise SchemaError(f"an empty path names no table; {KNOWN_FILES}")
    for one in glob(file, recursive=True) or [file]:
        if os.path.exists(one) and not (os.path.isfile(one) or os.path.isdir(one)):
            raise OwnerError(f"{one!r} is not a regular file: write the rows to one and name that")


def _check_alike(connection: Any, where: str) -> None:
    """DuckDB would read all files by the types of the first, so that one file's cells change another's."""
    facts = "list_sort(list(concat_ws(' ', type, converted_type, logical_type)))"
    by_file = f"SELECT name, {facts} AS kinds FROM parquet_schema({Duck.dialect.text(where)}) GROUP BY file_name, name"
    query = f"SELECT name FROM ({by_file}) GROUP BY name HAVING count(DISTINCT kinds) > 1 ORDER BY name"
    try:
        differ = [row[0] for row in connection.execute(query).fetchall()]
    except Exception as error:
        raise OwnerError(f"the table could not be opened: {first_line(error)}") from error
    if differ:
        raise OwnerError(
            f"the files of {where!r} store {', '.join(map(repr, differ))} in different types: write them with one type"
        )


def _check_names(names: Sequence[str]) -> None:
    """DuckDB does not tell capital letters from small ones."""
    check_unique([name.casefold() for name in names])


# --- frames -----------------------------------------------------------------------------------------


def open_frame(table: Any, schema: Schema | None) -> Duck:
    """A frame, a mapping or an array in memory."""
    connection, frame = _connection(), _frame(table, schema)
    try:
        connection.register("dpcurate_table", frame)
    except Exception as error:
        names = {"dpcurate_table"}  # what is quoted after it is a column's name, not a cell
        raise OwnerError(
            f"a table of type {type(table).__name__} could not be opened; {KNOWN_TABLES} ({first_line(error, names)})"
        ) from error
    return Duck(connection, "dpcurate_table")


def _frame(table: Any, schema: Schema | None) -> Any:
    """Something DuckDB can register: frames as they are, arrays as a mapping."""
    person = schema.person.column if schema and schema.person else None
    if isinstance(table, np.ndarray):
        return _mapping(_array_frame(table, schema), person)
    if isinstance(table, Mapping):
        _check_names([str(k) for k in table])
        return _mapping({str(k): v for k, v in table.items()}, person)
    names = getattr(table, "column_names", None) or getattr(table, "columns", None)
    if names is not None and not callable(names):
        _check_names([str(n) for n in names])
    is_pandas = type(table).__module__.startswith("pandas") and hasattr(table, "columns")
    return _plain_frame(table, person) if is_pandas else table


def _mapping(table: Mapping[str, Any], person: str | None) -> dict[str, NDArray[Any]]:
    given = {k: _masked(v) if np.ma.is_masked(v) else v for k, v in table.items()}
    for name, values in given.items():
        if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__len__"):
            raise OwnerError(f"column {name!r} of a mapping is of type {type(values).__name__}: make it a list")
    columns = {k: plain_ids(k, v)[0] if k == person else _column(v) for k, v in given.items()}
    lengths = {v.shape for v in columns.values()}
    if len(lengths) != 1 or any(v.ndim != 1 for v in columns.values()):
        raise OwnerError(f"the columns of a mapping must be lists of one length, got shapes {sorted(lengths)}")
    return {name: plain_floats(column) for name, column in columns.items()}


def _masked(values: Any) -> NDArray[Any]:
    """What is masked is missing; DuckDB would read what is under the mask."""
    plain = np.array(values, dtype=object)
    plain[np.ma.getmaskarray(values)] = None
    return plain


def _column(values: Any) -> NDArray[Any]:
    """A list as objects: NumPy would make texts of all of it for the sake of one."""
    return np.asarray(values, None if hasattr(values, "dtype") else object, order="C")


def plain_floats(column: NDArray[Any]) -> NDArray[Any]:
    """Objects without NumPy's own floats: a short one reads otherwise as a text than it does as a number."""
    if column.dtype != object or not any(issubclass(kind, np.floating) for kind in set(map(type, column))):
        return column
    plain = np.empty(len(column), dtype=object)
    plain[:] = [float(x) if isinstance(x, np.floating) else x for x in column]
    return plain


def _plain_frame(table: Any, person: str | None) -> Any:
    """A pandas frame without NumPy's own floats among objects, and with ids that are what they look like."""
    mended = {}
    for name in table.columns:
        column = table[name]
        kept = column.cat.categories if hasattr(column, "cat") else column
        if str(name) == person and untyped(column):
            mended[name] = plain_ids(person, column)[0]
        elif kept.dtype == object and any(issubclass(kind, np.floating) for kind in set(map(type, kept))):
            mended[name] = plain_floats(column.astype(object).to_numpy())
    plain = table.copy(deep=False) if mended else table
    for name, values in mended.items():
        plain[name] = values
    return plain


def _array_frame(table: NDArray[Any], schema: Schema | None) -> dict[str, NDArray[Any]]:
    if table.dtype.names:
        return {name: table[name] for name in table.dtype.names}
    names = schema.names if schema else tuple(f"x{i}" for i in range(table.shape[-1]))
    if table.ndim != 2 or table.shape[1] != len(names):
        raise SchemaError(
            f"an array of shape {table.shape} does not fit a schema of {len(names)} columns; "
            "its columns are taken in the schema's order"
        )
    return {name: table[:, i] for i, name in enumerate(names)}
