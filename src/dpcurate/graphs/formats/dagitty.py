"""DAGitty text: `dag { a -> b }` for a DAG, `pdag { a -> b b -- c }` for a CPDAG.

Its strings escape nothing but the quote and hold no control characters, so a few names cannot
be written and are refused.
"""

from __future__ import annotations

import re

from dpcurate.errors import FormatError
from dpcurate.graphs.formats.chances import NO_CHANCES, Chances
from dpcurate.graphs.formats.dotlike import parse
from dpcurate.graphs.formats.draft import Draft
from dpcurate.graphs.graph import Dag, Graph, Skeleton, ordered_edges


def write(graph: Graph, _: Chances = NO_CHANCES) -> str:
    if isinstance(graph, Skeleton):
        raise FormatError("DAGitty text has no skeletons; write it as json, csv or dot")
    rows = [_quote(name) for name in graph.nodes]
    rows += [f"{_quote(a)} {mark} {_quote(b)}" for a, mark, b in ordered_edges(graph)]
    return "\n".join(["dag {" if isinstance(graph, Dag) else "pdag {", *rows, "}\n"])


def _quote(name: str) -> str:
    if re.search(r'[\x00-\x1f\x7f]|\\"|\\$', name):
        raise FormatError(f"DAGitty text cannot hold the name {name!r}; write the graph as json, csv or dot")
    return '"' + name.replace('"', '\\"') + '"'


def read(text: str) -> Draft:
    parsed = parse(text, ("dag", "pdag", "digraph"), lambda inside: inside.replace('\\"', '"'))
    draft = Draft("cpdag" if parsed.word == "pdag" else "dag")
    for name, line in parsed.nodes:
        draft.mention(name, line)
    for link in parsed.links:
        if link.mark == "--" and parsed.word != "pdag":
            raise FormatError("a dag has no undirected edge; write pdag instead of dag", line=link.line)
        draft.edge(link.a, link.mark, link.b, link.line, f"an edge {link.mark}")
    return draft
