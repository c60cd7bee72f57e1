"""What columns do together where only pairs were released, and what a regression without products may miss."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from dpcurate._typing import BoolArray, FloatArray, IntArray
from dpcurate.learn.measure_once.blocks import Columns
from dpcurate.learn.measure_once.constants import LEAST_CELL
from dpcurate.learn.measure_once.designs import Setting
from dpcurate.learn.measure_once.regression import Regression, Regressions

# What columns do together where only pairs were released: effects that add up on the log scale.
#
# Pairs say how a column depends on each member of a conditioning set, and nothing of what two members do together. A
# linear regression has their effects add up, so that two strong causes take a probability beyond 0 or 1, and what it
# misses there looks like an edge. Of all tables with the same pairs the one of largest entropy has effects that add up
# on the log scale; proportional fitting finds it (Deming and Stephan, 1940).

MOST_ROUNDS = 60
"""Of proportional fitting: where members of a set nearly determine each other it takes long, and is given up."""
CLOSE = 0.3
"""A round that moves a table by less than this share of its sampling error is the last."""
LEAST_DIVISOR = 1e-300
MOST_SHAPES = 64
"""Of tables whose sums are remembered: those of a large one take megabytes."""


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
        linear = (
            _Linear.of(regressions, left, (places[sets], columns), prod(levels)),
            _Linear.of(regressions, right, (places, 0), prod(levels)),
        )
        (ones, ones_settled), (others, others_settled) = _fitted(
            linear, (tables[sets], tables), levels, CLOSE / regressions.moments.rows
        )
        weighted = tables[sets, None]
        curved = (ones * weighted) @ others[sets].swapaxes(1, 2)
        straight = (linear[0].means * weighted) @ linear[1].means[sets].swapaxes(1, 2)
        beyond[places[sets], columns] = (curved - straight) * (ones_settled & others_settled[sets])[:, None, None]
    return beyond


@dataclass(frozen=True, slots=True)
class _Linear:
    """Columns on conditioning sets, the first axis: their centred means, (coordinates, cells), and what leads back."""

    means: FloatArray
    basis: FloatArray
    shares: FloatArray

    @classmethod
    def of(
        cls, regressions: Regressions, side: Regression, which: tuple[IntArray, IntArray | int], cells: int
    ) -> _Linear:
        """Of some columns of a side."""
        known, width, names = regressions.designs.columns, side.within.shape[-1], side.columns[which]
        means = side.coefficients[which] @ side.design.values[which[0], :, :cells]
        return cls(means, known.basis[names, : width + 1, :width], known.probabilities[names, : width + 1, None])

    def distributions(self, levels: int) -> FloatArray:
        """Shares of levels in every cell, with none for levels beyond a column's own."""
        shares = self.shares + self.basis @ self.means
        return np.pad(shares, ((0, 0), (0, levels - shares.shape[1]), (0, 0)))

    def centred(self, distributions: FloatArray) -> FloatArray:
        """The means of distributions in the same coordinates."""
        return self.basis.swapaxes(1, 2) @ (distributions[:, : self.shares.shape[1]] - self.shares)


def _fitted(
    sides: tuple[_Linear, _Linear], tables: tuple[FloatArray, FloatArray], levels: Columns, close: float
) -> list[tuple[FloatArray, BoolArray]]:
    """Means of log-linear cells of both sides, found together, and which have settled."""
    widest = max(side.shares.shape[1] for side in sides)
    linear = np.concatenate([side.distributions(widest) for side in sides])
    found, settled = log_linear(linear, np.concatenate(tables).reshape(-1, *levels), close)
    first = len(tables[0])
    halves = (found[:first], settled[:first]), (found[first:], settled[first:])
    return [(side.centred(some), which) for side, (some, which) in zip(sides, halves, strict=True)]


def log_linear(linear: FloatArray, tables: FloatArray, close: float) -> tuple[FloatArray, BoolArray]:
    """Distributions in the cells of tables, made from linear ones: each axis of a table alone explains as much.

    `linear` is (columns, levels, cells), as is the result; each column's table has an axis for each member of its
    conditioning set. A column has settled, and is left as it is, when a round moves it by less than `close`, as a
    chi-squared distance. Also which columns have.
    """
    table, axes = tables.reshape(len(tables), 1, -1), _axes(tables.shape[1:])
    joint = linear * table
    independent = joint.sum(axis=2, keepdims=True) * table
    targets = [np.maximum(_summed(joint, sums), LEAST_CELL * _summed(independent, sums)) for _, sums in axes]
    joint, found = independent, np.empty_like(independent)
    moving: IntArray = np.arange(len(linear))
    for _ in range(MOST_ROUNDS):
        before, joint = joint, joint.copy()
        for (codes, sums), target in zip(axes, targets, strict=True):
            joint *= (target / np.maximum(_summed(joint, sums), LEAST_DIVISOR)).take(codes, axis=2)
        joint *= table / np.maximum(joint.sum(axis=1, keepdims=True), LEAST_DIVISOR)
        before -= joint
        before *= before
        before /= np.maximum(joint, LEAST_DIVISOR)
        on = before.reshape(len(joint), -1).sum(axis=1) >= close
        if not on.all():
            found[moving[~on]] = joint[~on]
            moving, joint, table = moving[on], joint[on], table[on]
            targets = [target[on] for target in targets]
        if not len(moving):
            break
    found[moving] = joint
    settled = ~np.isin(np.arange(len(linear)), moving)
    return found / np.maximum(tables.reshape(len(tables), 1, -1), LEAST_DIVISOR), settled


def _summed(joint: FloatArray, sums: FloatArray) -> FloatArray:
    """Sums over cells, by one product for all."""
    return np.asarray((joint.reshape(-1, len(sums)) @ sums).reshape(*joint.shape[:2], -1))


@lru_cache(MOST_SHAPES)
def _axes(levels: tuple[int, ...]) -> tuple[tuple[IntArray, FloatArray], ...]:
    """For each axis of a table: the place on it of every cell, and the matrix that sums the cells of each place."""
    places = np.indices(levels).reshape(len(levels), -1)
    return tuple((codes, np.eye(size)[codes]) for codes, size in zip(places, levels, strict=True))


# What a regression that lacks products of its columns may have missed.
#
# Let a and b be independent given S, and let both be regressed on terms of S. What is left of their covariance is
#
#     the average over S of (E[a | S] - fit of a) (E[b | S] - fit of b):
#
# a product that the regressions lack counts only as far as it moves both. How far it does was not measured, but what is
# known of interactions bounds it: two causes that act together act alone, too, so that the weaker of their own effects,
# times a share, is taken for the size of their product. Where one of the two columns depends on a single member of S,
# or on none, nothing is missed, however many terms are lacking.

LEAST_VARIANCE = 1e-9
"""A coordinate of which less is left is padding, or determined."""


def misfit_variances(
    settings: Sequence[Setting], left: FloatArray, right: FloatArray, share: float, most: float
) -> FloatArray:
    """(sets, columns on the left): variance of what was missed, on the scale of canonical correlations.

    `left` and `right` are the effects of the members of each set. The size of a product of k columns is `share` to the
    power of k - 1 times the weakest effect of these; an effect counts as a variance of no more than `most`.
    """
    size = max(len(setting.singles) for setting in settings)
    products = np.zeros((len(settings), size, size))
    for product, setting in zip(products, settings, strict=True):
        product[: len(setting.singles), : len(setting.singles)] = setting.lacking
    weights = np.where(products > 0, share ** (2 * (products - 1)), 0)
    return np.asarray((_weaker(left, size, most) * _weaker(right, size, most) * weights[:, None]).max(axis=(2, 3)))


def _weaker(effects: FloatArray, size: int, most: float) -> FloatArray:
    """(sets, columns, members, members): the weaker effect of two members on each column."""
    effects = np.minimum(effects[:, :, :size], most)
    return np.minimum(effects[..., :, None], effects[..., None, :])


def member_effects(side: Regression, spread: FloatArray) -> FloatArray:
    """(sets, columns, terms): W C W' of each member, in units of what the regression leaves, over all coordinates.

    `spread` is a root of C, the covariance of the coordinates of each column.
    """
    singles = side.design.singles
    places = side.design.places[:, :singles]
    squares = (side.coefficients[..., :singles] @ spread[places[:, :, None], places[:, None]][:, None]) ** 2
    left = np.diagonal(side.within, axis1=2, axis2=3)[..., None]
    shares = np.divide(squares, left, out=np.zeros_like(squares), where=left > LEAST_VARIANCE)
    return np.asarray(shares.sum(axis=2) @ side.design.terms[..., :singles].swapaxes(1, 2))
