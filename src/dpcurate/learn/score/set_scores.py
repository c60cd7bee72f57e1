"""BIC, BDeu and BGe, each as one number for a set of columns.

These scores are equivalent: a complete graph over some columns has one score F(U) whatever its arrows
(Heckerman, Geiger and Chickering 1995). So a column y with parents P scores F(P and y) - F(P), one table serves every
family over its columns, and graphs of one Markov class score the same by construction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.learn.measure_once.blocks import Columns
from dpcurate.learn.score.objectives import ReleasedMoments
from dpcurate.queries import MOST_CELLS, Answer, Exact, Queryable, Release, Tables
from dpcurate.schema import Column


class SetScores(Protocol):
    """The score of sets of columns."""

    @property
    def rows(self) -> float:
        """How many rows there are."""

    def fits(self, columns: Columns) -> bool:
        """Whether the set can be scored at all."""

    def of(self, sets: Sequence[Columns]) -> FloatArray:
        """The scores of sets of one size, all of which fit."""


# --- levels: tables of counts -----------------------------------------------------------------------


class CellScore(Protocol):
    """The score of a set from the counts of its table's cells that are not empty, and how many cells there are."""

    def __call__(self, counts: FloatArray, cells: int) -> float:
        """The score of a table of counts."""


@dataclass(frozen=True, slots=True)
class BIC:
    """Schwarz 1978: log-likelihood less half a log of the rows for each free cell; MDL with the sign turned."""

    rows: float

    def __call__(self, counts: FloatArray, cells: int) -> float:
        """The score of a table of counts."""
        return float(counts @ np.log(counts)) - 0.5 * math.log(max(2.0, self.rows)) * cells


@dataclass(frozen=True, slots=True)
class BDeu:
    """Buntine 1991: log marginal likelihood with the equivalent sample size spread evenly over the cells."""

    equivalent_sample_size: float

    def __call__(self, counts: FloatArray, cells: int) -> float:
        """The score of a table of counts."""
        from scipy.special import gammaln

        each = self.equivalent_sample_size / cells
        return float((gammaln(counts + each) - math.lgamma(each)).sum())  # an empty cell adds nothing


@dataclass(frozen=True, slots=True)
class TableScores:
    """Scores from exact tables, many in one query."""

    queryable: Queryable
    score: CellScore
    rows: float

    def fits(self, columns: Columns) -> bool:
        """Whether the set is small enough to score."""
        return self._cells(columns) <= MOST_CELLS

    def of(self, sets: Sequence[Columns]) -> FloatArray:
        """The scores of sets of columns of one size."""
        return np.array([score for some in self._batches(sets) for score in self._ask(some)])

    def _ask(self, sets: Sequence[Columns]) -> Iterator[float]:
        names = self.queryable.schema.names
        tables = Tables(tuple(tuple(names[x] for x in columns) for columns in sets))
        for table in self.queryable.ask(Release(tables, Exact())).parts:
            yield self.score(table[table > 0], table.size)

    def _batches(self, sets: Sequence[Columns]) -> Iterator[list[Columns]]:
        """Together about as many cells as the largest table, so that memory stays bounded."""
        ends = np.cumsum([self._cells(columns) for columns in sets]) // MOST_CELLS
        for _, some in groupby(zip(ends, sets, strict=True), key=lambda pair: pair[0]):
            yield [columns for _, columns in some]

    def _cells(self, columns: Columns) -> int:
        return math.prod(self.queryable.schema.columns[x].size for x in columns)


def row_count(queryable: Queryable) -> float:
    """The exact number of rows."""
    return float(queryable.ask(Release(Tables(((),)), Exact())).parts[0])


# --- numbers: moments -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class GaussianBIC:
    """BIC of linear models with normal noise: means, and a covariance for each pair that is joined."""

    correlation: FloatArray
    rows: float

    @classmethod
    def of_moments(cls, answer: Answer, columns: Sequence[Column]) -> GaussianBIC:
        """The score of released moments."""
        return cls(*_standardised(answer, columns))

    def fits(self, columns: Columns) -> bool:
        """Whether the set is small enough to score."""
        return True

    def of(self, sets: Sequence[Columns]) -> FloatArray:
        """The scores of sets of columns of one size."""
        size = len(sets[0])
        free = size * (size + 3) / 2
        return -0.5 * self.rows * _log_determinants(self.correlation, sets) - 0.5 * math.log(self.rows) * free


@dataclass(frozen=True, slots=True, eq=False)
class BGe:
    """Log marginal likelihood of Gaussian DAGs (Geiger and Heckerman 2002, with Kuipers et al. 2014's correction).

    Columns are standardised; the prior has mean 0 with weight 1, d + 2 degrees of freedom and the matrix I / 2,
    which is alpha_mu (alpha_w - d - 1) / (alpha_mu + 1) I.
    """

    correlation: FloatArray
    rows: float

    @classmethod
    def of_moments(cls, answer: Answer, columns: Sequence[Column]) -> BGe:
        """The score of released moments."""
        return cls(*_standardised(answer, columns))

    def fits(self, columns: Columns) -> bool:
        """Whether the set is small enough to score."""
        return True

    def of(self, sets: Sequence[Columns]) -> FloatArray:
        """The scores of sets of columns of one size."""
        from scipy.special import multigammaln

        size, rows = len(sets[0]), self.rows
        if not size:
            return np.zeros(len(sets))
        before = size + 2  # degrees of freedom of the prior on these columns: alpha_w - d + size
        after = before + rows
        posterior = PRIOR * np.eye(len(self.correlation)) + rows * self.correlation  # R: the means are 0
        shared = -0.5 * size * (rows * math.log(math.pi) + math.log1p(rows)) + 0.5 * before * size * math.log(PRIOR)
        shared += float(multigammaln(after / 2, size) - multigammaln(before / 2, size))
        return shared - 0.5 * after * _log_determinants(posterior, sets)


PRIOR = 0.5


def _standardised(answer: Answer, columns: Sequence[Column]) -> tuple[FloatArray, float]:
    moments = ReleasedMoments.of(answer, columns)
    covariance = moments.valid()
    spread = np.sqrt(np.diag(covariance))
    return covariance / np.outer(spread, spread), moments.count


def _log_determinants(matrix: FloatArray, sets: Sequence[Columns]) -> FloatArray:
    places = np.array(sets, dtype=np.intp).reshape(len(sets), -1)
    return np.asarray(np.linalg.slogdet(matrix[places[:, :, None], places[:, None, :]])[1], dtype=np.float64)
