"""Released contrasts as evidence: central moments of indicator blocks, with and without their noise.

All of it is post-processing of what the door gave. A column is written in an orthonormal basis of
the vectors that sum to zero, so that a block of noised contrasts has one noise variance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from math import sqrt
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpcurate.learn.constants import Constants

T = TypeVar("T")
Array = NDArray[np.float64]
Columns = tuple[int, ...]
"""A set of columns by their places, in rising order."""
Answers = Mapping[Columns, tuple[Array, float]]
"""For each set its noised contrast, a sum over rows, and the noise's standard deviation."""


def basis(r: int) -> Array:
    """Orthonormal basis (r, r-1) of vectors that sum to zero (Helmert)."""
    h = np.zeros((r, r - 1))
    for j in range(1, r):
        h[:j, j - 1], h[j, j - 1] = 1, -j
        h[:, j - 1] /= sqrt(j * (j + 1))
    return h


@dataclass
class Released:
    """Everything released so far, in orthonormal coordinates per row, repeated answers merged."""

    levels: Sequence[int]
    c: Constants
    h: list[Array] = field(default_factory=list)
    raw: dict[Columns, Array] = field(default_factory=dict)  # sums over rows
    var: dict[Columns, float] = field(default_factory=dict)  # noise variance of a coordinate of raw

    def __post_init__(self) -> None:
        self.h = [basis(r) for r in self.levels]
        self.d = len(self.levels)

    def add(self, answers: Answers) -> None:
        """Take in a release; what was bought before is merged, never thrown away."""
        for u, (f, sd) in answers.items():
            x, v = rotate(np.asarray(f, float), [self.h[a] for a in u]), sd * sd
            if u in self.raw:  # inverse-variance mean
                v0 = self.var[u]
                x, v = (self.raw[u] * v + x * v0) / (v + v0), v * v0 / (v + v0)
            self.raw[u], self.var[u] = x, v
        self.prepare()

    def prepare(self) -> None:
        """Means, covariances and central moments from the sums released so far."""
        self.n = max(float(self.raw[()]), 10.0)
        self.v0 = self.var[()] / self.n**2
        self.v1 = [self.var[(a,)] / self.n**2 for a in range(self.d)]
        self.p = [self.margin(a) for a in range(self.d)]
        self.m = [self.h[a].T @ self.p[a] for a in range(self.d)]
        self.cov = [
            self.h[a].T @ (self.p[a][:, None] * self.h[a]) - np.outer(self.m[a], self.m[a]) for a in range(self.d)
        ]
        self.eig = [np.linalg.eigh(x) for x in self.cov]
        self.block: dict[Columns, Array] = {}  # unbiased central moments
        self.calm: dict[Columns, Array] = {}  # the same, noise shrunk away
        self.noise: dict[Columns, float] = {}
        self.slack: dict[tuple[int, int], Array] = {}
        for u in sorted((u for u in self.raw if len(u) >= 2), key=len):
            self.moment(u)
        self.memo: dict[object, Any] = {}

    def margin(self, a: int) -> Array:
        """Probabilities of a column's levels, kept above their noise."""
        p = 1 / self.levels[a] + self.h[a] @ self.raw[(a,)] / self.n
        p = np.maximum(p, max(2 / self.n, 0.5 * sqrt(self.v1[a])))
        return np.asarray(p / p.sum())

    def moment(self, u: Columns) -> None:
        """The central moment of a set, its noise variance, and the same with noise shrunk away."""
        b, v = self.raw[u] / self.n - self.implied(u), self.var[u] / self.n**2
        if len(u) > 2:  # a third moment also inherits the noise of the pairs it is centred with
            v += sum(self.noise.get(_without(u, x), 0.0) * float(self.m[x] @ self.m[x]) for x in u)
        self.block[u], self.noise[u] = b, v
        self.calm[u] = self.shrink(u, b, v)

    def implied(self, u: Columns) -> Array:
        """Raw moment of u if its own central moment were zero."""
        total: Array = np.zeros([len(self.m[a]) for a in u])
        for k in (0, *range(2, len(u))):  # a single central moment is zero
            for w in combinations(range(len(u)), k):
                total = total + self.product(u, w)
        return total

    def product(self, u: Columns, w: Columns) -> Array:
        """Central moment of the members at positions w times the means of the others."""
        parts = self.central(tuple(u[i] for i in w)) if w else np.array(1.0)
        rest = [i for i in range(len(u)) if i not in w]
        out = parts
        for i in rest:
            out = np.multiply.outer(out, self.m[u[i]])
        return np.moveaxis(out, range(len(u)), list(w) + rest)

    def central(self, u: Columns) -> Array:
        """The shrunk central moment of a set, zero if it was not bought."""
        if u in self.calm:
            return self.calm[u]
        return np.zeros([len(self.m[a]) for a in u])

    def shrink(self, u: Columns, b: Array, v: float) -> Array:
        """Wiener filter in the coordinates where columns are uncorrelated; signal size estimated from the block."""
        z, s = b, np.array(1.0)
        for a in u:
            z = np.tensordot(z, self.eig[a][1], (0, 0))
            s = np.multiply.outer(s, np.sqrt(self.eig[a][0]))
        z, w = z / s, v / s**2 + 1 / self.n
        f = wiener(z, w)
        if len(u) == 2:
            # what noise is left in the block, per direction of either column, scaled for a regression on it
            self.slack[u] = f.mean(1) * v / self.eig[u[0]][0]
            self.slack[u[::-1]] = f.mean(0) * v / self.eig[u[1]][0]
        z = z * f * s
        for a in u:
            z = np.tensordot(z, self.eig[a][1], (0, 1))
        return z

    def pair(self, a: int, b: int) -> Array:
        """The central moment of two columns, a by b."""
        return self.block[a, b] if a < b else self.block[b, a].T

    def remember(self, key: object, make: Callable[[], T]) -> T:
        """Make something once for the evidence as it stands."""
        if key not in self.memo:
            self.memo[key] = make()
        return cast(T, self.memo[key])

    def cross(self, a: int, u: Columns) -> Array:
        """Covariance (features of u, coordinates of a), shrunk."""

        def make() -> Array:
            full = tuple(sorted((a, *u)))
            x = np.moveaxis(self.calm[full], full.index(a), -1)
            return x.reshape(-1, x.shape[-1])

        return self.remember(("cross", a, u), make)

    def stacked(self, a: int, us: tuple[Columns, ...]) -> tuple[Array, Array]:
        """Covariance of a with several feature blocks, and the noise variance of each."""

        def make() -> tuple[Array, Array]:
            noise = np.array([self.noise[tuple(sorted((a, *u)))] for u in us])
            return np.vstack([self.cross(a, u) for u in us]), noise

        return self.remember(("stack", a, us), make)

    def measured(self, a: int, s: Columns) -> frozenset[Columns]:
        """Subsets of s whose contrast together with a was bought."""
        return self.remember(
            ("measured", a, s), lambda: frozenset(u for u in subsets(s) if tuple(sorted((a, *u))) in self.raw)
        )

    def fellows(self, a: int) -> frozenset[int]:
        """Columns that were measured together with a."""
        return self.remember(
            ("fellows", a), lambda: frozenset(b for b in range(self.d) if (min(a, b), max(a, b)) in self.raw)
        )


def _without(u: Columns, x: int) -> Columns:
    return tuple(t for t in u if t != x)


@cache
def subsets(s: Columns) -> tuple[Columns, ...]:
    """All subsets of s but the empty one, smallest first."""
    return tuple(u for k in range(1, len(s) + 1) for u in combinations(s, k))


def rotate(f: Array, hs: Sequence[Array]) -> Array:
    """A table in the bases of its columns."""
    for h in hs:  # each pass eats the first axis and appends its image
        f = np.tensordot(f, h, (0, 0))
    return f


def wiener(z: Array, v: Array) -> Array:
    """How much of each coordinate is signal, the signal's size being estimated from all of them."""
    t = 0.0
    for _ in range(8):
        w = 1 / (v + t) ** 2
        t = max(0.0, float(((z * z - v) * w).sum() / w.sum()))
    return t / (t + v)
