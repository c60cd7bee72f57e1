"""Noise from public uniform numbers, as published programs draw it: good enough where nothing is proved."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.learn.constraint.edge_decisions import normal_quantile
from dpcurate.queries import Queryable


def laplace(queryable: Queryable, scale: float) -> float:
    """Draw Laplace noise of this scale from public randomness."""
    u = queryable.draw() - 0.5
    return -scale * math.copysign(math.log(max(1 - 2 * abs(u), 1e-300)), u)


def normal(queryable: Queryable, scale: float) -> float:
    """Draw normal noise of this standard deviation from public randomness."""
    return scale * normal_quantile(min(max(queryable.draw(), 1e-300), 1 - 1e-16))


def pick(queryable: Queryable, scores: Sequence[float], epsilon: float) -> int:
    """The exponential mechanism with sensitivity 1, from public randomness."""
    noised = [epsilon * s / 2 - math.log(-math.log(max(queryable.draw(), 1e-300))) for s in scores]
    return int(np.argmax(noised))


def normals(draw: Callable[[], float], shape: tuple[int, ...]) -> FloatArray:
    """Standard normal numbers from public uniform ones (Box and Muller)."""
    number = math.prod(shape)
    pairs = np.array([(1.0 - draw(), draw()) for _ in range((number + 1) // 2)])
    pairs = pairs.reshape(-1, 2)
    length, angle = np.sqrt(-2.0 * np.log(pairs[:, 0])), 2.0 * np.pi * pairs[:, 1]
    both = np.concatenate([length * np.cos(angle), length * np.sin(angle)])
    return np.asarray(both[:number].reshape(shape), dtype=np.float64)
