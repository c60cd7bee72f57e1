"""How one column of a table with numbers is drawn, given what its parents make likely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from dpcurate._typing import FloatArray
from dpcurate.learn.measure_once.column_features import Distribution, Features
from dpcurate.schema import OWN, Numeric, Ordinal

Places = npt.NDArray[np.int64]
AT_ONCE = 10_000
"""Rows for which the chances of all levels are held at once."""
FITS = 5
"""Rounds in which chances are scaled so that levels are as frequent as released."""


class Draws(Protocol):
    """A source of random numbers."""

    def random(self, size: int) -> FloatArray:
        """Uniform numbers from 0 to 1."""

    def standard_normal(self, size: int) -> FloatArray:
        """Normal numbers of mean 0 and variance 1."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Places in a column's distribution, and the cells of a table."""

    places: Places
    cells: Any


def is_scored(column: object) -> bool:
    """Whether a column has an order, and so one score."""
    return isinstance(column, (Numeric, Ordinal))


def draw_column(known: Distribution, features: Features, mean: FloatArray, rest: FloatArray, draws: Draws) -> Drawn:
    """A column given the mean of its features in every row, and the covariance that is left."""
    if is_scored(known.column):
        return _scored(known, features.values[:, 0], mean, rest, draws)
    places = _levels(known, features, mean, draws)
    return Drawn(places, _named(known, places))


def _scored(known: Distribution, values: FloatArray, mean: FloatArray, rest: FloatArray, draws: Draws) -> Drawn:
    """A normal number behind the score, and its place by rank, so that the column has the released distribution."""
    count = len(mean)
    signal = _signal(known, values, mean, rest)
    score = signal + np.sqrt(max(1 - float(np.var(signal)), 0.0)) * draws.standard_normal(count)
    ranks = np.empty(count)
    ranks[np.argsort(score, kind="stable")] = (np.arange(count) + 0.5) / max(count, 1)
    ends = np.cumsum(known.shares)
    places = np.minimum(np.searchsorted(ends, ranks * ends[-1], side="right"), len(ends) - 1)
    within = np.clip((ranks * ends[-1] - (ends - known.shares)[places]) / np.maximum(known.shares[places], 1e-12), 0, 1)
    cells = _numbers(known, places, within)
    if known.column.missing == OWN and isinstance(known.column, Numeric):
        gone = draws.random(count) < _missing(known, mean)
        places, cells = np.where(gone, len(ends), places), np.where(gone, np.nan, cells)
    return Drawn(places, cells)


def _signal(known: Distribution, values: FloatArray, mean: FloatArray, rest: FloatArray) -> FloatArray:
    """The mean of the normal number behind a score, whose variance is 1 over all rows."""
    spread = np.sqrt(max(float(rest[0, 0]) + float(np.var(mean[:, 0])), 1e-9))
    return np.asarray(mean[:, 0] / (spread * _kept(known, values)))


def place_chances(
    known: Distribution, features: Features, mean: FloatArray, rest: FloatArray, places: Places
) -> FloatArray:
    """The probability of each row's place, given the mean of the column's features there."""
    if not is_scored(known.column):
        chances = np.empty(len(mean))
        for start in range(0, len(mean), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            of_levels = level_chances(known, features, mean[some])
            chances[some] = of_levels[np.arange(len(of_levels)), places[some]]
        return chances
    signal = _signal(known, features.values[:, 0], mean, rest)
    left = np.sqrt(max(1 - float(np.var(signal)), 1e-9))
    ends = np.concatenate([[0.0], np.cumsum(known.shares)])
    cuts = ndtri(np.clip(ends / ends[-1], 0.0, 1.0))
    inside = np.minimum(places, len(known.shares) - 1)
    seen = ndtr((cuts[inside + 1] - signal) / left) - ndtr((cuts[inside] - signal) / left)
    if known.column.missing != OWN or not isinstance(known.column, Numeric):
        return np.asarray(seen)
    missing = _missing(known, mean)
    return np.asarray(np.where(places == len(known.shares), missing, (1 - missing) * seen))


def _kept(known: Distribution, values: FloatArray) -> float:
    """The correlation of the score of a place with the normal number behind it, which few places make weaker."""
    ends = np.clip(np.concatenate([[0.0], np.cumsum(known.shares)]), 0.0, 1.0)
    density = np.exp(-(ndtri(np.clip(ends, 1e-12, 1 - 1e-12)) ** 2) / 2) / np.sqrt(2 * np.pi)
    score = values[: len(known.shares)] - known.shares @ values[: len(known.shares)]
    spread = np.sqrt(max(float(known.shares @ score**2), 1e-9))
    return float(np.clip((density[:-1] - density[1:]) @ score / spread, 0.5, 1.0))


def _missing(known: Distribution, mean: FloatArray) -> FloatArray:
    """The chance that a cell is missing: its feature is (1 if missing, else 0, less the share) over a spread."""
    share = known.missing
    return np.asarray(np.clip(share + max(np.sqrt(share * (1 - share)), 0.05) * mean[:, 1], 0, 1))


def _numbers(known: Distribution, places: Places, within: FloatArray) -> Any:
    column = known.column
    if not isinstance(column, Numeric):
        return _named(known, places)
    cuts = np.array([column.low, *column.edges, column.high]) if column.has_levels else None
    if cuts is None:
        cuts = np.linspace(column.low, column.high, len(known.shares) + 1)
    return np.clip(cuts[places] + within * np.diff(cuts)[places], column.low, column.high)


def _named(known: Distribution, places: Places) -> Any:
    return np.array(known.column.levels, dtype=object).take(places)


def level_chances(known: Distribution, features: Features, mean: FloatArray) -> FloatArray:
    """The chance of every level in rows where features have this mean: the share, tilted, none negative."""
    centred = features.values - known.shares @ features.values
    tilt = 1 + mean @ np.linalg.pinv(features.covariance) @ centred.T
    chances = np.maximum(known.shares * tilt, 0.0) + 1e-12
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _levels(known: Distribution, features: Features, mean: FloatArray, draws: Draws) -> Places:
    places = np.zeros(len(mean), dtype=np.int64)
    uniform = draws.random(len(mean))
    for start in range(0, len(mean), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        chances = level_chances(known, features, mean[some])
        for _ in range(FITS):  # no entry is negative, so levels would be a little off their shares
            chances *= known.shares / np.maximum(chances.mean(axis=0), 1e-12)
            chances /= chances.sum(axis=1, keepdims=True)
        places[some] = (np.cumsum(chances, axis=1) < uniform[some, None]).sum(axis=1).clip(0, len(known.shares) - 1)
    return places


def score_quantile(known: Distribution, features: Features, mean: float, variance: float) -> tuple[float, float, float]:
    """The mean of a number whose score has this mean and variance, and where its middle 95 % lie."""
    cuts = np.clip(features.values[: len(known.shares), 0], -1e9, 1e9)
    middle = (cuts[1:] + cuts[:-1]) / 2
    below = np.concatenate([[0.0], ndtr((middle - mean) / np.sqrt(max(variance, 1e-9))), [1.0]])
    chances = np.maximum(np.diff(below), 0.0) * (known.shares > 0)
    chances = chances / max(float(chances.sum()), 1e-12)
    half = np.full(len(chances), 0.5)
    values = np.asarray(_numbers(known, np.arange(len(chances)), half), dtype=np.float64)
    ends = np.cumsum(chances)
    low, high = (float(values[min(int(np.searchsorted(ends, q)), len(values) - 1)]) for q in (0.025, 0.975))
    return float(chances @ values), low, high
