"""A world in which some columns are set from outside: what would happen, which no table of the world itself shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.errors import QueryError
from dpcurate.graphs.graph import Dag
from dpcurate.schema import did_you_mean


class Settable(Protocol):
    """A world that draws rows with some columns set."""

    @property
    def dag(self) -> Dag:
        """The true graph."""

    def sample(self, rows: int, *, seed: int, do: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Rows drawn with this seed, with columns set by `do`."""


@dataclass(frozen=True, slots=True, eq=False)
class Intervened:
    """`world` with columns set: their parents do not move them any more, and all else is as it was.

    Rows of one seed have the same noise however columns are set, so differences between settings are exact.
    """

    world: Settable
    values: Mapping[str, Any]

    def __post_init__(self) -> None:
        check_set(self.values, self.world.dag.nodes)

    def sample(self, rows: int, *, seed: int) -> dict[str, Any]:
        """Draw `rows` rows, one array per column."""
        return self.world.sample(rows, seed=seed, do=self.values)


def set_to(value: Any, rows: int) -> FloatArray:
    """A column of one number, or of those that are given for each row."""
    return np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), rows))


def check_set(values: Mapping[str, Any], nodes: tuple[str, ...]) -> None:
    """A QueryError unless columns are there, and at least one is set."""
    if not values:
        raise QueryError("do needs a column and its value: do(smoke='yes'), or do({'smoke': 'yes'})")
    for name in values:
        if name not in nodes:
            raise QueryError(f"there is no column {name!r} to set{did_you_mean(name, nodes)}")
