"""Every statistic that a release may name: tables of levels, pairs, sums of numbers, features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcurate import _validation
from dpcurate._messages import shown
from dpcurate._typing import IntArray
from dpcurate._validation import TINY, Number
from dpcurate.errors import QueryError
from dpcurate.schema import GRID

MOST_CELLS = 10_000_000
"""The largest table that is built; learners leave out tests that would need a larger one."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows hold each combination of levels, over the full public domain."""

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        _validation.keep(self, columns=_validation.columns(self.columns))


@dataclass(frozen=True, slots=True)
class Tables:
    """The counts of each of many sets of columns, in one query: a part for each set, axes in its order.

    The empty set is the row count.
    """

    sets: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        _validation.keep(self, sets=_validation.sets(self.sets))
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
        weights = _validation.listed(self.weights, "the weights of contrasts come as a tuple of numbers")
        _validation.keep(self, sets=_validation.sets(self.sets))
        _validation.keep(
            self, weights=tuple(_validation.positive("a weight", w) for w in weights) or (1.0,) * len(self.sets)
        )
        if not self.sets:
            raise QueryError("contrasts need at least one set of columns")
        if len(self.weights) != len(self.sets):
            raise QueryError(f"{len(self.sets)} sets need as many weights, got {len(self.weights)}")
        if len({frozenset(s) for s in self.sets}) < len(self.sets):
            raise QueryError("a set of columns stands more than once; ask for it once with a larger weight")


# --- pairs: what tests of conditional independence ask for ----------------------------------------------


@dataclass(frozen=True, slots=True)
class PairStatistic:
    """One number about x and y in the strata of `given`: what a test of conditional independence asks for."""

    x: str
    y: str
    given: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        x, y, *given = _validation.names(
            self.x, self.y, *_validation.listed(self.given, "columns come as a tuple of names")
        )
        _validation.keep(self, x=x, y=y, given=tuple(given))


@dataclass(frozen=True, slots=True)
class Tau(PairStatistic):
    """Kendall's association of x and y in the strata of `given`: the sum of 2 C_k / (n_k - 1)."""


@dataclass(frozen=True, slots=True)
class KendallP(PairStatistic):
    """The p-value of Kendall's test with a proved sensitivity; needs the schema's public row count."""


# --- bounds of clips and edges --------------------------------------------------------------------------


def clip_of(value: object) -> Number:
    """The norm that rows are shrunk to, or a refusal."""
    clip = _validation.number(value)
    if clip is None or not 1e-9 <= clip <= 1e9:  # squares of a row's entries must not underflow
        raise QueryError(f"clip must be a number between 1e-9 and 1e9, got {shown(value)}")
    return clip


def edges_of(given: object) -> tuple[float, ...]:
    """Rising numbers above 0, or a refusal."""
    numbers = [
        _validation.between(0, e, _validation.HUGE)
        for e in _validation.listed(given, "edges must be rising numbers above 0")
    ]
    edges = tuple(0.0 if e is None else float(e) for e in numbers)
    if not edges or min(edges) <= 0 or list(edges) != sorted(set(edges)):
        raise QueryError(f"edges must be rising numbers above 0, got {shown(given)}")
    return edges


# --- sums over rows of numbers --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Means:
    """What the means of numbers are made of: the row count, then for each column the sum of its cells.

    Cells are scaled to [-1, 1] by the public bounds. A column with missing cells of its own (missing = 'own') has
    one more part, how many are missing, after its sum.
    """

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        _validation.keep(self, columns=_validation.columns(self.columns))
        if not self.columns:
            raise QueryError("means need at least one column")


@dataclass(frozen=True, slots=True)
class Moments:
    """The sum over rows of y y^T, y = (1, x), each column scaled to [-1, 1] by its public bounds.

    With `clip`, rows are first shrunk to Euclidean norm `clip`.
    """

    columns: tuple[str, ...]
    clip: float | None = None

    def __post_init__(self) -> None:
        _validation.keep(
            self, columns=_validation.columns(self.columns), clip=None if self.clip is None else clip_of(self.clip)
        )
        if not self.columns:
            raise QueryError("moments need at least one column")


NO_ROWS = "the weights of a gradient are rows of numbers"


def _weight(value: object) -> float:
    weight = _validation.number(value)
    if weight is None:
        raise QueryError(f"{NO_ROWS}, got {shown(value)} among them")
    if not -1e6 <= weight <= 1e6:
        raise QueryError(f"the weights of a gradient must be finite and at most a million in size, got {shown(value)}")
    return float(weight)


def _matrix(columns: tuple[str, ...], weights: Any) -> tuple[tuple[float, ...], ...]:
    """The weights of a gradient as a square tuple of rows of moderate numbers."""
    rows = [[_weight(w) for w in _validation.listed(row, NO_ROWS)] for row in _validation.listed(weights, NO_ROWS)]
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
        _validation.keep(self, columns=_validation.columns(self.columns), clip=clip_of(self.clip))
        _validation.keep(self, weights=_matrix(self.columns, self.weights))


@dataclass(frozen=True, slots=True)
class GradientNorms:
    """How many rows have a gradient matrix whose norm falls between public edges, below and above them."""

    columns: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        _validation.keep(self, columns=_validation.columns(self.columns), edges=edges_of(self.edges))
        _validation.keep(self, weights=_matrix(self.columns, self.weights))


# --- features -------------------------------------------------------------------------------------------


FEATURE_STEPS = 1 << 10
"""Integer steps of a feature between 0 and 1."""


BRANCHES = 8
"""Each interval of a number's range is cut into so many at the next depth of a histogram."""


DEEPEST = 4
"""Depth of the finest intervals, BRANCHES**DEEPEST of them: two steps of the grid each."""


CELLS = BRANCHES**DEEPEST
"""Finest intervals of a number's range."""
LARGEST_FEATURE = 64 * FEATURE_STEPS


MOST_FEATURES = 4096
"""Features of one release: their products, summed as integers, take 128 MB."""


def places() -> IntArray:
    """For each fine interval the whole number of grid steps, from -GRID to GRID, that stands for what it holds.

    Cells are put on the grid toward the middle, two grid points to an interval: below the middle it holds what lies
    from 2 j to 2 j + 2 steps above the low end, above the middle one step more. The outermost two stand for the ends.
    """
    j = np.arange(CELLS, dtype=np.int64)
    steps = np.where(j < CELLS // 2 - 1, 2 * j + 1, 2 * j + 2)
    steps[0], steps[-1] = 0, 2 * GRID
    return np.asarray(steps - GRID, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Histograms:
    """How many rows each column holds where: the counts of its levels, or of a number's intervals.

    A number has a part for each depth from 1 to `depth`: its range cut into BRANCHES, then each of these
    again. If missing cells are its own (missing = 'own'), the first of these parts ends with their count.
    """

    columns: tuple[str, ...]
    depth: int = DEEPEST

    def __post_init__(self) -> None:
        _validation.keep(self, columns=_validation.columns(self.columns), depth=_validation.number(self.depth))
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
        (column,) = _validation.names(self.column)
        _validation.keep(self, column=column, vectors=_vectors(column, self.vectors))

    @property
    def size(self) -> int:
        """How many features a cell becomes."""
        return len(self.vectors[0])


def _vectors(column: str, given: Any) -> tuple[tuple[int, ...], ...]:
    rows = (
        given.tolist()
        if type(given) is np.ndarray
        else _validation.listed(given, "features come as a tuple of vectors")
    )
    vectors = tuple(tuple(_validation.listed(row, "a vector of features is a tuple of whole numbers")) for row in rows)
    even = len({len(vector) for vector in vectors}) == 1 and len(vectors[0]) > 0
    if not even or any(type(x) is not int or abs(x) > LARGEST_FEATURE for vector in vectors for x in vector):
        raise QueryError(
            f"the features of {column!r} come as vectors of one length, of whole numbers of at most "
            f"{LARGEST_FEATURE} steps in size"
        )
    return vectors


def _maps(given: Any) -> tuple[FeatureMap, ...]:
    maps = _validation.listed(given, "features come as a tuple of feature maps")
    if not maps or any(type(m) is not FeatureMap for m in maps):
        raise QueryError("features come as a tuple of at least one FeatureMap (itself, not a subclass of it)")
    _validation.columns(tuple(m.column for m in maps))
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
        _validation.keep(
            self, maps=_maps(self.maps), clip=clip_of(self.clip), singles=_validation.positive("singles", self.singles)
        )

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
        _validation.keep(self, maps=_maps(self.maps), edges=edges_of(self.edges))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(m.column for m in self.maps)


# --- all statistics that a release may name -------------------------------------------------------------


Statistic = (
    Counts
    | Tables
    | Contrasts
    | Means
    | Moments
    | Gradient
    | GradientNorms
    | Histograms
    | FeatureMoments
    | FeatureNorms
    | PairStatistic
)
