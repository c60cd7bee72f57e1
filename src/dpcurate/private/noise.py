"""Where randomness comes from: OpenDP's exact samplers, or a seeded stream for simulation."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpcurate._typing import IntArray
from dpcurate.errors import QueryError, RefusedError

AHEAD = 64
"""Single numbers drawn at a time."""
LARGEST_SCALE = 2.0**56
"""Noise of this scale still fits into 64-bit integers with a margin."""


class Randomness(Protocol):
    """Integer noise and secret coins."""

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Discrete Gaussian draws with parameter sigma = scale."""

    def laplace(self, scale: float, size: int) -> IntArray:
        """Discrete Laplace draws, P(x) proportional to exp(-|x| / scale)."""

    def noisiest(self, scores: IntArray, scale: float) -> int:
        """The index of the largest score after Gumbel noise: exp(score / scale) weights."""

    def thin(self, weights: IntArray, rate: int) -> IntArray:
        """Keep each of weights[i] rows with probability rate / 2**32."""

    def uniform(self) -> float:
        """A number in [0, 1)."""


class Ahead:
    """Single draws, made several at a time because that is cheaper; each is handed out once, what is left forgotten."""

    def __init__(self, inner: Randomness, draws: int) -> None:
        self._inner, self._draws = inner, draws
        self._stock: dict[tuple[str, float], list[int]] = {}

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Discrete Gaussian draws with parameter sigma = scale."""
        return self._drawn("gaussian", scale, size)

    def laplace(self, scale: float, size: int) -> IntArray:
        """Discrete Laplace draws."""
        return self._drawn("laplace", scale, size)

    def _drawn(self, law: str, scale: float, size: int) -> IntArray:
        draw: Callable[[float, int], IntArray] = getattr(self._inner, law)
        if size != 1:
            return draw(scale, size)
        stock = self._stock.setdefault((law, scale), [])
        if not stock:
            stock.extend(draw(scale, max(1, min(self._draws, AHEAD))).tolist())
        self._draws -= 1
        return np.array([stock.pop()], dtype=np.int64)

    def noisiest(self, scores: IntArray, scale: float) -> int:
        """The index of the largest score after Gumbel noise."""
        return self._inner.noisiest(scores, scale)

    def thin(self, weights: IntArray, rate: int) -> IntArray:
        """Keep each of weights[i] rows with probability rate / 2**32."""
        return self._inner.thin(weights, rate)

    def uniform(self) -> float:
        """A number in [0, 1)."""
        return self._inner.uniform()


def check_scale(scale: float) -> None:
    """Refuse noise that would not fit into 64-bit integers."""
    if not scale <= LARGEST_SCALE:
        raise QueryError(
            f"this asks for noise of {scale:.3g} integer steps, above the limit of {LARGEST_SCALE:.3g}: "
            "ask for less noise"
        )


def _thin(weights: IntArray, rate: int, draw: Callable[[int], NDArray[np.uint32]]) -> IntArray:
    """Flip a coin for every single row, a bounded number at a time."""
    kept = np.zeros(len(weights), dtype=np.int64)
    step = 1 << 22
    ends = np.cumsum(weights)
    total = int(ends[-1]) if len(ends) else 0
    for start in range(0, total, step):
        stop = min(start + step, total)
        heads = np.flatnonzero(draw(stop - start) < rate) + start
        kept += np.bincount(np.searchsorted(ends, heads, side="right"), minlength=len(weights))
    return kept


class Secure:
    """Exact samplers of OpenDP over the operating system's randomness.

    All of them are tried when it is made, before there is anything to charge for: no draw that comes
    later needs more of the platform, whatever its scale.
    """

    def __init__(self) -> None:
        self._samplers: dict[tuple[str, float], Callable[[Any], Any]] = {}
        try:
            self._library = _opendp()
            self._try()
        except Exception as problem:
            raise RefusedError(
                f"noise cannot be drawn on this machine ({type(problem).__name__}: {problem}), so no table is opened. "
                "Nothing was read and nothing was spent. Install OpenDP again (pip install --force-reinstall opendp), "
                "or use a platform it supports"
            ) from problem

    def _try(self) -> None:
        rows = np.ones(2, dtype=np.int64)
        self.gaussian(LARGEST_SCALE, 1)
        self.laplace(LARGEST_SCALE, 1)
        self.noisiest(rows, LARGEST_SCALE)
        self.thin(rows, 1)
        self.uniform()

    def _sampler(self, kind: str, scale: float) -> Callable[[Any], Any]:
        known = self._samplers.get((kind, scale))
        if known is None:
            if len(self._samplers) > 512:  # scales of a long adaptive run are rarely asked twice
                self._samplers.clear()
            known = self._samplers[(kind, scale)] = _measurement(self._library, kind, scale)
        return known

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Discrete Gaussian draws (Canonne, Kamath, Steinke 2020)."""
        return np.array(self._sampler("gaussian", scale)([0] * size), dtype=np.int64)

    def laplace(self, scale: float, size: int) -> IntArray:
        """Discrete Laplace draws."""
        return np.array(self._sampler("laplace", scale)([0] * size), dtype=np.int64)

    def noisiest(self, scores: IntArray, scale: float) -> int:
        """The exponential mechanism as a noisy maximum."""
        return int(self._sampler("gumbel", scale)([int(s) for s in scores]))

    def thin(self, weights: IntArray, rate: int) -> IntArray:
        """Keep each of weights[i] rows with probability rate / 2**32."""
        return _thin(weights, rate, lambda n: np.frombuffer(os.urandom(4 * n), dtype=np.uint32))

    def uniform(self) -> float:
        """A number in [0, 1)."""
        return (int.from_bytes(os.urandom(7), "big") >> 3) / 2**53


def _opendp() -> Any:
    """The modules in use, imported late because they take 0.3 s; the prelude of OpenDP loads scikit-learn, too."""
    from opendp import domains, measurements, measures, metrics
    from opendp.mod import enable_features

    enable_features("contrib")
    return SimpleNamespace(domains=domains, measurements=measurements, measures=measures, metrics=metrics)


def _measurement(dp: Any, kind: str, scale: float) -> Callable[[Any], Any]:
    make, metrics = dp.measurements, dp.metrics
    domain = dp.domains.vector_domain(dp.domains.atom_domain(T="i64"))
    if kind == "gaussian":
        return make.make_gaussian(domain, metrics.l2_distance(T="i64"), scale)  # type: ignore[no-any-return]
    if kind == "laplace":
        return make.make_laplace(domain, metrics.l1_distance(T="i64"), scale)  # type: ignore[no-any-return]
    divergence = dp.measures.zero_concentrated_divergence()
    return make.make_noisy_max(domain, metrics.linf_distance(T="i64"), divergence, scale)  # type: ignore[no-any-return]


class Seeded:
    """A reproducible stream: fast, and NOT PRIVATE, since whoever knows the seed can undo it."""

    def __init__(self, seed: int) -> None:
        self._stream = np.random.default_rng(seed)

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Rounded normal draws; close to the discrete Gaussian, and only for simulation."""
        return np.rint(self._stream.normal(0.0, scale, size)).astype(np.int64)

    def laplace(self, scale: float, size: int) -> IntArray:
        """The difference of two geometric draws is discrete Laplace."""
        chance = -np.expm1(-1.0 / scale)
        pair = self._stream.geometric(chance, (2, size))
        return np.asarray(pair[0] - pair[1], dtype=np.int64)

    def noisiest(self, scores: IntArray, scale: float) -> int:
        """The index of the largest score after Gumbel noise."""
        return int(np.argmax(scores + self._stream.gumbel(0.0, scale, len(scores))))

    def thin(self, weights: IntArray, rate: int) -> IntArray:
        """Keep each of weights[i] rows with probability rate / 2**32."""
        return np.asarray(self._stream.binomial(weights, rate / 2**32), dtype=np.int64)

    def uniform(self) -> float:
        """A number in [0, 1)."""
        return float(self._stream.random())
