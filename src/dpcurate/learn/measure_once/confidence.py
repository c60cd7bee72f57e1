"""P(edge) of every pair and P(direction) of every edge: probabilities about the truth.

The log odds of the search are right about noise and sampling and blind to its own mistakes: an order that has an
effect before its causes asks for edges that another would not. Such an edge shows in what PC would ask: some set of
neighbours explains it away. So two log odds are weighed: those given the other parents of the later column, and the
least ones given neighbours. Far from even odds both rest on a model of the table that is never quite right, so they
count up to a bound. Two numbers that both are products of the same columns correlate, and no sum of functions of
single columns explains it; such correlations are weak, so an edge that rests on a weak one is never as sure as others.
The weights are fitted on random worlds (`python -m benchmarks.calibration --compare`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import exp
from random import Random

import numpy as np

from dpcurate._typing import BoolArray, FloatArray
from dpcurate.learn.measure_once.arrows import Directions, Interaction, adjacency, collider_log_odds
from dpcurate.learn.measure_once.blocks import Columns
from dpcurate.learn.measure_once.decide import Decision
from dpcurate.learn.measure_once.family_search import FamilySearch
from dpcurate.learn.measure_once.orientation import ways

WEIGHTS = (-0.3, 0.58, 0.46)
"""Always, of the log odds given the other parents of the later column, of the least ones given neighbours."""
BOUND = 4.0
"""No log odds count more than this."""
MOST_IF_WEAK = 0.88
"""P(edge) of two numbers whose correlation may be all that products of other columns leave."""
UNLIKELY = 0.02
"""Below this P(edge) of the search a pair is not looked at again."""
MOST_GIVEN = 3
MOST_NEIGHBOURS = 7
"""Sets are drawn from so many neighbours of an end, those that depend most on the other end."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """[a, b] of every pair: P(edge), and P(a -> b) if there is one."""

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
    """P(edge) of every pair."""
    linked = np.minimum(decision.probabilities, UNLIKELY)
    looked_at = [(a, b) for a, b in families.constraints.pairs if adjacent[a, b] or linked[a, b] == UNLIKELY]
    families.remember(
        (y, x, given) for pair in looked_at for x, y, given in _given_neighbours(families, adjacent, pair)
    )
    for a, b in looked_at:
        linked[a, b] = linked[b, a] = edge_probability(*signs(decision, families, adjacent, (a, b)))
    linked = np.where(families.evidence.weak(), np.minimum(linked, MOST_IF_WEAK), linked)
    return np.where(families.constraints.required, 1.0, linked)


def edge_probability(given_parents: float, weakest: float) -> float:
    """From the signs of a pair."""
    always, *weights = WEIGHTS
    bounded = (min(max(x, -BOUND), BOUND) for x in (given_parents, weakest))
    return 1 / (1 + exp(-always - sum(w * x for w, x in zip(weights, bounded, strict=True))))


def signs(decision: Decision, families: FamilySearch, adjacent: BoolArray, pair: Columns) -> tuple[float, float]:
    """The log odds of an edge given the other parents of the later column, and the least ones given neighbours."""
    earlier, later = sorted(pair, key=decision.order.index)
    given = tuple(x for x in decision.parents[later] if x != earlier)
    return families.gain(later, earlier, given), weakest_odds(families, adjacent, pair)[0]


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
