"""A world of which some columns are not in the table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

from dpcurate.errors import QueryError
from dpcurate.graphs.graph import Dag
from dpcurate.graphs.latent import ancestral_graph, true_pag
from dpcurate.graphs.pag import Pag
from dpcurate.schema import Schema, did_you_mean


class World(Protocol):
    """A graph, the public facts of its columns, and rows."""

    @property
    def dag(self) -> Dag:
        """The true graph."""

    @property
    def schema(self) -> Schema:
        """The schema of the rows."""

    def sample(self, rows: int, *, seed: int) -> Any:
        """Rows drawn with this seed."""


@dataclass(frozen=True, slots=True, eq=False)
class HiddenWorld:
    """The same rows as `world` draws, without the hidden columns; `dag` is the whole graph, `pag` what can be found."""

    world: World
    hidden: tuple[str, ...]

    def __post_init__(self) -> None:
        nodes = self.world.dag.nodes
        for name in self.hidden:
            if name not in nodes:
                raise QueryError(f"there is no column {name!r} to hide{did_you_mean(name, nodes)}")
        if len(set(self.hidden)) == len(nodes):
            raise QueryError("every column would be hidden: leave some to be seen")

    @property
    def dag(self) -> Dag:
        """The true graph, hidden columns included."""
        return self.world.dag

    @property
    def nodes(self) -> tuple[str, ...]:
        """The visible columns."""
        return tuple(name for name in self.dag.nodes if name not in self.hidden)

    @property
    def pag(self) -> Pag:
        """The true PAG of the visible columns."""
        return true_pag(self.dag, self.hidden)

    @property
    def ancestral(self) -> Pag:
        """The true ancestral graph of the visible columns, every mark as it is."""
        return ancestral_graph(self.dag, self.hidden)

    @property
    def schema(self) -> Schema:
        """Of the visible columns."""
        whole = self.world.schema
        return replace(whole, columns=tuple(column for column in whole.columns if column.name not in self.hidden))

    def sample(self, rows: int, *, seed: int) -> dict[str, Any]:
        """Draw `rows` rows, one array per visible column."""
        drawn = self.world.sample(rows, seed=seed)
        return {name: drawn[name] for name in self.nodes}

    def hide(self, *names: str) -> HiddenWorld:
        """With these columns hidden too."""
        return HiddenWorld(self.world, (*self.hidden, *(name for name in names if name not in self.hidden)))
