"""Tests of conditional independence on released tables and moments: p-values, nothing private.

A table is x by y by strata. On noised tables these tests are wrong (their null does not know the
noise); they serve exact releases.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def chi_squared_tail(statistic: float, freedom: float) -> float:
    """P(chi-squared > statistic); 1 if there is no freedom, since then nothing was tested."""
    from scipy.special import chdtrc

    return float(chdtrc(freedom, statistic)) if freedom > 0 else 1.0


def normal_tails(z: float) -> float:
    """P(|N(0, 1)| > |z|)."""
    return math.erfc(abs(z) / math.sqrt(2))


def _expected(table: Array) -> tuple[Array, Array, float]:
    """Cells by stratum, what independence expects of them, and the degrees of freedom left."""
    cells = table.reshape(*table.shape[:2], -1)
    rows, columns, totals = cells.sum(axis=1), cells.sum(axis=0), cells.sum(axis=(0, 1))
    # Levels that do not occur in a stratum cannot vary there and take no freedom.
    freedom = np.maximum((rows > 0).sum(axis=0) - 1, 0) * np.maximum((columns > 0).sum(axis=0) - 1, 0)
    expected = rows[:, None, :] * columns[None, :, :] / np.maximum(totals, 1)
    return cells, expected, float(freedom.sum())


def g_test(table: Array) -> float:
    """The likelihood-ratio test."""
    cells, expected, freedom = _expected(table)
    there = cells > 0
    g = 2 * float((cells[there] * np.log(cells[there] / expected[there])).sum())
    return chi_squared_tail(g, freedom)


def chi_squared_test(table: Array) -> float:
    """Pearson's test."""
    cells, expected, freedom = _expected(table)
    there = expected > 0
    x2 = float(((cells[there] - expected[there]) ** 2 / expected[there]).sum())
    return chi_squared_tail(x2, freedom)


def _ranks(margin: Array) -> Array:
    """Mid-ranks of levels in each stratum, centred."""
    middle: Array = np.cumsum(margin, axis=0) - margin / 2
    centred: Array = middle - margin.sum(axis=0) / 2
    return centred


def spearman_test(table: Array) -> float:
    """Rank correlation within strata, pooled: under independence each stratum's product of mid-ranks
    has the variance of a random pairing, ties included.
    """
    cells = table.reshape(*table.shape[:2], -1)
    totals = cells.sum(axis=(0, 1))
    x, y = cells.sum(axis=1), cells.sum(axis=0)
    rank_x, rank_y = _ranks(x), _ranks(y)
    pooled = (cells * rank_x[:, None, :] * rank_y[None, :, :]).sum()
    spread = (x * rank_x**2).sum(axis=0) * (y * rank_y**2).sum(axis=0) / np.maximum(totals - 1, 1)
    return normal_tails(pooled / math.sqrt(spread.sum())) if spread.sum() > 0 else 1.0


def kendall_test(table: Array) -> float:
    """Concordant minus discordant pairs within strata, pooled, with the tie-aware variance."""
    cells = table.reshape(*table.shape[:2], -1)
    m = cells.sum(axis=(0, 1))
    x, y = cells.sum(axis=1), cells.sum(axis=0)
    below = np.cumsum(cells, axis=1) - cells
    gain = cells.sum(axis=1, keepdims=True) - 2 * below - cells
    later = np.cumsum(gain[::-1], axis=0)[::-1] - gain
    balance = float((cells * later).sum())
    spread = float(_kendall_variance(m, x, y).sum())
    return normal_tails(balance / math.sqrt(spread)) if spread > 0 else 1.0


def _kendall_variance(m: Array, x: Array, y: Array) -> Array:
    """Variance of concordant minus discordant pairs under independence, with ties (Kendall 1970)."""

    def sums(t: Array) -> tuple[Array, Array, Array]:
        two, three = t * (t - 1), t * (t - 1) * (t - 2)
        return (two * (2 * t + 5)).sum(axis=0), two.sum(axis=0), three.sum(axis=0)

    (ax, bx, cx), (ay, by, cy) = sums(x), sums(y)
    whole = m * (m - 1) * (2 * m + 5)
    pairs, triples = np.maximum(2 * m * (m - 1), 1), np.maximum(9 * m * (m - 1) * (m - 2), 1)
    variance = (whole - ax - ay) / 18 + bx * by / pairs + cx * cy / triples
    return np.where(m > 1, np.maximum(variance, 0), 0)


def partial_correlation(moments: Array, x: int, y: int, given: tuple[int, ...]) -> float:
    """Correlation of columns x and y after regression on others, from the sum of (1, x)(1, x)^T."""
    n = moments[0, 0]
    mean = moments[0, 1:] / n
    which = [x, y, *given]
    covariance = (moments[1:, 1:] / n - np.outer(mean, mean))[np.ix_(which, which)]
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    precision = np.linalg.pinv(covariance / np.outer(scale, scale), hermitian=True)
    return float(-precision[0, 1] / math.sqrt(max(precision[0, 0] * precision[1, 1], 1e-300)))


def fisher_test(moments: Array, x: int, y: int, given: tuple[int, ...]) -> float:
    """Fisher's z of a partial correlation."""
    r = min(max(partial_correlation(moments, x, y, given), -1 + 1e-12), 1 - 1e-12)
    freedom = moments[0, 0] - len(given) - 3
    return normal_tails(math.atanh(r) * math.sqrt(freedom)) if freedom > 0 else 1.0


TABLE_TESTS = {"g": g_test, "chi-squared": chi_squared_test, "spearman": spearman_test, "kendall": kendall_test}
