"""The constraint-based systems as printed and as coded: NOT PRIVATE. Each states what its authors would claim."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import combinations
from typing import Any, ClassVar, Literal, get_args

from dpcurate._validation import check_choice, check_threshold
from dpcurate.errors import QueryError
from dpcurate.graphs.base_graph import Arrow
from dpcurate.graphs.graph import Skeleton
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.constraint.edge_decisions import known_rows
from dpcurate.learn.constraint.pc_search import EdgeTest, Searched, Style, search
from dpcurate.learn.constraint.recipes import deletable_pairs, learned, sizes
from dpcurate.published.claims import Claim, CurateReading, PublishedLearned
from dpcurate.published.curate import PublishedCurate
from dpcurate.published.edge_tests import PublishedChoice, PublishedExact, PublishedSieve, PublishedSvt
from dpcurate.queries import Queryable

PublishedTest = PublishedChoice | PublishedSvt | PublishedSieve | PublishedCurate
Redraw = Literal["gaussian", "laplace"]
Separators = Literal["slip", "own"]
STEP = 0.1
"""The epsilon of a step where neither it nor a total is given."""


def _pairs(queryable: Queryable) -> int:
    return math.comb(len(queryable.schema.names), 2)


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

    def fit(self, queryable: Queryable, knowledge: Knowledge | None = None) -> PublishedLearned:
        """Run PC as the paper's code does."""
        deletable_pairs(queryable, knowledge)
        test, order, levels = PublishedExact(queryable, self.alpha), self.max_order, sizes(queryable)
        found = search(
            queryable.schema.names, test, knowledge=knowledge, max_order=order, style=self.style, sizes=levels
        )
        deletions = sum(e.verdict == "cut" for e in test.evidence)
        return _handed_over(test, found, knowledge, counted=deletions, answered=sum(found.tests))


def _handed_over(
    test: EdgeTest, found: Searched, knowledge: Knowledge | None, note: str = "", **facts: Any
) -> PublishedLearned:
    result = learned(test, found, knowledge)
    shared = {f.name: getattr(result, f.name) for f in fields(result)}
    shared["notes"] = (*result.notes, note) if note else result.notes
    return PublishedLearned(**{**shared, **facts}, arcs=coded_arcs(found.skeleton))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Published(ABC):
    """What they share: the authors' loop, up to `max_order` (their authors' reach unless given)."""

    threshold: float = 0.05
    max_order: int | None = None

    def __post_init__(self) -> None:
        check_threshold(self.threshold)

    def fit(self, queryable: Queryable, knowledge: Knowledge | None = None) -> PublishedLearned:
        deletable_pairs(queryable, knowledge)
        rows, names = known_rows(queryable), queryable.schema.names
        test = self._edge_test(queryable, rows)
        last = self._last(rows, len(names))
        found = search(names, test, knowledge=knowledge, max_order=last, style=self._style, sizes=sizes(queryable))
        if isinstance(test, PublishedCurate):
            test.finish()
        facts = {"claimed": test.claimed, "nominal": self._nominal, "answered": test.answered}
        counted = test.counted if isinstance(test, PublishedCurate) else test.answered
        note = f"NOT PRIVATE: the authors would claim epsilon = {test.claimed:.4g}, which is not proved"
        return _handed_over(test, self._filed(test, found), knowledge, note, counted=counted, **facts)

    @abstractmethod
    def _edge_test(self, queryable: Queryable, rows: float) -> PublishedTest:
        """How edges are tested."""

    def _last(self, rows: float, variables: int) -> int:
        """The largest order."""
        return reach(rows, variables) if self.max_order is None else self.max_order

    def _filed(self, test: PublishedTest, found: Searched) -> Searched:
        """What was found, with separating sets where the authors' code files them."""
        return found

    @property
    def _style(self) -> Style:
        return "sequential"

    @property
    def _nominal(self) -> float | None:
        """The total that the method was given."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stepwise(_Published, ABC):
    """Systems that give every step the same `epsilon` by their authors' count, or share a `total`.

    With a total a step gets what as many steps as a run may take at most would be claimed to cost together: of
    SVT-PC and Priv-PC a deletion of each pair, of EM-PC a visit to each node at each order. Priv-PC may take more
    steps than that; a run ends before a step after which the claim could exceed the total.
    """

    about_epsilon: ClassVar[str] = (
        f"epsilon is of EACH STEP ({STEP:g} unless it is given), and the claim for the whole run is larger. Give total "
        "in its place for a claim of at most that for the whole run: epsilon is then chosen for the steps that a run "
        "may take, and the run ends before the claim could exceed the total."
    )
    epsilon: float | None = None
    total: float | None = None
    claim: Claim = field(default_factory=Claim)

    def __post_init__(self) -> None:
        _Published.__post_init__(self)
        if self.epsilon is not None and self.total is not None:
            raise QueryError("epsilon is of each step and total of the whole run: give one of them")
        if self.total is not None and not 1e-6 <= self.total <= 1e6:
            raise QueryError(f"total is a claimed epsilon between 1e-6 and 1e6, got {self.total!r}")

    @property
    def _nominal(self) -> float | None:
        return self.total

    @property
    def _limit(self) -> float:
        return math.inf if self.total is None else self.total

    def _step(self, steps: int, parts: int = 1) -> float:
        """The epsilon of each of so many steps."""
        if self.total is not None:
            return self.claim.step(self.total, steps, parts)
        return STEP if self.epsilon is None else self.epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedEMPC(_Stepwise):
    """EM-PC (Xu, Yuan, Wu 2017), as re-implemented with Priv-PC.

    `separators` 'slip' files separating sets as that code does (see PublishedChoice), 'own' with their pair.
    """

    separators: Separators = "slip"

    def __post_init__(self) -> None:
        _Stepwise.__post_init__(self)
        check_choice("separators", self.separators, get_args(Separators))

    def _filed(self, test: PublishedTest, found: Searched) -> Searched:
        if self.separators == "own" or not isinstance(test, PublishedChoice):
            return found
        skeleton = found.skeleton
        sets = {pair: sorted(test.slipped.get(pair, set()) - pair) for pair in skeleton.separators}
        return replace(found, skeleton=Skeleton.of(skeleton.nodes, skeleton.edges, sets))

    def _edge_test(self, queryable: Queryable, rows: float) -> PublishedChoice:
        variables = len(queryable.schema.names)
        epsilon = self._step(variables * (self._last(rows, variables) + 1))
        return PublishedChoice(queryable, epsilon, self.threshold, self.claim, limit=self._limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSVTPC(_Stepwise):
    """SVT-PC (Wang, Pang, Song 2020): the threshold is drawn again with Gaussian noise."""

    redraw: Redraw = "gaussian"

    def __post_init__(self) -> None:
        _Stepwise.__post_init__(self)
        check_choice("redraw", self.redraw, get_args(Redraw))

    def _edge_test(self, queryable: Queryable, rows: float) -> PublishedSvt:
        epsilon = self._step(_pairs(queryable))
        return PublishedSvt(queryable, rows, epsilon, self.threshold, self.claim, self.redraw, limit=self._limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPrivPC(_Stepwise):
    """Priv-PC (Wang, Pang, Song 2020): epsilon computed from the sieve's hits."""

    tweak: float = 0.02
    rate: float = 1.0

    def _edge_test(self, queryable: Queryable, rows: float) -> PublishedSieve:
        epsilon = self._step(_pairs(queryable), parts=2)
        return PublishedSieve(
            queryable, rows, epsilon, self.threshold, self.tweak, self.rate, self.claim, limit=self._limit
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCuratePC(_Published):
    """Constraint-based CURATE (Bhattacharjee and Tandon 2024), within a claimed `total`.

    `reading` says how Algorithm 1 is read (CurateReading); READINGS has the text, the script and what lies between.
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
        if self.rate == 1 and (self.reading.draw, self.reading.size) != ("run", "sample"):
            raise QueryError("the reading's draw and size have no effect at rate=1: nothing is sampled; leave them out")

    @property
    def _style(self) -> Style:
        return self.reading.style

    @property
    def _nominal(self) -> float | None:
        return self.total

    def _last(self, rows: float, variables: int) -> int:
        """The largest order: d - 2, or the script's."""
        if self.max_order is not None:
            return self.max_order
        return max(0, variables - 2) if self.reading.orders == "all" else reach(rows, variables)

    def _edge_test(self, queryable: Queryable, rows: float) -> PublishedCurate:
        return PublishedCurate(queryable, self.total, self.threshold, self.beta1, self.beta2, self.rate, self.reading)


# --- arrows as the code of Priv-PC and CURATE draws them -----------------------------------------------


def coded_arcs(skeleton: Skeleton) -> frozenset[Arrow]:
    """A line is two arcs; colliders and rules take arcs away, each seeing what went before.

    Of two colliders that disagree the first one holds. There are three of Meek's rules, not four, and they
    turn a line into an arrow only from the earlier column to the later one. Arrows may close a cycle.
    """
    arcs = {arc for a, b in skeleton.edges for arc in ((a, b), (b, a))}
    for a, b in combinations(skeleton.nodes, 2):
        given = skeleton.separator(a, b)
        if given is not None:
            heads = [k for k in skeleton.nodes if {(a, k), (b, k)} <= arcs and k not in given]
            arcs -= {arc for k in heads for arc in ((k, a), (k, b))}
    while _pass(skeleton.nodes, arcs):
        pass
    return frozenset(arcs)


def _pass(nodes: tuple[str, ...], arcs: set[Arrow]) -> bool:
    """Once over all pairs; whether any line became an arrow."""
    before = len(arcs)
    for a, b in combinations(nodes, 2):
        if {(a, b), (b, a)} <= arcs and any(_reasons(nodes, arcs, a, b)):
            arcs.remove((b, a))
    return len(arcs) < before


def _reasons(nodes: tuple[str, ...], arcs: set[Arrow], a: str, b: str) -> Iterator[bool]:
    def arrow(x: str, y: str) -> bool:
        return (x, y) in arcs and (y, x) not in arcs

    def apart(x: str, y: str) -> bool:
        return (x, y) not in arcs and (y, x) not in arcs

    yield any(arrow(k, a) and apart(k, b) for k in nodes if k not in (a, b))
    yield any(arrow(a, k) and arrow(k, b) for k in nodes)
    beside = [k for k in nodes if {(a, k), (k, a)} <= arcs and arrow(k, b)]
    yield any(apart(k, m) for k, m in combinations(beside, 2))
