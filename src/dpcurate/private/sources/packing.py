"""Many tables in few passes: tables are packed into larger ones, and cut out of them again.

What is packed with what follows from the queries, the schema and the engine, never from rows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from dpcurate.private.row_sums import Counted, CountRows, Integers

STORE_BYTES = 1 << 28
"""Tables kept for queries to come."""
OPEN_COVERS = 8
"""How many covers a table is tried to be added to."""


def ordered(row_sum: CountRows) -> CountRows:
    """The same table with its columns in order of name: one table serves every order."""
    if all(a < b for a, b in pairwise(row_sum.columns)):
        return row_sum
    pairs = sorted(zip(row_sum.columns, row_sum.sizes, strict=True))
    return CountRows(tuple(c for c, _ in pairs), tuple(s for _, s in pairs))


Covers = dict[CountRows, list[CountRows]]
"""Tables to count, and for each the tables to be cut out of it; all with columns in order of name."""


def covers(row_sums: Iterable[CountRows], most_cells: int) -> Covers:
    """Few tables of at most so many cells (or as large as one asked for) that hold all tables asked for."""
    packed = _Packing(most_cells)
    for row_sum in _neighbours_together(sorted(row_sums, key=lambda k: k.columns), most_cells):
        packed.add(row_sum)
    return packed.covers


def _neighbours_together(row_sums: list[CountRows], most_cells: int) -> list[CountRows]:
    """An order in which tables over the same blocks of columns follow each other, the largest first."""
    widest = max((len(k.columns) for k in row_sums), default=1)
    space = max(2.0, most_cells ** (1 / max(widest, 1)))
    block: dict[str, int] = {}
    number, cells = 0, 1
    for name, size in sorted({pair for k in row_sums for pair in zip(k.columns, k.sizes, strict=True)}):
        cells *= size
        if cells > space:
            number, cells = number + 1, size
        block[name] = number
    return sorted(row_sums, key=lambda k: (-len(k.columns), [block[c] for c in k.columns]))


class _Packing:
    """Covers under construction."""

    def __init__(self, most_cells: int) -> None:
        self._most = most_cells
        self._columns: list[dict[str, int]] = []
        self._inside: list[list[CountRows]] = []
        self._holding: dict[str, int] = {}  # for every column the set of covers that hold it, as bits

    @property
    def covers(self) -> Covers:
        """The covers and what they hold."""
        found = zip(self._columns, self._inside, strict=True)
        return {CountRows(tuple(sorted(c)), tuple(c[n] for n in sorted(c))): inside for c, inside in found}

    def add(self, row_sum: CountRows) -> None:
        """Into a cover that holds it, or one that grows least, or a new one."""
        wanted = dict(zip(row_sum.columns, row_sum.sizes, strict=True))
        where = self._holder(row_sum.columns)
        if where is None:
            where = self._roomy(wanted)
            self._columns[where] |= wanted
            for name in wanted:
                self._holding[name] = self._holding.get(name, 0) | 1 << where
        self._inside[where].append(row_sum)

    def _holder(self, columns: tuple[str, ...]) -> int | None:
        both = (1 << len(self._columns)) - 1
        for name in columns:
            both &= self._holding.get(name, 0)
        return both.bit_length() - 1 if both else None

    def _roomy(self, wanted: dict[str, int]) -> int:
        last = range(max(0, len(self._columns) - OPEN_COVERS), len(self._columns))
        sizes = {i: _cells(self._columns[i] | wanted) for i in last}
        fitting = [i for i in last if sizes[i] <= self._most]
        if fitting:
            return min(fitting, key=lambda i: (sizes[i] / _cells(self._columns[i]), i))
        self._columns.append({})
        self._inside.append([])
        return len(self._columns) - 1


def _cells(sizes: dict[str, int]) -> int:
    total = 1
    for size in sizes.values():
        total *= size
    return total


def passes(tables: Sequence[Counted], most_cells: int) -> list[list[Counted]]:
    """Tables in batches, so that no batch's result has more than so many cells."""
    batches: list[list[Counted]] = []
    space = 0
    for table in tables:
        if not batches or table.cells > space:
            batches.append([])
            space = most_cells
        batches[-1].append(table)
        space -= table.cells
    return batches


def cut(table: Integers, cover: CountRows, row_sum: CountRows) -> Integers:
    """A table cut out of one over more columns (both in order of name)."""
    others = tuple(i for i, name in enumerate(cover.columns) if name not in row_sum.columns)
    return np.asarray(table.sum(axis=others, dtype=np.int64)) if others else table


def turned(table: Integers, row_sum: CountRows) -> Integers:
    """A table in order of name, turned to the order asked for."""
    order = sorted(range(len(row_sum.columns)), key=lambda i: row_sum.columns[i])
    return table.transpose(np.argsort(order)) if order != list(range(len(order))) else table


class Store:
    """Tables already read; the least used go first. A table is found in any that holds its columns."""

    def __init__(self) -> None:
        self._tables: OrderedDict[CountRows, Integers] = OrderedDict()
        self._bytes = 0

    def __contains__(self, row_sum: CountRows) -> bool:
        return row_sum in self._tables

    def find(self, row_sum: CountRows) -> CountRows | None:
        """The smallest stored table that holds the columns of this one (in order of name)."""
        if row_sum in self._tables:
            return row_sum
        wanted = set(row_sum.columns)
        holding = [k for k in self._tables if k.cells >= row_sum.cells and wanted.issubset(k.columns)]
        return min(holding, key=lambda k: k.cells, default=None)

    def get(self, cover: CountRows) -> Integers:
        """A stored table."""
        self._tables.move_to_end(cover)
        return self._tables[cover]

    def put(self, row_sum: CountRows, table: Integers) -> None:
        """Keep a table."""
        self._bytes += table.nbytes
        self._tables[row_sum] = table
        while self._bytes > STORE_BYTES and len(self._tables) > 1:
            self._bytes -= self._tables.popitem(last=False)[1].nbytes
