"""How a test's noised value is asked for and read: a pair statistic of its own, or a table of counts.

All that an edge test sees are values, the noise in them, and where on their scale a p-value of T stands.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dpcurate.accounting import before_sampling
from dpcurate.errors import BudgetExceeded
from dpcurate.learn.constraint.budgets import Errors, GaussianErrors, LaplaceErrors, likely_tables, likely_tests
from dpcurate.learn.constraint.exact import turned
from dpcurate.learn.constraint.measures import Measure, TauMeasure, beyond, normal_quantile
from dpcurate.learn.constraint.noised_tables import LAPLACE_EXCESS, p_value
from dpcurate.learn.constraint.working_graph import Question, WorkingGraph
from dpcurate.queries import Answer, Counts, Gaussian, Laplace, Noise, Queryable, Release, Sample, Statistic

Value = tuple[float, float]
"""A released value and the standard deviation of the noise in it."""


class Values(Protocol):
    """Where the values of tests come from. A test at `epsilon` costs epsilon^2 / 2 in rho, or epsilon."""

    def ask(self, tests: Sequence[Question], epsilon: float) -> Iterator[Value]:
        """The value of every test, charged together; as many as can be paid where not all can."""

    def sampled(self, test: Question, epsilon: float, rate: float) -> Value:
        """The value of a test on a fresh secret sample, on the scale of the whole table."""

    def cut(self, level: float) -> float:
        """Where on the scale of values a p-value equals a level."""

    def beyond(self, value: float, level: float) -> float:
        """How far a value lies on the independent side of a level."""

    def errors(self, graph: WorkingGraph, orders: Sequence[int], margins: tuple[float, float]) -> Errors:
        """OPT's two errors as functions of the epsilons of some orders."""

    def steps(self, graph: WorkingGraph, order: int) -> float:
        """At most how many charges an order takes."""


@dataclass(frozen=True, slots=True)
class PairValues:
    """A pair statistic with Laplace noise, and a threshold that does not know the noise."""

    queryable: Queryable
    measure: Measure

    def ask(self, tests: Sequence[Question], epsilon: float) -> Iterator[Value]:
        asked = [Release(self.measure.statistic(q), Laplace(epsilon=epsilon)) for q in tests]
        try:
            answers: Iterable[Answer] = self.queryable.ask_all(asked)
        except BudgetExceeded:  # nothing was charged
            answers = map(self.queryable.ask, asked)
        return map(self.read, answers)

    def sampled(self, test: Question, epsilon: float, rate: float) -> Value:
        answer = _sampled(self.queryable, self.measure.statistic(test), epsilon, rate)
        # On a sample g is smaller; bring it to the scale of the threshold.
        factor = 1 / math.sqrt(rate) if isinstance(self.measure, TauMeasure) else 1.0
        return self.read(Answer((answer.value * factor,), (answer.scale * factor,)))

    def read(self, answer: Answer) -> Value:
        return float(answer), answer.scale

    def cut(self, level: float) -> float:
        return self.measure.cut(level)

    def beyond(self, value: float, level: float) -> float:
        return beyond(self.measure, value, level)

    def errors(self, graph: WorkingGraph, orders: Sequence[int], margins: tuple[float, float]) -> Errors:
        tests = (self.measure.statistic(Question(a, b, ())) for a, b in graph.edges)
        return LaplaceErrors(*margins, max(self.queryable.sensitivity(t) for t in tests))

    def steps(self, graph: WorkingGraph, order: int) -> float:
        return likely_tests(graph.degrees(graph.open_edges), order)


def _sampled(queryable: Queryable, statistic: Statistic, epsilon: float, rate: float) -> Answer:
    raw = before_sampling(epsilon=epsilon, rate=rate)
    return queryable.open(Sample(rate=rate, epsilon=raw)).ask(Release(statistic, Laplace(epsilon=raw)))


def normal_score(p: float) -> float:
    """The z with P(N(0, 1) > z) = p, kept finite."""
    return normal_quantile(min(max(p, 1e-300), 1 - 1e-16))


@dataclass(frozen=True, slots=True)
class NoisedTau(PairValues):
    """Tau in normal scores under a null that knows the noise: sampling gives at most n / 2.25, noise the rest."""

    rows: float

    def read(self, answer: Answer) -> Value:
        deviation = math.sqrt(self.rows / 2.25 + answer.scale**2)
        p = math.erfc(abs(float(answer)) / deviation / math.sqrt(2))
        return normal_score(p), answer.scale / deviation

    def cut(self, level: float) -> float:
        return normal_quantile(level)

    def beyond(self, value: float, level: float) -> float:
        return self.cut(level) - value

    def errors(self, graph: WorkingGraph, orders: Sequence[int], margins: tuple[float, float]) -> Errors:
        tests = (self.measure.statistic(Question(a, b, ())) for a, b in graph.edges)
        largest = max(self.queryable.sensitivity(t) for t in tests)
        return LaplaceErrors(*margins, largest * 1.5 / math.sqrt(self.rows))


@dataclass(frozen=True, slots=True)
class TableValues:
    """Normal scores of p-values that are read off noised tables, with a null that knows the noise.

    Tests over the same columns share a table, which is paid once.
    """

    queryable: Queryable
    statistic: str
    rows: float
    released: dict[tuple[str, ...], Answer] = field(default_factory=dict)

    def ask(self, tests: Sequence[Question], epsilon: float) -> Iterator[Value]:
        noise = self._noise(epsilon)
        wanted = [c for c in dict.fromkeys(map(_columns, tests)) if c not in self.released]
        try:
            answers = self.queryable.ask_all([Release(Counts(c), noise) for c in wanted])
            self.released.update(zip(wanted, answers, strict=True))
        except BudgetExceeded:  # nothing was charged: one by one, as far as the budget goes
            pass
        excess = LAPLACE_EXCESS if isinstance(noise, Laplace) else 0.0
        for test in tests:
            columns = _columns(test)
            if columns not in self.released:
                self.released[columns] = self.queryable.ask(Release(Counts(columns), noise))
            yield self._read(test, self.released[columns], excess)

    def sampled(self, test: Question, epsilon: float, rate: float) -> Value:
        return self._read(test, _sampled(self.queryable, Counts(_columns(test)), epsilon, rate), LAPLACE_EXCESS)

    def _noise(self, epsilon: float) -> Noise:
        return Laplace(epsilon=epsilon) if self.queryable.budget.pure else Gaussian(rho=epsilon**2 / 2)

    def _read(self, test: Question, answer: Answer, excess: float) -> Value:
        table = turned(answer.value, _columns(test), test)
        p = p_value(self.statistic, table, answer.scale, excess)
        ratio = answer.scale * math.sqrt(table.size / max(1.0, float(table.sum())))
        return normal_score(p), ratio / math.hypot(1.0, ratio)

    def cut(self, level: float) -> float:
        return normal_quantile(level)

    def beyond(self, value: float, level: float) -> float:
        return self.cut(level) - value

    def errors(self, graph: WorkingGraph, orders: Sequence[int], margins: tuple[float, float]) -> Errors:
        """Against a sampling deviation of 1 the noise of a cell weighs sqrt(cells / rows)."""
        levels = [column.size for column in self.queryable.schema.columns]
        cells = np.exp(np.mean(np.log(levels)) * (np.asarray(orders) + 2))
        move = self.queryable.sensitivity(Counts(graph.nodes[:1])) * np.sqrt(cells / self.rows)
        return (LaplaceErrors if self.queryable.budget.pure else GaussianErrors)(*margins, move)

    def steps(self, graph: WorkingGraph, order: int) -> float:
        return likely_tables(graph.reach(), order)


def _columns(test: Question) -> tuple[str, ...]:
    return tuple(sorted((test.x, test.y, *test.given)))
