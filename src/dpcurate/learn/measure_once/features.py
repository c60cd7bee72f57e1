"""What a cell becomes: a number for a number, a few for a level, made from distributions that were released.

A number and an ordinal become the normal score of their place in the released distribution, so bounds may be far
too wide and any monotone transform gives the same features. A level becomes its centred indicator, in
coordinates that shrink directions of large spread, so that rare levels are not lost in the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from dpcurate._typing import FloatArray, IntArray
from dpcurate.learn.measure_once.blocks import helmert
from dpcurate.learn.measure_once.distributions import Distribution
from dpcurate.queries import FEATURE_STEPS, LARGEST_FEATURE, MOST_FEATURES, FeatureMap
from dpcurate.schema import OWN, Numeric, Ordinal

FURTHEST = 2.5
"""Normal scores end here: a few rows far out would lengthen every row that is kept whole."""
MOST_GROUPS = 64
"""Levels that keep an indicator of their own, in wide tables fewer; the rarest of a longer list share one."""
WHITENING = 0.25
"""Directions are divided by their spread to the power of twice this: 0.5 makes all variances equal, 0 none."""
WAVES = 4
"""Where noise is small a score comes with so many waves over the ranks: links may bend, turn round or be products."""
RARE = 1e-4
"""A place with less than this share is none of its own: the waves of few places are as many as tell these apart."""
LEAST_SPREAD = 0.1
"""A column that hardly varies is not blown up beyond this."""
LARGEST = 8.0
MOST_VALUE = LARGEST_FEATURE / FEATURE_STEPS
"""A query takes no larger feature."""
LONGEST = 3.0
"""The mean squared length of a column's features at most; a number's is 1."""


@dataclass(frozen=True, slots=True)
class Features:
    """A column's features: their values at each place, and their covariance there."""

    name: str
    values: FloatArray
    covariance: FloatArray
    curved: int = 0
    """How many of them, the last, are waves."""

    @property
    def size(self) -> int:
        return int(self.values.shape[1])

    @property
    def complete(self) -> bool:
        """Whether any function of the column is a sum of them."""
        return self.size == len(self.values) - 1

    @property
    def length(self) -> float:
        """The mean squared length."""
        return float(np.trace(self.covariance))

    def map(self) -> FeatureMap:
        """In whole steps, as a query takes them."""
        return FeatureMap(self.name, np.rint(self.values * FEATURE_STEPS).astype(np.int64))  # type: ignore[arg-type]


def features_of(known: Sequence[Distribution], *, curved: bool) -> list[Features]:
    """The features of every column; `curved` adds waves to the scores of numbers and ordinals, for links that bend."""
    groups = max(2, min(MOST_GROUPS, MOST_FEATURES // len(known)))
    waves = WAVES if curved else 0
    return [
        _scored(one, waves) if isinstance(one.column, (Numeric, Ordinal)) else _indicators(one, groups) for one in known
    ]


def _scored(known: Distribution, most: int) -> Features:
    """The score, and cosines of one half turn more and more, at most together as long as the score.

    So the noise of scores no more than doubles, and the norm of a row has no long tail.
    """
    shares = known.shares
    ranks = np.cumsum(shares) - shares / 2
    score = np.clip(ndtri(np.clip(ranks, 1e-6, 1 - 1e-6)), -FURTHEST, FURTHEST)
    columns = [_standard(score, shares)]
    waves = max(0, min(most, int((shares > RARE).sum()) - 2))
    for half_turns in range(2, waves + 2):
        columns.append(_standard(_apart(np.cos(half_turns * np.pi * ranks), columns, shares), shares))
    columns[1:] = [column / math.sqrt(WAVES) for column in columns[1:]]
    if known.column.missing == OWN:
        columns, shares = _with_missing(columns, shares, known.missing)
    values = np.column_stack(columns)
    return Features(known.column.name, values, _covariance(values, shares), waves)


def _with_missing(columns: list[FloatArray], shares: FloatArray, missing: float) -> tuple[list[FloatArray], FloatArray]:
    """A missing cell lies in the middle of every score, and has a feature of its own."""
    spread = max(math.sqrt(missing * (1 - missing)), 0.05)
    own = np.append(np.full(len(shares), -missing), 1 - missing) / spread
    first, *more = (np.append(column, 0.0) for column in columns)
    return [first, own, *more], np.append(shares * (1 - missing), missing)


def _indicators(known: Distribution, most: int) -> Features:
    groups = _groups(known, most)
    shares: FloatArray = np.maximum(np.bincount(groups, weights=known.shares), known.noise + 1e-6).astype(np.float64)
    shares = shares / shares.sum()
    basis = helmert(len(shares))
    coordinates = basis - shares @ basis
    variances, axes = np.linalg.eigh(_covariance(coordinates, shares))
    coordinates = coordinates @ axes / np.maximum(variances, 1e-9) ** WHITENING
    scale = np.sqrt(min(np.sqrt(len(variances)), LONGEST) / np.trace(_covariance(coordinates, shares)))
    # The indicator of a level that next to no row has is longer than a query takes, and its direction needs no more.
    coordinates = np.clip(coordinates * scale, -MOST_VALUE, MOST_VALUE)
    return Features(known.column.name, coordinates[groups], _covariance(coordinates, shares))


def _groups(known: Distribution, most: int) -> IntArray:
    """The group of each level: the most frequent ones for themselves, the others together."""
    levels = len(known.shares)
    if levels <= most:
        return np.arange(levels, dtype=np.int64)
    rank = np.empty(levels, dtype=np.int64)
    rank[np.argsort(-known.shares, kind="stable")] = np.arange(levels)
    return np.minimum(rank, most - 1)


def _apart(values: FloatArray, columns: list[FloatArray], shares: FloatArray) -> FloatArray:
    """What others, standard and uncorrelated, do not say of these values."""
    for column in columns:
        values = values - float((shares * values) @ column) * column
    return values


def _standard(values: FloatArray, shares: FloatArray) -> FloatArray:
    centred = values - float(shares @ values)
    spread = math.sqrt(max(float(shares @ centred**2), LEAST_SPREAD**2))
    return np.asarray(np.clip(centred / spread, -LARGEST, LARGEST))


def _covariance(values: FloatArray, shares: FloatArray) -> FloatArray:
    mean = shares @ values
    return np.asarray((values * shares[:, None]).T @ values - np.outer(mean, mean))
