"""Search over orders of the columns (Teyssier and Koller, 2005): each column slides through all places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Generic, Protocol, TypeVar

import numpy as np

from dpcurate.learn.measure_once.blocks import Columns
from dpcurate.learn.measure_once.constants import Constants
from dpcurate.learn.measure_once.family_search import FamilySearch

LEAST_GAIN = 1e-6
"""Orders of the same score are common, and rounding must not decide between them: a run could not be repeated."""


class BestParents(Protocol):
    """What a search over orders needs to know of families."""

    @property
    def columns(self) -> int:
        """How many columns there are."""

    def best(self, column: int, before: Iterable[int]) -> tuple[Columns, float]:
        """The best parents of a column among those before it, and their score."""


Families = TypeVar("Families", bound=BestParents)


class Order(Generic[Families]):
    """An order of the columns, each with its best parents among those before it."""

    def __init__(self, families: Families, columns: Sequence[int]) -> None:
        self.families, self.columns = families, list(columns)
        self.scores = [0.0] * families.columns
        for place, column in enumerate(self.columns):
            self.scores[column] = families.best(column, self.columns[:place])[1]

    def total(self) -> float:
        """The score of the order."""
        return sum(self.scores)

    def parents(self) -> list[Columns]:
        """The best parents of every column."""
        parents: list[Columns] = [()] * len(self.columns)
        for place, column in enumerate(self.columns):
            parents[column] = self.families.best(column, self.columns[:place])[0]
        return parents

    def swap_gain(self, place: int) -> tuple[float, float, float]:
        """Change of score when the columns at a place and the next one swap, and the new scores of the two."""
        first, second = self.columns[place : place + 2]
        before = self.columns[:place]
        of_second = self.families.best(second, before)[1]
        of_first = self.families.best(first, [*before, second])[1]
        return of_first + of_second - self.scores[first] - self.scores[second], of_first, of_second

    def swap(self, place: int, of_first: float, of_second: float) -> None:
        """Swap the columns at a place and the next one, whose new scores are known."""
        first, second = self.columns[place : place + 2]
        self.columns[place : place + 2] = second, first
        self.scores[first], self.scores[second] = of_first, of_second

    def move_to_best_place(self, column: int) -> bool:
        """Slide a column to both ends by swaps and leave it at its best place; True if it moved."""
        home = list(self.columns), list(self.scores)
        best, best_gain = home, 0.0
        for step in (-1, 1):
            self.columns, self.scores, gain = list(home[0]), list(home[1]), 0.0
            place = self.columns.index(column)
            while 0 <= place + step < len(self.columns):
                left = min(place, place + step)
                more, of_first, of_second = self.swap_gain(left)
                self.swap(left, of_first, of_second)
                gain, place = gain + more, place + step
                if gain > best_gain + LEAST_GAIN:
                    best, best_gain = (list(self.columns), list(self.scores)), gain
        self.columns, self.scores = best
        return best is not home

    def climb(self, random: Random) -> None:
        """Move columns to their best places until none moves; every move raises the score, so it ends."""
        while sum(self.move_to_best_place(column) for column in _shuffled(len(self.columns), random)):
            pass


def best_order(families: Families, random: Random, starts: Iterable[Sequence[int]]) -> Order[Families]:
    """Climb from every start and take the best, of equals the first."""
    orders = [Order(families, columns) for columns in starts]
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
