"""CURATE's edge test, proved: noised values, a coin near the threshold, budgets per order by OPT."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dpcurate.learn.constraint.budgets import optimise, pure_leak, zcdp_leak
from dpcurate.learn.constraint.measures import upper_tail
from dpcurate.learn.constraint.noised_values import Value, Values
from dpcurate.learn.constraint.search import Decided
from dpcurate.learn.constraint.tuning import Decision, tuned
from dpcurate.learn.constraint.working_graph import Question, Scope, WorkingGraph
from dpcurate.queries import Queryable
from dpcurate.result.fit import Evidence

Tune = Literal["none", "released"]


@dataclass
class CurateTest:
    """Constraint-based CURATE, proved: every answer is charged, budgets follow OPT in zCDP.

    A value clearly on one side of the threshold decides, a value in the margin is left to a fair
    coin. After each order OPT runs again on what is left, with the degrees of the released graph.
    With `tune` = 'released' threshold and margins are chosen anew from the answers of order 0.
    """

    queryable: Queryable
    values: Values
    decision: Decision
    rate: float = 1.0
    max_order: int | None = None
    floor: float = 0.7
    tune: Tune = "none"
    scope: Scope = "test"
    growth: int = 1
    evidence: list[Evidence] = field(default_factory=list)
    epsilons: list[float] = field(default_factory=list)
    leaked: list[float] = field(default_factory=list)
    _left: float = 0.0
    _order: int = 0

    def begin(self, order: int, graph: WorkingGraph) -> bool:
        self._left, self._order = self.queryable.remaining, order
        if self._left <= 0:
            return False
        if math.isinf(self._left):
            self.epsilons.append(1e6)
            return True
        orders = _orders_to_come(graph, order, self.max_order)
        tests = [max(self.values.steps(graph, j), 1.0) for j in orders]
        leak = pure_leak if self.queryable.budget.pure else zcdp_leak
        errors = self.values.errors(graph, orders, self._margins)
        self.epsilons.append(optimise(tests, self._left * (1 - 1e-9), errors, leak, floor=self.floor)[0])
        return self.epsilons[-1] > 0

    @property
    def _margins(self) -> tuple[float, float]:
        """How far the grey zone reaches towards dependence and towards independence."""
        cut, now = self.values.cut, self.decision
        return (
            abs(cut(now.level) - cut(now.level * (1 - now.beta1))),
            abs(cut(now.level * (1 + now.beta2)) - cut(now.level)),
        )

    def decide(self, tests: Sequence[Question], graph: WorkingGraph) -> Iterator[Decided]:
        """Delete, keep, or toss a coin; the coin's zone is never wider than the noise."""
        answers = self._answers(tests)
        if self.tune == "released" and self._order == 0:
            told = list(answers)
            self.decision = tuned([upper_tail(value) for value, _ in told], self.decision)
            answers = iter(told)
        margins, threshold = self._margins, self.values.cut(self.decision.level)
        for q, (value, noise) in zip(tests, answers, strict=True):
            gap = self.values.beyond(value, self.decision.level)
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

    def _answers(self, tests: Sequence[Question]) -> Iterator[Value]:
        if self.rate == 1:
            return self.values.ask(tests, self.epsilons[-1])
        return (self.values.sampled(q, self.epsilons[-1], self.rate) for q in tests)

    def end(self, order: int, asked: int, graph: WorkingGraph) -> None:
        self.leaked.append(self._left - self.queryable.remaining)


def _orders_to_come(graph: WorkingGraph, order: int, max_order: int | None) -> range:
    """The order and those that the degrees allow after it."""
    degrees = graph.degrees(graph.open_edges)
    deepest = max((max(a, b) for a, b in degrees), default=1) - 1
    last = min(deepest, len(graph.nodes) - 2 if max_order is None else max_order)
    return range(order, max(last, order) + 1)
