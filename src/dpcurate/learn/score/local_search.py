"""From the weights of a descent to a graph: local search over DAGs, and a check of every edge.

A descent with an L1 penalty shrinks weights and ends near, not at, a sparse optimum. The search adds,
removes and turns single arrows while that gains; how much an arrow gains knows the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import Protocol

import numpy as np

from dpcurate._typing import BoolArray, FloatArray
from dpcurate.learn.score.acyclic import AllowedArrows, indices, reachable
from dpcurate.learn.score.objectives import ReleasedMoments

TURN = 1e-6
"""A move must gain more than this, so that equivalent graphs are not turned for ever."""


@dataclass(frozen=True, slots=True, eq=False)
class Regressed:
    """Residuals on some columns P: functionals (rows of `lines`) and their covariances."""

    lines: FloatArray
    covariance: FloatArray

    @classmethod
    def on(cls, covariance: FloatArray, given: tuple[int, ...]) -> Regressed:
        """Regress every column on those given, without a look at the data."""
        lines = np.eye(len(covariance))
        if not given:
            return cls(lines, covariance)
        p = list(given)
        slopes = np.linalg.solve(covariance[np.ix_(p, p)], covariance[p]).T
        lines[:, p] -= slopes
        return cls(lines, covariance - slopes @ covariance[p])


class Gains(Protocol):
    """What an arrow i -> j is worth beside other parents of j, for all i at once."""

    def of(self, j: int, given: tuple[int, ...]) -> FloatArray:
        """The gain of every i as a further parent of j; entries of j and of `given` mean nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisyGains:
    """Fall of the Gaussian score with as many effective rows as sampling and noise leave, less `price`.

    Half the effective rows times -log(1 - partial correlation^2): the price is z^2 / 2 for arrows
    that are to be z standard errors from 0. The released noise enters through `ReleasedMoments`.
    """

    spread: ReleasedMoments
    covariance: FloatArray
    price: float

    def of(self, j: int, given: tuple[int, ...]) -> FloatArray:
        """The gain in log-likelihood of each possible parent of column j."""
        strength, rows = self.partial(j, given)
        return -0.5 * rows * np.log1p(-np.minimum(strength**2, 1 - 1e-9)) - self.price

    def partial(self, j: int, given: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        """Partial correlations of all i with j, and the effective number of rows behind each."""
        rest = Regressed.on(self.covariance, given)
        spread = np.maximum(np.diag(rest.covariance), 1e-9)
        both = spread * spread[j]
        noise = self.spread.noise_variance(rest.lines, rest.lines[j]) / both
        return rest.covariance[:, j] / np.sqrt(both), 1.0 / (1.0 / self.spread.count + noise)


@dataclass(frozen=True, slots=True, eq=False)
class LeastSquares:
    """Fall of the sum of squares in units of a common noise variance, less `price`; NOTEARS's own loss.

    An arrow lighter than `threshold` is worth nothing.
    """

    covariance: FloatArray
    rows: float
    variance: float
    price: float
    threshold: float

    def of(self, j: int, given: tuple[int, ...]) -> FloatArray:
        """The gain in log-likelihood of each possible parent of column j."""
        rest = Regressed.on(self.covariance, given)
        spread = np.maximum(np.diag(rest.covariance), 1e-12)
        shared = rest.covariance[:, j]
        gain = 0.5 * self.rows * shared**2 / spread / self.variance - self.price
        return np.where(np.abs(shared / spread) >= self.threshold, gain, np.minimum(gain, -TURN * 10))


@dataclass(slots=True, eq=False)
class Search:
    """Hill climbing over DAGs that respect the facts."""

    gains: Gains
    facts: AllowedArrows
    most: int = 2000
    _table: FloatArray = field(init=False)
    _known: dict[tuple[int, tuple[int, ...]], FloatArray] = field(init=False, default_factory=dict)

    def run(self, arrows: BoolArray) -> BoolArray:
        """Make the best single move until none gains; a graph seen before ends it too."""
        arrows = arrows.copy()
        self._table = np.zeros(arrows.shape)
        for j in range(len(arrows)):
            self._column(arrows, j)
        seen: set[bytes] = set()
        for _ in range(self.most):
            move = self._best(arrows)
            if move is None or arrows.tobytes() in seen:
                break
            seen.add(arrows.tobytes())
            self._make(arrows, *move)
        return arrows

    def _gain(self, j: int, given: tuple[int, ...]) -> FloatArray:
        key = (j, given)
        if key not in self._known:
            self._known[key] = self.gains.of(j, given)
        return self._known[key]

    def _column(self, arrows: BoolArray, j: int) -> None:
        """What each i brings, or would bring, as a parent of j beside the others."""
        parents = tuple(np.flatnonzero(arrows[:, j]).tolist())
        column = self._gain(j, parents).copy()
        for i in parents:
            column[i] = self._gain(j, tuple(p for p in parents if p != i))[i]
        column[j] = 0.0
        self._table[:, j] = column

    def _best(self, arrows: BoolArray) -> tuple[str, int, int] | None:
        below, joined = reachable(arrows), self.facts.joined()
        near = arrows | arrows.T
        add = np.where(self.facts.allowed & ~near & ~below.T, self._table, -math.inf)
        drop = np.where(arrows & ~joined, -self._table, -math.inf)
        turn = np.where(arrows & self.facts.allowed.T, self._table.T - self._table, -math.inf)
        found: tuple[float, str, int, int] | None = None
        for name, worth in (("add", add), ("drop", drop), ("turn", turn)):
            best = self._first(name, worth, arrows, TURN if found is None else found[0])
            found = best or found
        return None if found is None else found[1:]

    def _first(
        self, name: str, worth: FloatArray, arrows: BoolArray, least: float
    ) -> tuple[float, str, int, int] | None:
        """The best possible move of one kind that gains more than `least`."""
        better = np.argwhere(worth > least)
        order = np.argsort(-worth[better[:, 0], better[:, 1]], kind="stable")
        for i, j in better[order].tolist():
            if name != "turn" or not _another_way(arrows, i, j):
                return float(worth[i, j]), name, i, j
        return None

    def _make(self, arrows: BoolArray, name: str, i: int, j: int) -> None:
        arrows[i, j] = name == "add"
        if name == "turn":
            arrows[j, i] = True
            self._column(arrows, i)
        self._column(arrows, j)


def _another_way(arrows: BoolArray, i: int, j: int) -> bool:
    """Whether j is reached from i other than by the arrow i -> j."""
    without = arrows.copy()
    without[i, j] = False
    stack, seen = [i], {i}
    while stack:
        for k in np.flatnonzero(without[stack.pop()]).tolist():
            if k == j:
                return True
            if k not in seen:
                seen.add(k)
                stack.append(k)
    return False


@dataclass(frozen=True, slots=True)
class Separation:
    """The weakest look at an edge: given these columns it is `value`, with standard error `error`."""

    given: tuple[int, ...]
    value: float
    error: float

    @property
    def z(self) -> float:
        """The value in standard errors."""
        return abs(self.value) / self.error


def weakest(gains: NoisyGains, near: BoolArray, i: int, j: int, order: int) -> Separation:
    """The least significant partial correlation of i and j given up to `order` neighbours of either."""
    found: Separation | None = None
    for side in (i, j):
        around = [k for k in np.flatnonzero(near[side]).tolist() if k not in (i, j)]
        for size in range(order + 1):
            for given in combinations(around, size):
                strength, rows = gains.partial(j, given)
                look = Separation(given, float(strength[i]), float(1 / math.sqrt(rows[i])))
                found = look if found is None or look.z < found.z else found
    assert found is not None
    return found


def checked(
    gains: NoisyGains, arrows: BoolArray, facts: AllowedArrows, *, z: float, least: float, order: int
) -> tuple[BoolArray, dict[tuple[int, int], Separation]]:
    """Drop arrows whose pair some small set of neighbours separates; also every pair's weakest look.

    Separated means below `z` standard errors or below `least` in size.
    """
    near, keep, looks = arrows | arrows.T, arrows.copy(), {}
    joined = facts.joined()
    for i, j in indices(arrows):
        looks[i, j] = weakest(gains, near, i, j, order)
        keep[i, j] = bool(joined[i, j]) or abs(looks[i, j].value) >= max(least, z * looks[i, j].error)
    return keep, looks
