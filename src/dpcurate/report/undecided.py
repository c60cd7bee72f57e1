"""The section about pairs on which nothing is settled: likely but not drawn, or drawn but not tested to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpcurate._messages import how_many
from dpcurate.report.edges import open_orders
from dpcurate.report.markup import Head, Html, TableCell, chance_cell, element, paragraphs, table

if TYPE_CHECKING:
    from dpcurate.result import Discovery

MOST_PAIRS = 500
HEADS = (Head("Column a"), Head("Column b"), Head("Linked", True), Head("a → b", True))


def undecided_section(result: Discovery) -> Html:
    """Empty if all is settled."""
    inside = Html(_between(result) + _untested(result))
    if not inside:
        return Html("")
    return element("section", element("h2", "Undecided pairs", id="h-open"), inside, aria_labelledby="h-open")


def _between(result: Discovery) -> Html:
    """Pairs that are not drawn at this cut."""
    pairs = result.undecided
    if not pairs:
        return Html("")
    said = paragraphs(
        f"{how_many(len(pairs), 'pair is', 'pairs are')} "
        "not drawn, and not ruled out either: each may well be linked. More rows, a larger "
        "epsilon or background knowledge would decide them."
    )
    rows = [
        [TableCell(p.a), TableCell(p.b), chance_cell(p.linked), chance_cell(p.direction)] for p in pairs[:MOST_PAIRS]
    ]
    used = [i for i in range(len(HEADS)) if any(row[i].text != "-" for row in rows)]
    more = f"; the first {MOST_PAIRS} of {len(pairs)}" if len(pairs) > MOST_PAIRS else ""
    caption = f"The likeliest first{more}. a → b: the probability of this way round, if they are linked."
    cells = [[row[i] for i in used] for row in rows]
    return Html(said + table(caption, [HEADS[i] for i in used], cells, sortable=True, class_="cards narrow"))


def _untested(result: Discovery) -> Html:
    """Edges that a budget did not reach."""
    late = open_orders(result.learned.unfinished)
    if not late:
        return Html("")
    place = {name: i for i, name in enumerate(result.graph.nodes)}
    pairs = sorted((sorted(pair, key=place.__getitem__), orders) for pair, orders in late.items())
    rows = [(a, b, ", ".join(map(str, orders))) for (a, b), orders in pairs]
    said = paragraphs(
        f"The budget ended before {how_many(len(rows), 'edge was', 'edges were')} "
        "tested at every order. They are in the graph because "
        "nothing removed them, not because something confirmed them."
    )
    heads = [Head("Column"), Head("Column"), Head("Untested at order")]
    return Html(said + table("Edges not tested to the end", heads, rows))
