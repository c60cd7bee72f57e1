"""Noised values that edge tests decide by: released tables and statistics, and how far they may be off."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.accounting import before_sampling
from dpcurate.errors import BudgetExceeded
from dpcurate.learn.constraint.budget_plan import Errors, GaussianErrors, LaplaceErrors, likely_tables, likely_tests
from dpcurate.learn.constraint.edge_decisions import Measure, TauMeasure, beyond, normal_quantile
from dpcurate.learn.constraint.independence import turned
from dpcurate.learn.constraint.pc_search import PairQuestion, WorkingGraph
from dpcurate.queries import Answer, Counts, Gaussian, Laplace, Noise, Queryable, Release, Sample, Statistic

# Tests of conditional independence on noised tables: G, chi-squared and Spearman with a null that knows the noise.
#
# A table is x by y by strata; every cell holds a count and independent noise of a known standard deviation s.
# With p and q the released margins of a stratum and A_p = I - p 1', the residual D = A_p N A_q' has, under
# independence, covariance T S_p (x) S_q from sampling (S_p = diag p - p p') and s^2 A_p A_p' (x) A_q A_q' from the
# noise, to first order. Each statistic is a quadratic form in D, so its mean and variance follow, and a scaled
# chi-squared distribution of the same two is its null (Satterthwaite 1946; Kifer and Rogers 2017). At s = 0 these are
# the usual tests. All of it is post-processing of released numbers.

REACH = 3.0
"""A stratum is read if its rows exceed so many times the noise of their sum: below, its margins are noise."""
LAPLACE_EXCESS = 3.0
"""The excess kurtosis of Laplace noise; Gaussian noise has none."""


@dataclass(frozen=True, slots=True)
class Form:
    """A quadratic form in the cells: its value, and its mean and variance under independence."""

    value: float
    mean: float
    variance: float

    def tail(self) -> float:
        """P(a scaled chi-squared variable of this mean and variance > value); 1 where nothing varies."""
        from scipy.special import chdtrc

        if not self.mean > 0 or not self.variance > 0:
            return 1.0
        scale = self.variance / (2 * self.mean)
        return float(chdtrc(self.mean / scale, max(self.value, 0.0) / scale))


@dataclass(frozen=True, slots=True)
class Strata:
    """The strata of a noised table that hold more than noise: cells, totals and margins of each."""

    cells: FloatArray
    totals: FloatArray
    x: FloatArray
    y: FloatArray
    noise: float
    fourth: float

    @classmethod
    def of(cls, table: FloatArray, deviation: float, excess: float = 0.0) -> Strata:
        """`excess` is the noise's excess kurtosis, so that `fourth` is its fourth cumulant."""
        cells = np.moveaxis(table.reshape(*table.shape[:2], -1), 2, 0).astype(np.float64)
        totals = cells.sum(axis=(1, 2))
        read = totals > max(REACH * deviation * math.sqrt(cells[0].size), 1.0)
        cells, totals = cells[read], totals[read]
        x, y = _shares(cells.sum(axis=2)), _shares(cells.sum(axis=1))
        return cls(cells, totals, x, y, deviation**2, excess * deviation**4)

    @property
    def residuals(self) -> FloatArray:
        """D = A_p N A_q'."""
        return np.asarray(_centring(self.x) @ self.cells @ _centring(self.y).swapaxes(1, 2))


def _shares(margin: FloatArray) -> FloatArray:
    kept = np.maximum(margin, 0.0)
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))


def _centring(p: FloatArray) -> FloatArray:
    """A_p = I - p 1' of every stratum."""
    return np.asarray(np.eye(p.shape[1]) - p[:, :, None])


def _sampling_noise(p: FloatArray) -> FloatArray:
    """S_p = diag p - p p' of every stratum."""
    return np.asarray(p[:, :, None] * np.eye(p.shape[1]) - p[:, :, None] * p[:, None])


def _noised(p: FloatArray) -> FloatArray:
    """A_p A_p' of every stratum."""
    a = _centring(p)
    return np.asarray(a @ a.swapaxes(1, 2))


@cache
def _contrasts(levels: int) -> FloatArray:
    """An orthonormal basis of the vectors that sum to 0."""
    basis, _ = np.linalg.qr(np.eye(levels)[:, 1:] - 1 / levels)
    return np.asarray(basis)


def _axes(p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coordinates U' in which the noise is white and sampling diagonal, with its variances, of every stratum."""
    basis = _contrasts(p.shape[1])
    white = np.linalg.inv(np.linalg.cholesky(basis.T @ _noised(p) @ basis))
    spread, turn = np.linalg.eigh(white @ (basis.T @ _sampling_noise(p) @ basis) @ white.swapaxes(1, 2))
    return turn.swapaxes(1, 2) @ white @ basis.T @ _centring(p), np.maximum(spread, 0.0)


def chi_squared(strata: Strata) -> Form:
    """Pearson's statistic in axes where residuals are independent, each weighted by sampling's share of its variance.

    With Z a residual, v = g + s^2 its variance and g the part of sampling it is the sum of g Z^2 / v^2.
    """
    (u, spread_x), (w, spread_y) = _axes(strata.x), _axes(strata.y)
    z = u @ strata.cells @ w.swapaxes(1, 2)
    g = strata.totals[:, None, None] * spread_x[:, :, None] * spread_y[:, None]
    v = g + strata.noise
    weight = np.divide(g, v**2, out=np.zeros_like(v), where=v > 1e-9)
    share = weight * v
    diagonal = (u**2).swapaxes(1, 2) @ weight @ w**2
    variance = 2 * (share**2).sum() + strata.fourth * (diagonal**2).sum()
    return Form(float((weight * z**2).sum()), float(share.sum()), float(variance))


def likelihood_ratio(strata: Strata) -> Form:
    """G of counts and expectations that are both raised by s^2: noise of variance s^2 is taken for as many rows.

    To second order it is the sum of D^2 / (E + s^2), whose moments calibrate it.
    """
    residuals = strata.residuals
    expected = np.maximum(strata.cells - residuals + strata.noise, 0.0)
    raised = np.maximum(strata.cells + strata.noise, 0.0)
    there = expected > 1e-9
    ratio = np.divide(raised, expected, out=np.ones_like(raised), where=there & (raised > 0))
    value = 2 * (raised * np.log(ratio) - np.where(there, raised - expected, 0.0)).sum()
    weight = np.divide(1.0, expected, out=np.zeros_like(expected), where=there)
    return Form(float(value), *_moments(strata, weight))


def _moments(strata: Strata, weight: FloatArray) -> tuple[float, float]:
    """Mean and variance of the sum of weight D^2: the trace of W K, and twice that of its square."""
    n = strata.totals[:, None, None]
    sampled_x, sampled_y, noised_x, noised_y = (f(p) for f in (_sampling_noise, _noised) for p in (strata.x, strata.y))
    # K = n (S_p x S_q) + s^2 (N_p x N_q), and its square has three products of the same form.
    noise = np.full_like(n, strata.noise)
    terms = [
        (n * n, sampled_x**2, sampled_y**2),
        (2 * n * noise, sampled_x * noised_x, sampled_y * noised_y),
        (noise * noise, noised_x**2, noised_y**2),
    ]
    square = sum(float((c * a * (weight @ b @ weight.swapaxes(1, 2))).sum()) for c, a, b in terms)
    diagonal_x, diagonal_y, white_x, white_y = (
        np.diagonal(m, axis1=1, axis2=2) for m in (sampled_x, sampled_y, noised_x, noised_y)
    )
    own = n * diagonal_x[:, :, None] * diagonal_y[:, None] + strata.noise * white_x[:, :, None] * white_y[:, None]
    lever = (_centring(strata.x) ** 2).swapaxes(1, 2) @ weight @ _centring(strata.y) ** 2
    return float((weight * own).sum()), 2 * square + strata.fourth * float((lever**2).sum())


def spearman(strata: Strata) -> Form:
    """The square of a pooled rank correlation; strata are weighted as is best for one correlation in all."""
    a, b = _ranks(strata.x), _ranks(strata.y)
    spread = np.sqrt((strata.x * a**2).sum(axis=1) * (strata.y * b**2).sum(axis=1))
    v = strata.totals * spread**2 + strata.noise * (a**2).sum(axis=1) * (b**2).sum(axis=1)
    weight = np.divide(strata.totals * spread, v, out=np.zeros_like(v), where=v > 1e-9)
    value = float((weight * np.einsum("kx,kxy,ky->k", a, strata.cells, b)).sum())
    variance = float((weight**2 * v).sum())
    fourth = strata.fourth * float((weight**4 * (a**4).sum(axis=1) * (b**4).sum(axis=1)).sum())
    return Form(value**2, variance, 2 * variance**2 + fourth)


def _ranks(p: FloatArray) -> FloatArray:
    """Mid-ranks of levels as shares, centred."""
    return np.asarray(np.cumsum(p, axis=1) - p / 2 - 0.5)


NOISED_TESTS: dict[str, Callable[[Strata], Form]] = {
    "g": likelihood_ratio,
    "chi-squared": chi_squared,
    "spearman": spearman,
}


def p_value(statistic: str, table: FloatArray, deviation: float, excess: float = 0.0) -> float:
    """The p-value of a noised table, x by y by any number of others; 1 if no stratum holds more than noise."""
    strata = Strata.of(table, deviation, excess)
    return NOISED_TESTS[statistic](strata).tail() if len(strata.totals) else 1.0


NoisedValue = tuple[float, float]
"""A released value and the standard deviation of the noise in it."""


class NoisedValues(Protocol):
    """Where the values of tests come from. A test at `epsilon` costs epsilon^2 / 2 in rho, or epsilon."""

    def ask(self, tests: Sequence[PairQuestion], epsilon: float) -> Iterator[NoisedValue]:
        """The value of every test, charged together; as many as can be paid where not all can."""

    def sampled(self, test: PairQuestion, epsilon: float, rate: float) -> NoisedValue:
        """The value of a test on a fresh secret sample, on the scale of the whole table."""

    def cut(self, level: float) -> float:
        """Where on the scale of values a p-value equals a level."""

    def beyond(self, value: float, level: float) -> float:
        """How far a value lies on the independent side of a level."""

    def errors(self, graph: WorkingGraph, orders: Sequence[int], margins: tuple[float, float]) -> Errors:
        """OPT's two errors as functions of the epsilons of some orders."""

    def steps(self, graph: WorkingGraph, order: int) -> float:
        """At most how many charges an order takes."""


@dataclass(frozen=True, slots=True)
class PairValues:
    """A pair statistic with Laplace noise, and a threshold that does not know the noise."""

    queryable: Queryable
    measure: Measure

    def ask(self, tests: Sequence[PairQuestion], epsilon: float) -> Iterator[NoisedValue]:
        """The noised values of the tests, asked together where the budget allows."""
        asked = [Release(self.measure.statistic(q), Laplace(epsilon=epsilon)) for q in tests]
        try:
            answers: Iterable[Answer] = self.queryable.ask_all(asked)
        except BudgetExceeded:  # nothing was charged
            answers = map(self.queryable.ask, asked)
        return map(self.read, answers)

    def sampled(self, test: PairQuestion, epsilon: float, rate: float) -> NoisedValue:
        """The noised value of a test on a fresh secret sample of the rows."""
        answer = _sampled(self.queryable, self.measure.statistic(test), epsilon, rate)
        # On a sample g is smaller; bring it to the scale of the threshold.
        factor = 1 / math.sqrt(rate) if isinstance(self.measure, TauMeasure) else 1.0
        return self.read(Answer((answer.value * factor,), (answer.scale * factor,)))

    def read(self, answer: Answer) -> NoisedValue:
        """The value of a test and the scale of its noise."""
        return float(answer), answer.scale

    def cut(self, level: float) -> float:
        """The value below which a pair counts as independent at this level."""
        return self.measure.cut(level)

    def beyond(self, value: float, level: float) -> float:
        """How far a value lies on the side of dependence."""
        return beyond(self.measure, value, level)

    def errors(self, graph: WorkingGraph, orders: Sequence[int], margins: tuple[float, float]) -> Errors:
        """The error curves that a budget plan needs."""
        tests = (self.measure.statistic(PairQuestion(a, b, ())) for a, b in graph.edges)
        return LaplaceErrors(*margins, max(self.queryable.sensitivity(t) for t in tests))

    def steps(self, graph: WorkingGraph, order: int) -> float:
        """How many releases this order is likely to need."""
        return likely_tests(graph.degrees(graph.open_edges), order)


def _sampled(queryable: Queryable, statistic: Statistic, epsilon: float, rate: float) -> Answer:
    raw = before_sampling(epsilon=epsilon, rate=rate)
    return queryable.open(Sample(rate=rate, epsilon=raw)).ask(Release(statistic, Laplace(epsilon=raw)))


def normal_score(p: float) -> float:
    """The z with P(N(0, 1) > z) = p, kept finite."""
    return normal_quantile(min(max(p, 1e-300), 1 - 1e-16))


@dataclass(frozen=True, slots=True)
class NoisedTau(PairValues):
    """Tau in normal scores under a null that knows the noise: sampling gives at most n / 2.25, noise the rest."""

    rows: float

    def read(self, answer: Answer) -> NoisedValue:
        """The value of a test and the scale of its noise."""
        deviation = math.sqrt(self.rows / 2.25 + answer.scale**2)
        p = math.erfc(abs(float(answer)) / deviation / math.sqrt(2))
        return normal_score(p), answer.scale / deviation

    def cut(self, level: float) -> float:
        """The value below which a pair counts as independent at this level."""
        return normal_quantile(level)

    def beyond(self, value: float, level: float) -> float:
        """How far a value lies on the side of dependence."""
        return self.cut(level) - value

    def errors(self, graph: WorkingGraph, orders: Sequence[int], margins: tuple[float, float]) -> Errors:
        """The error curves that a budget plan needs."""
        tests = (self.measure.statistic(PairQuestion(a, b, ())) for a, b in graph.edges)
        largest = max(self.queryable.sensitivity(t) for t in tests)
        return LaplaceErrors(*margins, largest * 1.5 / math.sqrt(self.rows))


@dataclass(frozen=True, slots=True)
class TableValues:
    """Normal scores of p-values that are read off noised tables, with a null that knows the noise.

    Tests over the same columns share a table, which is paid once.
    """

    queryable: Queryable
    statistic: str
    rows: float
    released: dict[tuple[str, ...], Answer] = field(default_factory=dict)

    def ask(self, tests: Sequence[PairQuestion], epsilon: float) -> Iterator[NoisedValue]:
        """The noised values of the tests, asked together where the budget allows."""
        noise = self._noise(epsilon)
        wanted = [c for c in dict.fromkeys(map(_columns, tests)) if c not in self.released]
        try:
            answers = self.queryable.ask_all([Release(Counts(c), noise) for c in wanted])
            self.released.update(zip(wanted, answers, strict=True))
        except BudgetExceeded:  # nothing was charged: one by one, as far as the budget goes
            pass
        excess = LAPLACE_EXCESS if isinstance(noise, Laplace) else 0.0
        for test in tests:
            columns = _columns(test)
            if columns not in self.released:
                self.released[columns] = self.queryable.ask(Release(Counts(columns), noise))
            yield self._read(test, self.released[columns], excess)

    def sampled(self, test: PairQuestion, epsilon: float, rate: float) -> NoisedValue:
        """The noised value of a test on a fresh secret sample of the rows."""
        return self._read(test, _sampled(self.queryable, Counts(_columns(test)), epsilon, rate), LAPLACE_EXCESS)

    def _noise(self, epsilon: float) -> Noise:
        return Laplace(epsilon=epsilon) if self.queryable.budget.pure else Gaussian(rho=epsilon**2 / 2)

    def _read(self, test: PairQuestion, answer: Answer, excess: float) -> NoisedValue:
        table = turned(answer.value, _columns(test), test)
        p = p_value(self.statistic, table, answer.scale, excess)
        ratio = answer.scale * math.sqrt(table.size / max(1.0, float(table.sum())))
        return normal_score(p), ratio / math.hypot(1.0, ratio)

    def cut(self, level: float) -> float:
        """The value below which a pair counts as independent at this level."""
        return normal_quantile(level)

    def beyond(self, value: float, level: float) -> float:
        """How far a value lies on the side of dependence."""
        return self.cut(level) - value

    def errors(self, graph: WorkingGraph, orders: Sequence[int], margins: tuple[float, float]) -> Errors:
        """Against a sampling deviation of 1 the noise of a cell weighs sqrt(cells / rows)."""
        levels = [column.size for column in self.queryable.schema.columns]
        cells = np.exp(np.mean(np.log(levels)) * (np.asarray(orders) + 2))
        move = self.queryable.sensitivity(Counts(graph.nodes[:1])) * np.sqrt(cells / self.rows)
        return (LaplaceErrors if self.queryable.budget.pure else GaussianErrors)(*margins, move)

    def steps(self, graph: WorkingGraph, order: int) -> float:
        """How many releases this order is likely to need."""
        return likely_tables(graph.reach(), order)


def _columns(test: PairQuestion) -> tuple[str, ...]:
    return tuple(sorted((test.x, test.y, *test.given)))
