"""CURATE's Algorithm 1 as an edge test, in any of its readings: NOT PROVED PRIVATE."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.accounting import after_sampling
from dpcurate.graphs.base_graph import UnorderedPair
from dpcurate.learn.constraint.budget_plan import Errors, Leak, as_tests, slsqp
from dpcurate.learn.constraint.pc_search import Decided, PairQuestion, Scope, WorkingGraph
from dpcurate.published.claims import CurateReading
from dpcurate.published.edge_tests import UNDEFINED, OneByOne, p_value
from dpcurate.published.unproved_statistics import PublishedKendallP
from dpcurate.queries import Laplace, Queryable, Release, Sample, SampleGate
from dpcurate.result.fit import Evidence

STARVED = 1e-6
"""An order that may spend less than this part of the total has nothing to spend but the solver's rounding."""
LEAST = 1e-9
"""Readings that do not stop run a starved order at this epsilon: its answers are coin flips."""


@dataclass
class PublishedCurate(OneByOne):
    """Algorithm 1 of the CURATE paper.

    `counted` is the script's number of tests: answers acted on, counted on over orders, and the counts at
    the end of each order added up, so that a deletion at order 0 counts again for every later order.
    """

    queryable: Queryable
    total: float
    level: float
    beta1: float
    beta2: float
    rate: float
    reading: CurateReading
    scope: Scope = "test"
    growth: int = 1
    evidence: list[Evidence] = field(default_factory=list)
    epsilons: list[float] = field(default_factory=list)
    leaked: list[float] = field(default_factory=list)
    counted: int = 0
    _running: int = 0
    _count: int = 0
    _deltas: float = 0.0
    _initial: int = 0
    _stated: float = 0.0
    _plan: tuple[float, ...] = ()
    _asked: set[tuple[UnorderedPair, frozenset[str]]] = field(default_factory=set)
    _sample: SampleGate | None = None
    _last: tuple[int, WorkingGraph] | None = None

    @property
    def claimed(self) -> float:
        """The authors' total leakage."""
        return sum(self.leaked)

    # --- what an order may spend ----------------------------------------------------------------------

    def begin(self, order: int, graph: WorkingGraph) -> bool:
        """Solve for the order's epsilon; False once the claimed budget is used up."""
        overspent = self.reading.stop != "never" and self.claimed >= self.total
        if overspent or self._deltas > self.reading.delta_total:
            return False
        self._initial = self._initial or len(graph.edges)
        left = max(self.total - self.claimed, 0.0)
        tests = self._expected(order, graph)
        epsilon = self._allotted(order, tests, left) if left > 0 else 0.0
        if self.reading.stop == "spent" and self._leak(tests[0], epsilon) < STARVED * self.total:
            return False
        if self.reading.count == "order":
            self._count = 0
        self.epsilons.append(epsilon)
        return True

    def _expected(self, order: int, graph: WorkingGraph) -> list[float]:
        """OPT's bounds on the tests of this order and of each to come."""
        d = len(graph.nodes)
        stated = d if order == 0 or self.reading.variables is None else self.reading.variables
        edges = len(graph.edges) if self.reading.edges == "current" else self._initial
        return [worst_tests(edges, stated, j) for j in range(order, d - 1)]

    def _allotted(self, order: int, tests: Sequence[float], left: float) -> float:
        """The epsilon of a test of this order, by a plan of its own or by the one made at the start."""
        if self.reading.plan == "each order":
            return self._planned(tests, left)[0]
        self._plan = self._plan or self._planned(tests, left)
        return self._plan[order]

    def _planned(self, tests: Sequence[float], left: float) -> tuple[float, ...]:
        if self.reading.allocation == "opt":
            return self._solved(tests, left)
        t, leak = as_tests(tests), PublishedLeak(self.reading.delta_prime)
        if self.reading.allocation == "first":
            return (leak.one_epsilon(t[:1], left), *[0.0] * (len(t) - 1))
        return (leak.one_epsilon(t, left),) * len(t)

    def _solved(self, tests: Sequence[float], left: float) -> tuple[float, ...]:
        second = self.beta2 if self.reading.margins == "both" else self.beta1
        margins, rate = (self.level * self.beta1, self.level * second), self._amplifying
        errors = OpenErrors(margins, self._sensitivity, self.reading.c, rate)
        return tuple(optimise_from_zero(tests, left, errors, PublishedLeak(self.reading.delta_prime)))

    @property
    def _amplifying(self) -> float:
        """The rate that epsilon is amplified with."""
        return self.rate if self.reading.amplified == "everywhere" else 1.0

    @property
    def _sensitivity(self) -> float:
        """C / sqrt n, with n the rows of the table or of the sample."""
        if not self._stated:
            first, second = self.queryable.schema.names[:2]
            self._stated = self.queryable.sensitivity(self._statistic(PairQuestion(first, second, ())))
        return self._stated / math.sqrt(self.rate) if self.reading.size == "sample" else self._stated

    def _leak(self, tests: float, epsilon: float) -> float:
        leak = PublishedLeak(self.reading.delta_prime)
        return float(leak(np.array([tests]), np.array([after_sampling(epsilon=epsilon, rate=self._amplifying)]))[0])

    # --- tests ----------------------------------------------------------------------------------------

    def decide(self, tests: Sequence[PairQuestion], graph: WorkingGraph) -> Iterator[Decided]:
        """Ask the tests that the reading asks: of each pair both orders, or one."""
        return super().decide([q for q in tests if self.reading.pairs == "ordered" or self._new(q)], graph)

    def _new(self, q: PairQuestion) -> bool:
        """Whether the pair has not been tested on the set."""
        test = q.pair, frozenset(q.given)
        known = test in self._asked
        self._asked.add(test)
        return not known

    def _statistic(self, q: PairQuestion) -> PublishedKendallP:
        return p_value(q, self.reading.bound, self.reading.test, self.reading.smallest)

    def _cuts(self, q: PairQuestion) -> bool:
        value = self._value(q)
        self._count += self.reading.charge == "all"
        if value < UNDEFINED:
            return False
        above, below = value > self.level * (1 + self.beta2), value < self.level * (1 - self.beta1)
        grey = not above and not below
        cut = above or (grey and self.reading.coin == "fair" and self.queryable.draw() >= 0.5)
        self._count += self.reading.charge == "acted" and not below
        self._running += not below
        self.evidence.append(Evidence((q.x, q.y), q.given, "cut" if cut else "kept", value, None, self.level))
        return cut

    def _value(self, q: PairQuestion) -> float:
        epsilon = max(after_sampling(epsilon=self.epsilons[-1], rate=self._amplifying), LEAST)
        asked = Release(self._statistic(q), Laplace(scale=self._sensitivity / epsilon))
        if self.rate == 1:
            return float(self.queryable.ask(asked))
        if self._sample is None or self.reading.draw == "test":
            self._sample = self.queryable.open(Sample(rate=self.rate, epsilon=1.0))
        return float(self._sample.ask(asked))

    # --- what an order has cost -----------------------------------------------------------------------

    def end(self, order: int, asked: int, graph: WorkingGraph) -> None:
        """Advanced composition within the order, basic over orders."""
        self._last = (order, graph)
        self.counted += self._running
        self.leaked.append(self._leak(self._count, self.epsilons[-1]))
        self._deltas += self.reading.delta_prime + self._count * self.reading.delta

    def finish(self) -> None:
        """The script charges the order in which it finds nothing more to test."""
        if self._last is not None and self.reading.empty == "charged":
            order, graph = self._last
            if order + 1 < len(graph.nodes) - 1 and self.begin(order + 1, graph):
                self.end(order + 1, 0, graph)


# --- OPT as printed and as coded: its leakage, Lemma 1 with open constants, and the start at zero --------


@dataclass(frozen=True, slots=True)
class PublishedLeak:
    """Advanced composition within an order, as the paper prints it."""

    delta_prime: float

    def __call__(self, tests: FloatArray, epsilon: FloatArray) -> FloatArray:
        """Return the leakage of so many tests at each epsilon."""
        return tests * epsilon**2 + epsilon * np.sqrt(2 * math.log(1 / self.delta_prime) * tests)

    def one_epsilon(self, tests: FloatArray, total: float) -> float:
        """The epsilon, the same for all tests, at which the leakages of the orders add up to the total."""
        square, linear = float(tests.sum()), float(np.sqrt(2 * math.log(1 / self.delta_prime) * tests).sum())
        return 2 * total / (linear + math.sqrt(linear**2 + 4 * square * total))


@dataclass(frozen=True, slots=True)
class OpenErrors:
    """Lemma 1 for margins T beta1 and T beta2, with c1 and c2 left at a constant, 1 in the authors' code."""

    margins: tuple[float, float]
    sensitivity: float
    c: float = 1.0
    rate: float = 1.0

    def __call__(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The paper's c / 2 + exp(-T beta eps / sensitivity) / 2, with epsilon amplified by sub-sampling."""
        effective = np.array([after_sampling(epsilon=e, rate=self.rate) for e in epsilon.tolist()])
        first, second = (self.c / 2 + np.exp(-m * effective / self.sensitivity) / 2 for m in self.margins)
        return first, second


def worst_tests(edges: int, variables: int, order: int) -> float:
    """The paper's bound: every edge with every set of the other variables."""
    return edges * math.comb(variables - 2, order)


def optimise_from_zero(tests: Sequence[float], total: float, errors: Errors, leak: Leak) -> tuple[float, ...]:
    """OPT as the authors' code solves it: SLSQP from zero, its result taken as the solver left it."""
    t = as_tests(tests)
    return tuple(np.maximum(slsqp(t, total, errors, leak, np.zeros(len(t)), 1.0, 0.0), 0.0).tolist())
