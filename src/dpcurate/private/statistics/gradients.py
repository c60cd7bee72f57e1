"""Gradients of a linear model, each row clipped, and how long they are."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcurate._typing import FloatArray, IntArray
from dpcurate.private.mechanisms import Sensitivity, root_up
from dpcurate.private.row_sums import GRADIENT_STEPS, GradientRows, NormRows, RowSum
from dpcurate.private.statistics.base import InOneCell, Transformation, steps_of
from dpcurate.queries import Gradient, GradientNorms
from dpcurate.schema import Neighbours


@dataclass(frozen=True)
class GradientTransformation(Transformation):
    """The sum of per-row gradient matrices, each clipped to Frobenius norm s.

    Guarantee: the d x d matrix moves by at most the stated sensitivity.
    Sensitivity: add-remove L2 = s, replace L2 = 2 s; L1 at most sqrt(d (d - 1)) times that.
    Proof: every row's matrix is scaled to norm at most s (1 - 1e-9), which covers floating-point
    error, and its entries are rounded toward zero, which only shrinks them. A row's matrix is
    computed from that row alone, in a fixed order of operations.
    Cites: Abadi et al. 2016, Section 3.
    """

    statistic: Gradient

    @property
    def row_sums(self) -> tuple[RowSum, ...]:
        s = self.statistic
        return (GradientRows(s.columns, steps_of(s.columns, self.schema), s.weights, float(s.clip)),)

    @property
    def units(self) -> tuple[Fraction, ...]:
        """The clip is a fixed number of steps."""
        return (GRADIENT_STEPS / Fraction(self.statistic.clip),)

    def natural(self, parts: tuple[IntArray, ...]) -> tuple[FloatArray, ...]:
        """In units of the gradient, with a zero diagonal."""
        whole: FloatArray = parts[0].astype(np.float64) * (float(self.statistic.clip) / GRADIENT_STEPS)
        np.fill_diagonal(whole, 0.0)
        return (whole,)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        d = len(self.statistic.columns)
        return ((d, d),)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        length = Fraction(self.statistic.clip) * (1 if neighbours is Neighbours.ADD_REMOVE else 2)
        d = len(self.statistic.columns)
        return Sensitivity(root_up(length * length * d * (d - 1)), length * length)


@dataclass(frozen=True)
class GradientNormsTransformation(InOneCell):
    """How many rows' gradient matrices have a norm in each public bin.

    Guarantee: the counts move by at most the stated sensitivity.
    Sensitivity: add-remove L1 = L2 = 1; replace L1 = 2, L2 = sqrt 2.
    Proof: a row's norm is computed from that row alone, in a fixed order of operations, so the row
    stands in exactly one bin; the rest is that of counts.
    Cites: Dwork and Roth 2014, Section 3.3; Andrew et al. 2021 for clipping at a private quantile.
    """

    statistic: GradientNorms

    @property
    def row_sums(self) -> tuple[RowSum, ...]:
        s = self.statistic
        return (NormRows(s.columns, steps_of(s.columns, self.schema), s.weights, s.edges),)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((len(self.statistic.edges) + 1,),)
