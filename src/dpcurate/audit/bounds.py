"""From frequencies to lower bounds that hold with a stated confidence.

Two samples of one number each (the auditor's score of what was released), one sample a table. An
event, "the score is at least t" or "below t", is chosen on one half of the runs and counted on
the other half.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import betaincinv, ndtri

from dpcurate.arrays import FloatArray

Currency = Literal["epsilon", "rho", "mu"]
ORDERS = np.concatenate([[1.0], 1.0 + np.geomspace(0.05, 2000.0, 60)])
"""Orders of Renyi divergence that are tried; every one of them gives a valid bound."""


@dataclass(frozen=True, slots=True)
class ThresholdEvent:
    """A set of outcomes: the score is at least (or below) a threshold, and the table it speaks for."""

    threshold: float
    above: bool

    def __str__(self) -> str:
        return f"log-likelihood ratio {'at least' if self.above else 'below'} {self.threshold:.4g}"


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A lower bound, the event behind it, and how often it occurred on the table that favours it and on the other."""

    lower: float
    event: ThresholdEvent | str
    favoured: float
    other: float


def at_least(hits: FloatArray, runs: int, error: float) -> FloatArray:
    """Clopper-Pearson: the probability is at least this, but for an error."""
    with np.errstate(invalid="ignore"):
        return np.where(hits <= 0, 0.0, betaincinv(np.maximum(hits, 1), runs - hits + 1, error))


def at_most(hits: FloatArray, runs: int, error: float) -> FloatArray:
    """Clopper-Pearson: the probability is at most this, but for an error."""
    with np.errstate(invalid="ignore"):
        return np.where(hits >= runs, 1.0, betaincinv(hits + 1, np.maximum(runs - hits, 1), 1 - error))


def epsilon_of(p: FloatArray, q: FloatArray, delta: float) -> FloatArray:
    """The least epsilon with p <= e^epsilon q + delta."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(0.0, np.log(np.maximum(p - delta, 0.0)) - np.log(q)))


def rho_of(p: FloatArray, q: FloatArray) -> FloatArray:
    """The least rho for which an event may have probability p on one table and q on the other.

    Processing does not raise Renyi divergence, so that of two coins, D_alpha(p || q) <= alpha rho for all
    alpha >= 1 (Bun and Steinke 2016, Lemma 2.2); the largest D_alpha / alpha over ORDERS.
    """
    safe = p > q
    a, b = np.where(safe, p, 0.5)[..., None], np.where(safe, q, 0.5)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        yes, no = np.log(a) - np.log(b), np.log1p(-a) - np.log1p(-b)
        none = np.where(a >= 1, 0.0, (1 - a) * no)  # 0 log 0 is 0
        first = a * yes + none
        alpha = ORDERS[1:]
        rest = np.logaddexp(np.log(a) + (alpha - 1) * yes, np.log1p(-a) + np.where(a >= 1, 0.0, (alpha - 1) * no))
    each = np.concatenate([first, rest / (alpha - 1) / alpha], axis=-1)
    return np.where(safe, each.max(axis=-1), 0.0)


def mu_of(p: FloatArray, q: FloatArray) -> FloatArray:
    """The least mu for which N(0, 1) and N(mu, 1) have an event of these probabilities (Dong, Roth, Su 2022)."""
    return np.where(p > q, ndtri(p) - ndtri(q), 0.0)


def _least(currency: Currency, p: FloatArray, q: FloatArray, delta: float) -> FloatArray:
    if currency == "epsilon":
        return epsilon_of(p, q, delta)
    return rho_of(p, q) if currency == "rho" else mu_of(p, q)


def lower_bound(
    first: FloatArray, second: FloatArray, currency: Currency, *, error: float, delta: float = 0.0
) -> LowerBound:
    """A lower bound that is wrong with probability at most `error`, from scores on either table."""
    event = _choose(first[0::2], second[0::2], currency, error, delta)
    return _counted(first[1::2], second[1::2], event, currency, error, delta)


def _choose(first: FloatArray, second: FloatArray, currency: Currency, error: float, delta: float) -> ThresholdEvent:
    one, two = np.sort(first), np.sort(second)
    cuts = _candidates(np.concatenate([one, two]))
    over_one = len(one) - np.searchsorted(one, cuts).astype(np.float64)
    over_two = len(two) - np.searchsorted(two, cuts).astype(np.float64)
    above = _bound(over_two, len(two), over_one, len(one), currency, error, delta)
    below = _bound(len(one) - over_one, len(one), len(two) - over_two, len(two), currency, error, delta)
    if above.max() >= below.max():
        return ThresholdEvent(float(cuts[int(above.argmax())]), True)
    return ThresholdEvent(float(cuts[int(below.argmax())]), False)


def _candidates(scores: FloatArray) -> FloatArray:
    """Quantiles, close together in either tail."""
    tail = np.geomspace(1 / len(scores), 0.5, 60)
    shares = np.concatenate([tail, 1 - tail, np.linspace(0.02, 0.98, 97)])
    return np.unique(np.quantile(scores, shares, method="closest_observation"))


def _bound(k: FloatArray, n: int, j: FloatArray, m: int, currency: Currency, error: float, delta: float) -> FloatArray:
    """Both intervals share the error."""
    return _least(currency, at_least(k, n, error / 2), at_most(j, m, error / 2), delta)


def _counted(
    first: FloatArray, second: FloatArray, event: ThresholdEvent, currency: Currency, error: float, delta: float
) -> LowerBound:
    one, two = np.sum(first >= event.threshold), np.sum(second >= event.threshold)
    n, m = len(first), len(second)
    k, j, n, m = (int(two), int(one), m, n) if event.above else (n - int(one), m - int(two), n, m)
    lower = _bound(np.array(float(k)), n, np.array(float(j)), m, currency, error, delta)
    return LowerBound(float(lower), event, k / n, j / m)


def hits_bound(favoured: int, other: int, runs: int, event: str, *, error: float, delta: float) -> LowerBound:
    """A lower bound on epsilon from how often an event that was fixed beforehand occurred."""
    lower = _bound(np.array(float(favoured)), runs, np.array(float(other)), runs, "epsilon", error, delta)
    return LowerBound(float(lower), event, favoured / runs, other / runs)
