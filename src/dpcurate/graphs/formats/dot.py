"""Graphviz DOT: a line of a CPDAG is an edge with dir=none, a skeleton is an undirected graph.

In a PAG every edge has dir=both and says its marks: none for a tail, normal for an arrowhead, odot for a circle.

The language itself only escapes the quote; as Graphviz shows a backslash only when it is doubled,
a name's backslashes are written doubled and read back as one.
"""

from __future__ import annotations

import re

from dpcurate._messages import shown
from dpcurate.errors import FormatError
from dpcurate.graphs.formats.chances import NO_CHANCES, Chance, Chances
from dpcurate.graphs.formats.dotlike import Link, parse
from dpcurate.graphs.formats.draft import Draft, kind_of
from dpcurate.graphs.graph import Graph, Skeleton, ordered_edges
from dpcurate.graphs.pag import SIGNS, Mark, Pag, sign_of

MARKS = {"none": "--", "forward": "->", "back": "<-"}
SHAPES: dict[Mark, str] = {"tail": "none", "arrow": "normal", "circle": "odot"}
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
READ = {shape: mark for mark, shape in SHAPES.items()}


def quote(name: str) -> str:
    """The name in quotes; control characters, which could steer a terminal, in hexadecimal behind a backslash."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_CONTROL.sub(lambda match: f"{chr(92)}x{ord(match[0]):02x}", escaped)}"'


def unquote(inside: str) -> str:
    """Undo `quote`; a backslash at a line's end joins the lines, any other stays."""
    return re.sub(r'\\(\r?\n|[\\"]|x[0189][0-9a-f]|x7f)', _unescaped, inside)


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1][1:], 16)) if match[1].startswith("x") else match[1].strip("\r\n")


def write(graph: Graph, chances: Chances = NO_CHANCES) -> str:
    plain = isinstance(graph, Skeleton)
    rows = [] if plain else [f"kind={kind_of(graph)}"]
    rows += [quote(name) for name in graph.nodes]
    for a, mark, b in ordered_edges(graph):
        arrow = "--" if plain else "->"
        said = _marks(mark) if isinstance(graph, Pag) else ["dir=none"] if mark == "--" and not plain else []
        said += [f"{name}={value}" for name, value in chances.get((a, b), Chance()).items()]
        rows.append(f"{quote(a)} {arrow} {quote(b)}" + (f" [{', '.join(said)}]" if said else ""))
    body = "".join(f"  {row};\n" for row in rows)
    return f"{'graph' if plain else 'digraph'} {{\n{body}}}\n"


def _marks(sign: str) -> list[str]:
    left, right = SIGNS[sign]
    return ["dir=both", f"arrowtail={SHAPES[left]}", f"arrowhead={SHAPES[right]}"]


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
    sign = _both(link) if direction == "both" else MARKS.get(direction)
    draft.edge(link.a, sign, link.b, link.line, f"an edge with dir={shown(direction)}")
    draft.sure(*((link.b, link.a) if direction == "back" else (link.a, link.b)), link.attributes, link.line)


def _both(link: Link) -> str:
    left, right = (link.attributes.get(name, "normal") for name in ("arrowtail", "arrowhead"))
    for shape in (left, right):
        if shape not in READ:
            raise FormatError(f"the end of an edge is one of {', '.join(READ)}, not {shown(shape)}", line=link.line)
    return sign_of(READ[left], READ[right])
