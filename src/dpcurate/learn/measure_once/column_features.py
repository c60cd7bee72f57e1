"""What a cell becomes: a number for a number, a few for a level, made from distributions that were released."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import ndtr, ndtri

from dpcurate._typing import FloatArray, IntArray
from dpcurate.learn.measure_once.blocks import helmert
from dpcurate.learn.measure_once.constants import (
    FAR_OFF,
    FURTHEST,
    LEAST_SPREAD,
    LONGEST,
    MOST_GROUPS,
    RARE,
    WAVES,
    WHITENING,
)
from dpcurate.queries import BRANCHES, DEEPEST, FEATURE_STEPS, LARGEST_FEATURE, MOST_FEATURES, Answer, FeatureMap
from dpcurate.schema import OWN, Column, Numeric, Ordinal

ANYWHERE = 1e-6
"""Of a column that is taken to be normal: the share that may lie anywhere, so that every interval has some."""
FEWEST_ROWS = 10.0
"""A noised count may be zero or negative."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """The shares of a column's places, which are its levels or the finest intervals of a number."""

    column: Column
    shares: FloatArray
    missing: float = 0.0
    """The share of missing cells, where these are the column's own."""
    noise: float = 0.0
    """Standard deviation of the noise in a share."""


def distributions(answer: Answer, columns: Sequence[Column]) -> tuple[list[Distribution], float]:
    """What released histograms say of each column, and of the number of rows."""
    starts, rows = _starts(columns), max(row_count(answer, columns)[0], FEWEST_ROWS)
    read = partial(_distribution, rows=rows, scale=answer.scales[0])
    return [read(c, answer.parts[start : start + DEEPEST]) for c, start in zip(columns, starts, strict=True)], rows


def row_count(answer: Answer, columns: Sequence[Column]) -> tuple[float, float]:
    """The number of rows as released histograms have it, and its noise: every column's first part holds each once."""
    firsts = [answer.parts[start] for start in _starts(columns)]
    noise = answer.scales[0] * float(np.sqrt(sum(len(first) for first in firsts))) / len(columns)
    return float(np.mean([first.sum() for first in firsts])), noise


def _starts(columns: Sequence[Column]) -> list[int]:
    return [int(s) for s in np.cumsum([0, *(1 if column.has_levels else DEEPEST for column in columns)])[:-1]]


def unknown(columns: Sequence[Column]) -> list[Distribution]:
    """Before anything is asked: every place as likely as any other."""
    sizes = [column.size if column.has_levels else BRANCHES**DEEPEST for column in columns]
    return [Distribution(column, np.full(size, 1 / size)) for column, size in zip(columns, sizes, strict=True)]


def _distribution(column: Column, parts: Sequence[FloatArray], rows: float, scale: float) -> Distribution:
    if column.has_levels:
        return of_levels(column, parts[0], rows, scale)
    return of_number(column, parts, rows, scale, own=column.missing == OWN)


def of_levels(column: Column, counts: FloatArray, rows: float, scale: float) -> Distribution:
    """Noised counts, none negative, as shares."""
    return Distribution(column, _on_simplex(counts / rows, 1.0), 0.0, scale / rows)


def of_number(column: Column, depths: Sequence[FloatArray], rows: float, scale: float, *, own: bool) -> Distribution:
    """From coarse to fine: an interval's share is split as its parts' counts say, as far as they exceed their noise.

    What noise hides is split as the nearest normal curve says, or evenly if counts contradict that.
    """
    missing = min(max(float(depths[0][-1]) / rows, 0.0), 0.999) if own else 0.0
    noise = scale / rows / (1 - missing)
    counted = [counts / rows / (1 - missing) for counts in (depths[0][:BRANCHES], *depths[1:])]
    curve = _normal_curve(counted)
    if _contradicted(curve, counted, noise, rows):
        curve = np.full(len(curve), 1 / len(curve))
    shares = np.array([1.0])
    for counts in counted:
        expected = curve.reshape(len(counts), -1).sum(axis=1).reshape(-1, BRANCHES)
        expected = expected / expected.sum(axis=1, keepdims=True)
        shares = _split(shares, counts.reshape(-1, BRANCHES), expected, noise)
    return Distribution(column, shares, missing, scale / rows)


def _split(shares: FloatArray, counts: FloatArray, expected: FloatArray, noise: float) -> FloatArray:
    """Each share over its parts: as expected, plus what their counts differ beyond their noise, none negative."""
    apart = counts - counts.sum(axis=1, keepdims=True) * expected
    signal = np.maximum((apart**2).sum(axis=1) / (BRANCHES - 1) - noise**2, 0.0)
    kept = signal / (signal + noise**2) if noise else np.ones(len(counts))
    wanted = shares[:, None] * expected + kept[:, None] * apart
    return _on_simplices(wanted, shares).ravel()


def _normal_curve(counted: Sequence[FloatArray]) -> FloatArray:
    """The normal distribution that is nearest to noised shares of intervals of all depths, over the finest of these."""
    middle, spread = _nearest_normal(counted[:2], 0.0, 1.0)
    cell = len(counted[1])
    if spread < 1 / cell and len(counted) == DEEPEST:  # a narrow column: look closer
        first = min(max(int(middle * cell) - 1, 0), cell - 3)
        near = [c.reshape(cell, -1)[first : first + 3].ravel() for c in counted[2:]]
        middle, spread = _nearest_normal(near, first / cell, 3 / cell)
    edges = np.linspace(0, 1, len(counted[-1]) + 1)
    curve = np.diff(ndtr((edges - middle) / spread))
    return np.asarray((1 - ANYWHERE) * curve / max(curve.sum(), 1e-9) + ANYWHERE / len(curve))


def _contradicted(curve: FloatArray, counted: Sequence[FloatArray], noise: float, rows: float) -> bool:
    """Whether shares of some depth lie much further from a curve than noise and sampling explain."""
    for shares in counted:
        expected = curve.reshape(len(shares), -1).sum(axis=1)
        square = float(((shares - expected) ** 2 / (noise**2 + expected / rows)).sum())
        if square > len(shares) + FAR_OFF * math.sqrt(2 * len(shares)):
            return True
    return False


def _nearest_normal(counted: Sequence[FloatArray], start: float, width: float) -> tuple[float, float]:
    """Mean and spread, by least squares over all shares of intervals of a window, on a grid."""
    finest = len(counted[-1])
    middles = start + width * (np.arange(finest) + 0.5) / finest
    spreads = width / finest * 2.0 ** np.arange(-1, math.log2(finest), 0.5)
    edges = start + width * np.linspace(0, 1, finest + 1)
    shares = np.diff(ndtr((edges - middles[:, None, None]) / spreads[:, None]), axis=2)
    error = np.zeros(shares.shape[:2])
    for counts in counted:
        of_cells = shares.reshape(*error.shape, len(counts), -1).sum(axis=3)
        error += ((of_cells - counts) ** 2).sum(axis=2)
    best = np.unravel_index(int(np.argmin(error)), error.shape)
    return float(middles[best[0]]), float(spreads[best[1]])


def _on_simplices(values: FloatArray, totals: FloatArray) -> FloatArray:
    """Each row's nearest vector without negative entries that adds up to its total (Held et al., 1974)."""
    falling = -np.sort(-values, axis=1)
    beyond = (np.cumsum(falling, axis=1) - totals[:, None]) / np.arange(1, values.shape[1] + 1)
    kept = np.maximum((falling > beyond).sum(axis=1), 1)
    return np.asarray(np.maximum(values - beyond[np.arange(len(values)), kept - 1][:, None], 0.0))


def _on_simplex(values: FloatArray, total: float) -> FloatArray:
    return np.asarray(_on_simplices(values[None, :], np.array([total]))[0])


# What a cell becomes: a number for a number, a few for a level, made from distributions that were released.
#
# A number and an ordinal become the normal score of their place in the released distribution, so bounds may be far
# too wide and any monotone transform gives the same features. A level becomes its centred indicator, in
# coordinates that shrink directions of large spread, so that rare levels are not lost in the noise.

LARGEST = 8.0
MOST_VALUE = LARGEST_FEATURE / FEATURE_STEPS
"""A query takes no larger feature."""


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
        """How many features."""
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
