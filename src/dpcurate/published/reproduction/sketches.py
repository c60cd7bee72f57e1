"""The paper's two drawings that hold no data: how constraint-based discovery works, and how CURATE composes."""

from __future__ import annotations

import math
from typing import Any

INK, PALE, ACCENT = "#222222", "#bbbbbb", "#d55e00"
_NODES = 5
_STAGES: tuple[tuple[str, str, frozenset[tuple[int, int]]], ...] = (
    ("fully connected", "d nodes", frozenset((i, j) for i in range(5) for j in range(i + 1, 5))),
    ("order 0", "at most $k_0$ tests", frozenset({(0, 2), (1, 2), (2, 3), (2, 4), (0, 3), (1, 4), (3, 4)})),
    ("order 1", "at most $k_1$ tests", frozenset({(0, 2), (1, 2), (2, 3), (2, 4)})),
    ("order $d-2$", "at most $k_{d-2}$ tests", frozenset({(0, 2), (1, 2), (2, 3), (2, 4)})),
    ("oriented", "no rows are read", frozenset({(0, 2), (1, 2), (2, 3), (2, 4)})),
)
"""Cancer's five columns after each step: its title, what it asks, and the edges left."""


def workflow(plt: Any) -> Any:
    """Figure 1: the skeleton phase order by order, then the orientation phase."""
    figure, axes = plt.subplots(1, len(_STAGES), figsize=(9.9, 2.5))
    everything = _STAGES[0][2]
    for i, (axis, (title, words, edges)) in enumerate(zip(axes, _STAGES, strict=True)):
        _graph(axis, edges, cut=everything - edges, arrows=i == len(_STAGES) - 1)
        axis.set_title(title, fontsize=10)
        axis.text(0, -1.55, words, ha="center", fontsize=8.5, color=INK)
        if i:
            sign = "→" if i != 3 else "→ … →"
            axis.text(-1.75, 0, sign, ha="center", va="center", fontsize=13, color=INK, clip_on=False)
    figure.text(0.41, 0.93, "skeleton phase: its tests read rows and leak", ha="center", color=ACCENT, fontsize=9.5)
    figure.text(0.9, 0.93, "orientation phase", ha="center", color=INK, fontsize=9.5)
    figure.subplots_adjust(left=0.02, right=0.98, top=0.78, bottom=0.08, wspace=0.35)
    return figure


def _graph(axis: Any, edges: frozenset[tuple[int, int]], cut: frozenset[tuple[int, int]], *, arrows: bool) -> None:
    turn = [math.pi / 2 + 2 * math.pi * i / _NODES for i in (0, 1, 3, 2, 4)]
    place = [(math.cos(t), math.sin(t)) for t in turn]
    for a, b in cut:
        axis.plot(*zip(place[a], place[b], strict=True), color=PALE, linewidth=0.6, linestyle=":")
    for a, b in edges:
        style = {"arrowstyle": "-|>" if arrows else "-", "color": INK, "shrinkA": 7, "shrinkB": 7, "linewidth": 1.1}
        axis.annotate("", place[b], place[a], arrowprops=style)
    for i, (x, y) in enumerate(place):
        axis.text(x, y, f"$v_{i + 1}$", ha="center", va="center", fontsize=8, bbox=_node())
    axis.set(xlim=(-1.4, 1.4), ylim=(-1.8, 1.3), aspect="equal")
    axis.axis("off")


def _node() -> dict[str, Any]:
    return {"boxstyle": "circle,pad=0.22", "facecolor": "white", "edgecolor": INK, "linewidth": 0.9}


def composition(plt: Any) -> Any:
    """Figure 2: advanced composition within an order, basic over orders."""
    figure, axis = plt.subplots(figsize=(9.9, 2.7))
    names = ("0", "1", "d-2")
    for i, name in enumerate(names):
        x = 0.5 + 3.3 * i
        tests = rf"$t_{{{name}}}$ tests, each $(\epsilon_{{{name}}}, \delta)$-DP"
        leak = rf"$t_{{{name}}}\epsilon_{{{name}}}^2+\sqrt{{2\log(1/\delta')\,t_{{{name}}}\epsilon_{{{name}}}^2}}$"
        _box(axis, x, 2.0, f"order ${name}$\n{tests}")
        _box(axis, x, 1.0, leak)
        _arrow(axis, (x, 1.77), (x, 1.22))
        _arrow(axis, (x, 0.8), (0.5 + 3.3 + (i - 1) * 1.2, 0.22))
    axis.text(2.15, 2.0, r"$\epsilon_0\geq\epsilon_1$", ha="center", va="center", fontsize=9)
    axis.text(5.45, 2.0, "…", ha="center", va="center", fontsize=14)
    axis.text(8.65, 1.5, "advanced composition\nwithin an order", ha="left", va="center", color=ACCENT, fontsize=9)
    axis.text(8.65, 0.4, "basic composition\nover orders", ha="left", va="center", color=ACCENT, fontsize=9)
    _box(axis, 3.8, 0.0, r"total leakage $\sum_j\epsilon_{curate}^{(j)}\leq\epsilon_{Total}$")
    axis.set(xlim=(-1.0, 10.4), ylim=(-0.35, 2.4))
    axis.axis("off")
    figure.tight_layout()
    return figure


def _box(axis: Any, x: float, y: float, words: str) -> None:
    box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": INK, "linewidth": 0.9}
    axis.text(x, y, words, ha="center", va="center", fontsize=9, bbox=box)


def _arrow(axis: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    axis.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 0.9})
