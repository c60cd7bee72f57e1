"""Every query: what may be asked of a curator, and what comes back.

A query names a statistic and a release. It is a frozen value of text, numbers, tuples and other
queries, each of exactly the type that stands here (plain.py), so nothing of the analyst's is called
inside the session. That holds for queries that were made by these classes in the session's own process.
Send them from one process to another as data (names, numbers) and make them anew there, never as
pickles: a pickle runs its sender's code and passes by every check made here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

from dpcurate import plain
from dpcurate.accounting import Budget, Privacy
from dpcurate.arrays import FloatArray
from dpcurate.errors import QueryError
from dpcurate.plain import TINY, Number
from dpcurate.schema import Neighbours, Schema
from dpcurate.wording import shown

MOST_CELLS = 10_000_000
"""The largest table that is built; learners leave out tests that would need a larger one."""


def _keep(query: object, **values: object) -> None:
    """Put checked values in place of those given, once, while the query is made."""
    for name, value in values.items():
        object.__setattr__(query, name, value)


def _clip(value: object) -> Number:
    clip = plain.number(value)
    if clip is None or not 1e-9 <= clip <= 1e9:  # squares of a row's entries must not underflow
        raise QueryError(f"clip must be a number between 1e-9 and 1e9, got {shown(value)}")
    return clip


# --- statistics: what is computed from the rows -------------------------------------------------


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows hold each combination of levels, over the full public domain."""

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        _keep(self, columns=plain.columns(self.columns))


@dataclass(frozen=True, slots=True)
class Tables:
    """The counts of each of many sets of columns, in one query: a part for each set, axes in its order.

    The empty set is the row count.
    """

    sets: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        _keep(self, sets=plain.sets(self.sets))
        if not self.sets:
            raise QueryError("tables need at least one set of columns")
        if len(set(map(frozenset, self.sets))) < len(self.sets):
            raise QueryError("a set of columns stands more than once; ask for it once")


@dataclass(frozen=True, slots=True)
class Contrasts:
    """For each set of columns the sum over rows of the product of centred indicators e_x - 1/r.

    The empty set is the row count. `weights` (1 each when not given) shift noise between sets:
    a set of weight w gets noise of scale sigma / w.
    """

    sets: tuple[tuple[str, ...], ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        weights = plain.listed(self.weights, "the weights of contrasts come as a tuple of numbers")
        _keep(self, sets=plain.sets(self.sets))
        _keep(self, weights=tuple(plain.positive("a weight", w) for w in weights) or (1.0,) * len(self.sets))
        if not self.sets:
            raise QueryError("contrasts need at least one set of columns")
        if len(self.weights) != len(self.sets):
            raise QueryError(f"{len(self.sets)} sets need as many weights, got {len(self.weights)}")
        if len({frozenset(s) for s in self.sets}) < len(self.sets):
            raise QueryError("a set of columns stands more than once; ask for it once with a larger weight")


@dataclass(frozen=True, slots=True)
class Moments:
    """The sum over rows of y y^T, y = (1, x), each column scaled to [-1, 1] by its public bounds.

    With `clip`, rows are first shrunk to Euclidean norm `clip`.
    """

    columns: tuple[str, ...]
    clip: float | None = None

    def __post_init__(self) -> None:
        _keep(self, columns=plain.columns(self.columns), clip=None if self.clip is None else _clip(self.clip))
        if not self.columns:
            raise QueryError("moments need at least one column")


NO_ROWS = "the weights of a gradient are rows of numbers"


def _weight(value: object) -> float:
    weight = plain.number(value)
    if weight is None:
        raise QueryError(f"{NO_ROWS}, got {shown(value)} among them")
    if not -1e6 <= weight <= 1e6:
        raise QueryError(f"the weights of a gradient must be finite and at most a million in size, got {shown(value)}")
    return float(weight)


def _matrix(columns: tuple[str, ...], weights: Any) -> tuple[tuple[float, ...], ...]:
    """The weights of a gradient as a square tuple of rows of moderate numbers."""
    rows = [[_weight(w) for w in plain.listed(row, NO_ROWS)] for row in plain.listed(weights, NO_ROWS)]
    d = len(columns)
    if d < 2:
        raise QueryError("a gradient needs at least two columns")
    if len(rows) != d or any(len(row) != d for row in rows):
        raise QueryError(f"a gradient over {d} columns needs a {d} x {d} matrix of weights")
    # So small a weight changes nothing, but its square would vanish, which some engines take for an error.
    return tuple(tuple(0.0 if abs(w) < TINY else w for w in row) for row in rows)


@dataclass(frozen=True, slots=True)
class Gradient:
    """The sum over rows of the off-diagonal of -x (x - W^T x)^T, each row's matrix clipped.

    `weights` is W as a tuple of rows; `clip` bounds the Frobenius norm of every row's matrix.
    """

    columns: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]
    clip: float

    def __post_init__(self) -> None:
        _keep(self, columns=plain.columns(self.columns), clip=_clip(self.clip))
        _keep(self, weights=_matrix(self.columns, self.weights))


@dataclass(frozen=True, slots=True)
class GradientNorms:
    """How many rows have a gradient matrix whose norm falls between public edges, below and above them."""

    columns: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        _keep(self, columns=plain.columns(self.columns), edges=_edges(self.edges))
        _keep(self, weights=_matrix(self.columns, self.weights))


def _edges(given: object) -> tuple[float, ...]:
    numbers = [plain.between(0, e, plain.HUGE) for e in plain.listed(given, "edges must be rising numbers above 0")]
    edges = tuple(0.0 if e is None else float(e) for e in numbers)
    if not edges or min(edges) <= 0 or list(edges) != sorted(set(edges)):
        raise QueryError(f"edges must be rising numbers above 0, got {shown(given)}")
    return edges


FEATURE_STEPS = 1 << 10
"""Integer steps of a feature between 0 and 1."""
BRANCHES = 8
"""Each interval of a number's range is cut into so many at the next depth of a histogram."""
DEEPEST = 4
"""Depth of the finest intervals, BRANCHES**DEEPEST of them: two steps of the grid each."""
LARGEST_FEATURE = 64 * FEATURE_STEPS
MOST_FEATURES = 4096
"""Features of one release: their products, summed as integers, take 128 MB."""


@dataclass(frozen=True, slots=True)
class Histograms:
    """How many rows each column holds where: the counts of its levels, or of a number's intervals.

    A number has a part for each depth from 1 to `depth`: its range cut into BRANCHES, then each of these
    again. If missing cells are its own (missing = 'own'), the first of these parts ends with their count.
    """

    columns: tuple[str, ...]
    depth: int = DEEPEST

    def __post_init__(self) -> None:
        _keep(self, columns=plain.columns(self.columns), depth=plain.number(self.depth))
        if not self.columns:
            raise QueryError("histograms need at least one column")
        if type(self.depth) is not int or not 1 <= self.depth <= DEEPEST:
            raise QueryError(f"the depth of histograms is a whole number from 1 to {DEEPEST}, got {shown(self.depth)}")


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """What a cell of a column becomes: for each of its places a vector of whole numbers, in FEATURE_STEPS.

    The places of a column of levels are its levels; those of a number are equal intervals of its range, as
    many as there are vectors, and last one more for missing cells if they are its own.
    """

    column: str
    vectors: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        (column,) = plain.names(self.column)
        _keep(self, column=column, vectors=_vectors(column, self.vectors))

    @property
    def size(self) -> int:
        """How many features a cell becomes."""
        return len(self.vectors[0])


def _vectors(column: str, given: Any) -> tuple[tuple[int, ...], ...]:
    rows = given.tolist() if type(given) is np.ndarray else plain.listed(given, "features come as a tuple of vectors")
    vectors = tuple(tuple(plain.listed(row, "a vector of features is a tuple of whole numbers")) for row in rows)
    even = len({len(vector) for vector in vectors}) == 1 and len(vectors[0]) > 0
    if not even or any(type(x) is not int or abs(x) > LARGEST_FEATURE for vector in vectors for x in vector):
        raise QueryError(
            f"the features of {column!r} come as vectors of one length, of whole numbers of at most "
            f"{LARGEST_FEATURE} steps in size"
        )
    return vectors


def _maps(given: Any) -> tuple[FeatureMap, ...]:
    maps = plain.listed(given, "features come as a tuple of feature maps")
    if not maps or any(type(m) is not FeatureMap for m in maps):
        raise QueryError("features come as a tuple of at least one FeatureMap (itself, not a subclass of it)")
    plain.columns(tuple(m.column for m in maps))
    size = sum(m.size for m in maps)
    if size > MOST_FEATURES:
        raise QueryError(f"{size} features are more than the {MOST_FEATURES} of one release: ask for fewer columns")
    return maps


@dataclass(frozen=True, slots=True)
class FeatureMoments:
    """The sums over rows of the features z and of their products, each row shrunk to Euclidean norm `clip`.

    Three parts: z; the products z_i z_j for i < j, row by row; the squares. `singles` is the weight of the
    first: its noise has scale sigma / singles. Squares weigh SQUARES, so noise in both kinds of products is that of
    a symmetric Gaussian matrix.
    """

    maps: tuple[FeatureMap, ...]
    clip: float
    singles: float = 1.0

    def __post_init__(self) -> None:
        _keep(self, maps=_maps(self.maps), clip=_clip(self.clip), singles=plain.positive("singles", self.singles))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(m.column for m in self.maps)


@dataclass(frozen=True, slots=True)
class FeatureNorms:
    """How many rows have features whose squared norm falls between public edges, below and above them."""

    maps: tuple[FeatureMap, ...]
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        _keep(self, maps=_maps(self.maps), edges=_edges(self.edges))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(m.column for m in self.maps)


@dataclass(frozen=True, slots=True)
class PairStatistic:
    """One number about x and y in the strata of `given`: what a test of conditional independence asks for."""

    x: str
    y: str
    given: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        x, y, *given = plain.names(self.x, self.y, *plain.listed(self.given, "columns come as a tuple of names"))
        _keep(self, x=x, y=y, given=tuple(given))


@dataclass(frozen=True, slots=True)
class Tau(PairStatistic):
    """Kendall's association of x and y in the strata of `given`: the sum of 2 C_k / (n_k - 1)."""


@dataclass(frozen=True, slots=True)
class KendallP(PairStatistic):
    """The p-value of Kendall's test with a proved sensitivity; needs the schema's public row count."""


Statistic = (
    Counts
    | Tables
    | Contrasts
    | Moments
    | Gradient
    | GradientNorms
    | Histograms
    | FeatureMoments
    | FeatureNorms
    | PairStatistic
)


# --- releases: how it may leave the session ----------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace:
    """Discrete Laplace noise, by its scale or by the epsilon it is to cost."""

    epsilon: float | None = None
    scale: float | None = None

    def __post_init__(self) -> None:
        _keep(self, **_one_of(epsilon=self.epsilon, scale=self.scale))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian:
    """Discrete Gaussian noise, by sigma, by the rho it is to cost, or by (epsilon, delta).

    The last is the analytic calibration of Balle and Wang 2018, equation (1) of the CURATE paper.
    """

    sigma: float | None = None
    rho: float | None = None
    epsilon: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        _keep(self, **_one_of(sigma=self.sigma, rho=self.rho, epsilon=self.epsilon))
        if (self.epsilon is None) != (self.delta is None):
            raise QueryError("Gaussian noise by epsilon needs delta, and delta goes with epsilon only")
        if self.delta is not None:
            delta = plain.between(0, self.delta, 1)
            if delta is None:
                raise QueryError(f"delta must lie between 0 and 1, got {shown(self.delta)}")
            _keep(self, delta=delta)


@dataclass(frozen=True, slots=True)
class Exact:
    """No noise: NOT PRIVATE, of infinite cost, for public data and for comparison."""


def _one_of(**choices: float | None) -> dict[str, Number]:
    given = {name: value for name, value in choices.items() if value is not None}
    if len(given) != 1:
        raise QueryError(f"give exactly one of {', '.join(choices)}")
    return {name: plain.positive(name, value) for name, value in given.items()}


Noise = Laplace | Gaussian | Exact


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Query(Generic[T_co]):
    """What may be asked, by the type of what comes back: a `Query[Answer]` or a `Query[int]`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Release(Query["Answer"]):
    """Ask for a statistic with noise."""

    statistic: Statistic
    noise: Noise

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise QueryError(f"a release needs a statistic, such as Counts or Tau, got {shown(self.statistic)}")
        if type(self.noise) not in (Laplace, Gaussian, Exact):
            raise QueryError(f"a release needs noise: Laplace, Gaussian or Exact, got {shown(self.noise)}")


@dataclass(frozen=True, slots=True)
class Score:
    """How far a scalar statistic lies beyond a public threshold, in units of its sensitivity.

    'above' is (abs(value) - threshold) / sensitivity, 'below' its negative: one row moves it by at
    most 1 whatever the statistic, so scores of different tests may be compared.
    """

    statistic: PairStatistic
    threshold: float
    side: Literal["above", "below"]

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, PairStatistic):
            raise QueryError("a score needs a statistic that is one number, such as Tau or KendallP")
        threshold, side = plain.number(self.threshold), plain.text(self.side)
        if threshold is None or not -1e12 <= threshold <= 1e12:
            raise QueryError(f"a threshold must be a finite number, at most 1e12 in size, got {shown(self.threshold)}")
        if side not in ("above", "below"):
            raise QueryError(f"side must be 'above' or 'below', got {shown(self.side)}")
        _keep(self, threshold=threshold, side=side)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose(Query[int]):
    """Pick the candidate of (about) the highest score by the exponential mechanism.

    With `or_none` a further candidate of score 0, meaning none of them, takes part; its index is
    the number of candidates.
    """

    candidates: tuple[Score, ...]
    epsilon: float
    or_none: bool = False

    def __post_init__(self) -> None:
        candidates = plain.listed(self.candidates, "candidates come as a tuple of scores")
        _keep(self, candidates=candidates, epsilon=plain.positive("epsilon", self.epsilon))
        if not self.candidates:
            raise QueryError("choosing needs at least one candidate")
        if type(self.or_none) is not bool:
            raise QueryError(f"or_none must be True or False, got {shown(self.or_none)}")
        if any(type(c) is not Score for c in self.candidates):
            raise QueryError("candidates are scores (Score itself, not a subclass of it)")


# --- gates: interactive mechanisms that keep a secret in the session ---------------------------------


class Gate(Generic[T_co]):
    """An interactive mechanism that may be opened, by the type of what is opened."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AboveThreshold(Gate["ThresholdGate"]):
    """A gate that tells of each score whether it is positive, until the first yes; then it closes."""

    epsilon: float

    def __post_init__(self) -> None:
        _keep(self, epsilon=plain.positive("epsilon", self.epsilon))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(Gate["SampleGate"]):
    """A gate to a fresh secret Poisson sample of the rows.

    What is asked of the sample may cost `epsilon` altogether, in pure epsilon; the curator is
    charged the smaller, amplified epsilon at once, when the gate opens.
    """

    rate: float
    epsilon: float

    def __post_init__(self) -> None:
        rate = plain.number(self.rate)
        if rate is None or not 0 < rate <= 1:
            raise QueryError(f"a sampling rate lies above 0 and at most at 1, got {shown(self.rate)}")
        _keep(self, rate=rate, epsilon=plain.positive("epsilon", self.epsilon))


# --- answers ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A released statistic: its parts and the standard deviation of the noise in each.

    Tables and Contrasts have a part for each set of columns; every other statistic has one.
    """

    parts: tuple[FloatArray, ...]
    scales: tuple[float, ...]

    @property
    def value(self) -> FloatArray:
        """The only part."""
        (part,) = self.parts
        return part

    @property
    def scale(self) -> float:
        """The noise of the only part."""
        (scale,) = self.scales
        return scale

    def __float__(self) -> float:
        return float(self.value)


class ThresholdGate(Protocol):
    """An open above-threshold gate."""

    @property
    def closed(self) -> bool:
        """Whether it has said yes."""

    def ask(self, score: Score) -> bool:
        """Whether the score is (about) positive."""

    def first(self, scores: Sequence[Score]) -> int | None:
        """The index of the first score to which it says yes, which closes it; None if there is none."""


class SampleGate(Protocol):
    """An open gate to a secret sample."""

    def ask(self, query: Query[T]) -> T:
        """Ask of the sample."""

    def open(self, gate: Gate[T]) -> T:
        """Open a gate on the sample."""


@runtime_checkable
class Offering(Protocol):
    """A queryable that has some sets of contrasts and can get no others."""

    def offered(self, sets: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Those of the sets that it has."""


class Queryable(Protocol):
    """What a learner sees: public facts, and answers."""

    @property
    def schema(self) -> Schema:
        """The public description of the table."""

    @property
    def neighbours(self) -> Neighbours:
        """The relation the guarantee is about."""

    @property
    def budget(self) -> Budget:
        """The ceiling, and the currency it is counted in."""

    @property
    def remaining(self) -> float:
        """What is left of the budget, in its currency."""

    def ask(self, query: Query[T]) -> T:
        """An Answer to a Release, an index to a Choose."""

    def ask_all(self, queries: Sequence[Query[T]]) -> list[T]:
        """Answers to many queries, charged together and read in one pass where the source can."""

    def open(self, gate: Gate[T]) -> T:
        """Open an interactive gate."""

    def reserve(self, amount: float) -> AbstractContextManager[object]:
        """Set aside budget for many small queries with one durable entry in the ledger."""

    def sensitivity(self, statistic: Statistic) -> float:
        """How far one unit can move a statistic (L1), from public facts."""

    def draw(self) -> float:
        """A fresh public random number in [0, 1), for decisions that need no secret."""

    def privacy(self) -> Privacy:
        """What has been spent on what, in public words."""
