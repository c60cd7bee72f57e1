"""Regressions between the features of columns, from released products of them: numbers, ordinals and long lists.

A number and an ordinal are the normal score of their place in the released distribution, a level its indicators. Each
column is a linear function of its parents' features and independent noise. Rows were shrunk to one length before
their products were added up, so that the products of a column are scaled back to the variance that its own
distribution has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.learn.measure_once.constants import FeatureConstants
from dpcurate.learn.measure_once.feature_release import Products, ReleasedFeatures, buy_features, products_of
from dpcurate.queries import Queryable

LEAST_SCALE = 0.2
"""Rows are not taken to have been shrunk further than this, whatever the noise says."""


def buy_products(queryable: Queryable, before: ReleasedFeatures | None, amount: float) -> ReleasedFeatures:
    """The products of features once more, in one release; all of it where nothing was released before."""
    if before is None:
        return buy_features(queryable, amount, FeatureConstants()).answers
    more = products_of(queryable, before.features, before.clip.square, before.rows, amount)
    return replace(before, products=_merged(before.products, more))


def _merged(one: Products, other: Products) -> Products:
    """Inverse-variance means."""
    share = other.noise / (one.noise + other.noise)
    mean, products = (share * a + (1 - share) * b for a, b in ((one.mean, other.mean), (one.products, other.products)))
    return Products(one.blocks, mean, products, one.noise * share)


@dataclass(frozen=True, slots=True)
class Step:
    """How the features of a column follow from those of its parents."""

    parents: tuple[int, ...]
    weights: FloatArray
    """(features of the parents, features of the column)."""
    rest: FloatArray
    """The covariance of what parents do not explain."""


@dataclass(frozen=True, slots=True)
class Covariance:
    """Of the features of all columns, as their distributions have it."""

    blocks: tuple[tuple[int, int], ...]
    matrix: FloatArray
    noise: float
    """Noise variance of an entry."""

    @classmethod
    def of(cls, released: ReleasedFeatures) -> Covariance:
        """Products about the means, each column scaled to its own variance; none of the directions is negative."""
        products, features = released.products, released.features
        matrix = products.products - np.outer(products.mean, products.mean)
        scale = np.ones(len(matrix))
        for (a, b), one in zip(products.blocks, features, strict=True):
            seen = float(np.trace(matrix[a:b, a:b])) / max(one.length, 1e-9)
            scale[a:b] = 1 / np.sqrt(min(max(seen, LEAST_SCALE), 1 / LEAST_SCALE))
        matrix = matrix * np.outer(scale, scale)
        for (a, b), one in zip(products.blocks, features, strict=True):
            matrix[a:b, a:b] = one.covariance
        noise = products.noise * float(np.mean(scale)) ** 4
        return cls(products.blocks, _without_negative(matrix), noise)

    def places(self, columns: Sequence[int]) -> list[int]:
        """Where the features of these columns stand."""
        return [i for c in columns for i in range(*self.blocks[c])]

    def step(self, column: int, parents: Sequence[int]) -> Step:
        """The regression of a column on others; noise counts as variance that they do not have."""
        own, given = self.places([column]), self.places(parents)
        among = self.matrix[np.ix_(given, given)] + np.sqrt(self.noise) * np.eye(len(given))
        between = self.matrix[np.ix_(given, own)]
        weights = np.linalg.solve(among, between) if given else np.zeros((0, len(own)))
        rest = self.matrix[np.ix_(own, own)] - weights.T @ self.matrix[np.ix_(given, given)] @ weights
        return Step(tuple(parents), weights, _without_negative(rest))


def _without_negative(matrix: FloatArray) -> FloatArray:
    values, axes = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((axes * np.maximum(values, 0.0)) @ axes.T)
