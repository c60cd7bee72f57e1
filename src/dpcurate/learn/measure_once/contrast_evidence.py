"""Evidence from released contrasts: what is left of a dependence after regression, against a null that knows its noise.

The block of a and b left after regression on S is compared with its covariance under independence,
sampling part plus privacy noise, and with that plus an effect of plausible size. Without power the
Bayes factor is near 1: an edge is not given up for lack of evidence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from dpcurate.arrays import BoolArray, FloatArray
from dpcurate.learn.measure_once.bayes_factor import Residuals, log_bayes_factors
from dpcurate.learn.measure_once.blocks import Columns, Remembered, kron, kron_sum, subsets
from dpcurate.learn.measure_once.constants import Constants
from dpcurate.learn.measure_once.designs import Setting, Terms
from dpcurate.learn.measure_once.evidence import DependenceEvidence, One, Row
from dpcurate.learn.measure_once.interactions import interaction_residuals
from dpcurate.learn.measure_once.moments import CentralMoments
from dpcurate.learn.measure_once.privacy_noise import privacy_noise
from dpcurate.learn.measure_once.regression import Asked, Regressions

BATCH = 2_000_000
"""Numbers in the largest arrays of one computation: enough to forget what a call costs, and little memory."""
SMALL = 16
"""Tables of so many cells or fewer go together, but for none at all."""


class Sizes(NamedTuple):
    """About how large the arrays of a computation are: powers of four and of two."""

    cells: int
    features: int
    many: int
    width: int
    across: int

    @property
    def numbers(self) -> int:
        """An upper bound for the largest array."""
        cells, features, many = (1 << 2 * x for x in (self.cells, self.features, self.many))
        width, across = 1 << self.width, 1 << self.across
        return max((cells + features) * features, many * cells * width**2, 4 * many * (width * across) ** 2)


class ContrastEvidence(DependenceEvidence):
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
        self._widths = [max(2, (r - 2).bit_length()) for r in moments.levels]
        """Of a column's coordinates, by powers of two; those of two to five levels go together."""
        self.marginal = self._marginal()

    def without_misfit(self) -> ContrastEvidence:
        """The same, but what a regression that lacks terms leaves counts as dependence."""
        return ContrastEvidence(self.moments, replace(self.constants, misfit=0.0))

    def row(self, column: int, given: Columns) -> FloatArray:
        """See DependenceEvidence; where nothing speaks for a link to `column` or `given` marginal evidence stands."""
        return self.rows([(column, given)])[0]

    def one(self, column: int, other: int, given: Columns) -> float:
        """See DependenceEvidence; the same rule as for a row."""
        return self.ones([(column, other, given)])[0]

    def rows(self, wanted: Sequence[Row]) -> list[FloatArray]:
        """See DependenceEvidence."""
        others = [self._dependent(column, given) if given else [] for column, given in wanted]
        found = self.all_of([(some, *key) for some, key in zip(others, wanted, strict=True)])
        rows = [self.marginal[column].copy() for column, _ in wanted]
        for row, (_, given), some, evidence in zip(rows, wanted, others, found, strict=True):
            row[list(given)], row[some] = 0, evidence
        return rows

    def ones(self, wanted: Sequence[One]) -> list[float]:
        """See DependenceEvidence."""
        places = [i for i, (column, other, given) in enumerate(wanted) if self._depends(other, column, given)]
        ones = [float(self.marginal[column, other]) for column, other, _ in wanted]
        found = self.all_of([((wanted[i][1],), wanted[i][0], wanted[i][2]) for i in places])
        for i, evidence in zip(places, found, strict=True):
            ones[i] = float(evidence[0])
        return ones

    def _dependent(self, column: int, given: Columns) -> list[int]:
        """Columns of which something speaks for a link to `column` or to those given."""
        linked = (self.marginal[[column, *given]] > 0).any(axis=0) & self.measured[column]
        linked[list(given)] = False
        return [int(x) for x in np.flatnonzero(linked)]

    def _depends(self, other: int, column: int, given: Columns) -> bool:
        marginal = self.marginal[other]
        return bool(given) and bool(self.measured[column, other]) and any(marginal[x] > 0 for x in (column, *given))

    def conditional(self, others: Sequence[int], column: int, given: Columns) -> FloatArray:
        """The evidence of each of `others` with `column` given a set."""
        return self.all_of([(others, column, given)])[0]

    def all_of(self, wanted: Sequence[tuple[Sequence[int], int, Columns]]) -> list[FloatArray]:
        """The evidence of others with a column given a set, for many of these; what is of like size goes together."""
        found, alike = [np.zeros(len(others)) for others, *_ in wanted], defaultdict(list)
        for place, (others, column, given) in enumerate(wanted):
            for asked, where in self._parts(others, column, given):
                alike[self._sizes(asked)].append((asked, found[place], where))
        for sizes, parts in alike.items():
            for some in batched(parts, sizes):
                residuals = self.stacked([asked for asked, *_ in some])
                evidence = log_bayes_factors(residuals, self.constants.effect_sizes).reshape(len(some), -1)
                for row, (_, target, where) in zip(evidence, some, strict=True):
                    target[where] = row[: len(where)]
        return found

    def _parts(self, others: Sequence[int], column: int, given: Columns) -> Iterator[tuple[Asked, list[int]]]:
        """What has the same terms and about as many levels, and which of the others these are."""
        parts: dict[tuple[int, Columns, Terms], list[int]] = defaultdict(list)
        alone = self._complete and not self._larger[given]
        for place, a in enumerate(others):
            known = given if self._complete else tuple(s for s in given if self.measured[a, s])  # some are forbidden
            terms = subsets(given)[: len(given)] if alone else self.terms(a, column, known)
            parts[self._widths[a], known, terms].append(place)
        for (_, known, terms), where in parts.items():
            setting = self.regressions.designs.settings[known, terms]
            yield Asked(tuple(others[i] for i in where), column, setting), where

    def _sizes(self, asked: Asked) -> Sizes:
        layout = asked.setting.layout
        cells, features = len(layout.cells), len(layout.members)
        return Sizes(
            _by_fours(cells) if cells > SMALL else min(cells, 2),
            _by_fours(features) if cells > SMALL else min(cells, 2),
            0 if len(asked.others) == 1 else max(2, _by_fours(len(asked.others))),
            self._widths[asked.others[0]],
            self._widths[asked.column],
        )

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
        within = self.regressions.single[column, given, subsets(given)].within[0, 0]
        return float(np.trace(within) / np.trace(self.moments.margins[column].covariance))

    def residuals(self, others: Sequence[int], column: int, given: Columns, terms: Terms) -> Residuals:
        """What the terms leave of the dependence of each of `others` with `column`."""
        return self.stacked([Asked(tuple(others), column, self.regressions.designs.settings[given, terms])])

    def stacked(self, asked: Sequence[Asked]) -> Residuals:
        """The same for many of these, one after the other, as many others each as the one that has most."""
        left, right = self.regressions.sides(asked)
        values = self.regressions.observed(left, right) - left.covariances.swapaxes(2, 3) @ right.coefficients
        effect = kron(left.within, right.within)
        weights = left.design.tables[:, None, :, None, None] / self.moments.rows
        null = kron_sum(left.within_cells * weights, right.within_cells[:, 0])
        null = null + privacy_noise(self.regressions, left, right)
        misfits = np.array([self._misfit(a.setting) for a in asked])[:, None, None, None]
        stack, size = left.columns.size, effect.shape[-1]
        null = null + effect * misfits
        return Residuals(
            values.reshape(stack, size), null.reshape(stack, size, size), effect.reshape(stack, size, size)
        )

    def _interaction(self, key: tuple[int, int, int, Columns]) -> float:
        a, b, s, given = key
        terms = self.terms(a, b, given)
        values, null, effect = interaction_residuals(self.regressions, (a, b, s), given, terms)
        residuals = Residuals(
            values, null + effect * self._misfit(self.regressions.designs.settings[given, terms]), effect
        )
        return float(log_bayes_factors(residuals, self.constants.effect_sizes)[0])

    def _misfit(self, setting: Setting) -> float:
        """Variance of what a regression may miss that lacks some of the terms."""
        return self.constants.misfit**2 if setting.lacks_terms else 0.0

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


Part = TypeVar("Part")


def batched(parts: list[Part], sizes: Sizes) -> Iterator[list[Part]]:
    """So many at once that no array becomes large."""
    at_once = max(1, BATCH // sizes.numbers)
    return (parts[start : start + at_once] for start in range(0, len(parts), at_once))


def _by_fours(size: int) -> int:
    """The logarithm to base 4, rounded up."""
    return (max(size - 1, 0).bit_length() + 1) // 2


def _companions(moments: CentralMoments) -> dict[Columns, int]:
    """For each set of two and more the columns, as bits, with which it was measured."""
    companions: dict[Columns, int] = defaultdict(int)
    for members in moments.blocks:
        for place, a in enumerate(members if len(members) > 2 else ()):
            companions[members[:place] + members[place + 1 :]] |= 1 << a
    return dict(companions)
