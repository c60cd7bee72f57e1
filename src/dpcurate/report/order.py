"""What comes first: the order of columns beside the arrows, and which of them follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpcurate._messages import how_many
from dpcurate.graphs.drawing.edges import Shown
from dpcurate.graphs.drawing.text import clean
from dpcurate.graphs.graph import Pag
from dpcurate.report.markup import Html, bullets, element, folded, paragraphs
from dpcurate.schema.first import example_order

if TYPE_CHECKING:
    from dpcurate.graphs.knowledge import Knowledge
    from dpcurate.result import Discovery

MOST_NAMES = 12
"""Columns of a group that are named."""


def order_section(result: Discovery, edges: Sequence[Shown]) -> Html:
    """The groups and the arrows between them; without any knowledge, how to add an order at no cost."""
    if result.knowledge is None:
        return _how_to_add(result)
    if not result.knowledge.tiers:
        return Html("")
    return Html(element("div", Html(_groups(result, result.knowledge) + _arrows(result, edges)), class_="order"))


def _how_to_add(result: Discovery) -> Html:
    order = clean(example_order(result.schema.columns))
    command = element("code", f"dpcurate discover --from-answers LEDGER --order '{order}'")
    text = Html(
        "No order of columns was given, so every direction rests on the data alone. Adding one costs no privacy "
        f"budget: {command}. Name all columns that no other column can cause."
    )
    return Html(element("div", element("p", text), class_="order"))


def _groups(result: Discovery, known: Knowledge) -> Html:
    groups = [_named([name for name in result.graph.nodes if name in tier]) for tier in known.tiers]
    free = [name for name in result.graph.nodes if name not in known.tier_of]
    lines = Html("".join(element("li", group) for group in groups))
    more = paragraphs(f"In no group, so without limits: {_named(free)}.") if free else Html("")
    return Html(element("h3", "What comes first") + element("ol", lines) + more)


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(map(clean, names[:MOST_NAMES]))
    return shown if len(names) <= MOST_NAMES else f"{shown} and {len(names) - MOST_NAMES} more"


def _arrows(result: Discovery, edges: Sequence[Shown]) -> Html:
    assert result.knowledge is not None
    tier = result.knowledge.tier_of
    between = [e for e in edges if e.a in tier and e.b in tier and tier[e.a] != tier[e.b]]
    what = "arrowhead at the later column" if isinstance(result.graph, Pag) else "direction"
    if not between:
        return paragraphs("No edge joins two groups, so no direction follows from this order.")
    told = f"The {what} of {how_many(len(between), 'edge')} of {len(edges)} follows from this order, not from the data"
    early = [(e.a, e.b) if tier[e.a] < tier[e.b] else (e.b, e.a) for e in between]
    return folded(told, bullets([clean(f"{a} comes before {b}") for a, b in early]))
