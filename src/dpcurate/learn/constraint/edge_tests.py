"""What edge tests share, and EM-PC's: the exponential mechanism chooses.

Each asks the queryable and keeps to its answers. The others are in exact.py, sparse_vector.py and curate.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpcurate.learn.constraint.measures import Measure
from dpcurate.learn.constraint.search import Decided
from dpcurate.learn.constraint.working_graph import Question, Scope, WorkingGraph
from dpcurate.queries import Choose, Queryable
from dpcurate.result.fit import Evidence


class Steady:
    """An edge test that treats all orders alike."""

    growth = 1

    def begin(self, order: int, graph: WorkingGraph) -> bool:
        return True

    def end(self, order: int, asked: int, graph: WorkingGraph) -> None:
        """Nothing to settle."""


class Recorder(Steady):
    """What most edge tests share: single questions, and a list of evidence."""

    scope: Scope = "test"

    def __init__(self) -> None:
        self.evidence: list[Evidence] = []

    def note(self, q: Question, verdict: str, value: float | None = None, noise: float | None = None,
             threshold: float | None = None) -> None:  # fmt: skip
        self.evidence.append(Evidence((q.x, q.y), q.given, verdict, value, noise, threshold))


@dataclass(frozen=True, slots=True)
class EvenShare:
    """What an even share of the budget is for so many steps."""

    pure: bool
    total: float

    @classmethod
    def of(cls, queryable: Queryable) -> EvenShare:
        return cls(queryable.budget.pure, queryable.remaining)

    def epsilon(self, steps: float, *, range_bounded: bool = False) -> float:
        """The epsilon of one of `steps` equal pure (or bounded-range) steps."""
        if math.isinf(self.total):
            return 1e6
        if self.pure:
            return self.total / steps
        return math.sqrt((8 if range_bounded else 2) * self.total / steps)


class ExponentialTest(Recorder):
    """EM-PC: the exponential mechanism picks the edge and its separating set together, or none.

    The utility of a test is how far its g lies below the threshold in units of its sensitivity, so
    one row moves it by at most 1 and different tests compare.
    """

    scope: Scope = "order"

    def __init__(self, queryable: Queryable, measure: Measure, level: float, choices: float) -> None:
        super().__init__()
        self._queryable, self._measure, self._level = queryable, measure, level
        self._epsilon = EvenShare.of(queryable).epsilon(choices, range_bounded=True)

    def decide(self, tests: Sequence[Question], graph: WorkingGraph) -> Iterator[Decided]:
        candidates = tuple(self._measure.score(q, self._level) for q in tests)
        index = self._queryable.ask(Choose(candidates=candidates, epsilon=self._epsilon, or_none=True))
        if index < len(tests):
            self.note(tests[index], "cut", threshold=self._measure.cut(self._level))
        return ((q, place == index) for place, q in enumerate(tests))
