"""What the search must know of the data, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Protocol

import numpy as np

from dpcurate._typing import BoolArray, FloatArray
from dpcurate.learn.measure_once.blocks import Columns

Row = tuple[int, Columns]
"""A column, and what is given: its evidence with every other column is wanted."""
One = tuple[int, int, Columns]
"""A column, one other, and what is given."""


class DependenceEvidence(Protocol):
    """How strongly what was released speaks for dependences.

    Evidence is a log Bayes factor: the log of how much more likely the answers are if a and b depend on
    each other given S than if they do not. Added to prior log odds it gives log odds. 0 says nothing.
    """

    measured: BoolArray
    """A symmetric matrix over columns: which pairs there is evidence about (the diagonal is false)."""

    least_separation: float = -inf
    """The log evidence of independence that some set must reach for a triple to say anything of directions."""

    def row(self, column: int, given: Columns) -> FloatArray:
        """The evidence of every other column with `column` given a set; 0 for its members and unmeasured pairs."""

    def one(self, column: int, other: int, given: Columns) -> float:
        """That of one other column alone, which is much quicker than a whole row."""

    def many(self, rows: Sequence[Row], ones: Sequence[One]) -> tuple[list[FloatArray], list[float]]:
        """Many of both; some kinds of evidence are quicker together."""
        return [self.row(*key) for key in rows], [self.one(*key) for key in ones]

    def without_misfit(self, *weaker: float) -> DependenceEvidence:
        """The same, but what a regression may miss counts as dependence, and so do effects of weaker sizes."""
        return self

    def interactions(self, asked: Sequence[tuple[int, int, Columns]]) -> list[float]:
        """The evidence that a and b depend on each other in another way at other levels of a set; 0 says nothing."""
        return [0.0] * len(asked)

    def weak(self) -> BoolArray:
        """Pairs whose dependence is so weak that products of other columns may be all of it; see `confidence.py`."""
        return np.zeros_like(self.measured)

    def cells(self, given: Columns) -> int:
        """Of the table that is made of a set; 1 if no tables are made."""
        return 1
