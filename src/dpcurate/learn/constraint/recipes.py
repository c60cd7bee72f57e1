"""Recipes of the constraint-based family: which edge test in the loop, with which settings."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal, get_args

from dpcurate._messages import how_many
from dpcurate._validation import check_choice, check_threshold
from dpcurate.errors import QueryError
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.orient import orient
from dpcurate.learn.constraint.budget_plan import DecisionRule, optimise, pure_leak, tuned, zcdp_leak
from dpcurate.learn.constraint.edge_decisions import (
    ExponentialTest,
    Measure,
    PMeasure,
    TauMeasure,
    known_rows,
    upper_tail,
)
from dpcurate.learn.constraint.fci import Fci, Sampling, Sets, fci_of
from dpcurate.learn.constraint.independence import TABLE_TESTS, ExactTest, PartialCorrelationTest, PValueTest, TableTest
from dpcurate.learn.constraint.noised_values import NoisedTau, NoisedValue, NoisedValues, PairValues, TableValues
from dpcurate.learn.constraint.pc_search import (
    Decided,
    EdgeTest,
    PairQuestion,
    Scope,
    Searched,
    Style,
    WorkingGraph,
    search,
)
from dpcurate.learn.constraint.sparse_vector import SieveTest, SparseVectorTest
from dpcurate.queries import MOST_CELLS, Queryable
from dpcurate.result.fit import Evidence, FitResult

Tune = Literal["none", "released"]


@dataclass
class CurateTest:
    """Constraint-based CURATE, proved: every answer is charged, budgets follow OPT in zCDP.

    A value clearly on one side of the threshold decides, a value in the margin is left to a fair
    coin. After each order OPT runs again on what is left, with the degrees of the released graph.
    With `tune` = 'released' threshold and margins are chosen anew from the answers of order 0.
    """

    queryable: Queryable
    values: NoisedValues
    decision: DecisionRule
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
        """Plan this order's budget; False where too little is left."""
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

    def decide(self, tests: Sequence[PairQuestion], graph: WorkingGraph) -> Iterator[Decided]:
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

    def _answers(self, tests: Sequence[PairQuestion]) -> Iterator[NoisedValue]:
        if self.rate == 1:
            return self.values.ask(tests, self.epsilons[-1])
        return (self.values.sampled(q, self.epsilons[-1], self.rate) for q in tests)

    def end(self, order: int, asked: int, graph: WorkingGraph) -> None:
        """Record what this order has spent."""
        self.leaked.append(self._left - self.queryable.remaining)


def _orders_to_come(graph: WorkingGraph, order: int, max_order: int | None) -> range:
    """The order and those that the degrees allow after it."""
    degrees = graph.degrees(graph.open_edges)
    deepest = max((max(a, b) for a, b in degrees), default=1) - 1
    last = min(deepest, len(graph.nodes) - 2 if max_order is None else max_order)
    return range(order, max(last, order) + 1)


PairName = Literal["tau", "kendall-p"]
TableName = Literal["g", "chi-squared", "spearman"]
StatisticName = Literal["tau", "kendall-p", "g", "chi-squared", "spearman"]
NO_SCORE = (
    "compares scores inside the session, and no useful score of {0} is known: with n rows in one cell a single further "
    "row moves chi-squared by n + 1 and G by 2 log n + 2, which drowns all but strong effects, and Spearman moves "
    "further than tau for the same signal. Use 'tau', or priv-pc or curate-pc, which read {0} off noised tables"
)
EXACT_TESTS = (*TABLE_TESTS, "partial-correlation", "kendall-proved")


def learned(edge_test: EdgeTest, searched: Searched, knowledge: Knowledge | None, fci: Fci | None = None) -> FitResult:
    """A search's result, oriented, with sentences about what was left undone."""
    notes = [
        f"the budget ended at order {order}: {how_many(len(pairs), 'edge was', 'edges were')} not tested there"
        for order, pairs in searched.unfinished.items()
    ]
    notes += [
        f"{how_many(count, 'test')} of order {order} left out and their edges kept: their tables would have more than "
        f"{MOST_CELLS:,} cells. Declare fewer levels or bins"
        for order, count in searched.too_large.items()
    ]
    return FitResult(
        (orient if fci is None else fci.orient)(searched.skeleton, knowledge),
        searched.skeleton,
        evidence=tuple(edge_test.evidence),
        tests=searched.tests,
        unfinished=searched.unfinished,
        leaked=tuple(getattr(edge_test, "leaked", ())),
        notes=tuple(notes),
    )


def deletable_pairs(queryable: Queryable, knowledge: Knowledge | None, fci: Fci | None = None) -> int:
    """How many edges a search may cut, at least 1."""
    names = queryable.schema.names
    if len(names) < 2:
        raise QueryError(f"a graph needs at least two columns, the schema has {len(names)}")
    if knowledge is not None:
        knowledge.check(names)
    known = knowledge or Knowledge()
    may_link = known.allows if fci is None else known.allows_hidden
    return max(1, sum(may_link(a, b) for a, b in combinations(names, 2)))


def sizes(queryable: Queryable) -> dict[str, int]:
    """The number of levels of each column; a column of numbers is refused."""
    schema = queryable.schema
    schema.check_levels(schema.names, "this method")
    return {column.name: column.size for column in schema.columns}


def _block(queryable: Queryable) -> AbstractContextManager[object]:
    """All that is left, set aside at once: thousands of small charges make one durable entry."""
    left = queryable.remaining
    return queryable.reserve(left) if 0 < left < math.inf else nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class PC:
    """The PC algorithm without privacy, through the same queryable, at infinite cost.

    `test` is 'g', 'chi-squared', 'spearman', 'kendall' (with ties), 'partial-correlation' or
    'kendall-proved' (the p-value that the session computes). With `latent` it is FCI: common causes may be
    hidden, and the result is a PAG. `sets` says where it looks for separating sets, 'possible-d-sep' unless
    'neighbours' are enough; `rows` = 'selected' admits that which rows were kept depends on columns.
    """

    test: str = "g"
    alpha: float = 0.01
    max_order: int | None = None
    style: Style = "stable"
    latent: bool = False
    sets: Sets | None = None
    rows: Sampling = "random"

    def __post_init__(self) -> None:
        check_choice("test", self.test, EXACT_TESTS)
        check_choice("style", self.style, get_args(Style))
        self._fci()

    def _fci(self) -> Fci | None:
        return fci_of(self.latent, self.sets, self.rows, "possible-d-sep")

    def fit(self, queryable: Queryable, knowledge: Knowledge | None = None) -> FitResult:
        """Learn from exact releases; needs an unlimited budget or allow_unproved=True."""
        if self.test == "partial-correlation":
            test = PartialCorrelationTest(queryable, self.alpha)
            return self._fit(queryable, knowledge, test, {})  # moments have no cells
        if self.test in TABLE_TESTS:
            return self._fit(queryable, knowledge, TableTest(queryable, self.alpha, self.test), sizes(queryable))
        return self._fit(queryable, knowledge, PValueTest(queryable, self.alpha), sizes(queryable))

    def _fit(
        self, queryable: Queryable, knowledge: Knowledge | None, test: ExactTest, levels: Mapping[str, int]
    ) -> FitResult:
        fci = self._fci()
        deletable_pairs(queryable, knowledge, fci)
        names, how = queryable.schema.names, search if fci is None else fci.search
        searched = how(names, test, knowledge=knowledge, max_order=self.max_order, style=self.style, sizes=levels)
        return learned(test, searched, knowledge, fci)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Private(ABC):
    """What the private recipes share: they spend what the curator has left.

    With `latent` common causes may be hidden, and the result is a PAG (see `PC`); `sets` are 'neighbours' unless asked.
    """

    threshold: float = 0.05
    statistic: StatisticName = "tau"
    max_order: int | None = None
    latent: bool = False
    sets: Sets | None = None
    rows: Sampling = "random"

    def __post_init__(self) -> None:
        check_threshold(self.threshold)
        self._fci()
        check_choice("statistic", self.statistic, get_args(StatisticName))
        if self.statistic not in self._statistics:
            raise QueryError(f"{type(self).__name__} {NO_SCORE.format(repr(self.statistic))}")

    def _fci(self) -> Fci | None:
        return fci_of(self.latent, self.sets, self.rows, "neighbours")

    @property
    def _statistics(self) -> tuple[str, ...]:
        """Those it can use: scores inside the session need one of a small sensitivity."""
        return get_args(PairName)

    def fit(self, queryable: Queryable, knowledge: Knowledge | None = None) -> FitResult:
        fci = self._fci()
        pairs, levels = deletable_pairs(queryable, knowledge, fci), sizes(queryable)  # both refuse before a charge
        with _block(queryable):
            test = self._edge_test(queryable, pairs)
            names, order, how = queryable.schema.names, self.max_order, search if fci is None else fci.search
            searched = how(names, test, knowledge=knowledge, max_order=order, style=self._style, sizes=levels)
        return learned(test, searched, knowledge, fci)

    def _measure(self, rows: float) -> Measure:
        return PMeasure() if self.statistic == "kendall-p" else TauMeasure(rows)

    @property
    def _style(self) -> Style:
        return "stable"

    @abstractmethod
    def _edge_test(self, queryable: Queryable, pairs: int) -> EdgeTest:
        """How edges are tested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EMPC(_Private):
    """EM-PC (Xu, Yuan, Wu 2017): the exponential mechanism chooses what goes."""

    def _edge_test(self, queryable: Queryable, pairs: int) -> EdgeTest:
        orders = len(queryable.schema.names) - 1 if self.max_order is None else self.max_order + 1
        return ExponentialTest(queryable, self._measure(known_rows(queryable)), self.threshold, choices=pairs + orders)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ordered(_Private, ABC):
    """Recipes that test one edge after another, in rounds ('stable') or as in the original loop ('sequential')."""

    style: Style = "stable"

    def __post_init__(self) -> None:
        _Private.__post_init__(self)
        check_choice("style", self.style, get_args(Style))

    @property
    def _style(self) -> Style:
        return self.style


@dataclass(frozen=True, slots=True, kw_only=True)
class SVTPC(_Ordered):
    """SVT-PC (Wang, Pang, Song 2020): the sparse vector technique, one hit an edge."""

    def _edge_test(self, queryable: Queryable, pairs: int) -> EdgeTest:
        return SparseVectorTest(queryable, self._measure(known_rows(queryable)), self.threshold, hits=pairs + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ByValues(_Ordered, ABC):
    """Recipes that decide on released values: of a pair statistic, or read off noised tables."""

    @property
    def _statistics(self) -> tuple[str, ...]:
        return get_args(StatisticName)

    def _values(self, queryable: Queryable, rows: float) -> NoisedValues:
        if self.statistic in get_args(TableName):
            return TableValues(queryable, self.statistic, rows)
        return PairValues(queryable, self._measure(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivPC(_ByValues):
    """Priv-PC (Wang, Pang, Song 2020): sieve on a sub-sample, examine on the whole.

    The sieve compares scores of tau ('kendall-p' where that is the statistic); what passes is examined by `statistic`.
    """

    statistic: StatisticName = "spearman"
    tweak: float = 0.02
    rate: float = 1.0

    def _edge_test(self, queryable: Queryable, pairs: int) -> EdgeTest:
        rows = known_rows(queryable)
        measure, values = self._measure(rows), self._values(queryable, rows)
        return SieveTest(queryable, measure, self.threshold, values, tweak=self.tweak, rate=self.rate, hits=pairs + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratePC(_ByValues):
    """Constraint-based CURATE (Bhattacharjee and Tandon 2024): budgets per order by OPT.

    `floor` is the least share of an even budget that is left to later orders. `tune` = 'released' chooses
    threshold and margins from the answers of order 0 instead, which is free (both measured in
    docs/other-methods.md).
    """

    statistic: StatisticName = "chi-squared"
    beta1: float = 0.2
    beta2: float = 0.2
    rate: float = 1.0
    floor: float = 0.7
    tune: Tune = "none"

    def __post_init__(self) -> None:
        _Ordered.__post_init__(self)
        check_choice("tune", self.tune, get_args(Tune))
        if self.tune == "released" and (self.statistic == "kendall-p" or self.style == "sequential"):
            raise QueryError(
                "tune='released' compares all answers of order 0 with a null that knows the noise: it needs "
                "style='stable' and another statistic than 'kendall-p'"
            )

    def _edge_test(self, queryable: Queryable, pairs: int) -> EdgeTest:
        decision = DecisionRule(self.threshold, self.beta1, self.beta2)
        values = self._scored(queryable, known_rows(queryable))
        return CurateTest(queryable, values, decision, self.rate, self.max_order, self.floor, self.tune)

    def _scored(self, queryable: Queryable, rows: float) -> NoisedValues:
        """What is tuned must come in normal scores; tables always do."""
        if self.tune == "released" and self.statistic == "tau":
            return NoisedTau(queryable, TauMeasure(rows), rows)
        return self._values(queryable, rows)
