"""What columns do together where only pairs were released: effects that add up on the log scale.

Pairs say how a column depends on each member of a conditioning set, and nothing of what two members do together. A
linear regression has their effects add up, so that two strong causes take a probability beyond 0 or 1, and what it
misses there looks like an edge. Of all tables with the same pairs the one of largest entropy has effects that add up on
the log scale; proportional fitting finds it (Deming and Stephan, 1940).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpcurate.arrays import BoolArray, FloatArray, IntArray
from dpcurate.learn.measure_once.designs import LEAST_CELL, Setting
from dpcurate.learn.measure_once.regression import Regression, Regressions

MOST_ROUNDS = 60
"""Of proportional fitting: where members of a set nearly determine each other it takes long, and is given up."""
CLOSE = 0.03
"""A round that moves a table by less than this share of what noise does is the last."""
TINY = 1e-300


def excess(
    regressions: Regressions,
    settings: Sequence[Setting],
    sides: tuple[Regression, Regression],
    wanted: BoolArray,
    noise: FloatArray,
) -> FloatArray:
    """What log-linear cells explain beyond linear ones: (sets, columns on the left, coordinates of both).

    Of pairs that are wanted, and 0 where a fit does not settle; `noise` is the variance of what is left, for each pair
    on the scale of canonical correlations.
    """
    left, right = sides
    beyond = np.zeros((*left.columns.shape, left.within.shape[-1], right.within.shape[-1]))
    for place in np.flatnonzero(wanted.any(axis=1)).tolist():
        setting, columns = settings[place], np.flatnonzero(wanted[place])
        table = left.design.tables[place, : len(setting.layout.cells)]
        close = CLOSE * float(noise[place, columns].min())
        linear, curved, settled = _means(regressions, left, place, columns, table.reshape(setting.levels), close)
        other = _means(regressions, right, place, np.arange(1), table.reshape(setting.levels), close)
        explained = (curved * table) @ other[1][0].T - (linear * table) @ other[0][0].T
        beyond[place, columns] = explained * (settled & other[2])[:, None, None]
    return beyond


def _means(
    regressions: Regressions, side: Regression, place: int, columns: IntArray, table: FloatArray, close: float
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """(columns, coordinates, cells): centred means by linear and log-linear cells, and which of the latter settled."""
    known, width, which = regressions.designs.columns, side.within.shape[-1], side.columns[place, columns]
    basis, shares = known.basis[which, : width + 1, :width], known.probabilities[which, : width + 1, None]
    linear = side.coefficients[place, columns] @ side.design.values[place, :, : table.size]
    cells, settled = log_linear(shares + basis @ linear, table, close)
    return linear, basis.swapaxes(1, 2) @ (cells - shares), settled


def log_linear(linear: FloatArray, table: FloatArray, close: float) -> tuple[FloatArray, BoolArray]:
    """Distributions in the cells of a table, made from linear ones: each axis alone explains as much.

    `linear` is (columns, levels, cells), as is the result; the table has an axis for each member of a conditioning set.
    Also which columns settled.
    """
    joint = (linear * table.ravel()).reshape(*linear.shape[:2], *table.shape)
    members = range(2, joint.ndim)
    shares = joint.sum(axis=tuple(members), keepdims=True)
    targets = [_target(joint, shares, table, member) for member in members]
    joint, settled = shares * table, np.zeros(len(joint), dtype=bool)
    for _ in range(MOST_ROUNDS):
        before = joint
        for others, target in targets:
            joint = joint * (target / np.maximum(joint.sum(axis=others, keepdims=True), TINY))
        joint = joint * (table / np.maximum(joint.sum(axis=1, keepdims=True), TINY))
        moved = (joint - before) ** 2 / np.maximum(joint, TINY)
        settled = moved.reshape(len(joint), -1).sum(axis=1) < close
        if settled.all():
            break
    return (joint / np.maximum(table, TINY)).reshape(linear.shape), settled


def _target(
    joint: FloatArray, shares: FloatArray, table: FloatArray, member: int
) -> tuple[tuple[int, ...], FloatArray]:
    """The joint distribution of each column with a member, none of it below zero; and the axes it is summed over."""
    others = tuple(axis for axis in range(2, joint.ndim) if axis != member)
    of_member = table.sum(axis=tuple(axis - 2 for axis in others), keepdims=True)
    return others, np.maximum(joint.sum(axis=others, keepdims=True), LEAST_CELL * shares * of_member)
