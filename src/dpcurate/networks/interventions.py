"""Worlds in which some columns are set from outside, or are not in the table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.errors import GraphError, QueryError
from dpcurate.graphs.base_graph import Arrow, Mark, require_known
from dpcurate.graphs.graph import Dag, Skeleton
from dpcurate.graphs.pag import Pag
from dpcurate.graphs.pag_orientation import HIDDEN, HIDDEN_AND_SELECTED, orient_pag
from dpcurate.schema import Schema, did_you_mean


@dataclass(frozen=True, slots=True, eq=False)
class Intervened:
    """`world` with columns set: their parents do not move them any more, and all else is as it was.

    Rows of one seed have the same noise however columns are set, so differences between settings are exact.
    """

    world: SettableWorld
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


# --- a world of which some columns are not in the table ------------------------------------------------


class ObservedWorld(Protocol):
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

    world: ObservedWorld
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


class SettableWorld(ABC):
    """A world whose columns can be set from outside, or hidden."""

    __slots__ = ()
    if TYPE_CHECKING:
        dag: Dag

        @property
        def schema(self) -> Schema:
            """The public facts of its columns."""

    @abstractmethod
    def sample(self, rows: int, *, seed: int, do: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Draw `rows` rows, one array per column; columns in `do` are set."""

    def do(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> Intervened:
        """The world with columns set from outside: `do(X1=2.0).sample(...)`.

        To a level, to one number, or in worlds of numbers alone to one for each row.
        """
        return Intervened(self, {**(values or {}), **more})

    def hide(self, *names: str) -> HiddenWorld:
        """The same world without these columns in its tables, as common causes are missing from real ones."""
        return HiddenWorld(self, names)


# The graph of the visible columns: Richardson and Spirtes (2002), Annals of Statistics 30. Two columns are adjacent if
# and only if the visible ancestors of the two and of what was selected do not separate them. At a there is a tail if
# a is an ancestor of b or of what was selected, an arrowhead otherwise.


def ancestral_graph(dag: Dag, hidden: Iterable[str] = (), selected: Iterable[str] = ()) -> Pag:
    """The maximal ancestral graph (MAG) of the visible columns: every mark as it is, and no circle."""
    kept = tuple(selected)
    skeleton = visible_skeleton(dag, hidden, kept)
    above = ancestors(dag)
    chosen = set(kept).union(*(above[name] for name in kept))
    marks: dict[Arrow, Mark] = {}
    for a, b in skeleton.edges:
        marks[b, a] = "tail" if a in above[b] or a in chosen else "arrow"
        marks[a, b] = "tail" if b in above[a] or b in chosen else "arrow"
    return Pag(skeleton.nodes, marks)


def true_pag(dag: Dag, hidden: Iterable[str] = (), selected: Iterable[str] = ()) -> Pag:
    """The PAG of the visible columns: what every graph has that no sample of them tells from the true one."""
    kept = tuple(selected)
    return orient_pag(visible_skeleton(dag, hidden, kept), rules=HIDDEN_AND_SELECTED if kept else HIDDEN)


def visible_skeleton(dag: Dag, hidden: Iterable[str] = (), selected: Iterable[str] = ()) -> Skeleton:
    """Adjacent visible pairs, and what separates the others."""
    kept, unseen = tuple(selected), set(hidden)
    nodes = _visible(dag, unseen, kept)
    above, edges, separators = ancestors(dag), [], {}
    for a, b in combinations(nodes, 2):
        over = set(above[a]).union(above[b], *(above[name] for name in kept))
        given = tuple(name for name in nodes if name in over and name not in (a, b))
        if dag.d_separated(a, b, (*given, *kept)):
            separators[frozenset((a, b))] = given
        else:
            edges.append((a, b))
    return Skeleton.of(nodes, edges, separators)


def ancestors(dag: Dag) -> dict[str, frozenset[str]]:
    """Of every node, without itself."""
    above: dict[str, frozenset[str]] = {}
    for name in dag.order():
        parents = dag.parents(name)
        above[name] = frozenset(parents).union(*(above[parent] for parent in parents))
    return above


def _visible(dag: Dag, hidden: set[str], selected: tuple[str, ...]) -> tuple[str, ...]:
    for name in (*sorted(hidden), *selected):
        require_known(name, dag.nodes)
    for name in sorted(hidden.intersection(selected)):
        raise GraphError(f"{name!r} cannot be hidden and have chosen the rows at once: say one of the two")
    return tuple(name for name in dag.nodes if name not in hidden and name not in selected)
