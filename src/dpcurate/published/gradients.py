"""NOLEAKS's gradients and the noise its authors state for them: NOT PRIVATE."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dpcurate.arrays import FloatArray
from dpcurate.errors import BudgetExceeded
from dpcurate.learn.score.descent import Loss
from dpcurate.learn.score.objectives import Quadratic
from dpcurate.published.draws import normals

CLIP = 2.0
SCALE = 10.0
"""NOLEAKS lays the levels on an interval of length 20, centred."""


class PublishedGradients:
    """NOLEAKS's oracle: the averaged gradient clipped entry by entry, plus normal noise. NOT PRIVATE.

    One row can move the averaged gradient by far more than the claimed 4 sqrt(d (d - 1)) / n. Each
    evaluation is one look and uses up the next of `sigmas`; values for the line search are exact
    (the artifact takes them from rows it calls public).
    """

    def __init__(self, covariance: FloatArray, sigmas: Sequence[float], draw: Callable[[], float]) -> None:
        self._exact = Quadratic(covariance)
        self._sigmas = sigmas
        self._draw = draw
        self.calls = 0

    def near(self, weights: FloatArray) -> Loss:
        """Every evaluation is noised afresh."""
        return self

    def __call__(self, weights: FloatArray) -> tuple[float, FloatArray]:
        if self.calls >= len(self._sigmas):
            raise BudgetExceeded("the epsilon that the published method claims is used up")
        value, gradient = self._exact(weights)
        sigma = self._sigmas[self.calls]
        self.calls += 1
        noised = np.clip(gradient, -CLIP, CLIP) + sigma * normals(self._draw, gradient.shape)
        np.fill_diagonal(noised, 0.0)
        return value, noised


def stated_sensitivity(d: int, rows: float) -> float:
    """What NOLEAKS's code claims for the clipped averaged gradient; it does not hold."""
    return 2.0 * CLIP * math.sqrt(d * (d - 1)) / rows
