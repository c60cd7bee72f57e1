"""Short sections of the page: the verdict, what comes first, and pairs on which nothing is settled."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dpcurate._messages import how_many
from dpcurate.accounting import Budget, Event, Privacy
from dpcurate.draw.svg import DrawnEdge
from dpcurate.draw.text import clean, number
from dpcurate.report.edge_words import open_orders
from dpcurate.report.markup import (
    Head,
    Html,
    TableCell,
    bullets,
    chance_cell,
    element,
    facts,
    folded,
    paragraphs,
    table,
)
from dpcurate.schema.column_order import example_order

if TYPE_CHECKING:
    from dpcurate.graphs.knowledge import Knowledge
    from dpcurate.result.discovery import Discovery
    from dpcurate.result.fit import DirectionVerdict
    from dpcurate.result.verdict import Verdict


def verdict_banner(verdict: Verdict | None) -> Html:
    """Above everything else, if nothing can be made of the graph."""
    if verdict is None or verdict.level != "hopeless":
        return Html("")
    return element("div", _said(verdict), class_="banner", role="alert")


def verdict_lines(verdict: Verdict | None) -> Html:
    """Under the title, if something can."""
    if verdict is None or verdict.level == "hopeless":
        return Html("")
    return element("div", _said(verdict), class_=f"verdict {verdict.level}")


def directions_lines(verdict: DirectionVerdict | None) -> Html:
    """Below it: whether directions can be read."""
    if verdict is None:
        return Html("")
    return element("div", _said(verdict), class_=f"verdict {'fine' if verdict.readable else 'weak'}")


def sites_lines(result: Discovery) -> Html:
    """Which mechanisms differ between the sites of a pool, and the promise of each site."""
    differences = result.site_differences
    if differences is None:
        return Html("")
    title = "Sites disagree too much." if differences.too_many else "Sites."
    told = " ".join(f"{_sentence(line)}." for line in differences.lines)
    return element(
        "div",
        paragraphs(element("strong", title), clean(told)),
        class_=f"verdict {'weak' if differences.too_many else 'fine'}",
    )


def _sentence(line: str) -> str:
    told = line.removeprefix("sites: ").removeprefix("warning: ")
    return f"{told[0].upper()}{told[1:]}"


def directions_note(verdict: DirectionVerdict | None) -> Html:
    """The same for a notebook."""
    if verdict is None:
        return Html("")
    colour = "#2f855a" if verdict.readable else "#b7791f"
    return element("div", _said(verdict), style=f"border-left:3px solid {colour};padding-left:.8em")


def verdict_note(verdict: Verdict | None) -> Html:
    """For a notebook, which has no style of ours: colours that can be read on light and on dark."""
    if verdict is None:
        return Html("")
    colour = {"hopeless": "#d92d20", "weak": "#b7791f", "partial": "#b7791f", "fine": "#2f855a"}[verdict.level]
    role = {"role": "alert"} if verdict.level == "hopeless" else {}
    width = "6px" if verdict.level == "hopeless" else "3px"
    return element("div", _said(verdict), style=f"border-left:{width} solid {colour};padding-left:.8em", **role)


def _said(verdict: Verdict | DirectionVerdict) -> Html:
    return paragraphs(element("strong", verdict.title), " ".join(verdict.sentences))


MOST_NAMES = 12
"""Columns of a group that are named."""


def order_section(result: Discovery, edges: Sequence[DrawnEdge]) -> Html:
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
        "No order of columns was given, so every direction rests on the data alone. Adding one is free: "
        f"{command}. List first the columns that no other column can cause."
    )
    return Html(element("div", element("p", text), class_="order"))


def _groups(result: Discovery, known: Knowledge) -> Html:
    groups = [_named([name for name in result.graph.nodes if name in tier]) for tier in known.tiers]
    free = [name for name in result.graph.nodes if name not in known.tier_of]
    lines = Html("".join(element("li", group) for group in groups))
    more = paragraphs(f"Not in any group, so unconstrained: {_named(free)}.") if free else Html("")
    return Html(element("h3", "Order of the columns") + element("ol", lines) + more)


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(map(clean, names[:MOST_NAMES]))
    return shown if len(names) <= MOST_NAMES else f"{shown} and {len(names) - MOST_NAMES} more"


def _arrows(result: Discovery, edges: Sequence[DrawnEdge]) -> Html:
    assert result.knowledge is not None
    tier = result.knowledge.tier_of
    between = [e for e in edges if e.a in tier and e.b in tier and tier[e.a] != tier[e.b]]
    what = "arrowhead at the later column" if result.graph.latent else "direction"
    if not between:
        return paragraphs("No edge joins two groups, so no direction follows from this order.")
    told = f"The {what} of {how_many(len(between), 'edge')} of {len(edges)} follows from this order, not from the data"
    early = [(e.a, e.b) if tier[e.a] < tier[e.b] else (e.b, e.a) for e in between]
    return folded(told, bullets([clean(f"{a} comes before {b}") for a, b in early]))


MOST_PAIRS = 500
PAIR_HEADS = (Head("Column a"), Head("Column b"), Head("P(edge)", True), Head("P(a → b)", True))


def undecided_section(result: Discovery) -> Html:
    """Empty if all is settled."""
    inside = Html(_between(result) + _untested(result))
    if not inside:
        return Html("")
    return element("section", element("h2", "Undecided pairs", id="h-open"), inside, aria_labelledby="h-open")


def _between(result: Discovery) -> Html:
    """Pairs that are not drawn at this cut."""
    pairs = result.undecided if result.open_pairs else ()
    if not pairs:
        return Html("")
    said = paragraphs(
        f"{how_many(len(pairs), 'pair is', 'pairs are')} "
        "neither drawn nor ruled out. More rows, a larger epsilon or background knowledge would decide them."
    )
    rows = [
        [TableCell(p.a), TableCell(p.b), chance_cell(p.linked), chance_cell(p.direction)] for p in pairs[:MOST_PAIRS]
    ]
    used = [i for i in range(len(PAIR_HEADS)) if any(row[i].text != "-" for row in rows)]
    more = f"; the first {MOST_PAIRS} of {len(pairs)}" if len(pairs) > MOST_PAIRS else ""
    caption = f"The likeliest first{more}. P(a → b): the probability of this direction, given that there is an edge."
    cells = [[row[i] for i in used] for row in rows]
    return Html(said + table(caption, [PAIR_HEADS[i] for i in used], cells, sortable=True, class_="cards narrow"))


def _untested(result: Discovery) -> Html:
    """Edges that a budget did not reach."""
    late = open_orders(result.learned.unfinished)
    if not late:
        return Html("")
    place = {name: i for i, name in enumerate(result.graph.nodes)}
    pairs = sorted((sorted(pair, key=place.__getitem__), orders) for pair, orders in late.items())
    rows = [(a, b, ", ".join(map(str, orders))) for (a, b), orders in pairs]
    said = paragraphs(
        f"The budget ran out before {how_many(len(rows), 'edge was', 'edges were')} "
        "tested at every order. They are in the graph because "
        "nothing removed them, not because something confirmed them."
    )
    heads = [Head("Column"), Head("Column"), Head("Untested at order")]
    return Html(said + table("Edges not fully tested", heads, rows))


# ---------------------------------------------------------------------------------------------------------------------
# The privacy statement: in plain words, formally, and what was spent on what.


RELATIONS = {
    "add-remove": "add-remove: the two tables differ by one added or removed unit; the number of rows is private",
    "replace": "replace: the two tables differ in one unit whose data are changed; the number of rows is private",
}
CEILING_NOTE = (
    "The ceiling is the guarantee. What was spent so far is bookkeeping: a run that stopped early may not report "
    "the smaller figure, because when to stop was decided by looking at answers."
)


def banner(privacy: Privacy) -> Html:
    """A warning above everything else where there is no guarantee."""
    if privacy.private:
        return Html("")
    return element(
        "div",
        paragraphs(
            element("strong", "NOT PRIVATE"),
            f"This page protects nobody: {_reasons(privacy)}. Do not share it unless the table is public.",
        ),
        class_="banner",
        role="alert",
    )


def _reasons(privacy: Privacy) -> str:
    names = sorted({event.mechanism for event in privacy.events if not event.private})
    return f"steps without a guarantee took part ({', '.join(names) or 'no limit on the budget'})"


def statement(result: Discovery) -> Html:
    """What is promised to whom, and what was spent."""
    plain = _plain(result.privacy) if result.privacy.private else _unprotected(result)
    return Html(
        element("h3", "In plain words")
        + plain
        + element("h3", "Formally")
        + _formal(result.privacy)
        + element("h3", "What was spent on what")
        + spent(result)
    )


def _plain(privacy: Privacy) -> Html:
    who, _, cap = privacy.unit.partition(", ")
    factor = math.exp(min(700.0, float(privacy.budget.epsilon or 0.0)))
    besides = f", apart from failures of probability {number(privacy.delta)}" if privacy.delta else ""
    return paragraphs(
        "Whoever reads this page, and everything else released about this table under the same budget, learns almost "
        f"the same whether or not the data of any {who}{f' ({cap})' if cap else ''} were in it: no conclusion becomes "
        f"more than {number(factor)} times as likely or as unlikely by them{besides}. This holds whatever else "
        "the reader knows.",
        "It is not a promise that nothing can be learnt. What is true of people in general can be learnt, and "
        "then applies to people who were not in the table too.",
    )


def _unprotected(result: Discovery) -> Html:
    claimed = result.learned.claimed
    claim = (
        []
        if claimed is None
        else [f"The authors of this variant would report epsilon = {number(claimed)}. That figure is not proved."]
    )
    return paragraphs(
        f"There is no guarantee: {_reasons(result.privacy)}. Assume that every row can be reconstructed.", *claim
    )


def _formal(privacy: Privacy) -> Html:
    known = [("Neighbours", RELATIONS.get(privacy.neighbours, privacy.neighbours)), ("Unit of privacy", privacy.unit)]
    sites = [(f"Site {clean(one.name)}", clean(f"{one.privacy}; ledger: {one.ledger}")) for one in privacy.sites]
    told = [*known, *_ceiling(privacy), *sites]
    return Html(facts(told) + paragraphs(*([CEILING_NOTE] if privacy.private else [])))


def _ceiling(privacy: Privacy) -> Iterable[tuple[str, str]]:
    if not privacy.private:
        return [("Guarantee", "none: epsilon is infinite")]
    budget = privacy.budget
    kept = (
        "Kept as pure epsilon"
        if budget.pure
        else f"rho = {number(float(budget.ceiling))} (zero-concentrated; kept in this currency)"
    )
    return [
        ("Ceiling", f"epsilon = {number(float(budget.epsilon or 0))}, delta = {number(privacy.delta)}"),
        ("Ceiling in zCDP", kept),
        ("Spent so far", f"epsilon = {number(privacy.epsilon)} at the same delta"),
    ]


def spent(result: Discovery) -> Html:
    """Charges by mechanism, and questions by order or stage."""
    return Html(_by_mechanism(result.privacy) + _by_order(result) + _remarks(result))


def _by_mechanism(privacy: Privacy) -> Html:
    groups: dict[str, list[Event]] = {}
    for event in privacy.events:
        groups.setdefault(event.mechanism, []).append(event)
    unit, share = privacy.budget.currency, privacy.private and privacy.budget.ceiling
    rows = [
        (name, str(len(events)), number(cost := _sum(events, privacy.budget)), _share(cost, share))
        for name, events in groups.items()
    ]
    total = _sum(privacy.events, privacy.budget)
    heads = [
        Head("Mechanism"),
        Head("Charges", True),
        Head(f"Cost in {unit}", True),
        Head("Share of the ceiling", True),
    ]
    foot = ("Total", str(len(privacy.events)), number(total), _share(total, share))
    return table("All charges in this ledger, by mechanism", heads, rows, total=foot, class_="narrow")


def _sum(events: Iterable[Event], budget: Budget) -> float:
    return float(sum(event.cost.within(budget) for event in events))


def _share(cost: float, ceiling: float) -> str:
    return f"{100 * cost / ceiling:.1f} %" if ceiling and not math.isinf(ceiling) and not math.isinf(cost) else "-"


def _by_order(result: Discovery) -> Html:
    tests, leaked = result.learned.tests, result.learned.leaked
    if not tests and not leaked:
        return Html("")
    size = max(len(tests), len(leaked))
    rows = [(str(i), _at(tests, i), _at(leaked, i)) for i in range(size)]
    heads = [Head("Order or stage"), Head("Questions", True), Head("Cost", True)]
    cut = slice(3 if leaked else 2)
    return table(
        "This run, by order (size of the conditioning set) or stage",
        heads[cut],
        [row[cut] for row in rows],
        class_="narrow",
    )


def _at(values: tuple[float, ...], i: int) -> str:
    return number(values[i]) if i < len(values) else "-"


def _remarks(result: Discovery) -> Html:
    said = ["Several questions may share a charge: releases cost budget, questions do not."]
    if len(result.learned.leaked) and not result.privacy.private:
        said.append("The cost of an order is by the authors' count, which is not proved.")
    return bullets(said)
