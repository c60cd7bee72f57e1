"""Histograms of columns of any kind, and what is made of their cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcurate import _validation
from dpcurate._messages import shown
from dpcurate._typing import IntArray
from dpcurate.errors import QueryError
from dpcurate.queries.limits import clip_of, edges_of
from dpcurate.schema import GRID

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
