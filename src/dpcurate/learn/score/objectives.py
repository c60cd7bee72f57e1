"""Where the loss of a descent comes from: exact moments, noised moments, or noised clipped gradients.

The loss is (1/2) tr((I - W)^T C (I - W)) with C the covariance, so second moments are all it needs:
the exact and the noised-moments forms ask the queryable once. The gradient is linear in C, so released
gradients, too, are noisy equations for C; `Gradients` solves them all together (a quasi-Newton
method whose Hessian, I (x) C, is fitted to every gradient released so far).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpcurate._typing import BoolArray, FloatArray
from dpcurate.errors import QueryError
from dpcurate.learn.score.descent import Loss
from dpcurate.queries import Answer, Gaussian, Gradient, Moments, Queryable, Release
from dpcurate.schema import Column, Numeric

SCALES = ("units", "bounds", "moments")


@dataclass(frozen=True, slots=True, eq=False)
class Quadratic:
    """The loss of a covariance: a source that needs no further look at the data."""

    covariance: FloatArray

    def near(self, weights: FloatArray) -> Loss:
        """The loss near these weights: it is quadratic already."""
        return self

    def __call__(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """(1/2) tr((I - W)^T C (I - W)) and its gradient -C (I - W)."""
        rest = np.eye(len(weights)) - weights
        product = self.covariance @ rest
        return 0.5 * float(np.vdot(rest, product)), -product


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedMoments:
    """Count, means and covariance as released, on the scale of the public bounds or a released one.

    `noise` is the standard deviation of each released sum; `own` marks columns whose square was
    released by itself (that of a binary column is the count), with `squares` times the noise variance.
    """

    count: float
    mean: FloatArray
    covariance: FloatArray
    noise: float
    own: BoolArray
    squares: float = 1.0

    @classmethod
    def of(cls, answer: Answer, columns: Sequence[Column]) -> ReleasedMoments:
        """The means and covariance of released moments."""
        matrix, own = answer.value, np.array([c.steps > 1 for c in columns])
        number = float(matrix[0, 0])
        if number < max(2.0, 4.0 * answer.scale):
            raise TooNoisy("the number of rows is lost in the noise: there are too few rows for this budget")
        mean = np.clip(matrix[0, 1:] / number, -1.0, 1.0)
        covariance = matrix[1:, 1:] / number - np.outer(mean, mean)
        return cls(number, mean, covariance, answer.scale, own)

    @property
    def entry(self) -> float:
        """Standard deviation of the noise in one entry of the mean product."""
        return self.noise / self.count

    def valid(self) -> FloatArray:
        """The nearest covariance: variances above their noise, then no eigenvalue below a small floor."""
        least = max(2.0 * self.entry, 1e-9)
        fixed = self.covariance.copy()
        np.fill_diagonal(fixed, np.maximum(np.diag(fixed), least))
        spread = np.sqrt(np.diag(fixed))
        values, vectors = np.linalg.eigh(fixed / np.outer(spread, spread))
        floor = 1e-6 if self.noise == 0 else 1e-3
        if values[0] < floor:
            fixed = (vectors * np.maximum(values, floor)) @ vectors.T * np.outer(spread, spread)
        return np.asarray((fixed + fixed.T) / 2, dtype=np.float64)

    def noise_variance(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Variance that the noise gives to a^T C b, for every row a of `first` and the vector b = `second`.

        To first order, means included: with a' = (-a.m, a) and E the noise of the moment matrix it
        is that of a'^T E b' / N, and the entries of E's upper triangle are independent.
        """
        a = np.column_stack([-first @ self.mean, first])
        b = np.concatenate([[-second @ self.mean], second])
        each = a * b
        own = np.concatenate([[False], self.own])
        upper = (a * a).sum(axis=1) * float(b @ b) + each.sum(axis=1) ** 2 - 2.0 * (each * each).sum(axis=1)
        squares = self.squares * (each[:, own] ** 2).sum(axis=1) + each[:, ~own].sum(axis=1) ** 2
        return np.asarray(self.entry**2 * (upper + squares), dtype=np.float64)


class TooNoisy(QueryError):
    """A release that tells nothing; learners turn it into an empty graph with a note."""


def factors(columns: Sequence[Column], covariance: FloatArray, scale: str) -> FloatArray:
    """What a column in [-1, 1] is multiplied by: its own units, nothing, or 1 / its released spread."""
    if scale == "units":
        return np.array([(c.high - c.low) / 2 if isinstance(c, Numeric) else c.steps / 2 for c in columns])
    if scale == "bounds":
        return np.ones(len(columns))
    if scale == "moments":
        return np.asarray(1.0 / np.sqrt(np.diag(covariance)), dtype=np.float64)
    raise QueryError(f"scale must be one of {', '.join(map(repr, SCALES))}, got {scale!r}")


# --- gradients -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Margins:
    """Noised count, means and mean squares of every column by itself."""

    count: float
    mean: FloatArray
    square: FloatArray
    noise: float

    @classmethod
    def ask(cls, queryable: Queryable, columns: tuple[str, ...], rho: float) -> Margins:
        """One release for each column, `rho` altogether; the counts are averaged."""
        each = Gaussian(rho=rho / len(columns) * (1 - 1e-9))
        answers = queryable.ask_all([Release(Moments((c,)), each) for c in columns])
        number = float(np.mean([a.value[0, 0] for a in answers]))
        noise = max(a.scale for a in answers)
        if number < max(2.0, 4.0 * noise):
            raise TooNoisy("the number of rows is lost in the noise: there are too few rows for this budget")
        mean = np.array([a.value[0, 1] for a in answers]) / number
        square = np.array([a.value[1, 1] for a in answers]) / number
        return cls(number, np.clip(mean, -1, 1), np.clip(square, 0, 1), noise / number)

    @property
    def variance(self) -> FloatArray:
        """Variances, kept above their noise."""
        return np.maximum(self.square - self.mean**2, max(2.0 * self.noise, 1e-6))


@dataclass(slots=True, eq=False)
class Gradients:
    """Released clipped gradients, and the covariance that explains all of them best.

    Weights outside are on the scale of the released spreads (V = D^-1 ... D), the session's on that of
    the public bounds. Each call of `near` is one paid look; `rho` gives its price and may look at
    what was released before.
    """

    queryable: Queryable
    columns: tuple[str, ...]
    margins: Margins
    clip: Callable[[Gradients, FloatArray], float]
    price: Callable[[Gradients], float]
    looks: list[NoisyGradient]

    def near(self, weights: FloatArray) -> Loss:
        """Ask for the gradient at these weights, then fit the covariance again."""
        spread = np.sqrt(self.margins.variance)
        inside = np.clip(weights * spread[None, :] / spread[:, None], -1e6, 1e6)
        self.look(inside, self.clip(self, inside), self.price(self))
        second = fit_second_moments(self.looks, self.margins)
        return Quadratic(_correlation(second - np.outer(self.margins.mean, self.margins.mean), spread))

    def look(self, inside: FloatArray, clip: float, rho: float) -> NoisyGradient:
        """One paid gradient, kept."""
        statistic = Gradient(self.columns, tuple(map(tuple, inside.tolist())), clip)
        answer = self.queryable.ask(Release(statistic, Gaussian(rho=rho)))
        number = self.margins.count
        found = NoisyGradient(inside, answer.value / number, answer.scale / number, clip, rho)
        self.looks.append(found)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class NoisyGradient:
    """One released mean gradient: where, what, its noise, its clip and its price."""

    weights: FloatArray
    gradient: FloatArray
    noise: float
    clip: float
    rho: float

    @property
    def signal(self) -> float:
        """Length of the gradient over the length that noise alone would have."""
        d = len(self.gradient)
        return float(np.linalg.norm(self.gradient)) / max(1e-300, self.noise * math.sqrt(d * (d - 1)))


def fit_second_moments(looks: Sequence[NoisyGradient], margins: Margins) -> FloatArray:
    """The symmetric S that best explains off-diagonal gradients -S (I - W_k) and the released squares.

    Weighted least squares by conjugate gradients: O(looks * d^3) a step.
    """
    d = len(margins.mean)
    apart = ~np.eye(d, dtype=bool)
    rests = [np.eye(d) - look.weights for look in looks]
    trust = [1.0 / look.noise**2 for look in looks]
    known = 1.0 / margins.noise**2

    def normal(s: FloatArray) -> FloatArray:
        total = np.diag(known * np.diag(s))
        for rest, weight in zip(rests, trust, strict=True):
            total = total + weight * ((apart * (s @ rest)) @ rest.T)
        return np.asarray((total + total.T) / 2, dtype=np.float64)

    goal = np.diag(known * margins.square)
    for rest, weight, look in zip(rests, trust, looks, strict=True):
        goal = goal - weight * ((apart * look.gradient) @ rest.T)
    start = np.outer(margins.mean, margins.mean)
    np.fill_diagonal(start, margins.square)
    return _conjugate(normal, (goal + goal.T) / 2, start)


def _conjugate(
    normal: Callable[[FloatArray], FloatArray], goal: FloatArray, start: FloatArray, steps: int = 200
) -> FloatArray:
    found, rest = start, goal - normal(start)
    direction, size = rest, float(np.vdot(rest, rest))
    enough = 1e-16 * max(1e-300, float(np.vdot(goal, goal)))
    for _ in range(steps):
        if size <= enough:
            break
        image = normal(direction)
        step = size / float(np.vdot(direction, image))
        found, rest = found + step * direction, rest - step * image
        size, before = float(np.vdot(rest, rest)), size
        direction = rest + (size / before) * direction
    return found


def _correlation(covariance: FloatArray, spread: FloatArray) -> FloatArray:
    """On the scale of the spreads, with ones on the diagonal and no eigenvalue below a small floor."""
    scaled = covariance / np.outer(spread, spread)
    np.fill_diagonal(scaled, 1.0)
    values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
    fixed = (vectors * np.maximum(values, 1e-2)) @ vectors.T
    size = np.sqrt(np.diag(fixed))
    return np.asarray(fixed / np.outer(size, size), dtype=np.float64)
