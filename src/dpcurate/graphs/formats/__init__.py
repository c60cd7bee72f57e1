"""Graphs to and from text and files.

`load` and `save` go by the file's suffix, `loads` and `dumps` by the format's name. A format that
cannot say which kind of graph it holds is read as a PAG if it has a circle or an edge with two heads, as
a CPDAG if it has a line and as a DAG otherwise; `kind` overrides. Separating sets survive only in JSON. JSON, CSV,
DOT, GraphML and GML carry how sure each edge is (`EdgeProbability`), which `load_probabilities`
reads back. Tetrad's text has it too.
Objects of other libraries: `dpcurate.graphs.interop`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dpcurate import _files
from dpcurate._files import save_text
from dpcurate.errors import FormatError
from dpcurate.graphs.base_graph import GraphKind, hint
from dpcurate.graphs.formats import bif_grammar, dot, edgelist, graphml, jsontext, tetrad
from dpcurate.graphs.formats.bif_grammar import read_bif_structure
from dpcurate.graphs.formats.graph_draft import NO_PROBABILITIES, EdgeProbabilities, EdgeProbability, GraphDraft
from dpcurate.graphs.graph import Graph

__all__ = [
    "FORMATS",
    "EdgeProbabilities",
    "EdgeProbability",
    "dumps",
    "load",
    "load_probabilities",
    "loads",
    "loads_probabilities",
    "read_bif_structure",
    "save",
    "text_for",
]


@dataclass(frozen=True, slots=True)
class Format:
    """How one format is read and written, and the suffixes of its files."""

    suffixes: tuple[str, ...]
    read: Callable[[str], GraphDraft]
    write: Callable[[Graph, EdgeProbabilities], str]


FORMATS: Mapping[str, Format] = {
    "json": Format((".json",), jsontext.read, jsontext.write),
    "csv": Format((".csv",), edgelist.read, edgelist.write),
    "dot": Format((".dot", ".gv"), dot.read_dot, dot.write_dot),
    "graphml": Format((".graphml",), graphml.read, graphml.write),
    "gml": Format((".gml",), graphml.read_gml, graphml.write_gml),
    "dagitty": Format((".dagitty",), dot.read_dagitty, dot.write_dagitty),
    "tetrad": Format((".txt", ".tetrad"), tetrad.read, tetrad.write),
    "bif": Format((".bif",), bif_grammar.read, bif_grammar.write),
}


def loads(text: str, format: str, kind: GraphKind | None = None) -> Graph:
    """The graph in the text; a FormatError says the line."""
    _files.check_length(text)
    return _format(format).read(text).finish(kind)


def dumps(graph: Graph, format: str, probabilities: EdgeProbabilities = NO_PROBABILITIES) -> str:
    """The graph as text, with how sure its edges are where the format can; equal graphs give equal text."""
    return _format(format).write(graph, probabilities)


def load(path: str | Path, kind: GraphKind | None = None) -> Graph:
    """The graph in the file, whose suffix names the format."""
    read = _format_of(path).read
    return _files.load(path, lambda text: read(text).finish(kind))


def load_probabilities(path: str | Path) -> EdgeProbabilities:
    """How sure the edges in the file are: by (a, b) for a -> b, and for a -- b with a before b among the nodes."""
    read = _format_of(path).read
    return _files.load(path, lambda text: read(text).probabilities())


def loads_probabilities(text: str, format: str) -> EdgeProbabilities:
    """The same of a text."""
    _files.check_length(text)
    return _format(format).read(text).probabilities()


def save(graph: Graph, path: str | Path, probabilities: EdgeProbabilities = NO_PROBABILITIES) -> None:
    """Write the graph to a file, whose suffix names the format, with how sure its edges are where that can."""
    save_text(path, text_for(graph, path, probabilities))


def text_for(graph: Graph, path: str | Path, probabilities: EdgeProbabilities = NO_PROBABILITIES) -> str:
    """What `save` writes to a file of this name."""
    return _format_of(path).write(graph, probabilities)


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise FormatError(f"unknown format {name!r}{hint(name, FORMATS)}; the formats are {', '.join(FORMATS)}")
    return FORMATS[name]


def _format_of(path: str | Path) -> Format:
    suffix = Path(path).suffix.lower()
    for format in FORMATS.values():
        if suffix in format.suffixes:
            return format
    known = ", ".join(one for format in FORMATS.values() for one in format.suffixes)
    raise FormatError(f"no format has the suffix {suffix!r} of {str(path)!r}; the suffixes are {known}")
