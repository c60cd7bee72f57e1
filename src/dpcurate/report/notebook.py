"""What a notebook shows: a summary line and the drawing, without a script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpcurate._messages import how_many
from dpcurate.draw.svg import DrawnEdge, picture
from dpcurate.draw.text import escape
from dpcurate.report.edge_words import shown_edges
from dpcurate.report.markup import Head, chance_cell, element, folded, table
from dpcurate.report.sections import directions_note, verdict_note

if TYPE_CHECKING:
    from dpcurate.result.discovery import Discovery


def discovery_html(result: Discovery) -> str:
    """A result as a notebook shows it: the drawing and a line."""
    edges = shown_edges(result)
    found = f"{how_many(len(edges), 'edge')} among {how_many(len(result.graph.nodes), 'column')}"
    line = f"{found}, by {result.method}. {result.privacy}"
    warning = "" if result.privacy.private else "<p><strong>NOT PRIVATE</strong></p>"
    said = [result.drawn and f"Drawn: {result.drawn}.", result.open_pairs]
    drawn = "".join(element("p", text) for text in said if text)
    sure = _numbers(edges) if result.learned.linked else ""
    verdicts = verdict_note(result.verdict) + directions_note(result.directions if edges else None)
    top = f"{warning}{verdicts}<p>{escape(line)}</p>"
    return f"<div>{top}{picture(result.graph, edges)}{drawn}{sure}</div>"


def _numbers(edges: Sequence[DrawnEdge]) -> str:
    """How sure each edge is, folded."""
    heads = [Head("Edge"), Head("P(edge)", True), Head("P(direction)", True), Head("Effect")]
    rows = [
        (edge.between, chance_cell(edge.linked), chance_cell(edge.direction), "; ".join(edge.effects) or "-")
        for edge in edges
    ]
    if not any(edge.effects for edge in edges):
        heads, rows = heads[:3], [row[:3] for row in rows]  # type: ignore[misc]
    return folded("Probabilities and effects of each edge", table("All edges", heads, rows)) if rows else ""
