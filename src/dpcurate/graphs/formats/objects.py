"""Graphs to and from the objects of numpy, networkx, causal-learn and pgmpy.

Reading needs none of these libraries; writing imports the one asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcurate.errors import DpcurateError, FormatError
from dpcurate.graphs.formats.draft import Draft, GraphKind
from dpcurate.graphs.graph import Cpdag, Dag, Graph, ordered_edges


def to_adjacency(graph: Graph) -> npt.NDArray[np.int8]:
    """[i, j] is 1 for an arrow from i to j; a line has 1 both ways."""
    return graph.adjacency()


def from_adjacency(matrix: npt.ArrayLike, nodes: Iterable[str], kind: GraphKind | None = None) -> Graph:
    """Any entry that is not 0 at [i, j] is an arrow from i to j, both ways a line."""
    table, names = np.asarray(matrix), list(nodes)
    if table.shape != (len(names), len(names)):
        raise FormatError(f"a matrix of shape {table.shape} for {len(names)} nodes; it must be square")
    draft = _draft_of(names)
    for i, j in np.argwhere(table != 0):
        draft.arrow(names[i], names[j], None)
    draft.join_opposites()
    return draft.finish(kind)


def to_networkx(graph: Graph) -> Any:
    """A DiGraph, where a line is two opposite arcs; a skeleton is a Graph."""
    return graph.to_networkx()


def from_networkx(graph: Any, kind: GraphKind | None = None) -> Graph:
    """Names are the nodes as text. The graph attribute "kind" is believed if it is there."""
    draft = _draft_of(map(str, graph.nodes))
    add = draft.arrow if graph.is_directed() else draft.line
    for a, b in graph.edges():
        add(str(a), str(b), None)
    draft.join_opposites()
    draft.kind = None if graph.is_directed() else "skeleton"
    if "kind" in graph.graph:
        draft.say_kind(str(graph.graph["kind"]), None)
    return draft.finish(kind)


def to_causallearn(graph: Graph) -> Any:
    node = _library("causal-learn", "causallearn.graph.GraphNode").GraphNode
    end = _library("causal-learn", "causallearn.graph.Endpoint").Endpoint
    edge = _library("causal-learn", "causallearn.graph.Edge").Edge
    nodes = {name: node(name) for name in graph.nodes}
    general = _library("causal-learn", "causallearn.graph.GeneralGraph").GeneralGraph(list(nodes.values()))
    for a, mark, b in ordered_edges(graph):
        general.add_edge(edge(nodes[a], nodes[b], end.TAIL, end.ARROW if mark == "->" else end.TAIL))
    return general


def from_causallearn(graph: Any, kind: GraphKind | None = None) -> Graph:
    """From a GeneralGraph, or from the CausalGraph that `pc` returns."""
    graph = getattr(graph, "G", graph)
    names = [str(node.get_name()) for node in graph.get_nodes()]
    draft = _draft_of(names)
    for i, j in np.argwhere(np.triu((graph.graph != 0) | (graph.graph.T != 0))):
        # causal-learn's [i, j] is the mark at i of the edge with j: -1 a tail, 1 an arrowhead.
        marks = int(graph.graph[i, j]), int(graph.graph[j, i])
        mark = {(-1, 1): "->", (1, -1): "<-", (-1, -1): "--"}.get(marks)
        said = f"the edge between {names[i]!r} and {names[j]!r} has the marks {marks}"
        draft.edge(names[i], mark, names[j], None, said)
    return draft.finish(kind)


def to_pgmpy(graph: Dag | Cpdag) -> Any:
    base = _library("pgmpy", "pgmpy.base")
    edges = ordered_edges(graph)
    arrows = [(a, b) for a, mark, b in edges if mark == "->"]
    if isinstance(graph, Dag):
        pgmpy_graph = base.DAG(arrows)
    else:
        lines = [(a, b) for a, mark, b in edges if mark == "--"]
        pgmpy_graph = base.PDAG(directed_ebunch=arrows, undirected_ebunch=lines)
    pgmpy_graph.add_nodes_from(graph.nodes)
    return pgmpy_graph


def from_pgmpy(graph: Any, kind: GraphKind | None = None) -> Graph:
    """From a pgmpy DAG, PDAG or Bayesian network."""
    pdag = hasattr(graph, "undirected_edges")
    draft = _draft_of(map(str, graph.nodes()))
    draft.kind = "cpdag" if pdag else "dag"
    for a, b in graph.directed_edges if pdag else graph.edges():
        draft.arrow(str(a), str(b), None)
    for a, b in graph.undirected_edges if pdag else ():
        draft.line(str(a), str(b), None)
    return draft.finish(kind)


def _draft_of(names: Iterable[str]) -> Draft:
    draft = Draft()
    for name in names:
        draft.declare(name, None)
    return draft


def _library(package: str, module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise DpcurateError(f"this needs {package}; install it with: pip install {package}") from None
