"""What a notebook shows: a summary line and the drawing, without a script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpcurate.graphs.graph import Graph, ordered_edges
from dpcurate.report.edges import Shown, Source, shown_edges
from dpcurate.report.svg import draw
from dpcurate.report.text import escape

if TYPE_CHECKING:
    from dpcurate.discovery import Discovery

FITS = 'style="max-width:100%;height:auto" role="img" aria-label="{}"'


def discovery_html(found: Discovery) -> str:
    """A discovery in a notebook cell."""
    edges = shown_edges(found)
    line = f"{len(edges)} edges among {len(found.graph.nodes)} columns, by {found.method}. {found.privacy}"
    warning = "" if found.privacy.private else "<p><strong>NOT PRIVATE</strong></p>"
    return f"<div>{warning}<p>{escape(line)}</p>{_picture(found.graph, edges)}</div>"


def graph_html(graph: Graph) -> str:
    """A graph in a notebook cell."""
    edges = tuple(Shown(a, b, way == "->", Source.DATA) for a, way, b in ordered_edges(graph))
    line = f"{type(graph).__name__}: {len(graph.nodes)} nodes, {len(edges)} edges"
    return f"<div><p>{escape(line)}</p>{_picture(graph, edges)}</div>"


def _picture(graph: Graph, edges: tuple[Shown, ...]) -> str:
    words = "; ".join(f"{edge.a} {'→' if edge.directed else '—'} {edge.b}" for edge in edges) or "no edges"
    return draw(graph, edges, attributes=FITS.format(escape(words)))
