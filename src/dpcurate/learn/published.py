"""The published judges, as printed and as coded: NOT PROVED PRIVATE.

They reproduce figures. Each asks for unproved or exact releases, which a curator refuses unless it
was opened with allow_unproved=True, and reports the epsilon its authors would claim. Where the
paper's text and the authors' code differ, both readings are there by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from dpcurate.learn.board import Board, Question, Scope
from dpcurate.learn.budgets import OpenErrors, PublishedLeak, likely_tests, optimise, worst_tests
from dpcurate.learn.judges import Steady
from dpcurate.learn.measures import Bound, PMeasure, normal_quantile
from dpcurate.learn.outcome import Evidence
from dpcurate.learn.skeleton import Verdict
from dpcurate.requests import Door, Exact, Laplace, PublishedFlips, Release, Sample, SampleGate

UNDEFINED = -1e5
"""Below this a published p-value means that its test was undefined; the authors keep the edge."""


def laplace(door: Door, scale: float) -> float:
    """Laplace noise from public randomness; good enough where nothing is proved."""
    u = door.draw() - 0.5
    return -scale * math.copysign(math.log(max(1 - 2 * abs(u), 1e-300)), u)


def normal(door: Door, scale: float) -> float:
    """Normal noise from public randomness."""
    return scale * normal_quantile(min(max(door.draw(), 1e-300), 1 - 1e-16))


def pick(door: Door, scores: Sequence[float], epsilon: float) -> int:
    """The exponential mechanism with sensitivity 1, from public randomness."""
    noised = [epsilon * s / 2 - math.log(-math.log(max(door.draw(), 1e-300))) for s in scores]
    return int(np.argmax(noised))


def priv_pc_sensitivity(rows: float) -> float:
    """What Priv-PC states: the normal mass between 0 and 6 / sqrt n."""
    return 0.5 * math.erf(6 / math.sqrt(rows) / math.sqrt(2))


@dataclass(frozen=True, slots=True)
class Claim:
    """How a system's authors turn so many steps of epsilon into one epsilon.

    'square' is CURATE's c eps^2 + sqrt(2 c eps^2 log(1/delta')), 'expm1' Priv-PC's advanced composition.
    """

    delta: float = 1e-14
    form: Literal["square", "expm1"] = "square"

    def total(self, count: float, epsilon: float, parts: int = 1) -> float:
        """The claimed epsilon of `count` steps, each of `parts` equal parts of epsilon / parts."""
        e = epsilon / parts
        if self.form == "square":
            v = count * parts * e * e
            return v + math.sqrt(2 * math.log(1 / self.delta) * v)
        log = math.log(parts / self.delta)
        return parts * (e * math.sqrt(2 * count * log) + count * e * math.expm1(e))


@dataclass(frozen=True, slots=True)
class CurateReading:
    """Where the CURATE paper's text and its authors' code differ, each difference by its name.

    `charge` 'all' answers or only those 'acted' on (deletions and the grey zone); `count` of charged
    answers per 'order' or 'running' on over orders; `coin` 'fair' or always 'keep'; `edges` in OPT
    'current' or 'initial'; `tests` bounded as printed ('worst') or by degrees ('likely'); `start` of
    SLSQP; `stop` when the claimed leakage has passed the total, checked 'after' an order, or 'never';
    `empty` whether the order after the last test is charged too.
    """

    charge: Literal["all", "acted"] = "all"
    count: Literal["order", "running"] = "order"
    coin: Literal["fair", "keep"] = "fair"
    edges: Literal["current", "initial"] = "current"
    tests: Literal["worst", "likely"] = "worst"
    bound: Bound = "curate-printed"
    start: Literal["uniform", "zero"] = "zero"
    stop: Literal["after", "never"] = "after"
    delta_prime: float = 1e-12
    delta: float = 1e-14
    delta_total: float = 1e-10
    c: float = 1.0
    empty: bool = False

    @classmethod
    def code(cls) -> CurateReading:
        """What the authors' script does."""
        return cls("acted", "running", "keep", "initial", bound="curate-code", delta_prime=1e-14, empty=True)

    @classmethod
    def paper(cls) -> CurateReading:
        """What the paper's text says."""
        return cls()


@dataclass
class PublishedCurate:
    """Algorithm 1 of the CURATE paper."""

    door: Door
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
    _count: int = 0
    _deltas: float = 0.0
    _initial: int = 0
    _last: tuple[int, Board] | None = None

    @property
    def claimed(self) -> float:
        """The authors' total leakage."""
        return sum(self.leaked)

    def finish(self) -> None:
        """Their code charges the order in which it finds nothing more to test."""
        if self._last is not None and self.reading.empty:
            order, board = self._last
            if order + 1 < len(board.nodes) - 1 and self.begin(order + 1, board):
                self.end(order + 1, 0, board)

    def begin(self, order: int, board: Board) -> bool:
        """Solve OPT; stop on the totals."""
        spent = self.reading.stop == "after" and self.claimed >= self.total
        if spent or self._deltas > self.reading.delta_total:
            return False
        self._initial = self._initial or len(board.edges)
        if self.reading.count == "order":
            self._count = 0
        left = max(self.total - self.claimed, 0.0)
        self.epsilons.append(self._budget(order, board, left) if left > 0 else 0.0)
        return True

    def _budget(self, order: int, board: Board, left: float) -> float:
        d = len(board.nodes)
        edges = len(board.edges) if self.reading.edges == "current" else self._initial
        degrees = [(len(board.around[a]), len(board.around[b])) for a, b in board.edges]
        orders = range(order, d - 1)
        worst = self.reading.tests == "worst"
        tests = [worst_tests(edges, d, j) if worst else max(likely_tests(degrees, j), 1.0) for j in orders]
        q = Question(board.nodes[0], board.nodes[1], ())
        stated = self.door.sensitivity(PMeasure(self.reading.bound).statistic(q))
        errors = OpenErrors(self.level * self.beta1, stated, self.reading.c, self.rate)
        leak = PublishedLeak(self.reading.delta_prime)
        return optimise(tests, left, errors, leak, start=self.reading.start)[0]

    def decide(self, tests: Sequence[Question], board: Board) -> Iterator[Verdict]:
        """The three-way decision."""
        return ((q, self._cuts(q)) for q in tests)

    def _cuts(self, q: Question) -> bool:
        value = self._value(q)
        if value < UNDEFINED:
            return False
        above, below = value > self.level * (1 + self.beta2), value < self.level * (1 - self.beta1)
        grey = not above and not below
        cut = above or (grey and self.reading.coin == "fair" and self.door.draw() >= 0.5)
        if self.reading.charge == "all" or above or grey:
            self._count += 1
        self.evidence.append(Evidence((q.x, q.y), q.given, "cut" if cut else "kept", value, None, self.level))
        return cut

    def _value(self, q: Question) -> float:
        effective = math.log1p(self.rate * math.expm1(min(self.epsilons[-1], 500.0)))
        # A budget of zero means endless noise: a fair coin between 0 and 1 far from the threshold.
        epsilon = max(effective, 1e-9)
        statistic = PMeasure(self.reading.bound).statistic(q)
        if self.rate == 1:
            return float(self.door.ask(Release(statistic, Laplace(epsilon=epsilon))))
        sample: SampleGate = self.door.open(Sample(rate=self.rate, epsilon=epsilon))
        return float(sample.ask(Release(statistic, Laplace(epsilon=epsilon))))

    def end(self, order: int, asked: int, board: Board) -> None:
        """Advanced composition within the order, basic over orders."""
        self._last = (order, board)
        epsilon = math.log1p(self.rate * math.expm1(min(self.epsilons[-1], 500.0)))
        leak = PublishedLeak(self.reading.delta_prime)
        self.leaked.append(float(leak(np.array([float(self._count)]), np.array([epsilon]))[0]))
        self._deltas += self.reading.delta_prime + self._count * self.reading.delta


@dataclass
class PublishedSvt(Steady):
    """SVT-PC: a noisy threshold, re-drawn with a Gaussian after each hit; misses are free."""

    door: Door
    rows: float
    epsilon: float
    level: float
    claim: Claim
    redraw: Literal["gaussian", "laplace"] = "gaussian"
    scope: Scope = "test"
    evidence: list[Evidence] = field(default_factory=list)
    hits: int = 0
    _threshold: float | None = None

    @property
    def claimed(self) -> float:
        """The authors' epsilon, from the hits that happened."""
        return self.claim.total(self.hits, self.epsilon)

    def begin(self, order: int, board: Board) -> bool:
        """The first threshold."""
        if self._threshold is None:
            self._threshold = self.level + laplace(self.door, 2 * priv_pc_sensitivity(self.rows) / self.epsilon)
        return True

    def decide(self, tests: Sequence[Question], board: Board) -> Iterator[Verdict]:
        """Cut on a hit."""
        return ((q, self._cuts(q)) for q in tests)

    def _cuts(self, q: Question) -> bool:
        scale = priv_pc_sensitivity(self.rows) / self.epsilon
        value = float(self.door.ask(Release(PMeasure("priv-pc").statistic(q), Laplace(scale=8 * scale))))
        assert self._threshold is not None
        if value < UNDEFINED or value < self._threshold:
            return False
        self.hits += 1
        self.evidence.append(Evidence((q.x, q.y), q.given, "cut", value, None, self._threshold))
        noise = normal if self.redraw == "gaussian" else laplace
        self._threshold = self.level + noise(self.door, 2 * scale)
        return True


@dataclass
class PublishedSieve(Steady):
    """Priv-PC: sieve on a sample, examine on the full table; epsilon computed from the sieve's hits."""

    door: Door
    rows: float
    epsilon: float
    level: float
    tweak: float
    rate: float
    claim: Claim
    scope: Scope = "test"
    evidence: list[Evidence] = field(default_factory=list)
    hits: int = 0
    examined: int = 0
    _threshold: float | None = None
    _sample: SampleGate | None = None

    @property
    def claimed(self) -> float:
        """The authors' epsilon, from the hits that happened."""
        return self.claim.total(self.hits, self.epsilon, parts=2)

    def begin(self, order: int, board: Board) -> bool:
        """The first threshold and sample."""
        if self._threshold is None:
            self._refresh()
        return True

    @property
    def _scale(self) -> float:
        """Noise scale of the sieve's threshold."""
        raw = math.log1p(math.expm1(self.epsilon / 2) / self.rate)
        return 2 * priv_pc_sensitivity(self.rows) / math.sqrt(self.rate) / raw

    def _refresh(self) -> None:
        self._threshold = self.level - self.tweak + laplace(self.door, self._scale)
        self._sample = self.door if self.rate == 1 else self.door.open(Sample(rate=self.rate, epsilon=1.0))

    def decide(self, tests: Sequence[Question], board: Board) -> Iterator[Verdict]:
        """Cut what passes both."""
        return ((q, self._cuts(q)) for q in tests)

    def _cuts(self, q: Question) -> bool:
        statistic = PMeasure("priv-pc").statistic(q)
        assert self._sample is not None
        assert self._threshold is not None
        sieved = float(self._sample.ask(Release(statistic, Laplace(scale=2 * self._scale))))
        if sieved < UNDEFINED or sieved < self._threshold:
            return False
        self.hits += 1
        self._refresh()
        self.examined += 1
        scale = priv_pc_sensitivity(self.rows) / (self.epsilon / 2)
        value = float(self.door.ask(Release(statistic, Laplace(scale=scale))))
        cut = value >= self.level
        self.evidence.append(Evidence((q.x, q.y), q.given, "cut" if cut else "kept", value, None, self.level))
        return cut


@dataclass
class PublishedChoice(Steady):
    """EM-PC as re-implemented with Priv-PC: how many edges of a node go, then which.

    The separator of each pair is the set of the largest exact p-value; the score is how many rows
    must go to flip a G test. A chosen edge is not taken out of the draw but given a very low score.
    """

    door: Door
    epsilon: float
    level: float
    claim: Claim
    scope: Scope = "node"
    evidence: list[Evidence] = field(default_factory=list)
    visits: int = 0

    @property
    def claimed(self) -> float:
        """The authors' epsilon, from the visits that happened."""
        return self.claim.total(self.visits, self.epsilon)

    def decide(self, tests: Sequence[Question], board: Board) -> Iterator[Verdict]:
        """Two choices: a number, then that many edges."""
        self.visits += 1
        best = self._best(tests)
        flips = list(map(float, self.door.ask_all([Release(self._flips(q), Exact()) for q, _ in best])))
        number = pick(self.door, self._number_scores(flips, [p for _, p in best]), self.epsilon / 2)
        chosen: list[Question] = []
        for _ in range(number):
            index = pick(self.door, flips, self.epsilon / (2 * number))
            flips[index] = -10_000.0
            if best[index][0] not in chosen:
                chosen.append(best[index][0])
        for q in chosen:
            self.evidence.append(Evidence((q.x, q.y), q.given, "cut"))
        return ((q, q in chosen) for q in tests)

    def _flips(self, q: Question) -> PublishedFlips:
        return PublishedFlips(q.x, q.y, q.given, level=self.level)

    def _best(self, tests: Sequence[Question]) -> list[tuple[Question, float]]:
        """For each partner the set with the largest p-value."""
        found: dict[str, tuple[Question, float]] = {}
        asked = [Release(PMeasure("priv-pc").statistic(q), Exact()) for q in tests]
        for q, answer in zip(tests, self.door.ask_all(asked), strict=True):
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
