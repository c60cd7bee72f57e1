"""Dask: every partition is encoded and added up where it is, and only totals come back.

A task is a pure function of one partition, so one that is lost and run again counts nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

import numpy as np

from dpcurate.errors import OwnerError
from dpcurate.private.row_sums import Counted, CountRows, Integers, Rows, RowSum
from dpcurate.private.sources import duck, owner_report
from dpcurate.private.sources.encode import capped_sql, encoded_sql, people_sql
from dpcurate.private.sources.engine import kinds_of
from dpcurate.private.sources.formulas import RowKernel
from dpcurate.private.sources.in_memory import rows_of
from dpcurate.private.sources.persons import REMEDY, RULE, check_stored, plain_ids, untyped
from dpcurate.schema import Schema

FAN_IN = 8
"""Totals added by one task, so that what a worker holds does not grow with the number of partitions."""


def open_dask(table: Any, schema: Schema) -> DaskRows:
    """A Dask frame, left where its partitions are."""
    from dask.dataframe import DataFrame

    if not isinstance(table, DataFrame):
        raise OwnerError(f"a Dask {type(table).__name__} could not be opened: pass a Dask DataFrame")
    with _opened(table._meta, schema) as engine:
        kinds_of(engine, schema)
    return DaskRows(table[[c for c in table.columns if str(c) in _wanted(schema)]], schema)


def repeated_in(table: Any, column: str) -> owner_report.IdLook:
    """How often the ids of a Dask frame's column repeat. LOOKS AT THE DATA."""
    ids = table[next(name for name in table.columns if str(name) == column)]
    counts = ids.dropna().value_counts().compute()
    return owner_report.IdLook(column, len(counts), int(counts.sum()), int(counts.max()) if len(counts) else 0)


class DaskRows:
    """Encoded rows in the partitions of a Dask frame."""

    def __init__(self, frame: Any, schema: Schema) -> None:
        self._schema, self._given = schema, frame.to_delayed()
        self._parts = self._given if schema.person is None else _by_person(frame, schema).to_delayed()

    def scan(self) -> int:
        """Read every cell once; the number of rows."""
        return int(self._totals([CountRows((), ())])[0])

    def count(self, tables: Sequence[Counted]) -> list[Integers]:
        """Tables in one pass."""
        return self._totals(tables)

    def add(self, row_sums: Sequence[RowKernel]) -> list[Integers]:
        """The sums over rows of moments, gradients or norms, in one pass."""
        return self._totals(row_sums) if row_sums else []

    def add_passes(self, row_sums: Sequence[RowKernel]) -> int:
        """How many passes `add` takes."""
        return 1 if row_sums else 0

    def check(self, row_sum: RowSum) -> None:
        """Tasks can add up anything."""

    def look(self) -> list[int]:
        """What `owner_report.look` finds, in all partitions. LOOKS AT THE DATA."""
        return [int(n) for n in _added(self._given, _look, self._schema)[0]]

    def _totals(self, row_sums: Sequence[RowSum]) -> list[Integers]:
        return _added(self._parts, _totals, (tuple(row_sums), self._schema))


def _added(parts: Sequence[Any], work: Callable[[Any, Any], list[Integers]], asked: Any) -> list[Integers]:
    """What the work finds in each part, added up in a tree of tasks."""
    from dask.delayed import delayed

    shared = delayed(asked, traverse=False)  # sent once, not once a part
    found = [delayed(work)(part, shared) for part in parts]
    while len(found) > 1:
        found = [delayed(_sum)(found[i : i + FAN_IN]) for i in range(0, len(found), FAN_IN)]
    total: list[Integers] = found[0].compute()
    return total


def _wanted(schema: Schema) -> list[str]:
    return [*schema.names, *([schema.person.column] if schema.person else [])]


def _by_person(frame: Any, schema: Schema) -> Any:
    """Encoded rows, all those of a person in one partition.

    They are sent by the person's text, which is the same wherever the row was.
    """
    assert schema.person is not None
    _check_one_kind(frame, schema.person.column)
    # By tasks, not by files that a repeated task would write to twice.
    kept = frame.map_partitions(_kept, schema, meta=_kept(frame._meta, schema), enforce_metadata=False)
    return kept.shuffle(on="person", shuffle_method="tasks")


def _check_one_kind(frame: Any, person: str) -> None:
    """Partitions may store ids in different types, but not whole numbers here and texts there."""
    ids = frame[[c for c in frame.columns if str(c) == person]].to_delayed()
    (found,) = _added(ids, _id_kinds, person)
    if all(found):
        raise OwnerError(
            f"column {person!r} names persons and holds whole numbers in some partitions and text in others; "
            f"{RULE}: {REMEDY}"
        )


# --- what a worker does ----------------------------------------------------------------------------


@contextmanager
def _opened(part: Any, schema: Schema | None) -> Iterator[duck.Duck]:
    """A partition in a connection of its own; how many work at a time is for Dask to say."""
    engine = duck.open_frame(part, schema)
    try:
        engine.connection.execute("SET threads = 1")
        yield engine
    finally:
        engine.connection.close()


def _totals(part: Any, asked: tuple[tuple[RowSum, ...], Schema]) -> list[Integers]:
    row_sums, schema = asked
    rows = _rows(part, schema)
    return [row_sum.apply(rows) for row_sum in row_sums]


def _sum(found: list[list[Integers]]) -> list[Integers]:
    return [reduce(np.add, totals) for totals in zip(*found, strict=True)]


def _look(part: Any, schema: Schema) -> list[Integers]:
    with _opened(part, schema) as engine:
        return [np.array(owner_report.look(engine, schema, kinds_of(engine, schema)), dtype=np.int64)]


def _ids(part: Any, person: str) -> Any:
    return next(part[name] for name in part.columns if str(name) == person)


def _id_kinds(part: Any, person: str) -> list[Integers]:
    """Whether a partition holds whole numbers, and whether it holds texts, as ids."""
    kind, column = None, _ids(part, person)
    if column.notna().any():
        _check_not_converted(person, column)
    if untyped(column):
        kind = plain_ids(person, column)[1]
    elif column.notna().any():
        with _opened(part, None) as engine:
            kind = check_stored(person, engine.stored()[person])
    return [np.array([kind == "whole", kind == "text"], dtype=np.int64)]


def _check_not_converted(person: str, ids: Any) -> None:
    """Refuse the type to which Dask converts objects, because 7, 7.0 and '7' are then one name or three."""
    stored = ids.cat.categories.dtype if hasattr(ids, "cat") else ids.dtype
    if str(stored).startswith("string"):  # pandas' own type of texts is `str`
        raise OwnerError(
            f"column {person!r} names persons and is stored as {stored}, to which Dask converts objects of any kind; "
            f"{RULE}: {REMEDY}. Text needs a frame created under dask.config.set({{'dataframe.convert-string': False}})"
        )


def _rows(part: Any, schema: Schema) -> Rows:
    """A partition's rows: of the given frame, or of encoded rows gathered by person."""
    with _opened(part, None) as engine:
        if schema.person is None:
            encoded = encoded_sql(engine.relation, schema, kinds_of(engine, schema), engine.dialect)
        else:
            encoded = capped_sql(f"SELECT * FROM {engine.relation}", schema)
        return rows_of(engine.fetch(encoded), schema)


def _kept(part: Any, schema: Schema) -> Any:
    """A partition's encoded rows, with persons as texts. One that names nobody may have been given any type."""
    assert schema.person is not None
    somebody = _ids(part, schema.person.column).notna().any()
    with _opened(part if somebody else part.astype(object), schema) as engine:
        kept = people_sql(engine.relation, schema, kinds_of(engine, schema), engine.dialect)
        texts = f"SELECT * REPLACE (CAST(person AS VARCHAR) AS person) FROM ({kept}) AS k WHERE person IS NOT NULL"
        return engine.connection.execute(texts).df().astype({"person": object})
