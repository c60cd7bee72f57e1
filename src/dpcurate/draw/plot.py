"""The drawing with matplotlib, for papers and notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from dpcurate._messages import shown_probability
from dpcurate.draw.layout import BOX_HEIGHT, XY, Box, GraphLayout, halfway, stretches
from dpcurate.draw.svg import HEAD_LENGTH, MARGIN, MARK_LENGTHS, DrawnEdge, ends_of, labels, placed, sign, trimmed
from dpcurate.draw.text import FONT_SIZE
from dpcurate.errors import DpcurateError
from dpcurate.graphs.graph import Graph

POINTS_PER_INCH = 72.0
SYMBOL_STYLES = {"given": ("D", "black"), "direction": ("D", "white"), "late": ("o", "white")}
MOST_NUMBERS = 40
"""Edges up to which each has its numbers written beside it."""
WARNING_HEIGHT = 26.0
"""Height of the line that says NOT PRIVATE."""


def plot(graph: Graph, edges: Sequence[DrawnEdge], ax: Any = None, *, private: bool = True) -> Any:
    """Draw into `ax`, or into a new figure of a fitting size; returns the axes."""
    layout, names = placed(graph), labels(graph)
    top = MARGIN if private else MARGIN + WARNING_HEIGHT
    ax = _axes(layout.width + 2 * MARGIN, layout.height + MARGIN + top) if ax is None else ax
    ax.set(xlim=(-MARGIN, layout.width + MARGIN), ylim=(layout.height + MARGIN, -top), aspect="equal")
    ax.set_axis_off()
    scale = _scale(ax)
    for edge in edges:
        _edge(ax, edge, layout, scale)
        if len(edges) <= MOST_NUMBERS:
            _numbers(ax, edge, layout, scale)
    for name, box in layout.boxes.items():
        _node(ax, names[name], box, scale)
    if not private:
        ax.text(0, -top, "NOT PRIVATE", va="top", fontsize=FONT_SIZE * scale * 1.2, fontweight="bold")
    return ax


def _load(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise DpcurateError(
            "plot() draws with matplotlib, which is not installed: pip install matplotlib; "
            "report('graph.html') needs nothing else"
        ) from None


def _axes(width: float, height: float) -> Any:
    figure = _load("matplotlib.pyplot").figure(figsize=(width / POINTS_PER_INCH, height / POINTS_PER_INCH))
    return figure.add_axes((0, 0, 1, 1))


def _scale(ax: Any) -> float:
    """Points on paper for one unit of the layout, so that letters fit their boxes at any size."""
    window = ax.get_window_extent()
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    pixels = min(window.width / abs(right - left), window.height / abs(high - low))
    return float(pixels * POINTS_PER_INCH / ax.figure.dpi)


def _edge(ax: Any, edge: DrawnEdge, layout: GraphLayout, scale: float) -> None:
    patches = _load("matplotlib.patches")
    line = trimmed(edge, layout)
    dash = "-" if edge.directed or edge.sign else (0, (4, 3))
    ax.add_patch(patches.PathPatch(_path(line), fill=False, lw=scale * edge.thickness, ls=dash, ec="0.25"))
    for mark, (x, y), down in ends_of(edge, layout):
        if mark == "arrow":
            base = y - down * HEAD_LENGTH
            ax.add_patch(patches.Polygon([(x, y), (x - 4.5, base), (x + 4.5, base)], fc="0.25", ec="none"))
        elif mark == "circle":
            ax.add_patch(
                patches.Circle((x, y - down * MARK_LENGTHS[mark] / 2), 3.8, fc="white", ec="0.25", lw=1.4 * scale)
            )
    name = sign(edge)
    if name:
        shape, fill = SYMBOL_STYLES[name]
        ax.plot(*halfway(line), marker=shape, mfc=fill, mec="black", mew=scale, ms=10 * scale, ls="none")
    if name == "late":
        ax.text(*halfway(line), "?", ha="center", va="center", fontsize=9 * scale)


_PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6}
"""Behind numbers, so that a line below does not strike them out."""


def _numbers(ax: Any, edge: DrawnEdge, layout: GraphLayout, scale: float) -> None:
    """P(edge) and, of an arrow, P(direction), beside its middle."""
    said = [p for p in (edge.linked, edge.direction if edge.directed else None) if p is not None]
    x, y = halfway(trimmed(edge, layout))
    text = ", ".join(map(shown_probability, said))
    if text:
        ax.text(x + 9, y, text, ha="left", va="center", fontsize=7.5 * scale, color="0.3", bbox=_PAPER)


def _path(route: tuple[XY, ...]) -> Any:
    path = _load("matplotlib.path").Path
    points, codes = [route[0]], [path.MOVETO]
    for _, *more in stretches(route):
        points += more
        codes += [path.CURVE4] * 3
    return path(points, codes)


def _node(ax: Any, label: str, box: Box, scale: float) -> None:
    patches = _load("matplotlib.patches")
    left, top = box.x - box.width / 2, box.y - BOX_HEIGHT / 2
    style = patches.BoxStyle("Round", pad=0, rounding_size=6)
    ax.add_patch(
        patches.FancyBboxPatch((left, top), box.width, BOX_HEIGHT, boxstyle=style, fc="#f4f7fb", ec="0.4", lw=scale)
    )
    # A name may hold dollars, which matplotlib would read as a formula.
    ax.text(box.x, box.y, label, ha="center", va="center", fontsize=FONT_SIZE * scale * 0.95, parse_math=False)
