"""How an edge test spreads its budget over orders, and where its threshold and margins lie."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol, cast

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.accounting.conversions import doubled, greatest

# Threshold and margins from released answers: what the p-values of an order say about themselves.
#
# Under independence p-values that know the noise are uniform, so those above 1/2 tell how many tests are independent
# (Storey 2002), and any threshold's expected F1 of dependent pairs follows. No rows are seen and nothing is paid.

LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4)
BETAS = (0.0, 0.1, 0.2)
GAIN = 0.05
"""Ten pairs tell little about a threshold, so the given one stays unless another promises so much more."""


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """A threshold T on p, and the margins around it in which a coin decides."""

    level: float
    beta1: float
    beta2: float

    def kept(self, p: FloatArray) -> FloatArray:
        """The chance with which each p keeps its edge."""
        low, high = self.level * (1 - self.beta1), self.level * (1 + self.beta2)
        return np.where(p < low, 1.0, np.where(p <= high, 0.5, 0.0))


def tuned(p_values: Sequence[float], given: DecisionRule) -> DecisionRule:
    """The decision of the highest expected F1, where it promises a gain; of equal ones the narrowest margins.

    The threshold only rises: what is kept wrongly a later order may still cut, what is cut stays so.
    """
    p = np.asarray(p_values, dtype=np.float64)
    choices = [DecisionRule(level, b1, b2) for b1, b2, level in product(BETAS, BETAS, _from(given.level))]
    best = max(choices, key=lambda choice: expected_f1(choice, p))
    return best if expected_f1(best, p) > expected_f1(given, p) + GAIN else given


def _from(level: float) -> list[float]:
    return [level, *(other for other in LEVELS if other > level)]


def expected_f1(decision: DecisionRule, p: FloatArray) -> float:
    """With m0 independent tests a decision keeps T m0 of them; what else it keeps depends indeed."""
    independent = min(len(p), 2 * float((p > 0.5).sum()) + 1)
    kept = float(decision.kept(p).sum())
    level = decision.level * (1 + (decision.beta2 - decision.beta1) / 2)
    true = max(0.0, kept - level * independent)
    return 2 * true / max(1e-9, kept + max(true, len(p) - independent))


# How a budget is spread over orders of tests: CURATE's OPT and what it needs.
#
# The paper's letters: t_j tests of order j, eps_j for each of them, q1 and q2 the bounds of Lemma 1.

Leak = Callable[[FloatArray, FloatArray], FloatArray]
"""From tests and epsilons of each order to what each order costs."""


def zcdp_leak(tests: FloatArray, epsilon: FloatArray) -> FloatArray:
    """A test costs eps^2 / 2 in rho."""
    return tests * epsilon**2 / 2


def pure_leak(tests: FloatArray, epsilon: FloatArray) -> FloatArray:
    """A test costs its epsilon."""
    return tests * epsilon


class Errors(Protocol):
    """Bounds on the two relative errors of one test."""

    def __call__(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """q1 (an edge is kept that the exact test deletes) and q2 (the other way) for each epsilon."""


@dataclass(frozen=True, slots=True)
class _WindowErrors(ABC):
    """Lemma 1 with c1 and c2 at their largest value for symmetric noise of one peak.

    The window around the threshold reaches `inner` towards dependence and `outer` towards
    independence, in units of the statistic. A value u beyond the threshold falls into it with
    probability F(outer - u) - F(-inner - u), which is largest at u = max(0, (outer - inner) / 2).
    The window is never wider than the noise: where the noise is small there is nothing to toss for.
    """

    inner: float
    outer: float
    sensitivity: float | FloatArray

    def __call__(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        scale = self.sensitivity / np.maximum(epsilon, 1e-300)
        inner, outer = np.minimum(self.inner / scale, 1.0), np.minimum(self.outer / scale, 1.0)
        q1 = self._window(inner, outer) / 2 + self.tail(inner)
        q2 = self._window(outer, inner) / 2 + self.tail(outer)
        return q1, q2

    def _window(self, near: FloatArray, far: FloatArray) -> FloatArray:
        """The largest chance of [-near, far], in units of the noise, for a value on the far side."""
        at_threshold = 1 - self.tail(near) - self.tail(far)
        return np.where(far >= near, 1 - 2 * self.tail((near + far) / 2), at_threshold)

    @staticmethod
    @abstractmethod
    def tail(value: FloatArray) -> FloatArray:
        """P(noise > value) of noise of scale 1, for values from 0."""


class LaplaceErrors(_WindowErrors):
    """Laplace noise of scale sensitivity / epsilon."""

    __slots__ = ()

    @staticmethod
    def tail(value: FloatArray) -> FloatArray:
        """The chance of an error beyond a margin, in units of the noise."""
        return np.asarray(np.exp(-value) / 2)


class GaussianErrors(_WindowErrors):
    """Gaussian noise of deviation sensitivity / epsilon, which costs epsilon^2 / 2 in rho."""

    __slots__ = ()

    @staticmethod
    def tail(value: FloatArray) -> FloatArray:
        """The chance of an error beyond a margin, in units of the noise."""
        from scipy.special import ndtr

        return np.asarray(ndtr(-value))


def surrogate(errors: Errors, epsilon: FloatArray) -> float:
    """The paper's objective: prod q1 + 1 - prod(1 - q2)."""
    q1, q2 = errors(epsilon)
    return float(np.prod(q1) + 1 - np.prod(1 - q2))


def uniform(tests: FloatArray, total: float, leak: Leak) -> float:
    """The one epsilon for all tests that spends the total."""

    def within(epsilon: float) -> bool:
        return bool(leak(tests, np.full(len(tests), epsilon)).sum() <= total)

    return greatest(within, 0.0, doubled(lambda epsilon: not within(epsilon)))


def optimise(
    tests: Sequence[float], total: float, errors: Errors, leak: Leak, *, floor: float = 0.0
) -> tuple[float, ...]:
    """OPT: falling epsilons for the orders to come that minimise the surrogate within the total.

    From a feasible uniform start the result is feasible and no worse than uniform. `floor` is the least
    share of the uniform epsilon that any order gets: the surrogate looks at tests whose statistic
    lies just at the threshold, so on its own it may starve all later orders.
    """
    t = as_tests(tests)
    even = np.full(len(t), uniform(t, total, leak))
    least = floor * even
    solved = slsqp(t, total, errors, leak, even, float(even[0]), floor)
    # The surrogate is not convex, so also look at spending all that is free on the first order.
    front = np.where(np.arange(len(t)) == 0, uniform(t[:1], total, leak), least)
    tries = [_feasible(np.maximum(e, least), least, t, total, leak) for e in (solved, even, front)]
    return tuple(min(tries, key=lambda e: surrogate(errors, e)).tolist())


def as_tests(tests: Sequence[float]) -> FloatArray:
    """Numbers of tests as the solver needs them: none is zero."""
    return np.maximum(np.asarray(tests, dtype=np.float64), 1e-9)


def slsqp(
    t: FloatArray, total: float, errors: Errors, leak: Leak, start: FloatArray, unit: float, floor: float
) -> FloatArray:
    """SLSQP as in the paper, in units of `unit` so that its step sizes fit."""
    from scipy.optimize import minimize

    bounds: list[tuple[float | None, float | None]] = [(floor, None)] * len(t)
    falling: list[Any] = [{"type": "ineq", "fun": lambda e, j=j: e[j] - e[j + 1]} for j in range(len(t) - 1)]
    spent: Any = {"type": "ineq", "fun": lambda e: (total - float(leak(t, np.maximum(e, 0) * unit).sum())) / total}
    solved = cast(Any, minimize)(
        lambda e: surrogate(errors, np.maximum(e, 0) * unit),
        start / unit,
        method="SLSQP",
        bounds=bounds,
        constraints=[*falling, spent],
    )
    return np.asarray(solved.x * unit, dtype=np.float64)


def _feasible(epsilon: FloatArray, least: FloatArray, t: FloatArray, total: float, leak: Leak) -> FloatArray:
    """Make falling, and shrink towards the least until the total holds."""
    e = np.minimum.accumulate(np.maximum(np.nan_to_num(epsilon), 0.0))
    if leak(t, e).sum() <= total:
        return e
    share = greatest(lambda s: bool(leak(t, least + (e - least) * s).sum() <= total), 0.0, 1.0)
    return np.asarray(least + (e - least) * share)


def likely_tests(degrees: Sequence[tuple[int, int]], order: int) -> float:
    """At most the sets around either end of each edge; at order 0 one test an edge."""
    if order == 0:
        return float(len(degrees))
    return float(sum(math.comb(max(a - 1, 0), order) + math.comb(max(b - 1, 0), order) for a, b in degrees))


def likely_tables(degrees: Sequence[int], order: int) -> float:
    """At most the tables of an order, from the degrees of all nodes: tests over the same columns share one.

    A test's columns are a node and order + 1 of its neighbours; at order 0 each edge is met from both ends.
    """
    around = sum(math.comb(degree, order + 1) for degree in degrees)
    return float(min(around / 2 if order == 0 else around, math.comb(len(degrees), order + 2)))
