"""The privacy statement: in plain words, formally, and what was spent on what."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dpcurate.accounting import Budget, Event, Privacy
from dpcurate.draw.text import number
from dpcurate.report.markup import Head, Html, bullets, element, facts, paragraphs, table

if TYPE_CHECKING:
    from dpcurate.result.discovery import Discovery

RELATIONS = {
    "add-remove": "add-remove: the two tables differ in one unit more or less; the number of rows is private",
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
    who = "one row" if privacy.unit == "one row" else privacy.unit
    factor = math.exp(min(700.0, float(privacy.budget.epsilon or 0.0)))
    besides = f", apart from failures of probability {number(privacy.delta)}" if privacy.delta else ""
    return paragraphs(
        "Whoever reads this page, and everything else released about this table under the same budget, learns almost "
        f"the same whether or not any one unit's data ({who}) were in it: no conclusion becomes more than "
        f"{number(factor)} times as likely or as unlikely by its presence{besides}. This holds whatever else "
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
    return Html(facts([*known, *_ceiling(privacy)]) + paragraphs(*([CEILING_NOTE] if privacy.private else [])))


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
        "This run, by order (how many columns a pair was examined given) or stage",
        heads[cut],
        [row[cut] for row in rows],
        class_="narrow",
    )


def _at(values: tuple[float, ...], i: int) -> str:
    return number(values[i]) if i < len(values) else "-"


def _remarks(result: Discovery) -> Html:
    said = ["Questions may share a charge: a question is not what costs, a release is."]
    if len(result.learned.leaked) and not result.privacy.private:
        said.append("The cost of an order is by the authors' count, which is not proved.")
    return bullets(said)
