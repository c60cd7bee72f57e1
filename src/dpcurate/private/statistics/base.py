"""What a transformation is: integers from sums over rows, with a sensitivity and the proof of it."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpcurate.private.mechanisms import Sensitivity
from dpcurate.private.row_sums import CountRows, Integers, RowSum
from dpcurate.queries import Statistic
from dpcurate.schema import Neighbours, Schema

ONE_CELL = {
    Neighbours.ADD_REMOVE: Sensitivity(Fraction(1), Fraction(1)),
    Neighbours.REPLACE: Sensitivity(Fraction(2), Fraction(2)),
}
"""A row stands in one cell of a table: adding it moves one cell by 1, replacing it two."""


class Transformation(Protocol):
    """What a statistic needs, how it is computed in integers, and how far a row can move it."""

    proved: bool

    @property
    def statistic(self) -> Statistic:
        """What was asked for."""

    @property
    def row_sums(self) -> tuple[RowSum, ...]:
        """The sums over rows it needs."""

    @property
    def units(self) -> tuple[Fraction, ...]:
        """For each part, integer steps per natural unit of the (weighted) statistic."""

    def integers(self, totals: tuple[Integers, ...]) -> tuple[Integers, ...]:
        """The parts as integers."""

    def natural(self, parts: tuple[Integers, ...]) -> tuple[NDArray[np.float64], ...]:
        """The parts as the analyst sees them."""

    def weights(self) -> tuple[float, ...]:
        """For each part, what its noise is divided by."""

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """How far one row can move the statistic under a relation."""


def table_of(columns: tuple[str, ...], schema: Schema) -> CountRows:
    """The counts over some columns."""
    return CountRows(columns, schema.sizes(columns))


class InOneCell:
    """What statistics share in which a row stands in exactly one cell."""

    @property
    def units(self) -> tuple[Fraction, ...]:
        return (Fraction(1),)

    def integers(self, totals: tuple[Integers, ...]) -> tuple[Integers, ...]:
        return totals

    def natural(self, parts: tuple[Integers, ...]) -> tuple[NDArray[np.float64], ...]:
        return (parts[0].astype(np.float64),)

    def weights(self) -> tuple[float, ...]:
        return (1.0,)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        return ONE_CELL[neighbours]
