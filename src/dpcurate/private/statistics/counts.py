"""Counts of one set of columns, and of many."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dpcurate.private.mechanisms import Sensitivity
from dpcurate.private.row_sums import RowSum
from dpcurate.private.statistics.base import InOneCell, Transformation, table_of
from dpcurate.queries import Counts, Tables
from dpcurate.schema import Neighbours


@dataclass(frozen=True)
class CountsTransformation(InOneCell):
    """Counts over the full public domain.

    Guarantee: the statistic's integers move by at most the stated sensitivity.
    Sensitivity: add-remove L1 = L2 = 1; replace L1 = 2, L2 = sqrt 2.
    Proof: a row stands in exactly one cell. Adding it raises that cell by 1; replacing it lowers
    one cell by 1 and raises another by 1, or changes nothing.
    Cites: Dwork and Roth 2014, Section 3.3.
    """

    statistic: Counts

    @property
    def row_sums(self) -> tuple[RowSum, ...]:
        return (table_of(self.statistic.columns, self.schema),)


@dataclass(frozen=True)
class TablesTransformation(Transformation):
    """Counts of each of k sets of columns, one after the other.

    Guarantee: all the integers together move by at most the stated sensitivity.
    Sensitivity: add-remove L1 = L2^2 = k; replace L1 = L2^2 = 2 m, with m the number of sets that are
    not empty. Exact but for the row count alone, which is treated as counts are.
    Proof: tables are separate coordinates, so L1 lengths and squares of L2 lengths add. Each is moved
    as counts are: adding a row raises one cell of every table by 1 (the empty set's cell is the row
    count). Replacing it moves two cells of a table by 1, or none; the row count stays. Two rows that
    differ in every column move every other table, so nothing smaller would do.
    Cites: Dwork and Roth 2014, Section 3.3; Barak et al. 2007 for sets of tables.
    """

    statistic: Tables

    @cached_property
    def row_sums(self) -> tuple[RowSum, ...]:
        return tuple(table_of(s, self.schema) for s in self.statistic.sets)

    @cached_property
    def units(self) -> tuple[Fraction, ...]:
        return (Fraction(1),) * len(self.statistic.sets)

    def weights(self) -> tuple[float, ...]:
        return (1.0,) * len(self.statistic.sets)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        if neighbours is Neighbours.ADD_REMOVE:
            moved = Fraction(len(self.statistic.sets))
        else:
            moved = Fraction(2 * max(1, sum(map(bool, self.statistic.sets))))  # noise needs a scale
        return Sensitivity(moved, moved)
