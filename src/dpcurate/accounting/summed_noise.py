"""What shares of discrete Gaussian noise are worth as a sum. Proof: docs/proofs/shared-noise.md."""

from __future__ import annotations

import math
from fractions import Fraction

LEAST_STEPS = 4
"""The least scale of a share in integer steps; there the sum differs from one discrete Gaussian by less than 1e-65."""
ROUNDED = 1 + 1e-9
"""Covers the rounding of the few floating-point operations here."""


def log_ratio(shares: int, steps: float) -> float:
    """The most by which log-probabilities of a sum of discrete Gaussians and of one of its size differ, rounded up.

    The sum has `shares` independent terms of parameter `steps`, which is at least 1. With
    q_k = exp(-2 pi^2 steps^2 k / (k + 1)) it is at most 5 (q_1 + ... + q_(shares - 1)), half of tau in Kairouz, Liu,
    Steinke 2021, Section 3.
    """
    if steps < 1:
        raise ValueError(f"the bound holds for shares of one integer step and more, got {steps}")
    terms = (math.exp(-2 * math.pi**2 * steps**2 * k / (k + 1)) for k in range(1, shares))
    return 5 * math.fsum(terms) * ROUNDED


def summed_rho(rho: Fraction, *, shares: int, steps: float, numbers: int) -> Fraction:
    """The zCDP cost of noise that is a sum of shares, where one discrete Gaussian of its size would cost `rho`.

    At most rho + 2 sqrt(T rho) + 2 T, with T = `numbers` times `log_ratio`; rounded up to a float.
    """
    total = Fraction(numbers) * Fraction(log_ratio(shares, steps))
    root = math.sqrt(total * rho) * ROUNDED
    exact = rho + 2 * Fraction(root) + 2 * total
    rounded = float(exact)
    return Fraction(rounded if rounded >= exact else math.nextafter(rounded, math.inf))
