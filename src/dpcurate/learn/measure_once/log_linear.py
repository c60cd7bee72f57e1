"""What columns do together where only pairs were released: effects that add up on the log scale.

Pairs say how a column depends on each member of a conditioning set, and nothing of what two members do together. A
linear regression has their effects add up, so that two strong causes take a probability beyond 0 or 1, and what it
misses there looks like an edge. Of all tables with the same pairs the one of largest entropy has effects that add up on
the log scale; proportional fitting finds it (Deming and Stephan, 1940).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from dpcurate.arrays import BoolArray, FloatArray, IntArray
from dpcurate.learn.measure_once.designs import LEAST_CELL, Setting
from dpcurate.learn.measure_once.regression import Regression, Regressions

MOST_ROUNDS = 60
"""Of proportional fitting: where members of a set nearly determine each other it takes long, and is given up."""
CLOSE = 0.3
"""A round that moves a table by less than this share of its sampling error is the last."""
TINY = 1e-300


def excess(
    regressions: Regressions, settings: Sequence[Setting], sides: tuple[Regression, Regression], wanted: BoolArray
) -> FloatArray:
    """What log-linear cells explain beyond linear ones: (sets, columns on the left, coordinates of both).

    Of pairs that are wanted, and 0 where a fit does not settle.
    """
    left, right = sides
    beyond = np.zeros((*left.columns.shape, left.within.shape[-1], right.within.shape[-1]))
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for place in np.flatnonzero(wanted.any(axis=1)).tolist():
        alike[settings[place].levels].append(place)
    for levels, some in alike.items():
        places = np.array(some)
        sets, columns = np.nonzero(wanted[places])
        tables = left.design.tables[places, : prod(levels)]
        ones = _Fit.of(regressions, left, (places[sets], columns), tables[sets].reshape(-1, *levels))
        others = _Fit.of(regressions, right, (places, 0), tables.reshape(-1, *levels))
        weighted = tables[sets, None]
        curved = (ones.curved * weighted) @ others.curved[sets].swapaxes(1, 2)
        linear = (ones.linear * weighted) @ others.linear[sets].swapaxes(1, 2)
        beyond[places[sets], columns] = (curved - linear) * (ones.settled & others.settled[sets])[:, None, None]
    return beyond


@dataclass(frozen=True, slots=True)
class _Fit:
    """Columns on conditioning sets, the first axis: their centred means, (coordinates, cells)."""

    linear: FloatArray
    curved: FloatArray
    settled: BoolArray

    @classmethod
    def of(
        cls, regressions: Regressions, side: Regression, which: tuple[IntArray, IntArray | int], tables: FloatArray
    ) -> _Fit:
        """Of some columns of a side."""
        known, width, names = regressions.designs.columns, side.within.shape[-1], side.columns[which]
        basis, shares = known.basis[names, : width + 1, :width], known.probabilities[names, : width + 1, None]
        cells = tables[0].size
        linear = side.coefficients[which] @ side.design.values[which[0], :, :cells]
        curved, settled = log_linear(shares + basis @ linear, tables, CLOSE / regressions.moments.rows)
        return cls(linear, basis.swapaxes(1, 2) @ (curved - shares), settled)


def log_linear(linear: FloatArray, tables: FloatArray, close: float) -> tuple[FloatArray, BoolArray]:
    """Distributions in the cells of tables, made from linear ones: each axis of a table alone explains as much.

    `linear` is (columns, levels, cells), as is the result; each column's table has an axis for each member of its
    conditioning set. A column has settled, and is left as it is, when a round moves it by less than `close`, as a
    chi-squared distance. Also which columns have.
    """
    table = tables[:, None]
    joint = linear.reshape(*linear.shape[:2], *tables.shape[1:]) * table
    members = range(2, joint.ndim)
    independent = joint.sum(axis=tuple(members), keepdims=True) * table
    targets = [_target(joint, independent, member) for member in members]
    joint, found = independent, independent.copy()
    moving = np.arange(len(linear))
    for _ in range(MOST_ROUNDS):
        before = joint
        for others, target in targets:
            joint = joint * (target / np.maximum(joint.sum(axis=others, keepdims=True), TINY))
        joint = joint * (table / np.maximum(joint.sum(axis=1, keepdims=True), TINY))
        found[moving] = joint
        moved = (joint - before) ** 2 / np.maximum(joint, TINY)
        on = moved.reshape(len(joint), -1).sum(axis=1) >= close
        if not on.all():
            moving, joint, table = moving[on], joint[on], table[on]
            targets = [(others, target[on]) for others, target in targets]
        if not len(moving):
            break
    settled = ~np.isin(np.arange(len(linear)), moving)
    return (found / np.maximum(tables[:, None], TINY)).reshape(linear.shape), settled


def _target(joint: FloatArray, independent: FloatArray, member: int) -> tuple[tuple[int, ...], FloatArray]:
    """The joint distribution of each column with a member, none of it below zero; and the axes it is summed over."""
    others = tuple(axis for axis in range(2, joint.ndim) if axis != member)
    sums, least = (x.sum(axis=others, keepdims=True) for x in (joint, LEAST_CELL * independent))
    return others, np.maximum(sums, least)
