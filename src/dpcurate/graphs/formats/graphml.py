"""GraphML, read by networkx behind a guard, and GML, which is written only.

A line of a CPDAG is two opposite edges, as in `to_networkx`. An edge of a PAG is two as well, each with the mark at its
end: tail, arrow or circle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any, NoReturn
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from dpcurate.errors import FormatError
from dpcurate.graphs.formats.graph_draft import (
    MAX_EDGES,
    MAX_NODES,
    NO_PROBABILITIES,
    EdgeProbabilities,
    EdgeProbability,
    GraphDraft,
    has_two_arcs,
    marks_at,
    names_in,
)
from dpcurate.graphs.graph import Graph, ordered_edges

_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="kind" for="graph" attr.name="kind" attr.type="string"/>
"""
_KEY = '  <key id="{0}" for="edge" attr.name="{0}" attr.type="double"/>\n'
_MARK = '  <key id="mark" for="edge" attr.name="mark" attr.type="string"/>\n'
MAX_DEPTH = 50
MAX_PARTS = 2 * (MAX_NODES + 8 * MAX_EDGES)
NEEDED: dict[str, tuple[str, ...]] = {"node": ("id",), "edge": ("source", "target"), "key": ("id",), "data": ("key",)}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(graph: Graph, probabilities: EdgeProbabilities = NO_PROBABILITIES) -> str:
    """A graph as GraphML."""
    plain = graph.kind == "skeleton"
    rows = [f'  <graph edgedefault="{"undirected" if plain else "directed"}">']
    rows.append(f'    <data key="kind">{graph.kind}</data>')
    rows += [f"    <node id={_quote(name)}/>" for name in graph.nodes]
    for a, mark, b in ordered_edges(graph):
        probability = probabilities.get((a, b), EdgeProbability())
        rows.append(_edge(a, b, [*marks_at(graph, a, b), *probability.items()]))
        if has_two_arcs(graph, mark):
            rows.append(_edge(b, a, [*marks_at(graph, b, a), *probability.turned().items()]))
    keys = (_MARK if graph.latent else "") + "".join(map(_KEY.format, names_in(probabilities)))
    return _HEAD + keys + "\n".join([*rows, "  </graph>", "</graphml>\n"])


def _edge(a: str, b: str, data: Iterable[tuple[str, str]]) -> str:
    start = f"    <edge source={_quote(a)} target={_quote(b)}"
    sure = "".join(f'<data key="{name}">{value}</data>' for name, value in data)
    return f"{start}>{sure}</edge>" if sure else f"{start}/>"


def _quote(name: str) -> str:
    if _NOT_XML.search(name):
        raise FormatError(f"XML cannot hold the name {name!r}; write the graph as json, csv or gml")
    return quoteattr(name)


def read(text: str) -> GraphDraft:
    """What the text says: looked through by expat first, so that networkx gets nothing that could hurt."""
    guard = _Guard()
    try:
        guard.parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        raise FormatError(f"not XML: {expat.ErrorString(error.code)}", line=error.lineno) from None
    for name, line in guard.ends.items():
        guard.nodes.require(name, line)
    return _draft(_networkx_graph(text), guard.nodes)


class _Guard:
    """Counts and measures without keeping anything but ids of nodes, declared and used, each with its line."""

    def __init__(self) -> None:
        self.parser = expat.ParserCreate(encoding="utf-8", namespace_separator=" ")
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.StartDoctypeDeclHandler = self.refuse_doctype
        self.depth = self.parts = self.graphs = 0
        self.nodes = GraphDraft()
        self.ends: dict[str, int] = {}

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        word = tag.rsplit(" ", 1)[-1]
        if not self.depth and word != "graphml":
            self.fail(f"expected <graphml>, found <{word}>")
        self.depth, self.parts = self.depth + 1, self.parts + 1 + len(attributes)
        self.graphs += word == "graph"
        if self.depth > MAX_DEPTH:
            self.fail(f"elements nested more than {MAX_DEPTH} deep")
        if self.parts > MAX_PARTS:
            self.fail(f"more than {MAX_PARTS} elements and attributes, the limit")
        if self.graphs > 1:
            self.fail("a second or nested graph")
        if word == "hyperedge":
            self.fail("a hyperedge, but an edge joins two nodes")
        for name in NEEDED.get(word, ()):
            if name not in attributes:
                self.fail(f"a {word} without its {name}")
        if word == "node":
            self.nodes.declare(attributes["id"], self.parser.CurrentLineNumber)
        if word == "edge":
            self.ends.setdefault(attributes["source"], self.parser.CurrentLineNumber)
            self.ends.setdefault(attributes["target"], self.parser.CurrentLineNumber)

    def end(self, _: str) -> None:
        self.depth -= 1

    def refuse_doctype(self, *_: Any) -> None:
        # Entities can blow up to gigabytes, and no GraphML needs them.
        self.fail("a document type, which is not accepted")

    def fail(self, what: str) -> NoReturn:
        raise FormatError(what, line=self.parser.CurrentLineNumber)


def _networkx_graph(text: str) -> Any:
    networkx = import_module("networkx")  # slow to import
    body = re.sub(r"\A\s*<\?xml[^>]*\?>", "", text)  # the text is decoded: an encoding it names no longer holds
    try:
        return networkx.parse_graphml(body)
    except Exception as error:  # of any kind: a key without a type, a number that is none, an edge against the graph
        raise FormatError(f"not a graph that networkx reads: {error or type(error).__name__}") from None


def _draft(graph: Any, declared: GraphDraft) -> GraphDraft:
    """Igraph keeps names in the data of nodes, so a node's name is that attribute or else its id."""
    names = {key: str(data.get("name", key)) for key, data in graph.nodes(data=True)}
    draft = GraphDraft()
    for key, name in names.items():
        draft.declare(name, declared.nodes[key])
    for a, b, data in graph.edges(data=True):
        if graph.graph.get("kind") == "pag":
            draft.arc(names[a], names[b], data.get("mark"), graph.get_edge_data(b, a, {}).get("mark"))
        else:
            (draft.arrow if graph.is_directed() else draft.line)(names[a], names[b], None)
        draft.sure(names[a], names[b], data, None)
    draft.join_opposites()
    draft.kind = None if graph.is_directed() else "skeleton"
    if "kind" in graph.graph:
        draft.say_kind(graph.graph["kind"], None)
    return draft


# The grammar is ASCII; a quote or an ampersand in a string must be an entity too.
_UNSAFE = re.compile(r'[^ -~]|["&]')


def write_gml(graph: Graph, probabilities: EdgeProbabilities = NO_PROBABILITIES) -> str:
    """A graph as GML."""
    plain = graph.kind == "skeleton"
    place = {name: i for i, name in enumerate(graph.nodes)}
    rows = [f"  directed {int(not plain)}", f'  kind "{graph.kind}"']
    rows += [f"  node [ id {i} label {_gml_quote(name)} ]" for name, i in place.items()]
    for a, mark, b in ordered_edges(graph):
        probability = probabilities.get((a, b), EdgeProbability())
        rows.append(_gml_edge(place[a], place[b], probability, marks_at(graph, a, b)))
        if has_two_arcs(graph, mark):
            rows.append(_gml_edge(place[b], place[a], probability.turned(), marks_at(graph, b, a)))
    return "\n".join(["graph [", *rows, "]\n"])


def _gml_edge(a: int, b: int, probability: EdgeProbability, marks: list[tuple[str, str]]) -> str:
    ends = "".join(f' {name} "{mark}"' for name, mark in marks)
    sure = "".join(f" {name.replace('_', '')} {value}" for name, value in probability.items())
    return f"  edge [ source {a} target {b}{ends}{sure} ]"


def _gml_quote(name: str) -> str:
    return '"' + _UNSAFE.sub(lambda match: f"&#{ord(match[0])};", name) + '"'


def read_gml(_: str) -> GraphDraft:
    """Refuse: GML is written but not read."""
    raise FormatError(
        "GML is written but not read: read it with networkx.read_gml and pass that to from_networkx, "
        "or save the graph as graphml"
    )
