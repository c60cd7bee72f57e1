"""The parents that score best for a column among those before it in an order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dpcurate._typing import BoolArray, FloatArray
from dpcurate.learn.measure_once.blocks import Columns, members_of, sorted_set
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.order_search import BestParents
from dpcurate.learn.score.set_scores import SetScores

LEAST_GAIN = 1e-6
"""What a parent must bring, so that rounding decides nothing."""


@dataclass(frozen=True, slots=True)
class ParentSearch(BestParents):
    """Grows and shrinks sets of parents (Margaritis 2003) by a score, and remembers what it has seen."""

    scores: SetScores
    constraints: Constraints
    max_parents: int
    sets: dict[Columns, float] = field(default_factory=dict)
    rows: dict[tuple[int, Columns], FloatArray] = field(default_factory=dict)
    found: dict[tuple[int, int], tuple[Columns, float]] = field(default_factory=dict)

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return len(self.constraints.allowed)

    @property
    def against(self) -> float:
        """What an order loses for each required arrow that it would turn round: more than any score can gain."""
        return 1e4 * (1e5 + self.scores.rows)

    def best(self, column: int, before: int) -> tuple[Columns, float]:
        """The best parents found among these columns, a set of bits, and their score."""
        key = (column, before)
        if key not in self.found:
            self.found[key] = self._climb(column, members_of(before, self.columns))
        return self.found[key]

    def change(self, column: int, before: int, other: int) -> float:
        """How much that score changes if another column comes before, too."""
        return self.best(column, before | 1 << other)[1] - self.best(column, before)[1]

    def family(self, column: int, parents: Columns) -> float:
        """The score of a column with these parents."""
        return float(self._of([sorted_set(*parents, column)])[0] - self._of([parents])[0])

    def with_one_more(self, column: int, parents: Columns, candidates: BoolArray) -> FloatArray:
        """The score of a column with these parents and each candidate; the other entries mean nothing."""
        row = self.rows.setdefault((column, parents), np.full(self.columns, np.nan))
        missing = np.flatnonzero(candidates & np.isnan(row))
        row[missing] = -np.inf
        some = [int(x) for x in missing if self.scores.fits(sorted_set(*parents, column, int(x)))]
        if some:
            whole = self._of([sorted_set(*parents, column, x) for x in some])
            row[some] = whole - self._of([sorted_set(*parents, x) for x in some])
        return row

    def _of(self, sets: Sequence[Columns]) -> FloatArray:
        """The scores of sets of one size; those not seen before are asked for together."""
        missing = [columns for columns in sets if columns not in self.sets]
        if missing:
            self.sets.update(zip(missing, self.scores.of(missing).tolist(), strict=True))
        return np.array([self.sets[columns] for columns in sets])

    def _climb(self, column: int, earlier: BoolArray) -> tuple[Columns, float]:
        """Add the best parent, drop those that it makes needless, and again; every step raises the score."""
        parents, grown = self._required(column, earlier), True
        while grown:
            more = self._grown(column, parents, earlier & self.constraints.allowed[:, column])
            grown = more != parents
            parents = self._shrunk(column, more)
        wrong = int((earlier & self.constraints.against[:, column]).sum())
        return parents, self.family(column, parents) - self.against * wrong

    def _required(self, column: int, earlier: BoolArray) -> Columns:
        must = earlier & self.constraints.required[column] & self.constraints.allowed[:, column]
        return tuple(int(x) for x in np.flatnonzero(must))

    def _grown(self, column: int, parents: Columns, free: BoolArray) -> Columns:
        free[list(parents)] = False
        if len(parents) >= self.max_parents or not free.any():
            return parents
        row = np.where(free, self.with_one_more(column, parents, free), -np.inf)
        best = int(np.argmax(row))
        return sorted_set(*parents, best) if row[best] > self.family(column, parents) + LEAST_GAIN else parents

    def _shrunk(self, column: int, parents: Columns) -> Columns:
        while True:
            optional = [x for x in parents if not self.constraints.required[x, column]]
            fewer = [tuple(p for p in parents if p != x) for x in optional]
            best = max(fewer, key=lambda some: self.family(column, some), default=parents)
            if self.family(column, best) <= self.family(column, parents) + LEAST_GAIN:
                return parents
            parents = best
