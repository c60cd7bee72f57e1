"""Rows left where they are: every batch of tables is one query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from dpcurate.errors import QueryError
from dpcurate.private.noise import Randomness
from dpcurate.private.row_sums import Counted, CountRows, Integers, IntervalRows, RowSum
from dpcurate.private.sources.engine import RESULT_CELLS, Encoded, check_size
from dpcurate.private.sources.formulas import RowKernel
from dpcurate.private.sources.packing import Covers, Store, covers, cut, ordered, passes, turned
from dpcurate.schema import Schema

SMALL_DOMAIN = 1 << 22
"""If the whole public domain has at most so many cells, one table over all columns serves all queries."""
COVER_CELLS = 1 << 16
"""Otherwise tables are packed into covers of so many cells: few groups to a pass, each small enough to be fast."""


class PushedDown:
    """Rows that something else holds."""

    def __init__(self, encoded: Encoded, schema: Schema) -> None:
        self._encoded, self._schema = encoded, schema
        self._store = Store()
        self._made = 0

    @property
    def made(self) -> int:
        """Passes over the table so far."""
        return self._made

    def scan(self) -> None:
        """Read every cell once, so that a row that cannot be read is the owner's affair, not the analyst's."""
        self._made += 1
        check_size(self._encoded.scan())

    def totals(self, row_sums: Sequence[RowSum]) -> list[Integers]:
        """Each row_sum's sum over all rows."""
        tables = self._tables(row_sums)
        others = self._added([k for k in row_sums if not isinstance(k, Counted)])
        return [
            turned(tables[ordered(k)], k)
            if isinstance(k, CountRows)
            else tables[k]
            if isinstance(k, IntervalRows)
            else others[k]
            for k in row_sums
        ]

    def _added(self, row_sums: list[RowKernel]) -> dict[RowKernel, Integers]:
        self._made += self._encoded.add_passes(row_sums)
        return dict(zip(row_sums, self._encoded.add(row_sums), strict=True))

    def _tables(self, row_sums: Sequence[RowSum]) -> dict[Counted, Integers]:
        """Tables in order of name, each cut out of one that was stored or is read now; and numbers by interval."""
        wanted = {ordered(k) for k in row_sums if isinstance(k, CountRows)}
        found: dict[Counted, Integers] = {}
        for row_sum in wanted:
            held = self._store.find(row_sum)
            if held is not None:
                found[row_sum] = cut(self._store.get(held), held, row_sum)
        packed = self._covers({k for k in wanted if k not in found})
        for batch in passes([*packed, *_intervals(row_sums)], RESULT_CELLS):
            self._made += 1
            for cover, table in zip(batch, self._encoded.count(batch), strict=True):
                if isinstance(cover, IntervalRows):
                    found[cover] = table
                else:
                    found.update({k: cut(table, cover, k) for k in packed[cover]})
                    self._store.put(cover, table)
        return found

    def _covers(self, row_sums: set[CountRows]) -> Covers:
        """What has to be counted for these."""
        names = tuple(sorted(self._schema.names))
        whole = CountRows(names, self._schema.sizes(names))
        if not row_sums or whole.cells > SMALL_DOMAIN:
            return covers(row_sums, COVER_CELLS)
        return {whole: list(row_sums)}

    def passes(self, row_sums: Sequence[RowSum]) -> int:
        """How many passes `totals` would take now."""
        counts = {ordered(k) for k in row_sums if isinstance(k, CountRows)}
        missing = {k for k in counts if self._store.find(k) is None}
        others = [k for k in row_sums if not isinstance(k, Counted)]
        batches = passes([*self._covers(missing), *_intervals(row_sums)], RESULT_CELLS)
        return len(batches) + self._encoded.add_passes(others)

    def check(self, row_sum: RowSum) -> None:
        """Refuse, from public facts, what cannot be added up there."""
        self._encoded.check(row_sum)

    def check_sample(self) -> NoReturn:
        """Refused: the coins of a secret sample would have to be kept for every row."""
        raise QueryError(
            "this table stays where it is and its domain is too large to hold, so no secret sample can be drawn: "
            "load it into memory, or use a method without sub-sampling"
        )

    def sample(self, rate: int, randomness: Randomness) -> NoReturn:
        """Never reached by way of the queryable."""
        self.check_sample()


def _intervals(row_sums: Sequence[RowSum]) -> list[IntervalRows]:
    return list(dict.fromkeys(k for k in row_sums if isinstance(k, IntervalRows)))
