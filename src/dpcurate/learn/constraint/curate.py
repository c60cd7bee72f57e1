"""CURATE's edge test, proved: noised values, a coin near the threshold, budgets per order by OPT."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dpcurate.accounting import before_sampling
from dpcurate.errors import BudgetExceeded
from dpcurate.learn.constraint.budgets import Errors, LaplaceErrors, likely_tests, optimise, pure_leak, zcdp_leak
from dpcurate.learn.constraint.measures import Measure, TauMeasure, beyond
from dpcurate.learn.constraint.search import Decided
from dpcurate.learn.constraint.working_graph import Question, Scope, WorkingGraph
from dpcurate.learn.outcome import Evidence
from dpcurate.queries import Answer, Laplace, Queryable, Release, Sample


@dataclass
class CurateTest:
    """Constraint-based CURATE, proved: every answer is charged, budgets follow OPT in zCDP.

    A value clearly on one side of the threshold decides, a value in the margin is left to a fair
    coin. After each order OPT runs again on what is left, with the degrees of the released graph.
    """

    queryable: Queryable
    measure: Measure
    level: float
    beta1: float
    beta2: float
    rate: float = 1.0
    max_order: int | None = None
    floor: float = 0.7
    scope: Scope = "test"
    growth: int = 1
    evidence: list[Evidence] = field(default_factory=list)
    epsilons: list[float] = field(default_factory=list)
    leaked: list[float] = field(default_factory=list)
    _left: float = 0.0

    def begin(self, order: int, graph: WorkingGraph) -> bool:
        self._left = self.queryable.remaining
        if self._left <= 0:
            return False
        tests = _orders_to_come(graph, order, self.max_order)
        if math.isinf(self._left):
            self.epsilons.append(1e6)
            return True
        leak = pure_leak if self.queryable.budget.pure else zcdp_leak
        budgets = optimise(tests, self._left * (1 - 1e-9), self._errors(graph), leak, floor=self.floor)
        self.epsilons.append(budgets[0])
        return budgets[0] > 0

    @property
    def _margins(self) -> tuple[float, float]:
        """How far the grey zone reaches towards dependence and towards independence."""
        cut = self.measure.cut
        return (
            abs(cut(self.level) - cut(self.level * (1 - self.beta1))),
            abs(cut(self.level * (1 + self.beta2)) - cut(self.level)),
        )

    def _errors(self, graph: WorkingGraph) -> Errors:
        tests = (self.measure.statistic(Question(a, b, ())) for a, b in graph.edges)
        return LaplaceErrors(*self._margins, max(self.queryable.sensitivity(t) for t in tests))

    def decide(self, tests: Sequence[Question], graph: WorkingGraph) -> Iterator[Decided]:
        """Delete, keep, or toss a coin; the coin's zone is never wider than the noise."""
        margins, threshold = self._margins, self.measure.cut(self.level)
        for q, (value, noise) in zip(tests, self._answers(tests), strict=True):
            gap = beyond(self.measure, value, self.level)
            inner, outer = (min(margin, noise / math.sqrt(2)) for margin in margins)
            if gap > outer:
                verdict, cut = "cut", True
            elif gap < -inner:
                verdict, cut = "kept", False
            else:
                cut = self.queryable.draw() >= 0.5
                verdict = "cut by coin" if cut else "kept by coin"
            self.evidence.append(Evidence((q.x, q.y), q.given, verdict, value, noise, threshold))
            yield q, cut

    def _answers(self, tests: Sequence[Question]) -> Iterator[tuple[float, float]]:
        """Value and noise of every test, charged together; as many as can be paid where not all can."""
        if self.rate < 1:
            yield from map(self._sampled, tests)
            return
        asked = [Release(self.measure.statistic(q), Laplace(epsilon=self.epsilons[-1])) for q in tests]
        try:
            answers: Iterable[Answer] = self.queryable.ask_all(asked)
        except BudgetExceeded:  # nothing was charged
            answers = map(self.queryable.ask, asked)
        yield from ((float(answer), answer.scale) for answer in answers)

    def _sampled(self, q: Question) -> tuple[float, float]:
        raw = before_sampling(epsilon=self.epsilons[-1], rate=self.rate)
        sample = self.queryable.open(Sample(rate=self.rate, epsilon=raw))
        answer = sample.ask(Release(self.measure.statistic(q), Laplace(epsilon=raw)))
        # On a sample g is smaller; bring it to the scale of the threshold.
        factor = 1 / math.sqrt(self.rate) if isinstance(self.measure, TauMeasure) else 1.0
        return float(answer) * factor, answer.scale * factor

    def end(self, order: int, asked: int, graph: WorkingGraph) -> None:
        self.leaked.append(self._left - self.queryable.remaining)


def _orders_to_come(graph: WorkingGraph, order: int, max_order: int | None) -> list[float]:
    """Bounds on the tests of this order and of those that the degrees allow after it."""
    degrees = graph.degrees(graph.open_edges)
    deepest = max((max(a, b) for a, b in degrees), default=1) - 1
    last = min(deepest, len(graph.nodes) - 2 if max_order is None else max_order)
    return [max(likely_tests(degrees, j), 1.0) for j in range(order, max(last, order) + 1)]
