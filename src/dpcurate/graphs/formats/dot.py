"""Graphviz DOT: a line of a CPDAG is an edge with dir=none, a skeleton is an undirected graph.

The language itself only escapes the quote; as Graphviz shows a backslash only when it is doubled,
a name's backslashes are written doubled and read back as one.
"""

from __future__ import annotations

import re

from dpcurate.errors import FormatError
from dpcurate.graphs.formats.chances import NO_CHANCES, Chance, Chances
from dpcurate.graphs.formats.dotlike import Link, parse
from dpcurate.graphs.formats.draft import Draft, kind_of
from dpcurate.graphs.graph import Graph, Skeleton, ordered_edges
from dpcurate.wording import shown

MARKS = {"none": "--", "forward": "->", "back": "<-"}


def quote(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def unquote(inside: str) -> str:
    """Undo `quote`; a backslash at a line's end joins the lines, any other stays."""
    return re.sub(r'\\(\r?\n|[\\"])', lambda match: match[1].strip("\r\n"), inside)


def write(graph: Graph, chances: Chances = NO_CHANCES) -> str:
    plain = isinstance(graph, Skeleton)
    rows = [] if plain else [f"kind={kind_of(graph)}"]
    rows += [quote(name) for name in graph.nodes]
    for a, mark, b in ordered_edges(graph):
        arrow = "--" if plain else "->"
        said = ["dir=none"] if mark == "--" and not plain else []
        said += [f"{name}={value}" for name, value in chances.get((a, b), Chance()).items()]
        rows.append(f"{quote(a)} {arrow} {quote(b)}" + (f" [{', '.join(said)}]" if said else ""))
    body = "".join(f"  {row};\n" for row in rows)
    return f"{'graph' if plain else 'digraph'} {{\n{body}}}\n"


def read(text: str) -> Draft:
    parsed = parse(text, ("graph", "digraph"), unquote)
    draft = Draft()
    if parsed.word == "graph":
        draft.kind = "skeleton"
    if parsed.kind is not None:
        draft.say_kind(*parsed.kind)
    for name, line in parsed.nodes:
        draft.mention(name, line)
    for link in parsed.links:
        _add(draft, link, "--" if parsed.word == "graph" else "->")
    draft.join_opposites()
    return draft


def _add(draft: Draft, link: Link, mark: str) -> None:
    if link.mark != mark:
        raise FormatError(f"this graph's edges are written {mark}, not {link.mark}", line=link.line)
    direction = "none" if mark == "--" else link.attributes.get("dir", "forward")
    draft.edge(link.a, MARKS.get(direction), link.b, link.line, f"an edge with dir={shown(direction)}")
    draft.sure(*((link.b, link.a) if direction == "back" else (link.a, link.b)), link.attributes, link.line)
