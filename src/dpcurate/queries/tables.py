"""Counts of levels, and contrasts of them."""

from __future__ import annotations

from dataclasses import dataclass

from dpcurate import _validation
from dpcurate.errors import QueryError

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
