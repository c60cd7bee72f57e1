"""The structure of a Bayesian network in a BIF file; its tables are read by `dpcurate.networks`."""

from __future__ import annotations

from dpcurate._files import check_length
from dpcurate.errors import FormatError
from dpcurate.graphs.formats.bif_grammar import Grammar
from dpcurate.graphs.formats.chances import NO_CHANCES, Chances
from dpcurate.graphs.formats.draft import Draft
from dpcurate.graphs.graph import Dag, Graph


def read_bif_structure(text: str) -> Dag:
    """The DAG of a network in BIF; its tables are not looked at."""
    draft = read(text)
    return Dag(tuple(draft.nodes), frozenset(draft.arrows))


def read(text: str) -> Draft:
    check_length(text)
    grammar = Grammar(text)
    grammar.check_structure()
    arrows = ((parent.text, name) for name, block in grammar.blocks.items() for parent in block.parents)
    return Draft("dag", dict.fromkeys(grammar.declared), dict.fromkeys(arrows))


def write(graph: Graph, _: Chances = NO_CHANCES) -> str:
    """Refuse: a BIF file is a network, not a graph."""
    raise FormatError(
        f"BIF needs probability tables, and a graph of {len(graph.nodes)} nodes has none; write json, dot or graphml"
    )
