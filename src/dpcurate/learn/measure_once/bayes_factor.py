"""A Bayes factor for a noised block: an effect, or sampling and privacy noise alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpcurate.arrays import FloatArray


class Residuals(NamedTuple):
    """What is left of dependences after regression, for a stack of pairs of columns."""

    values: FloatArray
    """(pairs, coordinates)"""
    null: FloatArray
    """(pairs, coordinates, coordinates): their covariance under independence, sampling and privacy noise."""
    effect: FloatArray
    """The same shape: the covariance of an effect of size 1, on the scale of canonical correlations."""


def log_bayes_factors(residuals: Residuals, effect_sizes: tuple[float, ...]) -> FloatArray:
    """Log of the mean over sizes t of N(values; 0, null + t^2 effect) / N(values; 0, null), for each pair."""
    strengths, squares = _independent(residuals)
    ratios = np.array(effect_sizes)[:, None, None] ** 2 * np.maximum(strengths, 0)
    logs = (0.5 * squares * ratios / (1 + ratios) - 0.5 * np.log1p(ratios)).sum(2)
    top = logs.max(0)
    return np.asarray(top + np.log(np.exp(logs - top).mean(0)))


def _independent(residuals: Residuals) -> tuple[FloatArray, FloatArray]:
    """In coordinates where the null is white and effects are uncorrelated: effect variances, squared values."""
    values, null, effect = residuals
    size = values.shape[1]
    if size == 1:
        return effect[:, 0] / null[:, 0], values**2 / null[:, 0]
    jitter = 1e-12 * np.trace(null, axis1=1, axis2=2)[:, None, None] * np.eye(size)
    whiten = np.linalg.inv(np.linalg.cholesky(null + jitter))
    strengths, axes = np.linalg.eigh(whiten @ effect @ whiten.swapaxes(1, 2))
    return strengths, (axes.swapaxes(1, 2) @ (whiten @ values[:, :, None]))[:, :, 0] ** 2
