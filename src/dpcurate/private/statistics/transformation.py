"""What a transformation is: integers from sums over rows, with a sensitivity and the proof of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpcurate._typing import FloatArray, IntArray
from dpcurate.private.mechanisms import Sensitivity
from dpcurate.private.row_sums import CountRows, RowSum
from dpcurate.queries import Quantile, Statistic
from dpcurate.schema import Neighbours, Schema

ONE_CELL = {
    Neighbours.ADD_REMOVE: Sensitivity(Fraction(1), Fraction(1)),
    Neighbours.REPLACE: Sensitivity(Fraction(2), Fraction(2)),
}
"""A row stands in one cell of a table: adding it moves one cell by 1, replacing it two."""


@dataclass(frozen=True)
class Transformation(ABC):
    """What a statistic needs, how it is computed in integers, and how far a row can move it."""

    statistic: Statistic | Quantile
    schema: Schema
    proved: ClassVar[bool] = True

    @property
    @abstractmethod
    def row_sums(self) -> tuple[RowSum, ...]:
        """The sums over rows it needs."""

    @property
    @abstractmethod
    def units(self) -> tuple[Fraction, ...]:
        """For each part, integer steps per natural unit of the (weighted) statistic."""

    @abstractmethod
    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """How far one row can move the statistic under a relation."""

    def integers(self, totals: tuple[IntArray, ...]) -> tuple[IntArray, ...]:
        """The parts as integers."""
        return totals

    def natural(self, parts: tuple[IntArray, ...]) -> tuple[FloatArray, ...]:
        """The parts as the analyst sees them."""
        return tuple(part.astype(np.float64) for part in parts)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each part of an answer."""
        return tuple(one.sizes for one in self.row_sums if isinstance(one, CountRows))

    def weights(self) -> tuple[float, ...]:
        """For each part of the answer, what its noise is divided by."""
        return (1.0,) * len(self.shapes)


class InOneCell(Transformation):
    """What statistics share in which a row stands in exactly one cell."""

    @property
    def units(self) -> tuple[Fraction, ...]:
        """Integer steps in one natural unit, for each part."""
        return (Fraction(1),)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """How far one row can move the statistic."""
        return ONE_CELL[neighbours]


def table_of(columns: tuple[str, ...], schema: Schema) -> CountRows:
    """The counts over some columns, which must have levels."""
    schema.check_levels(columns, "a table of counts")
    return CountRows(columns, schema.sizes(columns))


def steps_of(columns: tuple[str, ...], schema: Schema) -> tuple[int, ...]:
    """Integer steps of each column between 0 and the end of its range."""
    return tuple(schema[c].steps for c in columns)
