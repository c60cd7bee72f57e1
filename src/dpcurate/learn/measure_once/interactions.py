"""What is left of a three-way contrast: whether two columns depend on each other in another way at levels of a third.

Conditioning on a common effect makes its causes dependent, and most of that dependence has another size or sign
at each level of the effect. A pair's residual averages it away; the three-way contrast shows it.
"""

from __future__ import annotations

from itertools import accumulate
from math import prod

import numpy as np

from dpcurate.arrays import FloatArray
from dpcurate.learn.measure_once.bayes_factor import Residuals
from dpcurate.learn.measure_once.blocks import Columns, kron, outer, sorted_set
from dpcurate.learn.measure_once.designs import Terms
from dpcurate.learn.measure_once.moments import CentralMoments
from dpcurate.learn.measure_once.regression import Regressions


def interaction_residuals(regressions: Regressions, triple: Columns, given: Columns, terms: Terms) -> Residuals:
    """E[(a - E[a | S]) (b - E[b | S]) s] for a member s of S = `given`: zero if a and b are independent given S."""
    moments, (a, b, s) = regressions.moments, triple
    left, right = (regressions.single[x, given, terms] for x in (a, b))
    table, values = left.design.tables[0], left.design.values[0]
    member = _coordinates(moments, given, s)
    explained = _mean_product(table, values @ left.coefficients[0, 0], values @ right.coefficients[0, 0], member)
    cells_left, cells_right = _flat(left.within_cells[0, 0]), _flat(right.within_cells[0, 0])
    sampling = _mean_product(table, cells_left, cells_right, _flat(outer(member, member)))
    effect = kron(kron(left.within[0, 0], right.within[0, 0]), member.T @ (table[:, None] * member))
    null = _paired(sampling, explained.shape) / moments.rows + _noise(regressions, triple, given, terms, member)
    return Residuals((observed(moments, triple) - explained).reshape(1, -1), null[None], effect[None])


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


def _noise(regressions: Regressions, triple: Columns, given: Columns, terms: Terms, member: FloatArray) -> FloatArray:
    """Privacy noise: of the triple, and of the pairs, margins and regressions that it is compared with.

    That of the count and of s alone is left out: it is less than a hundredth of the triple's own.
    """
    moments, (a, b, s) = regressions.moments, triple
    eye_a, eye_b, eye_s = (np.eye(moments.levels[x] - 1) for x in triple)
    mean_s = moments.margins[s].mean
    of_pair = moments.noise(a, b) * np.outer(mean_s, mean_s) + moments.noise(a, b, s) * eye_s
    of_left = kron(eye_a, _of_side(regressions, (a, b, s), given, terms, member))
    of_right = kron(eye_b, _of_side(regressions, (b, a, s), given, terms, member))
    shape = len(eye_b), len(eye_a), len(eye_s)
    swapped = of_right.reshape(*shape, *shape).transpose(1, 0, 2, 4, 3, 5).reshape(of_right.shape)
    return np.asarray(kron(kron(eye_a, eye_b), of_pair) + of_left + swapped)


def _of_side(regressions: Regressions, triple: Columns, given: Columns, terms: Terms, member: FloatArray) -> FloatArray:
    """For one coordinate of the first column: noise of its margin and of its covariances with S, over b and s."""
    moments, (a, b, s) = regressions.moments, triple
    right = regressions.single[b, given, terms]
    table, values, inverse = (x[0] for x in (right.design.tables, right.design.values, right.design.inverse))
    mean_b, mean_s = moments.margins[b].mean, moments.margins[s].mean
    fitted = values @ right.coefficients[0, 0]
    products = _mean_product(table, values, fitted, member)
    slopes = inverse @ products.reshape(len(products), -1)
    by_margin = kron(mean_b, mean_s) - (fitted.T @ (table[:, None] * member)).ravel()
    noise = np.zeros((len(by_margin), len(by_margin)))
    for term, slope in zip(terms, np.split(slopes, _starts(moments, terms)), strict=True):
        if len(term) == 1:
            by_margin = by_margin + moments.margins[term[0]].mean @ slope
        if term == (s,):  # this pair centres the triple, too
            slope = slope + np.hstack([x * np.eye(len(mean_s)) for x in mean_b])
        noise = noise + moments.noise(a, *term) * slope.T @ slope
    noise = noise + moments.margins[a].noise * np.outer(by_margin, by_margin)
    return np.asarray(noise)


def _starts(moments: CentralMoments, terms: Terms) -> list[int]:
    """Where the features of every term but the first begin."""
    return list(accumulate(prod(moments.levels[a] - 1 for a in term) for term in terms[:-1]))


def _coordinates(moments: CentralMoments, given: Columns, member: int) -> FloatArray:
    """Centred coordinates of a member of a conditioning set in each cell of its table."""
    margin, levels = moments.margins[member], [moments.levels[x] for x in given]
    return np.asarray((margin.basis - margin.mean)[np.indices(levels)[given.index(member)].ravel()])


def _mean_product(table: FloatArray, x: FloatArray, y: FloatArray, z: FloatArray) -> FloatArray:
    """E[x (x) y (x) z] over the cells of a table."""
    right = outer(table[:, None] * y, z).reshape(len(table), -1)
    return np.asarray((x.T @ right).reshape(x.shape[1], y.shape[1], z.shape[1]))


def _flat(stack: FloatArray) -> FloatArray:
    return stack.reshape(len(stack), -1)


def _paired(products: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """The covariance of blocks of this shape from a product of three flat covariances."""
    i, j, k = shape
    return products.reshape(i, i, j, j, k, k).transpose(0, 2, 4, 1, 3, 5).reshape(i * j * k, -1)
