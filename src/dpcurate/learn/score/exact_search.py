"""Exact score search over orders of the columns: what the data could tell if nobody had to be protected."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from random import Random
from typing import Literal, Protocol, Self, get_args

import numpy as np

from dpcurate._typing import BoolArray, FloatArray
from dpcurate._validation import check_choice
from dpcurate.errors import QueryError
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.orient import dag_to_cpdag
from dpcurate.learn.measure_once.blocks import Columns, members_of, sorted_set
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.order_search import BestParents, SearchOrder, best_order, climbed_on, lawful_order
from dpcurate.learn.score.acyclic import dag_of
from dpcurate.learn.score.objectives import ReleasedMoments
from dpcurate.queries import MOST_CELLS, Answer, Exact, Moments, Queryable, Release, Tables
from dpcurate.result.fit import Evidence, FitResult
from dpcurate.schema import Column, Numeric

# The scores are equivalent: a complete graph over some columns has one score F(U) whatever its arrows (Heckerman,
# Geiger and Chickering 1995). So a column y with parents P scores F(P and y) - F(P), one table serves every family over
# its columns, and graphs of one Markov class have the same score by construction.


class SetScores(Protocol):
    """The score of sets of columns: BIC, BDeu or BGe."""

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
class _GaussianScore:
    """A score of normal columns, from their correlations."""

    correlation: FloatArray
    rows: float

    @classmethod
    def of_moments(cls, answer: Answer, columns: Sequence[Column]) -> Self:
        """The score of released moments."""
        return cls(*_standardised(answer, columns))

    def fits(self, columns: Columns) -> bool:
        """Whether the set is small enough to score."""
        return True


class GaussianBIC(_GaussianScore):
    """BIC of linear models with normal noise: means, and a covariance for each pair that is joined."""

    __slots__ = ()

    def of(self, sets: Sequence[Columns]) -> FloatArray:
        """The scores of sets of columns of one size."""
        size = len(sets[0])
        free = size * (size + 3) / 2
        return -0.5 * self.rows * _log_determinants(self.correlation, sets) - 0.5 * math.log(self.rows) * free


class BGe(_GaussianScore):
    """Log marginal likelihood of Gaussian DAGs (Geiger and Heckerman 2002, with Kuipers et al. 2014's correction).

    Columns are standardised; the prior has mean 0 with weight 1, d + 2 degrees of freedom and the matrix I / 2,
    which is alpha_mu (alpha_w - d - 1) / (alpha_mu + 1) I.
    """

    __slots__ = ()

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


LEAST_GAIN = 1e-6
"""What a parent must bring, so that rounding decides nothing."""


@dataclass(frozen=True, slots=True)
class ParentSearch(BestParents):
    """Grows and shrinks sets of parents (Margaritis 2003) by a score, and remembers what it has seen."""

    scores: SetScores
    constraints: Constraints
    max_parents: int
    sets: dict[Columns, float] = field(default_factory=dict)
    rows: dict[tuple[int, Columns], FloatArray] = field(default_factory=dict)
    found: dict[tuple[int, int], tuple[Columns, float]] = field(default_factory=dict)

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return len(self.constraints.allowed)

    @property
    def against(self) -> float:
        """What an order loses for each required arrow that it would turn round: more than any score can gain."""
        return 1e4 * (1e5 + self.scores.rows)

    def best(self, column: int, before: int) -> tuple[Columns, float]:
        """The best parents found among these columns, a set of bits, and their score."""
        key = (column, before)
        if key not in self.found:
            self.found[key] = self._climb(column, members_of(before, self.columns))
        return self.found[key]

    def change(self, column: int, before: int, other: int) -> float:
        """How much that score changes if another column comes before, too."""
        return self.best(column, before | 1 << other)[1] - self.best(column, before)[1]

    def family(self, column: int, parents: Columns) -> float:
        """The score of a column with these parents."""
        return float(self._of([sorted_set(*parents, column)])[0] - self._of([parents])[0])

    def with_one_more(self, column: int, parents: Columns, candidates: BoolArray) -> FloatArray:
        """The score of a column with these parents and each candidate; the other entries mean nothing."""
        row = self.rows.setdefault((column, parents), np.full(self.columns, np.nan))
        missing = np.flatnonzero(candidates & np.isnan(row))
        row[missing] = -np.inf
        some = [int(x) for x in missing if self.scores.fits(sorted_set(*parents, column, int(x)))]
        if some:
            whole = self._of([sorted_set(*parents, column, x) for x in some])
            row[some] = whole - self._of([sorted_set(*parents, x) for x in some])
        return row

    def _of(self, sets: Sequence[Columns]) -> FloatArray:
        """The scores of sets of one size; those not seen before are asked for together."""
        missing = [columns for columns in sets if columns not in self.sets]
        if missing:
            self.sets.update(zip(missing, self.scores.of(missing).tolist(), strict=True))
        return np.array([self.sets[columns] for columns in sets])

    def _climb(self, column: int, earlier: BoolArray) -> tuple[Columns, float]:
        """Add the best parent, drop those that it makes needless, and again; every step raises the score."""
        parents, grown = self._required(column, earlier), True
        while grown:
            more = self._grown(column, parents, earlier & self.constraints.allowed[:, column])
            grown = more != parents
            parents = self._shrunk(column, more)
        wrong = int((earlier & self.constraints.against[:, column]).sum())
        return parents, self.family(column, parents) - self.against * wrong

    def _required(self, column: int, earlier: BoolArray) -> Columns:
        must = earlier & self.constraints.required[column] & self.constraints.allowed[:, column]
        return tuple(int(x) for x in np.flatnonzero(must))

    def _grown(self, column: int, parents: Columns, free: BoolArray) -> Columns:
        free[list(parents)] = False
        if len(parents) >= self.max_parents or not free.any():
            return parents
        row = np.where(free, self.with_one_more(column, parents, free), -np.inf)
        best = int(np.argmax(row))
        return sorted_set(*parents, best) if row[best] > self.family(column, parents) + LEAST_GAIN else parents

    def _shrunk(self, column: int, parents: Columns) -> Columns:
        while True:
            optional = [x for x in parents if not self.constraints.required[x, column]]
            fewer = [tuple(p for p in parents if p != x) for x in optional]
            best = max(fewer, key=lambda some: self.family(column, some), default=parents)
            if self.family(column, best) <= self.family(column, parents) + LEAST_GAIN:
                return parents
            parents = best


ScoreName = Literal["bic", "bdeu", "bge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSearch:
    """Order search with a decomposable score on exact tables or moments, at infinite cost. NOT PRIVATE.

    `score` is 'bic' (levels by tables, or numbers alone as linear and normal), 'bdeu' (levels, with
    `equivalent_sample_size`, 1 unless given) or 'bge' (numbers). From `starts` random orders columns move to their best
    places, each with the best of at most `max_parents` parents before it (Teyssier and Koller 2005; BOSS, Andrews et
    al. 2023), and again from orders of equivalent graphs (GRaSP, Lam et al. 2022) until `patience` climbs in a row gain
    nothing. Returns the CPDAG of the best graph found.
    """

    score: ScoreName = "bic"
    equivalent_sample_size: float | None = None
    max_parents: int = 6
    starts: int = 2
    patience: int = 10

    def __post_init__(self) -> None:
        check_choice("score", self.score, get_args(ScoreName))
        if self.equivalent_sample_size is not None and (self.score != "bdeu" or not self.equivalent_sample_size > 0):
            raise QueryError(
                "equivalent_sample_size is a number above 0 that score='bdeu' takes, "
                f"got {self.equivalent_sample_size!r} with score={self.score!r}"
            )
        for name, least in (("max_parents", 1), ("starts", 1), ("patience", 0)):
            if getattr(self, name) < least:
                raise QueryError(f"{name} must be at least {least}, got {getattr(self, name)!r}")

    def fit(self, queryable: Queryable, knowledge: Knowledge | None = None) -> FitResult:
        """Learn from exact releases; needs an unlimited budget or allow_unproved=True."""
        names = queryable.schema.names
        if len(names) < 2:
            raise QueryError(f"a graph needs at least two columns, the schema has {len(names)}")
        if knowledge is not None:
            knowledge.check(names)
        constraints = Constraints.of(names, knowledge)
        families = ParentSearch(self._scores(queryable), constraints, self.max_parents)
        _check_required(names, families)
        return _learned(names, self._best_order(families), knowledge, self.score)

    def _best_order(self, families: ParentSearch) -> SearchOrder[ParentSearch]:
        random = Random(0)  # a fixed stream: a run can be repeated
        known = families.constraints
        starts = [lawful_order(known, random) for _ in range(self.starts)]
        orders = [climbed_on(best_order(families, random, [start]), known, random, self.patience) for start in starts]
        return max(orders, key=SearchOrder.total)

    def _scores(self, queryable: Queryable) -> SetScores:
        schema = queryable.schema
        numbers = all(isinstance(column, Numeric) for column in schema.columns)
        levels = all(column.has_levels for column in schema.columns)
        if self.score == "bge" or (self.score == "bic" and numbers and not levels):
            _check_numbers(queryable)
            answer = queryable.ask(Release(Moments(schema.names), Exact()))
            return (BGe if self.score == "bge" else GaussianBIC).of_moments(answer, schema.columns)
        schema.check_levels(schema.names, f"score={self.score!r} on a table that is not of numbers alone")
        rows = row_count(queryable)
        return TableScores(queryable, self._of_cells(rows), rows)

    def _of_cells(self, rows: float) -> BIC | BDeu:
        return BIC(rows) if self.score == "bic" else BDeu(self.equivalent_sample_size or 1.0)


def _check_numbers(queryable: Queryable) -> None:
    for column in queryable.schema.columns:
        if not isinstance(column, Numeric):
            raise QueryError(
                f"column {column.name!r} has levels, and score='bge' is for tables of numbers alone: "
                "use score='bic' or 'bdeu', with bins for the numbers"
            )


def _check_required(names: tuple[str, ...], families: ParentSearch) -> None:
    for y, name in enumerate(names):
        required = tuple(int(x) for x in np.flatnonzero(families.constraints.required[y]))
        if not families.scores.fits(sorted_set(*required, y)):
            raise QueryError(
                f"the background knowledge requires {len(required)} edges at {name!r}, and a table of so many "
                "columns is too large: require fewer, or declare fewer levels or bins"
            )


def _learned(
    names: tuple[str, ...], order: SearchOrder[ParentSearch], knowledge: Knowledge | None, score: str
) -> FitResult:
    arrows = np.zeros((len(names), len(names)), dtype=bool)
    for y, parents in enumerate(order.parents()):
        arrows[list(parents), y] = True
    graph = dag_to_cpdag(dag_of(names, arrows), knowledge)
    sets = order.families.sets
    note = f"order search with {score}: score {order.total():.1f}, {len(sets):,} sets of columns scored"
    return FitResult(graph, graph.skeleton, evidence=tuple(_evidence(names, order)), tests=(len(sets),), notes=(note,))


def _evidence(names: tuple[str, ...], order: SearchOrder[ParentSearch]) -> Iterable[Evidence]:
    """What every edge adds to the score, given the other parents of its later column."""
    families = order.families
    for y, parents in enumerate(order.parents()):
        for x in parents:
            rest = tuple(p for p in parents if p != x)
            gain = families.family(y, parents) - families.family(y, rest)
            yield Evidence((names[x], names[y]), tuple(names[p] for p in rest), "kept", gain, None, 0.0)
