"""Second moments of columns on a grid."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpcurate._typing import FloatArray, IntArray
from dpcurate.private.mechanisms import Sensitivity, root_up
from dpcurate.private.row_sums import MomentRows, RowSum
from dpcurate.private.statistics.base import Transformation, steps_of
from dpcurate.queries import Moments
from dpcurate.schema import GRID, Neighbours


@dataclass(frozen=True)
class MomentsTransformation(Transformation):
    """The sum of y y^T, y = (1, x), x in [-1, 1]; the upper triangle, the row count once.

    Guarantee: the released entries move by at most the stated sensitivity.
    Sensitivity: with d columns, S of them with squares of their own (not binary), add-remove
    L2^2 = 1 + d + d(d-1)/2 + S; replace L2^2 = (d + 1)^2 + S. With rows clipped to norm R:
    1 + R^2 + R^4, and 2 R^2 + 2 R^4 + 1/2 (4 R^2 if R^2 < 1/2).
    Proof: every entry of a row lies in [-1, 1]. Replace: margins and products are affine in each
    coordinate of either row, so the sum of their squared differences is largest at corners; if k
    coordinates differ there it is 4k + 4k(d-k) <= (d+1)^2; each square moves by at most 1. The
    count does not move. Clipped: margins have squared length at most R^2, the upper triangle of
    x x^T at most |x|^4; values are rounded toward zero, which shrinks both. Replace: with c = x . x'
    the squared distance is at most 2 R^2 - 2c + 2 R^4 - 2 c^2, largest at c = -1/2 or, if R^2 < 1/2, at -R^2.
    Cites: Dwork et al. 2014 (Analyze Gauss).
    """

    statistic: Moments

    @property
    def _steps(self) -> tuple[int, ...]:
        return steps_of(self.statistic.columns, self.schema)

    @property
    def row_sums(self) -> tuple[RowSum, ...]:
        return (MomentRows(self.statistic.columns, self._steps, self.statistic.clip),)

    @cached_property
    def _entries(self) -> list[tuple[int, int]]:
        """Upper triangle but for squares that equal the count."""
        d = len(self.statistic.columns)
        own = [self.statistic.clip is not None or step > 1 for step in self._steps]
        return [(i, j) for i in range(d + 1) for j in range(i, d + 1) if i != j or i == 0 or own[i - 1]]

    @property
    def _scale(self) -> list[int]:
        return [1, *(self._steps if self.statistic.clip is None else [GRID] * len(self._steps))]

    @property
    def units(self) -> tuple[Fraction, ...]:
        """An entry is in steps of its two columns' grids."""
        scale = self._scale
        return tuple(Fraction(scale[i] * scale[j]) for i, j in self._entries)

    def integers(self, totals: tuple[IntArray, ...]) -> tuple[IntArray, ...]:
        return tuple(totals[0][i, j : j + 1] for i, j in self._entries)

    def natural(self, parts: tuple[IntArray, ...]) -> tuple[FloatArray, ...]:
        """The whole symmetric matrix in natural units."""
        d, scale = len(self.statistic.columns), self._scale
        whole = np.full((d + 1, d + 1), np.nan)
        for (i, j), part in zip(self._entries, parts, strict=True):
            whole[i, j] = whole[j, i] = float(part[0]) / (scale[i] * scale[j])
        np.fill_diagonal(whole, np.where(np.isnan(np.diag(whole)), whole[0, 0], np.diag(whole)))
        return (whole,)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        d = len(self.statistic.columns) + 1
        return ((d, d),)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        d, entries = len(self.statistic.columns), len(self._entries)
        squares = sum(i == j for i, j in self._entries) - 1
        added = neighbours is Neighbours.ADD_REMOVE
        if self.statistic.clip is not None:
            r2 = Fraction(self.statistic.clip) ** 2
            swapped = 4 * r2 if 2 * r2 < 1 else 2 * r2 + 2 * r2 * r2 + Fraction(1, 2)
            l2 = 1 + r2 + r2 * r2 if added else swapped
            return Sensitivity(root_up(l2 * entries), l2)
        if added:
            return Sensitivity(Fraction(entries), Fraction(entries))
        moving = d + d * (d - 1) // 2
        return Sensitivity(Fraction(2 * moving + squares), Fraction((d + 1) ** 2 + squares))
