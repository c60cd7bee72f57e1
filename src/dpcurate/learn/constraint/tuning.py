"""Threshold and margins from released answers: what the p-values of an order say about themselves.

Under independence p-values that know the noise are uniform, so those above 1/2 tell how many tests are independent
(Storey 2002), and any threshold's expected F1 of dependent pairs follows. No rows are seen and nothing is paid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from dpcurate._typing import FloatArray

LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4)
BETAS = (0.0, 0.1, 0.2)
GAIN = 0.05
"""Ten pairs tell little about a threshold, so the given one stays unless another promises so much more."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A threshold T on p, and the margins around it in which a coin decides."""

    level: float
    beta1: float
    beta2: float

    def kept(self, p: FloatArray) -> FloatArray:
        """The chance with which each p keeps its edge."""
        low, high = self.level * (1 - self.beta1), self.level * (1 + self.beta2)
        return np.where(p < low, 1.0, np.where(p <= high, 0.5, 0.0))


def tuned(p_values: Sequence[float], given: Decision) -> Decision:
    """The decision of the highest expected F1, where it promises a gain; of equal ones the narrowest margins.

    The threshold only rises: what is kept wrongly a later order may still cut, what is cut stays so.
    """
    p = np.asarray(p_values, dtype=np.float64)
    choices = [Decision(level, b1, b2) for b1, b2, level in product(BETAS, BETAS, _from(given.level))]
    best = max(choices, key=lambda choice: expected_f1(choice, p))
    return best if expected_f1(best, p) > expected_f1(given, p) + GAIN else given


def _from(level: float) -> list[float]:
    return [level, *(other for other in LEVELS if other > level)]


def expected_f1(decision: Decision, p: FloatArray) -> float:
    """With m0 independent tests a decision keeps T m0 of them; what else it keeps depends indeed."""
    independent = min(len(p), 2 * float((p > 0.5).sum()) + 1)
    kept = float(decision.kept(p).sum())
    level = decision.level * (1 + (decision.beta2 - decision.beta1) / 2)
    true = max(0.0, kept - level * independent)
    return 2 * true / max(1e-9, kept + max(true, len(p) - independent))
