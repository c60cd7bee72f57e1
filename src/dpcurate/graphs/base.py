"""What every graph value has, from its nodes, arrows and lines."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpcurate._messages import how_many, one_line
from dpcurate.graphs.checks import Arrow, Edge, require_known


class BaseGraph:
    """Looking at a graph, whichever it is."""

    __slots__ = ()
    if TYPE_CHECKING:

        @property
        def nodes(self) -> tuple[str, ...]: ...
        @property
        def arrows(self) -> frozenset[Arrow]: ...
        @property
        def lines(self) -> frozenset[Edge]: ...
        @property
        def edges(self) -> frozenset[Edge]: ...

    def neighbours(self, node: str) -> tuple[str, ...]:
        """Nodes that share an edge with this one, in node order."""
        require_known(node, self.nodes)
        near = {name for pair in self.edges if node in pair for name in pair}
        return tuple(name for name in self.nodes if name in near and name != node)

    def adjacency(self) -> npt.NDArray[np.int8]:
        """[i, j] is 1 for an arrow from i to j; a line has 1 both ways."""
        place = {name: i for i, name in enumerate(self.nodes)}
        matrix = np.zeros((len(place), len(place)), dtype=np.int8)
        for a, b in self.arrows:
            matrix[place[a], place[b]] = 1
        for a, b in self.lines:
            matrix[place[a], place[b]] = matrix[place[b], place[a]] = 1
        return matrix

    def to_networkx(self) -> Any:
        """A networkx DiGraph where a line is two opposite arcs; a skeleton is a Graph, without separating sets."""
        networkx = import_module("networkx")  # slow to import, so only those who want it wait
        kind = type(self).__name__.lower()
        graph = (networkx.Graph if kind == "skeleton" else networkx.DiGraph)(kind=kind)
        graph.add_nodes_from(self.nodes)
        for a, mark, b in self.written():
            graph.add_edges_from([(a, b)] if mark == "->" else [(a, b), (b, a)])
        return graph

    def __str__(self) -> str:
        edges = ", ".join(one_line(f"{a} {mark} {b}") for a, mark, b in self.written())
        return f"{type(self).__name__} of {how_many(len(self.nodes), 'node')}: {edges or 'no edges'}"

    def _repr_html_(self) -> str:
        from dpcurate.graphs.drawing.notebook import graph_html  # drawing is built on this module

        return graph_html(self)  # type: ignore[arg-type]

    def written(self) -> list[tuple[str, str, str]]:
        """Every edge once as (a, "->" or "--", b), in node order: the same for equal graphs."""
        place = {name: i for i, name in enumerate(self.nodes)}
        lines = [(*sorted(pair, key=place.__getitem__), "--") for pair in self.lines]
        edges = [(a, "->", b) for a, b in self.arrows] + [(a, mark, b) for a, b, mark in lines]
        return sorted(edges, key=lambda edge: (place[edge[0]], place[edge[2]]))


def ordered_edges(graph: BaseGraph) -> list[tuple[str, str, str]]:
    """Every edge once as (a, sign, b), in node order; "->" and "--", and in a PAG "<->", "o->", "o-o" and "o--"."""
    return graph.written()


def put(graph: object, **values: object) -> None:
    """Set fields of a frozen value while it is made."""
    for name, value in values.items():
        object.__setattr__(graph, name, value)
