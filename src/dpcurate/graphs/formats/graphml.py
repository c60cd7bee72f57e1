"""GraphML. A line of a CPDAG is two opposite edges, as in `to_networkx`, so networkx reads it too."""

from __future__ import annotations

import re
from typing import Any, NoReturn
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from dpcurate.errors import FormatError
from dpcurate.graphs.formats.draft import Draft, kind_of
from dpcurate.graphs.graph import Graph, Skeleton, ordered_edges

_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="kind" for="graph" attr.name="kind" attr.type="string"/>
"""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(graph: Graph) -> str:
    """The graph as text; equal graphs give equal text."""
    plain = isinstance(graph, Skeleton)
    rows = [f'  <graph edgedefault="{"undirected" if plain else "directed"}">']
    rows.append(f'    <data key="kind">{kind_of(graph)}</data>')
    rows += [f"    <node id={_quote(name)}/>" for name in graph.nodes]
    for a, mark, b in ordered_edges(graph):
        rows.append(_edge(a, b))
        if mark == "--" and not plain:
            rows.append(_edge(b, a))
    return _HEAD + "\n".join([*rows, "  </graph>", "</graphml>\n"])


def _edge(a: str, b: str) -> str:
    return f"    <edge source={_quote(a)} target={_quote(b)}/>"


def _quote(name: str) -> str:
    if _NOT_XML.search(name):
        raise FormatError(f"XML cannot hold the name {name!r}; write the graph as json, csv or gml")
    return quoteattr(name)


def read(text: str) -> Draft:
    """What the text says; a FormatError gives the line."""
    reader = _Reader()
    try:
        reader.parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        raise FormatError(f"not XML: {expat.ErrorString(error.code)}", line=error.lineno) from None
    return reader.draft()


class _Reader:
    """Collects elements with their lines; names are settled at the end, as igraph puts them in data."""

    def __init__(self) -> None:
        parser = expat.ParserCreate(encoding="utf-8", namespace_separator=" ")
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.characters
        parser.StartDoctypeDeclHandler = self.refuse_doctype
        self.parser = parser
        self.keys: dict[str, str] = {}
        self.directed = True
        self.graphs = 0
        self.kind: tuple[str, int] | None = None
        self.nodes: list[tuple[str, int]] = []
        self.names: dict[str, str] = {}
        self.edges: list[tuple[str, str, bool, int]] = []
        self.open: list[str] = []
        self.data = ("", "")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        word = tag.rsplit(" ", 1)[-1]
        if not self.open and word != "graphml":
            self.fail(f"expected <graphml>, found <{word}>")
        action = getattr(self, f"start_{word}", None)
        if action is not None:
            action(attributes)
        self.open.append(word)

    def start_key(self, attributes: dict[str, str]) -> None:
        self.keys[self.need(attributes, "id")] = attributes.get("attr.name", "")

    def start_graph(self, attributes: dict[str, str]) -> None:
        self.graphs += 1
        if self.graphs > 1:
            self.fail("a second or nested graph")
        self.directed = attributes.get("edgedefault", "directed") != "undirected"

    def start_node(self, attributes: dict[str, str]) -> None:
        self.nodes.append((self.need(attributes, "id"), self.parser.CurrentLineNumber))

    def start_edge(self, attributes: dict[str, str]) -> None:
        source, target = self.need(attributes, "source"), self.need(attributes, "target")
        directed = attributes.get("directed", str(self.directed)).lower() == "true"
        self.edges.append((source, target, directed, self.parser.CurrentLineNumber))

    def start_hyperedge(self, _: dict[str, str]) -> None:
        self.fail("a hyperedge, but an edge joins two nodes")

    def start_data(self, attributes: dict[str, str]) -> None:
        key = attributes.get("key", "")
        self.data = (self.keys.get(key, key), "")

    def characters(self, text: str) -> None:
        self.data = (self.data[0], self.data[1] + text)

    def end(self, _: str) -> None:
        word = self.open.pop()
        inside = self.open[-1] if self.open else ""
        if word == "data" and inside == "graph" and self.data[0] == "kind":
            self.kind = (self.data[1].strip(), self.parser.CurrentLineNumber)
        if word == "data" and inside == "node" and self.data[0] == "name":
            self.names[self.nodes[-1][0]] = self.data[1]

    def need(self, attributes: dict[str, str], name: str) -> str:
        if name not in attributes:
            self.fail(f"an element without its {name}")
        return attributes[name]

    def refuse_doctype(self, *_: Any) -> None:
        # Entities can blow up to gigabytes, and no GraphML needs them.
        self.fail("a document type, which is not accepted")

    def fail(self, what: str) -> NoReturn:
        raise FormatError(what, line=self.parser.CurrentLineNumber)

    def draft(self) -> Draft:
        draft, ids = Draft(), Draft()
        for key, line in self.nodes:
            ids.declare(key, line)
            draft.declare(self.names.get(key, key), line)
        for a, b, directed, line in self.edges:
            ids.require(a, line)
            ids.require(b, line)
            add = draft.arrow if directed else draft.line
            add(self.names.get(a, a), self.names.get(b, b), line)
        draft.join_opposites()
        draft.kind = None if self.directed else "skeleton"
        if self.kind is not None:
            draft.say_kind(*self.kind)
        return draft
