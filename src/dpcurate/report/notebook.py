"""What a notebook shows: a summary line and the drawing, without a script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpcurate.graphs.drawing.notebook import picture
from dpcurate.graphs.drawing.text import escape
from dpcurate.report.edges import shown_edges
from dpcurate.report.verdict import verdict_note

if TYPE_CHECKING:
    from dpcurate.discovery import Discovery


def discovery_html(result: Discovery) -> str:
    edges = shown_edges(result)
    line = f"{len(edges)} edges among {len(result.graph.nodes)} columns, by {result.method}. {result.privacy}"
    warning = "" if result.privacy.private else "<p><strong>NOT PRIVATE</strong></p>"
    return f"<div>{warning}{verdict_note(result.verdict)}<p>{escape(line)}</p>{picture(result.graph, edges)}</div>"
