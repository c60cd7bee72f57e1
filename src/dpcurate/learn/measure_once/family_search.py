"""The best parents of a column among those that come before it in an order.

A graph's score is the sum over columns y of

    (number of parents) * log prior odds of an edge - sum over x before y that is no parent of
    the evidence that x and y depend on each other given y's parents:

every pair left unconnected must be explained by the parents of its later column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import log

import numpy as np

from dpcurate.arrays import FloatArray
from dpcurate.learn.measure_once.blocks import Columns, sorted_set
from dpcurate.learn.measure_once.constants import Constants
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.evidence import DependenceEvidence

AGAINST_KNOWLEDGE = 1e9
"""What an order loses in score for each required arrow that it would turn round: more than any evidence."""


@dataclass(frozen=True, slots=True)
class FamilySearch:
    """Finds parents by greedy moves; `before` is a 0/1 vector over columns. Remembers what it found."""

    evidence: DependenceEvidence
    constraints: Constraints
    constants: Constants
    edge_log_odds: float
    rows: dict[tuple[int, Columns], FloatArray] = field(default_factory=dict)
    found: dict[tuple[int, int], tuple[Columns, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, evidence: DependenceEvidence, constraints: Constraints, constants: Constants) -> FamilySearch:
        """With prior odds from the expected number of neighbours."""
        odds = min(0.5, constants.degree / (len(evidence.measured) - 1))
        return cls(evidence, constraints, constants, log(odds / (1 - odds)))

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return len(self.evidence.measured)

    def shifted(self, by: float) -> FamilySearch:
        """The same evidence with other log odds for an edge."""
        return replace(self, edge_log_odds=self.edge_log_odds + by, found={})

    def row(self, column: int, parents: Columns) -> FloatArray:
        """The evidence of every column with this one given its parents, remembered."""
        key = (column, parents)
        if key not in self.rows:
            self.rows[key] = self.evidence.row(column, parents)
        return self.rows[key]

    def score(self, column: int, parents: Columns, before: FloatArray) -> float:
        """The score of a column with these parents; an order against required arrows is all but ruled out."""
        unexplained = float(self.row(column, parents) @ before)
        against = float(before @ self.constraints.against[:, column])
        return self.edge_log_odds * len(parents) - unexplained - AGAINST_KNOWLEDGE * against

    def best(self, column: int, before: Iterable[int]) -> tuple[Columns, float]:
        """The best parents found among these columns, and their score."""
        key = (column, sum(1 << x for x in before))
        if key not in self.found:
            self.found[key] = self._climb(column, self.indicator(before))
        return self.found[key]

    def indicator(self, before: Iterable[int]) -> FloatArray:
        """A set of columns as a 0/1 vector."""
        indicator = np.zeros(self.columns)
        indicator[list(before)] = 1
        return indicator

    def _climb(self, column: int, before: FloatArray) -> tuple[Columns, float]:
        """Add a parent while that helps; where that fails drop one, and where that fails exchange one."""
        parents = self._required(column, before)
        score = self.score(column, parents, before)
        while True:
            for moves in (self._larger, self._smaller, self._exchanged):
                better = self._best_of(moves(column, parents, before), column, before, score)
                if better:
                    parents, score = better
                    break
            else:
                return parents, score

    def _best_of(
        self, moves: Iterable[Columns], column: int, before: FloatArray, score: float
    ) -> tuple[Columns, float] | None:
        """The move that beats a score by most, of equals the first; None if there is none."""
        best = None
        for parents in moves:
            new = self.score(column, parents, before)
            if new > score:
                best, score = (parents, new), new
        return best

    def _required(self, column: int, before: FloatArray) -> Columns:
        """Parents that knowledge requires; they stay whatever the evidence says."""
        must = self.constraints.required[column] & self.constraints.allowed[:, column]
        return tuple(int(x) for x in np.flatnonzero((before > 0) & must))

    def _candidates(self, column: int, parents: Columns, before: FloatArray) -> list[int]:
        """The columns most clearly dependent given the parents; none if all together are not worth an edge."""
        row = np.where(before > 0, self.row(column, parents), 0.0)
        if np.maximum(row, 0).sum() < -self.edge_log_odds:
            return []
        top = np.argsort(-row)[: self.constants.tries]
        enough = max(0.0, self.constants.near_top * row[top[0]])
        return [int(x) for x in top if row[x] > enough and self.constraints.allowed[x, column]]

    def _larger(self, column: int, parents: Columns, before: FloatArray) -> Iterable[Columns]:
        if len(parents) < self.constants.max_parents:
            for x in self._candidates(column, parents, before):
                yield sorted_set(*parents, x)

    def _smaller(self, column: int, parents: Columns, before: FloatArray) -> Iterable[Columns]:
        for x in parents:
            if not self.constraints.required[x, column]:
                yield tuple(t for t in parents if t != x)

    def _exchanged(self, column: int, parents: Columns, before: FloatArray) -> Iterable[Columns]:
        for new in self._candidates(column, parents, before)[:1]:
            for smaller in self._smaller(column, parents, before):
                yield sorted_set(*smaller, new)
