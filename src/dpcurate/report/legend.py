"""What the marks of the drawing mean; only marks that occur are explained."""

from __future__ import annotations

from collections.abc import Sequence

from dpcurate.graphs.drawing.edges import Shown
from dpcurate.graphs.drawing.svg import LENGTHS, SYMBOLS, arrow, sign
from dpcurate.graphs.pag import SIGNS as MARKS
from dpcurate.report.markup import Html, bullets, mark

SIGNS = {
    "given": "required by background knowledge, not found",
    "direction": "direction by background knowledge",
    "late": "not tested to the end: the budget ended",
}

MARKED = {
    "->": "cause → effect, perhaps through others",
    "<->": "neither causes the other: a hidden cause moves both",
    "o->": "cause → effect, or a hidden cause of both; never the other way round",
    "o-o": "open: either way round, or a hidden cause of both",
    "o--": "the right causes the left, or rows were chosen by both",
    "--": "rows were chosen by both",
}


def legend(edges: Sequence[Shown]) -> Html:
    lines = [_entry(_marked(sign_), text) for sign_, text in MARKED.items() if any(e.sign == sign_ for e in edges)]
    if any(edge.directed and not edge.sign for edge in edges):
        lines.append(
            _entry(
                _sample("", arrow(40, 10).replace("l-4.5 -9h9z", "l-9-4.5v9z")),
                "arrow: its end does not cause its start",
            )
        )
    if any(not edge.directed and not edge.sign for edge in edges):
        lines.append(_entry(_sample("6 4", ""), "undirected: which way is not sure enough"))
    used = {sign(edge) for edge in edges}
    lines += [_entry(_sign(name), text) for name, text in SIGNS.items() if name in used]
    if any(edge.linked is not None for edge in edges):
        lines.append(Html('<span id="thicker">thicker: more surely linked</span>'))
    return bullets(lines) if lines else Html("")


def _marked(sign_: str) -> str:
    """A short edge of a PAG, from left to right."""
    left, right = MARKS[sign_]
    start, end = 2 + LENGTHS[left], 40 - LENGTHS[right]
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
    return f'<svg width="20" height="20" aria-hidden="true">{SYMBOLS[name].format(x=10, y=10)}</svg>'
