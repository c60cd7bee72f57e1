"""Exact tests of independence: tables, moments or p-values through the queryable, at infinite cost.

Tests cost nothing here and passes over the rows do, so each round looks twice as far ahead as the one
before. What was asked of an edge beyond the test that cut it is dropped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cache

from dpcurate._typing import FloatArray
from dpcurate.learn.constraint.edge_tests import Recorder
from dpcurate.learn.constraint.independence import fisher_test, p_values
from dpcurate.learn.constraint.search import Decided
from dpcurate.learn.constraint.working_graph import Question, WorkingGraph
from dpcurate.queries import Exact, KendallP, Moments, PairStatistic, Queryable, Release, Tables


class ExactTest(Recorder, ABC):
    """Independent where p exceeds the level."""

    growth = 2

    def __init__(self, queryable: Queryable, level: float) -> None:
        super().__init__()
        self._queryable, self._level = queryable, level

    def decide(self, tests: Sequence[Question], graph: WorkingGraph) -> Iterator[Decided]:
        for q, p in zip(tests, self._p_values(tests), strict=True):
            if graph.joined(q.x, q.y):
                cut = p > self._level
                self.note(q, "cut" if cut else "kept", p, 0.0, self._level)
                yield q, cut

    @abstractmethod
    def _p_values(self, tests: Sequence[Question]) -> list[float]:
        """One for each test."""


class TableTest(ExactTest):
    """G, chi-squared, Spearman or Kendall on exact tables; tests over the same columns share one."""

    def __init__(self, queryable: Queryable, level: float, test: str) -> None:
        super().__init__(queryable, level)
        self._test = test

    def _p_values(self, tests: Sequence[Question]) -> list[float]:
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

    def _p_values(self, tests: Sequence[Question]) -> list[float]:
        if self._moments is None:
            self._moments = self._queryable.ask(Release(Moments(self._names), Exact())).value
        return [self._partial(q, self._moments) for q in tests]

    def _partial(self, q: Question, moments: FloatArray) -> float:
        x, y, *given = (self._names.index(n) for n in (q.x, q.y, *q.given))
        return fisher_test(moments, x, y, tuple(given))


class PValueTest(ExactTest):
    """P-values that the session computes itself."""

    def _p_values(self, tests: Sequence[Question]) -> list[float]:
        asked = [Release(self._statistic(q), Exact()) for q in tests]
        return [float(answer) for answer in self._queryable.ask_all(asked)]

    def _statistic(self, q: Question) -> PairStatistic:
        return KendallP(q.x, q.y, q.given)


def turned(table: FloatArray, names: tuple[str, ...], q: Question) -> FloatArray:
    """The table with x and y in front, the smaller first: tests are symmetric, and fewer shapes go faster."""
    x, y = names.index(q.x), names.index(q.y)
    if table.shape[x] > table.shape[y]:
        x, y = y, x
    return table.transpose(_axes(x, y, len(names)))


@cache
def _axes(x: int, y: int, number: int) -> tuple[int, ...]:
    return (x, y, *(i for i in range(number) if i not in (x, y)))
