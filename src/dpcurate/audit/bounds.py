"""From frequencies to lower bounds that hold with a stated confidence, and the power of such a bound.

The input is one score a run (the auditor's summary of what was released) for each of the two tables. An
event, "the score is at least t" or "below t", is chosen on one half of the runs and counted on
the other half.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import betaincinv, logit, ndtri
from scipy.stats import binom

from dpcurate._typing import FloatArray

Currency = Literal["epsilon", "rho", "mu", "range"]
ORDERS = np.concatenate([[1.0], 1.0 + np.geomspace(0.05, 2000.0, 60)])
"""Orders of Renyi divergence that are tried; every one of them gives a valid bound."""
QUANTILES = (np.arange(40) + 0.5) / 40
"""Quantiles of each binomial count over which a power is averaged."""


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


CAUTION = 1e-3
"""An event is chosen as if less error were allowed: otherwise luck would favour a rare one too often."""


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


def range_of(p: FloatArray, q: FloatArray) -> FloatArray:
    """The least epsilon for which an epsilon-bounded-range mechanism has an event of these probabilities.

    The log ratio of every outcome's probabilities lies in some [t, t + epsilon] (Durfee and Rogers 2019), so the odds
    of an event differ by a factor of at most e^epsilon.
    """
    with np.errstate(invalid="ignore"):
        return np.where(p > q, logit(p) - logit(q), 0.0)


def _least(currency: Currency, p: FloatArray, q: FloatArray, delta: float) -> FloatArray:
    if currency == "epsilon":
        return epsilon_of(p, q, delta)
    return {"rho": rho_of, "mu": mu_of, "range": range_of}[currency](p, q)


def lower_bound(
    first: FloatArray, second: FloatArray, currency: Currency, *, error: float, delta: float = 0.0
) -> LowerBound:
    """A lower bound that is wrong with probability at most `error`, from scores on either table."""
    event = _choose(first[0::2], second[0::2], len(first[1::2]), currency, error, delta)
    return _counted(first[1::2], second[1::2], event, currency, error, delta)


def power(
    first: FloatArray, second: FloatArray, runs: int, currency: Currency, limit: float, *, error: float, delta: float
) -> float:
    """The chance that the bound of an audit of so many runs exceeds the limit, from the scores of a pilot.

    One half of the pilot chooses the event that is best for so many runs, the other half says how probable it is.
    """
    counted = runs // 2
    event = _choose(first[0::2], second[0::2], counted, currency, error, delta)
    k, n, j, m = _hits(first[1::2], second[1::2], event)
    favoured = binom.ppf(QUANTILES, counted, (k + 1) / (n + 2))[:, None]
    other = binom.ppf(QUANTILES, counted, (j + 1) / (m + 2))[None, :]
    return float((_bound(favoured, counted, other, counted, currency, error, delta) > limit).mean())


def _choose(
    first: FloatArray, second: FloatArray, runs: int, currency: Currency, error: float, delta: float
) -> ThresholdEvent:
    """The event with the best bound, if it has the same frequency in so many runs."""
    one, two = np.sort(first), np.sort(second)
    cuts = _candidates(np.concatenate([one, two]))
    over_one = (1 - np.searchsorted(one, cuts) / len(one)) * runs
    over_two = (1 - np.searchsorted(two, cuts) / len(two)) * runs
    cautious = CAUTION * error
    above = _bound(over_two, runs, over_one, runs, currency, cautious, delta)
    below = _bound(runs - over_one, runs, runs - over_two, runs, currency, cautious, delta)
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
    k, n, j, m = _hits(first, second, event)
    lower = _bound(np.array(float(k)), n, np.array(float(j)), m, currency, error, delta)
    return LowerBound(float(lower), event, k / n, j / m)


def _hits(first: FloatArray, second: FloatArray, event: ThresholdEvent) -> tuple[int, int, int, int]:
    """How often the event occurred, in how many runs: on the table that favours it, and on the other."""
    one, two = int(np.sum(first >= event.threshold)), int(np.sum(second >= event.threshold))
    n, m = len(first), len(second)
    return (two, m, one, n) if event.above else (n - one, n, m - two, m)


def hits_bound(favoured: int, other: int, runs: int, event: str, *, error: float, delta: float) -> LowerBound:
    """A lower bound on epsilon from how often an event that was fixed beforehand occurred."""
    lower = _bound(np.array(float(favoured)), runs, np.array(float(other)), runs, "epsilon", error, delta)
    return LowerBound(float(lower), event, favoured / runs, other / runs)
