"""How noisy the released answers are, in one scale for all designs: from released numbers alone."""

from __future__ import annotations

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.learn.measure_once.feature_release import Bought
from dpcurate.learn.measure_once.moments import CentralMoments, Released
from dpcurate.result.fit import NoiseLevel


def of_contrasts(released: Released, moments: CentralMoments) -> NoiseLevel | None:
    """Of pairs of levels; none if no pair was measured."""
    pairs = [columns for columns in moments.blocks if len(columns) == 2]
    if not pairs:
        return None
    # noise in coordinates of variance 1: what is rare is hard to see
    relative = [
        np.exp(np.mean(np.log(np.diag(m.axes.T @ m.shape @ m.axes) / np.maximum(m.variances, 1 / moments.rows))))
        for m in moments.margins
    ]
    noise = [moments.blocks[a, b].noise * relative[a] * relative[b] for a, b in pairs]
    sizes = [(moments.levels[a] - 1) * (moments.levels[b] - 1) for a, b in pairs]
    return NoiseLevel(
        rows=float(released.sums[()]),
        rows_noise=float(np.sqrt(released.variances[()])),
        variance=float(np.median(noise)) + 1 / moments.rows,
        coordinates=round(float(np.median(sizes))),
    )


def of_features(bought: Bought) -> NoiseLevel:
    """Of pairs of features."""
    released = bought.released
    # as released, not as designed: clipped rows are shorter, and features made from little are shorter yet
    variances, floor = np.diag(released.covariance), 2 * np.sqrt(2 * released.noise)
    spread: FloatArray = np.array([max(float(variances[a:b].mean()), floor) for a, b in released.blocks])
    one, other = np.triu_indices(len(spread), 1)
    sizes = np.array([end - start for start, end in released.blocks])
    return NoiseLevel(
        rows=bought.rows,
        rows_noise=bought.rows_noise,
        variance=float(np.median(released.noise / (spread[one] * spread[other]))) + 1 / released.rows,
        coordinates=round(float(np.median(sizes[one] * sizes[other]))),
    )
