"""A table of one site as a part of the table of all sites: with a column that says which site a row is from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcurate._typing import IntArray
from dpcurate.errors import QueryError
from dpcurate.private.noise import Randomness
from dpcurate.private.row_sums import CountRows, FeatureNormRows, FeatureRows, Integers, Lookup, MomentRows, RowSum
from dpcurate.private.sources.engine import Source


@dataclass(frozen=True, slots=True)
class WithSite:
    """A source whose rows all have one level in a column that the table does not have.

    Every sum is the integers of a table with that column: a table of counts is a slice, features of the level are
    constants that go with another column's, and moments are a linear map of those without the column.
    """

    source: Source
    column: str
    place: int
    sites: int

    @property
    def made(self) -> int:
        """Passes over the table so far."""
        return self.source.made

    def check(self, row_sum: RowSum) -> None:
        """Refuse, from public facts, what cannot be added up here."""
        self.source.check(self._without(row_sum))

    def check_sample(self) -> None:
        """No sample is drawn of a part of a table."""
        raise QueryError("a secret sample is of one table's rows, not of several sites'")

    def sample(self, rate: int, randomness: Randomness) -> Source:
        """Refused."""
        raise QueryError("a secret sample is of one table's rows, not of several sites'")

    def passes(self, row_sums: Sequence[RowSum]) -> int:
        """How many passes `totals` would take now."""
        return self.source.passes(list(dict.fromkeys(map(self._without, row_sums))))

    def totals(self, row_sums: Sequence[RowSum]) -> list[Integers]:
        """Each sum over all rows."""
        asked = list(dict.fromkeys(map(self._without, row_sums)))
        found = dict(zip(asked, self.source.totals(asked), strict=True))
        return [self._within(row_sum, found[self._without(row_sum)]) for row_sum in row_sums]

    def _without(self, row_sum: RowSum) -> RowSum:
        """What is asked of the table in its place."""
        if self.column not in row_sum.columns:
            return row_sum
        if isinstance(row_sum, CountRows):
            kept = [i for i, name in enumerate(row_sum.columns) if name != self.column]
            return CountRows(tuple(row_sum.columns[i] for i in kept), tuple(row_sum.sizes[i] for i in kept))
        if isinstance(row_sum, MomentRows) and row_sum.clip is None and len(row_sum.columns) > 1:
            kept = [i for i, name in enumerate(row_sum.columns) if name != self.column]
            return MomentRows(tuple(row_sum.columns[i] for i in kept), tuple(row_sum.steps[i] for i in kept), None)
        if isinstance(row_sum, FeatureRows | FeatureNormRows) and len(row_sum.lookups) > 1:
            return replace(row_sum, lookups=self._lookups(row_sum.lookups))
        raise QueryError(
            f"this statistic with the column {self.column!r} cannot be put together from sites: pool them without it "
            "(site=None)"
        )

    def _lookups(self, lookups: tuple[Lookup, ...]) -> tuple[Lookup, ...]:
        """The other columns' features, the last column's followed by those of this site's level."""
        (mine,) = (one.vectors[self.place] for one in lookups if one.column == self.column)
        *others, last = (one for one in lookups if one.column != self.column)
        return *others, replace(last, vectors=tuple((*vector, *mine) for vector in last.vectors))

    def _within(self, row_sum: RowSum, found: IntArray) -> IntArray:
        if self.column not in row_sum.columns or isinstance(row_sum, FeatureNormRows):
            return found
        if isinstance(row_sum, CountRows):
            whole = np.zeros(row_sum.sizes, dtype=np.int64)
            whole[tuple(self.place if name == self.column else slice(None) for name in row_sum.columns)] = found
            return whole
        if isinstance(row_sum, MomentRows):
            turn = self._moments(row_sum)
            return turn @ found @ turn.T
        assert isinstance(row_sum, FeatureRows)
        order = self._order(row_sum.lookups)
        return found[np.ix_(order, order)]

    def _moments(self, row_sum: MomentRows) -> IntArray:
        """From (1, own columns) to (1, all columns): the level is as many steps for every row."""
        turn = np.zeros((len(row_sum.columns) + 1, len(row_sum.columns)), dtype=np.int64)
        turn[0, 0] = 1
        place = 1
        for row, (name, steps) in enumerate(zip(row_sum.columns, row_sum.steps, strict=True), start=1):
            if name == self.column:
                turn[row, 0] = 2 * self.place - steps
            else:
                turn[row, place] = 1
                place += 1
        return turn

    def _order(self, lookups: tuple[Lookup, ...]) -> list[int]:
        """Where each feature, and first the 1, is in what the table was asked."""
        sizes = [len(one.vectors[0]) for one in lookups]
        own = sum(size for one, size in zip(lookups, sizes, strict=True) if one.column != self.column)
        order, place = [0], 1
        for one, size in zip(lookups, sizes, strict=True):
            if one.column == self.column:
                order += range(own + 1, own + 1 + size)
            else:
                order += range(place, place + size)
                place += size
        return order
