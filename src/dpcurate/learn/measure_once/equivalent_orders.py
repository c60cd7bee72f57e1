"""Orders to climb from: random ones, and those of equally good graphs, where a search goes on without a loss."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from sys import maxsize

import numpy as np

from dpcurate.learn.measure_once.blocks import Columns
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.order_search import LEAST_GAIN, Families, Order, best_order

FLIPS = 4
"""Arrows tried for turning, for each arrow of the graph."""


def climbed_on(
    order: Order[Families], constraints: Constraints, random: Random, patience: int, most: int = maxsize
) -> Order[Families]:
    """Climb again from orders of equivalent graphs until `patience` climbs in a row gain nothing, or `most` in all."""
    idle = climbs = 0
    while idle < patience and climbs < most:
        climbs += 1
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
