"""NOLEAKS's gradients and the noise that papers state for them: NOT PRIVATE."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.learn.score.descent import Loss
from dpcurate.learn.score.objectives import Quadratic
from dpcurate.published.draws import normals
from dpcurate.published.schedules import Spending

CLIP = 2.0
"""The artifact's s."""

StatedSensitivity = Literal["artifact", "printed", "printed-plain"]
Point = Literal["current", "first"]


class PublishedGradients:
    """NOLEAKS's oracle: the averaged gradient clipped entry by entry, plus normal noise. NOT PRIVATE.

    One row can move the averaged gradient by far more than any stated sensitivity. Each evaluation is
    one look: `spending` gives its epsilon and `sigma` the noise for it. Values for the line search are
    those of `public`, the second moments of rows that the artifact calls public, and exact.
    """

    def __init__(
        self,
        second: FloatArray,
        spending: Spending,
        sigma: Callable[[float], float],
        draw: Callable[[], float],
        *,
        clip: float = CLIP,
        public: FloatArray | None = None,
        at: Point = "current",
    ) -> None:
        self._private, self._public = Quadratic(second), Quadratic(second if public is None else public)
        self._spending, self._sigma, self._draw = spending, sigma, draw
        self._clip, self._at = clip, at
        self._first: FloatArray | None = None

    def near(self, weights: FloatArray) -> Loss:
        """A new minimisation begins; every evaluation is noised afresh."""
        self._spending.restart()
        self._first = weights if self._at == "first" else None
        return self

    def __call__(self, weights: FloatArray) -> tuple[float, FloatArray]:
        sigma = self._sigma(self._spending.pay())
        gradient = self._private(weights if self._first is None else self._first)[1]
        noised = np.clip(gradient, -self._clip, self._clip) + sigma * normals(self._draw, gradient.shape)
        np.fill_diagonal(noised, 0.0)
        return self._public(weights)[0], noised


def stated_sensitivity(d: int, rows: float, clip: float = CLIP, stated: StatedSensitivity = "artifact") -> float:
    """What is claimed for the clipped averaged gradient of d columns; none of these holds.

    'artifact' is 2 s sqrt(d (d - 1)) / n (NOLEAKS's code), 'printed' sqrt(d (d - 1) s) / n and
    'printed-plain' d s / n (both in section II of the CURATE paper).
    """
    pairs = d * (d - 1)
    sizes = {
        "artifact": 2 * clip * math.sqrt(pairs),
        "printed": math.sqrt(pairs * clip),
        "printed-plain": d * clip,
    }
    return sizes[stated] / rows
