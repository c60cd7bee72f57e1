"""Exact tests of independence, and the edge test that goes by them. They are not private."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.learn.constraint.edge_decisions import Recorder
from dpcurate.learn.constraint.pc_search import Decided, PairQuestion, WorkingGraph
from dpcurate.queries import Exact, KendallP, Moments, PairStatistic, Queryable, Release, Tables

Measured = tuple[FloatArray, FloatArray]
"""A statistic of each table, and its degrees of freedom or its variance."""


def chi_squared_tails(statistics: FloatArray, freedom: FloatArray) -> FloatArray:
    """P(chi-squared > statistic); 1 if there is no freedom, since then nothing was tested."""
    from scipy.special import chdtrc

    return np.where(freedom > 0, chdtrc(np.maximum(freedom, 1), np.maximum(statistics, 0)), 1.0)


def normal_tails(sums: FloatArray, variances: FloatArray) -> FloatArray:
    """P(|N(0, variance)| > |sum|); 1 where nothing varies."""
    from scipy.special import erfc

    there = variances > 0
    return np.where(there, erfc(np.abs(sums) / np.sqrt(2 * np.where(there, variances, 1))), 1.0)


def _margins(cells: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows, columns and totals of every stratum."""
    rows = cells.sum(axis=2)
    return rows, cells.sum(axis=1), rows.sum(axis=1)


def _freedom(rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Levels that do not occur in a stratum cannot vary there and take no freedom."""
    x, y = (np.maximum(np.count_nonzero(margin, axis=1), 1) - 1 for margin in (rows, columns))
    return np.asarray((x * y).sum(axis=-1), dtype=np.float64)


def likelihood_ratio(cells: FloatArray) -> Measured:
    """G = 2 sum n log(n / expected), as sums of n log n: over cells and totals, less those over margins."""
    rows, columns, totals = _margins(cells)
    up = cells[0].size + totals.shape[1]
    flat = np.concatenate([part.reshape(len(cells), -1) for part in (cells, totals, rows, columns)], axis=1)
    flat *= np.log(np.maximum(flat, 1e-300))
    return 2 * (flat[:, :up].sum(axis=1) - flat[:, up:].sum(axis=1)), _freedom(rows, columns)


def chi_squared(cells: FloatArray) -> Measured:
    """Pearson's statistic."""
    rows, columns, totals = _margins(cells)
    expected = rows[:, :, None] * columns[:, None] / np.maximum(totals, 1)[:, None, None]
    terms = (cells - expected) ** 2 / np.where(expected > 0, expected, 1)
    return terms.sum(axis=(1, 2, 3)), _freedom(rows, columns)


def _ranks(margin: FloatArray) -> FloatArray:
    """Mid-ranks of levels in each stratum, centred."""
    middle: FloatArray = np.cumsum(margin, axis=1) - margin / 2
    centred: FloatArray = middle - margin.sum(axis=1, keepdims=True) / 2
    return centred


def spearman(cells: FloatArray) -> Measured:
    """Rank correlation within strata, pooled: under independence each stratum's product of mid-ranks
    has the variance of a random pairing, ties included.
    """
    x, y, totals = _margins(cells)
    rank_x, rank_y = _ranks(x), _ranks(y)
    pooled = (cells * rank_x[:, :, None] * rank_y[:, None]).sum(axis=(1, 2, 3))
    spread = (x * rank_x**2).sum(axis=1) * (y * rank_y**2).sum(axis=1) / np.maximum(totals - 1, 1)
    return pooled, spread.sum(axis=-1)


def kendall(cells: FloatArray) -> Measured:
    """Concordant minus discordant pairs within strata, pooled, with the tie-aware variance."""
    x, y, m = _margins(cells)
    below = np.cumsum(cells, axis=2) - cells
    gain = cells.sum(axis=2, keepdims=True) - 2 * below - cells
    later = np.cumsum(gain[:, ::-1], axis=1)[:, ::-1] - gain
    return (cells * later).sum(axis=(1, 2, 3)), _kendall_variance(m, x, y).sum(axis=-1)


def _kendall_variance(m: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Variance of concordant minus discordant pairs under independence, with ties (Kendall 1970)."""

    def sums(t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        two, three = t * (t - 1), t * (t - 1) * (t - 2)
        return (two * (2 * t + 5)).sum(axis=1), two.sum(axis=1), three.sum(axis=1)

    (ax, bx, cx), (ay, by, cy) = sums(x), sums(y)
    whole = m * (m - 1) * (2 * m + 5)
    pairs, triples = np.maximum(2 * m * (m - 1), 1), np.maximum(9 * m * (m - 1) * (m - 2), 1)
    variance = (whole - ax - ay) / 18 + bx * by / pairs + cx * cy / triples
    return np.where(m > 1, np.maximum(variance, 0), 0)


def partial_correlation(moments: FloatArray, x: int, y: int, given: tuple[int, ...]) -> float:
    """Correlation of columns x and y after regression on others, from the sum of (1, x)(1, x)^T."""
    n = moments[0, 0]
    mean = moments[0, 1:] / n
    which = [x, y, *given]
    covariance = (moments[1:, 1:] / n - np.outer(mean, mean))[np.ix_(which, which)]
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    precision = np.linalg.pinv(covariance / np.outer(scale, scale), hermitian=True)
    return float(-precision[0, 1] / math.sqrt(max(precision[0, 0] * precision[1, 1], 1e-300)))


def fisher_test(moments: FloatArray, x: int, y: int, given: tuple[int, ...]) -> float:
    """Fisher's z of a partial correlation."""
    r = min(max(partial_correlation(moments, x, y, given), -1 + 1e-12), 1 - 1e-12)
    freedom = moments[0, 0] - len(given) - 3
    return math.erfc(abs(math.atanh(r)) * math.sqrt(freedom / 2)) if freedom > 0 else 1.0


TABLE_TESTS: dict[str, tuple[Callable[[FloatArray], Measured], Callable[[FloatArray, FloatArray], FloatArray]]] = {
    "g": (likelihood_ratio, chi_squared_tails),
    "chi-squared": (chi_squared, chi_squared_tails),
    "spearman": (spearman, normal_tails),
    "kendall": (kendall, normal_tails),
}
"""What is measured in tables, and the tail in which it is looked up."""


def p_values(test: str, tables: Sequence[FloatArray]) -> FloatArray:
    """The p-value of each table, x by y by any number of others; tables of one shape are measured together."""
    measure, tails = TABLE_TESTS[test]
    alike: dict[tuple[int, ...], list[int]] = {}
    for place, table in enumerate(tables):
        alike.setdefault((*table.shape[:2], table.size), []).append(place)
    measured = np.empty((2, len(tables)))
    for shape, places in alike.items():
        stack = np.concatenate([tables[i].reshape(-1) for i in places])
        measured[:, places] = measure(stack.reshape(len(places), *shape[:2], -1))
    return tails(*measured)


# Exact tests of independence: tables, moments or p-values through the queryable, at infinite cost.
#
# Tests cost nothing here and passes over the rows do, so each round looks twice as far ahead as the one
# before. What was asked of an edge beyond the test that cut it is dropped.


class ExactTest(Recorder, ABC):
    """Independent where p exceeds the level."""

    growth = 2

    def __init__(self, queryable: Queryable, level: float) -> None:
        super().__init__()
        self._queryable, self._level = queryable, level

    def decide(self, tests: Sequence[PairQuestion], graph: WorkingGraph) -> Iterator[Decided]:
        """Cut a pair where its exact p-value is above the level."""
        for q, p in zip(tests, self._p_values(tests), strict=True):
            if graph.joined(q.x, q.y):
                cut = p > self._level
                self.note(q, "cut" if cut else "kept", p, 0.0, self._level)
                yield q, cut

    @abstractmethod
    def _p_values(self, tests: Sequence[PairQuestion]) -> list[float]:
        """One for each test."""


class TableTest(ExactTest):
    """G, chi-squared, Spearman or Kendall on exact tables; tests over the same columns share one."""

    def __init__(self, queryable: Queryable, level: float, test: str) -> None:
        super().__init__(queryable, level)
        self._test = test

    def _p_values(self, tests: Sequence[PairQuestion]) -> list[float]:
        columns = [tuple(sorted((q.x, q.y, *q.given))) for q in tests]
        sets = dict.fromkeys(columns)
        parts = self._queryable.ask(Release(Tables(tuple(sets)), Exact())).parts
        found = dict(zip(sets, parts, strict=True))
        tables = [turned(found[names], names, q) for names, q in zip(columns, tests, strict=True)]
        return list(map(float, p_values(self._test, tables)))


class PartialCorrelationTest(ExactTest):
    """Fisher's z of partial correlations, from moments that are read once."""

    growth = 1

    def __init__(self, queryable: Queryable, level: float) -> None:
        super().__init__(queryable, level)
        self._names = queryable.schema.names
        self._moments: FloatArray | None = None

    def _p_values(self, tests: Sequence[PairQuestion]) -> list[float]:
        if self._moments is None:
            self._moments = self._queryable.ask(Release(Moments(self._names), Exact())).value
        return [self._partial(q, self._moments) for q in tests]

    def _partial(self, q: PairQuestion, moments: FloatArray) -> float:
        x, y, *given = (self._names.index(n) for n in (q.x, q.y, *q.given))
        return fisher_test(moments, x, y, tuple(given))


class PValueTest(ExactTest):
    """P-values that the session computes itself."""

    def _p_values(self, tests: Sequence[PairQuestion]) -> list[float]:
        asked = [Release(self._statistic(q), Exact()) for q in tests]
        return [float(answer) for answer in self._queryable.ask_all(asked)]

    def _statistic(self, q: PairQuestion) -> PairStatistic:
        return KendallP(q.x, q.y, q.given)


def turned(table: FloatArray, names: tuple[str, ...], q: PairQuestion) -> FloatArray:
    """The table with x and y in front, the smaller first: tests are symmetric, and fewer shapes go faster."""
    x, y = names.index(q.x), names.index(q.y)
    if table.shape[x] > table.shape[y]:
        x, y = y, x
    return table.transpose(_axes(x, y, len(names)))


@cache
def _axes(x: int, y: int, number: int) -> tuple[int, ...]:
    return (x, y, *(i for i in range(number) if i not in (x, y)))
