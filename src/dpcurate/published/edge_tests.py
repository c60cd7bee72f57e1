"""The published edge tests, as printed and as coded: NOT PROVED PRIVATE.

They reproduce figures. Each asks for unproved or exact releases, which a curator refuses unless it
was opened with allow_unproved=True, and reports the epsilon its authors would claim. CURATE's is in
curate.py.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dpcurate.accounting import before_sampling
from dpcurate.graphs.base_graph import UnorderedPair
from dpcurate.learn.constraint.edge_decisions import Steady
from dpcurate.learn.constraint.independence import PValueTest
from dpcurate.learn.constraint.pc_search import Decided, PairQuestion, Scope, WorkingGraph
from dpcurate.published.claims import Claim
from dpcurate.published.draws import laplace, normal, pick
from dpcurate.published.unproved_statistics import (
    SMALLEST,
    PaperTest,
    PublishedFlips,
    PublishedKendallP,
    StatedBound,
)
from dpcurate.queries import Exact, Laplace, Queryable, Release, Sample, SampleGate
from dpcurate.result.fit import Evidence

UNDEFINED = -1e5
"""Below this a published p-value means that its test was undefined; the authors keep the edge."""


def p_value(
    q: PairQuestion, bound: StatedBound, test: PaperTest = "kendall", smallest: int = SMALLEST
) -> PublishedKendallP:
    """Return the query for the p-value of a question."""
    return PublishedKendallP(q.x, q.y, q.given, bound=bound, test=test, smallest=smallest)


def priv_pc_sensitivity(rows: float) -> float:
    """What Priv-PC states: the normal mass between 0 and 6 / sqrt n."""
    return 0.5 * math.erf(6 / math.sqrt(rows) / math.sqrt(2))


class PublishedExact(PValueTest):
    """Non-private PC as the private papers run it: Kendall's p-value, exact."""

    def _statistic(self, q: PairQuestion) -> PublishedKendallP:
        return p_value(q, "priv-pc")


@dataclass(kw_only=True)
class OneByOne(Steady, ABC):
    """Each test decides on its own whether its edge is cut."""

    answered: int = 0

    def decide(self, tests: Sequence[PairQuestion], graph: WorkingGraph) -> Iterator[Decided]:
        """Decide one test after the other."""
        for q in tests:
            self.answered += 1
            yield q, self._cuts(q)

    @abstractmethod
    def _cuts(self, q: PairQuestion) -> bool:
        """Whether the test cuts its edge."""


@dataclass
class PublishedSvt(OneByOne):
    """SVT-PC: a noisy threshold, re-drawn with a Gaussian after each hit; misses are free."""

    queryable: Queryable
    rows: float
    epsilon: float
    level: float
    claim: Claim
    redraw: Literal["gaussian", "laplace"] = "gaussian"
    scope: Scope = "test"
    evidence: list[Evidence] = field(default_factory=list)
    hits: int = 0
    limit: float = math.inf
    _threshold: float | None = None

    @property
    def claimed(self) -> float:
        """The authors' epsilon, from the hits that happened."""
        return self.claim.total(self.hits, self.epsilon)

    def begin(self, order: int, graph: WorkingGraph) -> bool:
        """Noise the threshold before the first order."""
        if self._threshold is None:
            self._threshold = self.level + laplace(self.queryable, 2 * priv_pc_sensitivity(self.rows) / self.epsilon)
        return True

    def _cuts(self, q: PairQuestion) -> bool:
        self.claim.check_room(self.limit, self.hits + 1, self.epsilon)
        scale = priv_pc_sensitivity(self.rows) / self.epsilon
        value = float(self.queryable.ask(Release(p_value(q, "priv-pc"), Laplace(scale=8 * scale))))
        assert self._threshold is not None
        if value < UNDEFINED or value < self._threshold:
            return False
        self.hits += 1
        self.evidence.append(Evidence((q.x, q.y), q.given, "cut", value, None, self._threshold))
        noise = normal if self.redraw == "gaussian" else laplace
        self._threshold = self.level + noise(self.queryable, 2 * scale)
        return True


@dataclass
class PublishedSieve(OneByOne):
    """Priv-PC: sieve on a sample, examine on the full table; epsilon computed from the sieve's hits."""

    queryable: Queryable
    rows: float
    epsilon: float
    level: float
    tweak: float
    rate: float
    claim: Claim
    scope: Scope = "test"
    evidence: list[Evidence] = field(default_factory=list)
    hits: int = 0
    limit: float = math.inf
    _threshold: float | None = None
    _sample: SampleGate | None = None

    @property
    def claimed(self) -> float:
        """The authors' epsilon, from the hits that happened."""
        return self.claim.total(self.hits, self.epsilon, parts=2)

    def begin(self, order: int, graph: WorkingGraph) -> bool:
        """Noise the threshold before the first order."""
        if self._threshold is None:
            self._refresh()
        return True

    @property
    def _scale(self) -> float:
        raw = before_sampling(epsilon=self.epsilon / 2, rate=self.rate)
        return 2 * priv_pc_sensitivity(self.rows) / math.sqrt(self.rate) / raw

    def _refresh(self) -> None:
        self._threshold = self.level - self.tweak + laplace(self.queryable, self._scale)
        self._sample = self.queryable if self.rate == 1 else self.queryable.open(Sample(rate=self.rate, epsilon=1.0))

    def _cuts(self, q: PairQuestion) -> bool:
        self.claim.check_room(self.limit, self.hits + 1, self.epsilon, parts=2)
        statistic = p_value(q, "priv-pc")
        assert self._sample is not None
        assert self._threshold is not None
        sieved = float(self._sample.ask(Release(statistic, Laplace(scale=2 * self._scale))))
        if sieved < UNDEFINED or sieved < self._threshold:
            return False
        self.hits += 1
        self._refresh()
        self.answered += 1
        scale = priv_pc_sensitivity(self.rows) / (self.epsilon / 2)
        value = float(self.queryable.ask(Release(statistic, Laplace(scale=scale))))
        cut = value >= self.level
        self.evidence.append(Evidence((q.x, q.y), q.given, "cut" if cut else "kept", value, None, self.level))
        return cut


@dataclass
class PublishedChoice(Steady):
    """EM-PC as re-implemented with Priv-PC: how many edges of a node go, then which.

    The separating set of each pair is the set of the largest exact p-value; the score is how many rows
    must go to flip a G test. A chosen edge is not taken out of the draw but given a very low score.
    `slipped` holds separating sets as that code files them: under the node's pair with the column whose
    number is the *place* of the choice, not with the partner chosen.
    """

    queryable: Queryable
    epsilon: float
    level: float
    claim: Claim
    scope: Scope = "node"
    evidence: list[Evidence] = field(default_factory=list)
    visits: int = 0
    limit: float = math.inf
    answered: int = 0
    slipped: dict[UnorderedPair, set[str]] = field(default_factory=dict)

    @property
    def claimed(self) -> float:
        """The authors' epsilon, from the visits that happened."""
        return self.claim.total(self.visits, self.epsilon)

    def decide(self, tests: Sequence[PairQuestion], graph: WorkingGraph) -> Iterator[Decided]:
        """Choose how many edges to cut and which ones, each by an exponential mechanism."""
        self.claim.check_room(self.limit, self.visits + 1, self.epsilon)
        self.visits += 1
        self.answered += len(tests)
        best = self._best(tests)
        flips = list(map(float, self.queryable.ask_all([Release(self._flips(q), Exact()) for q, _ in best])))
        number = pick(self.queryable, self._number_scores(flips, [p for _, p in best]), self.epsilon / 2)
        chosen: list[PairQuestion] = []
        for place in range(number):
            index = pick(self.queryable, flips, self.epsilon / (2 * number))
            flips[index] = -10_000.0
            filed = frozenset((best[index][0].x, graph.nodes[place]))
            self.slipped.setdefault(filed, set()).update(best[index][0].given)
            if best[index][0] not in chosen:
                chosen.append(best[index][0])
        for q in chosen:
            self.evidence.append(Evidence((q.x, q.y), q.given, "cut"))
        return ((q, q in chosen) for q in tests)

    def _flips(self, q: PairQuestion) -> PublishedFlips:
        return PublishedFlips(q.x, q.y, q.given, level=self.level)

    def _best(self, tests: Sequence[PairQuestion]) -> list[tuple[PairQuestion, float]]:
        """For each partner the set with the largest p-value."""
        found: dict[str, tuple[PairQuestion, float]] = {}
        asked = [Release(p_value(q, "priv-pc"), Exact()) for q in tests]
        for q, answer in zip(tests, self.queryable.ask_all(asked), strict=True):
            p = -1.0 if float(answer) < UNDEFINED else float(answer)
            if q.y not in found or p > found[q.y][1]:
                found[q.y] = (q, p)
        return list(found.values())

    def _number_scores(self, flips: Sequence[float], p: Sequence[float]) -> list[float]:
        """How well each number of deletions fits, by their code."""
        order = sorted(range(len(flips)), key=lambda i: (flips[i], p[i]), reverse=True)
        u, v = [flips[i] for i in order], [p[i] for i in order]
        scores = [-u[0] - (v[0] >= self.level)]
        for b in range(1, len(u)):
            if v[b - 1] > self.level and v[b] <= self.level:
                scores.append(min(u[b - 1], -u[b]) - 1)
            else:
                scores.append(-u[b] if v[b - 1] > self.level and v[b] > self.level else u[b - 1])
        return scores
