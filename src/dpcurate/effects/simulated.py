"""A table simulated along a graph, and what it would have released."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from dpcurate._typing import FloatArray
from dpcurate.effects.links import ColumnLink, MultinomialLogit, NormalLink, OrderedProbit
from dpcurate.graphs.graph import Dag
from dpcurate.learn.measure_once.column_features import Distribution, Features
from dpcurate.learn.measure_once.feature_release import ReleasedFeatures
from dpcurate.networks.network import stream
from dpcurate.queries import BRANCHES, CELLS, FEATURE_STEPS
from dpcurate.schema import Numeric, Ordinal

SKEWED, LONG_TAILED = 0.3, 3.0
"""Beyond this a number is normal on the scale of ranks rather than its own: how far the middle lies from the middle of
the 10 % and 90 % quantiles, over their distance; the range of 90 % of rows over that of 50 % (2.4 if normal)."""
BLURRED, HIDDEN = 0.04, 0.45
"""A larger share of a skewed number should not lie in a stretch of which no more is known; nor of any number, since one
could not tell whether it is skewed."""
CLEAR_SHARE = 5.0
"""A share stands out if it exceeds so many standard deviations of its noise."""
NODES, WEIGHTS = (np.polynomial.hermite_e.hermegauss(9)[i] for i in (0, 1))


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedLevels:
    """Levels: those of a category by its features, those of an order by powers of their place, as many as released."""

    features: Features
    table: FloatArray

    @classmethod
    def of(cls, known: Distribution, features: Features) -> SimulatedLevels:
        """A column of levels as it was released."""
        if not isinstance(known.column, (Numeric, Ordinal)):
            return cls(features, features.values)
        powers = np.vander(np.arange(len(known.shares), dtype=float), features.size + 1, increasing=True)
        weight = np.sqrt(np.maximum(known.shares, 1e-4))[:, None]
        even, _ = np.linalg.qr(weight * powers)
        return cls(features, (even / weight)[:, 1:] * np.sign(even[-1:, 1:]))

    def places(self, values: Any) -> Any:
        """The levels themselves."""
        return values

    def regressors(self, values: Any) -> FloatArray:
        """What the children of these levels regress on."""
        return np.asarray(self.table[values])


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedNumber:
    """A number behind which stands a normal one: itself, moved and scaled, or where it is skewed its rank."""

    features: Features
    low: float
    high: float
    middle: float
    spread: float
    quarters: tuple[float, float] | None
    """The 25 % and 75 % quantiles as released, or others further out if so many rows hold one value."""
    unsure: float
    """How far the noise of a released distribution moves a mean; nothing where that is not used."""
    smooth: bool
    """Whether no place holds many rows."""
    blurred: bool
    """Whether noise hides where in a stretch of many rows they lie, and that matters."""
    ends: FloatArray | None
    """The released distribution function, where a number is normal on the scale of ranks."""

    @classmethod
    def of(cls, known: Distribution, features: Features) -> SimulatedNumber:
        """A number as it was released."""
        column = known.column
        assert isinstance(column, Numeric)
        ends = np.concatenate([[0.0], np.cumsum(known.shares)])
        edges = np.linspace(column.low, column.high, len(ends))
        q: dict[float, float] = dict(
            zip(QUANTILES, np.interp(np.array(QUANTILES) * ends[-1], ends, edges), strict=True)
        )
        lean = abs(q[0.9] + q[0.1] - 2 * q[0.5]) / max(q[0.9] - q[0.1], LEAST_LENGTH)
        tails = (q[0.95] - q[0.05]) / max(q[0.75] - q[0.25], LEAST_LENGTH)
        smooth = known.shares.max() < max(LARGEST_SMOOTH_SHARE, CLEAR_SHARE * known.noise)
        plain = smooth and lean < SKEWED and tails < LONG_TAILED
        spread = max((q[0.84] - q[0.16]) / 2, (column.high - column.low) / len(known.shares))
        coarse = np.linspace(column.low, column.high, 2 * BRANCHES + 1)[1::2]
        unsure = 0.0 if plain else known.noise * float(np.linalg.norm(coarse - q[0.5]))
        return cls(
            features,
            column.low,
            column.high,
            q[0.5],
            spread,
            next(((q[a], q[1 - a]) for a in (0.25, 0.1, 0.05) if q[1 - a] - q[a] > 2 * edges[1] - 2 * edges[0]), None),
            unsure,
            smooth,
            smooth and _largest_blur(known.shares, known.noise) > (HIDDEN if plain else BLURRED),
            None if plain else ends / ends[-1],
        )

    def numbers(self, values: FloatArray) -> FloatArray:
        """From latent values to those of the table."""
        if self.ends is None:
            return np.clip(self.middle + self.spread * values, self.low, self.high)
        return np.interp(ndtr(values), self.ends, np.linspace(self.low, self.high, len(self.ends)))

    def latent(self, numbers: FloatArray) -> FloatArray:
        """And back."""
        numbers = np.clip(numbers, self.low, self.high)
        if self.ends is None:
            return np.asarray((numbers - self.middle) / self.spread)
        rank = np.interp(numbers, np.linspace(self.low, self.high, len(self.ends)), self.ends)
        return np.asarray(ndtri(np.clip(rank, 1e-6, 1 - 1e-6)))

    def width(self, values: FloatArray) -> FloatArray:
        """How far the place of a value reaches on the scale of ranks; nothing where that is not used."""
        if self.ends is None:
            return np.zeros(len(values))
        at, scores = self.places(values), ndtri(np.clip(self.ends, 1e-6, 1 - 1e-6))
        return np.asarray(scores[at + 1] - scores[at])

    def places(self, values: FloatArray) -> Any:
        """The interval that each value lies in; a feature map may have one more place, for missing cells."""
        share = (self.numbers(values) - self.low) / (self.high - self.low)
        return np.clip(np.floor(share * CELLS), 0, CELLS - 1).astype(np.intp)

    def regressors(self, values: FloatArray) -> FloatArray:
        """What the children of these values regress on."""
        if self.smooth or self.ends is None:
            return values[:, None]
        at = self.places(values)
        middle = (self.ends[at] + self.ends[at + 1]) / 2  # the score of a place, not cut at its ends as a feature is
        return np.column_stack([ndtri(np.clip(middle, 1e-6, 1 - 1e-6)), self.features.values[at, 1:]])


def _largest_blur(shares: FloatArray, noise: float) -> float:
    """The largest share of an interval whose parts, were they even, would not stand out of the noise."""
    worst, size = 0.0, 1
    while size < len(shares):
        cells = shares.reshape(size, -1).sum(axis=1)
        worst = max(worst, float(cells[cells < BRANCHES * CLEAR_SHARE * noise].max(initial=0.0)))
        size *= BRANCHES
    return worst


LARGEST_SMOOTH_SHARE = 0.01
"""A number with a place of more than this share is not smooth."""
QUANTILES = (0.05, 0.1, 0.16, 0.25, 0.5, 0.75, 0.84, 0.9, 0.95)
LEAST_LENGTH = 1e-12
SOBOL_BITS = 30


@dataclass(frozen=True, slots=True, eq=False)
class Simulator:
    """Columns along a graph: what each shows, how it follows from its parents, and where its parameters stand."""

    dag: Dag
    names: tuple[str, ...]
    shown: Mapping[str, Any]
    """Levels or a Number."""
    links: Mapping[str, Any]
    """A Link."""
    at: Mapping[str, slice]
    square: float

    @classmethod
    def of(cls, released: ReleasedFeatures, dag: Dag, names: Sequence[str]) -> Simulator:
        """A simulator of all columns in the order of the graph."""
        shown: dict[str, Any] = {}
        for name, known, features in zip(names, released.distributions, released.features, strict=True):
            shown[name] = (SimulatedLevels if known.column.has_levels else SimulatedNumber).of(known, features)
        width = {name: one.regressors(np.zeros(1, dtype=np.intp)).shape[1] for name, one in shown.items()}
        links: dict[str, ColumnLink] = {}
        at, start = {}, 0
        for name, known in zip(names, released.distributions, strict=True):
            links[name] = _link(known, sum(width[p] for p in dag.parents(name)))
            at[name] = slice(start, start + len(links[name].start))
            start = at[name].stop
        return cls(dag, tuple(names), shown, links, at, released.clip.square)

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return max(int(one.stop) for one in self.at.values())

    def together(self, of: str) -> FloatArray:
        """`start` or `prior` of all parameters."""
        return np.concatenate([getattr(self.links[name], of) for name in self.names])

    def rows(
        self,
        parameters: FloatArray,
        even: FloatArray,
        fixed: Mapping[str, Any] | None = None,
        needed: Collection[str] | None = None,
    ) -> dict[str, Any]:
        """Values of every column, or of those needed; those in `fixed` are set from outside."""
        values: dict[str, Any] = dict(fixed or {})
        for name in self.dag.order():
            if name not in values and (needed is None or name in needed):
                given = self.given(name, values, len(even))
                values[name] = self.links[name].draw(parameters[self.at[name]], given, even[:, self.names.index(name)])
        return values

    def given(self, name: str, values: Mapping[str, Any], count: int) -> FloatArray:
        """What a column's parents say to it."""
        parents = [self.shown[p].regressors(values[p]) for p in self.dag.parents(name)]
        return np.column_stack(parents) if parents else np.zeros((count, 0))

    def scores(self, parameters: FloatArray, values: Mapping[str, Any], but: str = "") -> FloatArray:
        """Of every row, by each parameter of columns that were simulated and not set."""
        count = len(next(iter(values.values())))
        made = [
            self.links[x].scores(parameters[self.at[x]], self.given(x, values, count), values[x])
            for x in self.scored(values, but)
        ]
        return np.column_stack(made)

    def scored(self, values: Collection[str], but: str = "") -> list[str]:
        """The columns whose parameters those are, in order."""
        return [x for x in self.names if x != but and x in values]

    def features(self, values: Mapping[str, Any]) -> FloatArray:
        """Features of every row as they are added up: shrunk to one length, in whole steps."""
        each = [self.shown[x].features.values[self.shown[x].places(values[x])] for x in self.names]
        whole = np.rint(np.column_stack(each) * FEATURE_STEPS) / FEATURE_STEPS
        length = np.maximum((whole**2).sum(axis=1), LEAST_LENGTH)
        shrunk = whole * np.minimum(1.0, np.sqrt(self.square / length))[:, None]
        return np.asarray(np.trunc(shrunk * FEATURE_STEPS) / FEATURE_STEPS)

    def expected(self, parameters: FloatArray, name: str, values: Mapping[str, Any]) -> FloatArray:
        """Given its parents, the mean of a number, or the chances of levels, in every row."""
        given, link = self.given(name, values, len(next(iter(values.values())))), self.links[name]
        own = parameters[self.at[name]]
        if not isinstance(link, NormalLink):
            return np.asarray(link.chances(own, given))
        at = link.mean(own, given)[:, None] + link.spread(own) * NODES
        return np.asarray((self.shown[name].numbers(at) @ (WEIGHTS / WEIGHTS.sum()))[:, None])

    def sampled(self, name: str, values: Mapping[str, Any]) -> FloatArray:
        """The same as simulated: a number, or indicators of levels."""
        link = self.links[name]
        if isinstance(link, NormalLink):
            return np.asarray(self.shown[name].numbers(values[name])[:, None])
        return np.asarray((values[name][:, None] == np.arange(len(link.shares))).astype(float))


def _link(known: Distribution, parents: int) -> ColumnLink:
    if not known.column.has_levels:
        return NormalLink(parents)
    return (OrderedProbit if isinstance(known.column, (Numeric, Ordinal)) else MultinomialLogit)(parents, known.shares)


@lru_cache(maxsize=8)
def even_numbers(count: int, columns: int, turn: int = 0) -> FloatArray:
    """Rows of numbers between 0 and 1, spread evenly in all columns together: Sobol's, moved by random bits."""
    from scipy.stats.qmc import Sobol

    places = (Sobol(columns, scramble=False, bits=SOBOL_BITS).random(count) * 2**SOBOL_BITS).astype(np.int64)
    moved = stream(turn, "even numbers").integers(2**SOBOL_BITS, size=columns)
    return np.asarray(((places ^ moved) + 0.5) / 2**SOBOL_BITS)
