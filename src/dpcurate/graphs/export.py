"""A found graph in the words of other tools, with numbers beside its edges and a note on where it is from.

The graph alone goes to and from files and objects in `formats`; each library is imported when it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.errors import FormatError
from dpcurate.graphs.checks import Arrow, require_known
from dpcurate.graphs.formats.draft import kind_of
from dpcurate.graphs.formats.objects import library, to_causallearn, to_pgmpy
from dpcurate.graphs.graph import Cpdag, Dag, Pag, ordered_edges

Beside = Mapping[Arrow, Mapping[str, float | str]]
"""What stands beside an edge, by name: for a -> b by (a, b), for a line by its ends both ways round."""


def networkx_graph(graph: Cpdag | Dag | Pag, beside: Beside) -> Any:
    """A DiGraph with one arc for every edge, directed=False for one without a direction; in a PAG with its sign."""
    arcs = library("networkx", "networkx").DiGraph(kind=kind_of(graph))
    arcs.add_nodes_from(graph.nodes)
    for a, sign, b in ordered_edges(graph):
        mark = {"sign": sign} if isinstance(graph, Pag) else {}
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
    general.set_pag(isinstance(graph, Pag))
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
