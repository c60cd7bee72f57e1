"""The structure of a Bayesian network in a BIF file; its tables are read by `dpcurate.networks`."""

from __future__ import annotations

from importlib import import_module

from dpcurate.errors import FormatError
from dpcurate.graphs.formats.draft import Draft
from dpcurate.graphs.graph import Dag, Graph


def read_bif_structure(text: str) -> Dag:
    """The DAG of a network in BIF."""
    # networks is built on graphs, so this one way back is taken only when a BIF file is read.
    dag = import_module("dpcurate.networks.bif").parse(text).dag
    assert isinstance(dag, Dag)
    return dag


def read(text: str) -> Draft:
    """What the network's structure says."""
    dag = read_bif_structure(text)
    return Draft("dag", dict.fromkeys(dag.nodes), dict.fromkeys(dag.arrows))


def write(graph: Graph) -> str:
    """Refuse: a BIF file is a network, not a graph."""
    found = f"a graph of {len(graph.nodes)} nodes has none"
    raise FormatError(f"BIF needs probability tables and {found}; write json, dot or graphml")
