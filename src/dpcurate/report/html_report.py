"""The report page: one HTML file that opens offline, loads nothing, and runs nothing but its own script."""

from __future__ import annotations

import base64
import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from dpcurate._messages import how_many
from dpcurate.draw.svg import (
    EDGE_SYMBOLS,
    EVEN_DIRECTION,
    MARK_LENGTHS,
    DrawnEdge,
    arrow,
    draw,
    picture,
    relations,
    sign,
)
from dpcurate.draw.text import clean, embedded, escape
from dpcurate.graphs.pag import SIGNS as MARKS
from dpcurate.report.edge_words import effect_cell, reasons, shown_edges, thickness_choice
from dpcurate.report.markup import Head, Html, TableCell, bullets, chance_cell, element, folded, mark, paragraphs, table
from dpcurate.report.meaning import meaning, origin
from dpcurate.report.sections import (
    MOST_PAIRS,
    banner,
    directions_lines,
    directions_note,
    order_section,
    sites_lines,
    statement,
    undecided_section,
    verdict_banner,
    verdict_lines,
    verdict_note,
)
from dpcurate.result.threshold import Threshold

if TYPE_CHECKING:
    from dpcurate.result.discovery import Discovery
    from dpcurate.schema import Column

MOST_LEVELS = 12
EDGE_HEADS = (
    Head("From"),
    Head("Edge"),
    Head("To"),
    Head("P(edge)", True),
    Head("P(direction)", True),
    Head("Meaning"),
    Head("Effect"),
    Head("Source"),
    Head("Last decision"),
)


def page(result: Discovery) -> str:
    """The report as one HTML page that loads nothing."""
    edges = shown_edges(result)
    style, script = _asset("page.css"), _asset("page.js")
    parts = {
        "title": f"Causal graph of {len(result.graph.nodes)} columns",
        "summary": _summary(result, edges),
        "banner": Html(banner(result.privacy) + verdict_banner(result.verdict)),
        "verdict": Html(
            verdict_lines(result.verdict) + directions_lines(result.directions if edges else None) + sites_lines(result)
        ),
        "controls": _controls(edges, result.cut),
        "drawing": draw(result.graph, edges, attributes='role="group" aria-label="The graph, drawn"'),
        "legend": legend(edges),
        "notes": Html("".join(element("p", note, class_="note") for note in result.notes)),
        "order": order_section(result, edges),
        "words": bullets(relations(name, edges) for name in result.graph.nodes),
        "edges": _edges(edges),
        "undecided": undecided_section(result),
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


def _summary(result: Discovery, edges: Sequence[DrawnEdge]) -> Html:
    arrows = sum(edge.directed for edge in edges)
    counted = (
        f"{how_many(len(edges), 'edge')}: {arrows} directed, {len(edges) - arrows} undirected. Method: {result.method}."
    )
    if result.graph.latent:
        kinds = Counter(edge.kind for edge in edges)
        told = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none"
        counted = (
            f"{how_many(len(edges), 'edge')} ({told}), where common causes may be hidden. Method: {result.method}."
        )
    lines = [counted, f"Drawn: {result.drawn}." if result.drawn else "", f"Privacy: {result.privacy.in_short}"]
    lines += [] if result.run is None else [f"{(made := str(result.run))[0].upper()}{made[1:]}."]
    return Html("".join(element("p", line, class_="lead") for line in lines if line))


def _controls(edges: Sequence[DrawnEdge], cut: Threshold | None) -> Html:
    buttons = [("zoom-in", "+", "Zoom in"), ("zoom-out", "−", "Zoom out"), ("zoom-fit", "Fit", "Show all")]
    more = [("full", "Full screen", "Full screen"), ("save", "Save SVG", "Save the drawing as an SVG file")]
    drawn = [element("button", text, type="button", id=i, aria_label=label) for i, text, label in [*buttons, *more]]
    return Html(
        '<div class="controls" role="group" aria-label="Drawing" hidden>'
        f'{"".join(drawn)}<span class="space"></span>{thickness_choice(edges)}{_slider(edges, cut)}</div>'
    )


def _slider(edges: Sequence[DrawnEdge], cut: Threshold | None) -> str:
    """One for pairs and one for arrows, where there are numbers for them."""
    linked = [edge.linked for edge in edges if edge.linked is not None]
    if not linked:
        return ""
    least = _start(None if cut is None else cut.linked, linked)
    count = f"{len(edges)} of {len(edges)} edges shown"
    sliders = _range("least", "Hide edges with P(edge) below", (least, least), "shown", count)
    ways = [edge.direction for edge in edges if edge.directed and edge.direction is not None]
    turning = cut is not None and any(_turns(edge, cut) for edge in edges)
    if ways or turning:
        start = _start(None if cut is None else cut.direction, ways)
        arrows = how_many(sum(edge.directed for edge in edges), "arrow")
        sliders += _range(
            "way", "Draw arrows from P(direction)", (EVEN_DIRECTION if turning else start, start), "ways", arrows
        )
    return f'<span class="sliders">{sliders}</span>'


def _start(cut: float | None, known: Sequence[float]) -> float:
    """What the drawing is cut at: below it there is nothing more to show but lines of which one way is likelier."""
    least = math.floor(100 * min(known, default=1.0)) / 100
    return least if cut is None else min(cut, least)


def _turns(edge: DrawnEdge, cut: Threshold | None) -> bool:
    """Whether a line is an arrow at a lower cut; the graph of the highest expected F1 has no other cut."""
    if cut is None or edge.likelier is None or edge.direction is None:
        return False
    return max(edge.direction, 1 - edge.direction) < cut.direction


def _range(name: str, label: str, ends: tuple[float, float], told: str, now: str) -> str:
    least, start = ends
    return (
        f'<span class="pair"><label for="{name}">{label}</label><input id="{name}" type="range" min="{least:g}" '
        f'max="1" step="0.01" value="{start:g}" aria-describedby="{told}"><output id="{told}" for="{name}">'
        f"{start:.2f}: {now}</output></span>"
    )


def _edges(edges: Sequence[DrawnEdge]) -> Html:
    if not edges:
        return paragraphs(
            "No edge was found. That does not prove independence: see the section on what the picture means."
        )
    rows = list(map(_edge_row, edges))
    used = [i for i in range(len(EDGE_HEADS)) if any(row[i].text != "-" for row in rows)]
    caption = (
        "All edges. P(edge): the probability that the two columns are directly linked. P(direction): the probability "
        "that the edge points from the first to the second, given that there is one. An undirected edge lists its "
        "columns in the order of the table."
        if any(edge.linked is not None for edge in edges)
        else "All edges. An undirected edge lists its columns in the order of the table."
    )
    if any(edge.effects for edge in edges):
        caption += " Effect: what setting one column does to the other, with a 95 % interval."
        caption += reasons(edges)
    cells = [[row[i] for i in used] for row in rows]
    return table(caption, [EDGE_HEADS[i] for i in used], cells, sortable=True, row_name="data_edge", class_="cards")


def _edge_row(edge: DrawnEdge) -> list[TableCell]:
    sure = chance_cell(edge.linked), chance_cell(edge.direction)
    kind = TableCell(f"{edge.glyph}\N{NO-BREAK SPACE}{edge.says}", edge.kind)
    late = f"; not tested at order {', '.join(map(str, edge.open_at))}" if edge.open_at else ""
    last = edge.evidence[-1] if edge.evidence else "-"
    ends = TableCell(edge.a), kind, TableCell(edge.b)
    says = TableCell(clean(edge.meaning) if edge.meaning else "-")
    return [*ends, *sure, says, effect_cell(edge), TableCell(edge.source.value + late), TableCell(last)]


def _absent(result: Discovery) -> Html:
    """Pairs without an edge, with the columns that explained their dependence away."""
    place = {name: i for i, name in enumerate(result.graph.nodes)}
    apart = {frozenset((p.a, p.b)) for p in result.pairs if p.state == "apart"}
    separators = result.learned.skeleton.separators.items()
    known = [(sorted(pair, key=place.__getitem__), given) for pair, given in separators if pair in apart]
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


def _data(result: Discovery, edges: Sequence[DrawnEdge]) -> dict[str, Any]:
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
                "linked": edge.linked,
                "direction": edge.direction,
                **({"turns": True} if _turns(edge, result.cut) else {}),
                **({"says": clean(edge.meaning)} if edge.meaning else {}),
                **({"sign": edge.glyph, "words": edge.says} if edge.sign else {}),
                **({"effects": list(edge.effects)} if edge.effects else {}),
                **({"bold": round(edge.bold, 2)} if edge.strength is not None else {}),
                "about": edge.source.value,
                "evidence": list(edge.evidence),
            }
            for edge in edges
        ],
    }


SYMBOL_MEANINGS = {
    "given": "required by background knowledge, not found in the data",
    "direction": "direction from background knowledge",
    "late": "not fully tested: the budget ran out",
}

MARK_MEANINGS = {
    "->": "cause → effect, perhaps through others",
    "<->": "neither causes the other: a hidden cause moves both",
    "o->": "cause → effect, or a hidden cause of both; never the reverse",
    "o-o": "open: either direction, or a hidden cause of both",
    "o--": "right causes left, or rows were selected by both",
    "--": "rows were selected by both",
}


def legend(edges: Sequence[DrawnEdge]) -> Html:
    """What the lines of the drawing mean, of those that are drawn."""
    lines = [
        _entry(_marked(sign_), text) for sign_, text in MARK_MEANINGS.items() if any(e.sign == sign_ for e in edges)
    ]
    if any(edge.directed and not edge.sign for edge in edges):
        lines.append(
            _entry(
                _sample("", arrow(40, 10).replace("l-4.5 -9h9z", "l-9-4.5v9z")),
                "arrow: the head does not cause the tail",
            )
        )
    if any(not edge.directed and not edge.sign for edge in edges):
        lines.append(_entry(_sample("6 4", ""), "undirected: direction too uncertain"))
    used = {sign(edge) for edge in edges}
    lines += [_entry(_sign(name), text) for name, text in SYMBOL_MEANINGS.items() if name in used]
    if any(edge.linked is not None for edge in edges):
        lines.append(Html('<span id="thicker">thicker: higher P(edge)</span>'))
    return bullets(lines) if lines else Html("")


def _marked(sign_: str) -> str:
    """A short edge of a PAG, from left to right."""
    left, right = MARKS[sign_]
    start, end = 2 + MARK_LENGTHS[left], 40 - MARK_LENGTHS[right]
    line = f'<path d="M{start:g} 10H{end:g}" stroke="currentColor" stroke-width="1.6"/>'
    circle = '<circle cx="{}" cy="10" r="3.8" fill="#fff" stroke="currentColor" stroke-width="1.4"/>'
    head = '<path d="M{} 10l{} -4.5v9z" fill="currentColor"/>'
    drawn = {"circle": circle.format(6), "arrow": head.format(2, 9), "tail": ""}[left]
    drawn += {"circle": circle.format(36), "arrow": head.format(40, -9), "tail": ""}[right]
    return f'<svg width="42" height="20" aria-hidden="true">{line}{drawn}</svg>'


def _entry(picture: str, text: str) -> Html:
    return Html(picture + mark(text))


def _sample(dash: str, head: str) -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    tip = f'<path d="{head}" fill="currentColor"/>' if head else ""
    line = f'<path d="M2 10H{32 if head else 40}" stroke="currentColor" stroke-width="1.6"{dashed}/>'
    return f'<svg width="42" height="20" aria-hidden="true">{line}{tip}</svg>'


def _sign(name: str) -> str:
    return f'<svg width="20" height="20" aria-hidden="true">{EDGE_SYMBOLS[name].format(x=10, y=10)}</svg>'


# ---------------------------------------------------------------------------------------------------------------------
# What a notebook shows: a summary line and the drawing, without a script.


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
