"""Rows held in memory, collapsed to distinct ones where that is smaller."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcurate.private.noise import Randomness
from dpcurate.private.row_sums import CountRows, Integers, Rows, RowSum, mixed_radix
from dpcurate.private.sources.encode import code_name, value_name
from dpcurate.private.sources.engine import check_size
from dpcurate.private.sources.packing import Store, covers, cut, ordered, turned
from dpcurate.schema import Numeric, Schema

COVER_CELLS = 1 << 12
COVER_ROWS = 1 << 15
"""Below so many rows a table is counted sooner than it is cut out of a larger one."""
PART = 1 << 20
"""Rows counted at a time: keys that stay in the cache, and memory that does not grow with the rows."""
MANY = 1 << 22
"""Keys to count from which on a second thread pays."""
SMALL_DOMAIN = 1 << 20
SORTABLE_DOMAIN = 1 << 62
"""Rows are tried for collapsing if their combinations of codes fit into one integer."""


class InMemory:
    """Rows held in memory."""

    def __init__(self, rows: Rows, made: int = 0) -> None:
        self._rows, self._made = rows, made
        self._threads = _processors()
        self._store = Store()

    @property
    def made(self) -> int:
        """Passes over the table: one at most, when it was opened."""
        return self._made

    def totals(self, row_sums: Sequence[RowSum]) -> list[Integers]:
        """Each row_sum's sum over all rows."""
        tables = self._tables({ordered(k) for k in row_sums if isinstance(k, CountRows)})
        return [turned(tables[ordered(k)], k) if isinstance(k, CountRows) else k.apply(self._rows) for k in row_sums]

    def _tables(self, wanted: set[CountRows]) -> dict[CountRows, Integers]:
        found = {k: self._store.get(k) for k in wanted if k in self._store}
        missing = [k for k in wanted if k not in found]
        for row_sum, table in self._counted(missing):
            found[row_sum] = table
            self._store.put(row_sum, table)
        return found

    def _counted(self, row_sums: list[CountRows]) -> Iterator[tuple[CountRows, Integers]]:
        """Count few tables and cut the others out of them."""
        large = self._rows.size >= COVER_ROWS
        packed = covers(row_sums, COVER_CELLS) if large else {k: [k] for k in row_sums}

        def tables(some: Sequence[CountRows]) -> list[tuple[CountRows, Integers]]:
            whole = [(cover, self._count(cover)) for cover in some]
            return [(row_sum, cut(table, cover, row_sum)) for cover, table in whole for row_sum in packed[cover]]

        one_part = self._rows.size <= PART  # of more parts each is counted by all threads
        threads = self._threads if one_part and self._rows.size * len(packed) >= MANY else 1
        for some in _in_threads(tables, list(packed), threads):
            yield from some

    def _count(self, row_sum: CountRows) -> Integers:
        rows = self._rows
        if rows.size <= PART or row_sum.cells > PART:
            return row_sum.apply(rows)

        def counted(starts: Sequence[int]) -> Integers:
            total = np.zeros(row_sum.sizes, dtype=np.int64)
            for start in starts:
                total += row_sum.apply(rows.part(start, start + PART))
            return total

        parts = _in_threads(counted, range(0, rows.size, PART), self._threads)
        return sum(parts, start=np.zeros(row_sum.sizes, dtype=np.int64))

    def passes(self, row_sums: Sequence[RowSum]) -> int:
        """None: the table was read when it was opened."""
        return 0

    def check(self, row_sum: RowSum) -> None:
        """Rows in memory can be added up in any way."""

    def check_sample(self) -> None:
        """Rows in memory can be sampled."""

    def sample(self, rate: int, randomness: Randomness) -> InMemory:
        """Every row stays with its own coin."""
        rows = self._rows
        weights = np.ones(rows.size, dtype=np.int64) if rows.weights is None else rows.weights
        kept = randomness.thin(weights, rate)
        some = np.flatnonzero(kept)
        codes = {name: column[some] for name, column in rows.codes.items()}
        values = {name: column[some] for name, column in rows.values.items()}
        return InMemory(Rows(codes, values, kept[some], len(some)))


def _processors() -> int:
    """How many processors this process may use; only Linux says, others tell how many there are."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count() or 1


def _in_threads(work: Callable[[Sequence[Any]], Any], items: Sequence[Any], threads: int) -> list[Any]:
    """Share items out among threads; NumPy counts without holding the interpreter's lock."""
    pieces = [items[i::threads] for i in range(min(threads, len(items)))]
    if len(pieces) > 1:
        with suppress(RuntimeError), ThreadPoolExecutor(threads) as pool:  # the system may refuse more threads
            futures = [pool.submit(work, piece) for piece in pieces]
            return [future.result() for future in futures]
    return [work(piece) for piece in pieces]


# --- from a query's result to rows ----------------------------------------------------------------


def rows_of(columns: Mapping[str, NDArray[Any]], schema: Schema) -> Rows:
    """Named arrays of an encoded table as rows."""
    codes = {c.name: _codes(columns[code_name(schema, c.name)], c.size) for c in schema.columns}
    values = {
        c.name: np.ascontiguousarray(columns[value_name(schema, c.name)])
        for c in schema.columns
        if isinstance(c, Numeric)
    }
    rows = Rows(codes, values, None, len(codes[schema.names[0]]))
    check_size(rows.total)
    return rows


def _codes(codes: NDArray[Any], size: int) -> NDArray[np.unsignedinteger]:
    """In the smallest type that holds them."""
    return np.ascontiguousarray(codes, np.uint8 if size <= 256 else np.uint16)


def collapsed(rows: Rows, schema: Schema) -> Rows:
    """Distinct rows with weights, if those are at most half as many."""
    sizes = schema.sizes(schema.names)
    if rows.values or rows.size == 0 or math.prod(sizes) > SORTABLE_DOMAIN:
        return rows
    keys = mixed_radix([rows.codes[n] for n in schema.names], sizes)
    if _mostly_different(keys):
        return rows
    found, weights = _distinct(keys, math.prod(sizes))
    return from_keys(found, weights, schema) if len(found) <= rows.size / 2 else rows


def _mostly_different(keys: NDArray[np.unsignedinteger]) -> bool:
    """Whether a first look says that sorting them all is not worth it."""
    some = keys[: 1 << 14]
    return len(np.unique(some)) > 0.9 * len(some)


def _distinct(keys: NDArray[np.unsignedinteger], cells: int) -> tuple[NDArray[Any], Integers]:
    if cells > SMALL_DOMAIN:
        found, weights = np.unique(keys, return_counts=True)
        return found, weights.astype(np.int64)
    counts = np.bincount(keys, minlength=cells)
    some = np.flatnonzero(counts)
    return some, counts[some].astype(np.int64)


def from_keys(keys: NDArray[Any], weights: Integers, schema: Schema) -> Rows:
    """Distinct rows from their places in the table over all columns."""
    codes = {}
    for column in reversed(schema.columns):
        keys, code = np.divmod(keys, keys.dtype.type(column.size))
        codes[column.name] = _codes(code, column.size)
    check_size(int(weights.sum()))
    return Rows({n: codes[n] for n in schema.names}, {}, weights, len(weights))
