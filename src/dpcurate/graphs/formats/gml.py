"""GML. A line of a CPDAG is two opposite edges, as in `to_networkx`, so networkx reads it too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.entities import name2codepoint
from typing import Any

from dpcurate.errors import FormatError
from dpcurate.graphs.formats.draft import Draft, kind_of
from dpcurate.graphs.graph import Graph, Skeleton, ordered_edges

_TOKEN = re.compile(r'\s+|#[^\n]*|(?P<text>"[^"]*")|(?P<sign>[\[\]])|(?P<word>[^\s\[\]"#]+)')
_ENTITY = re.compile(r"&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(\w+));")
# The grammar is ASCII; a quote or an ampersand in a string must be an entity too.
_UNSAFE = re.compile(r'[^ -~]|["&]')
# key, value (a text or a list of the same), line
Entry = tuple[str, Any, int]


def write(graph: Graph) -> str:
    """The graph as text; equal graphs give equal text."""
    plain = isinstance(graph, Skeleton)
    place = {name: i for i, name in enumerate(graph.nodes)}
    rows = [f"  directed {int(not plain)}", f'  kind "{kind_of(graph)}"']
    rows += [f"  node [ id {i} label {_quote(name)} ]" for name, i in place.items()]
    for a, mark, b in ordered_edges(graph):
        rows.append(f"  edge [ source {place[a]} target {place[b]} ]")
        if mark == "--" and not plain:
            rows.append(f"  edge [ source {place[b]} target {place[a]} ]")
    return "\n".join(["graph [", *rows, "]\n"])


def _quote(name: str) -> str:
    return '"' + _UNSAFE.sub(lambda match: f"&#{ord(match[0])};", name) + '"'


def _unquote(inside: str) -> str:
    return _ENTITY.sub(_character, inside)


def _character(match: re.Match[str]) -> str:
    if match[3]:
        return chr(name2codepoint[match[3]]) if match[3] in name2codepoint else match[0]
    code = int(match[1]) if match[1] else int(match[2], 16)
    return chr(code) if code < 0x110000 else match[0]


def read(text: str) -> Draft:
    """What the text says; a FormatError gives the line."""
    entries = _entries(_tokens(text), depth=0)
    graphs = [entry for entry in entries if entry[0] == "graph" and isinstance(entry[1], list)]
    if len(graphs) != 1:
        line = graphs[-1][2] if graphs else 1
        raise FormatError(f"expected one graph [ ... ], found {len(graphs)}", line=line)
    return _draft(graphs[0][1])


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    place, line = 0, 1
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise FormatError("a string that never ends", line=line)
        if match.lastgroup is not None:
            yield match.lastgroup, match[0], line
        place, line = match.end(), line + match[0].count("\n")
    yield "end", "the end of the text", line


def _entries(tokens: Iterator[tuple[str, str, int]], depth: int) -> list[Entry]:
    """Key and value pairs until the closing bracket, or the end of the text outside all brackets."""
    found: list[Entry] = []
    closing = "]" if depth else "the end of the text"
    while True:
        kind, value, line = next(tokens)
        if value == closing and kind != "text":
            return found
        if kind != "word" or depth > 50:
            raise FormatError(f"expected a key or {closing}, found {value}", line=line)
        found.append((value, _value(tokens, value, line, depth), line))


def _value(tokens: Iterator[tuple[str, str, int]], key: str, line: int, depth: int) -> Any:
    kind, value, here = next(tokens)
    if value == "[" and kind == "sign":
        return _entries(tokens, depth + 1)
    if kind in ("sign", "end"):
        raise FormatError(f"the key {key!r} has no value", line=max(line, here))
    return _unquote(value[1:-1]) if kind == "text" else value


def _draft(entries: list[Entry]) -> Draft:
    draft, ids = Draft(), Draft()
    plain = _field(entries, "directed", "0") == "0"
    names = {}
    for fields, line in _parts(entries, "node"):
        key = _need(fields, "id", line)
        ids.declare(key, line)
        names[key] = _field(fields, "label", key)
        draft.declare(names[key], line)
    for fields, line in _parts(entries, "edge"):
        a, b = _need(fields, "source", line), _need(fields, "target", line)
        ids.require(a, line)
        ids.require(b, line)
        (draft.line if plain else draft.arrow)(names[a], names[b], line)
    draft.join_opposites()
    draft.kind = "skeleton" if plain else None
    for key, value, line in entries:
        if key == "kind":
            draft.say_kind(str(value), line)
    return draft


def _parts(entries: list[Entry], word: str) -> Iterator[tuple[list[Entry], int]]:
    for key, value, line in entries:
        if key == word and not isinstance(value, list):
            raise FormatError(f"a {word} must be a list in brackets", line=line)
        if key == word:
            yield value, line


def _field(entries: list[Entry], key: str, default: str) -> str:
    return next((value for name, value, _ in entries if name == key and isinstance(value, str)), default)


def _need(entries: list[Entry], key: str, line: int) -> str:
    found = _field(entries, key, "")
    if not found:
        raise FormatError(f"a node or edge without its {key}", line=line)
    return found
