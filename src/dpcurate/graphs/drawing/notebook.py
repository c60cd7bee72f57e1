"""A graph in a notebook: a summary line and the drawing, without a script."""

from __future__ import annotations

from dpcurate._messages import how_many
from dpcurate.graphs.drawing.edges import Origin, Shown
from dpcurate.graphs.drawing.svg import draw
from dpcurate.graphs.drawing.text import escape
from dpcurate.graphs.graph import Graph, Pag, ordered_edges

FITS = 'style="max-width:100%;height:auto" role="img" aria-label="{}"'


def graph_html(graph: Graph) -> str:
    marked = isinstance(graph, Pag)
    edges = tuple(
        Shown(a, b, way == "->", Origin.DATA, sign=way if marked else "") for a, way, b in ordered_edges(graph)
    )
    line = f"{type(graph).__name__}: {how_many(len(graph.nodes), 'node')}, {how_many(len(edges), 'edge')}"
    return f"<div><p>{escape(line)}</p>{picture(graph, edges)}</div>"


def picture(graph: Graph, edges: tuple[Shown, ...]) -> str:
    """The drawing, with its edges in words for those who cannot see it."""
    words = "; ".join(f"{edge.a} {edge.glyph} {edge.b}" for edge in edges) or "no edges"
    return draw(graph, edges, attributes=FITS.format(escape(words)))
