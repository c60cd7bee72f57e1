"""What is left of a three-way contrast: whether two columns depend on each other in another way at levels of a third.

Conditioning on a common effect makes its causes dependent, and most of that dependence has another size or sign
at each level of the effect. A pair's residual averages it away; the three-way contrast shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpcurate._typing import FloatArray, IntArray
from dpcurate.learn.measure_once.bayes_factor import Residuals
from dpcurate.learn.measure_once.blocks import Columns, flat, kron, outer, sorted_set
from dpcurate.learn.measure_once.central_moments import CentralMoments
from dpcurate.learn.measure_once.designs import Setting
from dpcurate.learn.measure_once.regression import Regression, Regressions


class Crossed(NamedTuple):
    """Two columns, and a member of the conditioning set at whose levels they may depend in another way."""

    triple: tuple[int, int, int]
    setting: Setting


@dataclass(frozen=True, slots=True)
class _Members:
    """The members s of the conditioning sets; their coordinates are padded with zeros to the widest."""

    places: IntArray
    """(sets, coordinates): which coordinates they are."""
    means: FloatArray
    values: FloatArray
    """(sets, cells, coordinates): centred coordinates in each cell of the set's table."""
    weighted: FloatArray
    """The same times the probability of the cell."""

    @classmethod
    def of(cls, regressions: Regressions, asked: Sequence[Crossed], tables: FloatArray) -> _Members:
        designs, columns = regressions.designs, [a.triple[2] for a in asked]
        places = _places(regressions, columns)
        values = np.zeros((*tables.shape, places.shape[1]))
        for own, (triple, setting) in zip(values, asked, strict=True):
            levels = setting.layout.cells[:, setting.given.index(triple[2])]
            first = designs.columns.first_level[triple[2]]
            own[: len(levels)] = designs.levels.coordinates[first + levels, 2 : 2 + values.shape[2]]
        return cls(places, designs.pairs.offsets[places], values, tables[:, :, None] * values)


def interaction_residuals(regressions: Regressions, asked: Sequence[Crossed]) -> Residuals:
    """E[(a - E[a | S]) (b - E[b | S]) s] for a member s of each S: zero if a and b are independent given S."""
    settings = [a.setting for a in asked]
    design = regressions.designs.stack(settings)
    left, right = (regressions.fit(design, settings, [[a.triple[i]] for a in asked]) for i in (0, 1))
    members = _Members.of(regressions, asked, design.tables)
    explained = _mean_product(_fitted(left), _fitted(right), members.weighted)
    weighted = flat(outer(members.weighted, members.values))
    sampling = _mean_product(_within_cells(left), _within_cells(right), weighted)
    own = members.values.swapaxes(1, 2) @ members.weighted
    effect = kron(kron(left.within[:, 0], right.within[:, 0]), own)
    null = _paired(sampling, explained.shape) / regressions.moments.rows
    null = null + _noise(regressions, asked, (left, right), members)
    values = _observed(regressions.moments, asked, explained.shape) - explained
    return Residuals(values.reshape(len(asked), -1), null, effect)


def observed(moments: CentralMoments, triple: Columns) -> FloatArray:
    """The central moment of three columns in this order, centred with its pairs as released.

    Blocks centre a triple with denoised pairs. What the filter took from a pair is small beside that pair, but
    not beside a triple with a rare level.
    """
    members = sorted_set(*triple)
    central = moments.blocks[members].observed.transpose([members.index(x) for x in triple])
    for place, other in enumerate(triple):
        first, second = (x for x in triple if x != other)
        block = moments.blocks[sorted_set(first, second)]
        taken = block.observed - block.denoised
        oriented = taken if first < second else taken.T
        central = central - np.moveaxis(np.multiply.outer(oriented, moments.margins[other].mean), 2, place)
    return np.asarray(central)


def _observed(moments: CentralMoments, asked: Sequence[Crossed], shape: tuple[int, ...]) -> FloatArray:
    """The observed moments of all triples, padded with zeros."""
    values, known = np.zeros(shape), dict[Columns, FloatArray]()
    for own, (triple, _) in zip(values, asked, strict=True):
        if triple not in known:  # the same triple is asked for given many sets
            known[triple] = observed(moments, triple)
        i, j, k = known[triple].shape
        own[:i, :j, :k] = known[triple]
    return values


def _noise(
    regressions: Regressions, asked: Sequence[Crossed], sides: tuple[Regression, Regression], members: _Members
) -> FloatArray:
    """Privacy noise: of the triple, and of the pairs, margins and regressions that it is compared with.

    That of the count and of s alone is left out: it is less than a hundredth of the triple's own.
    """
    moments, known, (left, right) = regressions.moments, regressions.designs.columns, sides
    of_triples = np.array([moments.noise(*a.triple) for a in asked])[:, None, None]
    of_pairs = regressions.designs.pairs.noise[left.columns, right.columns][:, :, None]
    eye_a, eye_b = (known.identity[side.columns[:, 0], : _width(side), : _width(side)] for side in sides)
    width = members.means.shape[1]
    eye_s = known.identity[[a.triple[2] for a in asked], :width, :width]
    of_pair = of_pairs * outer(members.means, members.means) + of_triples * eye_s
    of_left = kron(eye_a, _of_side(regressions, left, right, members))
    of_right = kron(eye_b, _of_side(regressions, right, left, members))
    shape = eye_b.shape[1], eye_a.shape[1], width
    swapped = of_right.reshape(-1, *shape, *shape).transpose(0, 2, 1, 3, 5, 4, 6).reshape(of_right.shape)
    return np.asarray(kron(kron(eye_a, eye_b), of_pair) + of_left + swapped)


def _of_side(regressions: Regressions, first: Regression, second: Regression, members: _Members) -> FloatArray:
    """For one coordinate of the first column: noise of its margin and of its covariances with S, over b and s."""
    design, pairs = second.design, regressions.designs.pairs
    means = pairs.offsets[_places(regressions, second.columns[:, 0])]
    fitted, size = _fitted(second), means.shape[1] * members.means.shape[1]
    features = design.values.swapaxes(1, 2)
    slopes = design.inverse @ _mean_product(features, fitted, members.weighted).reshape(*design.places.shape, size)
    by_margin = outer(means, members.means) - fitted.swapaxes(1, 2) @ members.weighted
    by_margin = by_margin.reshape(-1, 1, size) + pairs.offsets[design.places][:, None] @ slopes
    # the pair of the first column and s centres the triple, too
    own = (design.places[:, :, None] == members.places[:, None]) & (members.places[:, None] < len(pairs.offsets) - 1)
    slopes = slopes + (means[:, None, :, None] * own[:, :, None]).reshape(slopes.shape)
    noises = (first.noises @ design.terms).swapaxes(1, 2)
    of_margins = regressions.designs.columns.noise[first.columns][:, :, None]
    return np.asarray(slopes.swapaxes(1, 2) @ (noises * slopes) + of_margins * by_margin.swapaxes(1, 2) * by_margin)


def _places(regressions: Regressions, columns: Sequence[int] | IntArray) -> IntArray:
    """(sets, coordinates): which coordinates are those of a column for each set, up to the widest."""
    known = regressions.designs.columns
    return known.places[columns, : int(known.levels[columns].max()) - 1]


def _fitted(side: Regression) -> FloatArray:
    """(sets, cells, coordinates): what the regression of each set's column says in each cell."""
    return np.asarray((side.coefficients[:, 0] @ side.design.values).swapaxes(1, 2))


def _within_cells(side: Regression) -> FloatArray:
    """(sets, cells, pairs of coordinates): the covariance of each set's column in each cell."""
    sets, width, _, cells = side.within_cells[:, 0].shape
    return side.within_cells.reshape(sets, width * width, cells).swapaxes(1, 2)


def _width(side: Regression) -> int:
    return int(side.within.shape[-1])


def _mean_product(x: FloatArray, y: FloatArray, z: FloatArray) -> FloatArray:
    """(sets, of x, of y, of z): sums of products over cells."""
    product = x.swapaxes(1, 2) @ flat(outer(y, z))
    return np.asarray(product.reshape(*product.shape[:2], y.shape[2], z.shape[2]))


def _paired(products: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """The covariances of blocks of this shape from products of three flat covariances."""
    sets, i, j, k = shape
    product = products.reshape(sets, i, i, j, j, k, k).transpose(0, 1, 3, 5, 2, 4, 6)
    return product.reshape(sets, i * j * k, i * j * k)
