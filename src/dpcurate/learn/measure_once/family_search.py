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
from operator import itemgetter

import numpy as np

from dpcurate.arrays import FloatArray
from dpcurate.learn.measure_once.blocks import Columns, sorted_set
from dpcurate.learn.measure_once.constants import Constants
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.evidence import DependenceEvidence

AGAINST_KNOWLEDGE = 1e9
"""What an order loses in score for each required arrow that it would turn round: more than any evidence."""

SPARE = 1
"""So many parents more than a column may have are held while it is not yet clear which make the others needless."""


EXCHANGED = 2
"""So many columns left out are tried in exchange for parents."""


@dataclass(frozen=True, slots=True)
class FamilySearch:
    """Finds parents by growing and shrinking; `before` is a 0/1 vector over columns. Remembers what it found."""

    evidence: DependenceEvidence
    constraints: Constraints
    constants: Constants
    edge_log_odds: float
    rows: dict[tuple[int, Columns], FloatArray] = field(default_factory=dict)
    ones: dict[tuple[int, int, Columns], float] = field(default_factory=dict)
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

    def gain(self, column: int, parent: int, others: Columns) -> float:
        """The log odds of an edge from a parent, given the other parents."""
        if (column, others) in self.rows:
            return float(self.rows[column, others][parent]) + self.edge_log_odds
        key = (column, parent, others)
        if key not in self.ones:
            self.ones[key] = self.evidence.one(column, parent, others)
        return self.ones[key] + self.edge_log_odds

    def _climb(self, column: int, before: FloatArray) -> tuple[Columns, float]:
        """Grow and shrink (Margaritis, 2003): add the clearest parent, drop those that it makes needless, and again."""
        parents, seen = self._required(column, before), set[Columns]()
        while parents not in seen:  # noised evidence can lead in a circle
            seen.add(parents)
            parents = self._shrunk(column, self._grown(column, parents, before), self.constants.max_parents + SPARE)
        return self._exchanged(column, self._shrunk(column, parents, self.constants.max_parents), before)

    def _exchanged(self, column: int, parents: Columns, before: FloatArray) -> tuple[Columns, float]:
        """With one of the strongest columns left out instead of those that it makes needless, if that is better.

        Two causes of a column that they determine say together what it says alone, and may be found first.
        """
        best = parents, self.score(column, parents, before)
        for x in self._strong(column, parents, before):
            fewer = self._shrunk(column, sorted_set(*parents, x), self.constants.max_parents)
            if x in fewer and len(fewer) <= len(parents):
                best = max(best, (fewer, self.score(column, fewer, before)), key=itemgetter(1))
        return best

    def _strong(self, column: int, parents: Columns, before: FloatArray) -> list[int]:
        """Columns that could be parents and depend on this one more than some of its two or more parents do."""
        if len(parents) < 2:
            return []
        alone = self.row(column, ())
        free = (before > 0) & self.constraints.allowed[:, column] & (alone > min(alone[list(parents)]))
        free[list(parents)] = False
        strong = np.flatnonzero(free)
        return [int(x) for x in strong[np.argsort(-alone[strong])][:EXCHANGED]]

    def _grown(self, column: int, parents: Columns, before: FloatArray) -> Columns:
        """With the clearest parent more, if any is clear; a full set grows too, which then costs it the weakest."""
        free = (before > 0) & self.constraints.allowed[:, column]
        free[list(parents)] = False
        row = np.where(free, self.row(column, parents), -np.inf)
        best = int(np.argmax(row))
        return sorted_set(*parents, best) if row[best] + self.edge_log_odds > 0 else parents

    def _shrunk(self, column: int, parents: Columns, most: int) -> Columns:
        """Without those that the others make needless, and without the weakest while there are too many."""
        while len(parents) > 1:
            optional = [x for x in parents if not self.constraints.required[x, column]]
            gains = {x: self.gain(column, x, _without(parents, x)) for x in optional}
            weakest = min(gains, key=gains.__getitem__, default=None)
            if weakest is None or (gains[weakest] >= 0 and len(parents) <= most):
                break
            parents = _without(parents, weakest)
        return parents

    def _required(self, column: int, before: FloatArray) -> Columns:
        """Parents that knowledge requires; they stay whatever the evidence says."""
        must = self.constraints.required[column] & self.constraints.allowed[:, column]
        return tuple(int(x) for x in np.flatnonzero((before > 0) & must))


def _without(parents: Columns, parent: int) -> Columns:
    return tuple(x for x in parents if x != parent)
