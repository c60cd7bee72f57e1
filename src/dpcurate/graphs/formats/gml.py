"""GML, written only. A line of a CPDAG is two opposite edges, as in `to_networkx`, so networkx reads it too."""

from __future__ import annotations

import re

from dpcurate.errors import FormatError
from dpcurate.graphs.formats.chances import NO_CHANCES, Chance, Chances
from dpcurate.graphs.formats.draft import Draft, has_two_arcs, kind_of, marks_at
from dpcurate.graphs.graph import Graph, Skeleton, ordered_edges

# The grammar is ASCII; a quote or an ampersand in a string must be an entity too.
_UNSAFE = re.compile(r'[^ -~]|["&]')


def write(graph: Graph, chances: Chances = NO_CHANCES) -> str:
    plain = isinstance(graph, Skeleton)
    place = {name: i for i, name in enumerate(graph.nodes)}
    rows = [f"  directed {int(not plain)}", f'  kind "{kind_of(graph)}"']
    rows += [f"  node [ id {i} label {_quote(name)} ]" for name, i in place.items()]
    for a, mark, b in ordered_edges(graph):
        chance = chances.get((a, b), Chance())
        rows.append(_edge(place[a], place[b], chance, marks_at(graph, a, b)))
        if has_two_arcs(graph, mark):
            rows.append(_edge(place[b], place[a], chance.turned(), marks_at(graph, b, a)))
    return "\n".join(["graph [", *rows, "]\n"])


def _edge(a: int, b: int, chance: Chance, marks: list[tuple[str, str]]) -> str:
    ends = "".join(f' {name} "{mark}"' for name, mark in marks)
    sure = "".join(f" {name.replace('_', '')} {value}" for name, value in chance.items())
    return f"  edge [ source {a} target {b}{ends}{sure} ]"


def _quote(name: str) -> str:
    return '"' + _UNSAFE.sub(lambda match: f"&#{ord(match[0])};", name) + '"'


def read(_: str) -> Draft:
    raise FormatError(
        "GML is written but not read: read it with networkx.read_gml and pass that to from_networkx, "
        "or save the graph as graphml"
    )
