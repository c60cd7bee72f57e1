"""P(this way round) of every edge found: orders drawn at random, each as often as the colliders it makes are likely.

What no collider decides is left at a half: in a drawn order an edge counts as directed only if all DAGs of the order's
Markov class direct it so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp
from random import Random

import numpy as np

from dpcurate.arrays import BoolArray, FloatArray
from dpcurate.learn.measure_once.arrows import Directions
from dpcurate.learn.measure_once.blocks import bits

Arrow = tuple[int, int]

MOST_LOG_ODDS = 5.0
"""No triple is surer than this: its odds know noise and sampling, not whether its edges are right."""
WRONG_TRIPLES = 0.03
"""Share of the directions that say nothing after all, as an edge of their triples is wrong."""
DRAWS = 60
MOVES = 60
"""Columns moved for each column of the table, over all draws; a fifth as many come before the first draw."""


def ways(directions: Directions, order: Sequence[int], random: Random) -> FloatArray:
    """[a, b]: P(a -> b) of columns that are linked; a half for all others."""
    adjacent, total = directions.adjacent, np.zeros(directions.adjacent.shape)
    known = adjacent & ~directions.constraints.allowed.T
    for times in _drawn_times(_tempered(directions), order, random):
        parents = [{int(x) for x in np.flatnonzero(near) if times[x] < times[y]} for y, near in enumerate(adjacent)]
        compelled = compelled_arrows(sorted(range(len(times)), key=times.__getitem__), parents)
        if known.any():
            compelled = _with_known(compelled, known, parents)
        for x, y in compelled:
            total[x, y] += 1
    ways = 0.5 + (1 - WRONG_TRIPLES) * (total - total.T) / (2 * DRAWS)
    return np.asarray(np.where(known, 1.0, np.where(known.T, 0.0, ways)))


def _with_known(compelled: set[Arrow], known: BoolArray, parents: Sequence[set[int]]) -> set[Arrow]:
    """And what knowledge directs, with what follows from it by Meek's first two rules."""
    arrows = compelled | {(int(x), int(y)) for x, y in np.argwhere(known)}
    open_ = {(x, y) for y, of in enumerate(parents) for x in of} - arrows
    while more := {arrow for arrow in open_ if _follows(*arrow, arrows, parents)}:
        arrows, open_ = arrows | more, open_ - more
    return arrows


def _follows(x: int, y: int, arrows: set[Arrow], parents: Sequence[set[int]]) -> bool:
    """Whether y -> x would make a new collider, or a cycle."""
    apart = (w for w in parents[x] if w not in parents[y] and y not in parents[w])
    return any((w, x) in arrows for w in apart) or any((x, z) in arrows and (z, y) in arrows for z in parents[y])


def _tempered(directions: Directions) -> Directions:
    odds = {triple: float(np.clip(x, -MOST_LOG_ODDS, MOST_LOG_ODDS)) for triple, x in directions.log_odds.items()}
    return Directions(directions.adjacent, odds, directions.constraints)


def _drawn_times(directions: Directions, order: Sequence[int], random: Random) -> Iterator[list[float]]:
    """A Metropolis walk over times of the columns, whose order directs the edges: one moves to a time of its own."""
    times = [0.0] * len(order)
    for place, column in enumerate(order):
        times[column] = place / len(order)
    near = [[int(x) for x in np.flatnonzero(row)] for row in directions.adjacent]
    moving = [column for column, others in enumerate(near) if others]
    moves = MOVES * len(moving)
    for move in range(-moves // 5, moves if moving else 0):
        _move(random.choice(moving), random, times, near, directions)
        if move >= 0 and move % (moves // DRAWS) == 0:
            yield times
    if not moving:
        yield from [times] * DRAWS


def _move(column: int, random: Random, times: list[float], near: list[list[int]], directions: Directions) -> None:
    """Move a column to a random time, or leave it, as the colliders of it and of those it passes say."""
    old, new = times[column], random.random()
    passed = [y for y in near[column] if min(old, new) < times[y] < max(old, new)]

    def score() -> float:
        return sum(directions.best(y, bits(x for x in near[y] if times[x] < times[y]))[1] for y in (column, *passed))

    before = score()
    times[column] = new
    if passed and random.random() >= exp(min(0.0, score() - before)):
        times[column] = old


def compelled_arrows(order: Sequence[int], parents: Sequence[set[int]]) -> set[Arrow]:
    """The arrows that all DAGs of a DAG's Markov class share (Chickering, 1995), given an order of the columns."""
    place = {column: i for i, column in enumerate(order)}
    compelled: dict[Arrow, bool] = {}
    for y in order:
        for x in sorted(parents[y], key=place.__getitem__, reverse=True):
            if (x, y) not in compelled:
                _label(x, y, parents, compelled)
    return {arrow for arrow, must in compelled.items() if must}


def _label(x: int, y: int, parents: Sequence[set[int]], compelled: dict[Arrow, bool]) -> None:
    """Settle x -> y and with it other arrows into y; all arrows into x are settled."""
    into_x = [w for w in parents[x] if compelled[w, x]]
    if not set(into_x) <= parents[y]:
        compelled.update({(z, y): True for z in parents[y]})
        return
    compelled.update({(w, y): True for w in into_x})
    collider = bool(parents[y] - parents[x] - {x})
    for z in parents[y]:
        compelled.setdefault((z, y), collider)
