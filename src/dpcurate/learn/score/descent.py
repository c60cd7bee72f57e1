"""The NOTEARS descent, once: a smooth loss, an L1 penalty, and acyclicity as a growing penalty.

Stage by stage it minimises loss(W) + penalty |W|_1 + alpha h(W) + rho/2 h(W)^2 by L-BFGS-B on
W = W+ - W-. NOTEARS, NOLEAKS and CURATE differ in where the loss's gradient comes from: before each
stage the source is asked for the loss near the present weights, and a private source pays there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from dpcurate._typing import BoolArray, FloatArray
from dpcurate.errors import BudgetExceeded, DpcurateError, QueryError
from dpcurate.learn.score.acyclic import CONSTRAINTS, Constraint

Loss = Callable[[FloatArray], tuple[float, FloatArray]]


class LossSource(Protocol):
    """Where the loss comes from."""

    def near(self, weights: FloatArray) -> Loss:
        """Value and gradient of the loss for weights not far from these; may ask the queryable."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One minimisation: its multipliers, what it reached, and how many evaluations it took."""

    alpha: float
    rho: float
    value: float
    h: float
    evaluations: int


class ConvergenceError(DpcurateError):
    """The descent did not end in (nearly) acyclic finite weights; `history` has every stage."""

    def __init__(self, message: str, history: tuple[Stage, ...]) -> None:
        steps = "; ".join(f"alpha {s.alpha:.3g}, rho {s.rho:.3g}: h = {s.h:.3g}" for s in history[-4:])
        super().__init__(f"{message}. Last stages: {steps or 'none'}. Try scale='moments', or a larger penalty")
        self.history = history


class StageOver(DpcurateError):
    """What a source of gradients gives one minimisation is used up: it ends where it is, and the next begins."""


class MultiplierRule(Protocol):
    """How the multipliers of h grow, and from where the next stage starts."""

    def begin(self) -> tuple[float, float]:
        """The first alpha and rho."""

    def after(self, alpha: float, rho: float, h: float, before: float, stage: int) -> tuple[float, float] | None:
        """The next alpha and rho, or None to stop."""

    def accepts(self, h: float, before: float) -> bool:
        """Whether the next stage starts where this one ended; otherwise it starts where this one did."""


@dataclass(frozen=True, slots=True)
class Path:
    """DAGMA's central path: h weighs 1, 10, 100, ... times the loss (Bello et al. 2022)."""

    first: float = 1.0
    growth: float = 10.0
    stages: int = 4
    h_small: float = 1e-3
    most: int = 12

    def begin(self) -> tuple[float, float]:
        """The first penalty and weight of the squared constraint."""
        return self.first, 0.0

    def after(self, alpha: float, rho: float, h: float, before: float, stage: int) -> tuple[float, float] | None:
        """The next penalty and weight; None ends the descent."""
        if stage >= self.most or (stage >= self.stages and h <= self.h_small):
            return None
        return alpha * self.growth, 0.0

    def accepts(self, h: float, before: float) -> bool:
        """Whether this stage made enough progress."""
        return True

    @classmethod
    def of(cls, stages: int, *, last: float = 1000.0) -> Path:
        """Exactly so many stages, from 1 to `last`."""
        growth = last ** (1.0 / max(1, stages - 1))
        return cls(first=1.0 if stages > 1 else last, growth=growth, stages=stages, h_small=math.inf, most=stages)


@dataclass(frozen=True, slots=True)
class Lagrangian:
    """The augmented Lagrangian of the NOTEARS paper: rho times 10 where h does not fall to a quarter.

    As in its authors' code, such a stage is tried again from the weights accepted last.
    """

    h_small: float = 1e-8
    rho_most: float = 1e16
    most: int = 100

    def begin(self) -> tuple[float, float]:
        """The first penalty and weight of the squared constraint."""
        return 0.0, 1.0

    def after(self, alpha: float, rho: float, h: float, before: float, stage: int) -> tuple[float, float] | None:
        """The next penalty and weight; None ends the descent."""
        if h <= self.h_small or stage >= self.most:
            return None
        if self.accepts(h, before):
            return alpha + rho * h, rho
        return (alpha, rho * 10.0) if rho * 10.0 < self.rho_most else None

    def accepts(self, h: float, before: float) -> bool:
        """Whether this stage made enough progress."""
        return h <= 0.25 * before


@dataclass(frozen=True, slots=True, eq=False)
class Descended:
    """Where a descent ended; `stopped` says that the budget ended it."""

    weights: FloatArray
    h: float
    history: tuple[Stage, ...]
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class Descent:
    """A loss, an L1 penalty and acyclicity, minimised stage by stage.

    `acyclicity` is 'logdet' or 'exp'; `tolerance` is the relative fall of the objective at which a
    stage ends.
    """

    penalty: float = 0.05
    acyclicity: str = "logdet"
    rule: MultiplierRule = field(default_factory=Path)
    tolerance: float = 1e-5
    steps: int = 5000

    def __post_init__(self) -> None:
        if self.acyclicity not in CONSTRAINTS:
            raise QueryError(f"acyclicity must be 'logdet' or 'exp', got {self.acyclicity!r}")
        if not 0 <= self.penalty < math.inf or not 0 < self.tolerance < 1:
            raise QueryError(f"penalty must be at least 0 and tolerance within (0, 1), got {self!r}")

    def run(self, source: LossSource, free: BoolArray, start: FloatArray | None = None) -> Descended:
        """Minimise over the weights where `free`; a refusal by the budget ends it with what it has."""
        accepted = np.zeros(free.shape) if start is None else start
        (alpha, rho), before, history = self.rule.begin(), math.inf, list[Stage]()
        constraint = CONSTRAINTS[self.acyclicity]
        while True:
            stage = _Minimisation(self, constraint, alpha, rho, free)
            try:
                weights, value = stage.solve(source.near(accepted), accepted)
            except BudgetExceeded:
                weights = stage.latest if stage.latest is not None else accepted
                return Descended(weights, constraint(weights)[0], tuple(history), stopped=True)
            h = constraint(weights)[0]
            history.append(Stage(alpha, rho, value, h, stage.evaluations))
            if not (np.isfinite(weights).all() and math.isfinite(value)):
                raise ConvergenceError("the descent left the finite numbers", tuple(history))
            following = self.rule.after(alpha, rho, h, before, len(history))
            if following is None:
                return Descended(weights, h, tuple(history))
            alpha, rho = following
            if self.rule.accepts(h, before):
                accepted, before = weights, min(before, h)


class _Minimisation:
    """One stage: minimise with fixed multipliers."""

    def __init__(self, descent: Descent, constraint: Constraint, alpha: float, rho: float, free: BoolArray) -> None:
        self._descent, self._constraint = descent, constraint
        self._alpha, self._rho, self._free = alpha, rho, free
        self.evaluations = 0
        self.latest: FloatArray | None = None
        self._value = math.inf

    def solve(self, loss: Loss, start: FloatArray) -> tuple[FloatArray, float]:
        from scipy.optimize import Bounds, minimize  # takes 2 s to import

        size = self._free.size
        most = np.where(np.tile(self._free.ravel(), 2), np.inf, 0.0)
        both = np.concatenate([np.maximum(start, 0.0).ravel(), np.maximum(-start, 0.0).ravel()])
        gradient = np.empty(2 * size)

        def objective(variables: FloatArray) -> tuple[float, FloatArray]:
            self.evaluations += 1
            weights = self._joined(variables)
            value, slope = self._smooth(loss, weights)
            self.latest = weights
            np.add(slope.ravel(), self._descent.penalty, out=gradient[:size])
            np.subtract(self._descent.penalty, slope.ravel(), out=gradient[size:])
            self._value = value + self._descent.penalty * float(variables.sum())
            return self._value, gradient

        steps = self._descent.steps
        options: Any = {"ftol": self._descent.tolerance, "gtol": 1e-5, "maxiter": steps, "maxfun": 2 * steps}
        bounds = Bounds(np.zeros(2 * size), most)
        start = np.minimum(both, most)
        try:
            found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        except StageOver:
            return (self._joined(start) if self.latest is None else self.latest), self._value
        return self._joined(found.x), float(found.fun)

    def _joined(self, variables: FloatArray) -> FloatArray:
        size = self._free.size
        return (variables[:size] - variables[size:]).reshape(self._free.shape)

    def _smooth(self, loss: Loss, weights: FloatArray) -> tuple[float, FloatArray]:
        value, slope = loss(weights)
        h, towards = self._constraint(weights)
        pull = self._rho * h + self._alpha
        return value + self._alpha * h + 0.5 * self._rho * h * h, slope + pull * towards
