"""Evidence from released contrasts: what is left of a dependence after regression, against a null that knows its noise.

The block of a and b left after regression on S is compared with its covariance under independence,
sampling part plus privacy noise, and with that plus an effect of plausible size. Without power the
Bayes factor is near 1: an edge is not given up for lack of evidence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpcurate.arrays import BoolArray, FloatArray
from dpcurate.learn.measure_once.bayes_factor import Residuals, log_bayes_factors
from dpcurate.learn.measure_once.blocks import Columns, Remembered, kron, kron_sum, subsets
from dpcurate.learn.measure_once.constants import Constants
from dpcurate.learn.measure_once.interactions import interaction_residuals
from dpcurate.learn.measure_once.moments import CentralMoments
from dpcurate.learn.measure_once.privacy_noise import privacy_noise
from dpcurate.learn.measure_once.regression import Regressions, Terms


class ContrastEvidence:
    """Log Bayes factors of dependence from contrasts of pairs and triples."""

    def __init__(self, moments: CentralMoments, constants: Constants) -> None:
        self.moments, self.constants = moments, constants
        self.regressions = Regressions(moments)
        size = len(moments.levels)
        self.measured: BoolArray = np.array([[moments.measured(a, b) for b in range(size)] for a in range(size)])
        self._complete = bool((self.measured | np.eye(size, dtype=bool)).all())
        self._companions = _companions(moments)
        self._larger: Remembered[Columns, tuple[tuple[Columns, int], ...]] = Remembered(self._larger_terms)
        self._interactions: Remembered[tuple[int, int, int, Columns], float] = Remembered(self._interaction)
        self.marginal = self._marginal()

    def without_misfit(self) -> ContrastEvidence:
        """The same, but what a regression that lacks terms leaves counts as dependence."""
        return ContrastEvidence(self.moments, replace(self.constants, misfit=0.0))

    def row(self, column: int, given: Columns) -> FloatArray:
        """See DependenceEvidence; where nothing speaks for a link to `column` or `given` marginal evidence stands."""
        row: FloatArray = self.marginal[column].copy()
        row[list(given)] = 0
        linked = self.marginal[:, [column, *given]].max(axis=1) > 0
        others = [int(x) for x in np.flatnonzero(linked & self.measured[column]) if x not in given]
        if given and others:
            row[others] = self.conditional(others, column, given)
        return row

    def one(self, column: int, other: int, given: Columns) -> float:
        """See DependenceEvidence; the same rule as for a row."""
        linked = bool(self.marginal[other, [column, *given]].max() > 0)
        if given and linked and self.measured[column, other]:
            return float(self.conditional([other], column, given)[0])
        return float(self.marginal[column, other])

    def conditional(self, others: Sequence[int], column: int, given: Columns) -> FloatArray:
        """The evidence of each of `others` with `column` given a set; those alike are computed together."""
        groups: dict[tuple[int, Columns, Terms], list[int]] = defaultdict(list)
        for place, a in enumerate(others):
            known = given if self._complete else tuple(s for s in given if self.measured[a, s])  # some are forbidden
            groups[self.moments.levels[a], known, self.terms(a, column, known)].append(place)
        evidence = np.zeros(len(others))
        for (_, known, terms), places in groups.items():
            residuals = self.residuals([others[i] for i in places], column, known, terms)
            evidence[places] = log_bayes_factors(residuals, self.constants.effect_sizes)
        return evidence

    def interaction(self, a: int, b: int, given: Columns) -> float:
        """The evidence that a and b depend on each other in another way at other levels of members of `given`."""
        known = tuple(s for s in given if self.measured[a, s] and self.measured[b, s])
        return sum(self._interactions[a, b, s, known] for s in known if self.moments.measured(a, b, s))

    def terms(self, a: int, b: int, given: Columns) -> Terms:
        """What both columns can be regressed on: subsets of `given` that were measured with either."""
        if self._complete:
            singles = subsets(given)[: len(given)]
        else:
            singles = tuple((s,) for s in given if self.measured[a, s] and self.measured[b, s])
        both = 1 << a | 1 << b
        return singles + tuple(u for u, companions in self._larger[given] if companions & both == both)

    def saturated(self, a: int, b: int, given: Columns) -> bool:
        """Whether the pair and every term of its regressions were measured."""
        return bool(self.measured[a, b]) and len(self.terms(a, b, given)) == len(subsets(given))

    def share_left(self, column: int, given: Columns) -> float:
        """How much of a column's variance the indicators of a set leave, all terms used."""
        within = self.regressions.single[column, given, subsets(given)].within[0]
        return float(np.trace(within) / np.trace(self.moments.margins[column].covariance))

    def residuals(self, others: Sequence[int], column: int, given: Columns, terms: Terms) -> Residuals:
        """What the terms leave of the dependence of each of `others`, all of as many levels, with `column`."""
        left = self.regressions.fit(others, given, terms)
        right = self.regressions.single[column, given, terms]
        values = self.regressions.pairs.observed_blocks(others, column)
        values = values - left.covariances.swapaxes(1, 2) @ right.coefficients[0]
        effect = kron(left.within, right.within)
        weights = self.regressions.tables[given][:, None, None] / self.moments.rows
        null = kron_sum(left.within_cells * weights, right.within_cells[0])
        null = null + privacy_noise(self.regressions, others, column, terms, left, right)
        return Residuals(values.reshape(len(others), -1), null + effect * self._misfit(given, terms), effect)

    def _interaction(self, key: tuple[int, int, int, Columns]) -> float:
        a, b, s, given = key
        terms = self.terms(a, b, given)
        values, null, effect = interaction_residuals(self.regressions, (a, b, s), given, terms)
        residuals = Residuals(values, null + effect * self._misfit(given, terms), effect)
        return float(log_bayes_factors(residuals, self.constants.effect_sizes)[0])

    def _misfit(self, given: Columns, terms: Terms) -> float:
        """Variance of what a regression may miss that lacks some of the terms."""
        return self.constants.misfit**2 if len(terms) < len(subsets(given)) else 0.0

    def _marginal(self) -> FloatArray:
        """Evidence with nothing given, a symmetric matrix."""
        marginal = np.zeros(self.measured.shape)
        for b in range(1, len(marginal)):
            others = np.flatnonzero(self.measured[b, :b])
            marginal[b, others] = marginal[others, b] = self.conditional([int(a) for a in others], b, ())
        return marginal

    def _larger_terms(self, given: Columns) -> tuple[tuple[Columns, int], ...]:
        """Subsets of two and more that were measured with further columns, and with which."""
        return tuple((u, self._companions[u]) for u in subsets(given) if u in self._companions)


def _companions(moments: CentralMoments) -> dict[Columns, int]:
    """For each set of two and more the columns, as bits, with which it was measured."""
    companions: dict[Columns, int] = defaultdict(int)
    for members in moments.blocks:
        for place, a in enumerate(members if len(members) > 2 else ()):
            companions[members[:place] + members[place + 1 :]] |= 1 << a
    return dict(companions)
