"""Edge tests that walk through their tests with above-threshold gates: a miss is free, a yes costs a new gate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from dpcurate.accounting import before_sampling
from dpcurate.learn.constraint.edge_decisions import EvenShare, Measure, Recorder
from dpcurate.learn.constraint.noised_values import NoisedValues
from dpcurate.learn.constraint.pc_search import Decided, PairQuestion, WorkingGraph
from dpcurate.queries import AboveThreshold, Queryable, Sample, Score, ThresholdGate

FIRST_SCORES = 8
"""Scores handed over after a hit, then twice as many each time: the rest of a round is not gone through again."""


class _Gated(Recorder, ABC):
    """What they share. A round holds one test of an edge, so none is asked after its edge was cut."""

    def __init__(self, queryable: Queryable, measure: Measure, level: float) -> None:
        super().__init__()
        self._queryable, self._measure, self._level = queryable, measure, level
        self._gate: ThresholdGate | None = None

    def decide(self, tests: Sequence[PairQuestion], graph: WorkingGraph) -> Iterator[Decided]:
        scores = [self._score(q) for q in tests]
        start, width = 0, self._reach(len(tests))
        while start < len(tests):
            hit = self._open_gate().first(scores[start : start + width])
            stop = min(start + width, len(tests)) if hit is None else start + hit
            yield from map(self._miss, tests[start:stop])
            start, width = stop, 2 * width
            if hit is not None:
                self._gate = None
                yield tests[stop], self._examine(tests[stop])
                start, width = stop + 1, min(FIRST_SCORES, self._reach(len(tests)))

    def _open_gate(self) -> ThresholdGate:
        if self._gate is None:
            self._gate = self._fresh()
        return self._gate

    @abstractmethod
    def _reach(self, tests: int) -> int:
        """How many of so many scores are handed over at first."""

    @abstractmethod
    def _fresh(self) -> ThresholdGate:
        """A new gate."""

    @abstractmethod
    def _score(self, q: PairQuestion) -> Score:
        """What a gate is asked about a test."""

    @abstractmethod
    def _miss(self, q: PairQuestion) -> Decided:
        """Keep it."""

    @abstractmethod
    def _examine(self, q: PairQuestion) -> bool:
        """Whether a yes cuts."""


class SparseVectorTest(_Gated):
    """SVT-PC: an above-threshold gate until it says yes; a yes cuts the edge and opens a new gate.

    Every gate is paid in full when it opens, misses are free by its proof.
    """

    def __init__(self, queryable: Queryable, measure: Measure, level: float, hits: float) -> None:
        super().__init__(queryable, measure, level)
        self._epsilon = EvenShare.of(queryable).epsilon(hits)
        self._threshold = measure.cut(level)

    def _reach(self, tests: int) -> int:
        """All, so that a round is one pass over the rows."""
        return tests

    def _fresh(self) -> ThresholdGate:
        return self._queryable.open(AboveThreshold(epsilon=self._epsilon))

    def _score(self, q: PairQuestion) -> Score:
        return self._measure.score(q, self._level)

    def _miss(self, q: PairQuestion) -> Decided:
        self.note(q, "kept", threshold=self._threshold)
        return q, False

    def _examine(self, q: PairQuestion) -> bool:
        self.note(q, "cut", threshold=self._threshold)
        return True


class SieveTest(_Gated):
    """Priv-PC: sieve on a fresh secret sample by a gate, examine what passes on the full table.

    Half of each step's epsilon goes to the sieve, half to the examination; both are charged. The sieve
    compares scores of a pair statistic; what is examined is a noised value of any kind.
    """

    def __init__(
        self,
        queryable: Queryable,
        measure: Measure,
        level: float,
        examined: NoisedValues,
        *,
        tweak: float,
        rate: float,
        hits: float,
    ) -> None:
        super().__init__(queryable, measure, level)
        self._examined = examined
        self._tweak, self._rate = tweak, rate
        self._small = measure.scaled(rate)
        self._epsilon = EvenShare.of(queryable).epsilon(2 * hits)

    def _reach(self, tests: int) -> int:
        """One on a sample, since a hit makes all that was counted in it useless."""
        return tests if self._rate == 1 else 1

    def _fresh(self) -> ThresholdGate:
        if self._rate == 1:
            return self._queryable.open(AboveThreshold(epsilon=self._epsilon))
        raw = before_sampling(epsilon=self._epsilon, rate=self._rate)
        return self._queryable.open(Sample(rate=self._rate, epsilon=raw)).open(AboveThreshold(epsilon=raw))

    def _score(self, q: PairQuestion) -> Score:
        return self._small.score(q, max(self._level - self._tweak, 1e-6))

    def _miss(self, q: PairQuestion) -> Decided:
        self.note(q, "kept by the sieve")
        return q, False

    def _examine(self, q: PairQuestion) -> bool:
        ((value, noise),) = self._examined.ask([q], self._epsilon)
        cut = self._examined.beyond(value, self._level) >= 0
        self.note(q, "cut" if cut else "kept", value, noise, self._examined.cut(self._level))
        return cut
