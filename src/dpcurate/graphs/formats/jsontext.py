"""JSON: {"kind": "cpdag", "nodes": [...], "arrows": [[a, b]], "lines": [[a, b]]}.

A PAG has its other edges as "marked": [[a, "o->", b]], a skeleton has separating sets as
"separators": [{"pair": [a, b], "given": [...]}]. Where it is known how sure the edges are,
"chances" says it: [{"from": a, "to": b, "linked": 0.97, "direction": 0.91}]; of an edge of a PAG also
"tail_from", "head_from", "tail_to" and "head_to", the probabilities of its marks at a and at b.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from dpcurate._files import line_at
from dpcurate._messages import shown
from dpcurate.errors import FormatError
from dpcurate.graphs.formats.graph_draft import NO_PROBABILITIES, EdgeProbabilities, GraphDraft
from dpcurate.graphs.graph import Graph, Skeleton, ordered_edges

_NAME = r'"(?:\\.|[^"\\])*+"'
_PAIR = re.compile(rf"\[\s*{_NAME}\s*,\s*{_NAME}\s*\]")


def write(graph: Graph, probabilities: EdgeProbabilities = NO_PROBABILITIES) -> str:
    """A graph as JSON."""
    edges = ordered_edges(graph)
    table: dict[str, Any] = {
        "kind": graph.kind,
        "nodes": list(graph.nodes),
        "arrows": [[a, b] for a, mark, b in edges if mark == "->"],
        "lines": [[a, b] for a, mark, b in edges if mark == "--"],
    }
    if graph.latent:
        table["marked"] = [list(edge) for edge in edges if edge[1] not in ("->", "--")]
    if isinstance(graph, Skeleton):
        pairs = sorted((sorted(pair), list(given)) for pair, given in graph.separators.items())
        table["separators"] = [{"pair": pair, "given": given} for pair, given in pairs]
    known = [((a, b), probabilities[a, b]) for a, _, b in edges if (a, b) in probabilities]
    if known:
        table["chances"] = [{"from": a, "to": b} | probability.numbers() for (a, b), probability in known]
    return one_a_line(table)


def one_a_line(table: Mapping[str, Any]) -> str:
    """The table as JSON, its lists with one entry a line: files compare well and an error can point at its line."""
    rows = ",\n".join(f"  {json.dumps(key)}: {_rows(value)}" for key, value in table.items())
    return f"{{\n{rows}\n}}\n"


def _rows(value: Any) -> str:
    if not isinstance(value, list) or not value:
        return json.dumps(value, ensure_ascii=False)
    return "[\n" + ",\n".join("    " + json.dumps(item, ensure_ascii=False) for item in value) + "\n  ]"


def read(text: str) -> GraphDraft:
    """A graph from JSON."""
    table = _table(text)
    draft = GraphDraft()
    if "kind" in table:
        draft.say_kind(table["kind"], _line_of_key(text, "kind"))
    here = _line_of_key(text, "nodes")
    for name in _strings(table.get("nodes"), "nodes", here):
        draft.declare(name, here)
    places = _lines_of_pairs(text)
    for key, add in (("arrows", draft.arrow), ("lines", draft.line)):
        for a, b in _pairs(table.get(key, []), key, text):
            line = places.get((a, b))
            draft.require(a, line)
            draft.require(b, line)
            add(a, b, line)
    _read_marked(draft, table, text)
    draft.separators_line = _line_of_key(text, "separators")
    for entry in _list(table.get("separators", []), "separators", text):
        pair, given = _separator(entry, draft.separators_line)
        draft.separators[frozenset(pair)] = tuple(given)
    here = _line_of_key(text, "chances")
    for entry in _list(table.get("chances", []), "chances", text):
        a, b = _ends(entry, here)
        draft.require(a, here)
        draft.require(b, here)
        draft.sure(a, b, entry, here)
    return draft


def _read_marked(draft: GraphDraft, table: dict[str, Any], text: str) -> None:
    here = _line_of_key(text, "marked")
    for entry in _list(table.get("marked", []), "marked", text):
        edge = _strings(entry, "marked", here)
        if len(edge) != 3:
            raise FormatError(f'"marked" holds edges as [a, "o->", b], not {shown(edge)}', line=here)
        for name in (edge[0], edge[2]):
            draft.require(name, here)
        draft.edge(edge[0], edge[1], edge[2], here, f"an edge {shown(edge[1])}")


def _table(text: str) -> dict[str, Any]:
    try:
        table = json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError(f"not JSON: {error.msg}", line=error.lineno) from None
    except RecursionError:
        raise FormatError("not a graph: nested too deeply", line=1) from None
    except ValueError as error:  # a number of too many digits
        raise FormatError(f"not a graph: {error}", line=1) from None
    if not isinstance(table, dict):
        raise FormatError('expected an object with "nodes", "arrows" and "lines"', line=1)
    return table


def _separator(entry: Any, line: int) -> tuple[list[str], list[str]]:
    if not isinstance(entry, dict) or set(entry) != {"pair", "given"}:
        raise FormatError('an entry of "separators" is an object with "pair" and "given"', line=line)
    return _strings(entry["pair"], "pair", line), _strings(entry["given"], "given", line)


def _ends(entry: Any, line: int) -> tuple[str, str]:
    if not isinstance(entry, dict) or not isinstance(entry.get("from"), str) or not isinstance(entry.get("to"), str):
        raise FormatError('an entry of "chances" is an object with the names "from" and "to"', line=line)
    return entry["from"], entry["to"]


def _pairs(value: Any, key: str, text: str) -> list[list[str]]:
    line = _line_of_key(text, key)
    pairs = [_strings(part, key, line) for part in _list(value, key, text)]
    for pair in pairs:
        if len(pair) != 2:
            raise FormatError(f'"{key}" holds pairs of names, not {pair!r}', line=line)
    return pairs


def _list(value: Any, key: str, text: str) -> list[Any]:
    if not isinstance(value, list):
        raise FormatError(f'"{key}" must be a list', line=_line_of_key(text, key))
    return value


def _strings(value: Any, key: str, line: int) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise FormatError(f'"{key}" must hold lists of names', line=line)
    return value


def _line_of_key(text: str, key: str) -> int:
    match = re.search(rf'"{key}"\s*:', text)
    return line_at(text, match.start()) if match else 1


def _lines_of_pairs(text: str) -> dict[tuple[str, ...], int]:
    """The last line of every pair of names; json gives no positions of its own."""
    lines, line, place = {}, 1, 0
    for match in _PAIR.finditer(text):
        line, place = line + text.count("\n", place, match.start()), match.start()
        lines[tuple(json.loads(match[0], strict=False))] = line  # may begin inside a name
    return lines
