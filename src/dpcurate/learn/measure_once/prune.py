"""Edges that another order would not have needed: those whose ends are clearly independent given some other set.

A search over orders that has put an effect before its causes must join the causes to explain it, and from there single
moves rarely lead out. As in the PC algorithm, an edge goes if a set of neighbours of one of its ends separates them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from dpcurate._typing import BoolArray
from dpcurate.learn.measure_once.arrows import adjacency
from dpcurate.learn.measure_once.blocks import Columns, sorted_set
from dpcurate.learn.measure_once.constants import IN_PLACE, INDEPENDENT, MOST_GIVEN
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.contrast_evidence import ContrastEvidence
from dpcurate.learn.measure_once.decide import Decision


class Explanations:
    """What explained each edge that went.

    Of two columns that say nearly the same either one separates the other from everything: an edge must not go for a
    column whose own edge went for it. Of the two the one stays that is less clearly explained.
    """

    def __init__(self, decision: Decision, adjacent: BoolArray, evidence: ContrastEvidence) -> None:
        """At first what a search has explained: dependent columns left apart, by the parents of the later one."""
        self.evidence = evidence
        forward = _forward(decision.order)
        explained = np.argwhere((evidence.marginal > 0) & ~adjacent & forward).tolist()
        self.sets: dict[frozenset[int], Columns] = {frozenset((a, b)): decision.parents[b] for a, b in explained}

    def circular(self, first: int, second: int, given: Columns) -> tuple[int, int] | None:
        """A member of a set that was itself separated from one of two columns by means of the other, and that one."""
        ends = ((s, *pair) for s in given for pair in ((first, second), (second, first)))
        return next(((s, end) for s, end, other in ends if self._rests_on(s, end, other)), None)

    def clearer(self, pair: tuple[int, int], given: Columns, than: tuple[int, int]) -> bool:
        """Whether a set explains a pair more clearly than what explained another pair does that one.

        A larger set never does: the more is given, the less is left to be seen of any dependence.
        """
        known = self.sets[frozenset(than)]
        return len(given) <= len(known) and self.evidence.one(*pair, given) < self.evidence.one(*than, known)

    def _rests_on(self, member: int, end: int, other: int) -> bool:
        """Whether what separated a member from one end needs the other one, at once or by way of further columns."""
        seen, left = {member}, [member]
        while left:
            for x in self._needed(left.pop(), end):
                if x == other:
                    return True
                if x not in seen:
                    seen.add(x)
                    left.append(x)
        return False

    def _needed(self, a: int, b: int) -> Iterator[int]:
        """The columns without which the rest of a set would not explain two columns."""
        given = self.sets.get(frozenset((a, b)), ())
        for x in given:
            if self.evidence.one(a, b, tuple(s for s in given if s != x)) > 0:
                yield x


def pruned(decision: Decision, evidence: ContrastEvidence, constraints: Constraints) -> Decision:
    """Without the edges that a set of neighbours explains away, small sets first."""
    before, forward = adjacency(decision, constraints), _forward(decision.order) & constraints.allowed
    adjacent, separators = before.copy(), Explanations(decision, before, evidence)
    for size in range(MOST_GIVEN + 1):
        for column, given in _sets(adjacent.copy(), size):
            for other in _apart(column, given, adjacent & ~constraints.required, evidence):
                instead = separators.circular(column, other, given)
                if instead is not None:
                    possible = forward[instead] or forward[instead[::-1]]
                    if not possible or not separators.clearer((column, other), given, than=instead):
                        continue
                    adjacent[instead] = adjacent[instead[::-1]] = True
                    del separators.sets[frozenset(instead)]
                adjacent[column, other] = adjacent[other, column] = False
                separators.sets[frozenset((column, other))] = given
    joined, p = adjacent & ~before, decision.probabilities
    new = joined & forward
    parents = tuple(
        sorted_set(*(x for x in of if adjacent[x, column]), *np.flatnonzero(new[:, column]).tolist())
        for column, of in enumerate(decision.parents)
    )
    p = np.where(before & ~adjacent, 0, np.where(joined, np.maximum(p, IN_PLACE), p))
    return replace(decision, parents=parents, probabilities=p)


def _forward(order: Sequence[int]) -> BoolArray:
    """[x, y]: x comes before y."""
    place = np.argsort(order)
    return np.asarray(place[:, None] < place)


def _apart(column: int, given: Columns, adjacent: BoolArray, evidence: ContrastEvidence) -> list[int]:
    """Neighbours of a column that a set separates from it."""
    others = [int(x) for x in np.flatnonzero(adjacent[column]) if x not in given]
    others = _testable(others, column, given, evidence)
    found = evidence.conditional(others, column, given)
    alike = [x for x, log_odds in zip(others, found, strict=True) if log_odds < INDEPENDENT]
    differs = evidence.interactions([(x, column, given) for x in alike])  # between levels of the set
    return [x for x, log_odds in zip(alike, differs, strict=True) if log_odds <= 0]


def _testable(others: list[int], column: int, given: Columns, evidence: ContrastEvidence) -> list[int]:
    """Those of which a set can be said to separate the column: no term is missing, and it determines neither."""
    others = [x for x in others if evidence.saturated(x, column, given)]
    if not others or evidence.determined(column, given):
        return []
    return [x for x in others if not evidence.determined(x, given)]


def _sets(adjacent: BoolArray, size: int) -> Iterator[tuple[int, Columns]]:
    """Every column with the sets of so many of its neighbours."""
    for column, around in enumerate(adjacent):
        for given in combinations((int(x) for x in np.flatnonzero(around)), size):
            yield column, given
