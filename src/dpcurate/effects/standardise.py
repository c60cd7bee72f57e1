"""P(outcome | do(cause)) from a noised table: the sum over strata of their share times P(outcome | cause, stratum)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcurate._typing import BoolArray, FloatArray
from dpcurate.effects.counts import NoisedCounts
from dpcurate.effects.effect import WIDTH

CLEAR = 7.0
"""A stratum counts if its rows with a level of the cause exceed so many standard deviations of their noise."""
FEWEST_ROWS = 10.0
"""And if there are at least so many."""
MOST_UNSEEN = 0.5
"""Beyond this share of rows in strata that do not count for a level of the cause, nothing is said."""


@dataclass(frozen=True, slots=True, eq=False)
class Standardised:
    """The table of P(outcome | do(cause)), rows being the cause's levels, and its errors as an EffectTable has them."""

    values: FloatArray
    covariances: FloatArray


def standardised(table: NoisedCounts) -> Standardised | None:
    """From a table whose first axes are the cause and the outcome; None where too much of it is hidden by noise.

    What cannot be seen of P(outcome | cause, stratum) lies between 0 and 1, and widens the interval by as much.
    """
    causes, outcomes = table.counts.shape[:2]
    counts = table.counts.reshape(causes, outcomes, -1)
    with_cause = counts.sum(axis=1)
    seen = _seen(table, with_cause)
    shares = counts.sum(axis=(0, 1)) / counts.sum()
    unseen = np.where(seen, 0.0, np.maximum(shares, 0.0)).sum(axis=1)
    if (unseen > MOST_UNSEEN).any() or counts.sum() <= 0:
        return None
    conditional = np.where(seen[:, None], counts / np.where(seen, with_cause, 1.0)[:, None], 0.0)
    weights = np.where(seen, shares, 0.0)
    total = weights.sum(axis=1)  # one level of the cause may be seen in more strata than another
    values = np.einsum("xyz,xz->xy", conditional, weights) / total[:, None]
    covariances = np.stack(
        [table.covariance(_gradients(table, conditional, weights, seen, values, j)) for j in range(outcomes)]
    )
    furthest = np.maximum(values, 1 - values).clip(0, 1) * unseen[:, None] / WIDTH
    return Standardised(values, covariances + np.einsum("xy,xw->yxw", furthest**2, np.eye(causes)))


def _seen(table: NoisedCounts, with_cause: FloatArray) -> BoolArray:
    """For each level of the cause, the strata in which its rows stand out of the noise."""
    order = (0, *range(2, table.counts.ndim), 1)
    turned = NoisedCounts(np.transpose(table.counts, order), np.transpose(table.noise, order))
    noise = turned.noise_of_margin(table.counts.ndim - 1).reshape(with_cause.shape)
    return np.asarray((with_cause > CLEAR * np.sqrt(noise)) & (with_cause >= FEWEST_ROWS))


def _gradients(
    table: NoisedCounts, conditional: FloatArray, weights: FloatArray, seen: BoolArray, values: FloatArray, j: int
) -> FloatArray:
    """Of P(outcome = j | do(cause)) for every level of the cause, by each count.

    A count moves the share of its stratum, and, in the rows of its own level of the cause, the conditional.
    """
    causes, outcomes, strata = conditional.shape
    counts = table.counts.reshape(conditional.shape)
    rows, with_cause = counts.sum(), counts.sum(axis=1)
    total = weights.sum(axis=1)
    shares = np.where(seen, (conditional[:, j] - values[:, [j]]) / rows / total[:, None], 0.0)
    gradients = np.broadcast_to(shares[:, None, None], (causes, causes, outcomes, strata)).copy()
    own = weights / np.where(seen, with_cause, 1.0) / total[:, None]
    for x in range(causes):
        gradients[x, x] -= own[x] * conditional[x, j]
        gradients[x, x, j] += own[x]
    return gradients.reshape(causes, *table.counts.shape)
