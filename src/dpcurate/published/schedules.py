"""How CURATE spreads budget over iterations: its three increments and Lemma 2.

The increments are eps_i = eps_0 (1 + i/I), eps_0 exp(i/I) and eps_0^(1 + i/I), i < I. The third falls
when eps_0 < 1; `learn.score.schedules` has schedules that rise and spend the total exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from dpcurate.accounting.conversions import doubled, greatest
from dpcurate.errors import BudgetExceeded, QueryError
from dpcurate.learn.score.descent import StageOver
from dpcurate.learn.score.noised_gradients import check_spread

RISE = 16.0
"""How many times its first budget the last one of 'rising' is."""

INCREMENTS: dict[str, Callable[[float, float], float]] = {
    "additive": lambda first, t: first * (1 + t),
    "exponential": lambda first, t: first * math.exp(t),
    "multiplicative": lambda first, t: math.exp((1 + t) * math.log(first)),
}
"""The paper's three: eps_i from eps_0 and t = i / I."""

SHAPES: dict[str, Callable[[float, float], float]] = {
    **INCREMENTS,
    "even": lambda first, _: first,
    "rising": lambda first, t: first * RISE**t,
}
"""And what they are compared with: even budgets, and budgets from eps_0 to RISE eps_0."""

Ends = Literal["nothing", "minimisation", "run"]


@dataclass(slots=True)
class Spending:
    """The epsilon of each gradient of one run, and what they add up to.

    The budgets stand for one after the other; when all are used, `ends` says what does: 'nothing' (they
    begin again), the 'minimisation' or the 'run'. A new minimisation begins them again, except where they
    are those of the whole run. No gradient is taken that would lift the sum above `total`.
    """

    budgets: Sequence[float]
    ends: Ends = "nothing"
    total: float = math.inf
    spent: float = 0.0
    calls: int = 0
    _place: int = 0

    def restart(self) -> None:
        """Begin the schedule again, unless it ends with the run."""
        if self.ends != "run":
            self._place = 0

    def pay(self) -> float:
        """The epsilon of the next gradient."""
        if self._place >= len(self.budgets):
            self._used_up()
        epsilon = self.budgets[self._place]
        if self.spent + epsilon > self.total * (1 + 1e-12):
            raise BudgetExceeded(f"the claimed epsilon of {self.total:g} is used up")
        self._place, self.calls, self.spent = self._place + 1, self.calls + 1, self.spent + epsilon
        return epsilon

    def _used_up(self) -> None:
        if self.ends == "run":
            raise BudgetExceeded("the schedule of the published method is used up")
        if self.ends == "minimisation":
            raise StageOver("the schedule of this minimisation is used up")
        self._place = 0


def published(kind: str, first: float, iterations: int, *, divisor: int | None = None) -> tuple[float, ...]:
    """The budgets eps_0 .. eps_{I-1}; `divisor` is I (the appendix) unless given (Algorithm 2 has I - 1).

    'reversed' are those of 'multiplicative', which fall where eps_0 < 1, in the opposite order.
    """
    if kind == "reversed":
        return published("multiplicative", first, iterations, divisor=divisor)[::-1]
    rise = _shape(kind)
    check_spread(first, iterations)
    below = iterations if divisor is None else max(1, divisor)
    return tuple(rise(first, i / below) for i in range(iterations))


def algorithm_2(first: float, iterations: int) -> tuple[float, ...]:
    """The budgets of Algorithm 2's gradients as printed: eps_0, then eps_0, eps_1, ..., eps_{I-2}.

    The first gradient is taken before the loop; that of step k + 1 uses eps_k = eps_0^(1 + k/(I-1)).
    """
    inside = published("multiplicative", first, iterations, divisor=iterations - 1)
    return (first, *inside[: iterations - 1])


def lemma_2(kind: str, total: float, first: float) -> float:
    """The number of iterations that Lemma 2 states, not rounded; 'even' is the quotient.

    At eps_0 = 1 the multiplicative formula is 0/0 and its limit, total / eps_0, is given. Where the
    total is at most eps_0 (1 - eps_0) not even one iteration of the closed form exists: 0.
    """
    check_spread(first, 1)
    if kind == "even":
        return total / first
    _increment(kind)
    if kind == "additive":
        return (total + first / 2) / (1.5 * first)
    if kind == "exponential":
        return total / (math.e * first)
    inside = -first * (1 - first) / total
    if inside == 0:
        return total / first
    return math.log(first) / math.log1p(inside) if inside > -1 else 0.0


def exact_count(kind: str, total: float, first: float) -> int:
    """The largest I whose I budgets, summed in closed form, stay within the total."""
    _increment(kind)
    check_spread(first, 1)

    def fits(count: float) -> bool:
        return closed_sum(kind, first, count) <= total * (1 + 1e-12)

    most = doubled(lambda count: not fits(count))
    return math.floor(greatest(fits, 1.0, most)) if most > 1 else 0


def closed_sum(kind: str, first: float, iterations: float) -> float:
    """Sum of eps_0 .. eps_{I-1}: an arithmetic or a geometric series."""
    if kind == "additive":
        return first * (1.5 * iterations - 0.5)
    ratio = 1.0 / iterations if kind == "exponential" else math.log(first) / iterations
    if ratio == 0:
        return first * iterations
    return first * math.expm1(ratio * iterations) / math.expm1(ratio)


def simulated_count(kind: str, total: float, first: float) -> int:
    """The largest I found by running every schedule step by step until the total would be exceeded."""
    iterations = 0
    while _runs_through(kind, total, first, iterations + 1):
        iterations += 1
    return iterations


def _runs_through(kind: str, total: float, first: float, iterations: int) -> bool:
    left = total * (1 + 1e-12)
    for budget in published(kind, first, iterations):
        left -= budget
        if left < 0:
            return False
    return True


def _increment(kind: str) -> None:
    if kind not in INCREMENTS:
        raise QueryError(f"an increment is one of {', '.join(map(repr, INCREMENTS))}, got {kind!r}")


def _shape(kind: str) -> Callable[[float, float], float]:
    found = SHAPES.get(kind)
    if found is None:
        raise QueryError(f"an increment is one of {', '.join(map(repr, SHAPES))}, 'reversed', got {kind!r}")
    return found
