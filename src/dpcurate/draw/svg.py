"""A graph as SVG: plain shapes with their own colours and no ids, so it also stands alone or in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from dpcurate._messages import how_many, probability
from dpcurate.draw.layout import BOX_HEIGHT, XY, Box, GraphLayout, halfway, lay_out, stretches
from dpcurate.draw.text import FONT_SIZE, clean, escape, short, width
from dpcurate.graphs.base_graph import Mark
from dpcurate.graphs.graph import Graph, ordered_edges
from dpcurate.graphs.pag import EDGE_GLYPHS, EDGE_KINDS, SIGNS, meaning

EVEN_DIRECTION = 0.5
"""P(direction) of which neither way is likelier."""


class EdgeOrigin(Enum):
    """Where an edge comes from."""

    DATA = "found in the data"
    DIRECTION = "found in the data; its direction is background knowledge"
    GIVEN = "required by background knowledge"


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """An edge as the report shows it; `linked` and `direction` are those of a `Edge`."""

    a: str
    b: str
    directed: bool
    source: EdgeOrigin
    linked: float | None = None
    direction: float | None = None
    evidence: tuple[str, ...] = ()
    open_at: tuple[int, ...] = ()
    """Orders at which the budget ended before it was tested."""
    sign: str = ""
    """In a PAG, how the edge is written."""
    effects: tuple[str, ...] = ()
    """What setting one end does to the other, in words."""
    strength: float | None = None
    """Of the effect, between 0 and 1."""
    raises: bool | None = None
    """Its sign, where that is sure."""
    meaning: str = ""
    """Of an arrow, what it says in a sentence."""

    @property
    def kind(self) -> str:
        """The class of the style sheet that draws it."""
        if self.sign:
            return EDGE_KINDS[self.sign]
        return "directed" if self.directed else "undirected"

    @property
    def glyph(self) -> str:
        """The edge as a character, such as →."""
        if self.sign:
            return EDGE_GLYPHS[self.sign]
        return "→" if self.directed else "—"

    @property
    def marks(self) -> tuple[Mark, Mark]:
        """At a and at b."""
        return SIGNS[self.sign] if self.sign else ("tail", "arrow" if self.directed else "tail")

    @property
    def likelier(self) -> tuple[Mark, Mark] | None:
        """Of a line the marks of the arrow that is likelier than its opposite, if either is."""
        if self.directed or self.sign or self.direction is None or self.direction == EVEN_DIRECTION:
            return None
        return ("tail", "arrow") if self.direction > EVEN_DIRECTION else ("arrow", "tail")

    @property
    def says(self) -> str:
        """What it means: one word, in a PAG a sentence."""
        return meaning(clean(self.a), self.sign, clean(self.b)) if self.sign else self.kind

    @property
    def between(self) -> str:
        """Both columns with the edge between them."""
        return f"{clean(self.a)} {self.glyph} {clean(self.b)}"

    @property
    def words(self) -> str:
        """The edge in words, as a screen reader says it."""
        sure = f", {self.sure}" if self.sure else ""
        late = ", not fully tested" if self.open_at else ""
        return f"{self.between}: {self.says}, {self.source.value}{sure}{late}"

    @property
    def sure(self) -> str:
        """Both probabilities, as far as they are known."""
        known = [("P(edge)", self.linked), (f"P({clean(self.a)} → {clean(self.b)})", self.direction)]
        return ", ".join(probability(name, p) for name, p in known if p is not None)

    @property
    def bold(self) -> float:
        """As thick as its effect is strong, on the same scale."""
        return 0.6 if self.strength is None else 0.6 + 2.8 * self.strength**0.5

    @property
    def thickness(self) -> float:
        """Thicker the higher P(edge): between 0.6 and 3.4, so that a half is thin."""
        return 1.4 if self.linked is None else 0.6 + 2.8 * self.linked**2


MARGIN = 14.0
HEAD_LENGTH = 9.0
"""Length of an arrowhead."""
MARK_LENGTHS: Mapping[Mark, float] = {"tail": 0.0, "arrow": HEAD_LENGTH, "circle": 8.0}
MarkAt = tuple[Mark, XY, int]
"""A mark, its place, and 1 if the edge comes from above, -1 from below."""
FONT = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', Arial, sans-serif"


def labels(graph: Graph) -> dict[str, str]:
    """What is written in the boxes: names, shortened if they are long."""
    return {name: short(name) for name in graph.nodes}


def placed(graph: Graph) -> GraphLayout:
    """Where the boxes of the labels lie."""
    return lay_out(graph, {name: max(34.0, width(label) + 18) for name, label in labels(graph).items()})


def draw(graph: Graph, edges: Sequence[DrawnEdge], *, attributes: str = "") -> str:
    """The drawing; `attributes` go into the svg element."""
    layout = placed(graph)
    wide, high = layout.width + 2 * MARGIN, layout.height + 2 * MARGIN
    box = f"{-MARGIN:g} {-MARGIN:g} {wide:.0f} {high:.0f}"
    lines = [_edge(i, edge, layout) for i, edge in enumerate(edges)]
    boxes = [_node(i, name, layout.boxes[name], edges) for i, name in enumerate(graph.nodes)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="{wide:.0f}" height="{high:.0f}"'
        f' font-family="{escape(FONT)}" font-size="{FONT_SIZE:g}" {attributes}>'
        f'<g class="edges">{"".join(lines)}</g><g class="nodes">{"".join(boxes)}</g></svg>'
    )


def _node(i: int, name: str, box: Box, edges: Sequence[DrawnEdge]) -> str:
    left, top = box.x - box.width / 2, box.y - BOX_HEIGHT / 2
    return (
        f'<g class="node" data-node="{i}" role="button" tabindex="-1" aria-pressed="false"'
        f' aria-label="{escape(relations(name, edges))}">'
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{BOX_HEIGHT:g}" rx="6"'
        f' fill="currentColor" fill-opacity=".06" stroke="currentColor"/>'
        f'<text x="{box.x:.1f}" y="{box.y + FONT_SIZE * 0.35:.1f}" text-anchor="middle" fill="currentColor">'
        f"{escape(short(name))}</text></g>"
    )


def relations(name: str, edges: Sequence[DrawnEdge]) -> str:
    """A node and its neighbours in words."""
    if any(e.sign for e in edges):
        return f"{name}: " + ("; ".join(e.between for e in edges if name in (e.a, e.b)) or "no edges")
    into = [e.a for e in edges if e.directed and e.b == name]
    out = [e.b for e in edges if e.directed and e.a == name]
    open_ = [e.b if e.a == name else e.a for e in edges if not e.directed and name in (e.a, e.b)]
    said = [("arrows from", into), ("arrows to", out), ("undirected edges with", open_)]
    return f"{name}: " + ("; ".join(f"{words} {', '.join(who)}" for words, who in said if who) or "no edges")


def _edge(i: int, edge: DrawnEdge, layout: GraphLayout) -> str:
    line = trimmed(edge, layout)
    path = curve(line)
    dash = "" if edge.directed or edge.sign else ' stroke-dasharray="6 4"'
    head = "".join(_mark(*end) for end in ends_of(edge, layout)) + _spare(edge, layout)
    return (
        f'<g class="edge {edge.kind}" data-edge="{i}" role="button" tabindex="-1" aria-pressed="false"'
        f' aria-label="{escape(edge.words)}">'
        f'<path class="near" d="{path}" fill="none" stroke="transparent" stroke-width="14"/>'
        f'<path class="line" d="{path}" fill="none" stroke="currentColor" stroke-width="{edge.thickness:.2f}"{dash}/>'
        f"{head}{_symbol(edge, halfway(line))}{_raises(edge, halfway(line))}</g>"
    )


def _spare(edge: DrawnEdge, layout: GraphLayout) -> str:
    """The arrowhead that a line would have, for the script to show."""
    if edge.likelier is None:
        return ""
    drawn = "".join(_mark(*end) for end in _ends(edge, edge.likelier, layout))
    return drawn.replace('class="head"', 'class="spare" display="none"')


def _raises(edge: DrawnEdge, at: XY) -> str:
    """A plus or a minus beside the edge, for the script to show."""
    if edge.raises is None:
        return ""
    text = "+" if edge.raises else "−"
    place = f'x="{at[0] + 9:.1f}" y="{at[1]:.1f}" dy=".36em"'
    return f'<text class="raises" {place} display="none" fill="currentColor">{text}</text>'


def route_of(edge: DrawnEdge, layout: GraphLayout) -> tuple[XY, ...]:
    """From box to box, downwards."""
    return layout.routes.get((edge.a, edge.b)) or layout.routes[edge.b, edge.a]


def trimmed(edge: DrawnEdge, layout: GraphLayout) -> tuple[XY, ...]:
    """The same, between the marks at its ends."""
    (x, y), *points, (to_x, to_y) = route_of(edge, layout)
    (upper, _, _), (lower, _, _) = ends_of(edge, layout)
    return ((x, y + MARK_LENGTHS[upper]), *points, (to_x, to_y - MARK_LENGTHS[lower]))


def ends_of(edge: DrawnEdge, layout: GraphLayout) -> tuple[MarkAt, MarkAt]:
    """The marks at the upper and at the lower end of an edge, where they stand and which way they point."""
    return _ends(edge, edge.marks, layout)


def _ends(edge: DrawnEdge, marks: tuple[Mark, Mark], layout: GraphLayout) -> tuple[MarkAt, MarkAt]:
    route = route_of(edge, layout)
    at_a, at_b = marks
    upper, lower = (at_a, at_b) if (edge.a, edge.b) in layout.routes else (at_b, at_a)
    return (upper, route[0], -1), (lower, route[-1], 1)


def _mark(mark: Mark, at: XY, down: int) -> str:
    x, y = at
    if mark == "arrow":
        return f'<path class="head" d="{arrow(x, y, down)}" fill="currentColor"/>'
    if mark == "circle":
        middle = y - down * MARK_LENGTHS[mark] / 2
        return f'<circle cx="{x:.1f}" cy="{middle:.1f}" r="3.8" fill="#fff" stroke="currentColor" stroke-width="1.4"/>'
    return ""


def curve(route: Sequence[XY]) -> str:
    """The path of an SVG element along the points of a route."""
    parts = [f"M{route[0][0]:.1f} {route[0][1]:.1f}"]
    for _, *points in stretches(route):
        parts.append("C" + " ".join(f"{x:.1f} {y:.1f}" for x, y in points))
    return "".join(parts)


def arrow(x: float, y: float, down: int = 1) -> str:
    """An arrowhead that ends at the point, downwards, or upwards for -1."""
    return f"M{x:.1f} {y:.1f}l-4.5 {-down * HEAD_LENGTH:g}h9z"


EDGE_SYMBOLS: Mapping[str, str] = {
    "given": '<path class="sign" d="M{x} {y}m0-7l7 7-7 7-7-7z" fill="currentColor"/>',
    "direction": '<path class="sign open" d="M{x} {y}m0-7l7 7-7 7-7-7z" fill="#fff" stroke="#000"/>',
    "late": '<circle class="sign open" cx="{x}" cy="{y}" r="8" fill="#fff" stroke="#000"/>'
    '<text class="sign" x="{x}" y="{y}" dy=".36em" font-size="11" text-anchor="middle" fill="#000">?</text>',
}
"""Signs on the middle of an edge; shapes, so that they do not need a colour."""


def sign(edge: DrawnEdge) -> str | None:
    """The symbol on the middle of an edge, if it has one."""
    if edge.source is EdgeOrigin.GIVEN:
        return "given"
    if edge.open_at:
        return "late"
    return "direction" if edge.source is EdgeOrigin.DIRECTION else None


def _symbol(edge: DrawnEdge, at: XY) -> str:
    name = sign(edge)
    return EDGE_SYMBOLS[name].format(x=f"{at[0]:.1f}", y=f"{at[1]:.1f}") if name else ""


FITTING_ATTRIBUTES = 'style="max-width:100%;height:auto" role="img" aria-label="{}"'


def graph_html(graph: Graph) -> str:
    """A graph without a result, as a notebook shows it."""
    edges = tuple(
        DrawnEdge(a, b, way == "->", EdgeOrigin.DATA, sign=way if graph.latent else "")
        for a, way, b in ordered_edges(graph)
    )
    line = f"{type(graph).__name__}: {how_many(len(graph.nodes), 'node')}, {how_many(len(edges), 'edge')}"
    return f"<div><p>{escape(line)}</p>{picture(graph, edges)}</div>"


def picture(graph: Graph, edges: tuple[DrawnEdge, ...]) -> str:
    """The drawing, with its edges in words for those who cannot see it."""
    words = "; ".join(f"{edge.a} {edge.glyph} {edge.b}" for edge in edges) or "no edges"
    return draw(graph, edges, attributes=FITTING_ATTRIBUTES.format(escape(words)))
