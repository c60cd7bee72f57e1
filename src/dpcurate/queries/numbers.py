"""Sums over rows of numbers: means, moments and gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpcurate import _validation
from dpcurate._messages import shown
from dpcurate._validation import TINY
from dpcurate.errors import QueryError
from dpcurate.queries.limits import clip_of, edges_of


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
