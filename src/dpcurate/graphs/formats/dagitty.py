"""DAGitty text: `dag { a -> b }`, `pdag { a -> b b -- c }` for a CPDAG, `pag { a @-> b }` for a PAG.

Its strings escape nothing but the quote and hold no control characters, so a few names cannot
be written and are refused.
"""

from __future__ import annotations

import re

from dpcurate.errors import FormatError
from dpcurate.graphs.formats.chances import NO_CHANCES, Chances
from dpcurate.graphs.formats.dotlike import parse
from dpcurate.graphs.formats.draft import Draft, GraphKind, kind_of
from dpcurate.graphs.graph import Graph, Skeleton, ordered_edges

KINDS: dict[str, GraphKind] = {"dag": "dag", "pdag": "cpdag", "pag": "pag", "digraph": "dag"}


def write(graph: Graph, _: Chances = NO_CHANCES) -> str:
    if isinstance(graph, Skeleton):
        raise FormatError("DAGitty text has no skeletons; write it as json, csv or dot")
    rows = [_quote(name) for name in graph.nodes]
    rows += [f"{_quote(a)} {mark.replace('o', '@')} {_quote(b)}" for a, mark, b in ordered_edges(graph)]
    word = next(word for word, kind in KINDS.items() if kind == kind_of(graph))
    return "\n".join([f"{word} {{", *rows, "}\n"])


def _quote(name: str) -> str:
    if re.search(r'[\x00-\x1f\x7f]|\\"|\\$', name):
        raise FormatError(f"DAGitty text cannot hold the name {name!r}; write the graph as json, csv or dot")
    return '"' + name.replace('"', '\\"') + '"'


def read(text: str) -> Draft:
    parsed = parse(text, tuple(KINDS), lambda inside: inside.replace('\\"', '"'))
    draft = Draft(KINDS[parsed.word])
    for name, line in parsed.nodes:
        draft.mention(name, line)
    for link in parsed.links:
        if link.mark == "--" and KINDS[parsed.word] == "dag":
            raise FormatError("a dag has no undirected edge; write pdag instead of dag", line=link.line)
        draft.edge(link.a, link.mark.replace("@", "o"), link.b, link.line, f"an edge {link.mark}")
    return draft
