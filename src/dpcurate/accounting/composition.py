"""The epsilon that other composition rules would report for the same events.

A comparison, never a decision: only the privacy filter in private/ledger/filter.py decides. Most rules hold for costs
fixed beforehand; each report says whether its rule may be used when costs were chosen along the way.

How an event is read (the first that fits):

* no finite cost: every rule reports infinity;
* "gaussian": the Gaussian mechanism with mu = sqrt(2 rho). Our noise is discrete, and its own exact curve
  has no proof here; rules that use the curve rather than rho say so;
* a finite epsilon, Laplace noise included: the worst epsilon-DP mechanism there is, randomised response.
  Discrete Laplace noise on a count *is* that mechanism; the better curve of continuous Laplace noise would
  report too little for it. An exponential step has a smaller rho than that, and rules that use rho use it;
* otherwise: rho-zCDP and nothing more.
"""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.accounting.budget import Event
from dpcurate.accounting.conversions import doubled, epsilon_of, gaussian_epsilon, least
from dpcurate.errors import BudgetError, QueryError

_CEILING = "as a ceiling fixed beforehand; a running total is bookkeeping"
_FIXED = "costs must be fixed beforehand"
_RESOLUTION = 1e-12  # Fourier transforms lose what is smaller; at 1e-15 they were seen to understate epsilon


@dataclass(frozen=True, slots=True)
class CompositionReport:
    """What one composition rule reports, and whether it may be used for costs chosen along the way."""

    name: str
    epsilon: float
    delta: float
    adaptive: bool
    remark: str

    def __str__(self) -> str:
        allowed = "may be used" if self.adaptive else "may not be used"
        return (
            f"{self.name}: epsilon = {self.epsilon:.6g} at delta = {self.delta:.3g}; "
            f"{allowed} when costs were chosen along the way ({self.remark})"
        )


@dataclass(frozen=True, slots=True)
class _Step:
    """A group of equal steps; epsilon is infinite where there is no pure guarantee."""

    kind: str
    epsilon: float
    rho: float
    times: int


def under(events: Iterable[Event], rule: str, *, delta: float) -> CompositionReport:
    """What one rule reports for the events, at the given delta."""
    if rule not in RULES:
        raise QueryError(f"there is no composition rule {rule!r}; choose one of {', '.join(RULES)}")
    if not 0 <= delta < 1:
        raise BudgetError(f"delta must be at least 0 and below 1, got {delta!r}")
    steps = _grouped(events)
    if any(math.isinf(step.rho) for step in steps):
        return CompositionReport(rule, math.inf, delta, True, "a step has no finite cost: NOT PRIVATE")
    epsilon, adaptive, remark = RULES[rule](steps, delta) if steps else (0.0, True, "nothing was charged")
    return CompositionReport(rule, epsilon, delta, adaptive, remark)


def _grouped(events: Iterable[Event]) -> list[_Step]:
    """Equal steps together, so that thousands of events are a few groups; free ones left out."""
    groups = Counter((_kind(event), event.cost.epsilon, event.cost.rho) for event in events if event.cost.rho != 0)
    return [_Step(kind, float(epsilon), float(rho), times) for (kind, epsilon, rho), times in groups.items()]


def _kind(event: Event) -> str:
    if event.mechanism == "gaussian":
        return "gaussian"
    return "concentrated" if event.cost.epsilon == math.inf else "pure"


Report = tuple[float, bool, str]
Pairs = list[tuple[float, int]]  # (epsilon, how many times)


def _total(steps: Iterable[_Step]) -> float:
    return math.fsum(step.rho * step.times for step in steps)


# --- rules that compose (epsilon, delta) pairs --------------------------------------------------


def _pairs(steps: list[_Step], share: float) -> tuple[Pairs, int]:
    """Each step as epsilon at its part of delta: steps without a pure epsilon split `share` evenly."""
    number = sum(step.times for step in steps if math.isinf(step.epsilon))
    part = share / max(1, number)
    return [(_alone(step, part), step.times) for step in steps], number


def _alone(step: _Step, delta: float) -> float:
    if not math.isinf(step.epsilon):
        return step.epsilon
    if step.kind == "gaussian":
        return gaussian_epsilon(mu=math.sqrt(2 * step.rho), delta=delta)
    return epsilon_of(rho=step.rho, delta=delta)


def _squares(pairs: Pairs) -> float:
    return math.fsum(epsilon * epsilon * times for epsilon, times in pairs)


def _sum(pairs: Pairs) -> float:
    return math.fsum(epsilon * times for epsilon, times in pairs)


def _spread(pairs: Pairs, delta: float) -> float:
    """sqrt(2 ln(1/delta) sum epsilon^2); infinite at delta = 0."""
    return math.sqrt(2 * math.log(1 / delta) * _squares(pairs)) if delta > 0 else math.inf


def _splitting(number: int, rule: str) -> str:
    """The remark of a rule that had to spread delta over steps that have no pure epsilon."""
    if number == 0:
        return rule
    return f"{rule}; {number} steps without a pure epsilon share delta evenly, Gaussian ones read as continuous"


def _if_pure(rule: str, number: int) -> str:
    """The remark of a rule that may be used along the way only while delta need not be split."""
    return f"{rule}, {_CEILING}" if number == 0 else f"{rule}; {_FIXED}, since delta is split by number"


def _basic(steps: list[_Step], delta: float) -> Report:
    """The plain sum (Dwork et al. 2006)."""
    pairs, number = _pairs(steps, delta)
    return _sum(pairs), number == 0, _splitting(number, _if_pure("the plain sum", number))


def _advanced(steps: list[_Step], delta: float) -> Report:
    """Dwork, Rothblum, Vadhan 2010, with unequal epsilons, as the CURATE paper prints it."""
    pairs, number = _pairs(steps, delta / 2)
    slack = delta / 2 if number else delta
    drift = math.fsum(epsilon * _expm1(epsilon) * times for epsilon, times in pairs)
    return drift + _spread(pairs, slack), False, _splitting(number, f"Dwork-Rothblum-Vadhan; {_FIXED}")


def _expm1(x: float) -> float:
    return math.expm1(x) if x < 700 else math.inf


def _adaptive(steps: list[_Step], delta: float) -> Report:
    """The fully adaptive filter of Whitehouse, Ramdas, Rogers, Wu 2023, always below that of Rogers et al. 2016."""
    pairs, number = _pairs(steps, delta / 2)
    slack = delta / 2 if number else delta
    epsilon = _squares(pairs) / 2 + _spread(pairs, slack)
    return epsilon, number == 0, _splitting(number, _if_pure("Whitehouse et al.", number))


def _rogers(steps: list[_Step], delta: float) -> Report:
    """The first adaptive filter (Rogers, Roth, Ullman, Vadhan 2016, Theorem 5.1), at the least ceiling it keeps."""
    pairs, number = _pairs(steps, delta / 2)  # the theorem leaves half of delta to the steps, pure ones too
    return _least_ceiling(pairs, delta), number == 0, _splitting(number, _if_pure("Rogers et al., Theorem 5.1", number))


def _least_ceiling(pairs: Pairs, delta: float) -> float:
    """The least E >= sum eps (e^eps - 1)/2 + sqrt(2 (S + H)(1 + ln(S/H + 1)/2) ln(2/delta)).

    S = sum eps^2 and H = E^2 / (28.04 ln(1/delta)). The right side has a slope in E of at most
    sqrt(2 ln(2/delta) / (28.04 ln(1/delta))) < 1, so every ceiling above the least one is kept too.
    """
    drift, squares = math.fsum(e * _expm1(e) / 2 * times for e, times in pairs), _squares(pairs)
    if delta <= 0 or math.isinf(drift + squares):
        return math.inf
    delta = min(delta, 1 / math.e)  # the theorem is stated below 1/e

    def kept(ceiling: float) -> bool:
        start = ceiling * ceiling / (28.04 * math.log(1 / delta))
        if start == 0:
            return False
        width = (squares + start) * (1 + math.log1p(squares / start) / 2)
        return drift + math.sqrt(2 * width * math.log(2 / delta)) <= ceiling

    high = doubled(kept)
    return least(kept, high / 2 if high > 1 else 0.0, high)


def _optimal(steps: list[_Step], delta: float) -> Report:
    """Kairouz, Oh, Viswanath 2015: exact for equal epsilons, their Theorem 3.5 otherwise."""
    pairs, number = _pairs(steps, delta / 2)
    slack = delta / 2 if number else delta
    if len({epsilon for epsilon, _ in pairs}) == 1:
        epsilon = _binomial(pairs[0][0], sum(times for _, times in pairs), slack)
        return epsilon, False, _splitting(number, f"Kairouz-Oh-Viswanath, exact for equal epsilons; {_FIXED}")
    rule = f"Kairouz-Oh-Viswanath, Theorem 3.5 for unequal epsilons (a bound: pld may be smaller); {_FIXED}"
    return _unequal(pairs, slack), False, _splitting(number, rule)


def _unequal(pairs: Pairs, delta: float) -> float:
    """Theorem 3.5: the smallest of the plain sum and two concentration bounds."""
    if delta <= 0 or math.isinf(_sum(pairs)):
        return _sum(pairs)
    drift = math.fsum(math.tanh(epsilon / 2) * epsilon * times for epsilon, times in pairs)  # (e^x - 1)/(e^x + 1)
    squares = _squares(pairs)
    width = min(math.log(math.e + math.sqrt(squares) / delta), math.log(1 / delta))
    return min(_sum(pairs), drift + math.sqrt(2 * squares * width))


def _binomial(epsilon: float, times: int, delta: float) -> float:
    """The least E with sum_l C(k,l) [e^{(k-l) eps} - e^E e^{l eps}]_+ / (1 + e^eps)^k <= delta (Thm 3.3)."""
    if delta <= 0 or math.isinf(epsilon):
        return epsilon * times
    lies = np.arange(times // 2 + 1, dtype=np.float64)
    losses = (times - 2 * lies) * epsilon
    chance = np.array([math.lgamma(times + 1) - math.lgamma(lie + 1) - math.lgamma(times - lie + 1) for lie in lies])
    chance = np.exp(chance - lies * epsilon - times * math.log1p(math.exp(-epsilon)))

    def fits(total: float) -> bool:
        return float(np.sum(chance * -np.expm1(np.minimum(0.0, total - losses)))) <= delta

    return least(fits, 0.0, times * epsilon)


# --- rules that compose curves ------------------------------------------------------------------


def _zcdp(steps: list[_Step], delta: float) -> Report:
    """What the filter counts: the sum of rho, by the tight conversion."""
    return epsilon_of(rho=_total(steps), delta=delta), True, f"the filter's own currency, {_CEILING}"


def _accounting(module: str) -> Any:
    """A module of dp-accounting, which is an optional extra."""
    try:
        return importlib.import_module(f"dp_accounting.{module}")
    except ModuleNotFoundError:
        raise QueryError(
            "this rule needs Google's dp-accounting, which is not installed; pip install 'dpcurate[accounting]', "
            "or use basic, advanced, optimal, adaptive, rogers or zcdp"
        ) from None


def _moments(steps: list[_Step], delta: float) -> Report:
    """The moments accountant (Abadi et al. 2016; Mironov 2017): Renyi curves added order by order."""
    convert = _accounting("rdp.rdp_privacy_accountant").compute_epsilon
    orders = 1 + np.geomspace(1e-2, _highest_order(_total(steps), delta), 4000)
    curve = sum((_renyi(step, orders) * step.times for step in steps), np.zeros_like(orders))
    epsilon, _ = convert(orders, curve, delta)
    return float(epsilon), False, "the best Renyi order is chosen afterwards; only one fixed beforehand makes a filter"


def _highest_order(rho: float, delta: float) -> float:
    """Far above the best order of a Gaussian step of the same total, sqrt(ln(1/delta) / rho)."""
    return max(1e6, 100 * math.sqrt(math.log(1 / delta) / rho)) if delta > 0 else 1e6


def _renyi(step: _Step, orders: FloatArray) -> FloatArray:
    linear = orders * step.rho
    return np.minimum(linear, _randomised_response(step.epsilon, orders)) if step.kind == "pure" else linear


def _randomised_response(epsilon: float, orders: FloatArray) -> FloatArray:
    """Renyi divergence of randomised response, the largest of any epsilon-DP step (Mironov 2017, Prop. 5)."""
    moment = np.logaddexp(orders * epsilon, (1 - orders) * epsilon) - np.logaddexp(0.0, epsilon)
    # Where the difference of the two logarithms has lost its digits the zCDP bound is as good.
    lost = orders * (orders - 1) * epsilon * epsilon < 1e-8
    return np.where(lost, orders * epsilon * epsilon / 2, moment / (orders - 1))


def _pld(steps: list[_Step], delta: float) -> Report:
    """Numerical composition of privacy loss distributions; steps known only by rho are added as zCDP."""
    if delta < _RESOLUTION:
        remark = f"below delta = {_RESOLUTION:g}, too fine for floating point, the smaller of zcdp and the plain sum"
        return _bounded(steps, delta), False, f"{remark}; {_FIXED}"
    curves = [step for step in steps if step.kind != "concentrated"]
    bounds = [step for step in steps if step.kind == "concentrated"]
    share = delta / 2 if curves and bounds else delta
    epsilon = (_composed(curves, share) if curves else 0.0) + (_bounded(bounds, share) if bounds else 0.0)
    remark = (
        f"numerical (dp-accounting), Gaussian steps read as continuous, never above zcdp or the plain sum; {_FIXED}"
    )
    return min(epsilon, _bounded(steps, delta)), False, remark


def _bounded(steps: list[_Step], delta: float) -> float:
    """By zCDP or by the plain sum: both hold, the smaller counts."""
    return min(epsilon_of(rho=_total(steps), delta=delta), math.fsum(step.epsilon * step.times for step in steps))


def _composed(steps: list[_Step], delta: float) -> float:
    width = _width(steps)
    parts = [_response(step, width) for step in steps if step.kind == "pure"]
    mu = math.sqrt(2 * _total(step for step in steps if step.kind == "gaussian"))
    if mu > 0:  # Gaussian steps compose to one Gaussian step exactly
        make = _accounting("pld.privacy_loss_distribution").from_gaussian_mechanism
        parts.append(make(1 / mu, value_discretization_interval=width))
    while len(parts) > 1:  # pairwise, so that most convolutions are between small distributions
        parts = [_pair(parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return float(parts[0].get_epsilon_for_delta(delta))


def _pair(parts: list[Any]) -> Any:
    return parts[0].compose(parts[1]) if len(parts) == 2 else parts[0]


def _width(steps: list[_Step]) -> float:
    """A grid fine against a typical step, so that rounding is second order, yet one that fits in memory."""
    pure = [step for step in steps if step.kind == "pure"]
    mu = math.sqrt(2 * _total(step for step in steps if step.kind == "gaussian"))
    fine = [mu / 500] if mu > 0 else []
    if pure:
        fine.append(math.sqrt(2 * _total(pure) / sum(step.times for step in pure)) / 50)
    return max(min(fine), math.sqrt(2 * _total(steps)) / 100_000)


def _response(step: _Step, width: float) -> Any:
    """Randomised response on the grid by connect-the-dots (Doroshenko et al. 2022): never understated."""
    epsilon = step.epsilon
    ratio = epsilon / width
    grid = sorted({math.floor(-ratio), math.ceil(-ratio), math.floor(ratio), math.ceil(ratio)})
    deltas = [_response_delta(epsilon, point * width) if point < ratio else 0.0 for point in grid]
    with np.errstate(over="ignore"):  # e^epsilon of a huge epsilon, which is then divided by
        mass = _accounting("pld.pld_pmf").create_pmf_pessimistic_connect_dots(width, grid, deltas)
    return _accounting("pld.privacy_loss_distribution").PrivacyLossDistribution(mass).self_compose(step.times)


def _response_delta(epsilon: float, at: float) -> float:
    if at <= -epsilon:
        return -math.expm1(at)
    return -math.expm1(at - epsilon) / (1 + math.exp(-epsilon))


RULES: dict[str, Callable[[list[_Step], float], Report]] = {
    "basic": _basic,
    "advanced": _advanced,
    "optimal": _optimal,
    "adaptive": _adaptive,
    "rogers": _rogers,
    "moments": _moments,
    "zcdp": _zcdp,
    "pld": _pld,
}
