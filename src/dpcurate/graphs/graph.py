"""The three graph values: a skeleton with its separators, a CPDAG and a DAG.

All three have `nodes`, `arrows` (directed), `lines` (undirected) and `edges` (both, without
direction), so code that only looks need not ask which one it holds. They are equal when their
nodes (in order), arrows and lines are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcurate.errors import GraphError
from dpcurate.graphs.checks import (
    Arrow,
    Edge,
    checked_arrows,
    checked_edges,
    checked_nodes,
    require_known,
    topological,
)
from dpcurate.graphs.separation import Family

Separators = Mapping[Edge, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Skeleton:
    """Which pairs are adjacent and, for pairs that are not, a set that separates them if one is known."""

    nodes: tuple[str, ...]
    edges: frozenset[Edge]
    separators: Separators = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        nodes = checked_nodes(self.nodes)
        edges = checked_edges(set(nodes), self.edges)
        _put(self, nodes=nodes, edges=edges, separators=_checked_separators(nodes, edges, self.separators))

    @classmethod
    def of(
        cls,
        nodes: Iterable[str],
        edges: Iterable[Iterable[str]] = (),
        separators: Mapping[Edge, Iterable[str]] | None = None,
    ) -> Skeleton:
        """From any iterables, edges as pairs."""
        found = tuple(nodes)
        given = {pair: tuple(names) for pair, names in (separators or {}).items()}
        return cls(found, checked_edges(set(found), edges), given)

    def __reduce__(self) -> tuple[Any, ...]:
        # A mapping proxy cannot be pickled.
        return Skeleton, (self.nodes, self.edges, dict(self.separators))

    @property
    def arrows(self) -> frozenset[Arrow]:
        """None: a skeleton has no directions."""
        return frozenset()

    @property
    def lines(self) -> frozenset[Edge]:
        """All edges."""
        return self.edges

    @property
    def skeleton(self) -> Skeleton:
        """Itself."""
        return self

    def separator(self, a: str, b: str) -> tuple[str, ...] | None:
        """The recorded separator of the pair, None where there is none."""
        return self.separators.get(frozenset((a, b)))

    def neighbours(self, node: str) -> tuple[str, ...]:
        """Nodes that share an edge with this one, in node order."""
        return _neighbours(self, node)

    def adjacency(self) -> npt.NDArray[np.int8]:
        """Symmetric, 1 for an edge."""
        return _adjacency(self)

    def to_networkx(self) -> Any:
        """An undirected networkx Graph; separators stay behind."""
        return _to_networkx(self, "Graph", "skeleton")

    def __str__(self) -> str:
        return _describe(self)

    def _repr_html_(self) -> str:
        return _drawn(self)


@dataclass(frozen=True, slots=True)
class Cpdag:
    """Arrows that every DAG of the class has, and lines whose direction is open.

    Also holds what noisy evidence or background knowledge make of it, so it need not be the
    CPDAG of some DAG; but it has no directed cycle, and one edge at most between two nodes.
    """

    nodes: tuple[str, ...]
    arrows: frozenset[Arrow]
    lines: frozenset[Edge]

    def __post_init__(self) -> None:
        nodes = checked_nodes(self.nodes)
        arrows, lines = checked_arrows(set(nodes), self.arrows), checked_edges(set(nodes), self.lines, "line")
        for pair in sorted(sorted(pair) for pair in lines & _pairs(arrows)):
            raise GraphError(f"{pair[0]!r} and {pair[1]!r} are joined by an arrow and by a line; keep one")
        topological(nodes, arrows)
        _put(self, nodes=nodes, arrows=arrows, lines=lines)

    @classmethod
    def of(cls, nodes: Iterable[str], arrows: Iterable[Arrow] = (), lines: Iterable[Iterable[str]] = ()) -> Cpdag:
        """From any iterables, arrows and lines as pairs."""
        found = tuple(nodes)
        known = set(found)
        return cls(found, checked_arrows(known, arrows), checked_edges(known, lines, "line"))

    @property
    def edges(self) -> frozenset[Edge]:
        """Adjacent pairs, by an arrow or a line."""
        return self.lines | _pairs(self.arrows)

    @property
    def skeleton(self) -> Skeleton:
        """The adjacent pairs alone, without separators."""
        return Skeleton(self.nodes, self.edges)

    def parents(self, node: str) -> tuple[str, ...]:
        """Nodes with an arrow into this one, in node order."""
        return _parents(self, node)

    def neighbours(self, node: str) -> tuple[str, ...]:
        """Nodes that share an arrow or a line with this one, in node order."""
        return _neighbours(self, node)

    def adjacency(self) -> npt.NDArray[np.int8]:
        """[i, j] is 1 for an arrow from i to j; a line has 1 both ways."""
        return _adjacency(self)

    def to_networkx(self) -> Any:
        """A networkx DiGraph; a line is two opposite arcs."""
        return _to_networkx(self, "DiGraph", "cpdag")

    def __str__(self) -> str:
        return _describe(self)

    def _repr_html_(self) -> str:
        return _drawn(self)


@dataclass(frozen=True, slots=True)
class Dag:
    """A directed acyclic graph."""

    nodes: tuple[str, ...]
    arrows: frozenset[Arrow]
    _family: Family = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        nodes = checked_nodes(self.nodes)
        arrows = checked_arrows(set(nodes), self.arrows)
        _put(self, nodes=nodes, arrows=arrows, _family=Family.of(topological(nodes, arrows), arrows))

    @classmethod
    def of(cls, nodes: Iterable[str], arrows: Iterable[Arrow] = ()) -> Dag:
        """From any iterables, arrows as pairs."""
        found = tuple(nodes)
        return cls(found, checked_arrows(set(found), arrows))

    @property
    def lines(self) -> frozenset[Edge]:
        """None: a DAG has only arrows."""
        return frozenset()

    @property
    def edges(self) -> frozenset[Edge]:
        """Adjacent pairs."""
        return _pairs(self.arrows)

    @property
    def skeleton(self) -> Skeleton:
        """The adjacent pairs alone, without separators."""
        return Skeleton(self.nodes, self.edges)

    def order(self) -> tuple[str, ...]:
        """Parents before children; among free nodes the earliest listed."""
        return tuple(self._family.place)

    def parents(self, node: str) -> tuple[str, ...]:
        """Nodes with an arrow into this one, in node order."""
        return _parents(self, node)

    def neighbours(self, node: str) -> tuple[str, ...]:
        """Parents and children, in node order."""
        return _neighbours(self, node)

    def d_separated(self, a: str, b: str, given: Iterable[str] = ()) -> bool:
        """Whether `given` blocks every trail between a and b."""
        names = tuple(given)
        for name in (a, b, *names):
            require_known(name, self._family.place)
        if a == b or a in names or b in names:
            raise GraphError(f"{a!r}, {b!r} and the given {list(names)} must not overlap")
        return self._family.separated(a, b, names)

    def cpdag(self) -> Cpdag:
        """The CPDAG of all DAGs that imply the same independences."""
        from dpcurate.graphs.orient import dag_to_cpdag  # orient is built on this module

        return dag_to_cpdag(self)

    def adjacency(self) -> npt.NDArray[np.int8]:
        """[i, j] is 1 for an arrow from i to j."""
        return _adjacency(self)

    def to_networkx(self) -> Any:
        """A networkx DiGraph."""
        return _to_networkx(self, "DiGraph", "dag")

    def __str__(self) -> str:
        return _describe(self)

    def _repr_html_(self) -> str:
        return _drawn(self)


Graph = Skeleton | Cpdag | Dag


def ordered_edges(graph: Graph) -> list[tuple[str, str, str]]:
    """Every edge once as (a, "->" or "--", b), in node order: the same for equal graphs."""
    place = {name: i for i, name in enumerate(graph.nodes)}
    lines = [(*sorted(pair, key=place.__getitem__), "--") for pair in graph.lines]
    found = [(a, "->", b) for a, b in graph.arrows] + [(a, mark, b) for a, b, mark in lines]
    return sorted(found, key=lambda edge: (place[edge[0]], place[edge[2]]))


def _put(graph: Graph, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(graph, name, value)


def _pairs(arrows: Iterable[Arrow]) -> frozenset[Edge]:
    return frozenset(frozenset(pair) for pair in arrows)


def _checked_separators(nodes: tuple[str, ...], edges: frozenset[Edge], given: Separators) -> Separators:
    known, found = set(nodes), {}
    for pair, names in given.items():
        (key,) = checked_edges(known, [pair], "edge")
        a, b = sorted(key)
        for name in names:
            require_known(name, known)
        if key in edges:
            raise GraphError(f"{a!r} and {b!r} have an edge and a separator; keep one of the two")
        if key & set(names):
            raise GraphError(f"the separator of {a!r} and {b!r} holds one of the two: {list(names)}")
        found[key] = tuple(names)
    return MappingProxyType(found)


def _parents(graph: Cpdag | Dag, node: str) -> tuple[str, ...]:
    require_known(node, graph.nodes)
    found = {a for a, b in graph.arrows if b == node}
    return tuple(name for name in graph.nodes if name in found)


def _neighbours(graph: Graph, node: str) -> tuple[str, ...]:
    require_known(node, graph.nodes)
    found = {name for pair in graph.edges if node in pair for name in pair}
    return tuple(name for name in graph.nodes if name in found and name != node)


def _adjacency(graph: Graph) -> npt.NDArray[np.int8]:
    place = {name: i for i, name in enumerate(graph.nodes)}
    matrix = np.zeros((len(place), len(place)), dtype=np.int8)
    for a, b in graph.arrows:
        matrix[place[a], place[b]] = 1
    for a, b in graph.lines:
        matrix[place[a], place[b]] = matrix[place[b], place[a]] = 1
    return matrix


def _to_networkx(graph: Graph, kind_of_graph: str, kind: str) -> Any:
    # networkx takes a while to import, so only those who want it wait.
    found = getattr(import_module("networkx"), kind_of_graph)(kind=kind)
    found.add_nodes_from(graph.nodes)
    for a, mark, b in ordered_edges(graph):
        found.add_edges_from([(a, b)] if mark == "->" else [(a, b), (b, a)])
    return found


def _drawn(graph: Graph) -> str:
    """The graph as a picture for notebooks."""
    from dpcurate.graphs.drawing.notebook import graph_html  # drawing is built on this module

    return graph_html(graph)


def _describe(graph: Graph) -> str:
    edges = ", ".join(f"{a} {mark} {b}" for a, mark, b in ordered_edges(graph))
    return f"{type(graph).__name__} of {len(graph.nodes)} nodes: {edges or 'no edges'}"
