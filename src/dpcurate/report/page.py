"""The report page: one HTML file that opens offline, loads nothing, and runs nothing but its own script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from dpcurate.graphs.drawing.edges import Shown
from dpcurate.graphs.drawing.svg import draw, relations
from dpcurate.graphs.drawing.text import clean, embedded
from dpcurate.report.edges import open_orders, shown_edges
from dpcurate.report.legend import legend
from dpcurate.report.markup import Head, Html, TableCell, bullets, element, folded, paragraphs, table
from dpcurate.report.meaning import meaning, origin
from dpcurate.report.privacy import banner, statement
from dpcurate.report.verdict import verdict_banner, verdict_lines

if TYPE_CHECKING:
    from dpcurate.discovery import Discovery
    from dpcurate.schema import Column

MOST_PAIRS = 500
MOST_LEVELS = 12
EDGE_HEADS = (
    Head("From"),
    Head("Edge"),
    Head("To"),
    Head("Confidence", True),
    Head("Where from"),
    Head("Last decision"),
)


def page(result: Discovery) -> str:
    edges = shown_edges(result)
    style, script = _asset("page.css"), _asset("page.js")
    parts = {
        "title": f"Causal graph of {len(result.graph.nodes)} columns",
        "summary": _summary(result, edges),
        "banner": Html(banner(result.privacy) + verdict_banner(result.verdict)),
        "verdict": verdict_lines(result.verdict),
        "controls": _controls(edges),
        "drawing": draw(result.graph, edges, attributes='role="group" aria-label="The graph, drawn"'),
        "legend": legend(edges),
        "notes": Html("".join(element("p", note, class_="note") for note in result.notes)),
        "words": bullets(relations(name, edges) for name in result.graph.nodes),
        "edges": _edges(edges),
        "undecided": _undecided(result),
        "privacy": statement(result),
        "meaning": meaning(result, edges),
        "made": origin(result),
        "absent": _absent(result),
        "columns": _columns(result),
        "data": embedded(_data(result, edges)),
    }
    safe = {"style": style, "script": script, "style_hash": _hash(style), "script_hash": _hash(script)}
    return Template(_asset("page.html")).substitute(parts, **safe)


def _asset(name: str) -> str:
    return (files("dpcurate.report") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _summary(result: Discovery, edges: Sequence[Shown]) -> Html:
    arrows = sum(edge.directed for edge in edges)
    counted = f"{len(edges)} edges: {arrows} directed, {len(edges) - arrows} undirected. Method: {result.method}."
    return Html(element("p", counted, class_="lead") + element("p", f"Privacy: {result.privacy}", class_="lead"))


def _controls(edges: Sequence[Shown]) -> Html:
    buttons = [("zoom-in", "+", "Zoom in"), ("zoom-out", "−", "Zoom out"), ("zoom-fit", "Fit", "Show all")]
    more = [("full", "Full screen", "Full screen"), ("save", "Save SVG", "Save the drawing as an SVG file")]
    drawn = [element("button", text, type="button", id=i, aria_label=label) for i, text, label in [*buttons, *more]]
    return Html(
        '<div class="controls" role="group" aria-label="Drawing" hidden>'
        f'{"".join(drawn)}<span class="space"></span>{_slider(edges)}</div>'
    )


def _slider(edges: Sequence[Shown]) -> str:
    if all(edge.confidence is None for edge in edges):
        return ""
    return (
        '<label for="least">Hide edges below confidence</label>'
        '<input id="least" type="range" min="0" max="1" step="0.01" value="0" aria-describedby="shown">'
        f'<output id="shown" for="least">0.00: {len(edges)} of {len(edges)} edges shown</output>'
    )


def _edges(edges: Sequence[Shown]) -> Html:
    if not edges:
        return paragraphs("No edge was found. That is not proof of independence: see what the picture means, below.")
    rows = list(map(_edge_row, edges))
    used = [i for i in range(len(EDGE_HEADS)) if any(row[i].text != "-" for row in rows)]
    caption = "Every edge. An undirected edge has no from and to: its two columns stand in the columns' order."
    cells = [[row[i] for i in used] for row in rows]
    return table(caption, [EDGE_HEADS[i] for i in used], cells, sortable=True, row_name="data_edge")


def _edge_row(edge: Shown) -> list[TableCell]:
    sure = (
        TableCell("-", "-1")
        if edge.confidence is None
        else TableCell(f"{edge.confidence:.2f}", f"{edge.confidence:.6f}")
    )
    kind = TableCell(f"{'→' if edge.directed else '—'}\N{NO-BREAK SPACE}{edge.kind}", edge.kind)
    late = f"; not tested at order {', '.join(map(str, edge.open_at))}" if edge.open_at else ""
    last = edge.evidence[-1] if edge.evidence else "-"
    return [TableCell(edge.a), kind, TableCell(edge.b), sure, TableCell(edge.source.value + late), TableCell(last)]


def _undecided(result: Discovery) -> Html:
    late = open_orders(result.learned.unfinished)
    if not late:
        return Html("")
    place = {name: i for i, name in enumerate(result.graph.nodes)}
    pairs = sorted((sorted(pair, key=place.__getitem__), orders) for pair, orders in late.items())
    rows = [(a, b, ", ".join(map(str, orders))) for (a, b), orders in pairs]
    said = paragraphs(
        f"The budget ended before {len(rows)} edge(s) were tested at every order. They are in the graph because "
        "nothing removed them, not because something confirmed them."
    )
    listed = table("Edges not tested to the end", [Head("Column"), Head("Column"), Head("Untested at order")], rows)
    return element("section", element("h2", "Undecided edges", id="h-open"), said, listed, aria_labelledby="h-open")


def _absent(result: Discovery) -> Html:
    """Pairs without an edge, with the columns that explained their dependence away."""
    place = {name: i for i, name in enumerate(result.graph.nodes)}
    known = [(sorted(pair, key=place.__getitem__), given) for pair, given in result.learned.skeleton.separators.items()]
    known.sort(key=lambda item: [place[name] for name in item[0]])
    rows = [(a, b, ", ".join(map(clean, given)) or "nothing") for (a, b), given in known[:MOST_PAIRS]]
    if not rows:
        return Html("")
    more = f"; the first {MOST_PAIRS} of {len(known)}" if len(known) > MOST_PAIRS else ""
    heads = [Head("Column"), Head("Column"), Head("Judged independent given")]
    return folded(f"Pairs without an edge, and why{more}", table("Pairs judged independent", heads, rows), class_="")


def _columns(result: Discovery) -> Html:
    rows = [(column.name, column.kind, _levels(column)) for column in result.schema.columns]
    heads = [Head("Column"), Head("Kind"), Head("Levels, bins or bounds")]
    return folded("Columns, as the schema describes them", table("Public facts", heads, rows), class_="")


def _levels(column: Column) -> str:
    shown = ", ".join(map(clean, column.levels[:MOST_LEVELS]))
    return shown if len(column.levels) <= MOST_LEVELS else f"{shown}, … ({len(column.levels)} in all)"


def _kind(column: Column) -> str:
    if not column.has_levels:
        return f"a number, {column.levels[0]}"
    return f"{column.kind}, {column.size} {'bins' if column.kind == 'numeric' else 'levels'}"


def _data(result: Discovery, edges: Sequence[Shown]) -> dict[str, Any]:
    """What the script shows on demand."""
    place = {name: i for i, name in enumerate(result.graph.nodes)}
    kinds = {column.name: _kind(column) for column in result.schema.columns}
    return {
        "nodes": [{"name": clean(name), "about": kinds.get(name, "")} for name in result.graph.nodes],
        "edges": [
            {
                "a": place[edge.a],
                "b": place[edge.b],
                "directed": edge.directed,
                "confidence": edge.confidence,
                "about": f"{edge.kind}, {edge.source.value}",
                "evidence": list(edge.evidence),
            }
            for edge in edges
        ],
    }
