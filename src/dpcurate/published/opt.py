"""CURATE's OPT as printed and as coded: its leakage, Lemma 1 with open constants, and the start at zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.accounting import after_sampling
from dpcurate.learn.constraint.budget_plan import Errors, Leak, as_tests, slsqp


@dataclass(frozen=True, slots=True)
class PublishedLeak:
    """Advanced composition within an order, as the paper prints it."""

    delta_prime: float

    def __call__(self, tests: FloatArray, epsilon: FloatArray) -> FloatArray:
        return tests * epsilon**2 + epsilon * np.sqrt(2 * math.log(1 / self.delta_prime) * tests)


@dataclass(frozen=True, slots=True)
class OpenErrors:
    """Lemma 1 for margins T beta1 and T beta2, with c1 and c2 left at a constant, 1 in the authors' code."""

    margins: tuple[float, float]
    sensitivity: float
    c: float = 1.0
    rate: float = 1.0

    def __call__(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The paper's c / 2 + exp(-T beta eps / sensitivity) / 2, with epsilon amplified by sub-sampling."""
        effective = np.array([after_sampling(epsilon=e, rate=self.rate) for e in epsilon.tolist()])
        first, second = (self.c / 2 + np.exp(-m * effective / self.sensitivity) / 2 for m in self.margins)
        return first, second


def worst_tests(edges: int, variables: int, order: int) -> float:
    """The paper's bound: every edge with every set of the other variables."""
    return edges * math.comb(variables - 2, order)


def optimise_from_zero(tests: Sequence[float], total: float, errors: Errors, leak: Leak) -> tuple[float, ...]:
    """OPT as the authors' code solves it: SLSQP from zero, its result taken as the solver left it."""
    t = as_tests(tests)
    return tuple(np.maximum(slsqp(t, total, errors, leak, np.zeros(len(t)), 1.0, 0.0), 0.0).tolist())
