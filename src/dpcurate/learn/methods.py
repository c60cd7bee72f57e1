"""Named recipes: which judge, which loop, which defaults. Each is a value with one verb, `fit`.

`variant="proved"` (the default) is what a user gets; `variant="published"` reproduces the figures
of a paper, is labelled NOT PRIVATE and needs a curator opened with allow_unproved=True.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Literal

from dpcurate.errors import RequestError
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.orient import orient
from dpcurate.learn.board import Style
from dpcurate.learn.ci import TABLE_TESTS
from dpcurate.learn.gates import GateJudge, SieveJudge
from dpcurate.learn.judges import P_VALUES, ChoiceJudge, CurateJudge, ExactJudge
from dpcurate.learn.measures import Measure, PMeasure, TauMeasure, known_rows
from dpcurate.learn.outcome import Learned
from dpcurate.learn.published import (
    Claim,
    CurateReading,
    PublishedChoice,
    PublishedCurate,
    PublishedSieve,
    PublishedSvt,
)
from dpcurate.learn.skeleton import Judge, Searched, search
from dpcurate.requests import MOST_CELLS, Door

Variant = Literal["proved", "published"]
StatisticName = Literal["tau", "kendall-p"]
EXACT_TESTS = (*TABLE_TESTS, "partial-correlation", *P_VALUES)


def _learned(judge: Judge, found: Searched, knowledge: Knowledge | None, claimed: float | None = None) -> Learned:
    notes = [
        f"the budget ended at order {order}: {len(pairs)} edge(s) were not tested there"
        for order, pairs in found.unfinished.items()
    ]
    notes += [
        f"{count:,} test(s) of order {order} were left out and their edges kept: their tables would have more than "
        f"{MOST_CELLS:,} cells. Declare fewer levels or bins"
        for order, count in found.too_large.items()
    ]
    if claimed is not None:
        notes.append(f"NOT PRIVATE: the authors would claim epsilon = {claimed:.4g}, which is not proved")
    return Learned(
        orient(found.skeleton, knowledge),
        found.skeleton,
        evidence=tuple(judge.evidence),
        tests=found.tests,
        unfinished=found.unfinished,
        leaked=tuple(getattr(judge, "leaked", ())),
        claimed=claimed,
        notes=tuple(notes),
    )


def _block(door: Door) -> AbstractContextManager[object]:
    """All that is left, set aside at once: thousands of small charges make one durable entry."""
    left = door.remaining
    return door.reserve(left) if 0 < left < math.inf else nullcontext()


def _measure(door: Door, statistic: StatisticName) -> Measure:
    return TauMeasure(known_rows(door)) if statistic == "tau" else PMeasure()


def _pairs(door: Door, knowledge: Knowledge | None) -> int:
    """How many edges a search may cut, at least 1."""
    names = door.schema.names
    if len(names) < 2:
        raise RequestError(f"a graph needs at least two columns, the schema has {len(names)}")
    if knowledge is not None:
        knowledge.check(names)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    return max(1, sum(knowledge is None or knowledge.allows(a, b) for a, b in pairs))


def _sizes(door: Door) -> dict[str, int]:
    return {column.name: column.size for column in door.schema.columns}


def published_reach(rows: float, variables: int) -> int:
    """The largest order of the published loops: floor(log2 n) - 5, at most d - 2."""
    return max(0, min(math.floor(math.log2(rows)) - 5, variables - 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class PC:
    """The PC algorithm without privacy, through the same door, at infinite cost.

    `test` is 'g', 'chi-squared', 'spearman', 'kendall' (with ties), 'partial-correlation',
    'kendall-published' (as the private papers compute it) or 'kendall-proved'.
    """

    test: str = "g"
    alpha: float = 0.01
    max_order: int | None = None
    style: Style = "stable"

    def __post_init__(self) -> None:
        if self.test not in EXACT_TESTS:
            raise RequestError(f"test must be one of {', '.join(EXACT_TESTS)}; got {self.test!r}")

    def fit(self, door: Door, knowledge: Knowledge | None = None) -> Learned:
        """Learn from exact releases; needs an unlimited budget or allow_unproved=True."""
        _pairs(door, knowledge)
        judge = ExactJudge(door, self.test, self.alpha)
        sizes = {} if self.test == "partial-correlation" else _sizes(door)  # moments have no cells
        names = door.schema.names
        found = search(names, judge, knowledge=knowledge, max_order=self.max_order, style=self.style, sizes=sizes)
        return _learned(judge, found, knowledge)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Private(ABC):
    """What the private constraint-based recipes share.

    `epsilon` is used by published variants only: what one step costs by the authors' count (for CURATE
    the total). Proved variants spend what the curator has left.
    """

    variant: Variant = "proved"
    threshold: float = 0.05
    statistic: StatisticName = "tau"
    max_order: int | None = None
    style: Style = "stable"
    epsilon: float = 0.1
    claim: Claim = field(default_factory=Claim)

    def __post_init__(self) -> None:
        if self.variant not in ("proved", "published"):
            raise RequestError(f"variant must be 'proved' or 'published', got {self.variant!r}")
        if not 0 < self.threshold < 0.5:
            raise RequestError(f"threshold is a one-sided p-value between 0 and 0.5, got {self.threshold!r}")

    def fit(self, door: Door, knowledge: Knowledge | None = None) -> Learned:
        """Learn a graph through the door."""
        pairs = _pairs(door, knowledge)
        if self.variant == "published":
            return self._published(door, knowledge)
        with _block(door):
            judge = self._judge(door, pairs)
            names, sizes = door.schema.names, _sizes(door)
            found = search(names, judge, knowledge=knowledge, max_order=self.max_order, style=self.style, sizes=sizes)
        return _learned(judge, found, knowledge)

    def _published(self, door: Door, knowledge: Knowledge | None) -> Learned:
        rows, names = known_rows(door), door.schema.names
        judge = self._published_judge(door, rows)
        reach = published_reach(rows, len(names)) if self.max_order is None else self.max_order
        found = search(names, judge, knowledge=knowledge, max_order=reach, style="sequential", sizes=_sizes(door))
        if isinstance(judge, PublishedCurate):
            judge.finish()
        return _learned(judge, found, knowledge, judge.claimed)

    @abstractmethod
    def _judge(self, door: Door, pairs: int) -> Judge:
        """The proved judge."""

    @abstractmethod
    def _published_judge(
        self, door: Door, rows: float
    ) -> PublishedCurate | PublishedSvt | PublishedSieve | PublishedChoice:
        """The published judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EMPC(_Private):
    """EM-PC (Xu, Yuan, Wu 2017): the exponential mechanism chooses what goes."""

    def _judge(self, door: Door, pairs: int) -> Judge:
        orders = len(door.schema.names) - 1 if self.max_order is None else self.max_order + 1
        return ChoiceJudge(door, _measure(door, self.statistic), self.threshold, choices=pairs + orders)

    def _published_judge(self, door: Door, rows: float) -> PublishedChoice:
        return PublishedChoice(door, self.epsilon, self.threshold, self.claim)


@dataclass(frozen=True, slots=True, kw_only=True)
class SVTPC(_Private):
    """SVT-PC (Wang, Pang, Song 2020): the sparse vector technique, one hit an edge."""

    redraw: Literal["gaussian", "laplace"] = "gaussian"

    def _judge(self, door: Door, pairs: int) -> Judge:
        return GateJudge(door, _measure(door, self.statistic), self.threshold, hits=pairs + 1)

    def _published_judge(self, door: Door, rows: float) -> PublishedSvt:
        return PublishedSvt(door, rows, self.epsilon, self.threshold, self.claim, self.redraw)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivPC(_Private):
    """Priv-PC (Wang, Pang, Song 2020): sieve on a sub-sample, examine on the whole."""

    tweak: float = 0.02
    rate: float = 1.0

    def _judge(self, door: Door, pairs: int) -> Judge:
        measure = _measure(door, self.statistic)
        return SieveJudge(door, measure, self.threshold, tweak=self.tweak, rate=self.rate, hits=pairs + 1)

    def _published_judge(self, door: Door, rows: float) -> PublishedSieve:
        return PublishedSieve(door, rows, self.epsilon, self.threshold, self.tweak, self.rate, self.claim)


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratePC(_Private):
    """Constraint-based CURATE (Bhattacharjee and Tandon 2024): budgets per order by OPT.

    `floor` is the least share of an even budget that a proved run leaves to later orders (measured in
    docs/methods.md). `reading` of a published run is the paper's text or the authors' code.
    """

    beta1: float = 0.2
    beta2: float = 0.2
    rate: float = 1.0
    floor: float = 0.7
    reading: CurateReading = field(default_factory=CurateReading)

    def _judge(self, door: Door, pairs: int) -> Judge:
        measure = _measure(door, self.statistic)
        return CurateJudge(door, measure, self.threshold, self.beta1, self.beta2, self.rate, self.max_order, self.floor)

    def _published_judge(self, door: Door, rows: float) -> PublishedCurate:
        return PublishedCurate(door, self.epsilon, self.threshold, self.beta1, self.beta2, self.rate, self.reading)
