"""P(linked) of every pair and P(this way round) of every edge: probabilities about the truth.

The log odds of the search are right about noise and sampling and blind to its own mistakes: an order that has an
effect before its causes asks for edges that another would not. Such an edge shows in what PC would ask: some set of
neighbours explains it away, or its ends have a common neighbour. How much each sign weighs was fitted on random worlds
(`python -m benchmarks.confidence --fit --first 2000 --seeds 14`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import asinh, exp, log
from random import Random

import numpy as np

from dpcurate.arrays import BoolArray, FloatArray
from dpcurate.learn.measure_once.arrows import Directions, Interaction, adjacency, collider_log_odds
from dpcurate.learn.measure_once.blocks import Columns
from dpcurate.learn.measure_once.decide import Decision
from dpcurate.learn.measure_once.family_search import FamilySearch
from dpcurate.learn.measure_once.orientation import ways

KEPT = (0.17, 0.87, -0.18, 0.64, 0.14, -0.64)
"""Weights of the signs of an edge: always, weakest, weakest if above 0, later, earlier, triangles."""
LEFT_OUT = (-0.35, 0.74, 0.38)
"""Weights of the signs of a pair that the search left out: always, walk, weakest."""
HALF = 0.49
"""A pair that was left out is never more likely than not."""
UNLIKELY = 0.02
"""Below this P(edge) of the search a pair is not looked at again."""
MOST_GIVEN = 3
MOST_NEIGHBOURS = 7
"""Sets are drawn from so many neighbours of an end, those that depend most on the other end."""
MOST_TRIANGLES = 3


@dataclass(frozen=True, slots=True)
class Confidence:
    """[a, b] of every pair: P(linked), and P(a -> b) if linked."""

    linked: FloatArray
    ways: FloatArray


def confidence(decision: Decision, families: FamilySearch, interaction: Interaction, random: Random) -> Confidence:
    """How sure a decision may be of its edges and of what it left out."""
    adjacent = adjacency(decision, families.constraints)
    directions = Directions(
        adjacent, collider_log_odds(decision, adjacent, families, interaction), families.constraints
    )
    return Confidence(linked_probabilities(decision, families, adjacent), ways(directions, decision.order, random))


def linked_probabilities(decision: Decision, families: FamilySearch, adjacent: BoolArray) -> FloatArray:
    """P(linked) of every pair."""
    linked = np.minimum(decision.probabilities, UNLIKELY)
    looked_at = [(a, b) for a, b in families.constraints.pairs if adjacent[a, b] or linked[a, b] == UNLIKELY]
    families.remember(
        (y, x, given) for pair in looked_at for x, y, given in _given_neighbours(families, adjacent, pair)
    )
    for a, b in families.constraints.pairs:
        if adjacent[a, b]:
            linked[a, b] = linked[b, a] = _logistic(KEPT, signs_of_edge(decision, families, adjacent, (a, b)))
        elif decision.probabilities[a, b] > UNLIKELY:
            signs = signs_left_out(decision, families, adjacent, (a, b))
            linked[a, b] = linked[b, a] = min(HALF, _logistic(LEFT_OUT, signs))
    return np.where(families.constraints.required, 1.0, linked)


def _logistic(weights: tuple[float, ...], signs: tuple[float, ...]) -> float:
    return 1 / (1 + exp(-weights[0] - sum(w * x for w, x in zip(weights[1:], signs, strict=True))))


def signs_of_edge(decision: Decision, families: FamilySearch, adjacent: BoolArray, edge: Columns) -> tuple[float, ...]:
    """The weakest log odds given neighbours, those given the other parents of either end, and common neighbours."""
    earlier, later = sorted(edge, key=decision.order.index)
    weakest = _compressed(weakest_odds(families, adjacent, edge)[0])
    return (
        weakest,
        max(weakest, 0.0),
        _compressed(families.gain(later, earlier, _without(decision.parents[later], earlier))),
        _compressed(families.gain(earlier, later, _without(decision.parents[earlier], later))),
        min(int(adjacent[earlier] @ adjacent[later].astype(int)), MOST_TRIANGLES),
    )


def signs_left_out(
    decision: Decision, families: FamilySearch, adjacent: BoolArray, pair: Columns
) -> tuple[float, float]:
    """The log odds averaged over the walk of the search, and the weakest given neighbours."""
    p = min(float(decision.probabilities[pair]), 0.98)
    return log(p / (1 - p)), _compressed(weakest_odds(families, adjacent, pair)[0])


def _compressed(log_odds: float) -> float:
    """Near a straight line around 0 and a logarithm far from it: large evidence is only as right as the model."""
    return asinh(min(max(log_odds, -10.0), 60.0) / 2)


def weakest_odds(families: FamilySearch, adjacent: BoolArray, pair: Columns) -> tuple[float, Columns]:
    """The least log odds of an edge given some neighbours of either end, and these neighbours."""
    return min((families.gain(y, x, given), given) for x, y, given in _given_neighbours(families, adjacent, pair))


def _given_neighbours(families: FamilySearch, adjacent: BoolArray, pair: Columns) -> Iterator[tuple[int, int, Columns]]:
    """Both ways round, with each set of neighbours of the first."""
    for x, y in (pair, pair[::-1]):
        yield from ((x, y, given) for given in _sets_near(families, adjacent, x, y))


def _sets_near(families: FamilySearch, adjacent: BoolArray, x: int, y: int) -> Iterator[Columns]:
    """Sets of neighbours of x, of those that depend most on y."""
    near = [int(z) for z in np.flatnonzero(adjacent[x]) if z != y]
    near = sorted(sorted(near, key=lambda z: -families.row(y, ())[z])[:MOST_NEIGHBOURS])
    for size in range(MOST_GIVEN + 1):
        yield from combinations(near, size)


def _without(parents: Columns, parent: int) -> Columns:
    return tuple(x for x in parents if x != parent)
