"""The text of Tetrad and causal-learn.

    Graph Nodes:
    smoke;lung

    Graph Edges:
    1. smoke --> lung

The format has no quoting. A name it would mangle is written as a JSON string, which this reader
understands; a plain name with spaces is read as it stands. How sure an edge is stands after it as Tetrad writes
what it found by resampling, `[smoke --> lung]:0.9000;[smoke <-- lung]:0.0500;[no edge]:0.0500;`, and is not read back.
"""

from __future__ import annotations

import json
import re

from dpcurate._messages import shown
from dpcurate.errors import FormatError
from dpcurate.graphs.formats.graph_draft import (
    NO_PROBABILITIES,
    EdgeProbabilities,
    EdgeProbability,
    GraphDraft,
    split_lines,
)
from dpcurate.graphs.graph import Graph, ordered_edges

_STRING = r'"(?:\\.|[^"\\])*+"'
_NUMBERED = re.compile(r"[0-9]++\.\s++")
_MARK = re.compile(r"(?<=\s)[<o-][-o][->o](?=\s)")
_FLAGS = ("dd", "pd", "nl", "pl")
"""What Tetrad writes after an edge whose confounding it judged."""
_PLAIN = re.compile(r'[^\s;,"\\]+')
TETRAD_EDGES = {"->": "-->", "--": "---", "<->": "<->", "o->": "o->", "o-o": "o-o", "o--": "o--"}
SIGN_OF_TETRAD = {written: sign for sign, written in TETRAD_EDGES.items()} | {"<--": "<-", "<-o": "<-o", "--o": "--o"}


def write(graph: Graph, probabilities: EdgeProbabilities = NO_PROBABILITIES) -> str:
    """A graph as Tetrad's text."""
    rows = ["Graph Nodes:", ";".join(map(_quote, graph.nodes)), "", "Graph Edges:"]
    for number, (a, mark, b) in enumerate(ordered_edges(graph), 1):
        sure = _sure(_quote(a), _quote(b), probabilities.get((a, b), EdgeProbability()))
        rows.append(f"{number}. {_quote(a)} {TETRAD_EDGES[mark]} {_quote(b)}{sure}")
    return "\n".join([*rows, "", "Graph Attributes:", f"kind: {graph.kind}", ""])


def _sure(a: str, b: str, probability: EdgeProbability) -> str:
    """The kinds of edge and how likely each is, if that is known."""
    if probability.linked is None:
        return ""
    kinds = {"edge": probability.linked}
    if probability.direction is not None:
        there = probability.linked * probability.direction
        kinds = {f"{a} --> {b}": there, f"{a} <-- {b}": probability.linked - there}
    return " " + "".join(f"[{kind}]:{p:.4f};" for kind, p in (kinds | {"no edge": 1 - probability.linked}).items())


def _quote(name: str) -> str:
    # Non-ASCII stays as it is, except line ends of any alphabet, which would cut the line.
    if _PLAIN.fullmatch(name):
        return name
    return re.sub(r"[^\S ]", lambda match: f"\\u{ord(match[0]):04x}", json.dumps(name, ensure_ascii=False))


def _unquote(text: str, line: int) -> str:
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except json.JSONDecodeError as error:
        raise FormatError(f"the name {shown(text)} is not a JSON string: {error.msg}", line=line) from None


def read(text: str) -> GraphDraft:
    """A graph from Tetrad's text."""
    draft, section, seen = GraphDraft(), "", False
    for line, row in enumerate(split_lines(text), 1):
        heading = re.fullmatch(r"\s*Graph (Nodes|Edges|Attributes|Node Attributes):\s*", row)
        if heading:
            section, seen = heading[1], seen or heading[1] == "Nodes"
        elif row.strip() and section == "Nodes":
            _read_nodes(draft, row.strip(), line)
        elif row.strip() and section == "Edges":
            _read_edge(draft, row.strip(), line)
        elif section == "Attributes" and row.startswith("kind:"):
            draft.say_kind(row.removeprefix("kind:").strip(), line)
        elif row.strip() and not section:
            raise FormatError(f"expected 'Graph Nodes:', found {shown(row.strip())}", line=line)
    if not seen:
        raise FormatError("no 'Graph Nodes:'", line=text.count("\n") + 1)
    return draft


def _read_nodes(draft: GraphDraft, row: str, line: int) -> None:
    """Names between semicolons; Tetrad also writes commas."""
    unquoted = re.sub(_STRING, "", row)
    separator = ";" if ";" in unquoted or "," not in unquoted else ","
    name = re.compile(rf"\s*+({_STRING})\s*+(?:{separator}|$)|([^{separator}]*+)(?:{separator}|$)")
    place = 0
    while place < len(row):
        match = name.match(row, place)
        if match is None:
            raise FormatError(f"a name that never ends: {shown(row[place:])}", line=line)
        draft.declare(_unquote(match[1] or match[2].strip(), line), line)
        place = match.end()


def _read_edge(draft: GraphDraft, row: str, line: int) -> None:
    a, mark, b = _split_edge(row, line)
    draft.require(a, line)
    draft.require(b, line)
    draft.edge(a, SIGN_OF_TETRAD.get(mark), b, line, f"an edge {mark}")


def _without_chances(second: str) -> str:
    """The second name without what stands after it in brackets; no plain name holds a semicolon."""
    name = re.compile(_STRING).match(second)
    end = second.find(" [", name.end() if name else 0)
    return second[:end] if end >= 0 and ";" in second[end:] else second


def _split_edge(row: str, line: int) -> tuple[str, str, str]:
    """The two names and the mark; a plain name ends where the first mark stands."""
    start = _NUMBERED.match(row)
    quoted = re.compile(_STRING).match(row, start.end()) if start else None
    mark = _MARK.search(row, quoted.end() if quoted else start.end() + 1) if start else None
    if start is None or mark is None:
        raise FormatError(f"expected an edge such as '1. a --> b', found {shown(row)}", line=line)
    second = _without_chances(row[mark.end() :].strip())
    while second.endswith(_FLAGS) and second[:-2].endswith((" ", "\t")):
        second = second[:-2].rstrip()
    return _unquote(row[start.end() : mark.start()].strip(), line), mark[0], _unquote(second, line)
