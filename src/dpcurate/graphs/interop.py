"""Graphs to and from the objects of other libraries: numpy, networkx, causal-learn, pgmpy, DoWhy and bnlearn.

Reading needs none of these libraries; writing imports the one that is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcurate._typing import FloatArray
from dpcurate.errors import DpcurateError, FormatError
from dpcurate.graphs.base_graph import Arrow, GraphKind, Mark, require_known
from dpcurate.graphs.formats.graph_draft import GraphDraft
from dpcurate.graphs.graph import Cpdag, Dag, Graph, ordered_edges
from dpcurate.graphs.pag import PCALG_CODES, Pag, marks_of, sign_of


def from_adjacency(matrix: npt.ArrayLike, nodes: Iterable[str], kind: GraphKind | None = None) -> Graph:
    """Any entry that is not 0 at [i, j] is an arrow from i to j, both ways a line.

    With kind "pag" entries are marks, as pcalg writes them: at [i, j] the one at j of the edge with i,
    1 a circle, 2 an arrowhead, 3 a tail.
    """
    table, names = np.asarray(matrix), list(nodes)
    if table.shape != (len(names), len(names)):
        raise FormatError(f"a matrix of shape {table.shape} for {len(names)} nodes; it must be square")
    draft = _draft_of(names)
    if kind == "pag":
        _read_codes(draft, table, names, {code: mark for mark, code in PCALG_CODES.items()})
        return draft.finish(kind)
    for i, j in np.argwhere(table != 0):
        draft.arrow(names[i], names[j], None)
    draft.join_opposites()
    return draft.finish(kind)


def from_networkx(graph: Any, kind: GraphKind | None = None) -> Graph:
    """Names are the nodes as text. The graph attribute "kind" is believed if it is there.

    A line is two opposite arcs, or one with the attribute directed=False, as `Discovery.to_networkx` writes it.
    """
    draft = _draft_of(map(str, graph.nodes))
    if graph.graph.get("kind") == "pag":
        for a, b, said in graph.edges(data=True):
            if "sign" in said:
                draft.edge(str(a), str(said["sign"]), str(b), None, f"an edge {said['sign']}")
            else:
                draft.arc(str(a), str(b), said.get("mark"), graph.get_edge_data(b, a, {}).get("mark"))
        draft.kind = "pag"
        return draft.finish(kind)
    for a, b, directed in graph.edges(data="directed", default=graph.is_directed()):
        (draft.arrow if directed else draft.line)(str(a), str(b), None)
    draft.join_opposites()
    draft.kind = None if graph.is_directed() else "skeleton"
    if "kind" in graph.graph:
        draft.say_kind(str(graph.graph["kind"]), None)
    return draft.finish(kind)


def to_causallearn(graph: Graph) -> Any:
    """The graph as a GeneralGraph of causal-learn."""
    node = library("causal-learn", "causallearn.graph.GraphNode").GraphNode
    end = library("causal-learn", "causallearn.graph.Endpoint").Endpoint
    edge = library("causal-learn", "causallearn.graph.Edge").Edge
    nodes = {name: node(name) for name in graph.nodes}
    general = library("causal-learn", "causallearn.graph.GeneralGraph").GeneralGraph(list(nodes.values()))
    for a, sign, b in ordered_edges(graph):
        if sign == "o--":  # the other way round: causal-learn drops an edge from a circle to a tail
            a, sign, b = b, "--o", a
        left, right = (getattr(end, mark.upper()) for mark in marks_of(sign))
        general.add_edge(edge(nodes[a], nodes[b], left, right))
    return general


def from_causallearn(graph: Any, kind: GraphKind | None = None) -> Graph:
    """From a GeneralGraph, such as `fci` returns, or from the CausalGraph that `pc` returns."""
    graph = getattr(graph, "G", graph)
    names = [str(node.get_name()) for node in graph.get_nodes()]
    draft = _draft_of(names)
    # causal-learn's [i, j] is the mark at i of the edge with j.
    _read_codes(draft, graph.graph.T, names, {-1: "tail", 1: "arrow", 2: "circle"})
    return draft.finish(kind)


def to_pgmpy(graph: Dag | Cpdag | Pag) -> Any:
    """The graph as a DAG or PDAG of pgmpy."""
    if graph.latent:
        raise FormatError("pgmpy has no PAGs; to_networkx and to_causallearn can hand one over")
    base = library("pgmpy", "pgmpy.base")
    edges = ordered_edges(graph)
    arrows = [(a, b) for a, mark, b in edges if mark == "->"]
    if graph.kind == "dag":
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


def _read_codes(draft: GraphDraft, table: npt.NDArray[Any], names: list[str], codes: Mapping[int, Mark]) -> None:
    """Edges from numbers: [i, j] is the mark at j of the edge between i and j."""
    for i, j in np.argwhere(np.triu((table != 0) | (table.T != 0))):
        marks = int(table[j, i]), int(table[i, j])
        if not set(marks) <= set(codes):
            known = ", ".join(f"{code} a {mark}" for code, mark in codes.items())
            raise FormatError(
                f"the edge between {names[i]!r} and {names[j]!r} has the marks {marks}; known are {known}"
            )
        draft.edge(names[i], sign_of(*(codes[mark] for mark in marks)), names[j], None, "an edge")


def _draft_of(names: Iterable[str]) -> GraphDraft:
    draft = GraphDraft()
    for name in names:
        draft.declare(name, None)
    return draft


def library(package: str, module: str) -> Any:
    """A module of a package that need not be installed; if it is not, how to have it."""
    try:
        return import_module(module)
    except ImportError:
        raise DpcurateError(f"this needs {package}; install it with: pip install {package}") from None


Beside = Mapping[Arrow, Mapping[str, float | str]]
"""What stands beside an edge, by name: for a -> b by (a, b), for a line by its ends both ways round."""


def networkx_graph(graph: Cpdag | Dag | Pag, beside: Beside) -> Any:
    """A DiGraph with one arc for every edge, directed=False for one without a direction; in a PAG with its sign."""
    arcs = library("networkx", "networkx").DiGraph(kind=graph.kind)
    arcs.add_nodes_from(graph.nodes)
    for a, sign, b in ordered_edges(graph):
        mark = {"sign": sign} if graph.latent else {}
        arcs.add_edge(a, b, directed=sign == "->", **mark, **beside.get((a, b), {}))
    return arcs


def networkx_dag(dag: Dag, beside: Beside) -> Any:
    """A DiGraph of arrows alone; its attribute "note" is the DAG's."""
    return _annotated(dag.to_networkx(), dag, beside)


def pgmpy_dag(dag: Dag, beside: Beside) -> Any:
    """A pgmpy DAG; the note is in its attribute `graph`, as in networkx."""
    return _annotated(to_pgmpy(dag), dag, beside)


def pgmpy_network(dag: Dag, levels: Mapping[str, Sequence[str]], tables: Mapping[str, FloatArray]) -> Any:
    """A pgmpy DiscreteBayesianNetwork with its tables.

    `tables[node]` has an axis for every parent, in the order of `dag.parents(node)`, and the node's own last.
    """
    models, factors = library("pgmpy", "pgmpy.models"), library("pgmpy", "pgmpy.factors.discrete")
    network = models.DiscreteBayesianNetwork()
    network.add_nodes_from(dag.nodes)
    network.add_edges_from([(a, b) for a, _, b in ordered_edges(dag)])
    for node in dag.nodes:
        parents = dag.parents(node)
        sizes = [len(levels[name]) for name in (*parents, node)]
        if list(tables[node].shape) != sizes:
            raise FormatError(f"the table of {node!r} has shape {tables[node].shape}, but its levels {tuple(sizes)}")
        names = {name: list(levels[name]) for name in (node, *parents)}
        values = np.moveaxis(tables[node], -1, 0).reshape(sizes[-1], -1)
        network.add_cpds(factors.TabularCPD(node, sizes[-1], values, list(parents), sizes[:-1], state_names=names))
    if dag.note:
        network.graph["note"] = dag.note
    return network


def dowhy_model(dag: Dag, beside: Beside, treatment: str, outcome: str, data: Any) -> Any:
    """A DoWhy CausalModel; without data its table has the columns and no row, which is enough to identify effects."""
    for name in (treatment, outcome):
        require_known(name, dag.nodes)
    model = library("dowhy", "dowhy").CausalModel
    frame = library("pandas", "pandas").DataFrame
    rows = frame(columns=list(dag.nodes)) if data is None else frame(data)
    return model(rows, treatment, outcome, graph=networkx_dag(dag, beside))


def causallearn_graph(graph: Cpdag | Dag | Pag, beside: Beside) -> Any:
    """A causal-learn GeneralGraph; its attribute "edges" has the numbers beside each edge."""
    general = to_causallearn(graph)
    general.set_pag(graph.latent)
    general.add_attribute("edges", {ends: dict(numbers) for ends, numbers in beside.items()})
    return general


def bnlearn_text(dag: Dag) -> str:
    """The model string of R's bnlearn, "[a][b|a]", parents first."""
    for name in dag.nodes:
        if re.search(r"[\[\]|:]", name):
            raise FormatError(f"bnlearn's model string cannot hold the name {name!r}: it has one of [ ] | :; rename it")
    parents = {name: dag.parents(name) for name in dag.order()}
    return "".join(f"[{name}|{':'.join(above)}]" if above else f"[{name}]" for name, above in parents.items())


def _annotated(arcs: Any, dag: Dag, beside: Beside) -> Any:
    """A networkx graph with what is known of its arcs, and the note."""
    for a, b in arcs.edges:
        arcs.edges[a, b].update(beside.get((a, b), {}))
    if dag.note:
        arcs.graph["note"] = dag.note
    return arcs
