"""Spark: rows stay in the cluster, each task adds up its own, and Spark adds up the tasks.

A task hands on pairs of a place and a sum, and sums with the same place are added where Spark puts that
place: a tree of two levels, wide at both, whose top is the only thing the driver sees. Sums are a task's
result, never a counter beside it, so a task that fails or runs twice counts once.
"""

from __future__ import annotations

import math
import pickle
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcurate.errors import OwnerError, QueryError
from dpcurate.private import row_sums as row_sums_module
from dpcurate.private.row_sums import Counted, CountRows, FeatureRows, Integers, Rows, RowSum
from dpcurate.private.sources.encode import ColumnNeeds, Dialect, Kind
from dpcurate.private.sources.engine import RESULT_CELLS, Engine, check_unique, first_line
from dpcurate.private.sources.formulas import RowKernel
from dpcurate.schema import Schema

PART = 1 << 16
"""Rows a task adds up at a time; with the totals (RESULT_CELLS at most) that is the memory it needs."""
METHOD_LIMIT = "spark.sql.codegen.hugeMethodLimit", "8000"
"""Java does not compile longer methods, and the rules of a wide schema make one: five times slower without this."""
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "whole"),
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    "boolean": "boolean",
}
_REGISTRY = threading.Lock()


@dataclass(frozen=True, slots=True)
class SparkDialect(Dialect):
    """Spark's words.

    Columns go by place and texts by their bytes, so that no setting of the session, such as how it reads
    backslashes, quotes, braces or the case of names, can change what is asked.
    """

    string: str = "STRING"
    small: str = "SMALLINT"
    names: tuple[str, ...] = ()

    def quote(self, name: str) -> str:
        """A column by its place in the frame."""
        return f"x{self.names.index(name)}"

    def identity(self, name: str) -> str:
        """What names a person."""
        return self.quote(name)

    def text(self, value: str) -> str:
        """A text as an SQL literal."""
        return f"CAST(X'{value.encode().hex()}' AS STRING)"

    def matches(self, cell: str, pattern: str) -> str:
        """Whether a text matches; to Java a dollar sign also stands before a last line break."""
        return f"({cell} RLIKE '(?s){pattern.removesuffix('$')}(?!.)')"

    def whole(self, value: str) -> str:
        """A cast rounds toward zero; what is cast is always in range, whatever ANSI mode says of the rest."""
        return f"CAST({value} AS BIGINT)"


class Spark(Engine):
    """A Spark frame. It is evaluated anew in every pass, so it must give the same rows each time.

    A frame with random numbers in it, or over files that change, is for its owner to write down first;
    a frame that is costly to compute is for its owner to cache.
    """

    relation = "{table}"

    def __init__(self, frame: Any) -> None:
        if type(frame).__name__ != "DataFrame":
            raise OwnerError(f"a Spark {type(frame).__name__} could not be opened: pass a Spark DataFrame")
        frame = frame.to_spark() if hasattr(frame, "to_spark") else frame
        if frame.isStreaming:
            raise OwnerError("a streaming frame has no last row: write it to a table and read that")
        check_unique(frame.columns)
        self._types: dict[str, str] = dict(frame.dtypes)
        self.dialect: SparkDialect = SparkDialect(names=tuple(frame.columns))
        self._frame, self._session = _by_place(frame), frame.sparkSession
        self._check_workers()

    def stored(self) -> Mapping[str, str]:
        """Every column and its SQL type."""
        return self._types

    def kind(self, stored: str) -> Kind:
        """What an SQL type is to us."""
        return _KINDS.get(stored.split("(")[0], "text")

    def fetch(self, query: str) -> dict[str, NDArray[Any]]:
        """A result, by column."""
        found = self._table(self._rows(query))
        return {name: _plain(found[name]) for name in found.column_names}

    def _rows(self, query: str) -> Any:
        # Spark fills in the frame for its name in braces; braces of regular expressions are doubled.
        text = query.replace("{", "{{").replace("}", "}}").replace("{{table}}", "{table}")
        return self._session.sql(text, table=self._frame)

    def _table(self, result: Any) -> Any:
        """Run a job. This is the only place where anything reaches the driver."""
        with _short_methods(self._session):
            return result.toArrow()

    def count(self, tables: Sequence[Counted], encoded: str, schema: Schema) -> list[Integers]:
        """Tables in one job.

        Tasks count with NumPy. Six tables of 20,736 cells over 3,000,000 rows took 2.3 s so, 5.3 s by GROUPING
        SETS and 13 s by exploding each row into its keys.
        """
        return self._totals(tables, encoded, schema)

    def add(self, row_sum: RowKernel, encoded: str, schema: Schema) -> Integers:
        """The sum over rows of moments, gradients or norms, in one job."""
        return self._totals([row_sum], encoded, schema)[0]

    def add_passes(self, row_sum: RowKernel, schema: Schema) -> int:
        """One."""
        return 1

    def check(self, row_sum: RowSum) -> None:
        """Refuse, from public facts, a result above the bound."""
        most = math.isqrt(RESULT_CELLS) - 1
        size = row_sum.size if isinstance(row_sum, FeatureRows) else len(row_sum.columns)
        if size > most:
            raise QueryError(
                f"moments and gradients take at most {most} columns or features, got {size}: ask about fewer"
            )

    def _totals(self, row_sums: Sequence[RowSum], encoded: str, schema: Schema) -> list[Integers]:
        needed = ColumnNeeds.from_row_sums(row_sums, schema)
        rows = self._rows(f"SELECT {', '.join(needed.fields)} FROM ({encoded}) AS e")
        return self._job(rows, row_sums, needed)

    def _job(self, rows: Any, row_sums: Sequence[RowSum], needed: ColumnNeeds) -> list[Integers]:
        work = _Shipped(partial(_task, row_sums=tuple(row_sums), codes=needed.codes, values=needed.values))
        with warnings.catch_warnings():
            # Spark warns of new versions of pandas wherever it might be used; here it is not.
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
            pairs = rows.mapInArrow(work, "place bigint, total bigint")
        found = self._table(pairs.groupBy("place").sum("total"))
        totals = [k.apply(_blank(needed.codes, needed.values)) for k in row_sums]
        flat = np.zeros(sum(t.size for t in totals), dtype=np.int64)
        flat[found.column(0).to_numpy()] = found.column(1).to_numpy()
        parts = np.split(flat, np.cumsum([t.size for t in totals])[:-1])
        return [part.reshape(total.shape) for part, total in zip(parts, totals, strict=True)]

    def _check_workers(self) -> None:
        """One empty task, so that an owner hears now what would otherwise fail after a query was charged."""
        try:
            row = self._session.range(1).selectExpr("CAST(id AS SMALLINT) AS c0")
            self._job(row, [CountRows(("a",), (1,))], ColumnNeeds({"a": "c0"}, {}))
        except Exception as error:
            raise OwnerError(
                "Spark could not run a task in Python; its workers need numpy and pyarrow, and the Python version "
                f"of this process: {first_line(error)}"
            ) from error


@contextmanager
def _short_methods(session: Any) -> Iterator[None]:
    """Set the limit for one job. It changes no result, so another thread may see it, and a session may refuse it."""
    name, limit = METHOD_LIMIT
    before = session.conf.get(name, None)
    with suppress(Exception):
        session.conf.set(name, limit)
    try:
        yield
    finally:
        with suppress(Exception):
            session.conf.unset(name) if before is None else session.conf.set(name, before)


def _by_place(frame: Any) -> Any:
    """The frame with its columns named x0, x1, ...; texts lose rules by which different texts are equal."""
    types = [kind for _, kind in frame.dtypes]
    names = [f"x{i}" for i in range(len(types))]
    plain = [f"CAST({n} AS STRING) AS {n}" if t.startswith("string ") else n for n, t in zip(names, types, strict=True)]
    return frame.toDF(*names).selectExpr(*plain)


def _plain(column: Any) -> NDArray[Any]:
    found: NDArray[Any] = (column.cast("double") if str(column.type).startswith("decimal") else column).to_numpy()
    return found


# --- what runs in a task --------------------------------------------------------------------------


class _Shipped:
    """A function that travels as its code: executors need numpy and pyarrow, but not this package."""

    def __init__(self, work: Any) -> None:
        from pyspark import cloudpickle

        modules = row_sums_module, sys.modules[__name__]
        with _REGISTRY:
            for module in modules:
                cloudpickle.register_pickle_by_value(module)
            try:
                self._code: bytes = cloudpickle.dumps(work)
            finally:
                for module in modules:
                    cloudpickle.unregister_pickle_by_value(module)

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Never called where the curator is."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return pickle.loads, (self._code,)


def _task(
    batches: Iterable[Any], row_sums: tuple[RowSum, ...], codes: dict[str, str], values: dict[str, str]
) -> Iterator[Any]:
    """Each row_sum's sum over the rows of one task, as pairs of a place and a sum that is not 0."""
    import pyarrow

    totals = [k.apply(_blank(codes, values)) for k in row_sums]
    for part in _parts(batches):
        rows = _rows(part, codes, values)
        for total, row_sum in zip(totals, row_sums, strict=True):
            np.add(total, row_sum.apply(rows), out=total)
    flat = np.concatenate([t.ravel() for t in totals])
    places = np.flatnonzero(flat)
    yield pyarrow.RecordBatch.from_arrays([pyarrow.array(places), pyarrow.array(flat[places])], ["place", "total"])


def _parts(batches: Iterable[Any]) -> Iterator[Any]:
    """Batches put together: a table of many cells is not worth going through for few rows."""
    import pyarrow

    held: list[Any] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= PART:
            yield pyarrow.Table.from_batches(held)
            held, rows = [], 0
    if held:
        yield pyarrow.Table.from_batches(held)


def _rows(part: Any, codes: dict[str, str], values: dict[str, str]) -> Rows:
    levels = {name: part[field].to_numpy() for name, field in codes.items()}
    return Rows(levels, {name: part[field].to_numpy() for name, field in values.items()}, None, part.num_rows)


def _blank(codes: Iterable[str], values: Iterable[str]) -> Rows:
    """No rows: a row_sum's sum over them has the right shape."""
    return Rows({n: np.zeros(0, np.uint16) for n in codes}, {n: np.zeros(0, np.int16) for n in values}, None, 0)
