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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import exp
from random import Random

import numpy as np

from dpcurate._typing import BoolArray, FloatArray
from dpcurate.learn.measure_once.arrows import Directions, Interaction, adjacency, collider_log_odds
from dpcurate.learn.measure_once.blocks import Columns, bits
from dpcurate.learn.measure_once.constants import (
    BOUND,
    DRAWS,
    MOST_GIVEN,
    MOST_IF_WEAK,
    MOST_LOG_ODDS,
    MOST_NEIGHBOURS,
    POWERS,
    SWEEPS,
    UNLIKELY,
    WARMING,
    WEIGHTS,
    WRONG_TRIPLES,
)
from dpcurate.learn.measure_once.decide import Decision
from dpcurate.learn.measure_once.family_search import FamilySearch

# P(this way round) of every edge found: orders drawn at random, each as often as the colliders it makes are likely.
#
# What no collider decides is left at a half: in a drawn order an edge counts as directed only if all DAGs of the
# order's Markov class direct it so.

Direction = tuple[int, int]


def ways(directions: Directions, drawn: Sequence[list[float]]) -> FloatArray:
    """[a, b]: P(a -> b) of columns that are linked, from drawn times of the columns; a half for all others."""
    adjacent, total = directions.adjacent, np.zeros(directions.adjacent.shape)
    known = adjacent & ~directions.constraints.allowed.T
    for times in drawn:
        parents = [{int(x) for x in np.flatnonzero(near) if times[x] < times[y]} for y, near in enumerate(adjacent)]
        compelled = compelled_arrows(sorted(range(len(times)), key=times.__getitem__), parents)
        if known.any():
            compelled = _with_known(compelled, known, parents)
        for x, y in compelled:
            total[x, y] += 1
    ways = 0.5 + (1 - WRONG_TRIPLES) * (total - total.T) / (2 * len(drawn))
    return np.asarray(np.where(known, 1.0, np.where(known.T, 0.0, ways)))


def _with_known(compelled: set[Direction], known: BoolArray, parents: Sequence[set[int]]) -> set[Direction]:
    """And what knowledge directs, with what follows from it by Meek's first two rules."""
    arrows = compelled | {(int(x), int(y)) for x, y in np.argwhere(known)}
    open_ = {(x, y) for y, of in enumerate(parents) for x in of} - arrows
    while more := {arrow for arrow in open_ if _follows(*arrow, arrows, parents)}:
        arrows, open_ = arrows | more, open_ - more
    return arrows


def _follows(x: int, y: int, arrows: set[Direction], parents: Sequence[set[int]]) -> bool:
    """Whether y -> x would make a new collider, or a cycle."""
    apart = (w for w in parents[x] if w not in parents[y] and y not in parents[w])
    return any((w, x) in arrows for w in apart) or any((x, z) in arrows and (z, y) in arrows for z in parents[y])


def _bounded(directions: Directions) -> Directions:
    odds = {triple: float(np.clip(x, -MOST_LOG_ODDS, MOST_LOG_ODDS)) for triple, x in directions.log_odds.items()}
    return Directions(directions.adjacent, odds, directions.constraints)


def drawn_times(directions: Directions, order: Sequence[int], random: Random) -> tuple[list[list[float]], list[float]]:
    """Times of the columns, whose order directs the edges, by parallel tempering (Geyer, 1991); and the likeliest seen.

    Whole regions of a graph turn round together, through orders that make unlikely colliders. A walk that takes all
    odds as they are stays where it began; those that take a power of them go on, and pass on what they find.
    """
    walks = [_Walk(_bounded(directions), order) for _ in POWERS]
    drawn, likeliest, highest = [], walks[0].times.copy(), walks[0].score
    for draw in range(-WARMING, DRAWS):
        for _ in range(SWEEPS):
            for walk, power in zip(walks, POWERS, strict=True):
                walk.sweep(power, random)
            _exchange(walks, random)
            if walks[0].score > highest:
                likeliest, highest = walks[0].times.copy(), walks[0].score
        if draw >= 0:
            drawn.append(walks[0].times.copy())
    return drawn, likeliest


def _exchange(walks: list[_Walk], random: Random) -> None:
    """Neighbouring walks change places, as often as keeps each at the odds of its place."""
    for place in range(len(walks) - 1):
        here, there = walks[place : place + 2]
        log_odds = (POWERS[place] - POWERS[place + 1]) * (there.score - here.score)
        if log_odds >= 0 or random.random() < exp(log_odds):
            walks[place : place + 2] = there, here


class _Walk:
    """A Metropolis walk over times of the columns: one after the other moves to a time of its own."""

    def __init__(self, directions: Directions, order: Sequence[int]) -> None:
        self.directions, self.times = directions, [0.0] * len(order)
        for place, column in enumerate(order):
            self.times[column] = place / len(order)
        self.near = [np.flatnonzero(row).tolist() for row in directions.adjacent]
        self.moving = [column for column, others in enumerate(self.near) if others]
        self.before = [bits(x for x in near if self.times[x] < self.times[y]) for y, near in enumerate(self.near)]
        """The neighbours before each column, a set of bits."""
        self.score = sum(directions.best(y, before)[1] for y, before in enumerate(self.before))

    def sweep(self, power: float, random: Random) -> None:
        """Every column moves, or stays."""
        for column in self.moving:
            self._move(column, power, random)

    def _move(self, column: int, power: float, random: Random) -> None:
        """Move a column to a random time, or leave it, as the colliders of it and of those it passes say."""
        times, before, best, new = self.times, self.before, self.directions.best, random.random()
        first, last = (times[column], new) if times[column] < new else (new, times[column])
        passed = [y for y in self.near[column] if first < times[y] < last]
        after, gain = before[column], 0.0
        for y in passed:
            after ^= 1 << y
            gain += best(y, before[y] ^ 1 << column)[1] - best(y, before[y])[1]
        gain += best(column, after)[1] - best(column, before[column])[1]
        if gain >= 0 or random.random() < exp(power * gain):
            times[column], before[column], self.score = new, after, self.score + gain
            for y in passed:
                before[y] ^= 1 << column


def compelled_arrows(order: Sequence[int], parents: Sequence[set[int]]) -> set[Direction]:
    """The arrows that all DAGs of a DAG's Markov class share (Chickering, 1995), given an order of the columns."""
    place = {column: i for i, column in enumerate(order)}
    compelled: dict[Direction, bool] = {}
    for y in order:
        for x in sorted(parents[y], key=place.__getitem__, reverse=True):
            if (x, y) not in compelled:
                _label(x, y, parents, compelled)
    return {arrow for arrow, must in compelled.items() if must}


def _label(x: int, y: int, parents: Sequence[set[int]], compelled: dict[Direction, bool]) -> None:
    """Settle x -> y and with it other arrows into y; all arrows into x are settled."""
    into_x = [w for w in parents[x] if compelled[w, x]]
    if not set(into_x) <= parents[y]:
        compelled.update({(z, y): True for z in parents[y]})
        return
    compelled.update({(w, y): True for w in into_x})
    collider = bool(parents[y] - parents[x] - {x})
    for z in parents[y]:
        compelled.setdefault((z, y), collider)


@dataclass(frozen=True, slots=True)
class Confidence:
    """A decision in its likeliest order, and [a, b] of every pair: P(edge), and P(a -> b) if there is one."""

    decision: Decision
    linked: FloatArray
    ways: FloatArray


def confidence(decision: Decision, families: FamilySearch, interaction: Interaction, random: Random) -> Confidence:
    """The likeliest order of the edges found, and how sure a decision may be of them and of what it left out."""
    adjacent = adjacency(decision, families.constraints)
    directions = Directions(
        adjacent, collider_log_odds(decision, adjacent, families, interaction), families.constraints
    )
    drawn, likeliest = drawn_times(directions, decision.order, random)
    in_order = reordered(decision, adjacent, likeliest)
    return Confidence(in_order, linked_probabilities(in_order, families, adjacent), ways(directions, drawn))


def reordered(decision: Decision, adjacent: BoolArray, times: list[float]) -> Decision:
    """The same edges, directed by times of the columns.

    The search takes the first order that no swap improves. The walk sees many more, and an order that has an effect
    before its causes would have edges, and dependences of pairs without one, explained by the wrong parents.
    """
    parents = (tuple(int(x) for x in np.flatnonzero(near) if times[x] < times[y]) for y, near in enumerate(adjacent))
    order = sorted(range(len(times)), key=lambda column: times[column])
    return replace(decision, order=tuple(order), parents=tuple(parents))


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
