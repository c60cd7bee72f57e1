"""Polars lazy frames and Ibis tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any

from dpcurate.errors import OwnerError
from dpcurate.private.sources import duck
from dpcurate.private.sources.engine import Engine
from dpcurate.private.sources.persons import check_kinds, check_stored
from dpcurate.schema import Schema

BATCH = 100_000
"""Rows streamed at a time."""
_BORROWED = Lock()
"""Two curators may ask one connection of the user's, which has one result at a time."""


def open_lazy(table: Any, schema: Schema | None) -> Engine:
    """A Polars LazyFrame or an Ibis table, evaluated anew for every pass and never collected."""
    library = type(table).__module__.partition(".")[0]
    return _open_polars(table, schema) if library == "polars" else _open_ibis(table, schema)


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise OwnerError("to stream a lazy table takes pyarrow: pip install 'dpcurate[files]'") from None
    return pyarrow


@dataclass(frozen=True, slots=True)
class _Stream:
    """A table that DuckDB reads in batches, from the start for every scan. It looks for these names."""

    schema: Any
    reader: Callable[[], Any]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.reader().__arrow_c_stream__(requested_schema)


def _needed(names: list[str], schema: Schema | None) -> list[str]:
    """The columns to be read; all, if one is missing, for the complaint to name them."""
    if schema is None:
        return names
    wanted = [*schema.names, *([schema.person.column] if schema.person else [])]
    return wanted if set(wanted) <= set(names) else names


def _open_polars(frame: Any, schema: Schema | None) -> Engine:
    import polars as pl

    arrow = _pyarrow()
    needed = _needed(frame.collect_schema().names(), schema)
    some = frame.select(pl.selectors.by_name(*needed))  # not by text: a name such as ^.*$ would be a pattern
    # A batch's dictionary is not the next one's.
    texts = some.with_columns(pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String))
    fields = pl.DataFrame(schema=texts.collect_schema()).to_arrow().schema

    def batches() -> Iterator[Any]:
        for batch in texts.collect_batches(chunk_size=BATCH, maintain_order=False):
            yield from batch.to_arrow().cast(fields).to_batches()

    return duck.open_frame(_Stream(fields, lambda: arrow.RecordBatchReader.from_batches(fields, batches())), None)


def _open_ibis(table: Any, schema: Schema | None) -> Engine:
    from ibis.expr import operations, types

    if not isinstance(table, types.Table):
        raise OwnerError(f"an Ibis {type(table).__name__} could not be opened: pass an Ibis table")
    if table.op().find(operations.InMemoryTable):
        raise OwnerError("this Ibis table holds a frame in memory: pass the frame itself")
    backend = table.get_backend()
    if backend.name == "pyspark":
        raise OwnerError("this Ibis table is Spark's: pass the Spark frame itself")
    if backend.name == "duckdb":
        # Not a cursor of it: that would not see Ibis's temporary views, or see other tables of their names.
        return duck.Duck(backend.con, f"({backend.compile(table)}) AS given", _BORROWED)
    some = _exact_ids(table.select(_needed(list(table.columns), schema)), schema)
    fields = some.schema().to_pyarrow()
    stream = _Stream(fields, lambda: some.to_pyarrow_batches(chunk_size=BATCH).cast(fields))
    engine = duck.open_frame(stream, None)
    engine.connection.execute("SET threads = 1")  # SQLite and others serve only the thread that opened them
    return engine


def _exact_ids(table: Any, schema: Schema | None) -> Any:
    """Ids as texts made by the backend.

    Ibis may fetch whole numbers as floats if one is missing, and SQLite stores any value in any column.
    """
    person = schema.person.column if schema and schema.person else None
    if person is None or person not in table.columns:
        return table
    ids = table[person]
    kind = check_stored(person, "BIGINT" if ids.type().is_integer() else str(ids.type()))
    if table.get_backend().name == "sqlite":
        wanted = {"integer"} if kind == "whole" else {"text"}
        found = set(table.select(kind=ids.typeof()).distinct().to_pyarrow()["kind"].to_pylist()) - {"null"}
        check_kinds(person, found, wanted)
    return table.mutate(**{person: ids.cast("string")})
