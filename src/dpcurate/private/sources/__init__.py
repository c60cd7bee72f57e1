"""Where rows come from: memory, files, and engines that keep them.

One set of rules encodes them all (encode.py). A table in memory is held as codes; a table elsewhere
whose public domain is small is held as distinct rows with weights, after one pass; any other stays
where it is, and an engine counts there (pushed_down.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpcurate.errors import DpcurateError, OwnerError
from dpcurate.private.row_sums import CountRows
from dpcurate.private.sources import duck, owner_report, statfiles, textfile
from dpcurate.private.sources.dask_frames import open_dask, repeated_in
from dpcurate.private.sources.encode import encoded_sql, weighted_sql
from dpcurate.private.sources.engine import Encoded, Engine, EngineRows, Source, check_size, first_line, kinds_of
from dpcurate.private.sources.in_memory import InMemory, collapsed, from_keys, rows_of
from dpcurate.private.sources.pushed_down import SMALL_DOMAIN, PushedDown
from dpcurate.schema import Numeric, Schema, TextFormat

__all__ = ["InMemory", "PushedDown", "Source", "check_rows", "look_at", "open_engine", "open_source", "told"]


def open_source(table: Any, schema: Schema) -> Source:
    """Open a table for a schema. What is wrong with the table is told to its owner here and now."""
    with _told(table, schema):
        table = _native(table)
        if _library(table) == "dask":
            return _left_there(open_dask(table, schema), schema)
        engine, in_memory = open_engine(table, schema)
        with _closed_if_refused(engine):
            return _opened(engine, in_memory, schema)


def told(table: Any, written: TextFormat, error: Exception, names: Collection[str] = ()) -> OwnerError:
    """What an engine could not do, in a sentence for the owner."""
    if isinstance(table, (str, Path)) and textfile.is_text(str(table)):
        return OwnerError(textfile.explained(str(table), written, error))
    return OwnerError(f"the table could not be read: {first_line(error, names)}")


def _opened(engine: Engine, in_memory: bool, schema: Schema) -> Source:
    kinds = kinds_of(engine, schema)
    encoded = encoded_sql(engine.relation, schema, kinds, engine.dialect)
    if in_memory:
        return InMemory(collapsed(rows_of(engine.fetch(encoded), schema), schema))
    # Free text may differ from row to row, but whole numbers and truth values that stand for levels are few.
    few = schema.person is None and not _numeric(schema) and set(kinds.values()) <= {"whole", "boolean"}
    weighted = weighted_sql(engine.relation, schema, kinds, engine.dialect) if few else None
    return _left_there(EngineRows(engine, encoded, schema, weighted), schema)


@contextmanager
def _closed_if_refused(engine: Engine) -> Iterator[None]:
    """An error may be kept for long, and with it a transaction that keeps the owner from mending the table."""
    try:
        yield
    except BaseException:
        engine.close()
        raise


def _library(table: Any) -> str:
    """The library a table comes from."""
    return type(table).__module__.partition(".")[0]


def _native(table: Any) -> Any:
    """What a Narwhals frame wraps."""
    return table.to_native() if _library(table) == "narwhals" else table


def open_engine(table: Any, schema: Schema | None, written: TextFormat | None = None) -> tuple[Engine, bool]:
    """The engine that reads a table, and whether the table is in memory.

    The schema says how a text file is written, or `written` where there is no schema yet.
    """
    table = _native(table)
    library = _library(table)
    if library == "pyspark":
        from dpcurate.private.sources.spark import Spark

        return Spark(table), False
    if library == "dask":
        raise OwnerError(
            "a draft looks at rows in memory: give it some of the Dask frame's, such as table.head(10_000)"
        )
    if library == "ibis" or (library == "polars" and type(table).__name__ == "LazyFrame"):
        from dpcurate.private.sources.lazy import open_lazy

        return open_lazy(table, schema), False
    if isinstance(table, str) and "://" in table:
        from dpcurate.private.sources.database import open_url

        return open_url(table), False
    if isinstance(table, (str, Path)) and statfiles.is_statfile(str(table)):
        return duck.open_statfile(str(table), schema), True
    if isinstance(table, (str, Path)):
        return duck.open_file(str(table), written or (schema.file if schema else TextFormat())), False
    return duck.open_frame(table, schema), True


def _left_there(encoded: Encoded, schema: Schema) -> Source:
    """One pass now: to collapse the rows if the domain allows, or else to find rows that cannot be read."""
    whole = CountRows(schema.names, schema.sizes(schema.names))
    if whole.cells <= SMALL_DOMAIN and not _numeric(schema):
        (table,) = encoded.count([whole])
        keys = np.flatnonzero(table)
        return InMemory(from_keys(keys, table.ravel()[keys], schema), made=1)
    source = PushedDown(encoded, schema)
    source.scan()
    return source


def _numeric(schema: Schema) -> bool:
    return any(isinstance(c, Numeric) for c in schema.columns)


def check_rows(table: Any, schema: Schema) -> Iterator[str]:
    """What an owner should know about the rows, a sentence each. LOOKS AT THE DATA."""
    with _looked(table, schema) as looked:
        found, used = looked.found(), looked.encoded.scan()
    yield from owner_report.sentences(found, used, schema)


def look_at(table: Any, schema: Schema, may_be_id: Callable[[str], bool]) -> owner_report.TableLook:
    """How the rows fit the schema, in exact numbers. LOOKS AT THE DATA.

    It says of the person's column, and of others whose name may be that of an id, how often ids repeat.
    """
    person = None if schema.person is None else schema.person.column
    with _looked(table, schema) as looked:
        found, used = looked.found(), looked.encoded.scan()
        check_size(used)
        ids = [looked.repeated(name) for name in looked.names if name == person or may_be_id(name)]
        return owner_report.full(found, used, looked.encoded, ids, schema)


@dataclass(frozen=True, slots=True)
class _Looked:
    """An open table, and what an owner may ask of it: names of all columns, cells that do not fit, repeated ids."""

    encoded: Encoded
    names: Sequence[str]
    found: Callable[[], list[int]]
    repeated: Callable[[str], owner_report.IdLook]


@contextmanager
def _looked(table: Any, schema: Schema) -> Iterator[_Looked]:
    with _told(table, schema):
        table = _native(table)
        if _library(table) == "dask":
            rows = open_dask(table, schema)
            yield _Looked(rows, [str(name) for name in table.columns], rows.look, partial(repeated_in, table))
            return
        engine, _ = open_engine(table, schema)
        with _closed_if_refused(engine):
            kinds = kinds_of(engine, schema)
            encoded = EngineRows(engine, encoded_sql(engine.relation, schema, kinds, engine.dialect), schema)
            found = partial(owner_report.look, engine, schema, kinds)
            yield _Looked(encoded, list(engine.stored()), found, partial(owner_report.repeated, engine))


@contextmanager
def _told(table: Any, schema: Schema) -> Iterator[None]:
    """What an engine could not do is told in a sentence."""
    try:
        yield
    except DpcurateError:
        raise
    except Exception as error:
        columns = map(str, table.columns) if _library(table) == "dask" else ()
        raise told(table, schema.file, error, (*schema.names, *columns)) from error
