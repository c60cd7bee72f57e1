"""Search over orders of the columns (Teyssier and Koller, 2005), and the orders to climb from.

Each column slides to both sides. A search starts at random orders, or goes on from those of equally good graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from math import inf
from random import Random
from typing import Generic, Protocol, TypeVar

import numpy as np

from dpcurate.learn.measure_once.blocks import Columns
from dpcurate.learn.measure_once.constants import FLIPS, Constants
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.family_search import FamilySearch

LEAST_GAIN = 1e-6
"""Orders of the same score are common, and rounding must not decide between them: a run could not be repeated."""
AHEAD = 8
"""Columns whose first swaps are prepared together."""

Change = tuple[int, int, int]
"""A column, those before it, and another one that may come before it, too."""


class BestParents(Protocol):
    """What a search over orders needs to know of families; columns that come before one are a set of bits."""

    @property
    def columns(self) -> int:
        """How many columns there are."""

    @property
    def hopeless(self) -> float:
        """A column slides no further where the score has fallen by so much below that of its best place."""
        return inf

    def best(self, column: int, before: int) -> tuple[Columns, float]:
        """The best parents of a column among those before it, and their score."""

    def change(self, column: int, before: int, other: int) -> float:
        """How much that score changes if another one comes before it, too."""

    def changes(self, asked: Sequence[Change]) -> list[float]:
        """The same for several."""
        return [self.change(*one) for one in asked]

    def prepare(self, asked: Iterable[Change]) -> None:
        """These changes will be asked for; some kinds of families are quicker found together."""
        return


Families = TypeVar("Families", bound=BestParents)


class SearchOrder(Generic[Families]):
    """An order of the columns, each with its best parents among those before it."""

    def __init__(self, families: Families, columns: Sequence[int]) -> None:
        self.families = families
        self.columns: list[int] = list(columns)
        self.before: list[int] = [0] * len(self.columns)
        """For each column the set of those before it."""
        for first, second in pairwise(self.columns):
            self.before[second] = self.before[first] | 1 << first

    def total(self) -> float:
        """The score of the order."""
        return sum(self.families.best(column, before)[1] for column, before in enumerate(self.before))

    def parents(self) -> list[Columns]:
        """The best parents of every column."""
        return [self.families.best(column, before)[0] for column, before in enumerate(self.before)]

    def move(self, home: int, place: int) -> None:
        """Take the column at one place to another."""
        column = self.columns.pop(home)
        for passed in self.columns[place:home] if place < home else self.columns[home:place]:
            self.before[passed] ^= 1 << column
            self.before[column] ^= 1 << passed
        self.columns.insert(place, column)

    def move_to_best_place(self, column: int) -> bool:
        """Slide a column to both sides by swaps and leave it at its best place; True if it moved."""
        home = self.columns.index(column)
        best, best_gain = home, 0.0
        for passed, step in ((self.columns[:home][::-1], -1), (self.columns[home + 1 :], 1)):
            for moved, gain in enumerate(accumulate(self._slide(column, passed, step)), start=1):
                if gain > best_gain + LEAST_GAIN:
                    best, best_gain = home + step * moved, gain
                if gain < best_gain - self.families.hopeless:
                    break
        self.move(home, best)
        return best != home

    def _slide(self, column: int, passed: Sequence[int], step: int) -> Iterator[float]:
        """Gains of one swap after the other as a column passes others on its left (-1) or on its right (1)."""
        for other in passed:
            of_other, of_column = self.families.changes(list(self._changes(column, (other,))))
            yield step * (of_column - of_other)

    def _changes(self, column: int, others: Iterable[int]) -> Iterator[Change]:
        """What changes for others, and for a column, as it passes them."""
        for other in others:
            before = self.before[other] & ~(1 << column)
            yield other, before, column
            yield column, before, other

    def _look_ahead(self, columns: Iterable[int]) -> None:
        """Prepare the first swaps of several columns: few of them will move, so that most are asked for as they are."""
        places = ((column, self.columns.index(column)) for column in columns)
        near = ((c, self.columns[max(home - 1, 0) : home + 2]) for c, home in places)
        self.families.prepare(change for c, some in near for change in self._changes(c, (x for x in some if x != c)))

    def climb(self, random: Random) -> None:
        """Move columns to their best places until none moves; every move raises the score, so it ends."""
        moved, settled = True, set[int]()
        while moved:
            moved, waiting = False, _shuffled(len(self.columns), random)
            for place, column in enumerate(waiting):
                if place % AHEAD == 0:
                    self._look_ahead(x for x in waiting[place : place + AHEAD] if x not in settled)
                if column in settled:  # nothing has moved since it was slid to its best place
                    continue
                if self.move_to_best_place(column):
                    moved = True
                    settled.clear()
                settled.add(column)


def best_order(families: Families, random: Random, starts: Iterable[Sequence[int]]) -> SearchOrder[Families]:
    """Climb from every start and take the best, of equals the first."""
    orders = [SearchOrder(families, columns) for columns in starts]
    for order in orders:
        order.climb(random)
    best = orders[0]
    for order in orders[1:]:
        if order.total() > best.total() + LEAST_GAIN:
            best = order
    return best


def first_orders(families: FamilySearch, random: Random, count: int) -> list[list[int]]:
    """Columns with most evidence in all first (likely hubs), then random orders."""
    if count < 1:
        return []
    evidence = [np.maximum(families.row(column, ()), 0).sum() for column in range(families.columns)]
    hubs_first = [int(x) for x in np.argsort(-np.array(evidence))]
    return [hubs_first, *random_orders(families.columns, random, count - 1)]


def random_orders(columns: int, random: Random, count: int) -> list[list[int]]:
    """Orders to start from that know nothing."""
    return [_shuffled(columns, random) for _ in range(count)]


def number_of_starts(constants: Constants, columns: int) -> int:
    """Fewer for more columns, whose climbs are longer."""
    return min(8, max(2, constants.effort // columns)) if constants.effort else 1


def _shuffled(columns: int, random: Random) -> list[int]:
    return random.sample(range(columns), columns)


def climbed_on(
    order: SearchOrder[Families], constraints: Constraints, random: Random, patience: int
) -> SearchOrder[Families]:
    """Climb again from orders of equivalent graphs until `patience` climbs in a row gain nothing."""
    idle = 0
    while idle < patience:
        start = equivalent_order(order.parents(), constraints, random)
        other = best_order(order.families, random, [start])
        gain = other.total() - order.total()
        idle = 0 if gain > LEAST_GAIN else idle + 1
        order = other if gain > -LEAST_GAIN else order
    return order


def equivalent_order(parents: Sequence[Columns], constraints: Constraints, random: Random) -> list[int]:
    """A random order of a random graph of the same Markov class that the constraints allow.

    Turning a covered arrow, one whose ends have the same other parents, stays in the class, and such turns reach
    all of it (Chickering 1995).
    """
    above = [set(some) for some in parents]
    arrows = [(x, y) for y, some in enumerate(parents) for x in some]
    for _ in range(FLIPS * len(arrows)):
        place = random.randrange(len(arrows))
        x, y = arrows[place]
        if above[y] - {x} == above[x] and constraints.allowed[y, x]:
            above[y].remove(x)
            above[x].add(y)
            arrows[place] = y, x
    return _random_order(above, random)


def lawful_order(constraints: Constraints, random: Random) -> list[int]:
    """A random order in which every required arrow points forward."""
    return _random_order([set(np.flatnonzero(row).tolist()) for row in constraints.against], random)


def _random_order(above: Sequence[set[int]], random: Random) -> list[int]:
    """A random order in which those above a column come before it."""
    order: list[int] = []
    left = random.sample(range(len(above)), len(above))
    while left:
        first = next(x for x in left if above[x].isdisjoint(left))
        left.remove(first)
        order.append(first)
    return order
