"""Mechanisms: the object that makes the noise is the object that states its cost.

Sensitivities come as exact fractions and every rounding goes to the safe side, so the cost charged
is never below the cost of the noise drawn. All noise is drawn on integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcurate._typing import IntArray
from dpcurate.accounting import LEAST_STEPS, Cost, gaussian_multiplier, summed_rho
from dpcurate.errors import QueryError
from dpcurate.private.noise import Randomness, check_scale
from dpcurate.queries import Exact, Gaussian, GaussianShare, Laplace, Noise
from dpcurate.queries.encoding import MOST_NUMBERS

STEPS = 1 << 20
"""Integer steps of a score between two tables that differ by one unit."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far one unit can move a statistic: L1, and the square of L2."""

    l1: Fraction
    l2_squared: Fraction

    def times(self, rows: int) -> Sensitivity:
        """For a unit of several rows, by the triangle inequality."""
        return Sensitivity(self.l1 * rows, self.l2_squared * rows * rows)

    def larger(self, other: Sensitivity) -> Sensitivity:
        """The larger bound of each kind."""
        return Sensitivity(max(self.l1, other.l1), max(self.l2_squared, other.l2_squared))


def _up(value: float) -> float:
    return math.nextafter(value, math.inf)


def integer_scale(scale: Fraction, unit: Fraction) -> float:
    """The noise scale in integer steps, rounded up."""
    exact = scale * unit
    rounded = float(exact)
    if Fraction(rounded) < exact:
        rounded = _up(rounded)
    check_scale(rounded)
    return rounded


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Discrete Gaussian noise of parameter sigma on every coordinate.

    Guarantee: rho-zCDP with rho = l2_squared / (2 sigma^2), for any integer-valued statistic.
    Sensitivity: the squared L2 distance, in natural units, of neighbouring tables' statistics.
    Proof: coordinate i, held in integer steps of 1 / unit_i, gets discrete Gaussian noise of
    parameter s_i >= sigma unit_i and moves by an integer k_i; its Renyi divergence of order alpha
    is at most alpha k_i^2 / (2 s_i^2) <= alpha (k_i / unit_i)^2 / (2 sigma^2). Coordinates are
    independent, so divergences add up to alpha l2_squared / (2 sigma^2).
    Cites: Canonne, Kamath, Steinke 2020, Theorem 4.
    """

    sigma: Fraction
    sensitivity: Sensitivity
    name = "gaussian"

    @property
    def cost(self) -> Cost:
        """What one use of the mechanism costs."""
        return Cost.concentrated(self.sensitivity.l2_squared / (2 * self.sigma * self.sigma))

    @property
    def multiplier(self) -> float:
        """Noise scale over sensitivity."""
        return float(self.sigma) / math.sqrt(self.sensitivity.l2_squared)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise in natural units."""
        return float(self.sigma)

    def draw(self, unit: Fraction, size: int, randomness: Randomness) -> IntArray:
        """Noise for `size` coordinates held in integer steps of 1 / unit."""
        return randomness.gaussian(integer_scale(self.sigma, unit), size)

    def check(self, unit: Fraction) -> None:
        """Refuse noise too large for integers."""
        integer_scale(self.sigma, unit)


MOST_REFINED = 1 << 12
"""The finest grid, in parts of an integer step, on which a share of noise is drawn."""


@dataclass(frozen=True, slots=True)
class GaussianShareNoise:
    """One site's share of noise on a sum over sites: discrete Gaussian of parameter `share` on every coordinate.

    Guarantee: the sum over all sites, with the shares of `colluding` of them known, is rho-zCDP with rho the least
    above (sites_per_person)^2 l2_squared / (2 (sites - colluding) share^2). A single share guarantees nothing alike.
    Sensitivity: the squared L2 distance, in natural units, of one site's statistics on neighbouring tables. A person
    with rows at m sites moves the sum at most m times as far.
    Proof: docs/proofs/shared-noise.md. Coordinates are held in integer steps of 1 / (unit_i g_i), g_i the power of two
    that makes the share at least LEAST_STEPS of them; the sum of the honest sites' shares then differs from one
    discrete Gaussian by a factor of at most exp(T) in probability, T below 1e-57 for any answer that can be stored, and
    rho rises to at most rho + 2 sqrt(T rho) + 2 T.
    Cites: Kairouz, Liu, Steinke 2021, Section 3; Canonne, Kamath, Steinke 2020, Theorem 4.
    """

    share: Fraction
    sensitivity: Sensitivity
    sites: int
    colluding: int
    sites_per_person: int
    name = "gaussian-share"

    @property
    def _honest(self) -> int:
        return self.sites - self.colluding

    @property
    def cost(self) -> Cost:
        """What one use of the mechanism at all sites costs each of them."""
        moved = self.sites_per_person**2 * self.sensitivity.l2_squared
        rho = moved / (2 * self._honest * self.share * self.share)
        return Cost.concentrated(summed_rho(rho, shares=self._honest, steps=LEAST_STEPS, numbers=MOST_NUMBERS))

    @property
    def multiplier(self) -> float:
        """Scale of the honest sites' noise over how far a unit moves the sum."""
        return 1 / math.sqrt(2 * self.cost.rho)

    @property
    def deviation(self) -> float:
        """Standard deviation of the sum of all sites' noise in natural units."""
        return float(self.share) * math.sqrt(self.sites)

    def refinement(self, unit: Fraction) -> int:
        """Parts of an integer step in which a coordinate is held, so that a share has LEAST_STEPS of them or more."""
        parts = 1
        while self.share * unit * parts < LEAST_STEPS and parts < MOST_REFINED:
            parts *= 2
        return parts

    def draw(self, unit: Fraction, size: int, randomness: Randomness) -> IntArray:
        """One site's share for `size` coordinates held in integer steps of 1 / unit, a refined one."""
        return randomness.gaussian(self._steps(unit), size)

    def check(self, unit: Fraction) -> None:
        """Refuse noise too large for integers in the sum, and a share too small to add up to a discrete Gaussian."""
        steps = self._steps(unit * self.refinement(unit))
        check_scale(steps * math.sqrt(self.sites))

    def _steps(self, unit: Fraction) -> float:
        steps = integer_scale(self.share, unit)
        if steps < LEAST_STEPS:
            raise QueryError(
                f"a share of noise would be {steps:.3g} integer steps, and {LEAST_STEPS} are the least that add up to "
                "a discrete Gaussian: ask for more noise, or let every site add its own (noise='own')"
            )
        return steps


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Discrete Laplace noise of scale b on every coordinate.

    Guarantee: epsilon-DP with epsilon = l1 / b, hence epsilon^2 / 2-zCDP.
    Sensitivity: the L1 distance, in natural units, of neighbouring tables' statistics.
    Proof: in integer steps of 1 / unit_i the scale is s_i >= b unit_i and the shift an integer k_i;
    the ratio of probabilities is at most exp(sum |k_i| / s_i) <= exp(l1 / b).
    Cites: Ghosh, Roughgarden, Sundararajan 2012; Bun and Steinke 2016, Prop. 1.4.
    """

    scale: Fraction
    sensitivity: Sensitivity
    name = "laplace"

    @property
    def cost(self) -> Cost:
        """What one use of the mechanism costs."""
        return Cost.pure(self.sensitivity.l1 / self.scale)

    @property
    def multiplier(self) -> float:
        """Noise scale over sensitivity."""
        return float(self.scale / self.sensitivity.l1)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise in natural units."""
        return float(self.scale) * math.sqrt(2)

    def draw(self, unit: Fraction, size: int, randomness: Randomness) -> IntArray:
        """Noise for `size` coordinates held in integer steps of 1 / unit."""
        return randomness.laplace(integer_scale(self.scale, unit), size)

    def check(self, unit: Fraction) -> None:
        """Refuse noise too large for integers."""
        integer_scale(self.scale, unit)


@dataclass(frozen=True, slots=True)
class NoNoise:
    """An exact release.

    Guarantee: none.
    Sensitivity: not used.
    Proof: none; the cost is infinite.
    Cites: none.
    """

    name = "exact"
    multiplier = None
    deviation: float = 0.0

    @property
    def cost(self) -> Cost:
        """What one use of the mechanism costs."""
        return Cost.infinite()

    def draw(self, unit: Fraction, size: int, randomness: Randomness) -> IntArray:
        """Noise for `size` coordinates held in integer steps of 1 / unit."""
        return np.zeros(size, dtype=np.int64)

    def check(self, unit: Fraction) -> None:
        """Refuse noise too large for integers."""


Mechanism = GaussianNoise | GaussianShareNoise | LaplaceNoise | NoNoise


def build(noise: Noise, sensitivity: Sensitivity) -> Mechanism:
    """The mechanism a release asks for, calibrated to a sensitivity."""
    if isinstance(noise, Exact):
        return NoNoise()
    if sensitivity.l1 == 0 or sensitivity.l2_squared == 0:
        raise QueryError(
            "no single unit can move this statistic, so there is nothing to protect or to pay for: it follows from the "
            "schema, so leave it out"
        )
    if isinstance(noise, Laplace):
        return LaplaceNoise(_laplace_scale(noise, sensitivity), sensitivity)
    if isinstance(noise, GaussianShare):
        share = _share(noise, sensitivity)
        return GaussianShareNoise(share, sensitivity, noise.sites, noise.colluding, noise.sites_per_person)
    return GaussianNoise(_gaussian_sigma(noise, sensitivity), sensitivity)


def _laplace_scale(noise: Laplace, sensitivity: Sensitivity) -> Fraction:
    if noise.scale is not None:
        return Fraction(noise.scale)
    assert noise.epsilon is not None
    return sensitivity.l1 / Fraction(noise.epsilon)


def _gaussian_sigma(noise: Gaussian, sensitivity: Sensitivity) -> Fraction:
    if noise.sigma is not None:
        return Fraction(noise.sigma)
    if noise.rho is not None:
        return root_up(sensitivity.l2_squared / (2 * Fraction(noise.rho)))
    assert noise.epsilon is not None
    assert noise.delta is not None
    multiplier = gaussian_multiplier(epsilon=float(noise.epsilon), delta=float(noise.delta))
    return root_up(sensitivity.l2_squared) * Fraction(multiplier)


def _share(noise: GaussianShare, sensitivity: Sensitivity) -> Fraction:
    """A share of such a scale that the sum costs no more than was asked, what it costs above one Gaussian included."""
    moved = noise.sites_per_person**2 * sensitivity.l2_squared
    return root_up(moved / (2 * noise.honest * Fraction(noise.rho)) * (1 + Fraction(1, 2**40)))


def root_up(square: Fraction) -> Fraction:
    """The square root as a float's fraction, rounded up."""
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = _up(root)
    return Fraction(root)


@dataclass(frozen=True, slots=True)
class Exponential:
    """The exponential mechanism over integer scores.

    Guarantee: epsilon-bounded-range, hence epsilon-DP and epsilon^2 / 8-zCDP.
    Sensitivity: each score moves by at most STEPS between neighbours, in either direction.
    Proof: weights exp(epsilon score / (2 STEPS)) are Gumbel noise of scale 2 STEPS / epsilon; the log
    ratio of any outcome's probabilities lies in an interval of length 2 STEPS / scale = epsilon.
    Cites: McSherry and Talwar 2007; Durfee and Rogers 2019; Cesar and Rogers 2021, Lemma 1.
    """

    epsilon: Fraction
    name = "exponential"
    multiplier = None

    def __post_init__(self) -> None:
        integer_scale(2 * STEPS / self.epsilon, Fraction(1))

    @property
    def cost(self) -> Cost:
        """What one use of the mechanism costs."""
        return Cost.bounded_range(self.epsilon)

    def pick(self, scores: IntArray, randomness: Randomness) -> int:
        """The index of the candidate that was picked."""
        return randomness.noisiest(scores, integer_scale(2 * STEPS / self.epsilon, Fraction(1)))


@dataclass(frozen=True, slots=True)
class FirstAbove:
    """Above-threshold: tells of each score whether it is positive, until the first yes.

    Guarantee: epsilon-DP for the whole sequence of answers, hence epsilon^2 / 2-zCDP.
    Sensitivity: each score moves by at most STEPS between neighbours.
    Proof: threshold noise of scale 2 STEPS / epsilon, fresh noise of scale 4 STEPS / epsilon for each score.
    Shifting the threshold noise by STEPS keeps every no a no, shifting the last score's noise by
    2 STEPS keeps the yes: ratios exp(epsilon / 2) each. The shifts are integers, so discrete
    Laplace noise serves.
    Cites: Dwork and Roth 2014, Theorem 3.23; Lyu, Su, Li 2017, Algorithm 1 with c = 1.
    """

    epsilon: Fraction
    name = "above-threshold"
    multiplier = None

    def __post_init__(self) -> None:
        integer_scale(4 * STEPS / self.epsilon, Fraction(1))

    @property
    def cost(self) -> Cost:
        """What one use of the mechanism costs."""
        return Cost.pure(self.epsilon)

    def threshold(self, randomness: Randomness) -> int:
        """The secret noise of the threshold."""
        return int(randomness.laplace(integer_scale(2 * STEPS / self.epsilon, Fraction(1)), 1)[0])

    def query(self, randomness: Randomness) -> int:
        """Fresh noise for one score."""
        return int(randomness.laplace(integer_scale(4 * STEPS / self.epsilon, Fraction(1)), 1)[0])
