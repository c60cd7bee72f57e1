"""A Bayes factor for a noised block: an effect, or sampling and privacy noise alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.learn.measure_once.blocks import identity
from dpcurate.learn.measure_once.constants import JITTER


class Residuals(NamedTuple):
    """What is left of dependences after regression, for a stack of pairs of columns."""

    values: FloatArray
    """(pairs, coordinates)"""
    null: FloatArray
    """(pairs, coordinates, coordinates): their covariance under independence, sampling and privacy noise."""
    effect: FloatArray
    """The same shape: the covariance of an effect of size 1, on the scale of canonical correlations."""


CORNER = 1e200
"""Larger than any squared distance, and far from overflow."""


def log_bayes_factors(residuals: Residuals, effect_sizes: tuple[float, ...]) -> FloatArray:
    """Log of the mean over sizes t of N(values; 0, null + t^2 effect) / N(values; 0, null), for each pair."""
    values, null, effect = residuals
    size = values.shape[1]
    jitter = JITTER * null.reshape(len(null), -1)[:, :: size + 1].sum(axis=1)  # of the trace
    sizes = np.array([0.0, *effect_sizes])[:, None, None, None] ** 2
    densities = _log_densities(values, null + jitter[:, None, None] * identity(size) + sizes * effect)
    logs = densities[1:] - densities[0]
    top = logs.max(axis=0)
    return np.asarray(top + np.log(np.exp(logs - top).sum(axis=0) / len(logs)))


def _log_densities(values: FloatArray, covariances: FloatArray) -> FloatArray:
    """Normal log densities of values under stacks of covariances, up to a constant.

    The last row of the Cholesky factor of a covariance bordered by the values are the values made white.
    """
    size = values.shape[1]
    if size == 1:
        variances = covariances[..., 0, 0]
        return -0.5 * (values[:, 0] ** 2 / variances + np.log(variances))
    bordered = np.zeros((*covariances.shape[:2], size + 1, size + 1))
    bordered[..., :size, :size], bordered[..., size, :size], bordered[..., size, size] = covariances, values, CORNER
    factors = np.linalg.cholesky(bordered)
    white, spread = factors[..., size, :size], np.diagonal(factors, axis1=2, axis2=3)[..., :size]
    return np.asarray(-0.5 * (white * white).sum(axis=2) - np.log(spread).sum(axis=2))
