"""Evidence from released contrasts: what is left of a dependence after regression, against a null that knows its noise.

The block of a and b left after regression on S is compared with its covariance under independence,
sampling part plus privacy noise, and with that plus an effect of plausible size. Without power the
Bayes factor is near 1: an edge is not given up for lack of evidence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple, TypeVar

import numpy as np

from dpcurate._typing import BoolArray, FloatArray
from dpcurate.learn.measure_once.bayes_factor import Residuals, log_bayes_factors
from dpcurate.learn.measure_once.blocks import Columns, Remembered, kron, kron_sum, subsets
from dpcurate.learn.measure_once.central_moments import CentralMoments
from dpcurate.learn.measure_once.constants import DETERMINED, MATTERS, MOST_CELLS, Constants
from dpcurate.learn.measure_once.designs import Setting, Terms
from dpcurate.learn.measure_once.evidence import DependenceEvidence, One, Row
from dpcurate.learn.measure_once.interactions import Crossed, interaction_residuals
from dpcurate.learn.measure_once.log_linear import LEAST_DIVISOR, excess, member_effects, misfit_variances
from dpcurate.learn.measure_once.regression import RegressedColumns, Regression, Regressions, privacy_noise

MOST_NUMBERS = 2_000_000
"""In the large arrays of one computation: enough to forget what a call costs, and little memory."""
CALL = 10_000
"""One more computation takes about as long as so many numbers."""

Part = TypeVar("Part")


class BatchSizes(NamedTuple):
    """The largest sizes of what is computed together, for each conditioning set."""

    cells: int
    features: int
    others: int = 1
    """Columns whose dependence with another one is asked for."""
    width: int = 1
    """Coordinates of the widest of these."""
    across: int = 1
    """Coordinates of that other one."""
    third: int = 1
    """Coordinates of a third one at whose levels they may depend in another way."""

    @property
    def numbers(self) -> int:
        """In the large arrays."""
        of_cells = self.cells * (self.width * self.third) ** 2
        of_residuals = 4 * (self.width * self.across * self.third) ** 2
        return (self.cells + self.features) * self.features + self.others * (of_cells + of_residuals)

    def joined(self, other: BatchSizes) -> BatchSizes:
        """Large enough for both."""
        return BatchSizes(*map(max, self, other))


def batches(alike: Mapping[BatchSizes, list[Part]]) -> Iterator[list[Part]]:
    """Parts of like sizes, and of no more numbers than one computation may have."""
    for sizes, parts in _joined(alike):
        at_once = max(1, MOST_NUMBERS // sizes.numbers)
        yield from (parts[start : start + at_once] for start in range(0, len(parts), at_once))


def _joined(alike: Mapping[BatchSizes, list[Part]]) -> list[tuple[BatchSizes, list[Part]]]:
    """The largest first; each goes with the first for which padding costs less than a call of its own."""
    groups: list[tuple[BatchSizes, int, list[Part]]] = []
    for sizes, own in sorted(((sizes, sizes.numbers) for sizes in alike), key=lambda pair: -pair[1]):
        parts = alike[sizes]
        for place, (largest, most, others) in enumerate(groups):
            if len(parts) * (most - own) >= CALL:  # too small for it, however alike
                continue
            both = largest.joined(sizes)
            numbers = both.numbers
            if len(others) * (numbers - most) + len(parts) * (numbers - own) < CALL:
                groups[place] = both, numbers, [*others, *parts]
                break
        else:
            groups.append((sizes, own, parts))
    return [(sizes, parts) for sizes, _, parts in groups]


MOST_CROSSED = 600_000
"""Numbers in the large arrays of an interaction that is looked at: beyond that it takes long and finds little."""


class ContrastEvidence(DependenceEvidence):
    """Log Bayes factors of dependence from contrasts of pairs and triples."""

    def __init__(self, moments: CentralMoments, constants: Constants, regressions: Regressions | None = None) -> None:
        self.moments = moments
        self.constants = constants
        self.regressions: Regressions = regressions or Regressions(moments)
        size = len(moments.levels)
        self.measured: BoolArray = np.array([[moments.measured(a, b) for b in range(size)] for a in range(size)])
        self._hardly_measured = frozenset(np.flatnonzero(self.measured.sum(axis=1) < 2).tolist())
        """Columns that no more than one other was measured with, as copies."""
        rest = [a for a in range(size) if a not in self._hardly_measured]
        self._complete = bool((self.measured | np.eye(size, dtype=bool))[np.ix_(rest, rest)].all())
        """Whether all the rest were measured with each other."""
        self._companions = _companions(moments)
        self._larger: Remembered[Columns, tuple[tuple[Columns, int], ...]] = Remembered(self._larger_terms)
        self._shares_left: Remembered[tuple[int, Columns], float] = Remembered(self._share_left)
        self._interactions: dict[tuple[int, int, int, Columns], float] = {}
        self._widths = [max(2, (r - 2).bit_length()) for r in moments.levels]
        """Of a column's coordinates, by powers of two; those of two to five levels go together."""
        self.marginal: FloatArray = self._marginal()

    def without_misfit(self, *weaker: float) -> ContrastEvidence:
        """The same, but what a regression that lacks terms leaves counts as dependence, and so do weaker effects."""
        sizes = (*weaker, *self.constants.effect_sizes)
        constants = replace(self.constants, misfit=0.0, interaction=0.0, effect_sizes=sizes)
        return ContrastEvidence(self.moments, constants, self.regressions)

    def row(self, column: int, given: Columns) -> FloatArray:
        """See DependenceEvidence; where nothing speaks for a link to `column` or `given` marginal evidence stands."""
        return self.many([(column, given)], [])[0][0]

    def one(self, column: int, other: int, given: Columns) -> float:
        """See DependenceEvidence; the same rule as for a row."""
        return self.many([], [(column, other, given)])[1][0]

    def many(self, rows: Sequence[Row], ones: Sequence[One]) -> tuple[list[FloatArray], list[float]]:
        """See DependenceEvidence."""
        dependent = [self._dependent(column, given) if given else [] for column, given in rows]
        places = [i for i, (column, other, given) in enumerate(ones) if self._depends(other, column, given)]
        wanted = [(some, *key) for some, key in zip(dependent, rows, strict=True)]
        found = self.all_of([*wanted, *(((ones[i][1],), ones[i][0], ones[i][2]) for i in places)])
        of_rows = [self.marginal[column].copy() for column, _ in rows]
        for row, (_, given), some, evidence in zip(of_rows, rows, dependent, found, strict=False):
            row[list(given)], row[some] = 0, evidence
        of_ones = [float(self.marginal[column, other]) for column, other, _ in ones]
        for i, evidence in zip(places, found[len(rows) :], strict=True):
            of_ones[i] = float(evidence[0])
        return of_rows, of_ones

    def cells(self, given: Columns) -> int:
        """See DependenceEvidence."""
        return prod(self.moments.levels[s] for s in given)

    def _fitting(self, column: int, given: Columns) -> Columns:
        """Without those that say least of a column, if the table of all of them is too large."""
        while self.cells(given) > MOST_CELLS:
            weakest = min(given, key=lambda s: float(self.marginal[column, s]))
            given = tuple(s for s in given if s != weakest)
        return given

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
            for asked, where in self._parts(others, column, self._fitting(column, given)):
                alike[self._sizes(asked)].append((asked, found[place], where))
        for some in batches(alike):
            residuals = self.stacked([asked for asked, *_ in some])
            evidence = log_bayes_factors(residuals, self.constants.effect_sizes).reshape(len(some), -1)
            for row, (_, target, where) in zip(evidence, some, strict=True):
                target[where] = row[: len(where)]
        return found

    def _parts(
        self, others: Sequence[int], column: int, given: Columns
    ) -> Iterator[tuple[RegressedColumns, list[int]]]:
        """What has the same terms and about as many levels, and which of the others these are."""
        parts: dict[tuple[int, Columns, Terms], list[int]] = defaultdict(list)
        complete = self._all_measured((*others, column, *given))
        alone = complete and not any(companions >> column & 1 for _, companions in self._larger[given])
        for place, a in enumerate(others):
            known = given if complete else self._known(a, column, given)
            terms = subsets(given)[: len(given)] if alone else self.terms(a, column, known)
            parts[self._widths[a], known, terms].append(place)
        for (_, known, terms), where in parts.items():
            setting = self.regressions.designs.settings[known, terms]
            yield RegressedColumns(tuple(others[i] for i in where), column, setting), where

    def _all_measured(self, columns: Columns) -> bool:
        """Whether it is plain that all of these were measured with each other."""
        return self._complete and (not self._hardly_measured or self._hardly_measured.isdisjoint(columns))

    def _known(self, a: int, b: int, given: Columns) -> Columns:
        """Those of a set that were measured with both: some pairs may be forbidden."""
        return tuple(s for s in given if self.measured[a, s] and self.measured[b, s])

    def _sizes(self, asked: RegressedColumns) -> BatchSizes:
        layout, levels = asked.setting.layout, self.moments.levels
        width = max(levels[a] for a in asked.others) - 1
        return BatchSizes(len(layout.cells), len(layout.members), len(asked.others), width, levels[asked.column] - 1)

    def interactions(self, asked: Sequence[tuple[int, int, Columns]]) -> list[float]:
        """The evidence that a and b depend on each other in another way at other levels of members of a set."""
        crossed = [self._crossed(*key) for key in asked]
        missing, alike = {c for some in crossed for c in some} - self._interactions.keys(), defaultdict(list)
        for a, b, s, given in sorted(missing):
            key = Crossed((a, b, s), self.regressions.designs.settings[given, self.terms(a, b, given)])
            alike[self._sizes_crossed(key)].append(key)
            self._interactions[a, b, s, given] = 0.0
        for some in batches({sizes: keys for sizes, keys in alike.items() if sizes.numbers <= MOST_CROSSED}):
            for (triple, setting), value in zip(some, self._interactions_of(some), strict=True):
                self._interactions[*triple, setting.given] = float(value)
        return [sum(self._interactions[c] for c in some) for some in crossed]

    def _crossed(self, a: int, b: int, given: Columns) -> list[tuple[int, int, int, Columns]]:
        """With each member of a set at whose levels something was measured."""
        known = self._known(a, b, self._fitting(b, given))
        return [(a, b, s, known) for s in known if self.moments.measured(a, b, s)]

    def _sizes_crossed(self, crossed: Crossed) -> BatchSizes:
        layout, widths = crossed.setting.layout, (self.moments.levels[x] - 1 for x in crossed.triple)
        return BatchSizes(len(layout.cells), len(layout.members), 1, *widths)

    def _interactions_of(self, crossed: Sequence[Crossed]) -> FloatArray:
        values, null, effect = interaction_residuals(self.regressions, crossed)
        misfits = np.array([self._misfit(c.setting) for c in crossed])[:, None, None]
        return log_bayes_factors(Residuals(values, null + effect * misfits, effect), self.constants.effect_sizes)

    def terms(self, a: int, b: int, given: Columns) -> Terms:
        """What both columns can be regressed on: subsets of `given` that were measured with either."""
        if self._all_measured((a, b, *given)):
            singles = subsets(given)[: len(given)]
        else:
            singles = tuple((s,) for s in given if self.measured[a, s] and self.measured[b, s])
        both = 1 << a | 1 << b
        return singles + tuple(u for u, companions in self._larger[given] if companions & both == both)

    def saturated(self, a: int, b: int, given: Columns) -> bool:
        """Whether the pair and every term of its regressions were measured."""
        return bool(self.measured[a, b]) and len(self.terms(a, b, given)) == len(subsets(given))

    def determined(self, column: int, given: Columns) -> bool:
        """Whether a set leaves next to nothing of a column."""
        return self._shares_left[column, given] < DETERMINED

    def _share_left(self, key: tuple[int, Columns]) -> float:
        """How much of a column's variance the indicators of a set leave, all terms used."""
        column, given = key
        within = self.regressions.single[column, given, subsets(given)].within[0, 0]
        return float(np.trace(within) / np.trace(self.moments.margins[column].covariance))

    def residuals(self, others: Sequence[int], column: int, given: Columns, terms: Terms) -> Residuals:
        """What the terms leave of the dependence of each of `others` with `column`."""
        return self.stacked([RegressedColumns(tuple(others), column, self.regressions.designs.settings[given, terms])])

    def stacked(self, asked: Sequence[RegressedColumns]) -> Residuals:
        """The same for many of these, one after the other, as many others each as the one that has most."""
        left, right = self.regressions.sides(asked)
        values = self.regressions.observed(left, right) - left.covariances @ right.coefficients.swapaxes(2, 3)
        effect = kron(left.within, right.within)
        weights = left.design.tables[:, None, None, None] / self.moments.rows
        null = kron_sum(left.within_cells * weights, right.within_cells[:, 0])
        null = null + privacy_noise(self.regressions, left, right)
        settings, (least, most) = [a.setting for a in asked], self.constants.misfit_bounds
        lacking = np.array([setting.lacks_terms for setting in settings])
        if lacking.any() and self.constants.interaction:
            missed = self._missed(settings, left, right)
            if self.constants.log_linear:
                noise = np.trace(null, axis1=2, axis2=3) / np.maximum(np.trace(effect, axis1=2, axis2=3), LEAST_DIVISOR)
                values = values - excess(self.regressions, settings, (left, right), missed > MATTERS * noise)
            null = null + effect * (np.clip(missed, least**2, most**2) * lacking[:, None])[:, :, None, None]
        stack, size = left.columns.size, effect.shape[-1]
        return Residuals(
            values.reshape(stack, size), null.reshape(stack, size, size), effect.reshape(stack, size, size)
        )

    def _missed(self, settings: Sequence[Setting], left: Regression, right: Regression) -> FloatArray:
        """Variance of what regressions may miss that lack some of the terms."""
        spread, constants = self.regressions.designs.pairs.spread, self.constants
        effects = member_effects(left, spread), member_effects(right, spread)
        return misfit_variances(settings, *effects, constants.interaction, constants.most_effect)

    def _misfit(self, setting: Setting) -> float:
        """Variance of what the regressions of an interaction may miss that lack some of the terms."""
        return self.constants.misfit**2 if setting.lacks_terms else 0.0

    def _marginal(self) -> FloatArray:
        """Evidence with nothing given, a symmetric matrix."""
        marginal = np.zeros(self.measured.shape)
        others = [[int(a) for a in np.flatnonzero(row[:b])] for b, row in enumerate(self.measured)]
        for b, evidence in enumerate(self.all_of([(some, b, ()) for b, some in enumerate(others)])):
            marginal[b, others[b]] = marginal[others[b], b] = evidence
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
