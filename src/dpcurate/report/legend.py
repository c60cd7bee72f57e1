"""What the marks of the drawing mean; only marks that occur are explained."""

from __future__ import annotations

from collections.abc import Sequence

from dpcurate.graphs.drawing.edges import Shown
from dpcurate.graphs.drawing.svg import SYMBOLS, arrow, sign
from dpcurate.report.markup import Html, bullets, mark

SIGNS = {
    "given": "required by background knowledge, not found",
    "direction": "direction by background knowledge",
    "late": "not tested to the end: the budget ended",
}


def legend(edges: Sequence[Shown]) -> Html:
    lines = []
    if any(edge.directed for edge in edges):
        lines.append(
            _entry(_sample("", arrow(40, 10).replace("l-4.5 -9h9z", "l-9-4.5v9z")), "directed: cause → effect")
        )
    if any(not edge.directed for edge in edges):
        lines.append(_entry(_sample("6 4", ""), "undirected: which way is not sure enough"))
    used = {sign(edge) for edge in edges}
    lines += [_entry(_sign(name), text) for name, text in SIGNS.items() if name in used]
    if any(edge.linked is not None for edge in edges):
        lines.append(Html("<span>thicker: more surely linked</span>"))
    return bullets(lines) if lines else Html("")


def _entry(picture: str, text: str) -> Html:
    return Html(picture + mark(text))


def _sample(dash: str, head: str) -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    tip = f'<path d="{head}" fill="currentColor"/>' if head else ""
    line = f'<path d="M2 10H{32 if head else 40}" stroke="currentColor" stroke-width="1.6"{dashed}/>'
    return f'<svg width="42" height="20" aria-hidden="true">{line}{tip}</svg>'


def _sign(name: str) -> str:
    return f'<svg width="20" height="20" aria-hidden="true">{SYMBOLS[name].format(x=10, y=10)}</svg>'
