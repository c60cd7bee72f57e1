"""The constraint-based systems as printed and as coded: NOT PRIVATE. Each states what its authors would claim."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from dpcurate.errors import QueryError
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.constraint.measures import known_rows
from dpcurate.learn.constraint.recipes import deletable_pairs, learned, sizes
from dpcurate.learn.constraint.search import search
from dpcurate.learn.constraint.working_graph import Style
from dpcurate.learn.options import check_choice, check_threshold
from dpcurate.learn.outcome import Learned
from dpcurate.published.claims import Claim, CurateReading
from dpcurate.published.edge_tests import PublishedChoice, PublishedCurate, PublishedExact, PublishedSieve, PublishedSvt
from dpcurate.queries import Queryable

PublishedTest = PublishedChoice | PublishedSvt | PublishedSieve | PublishedCurate
Redraw = Literal["gaussian", "laplace"]


def reach(rows: float, variables: int) -> int:
    """The largest order of the published loops: floor(log2 n) - 5, at most d - 2."""
    return max(0, min(math.floor(math.log2(rows)) - 5, variables - 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPC:
    """Non-private PC with Kendall's test as the private papers compute it; no claim is made for it."""

    alpha: float = 0.05
    max_order: int | None = None
    style: Style = "sequential"

    def __post_init__(self) -> None:
        check_choice("style", self.style, get_args(Style))

    def fit(self, queryable: Queryable, knowledge: Knowledge | None = None) -> Learned:
        deletable_pairs(queryable, knowledge)
        test, order, levels = PublishedExact(queryable, self.alpha), self.max_order, sizes(queryable)
        found = search(
            queryable.schema.names, test, knowledge=knowledge, max_order=order, style=self.style, sizes=levels
        )
        return learned(test, found, knowledge)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Published(ABC):
    """What they share: the sequential loop, up to `max_order` (their authors' reach unless given)."""

    threshold: float = 0.05
    max_order: int | None = None

    def __post_init__(self) -> None:
        check_threshold(self.threshold)

    def fit(self, queryable: Queryable, knowledge: Knowledge | None = None) -> Learned:
        deletable_pairs(queryable, knowledge)
        rows, names = known_rows(queryable), queryable.schema.names
        test = self._edge_test(queryable, rows)
        last = reach(rows, len(names)) if self.max_order is None else self.max_order
        found = search(names, test, knowledge=knowledge, max_order=last, style="sequential", sizes=sizes(queryable))
        if isinstance(test, PublishedCurate):
            test.finish()
        result, claimed = learned(test, found, knowledge), test.claimed
        note = f"NOT PRIVATE: the authors would claim epsilon = {claimed:.4g}, which is not proved"
        return replace(result, claimed=claimed, notes=(*result.notes, note))

    @abstractmethod
    def _edge_test(self, queryable: Queryable, rows: float) -> PublishedTest:
        """How edges are tested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stepwise(_Published, ABC):
    """Systems that give every step the same `epsilon` by their authors' count."""

    epsilon: float = 0.1
    claim: Claim = field(default_factory=Claim)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedEMPC(_Stepwise):
    """EM-PC (Xu, Yuan, Wu 2017), as re-implemented with Priv-PC."""

    def _edge_test(self, queryable: Queryable, rows: float) -> PublishedChoice:
        return PublishedChoice(queryable, self.epsilon, self.threshold, self.claim)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSVTPC(_Stepwise):
    """SVT-PC (Wang, Pang, Song 2020): the threshold is drawn again with Gaussian noise."""

    redraw: Redraw = "gaussian"

    def __post_init__(self) -> None:
        _Published.__post_init__(self)
        check_choice("redraw", self.redraw, get_args(Redraw))

    def _edge_test(self, queryable: Queryable, rows: float) -> PublishedSvt:
        return PublishedSvt(queryable, rows, self.epsilon, self.threshold, self.claim, self.redraw)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPrivPC(_Stepwise):
    """Priv-PC (Wang, Pang, Song 2020): epsilon computed from the sieve's hits."""

    tweak: float = 0.02
    rate: float = 1.0

    def _edge_test(self, queryable: Queryable, rows: float) -> PublishedSieve:
        return PublishedSieve(queryable, rows, self.epsilon, self.threshold, self.tweak, self.rate, self.claim)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCuratePC(_Published):
    """Constraint-based CURATE (Bhattacharjee and Tandon 2024), within a claimed `total`.

    `reading` is the paper's text or the authors' code.
    """

    total: float = 0.1
    beta1: float = 0.2
    beta2: float = 0.2
    rate: float = 1.0
    reading: CurateReading = field(default_factory=CurateReading)

    def __post_init__(self) -> None:
        _Published.__post_init__(self)
        if not self.total > 0:
            raise QueryError(f"total is a claimed epsilon above 0, got {self.total!r}")

    def _edge_test(self, queryable: Queryable, rows: float) -> PublishedCurate:
        return PublishedCurate(queryable, self.total, self.threshold, self.beta1, self.beta2, self.rate, self.reading)
