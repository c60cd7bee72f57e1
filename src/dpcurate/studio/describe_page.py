"""Step 2, Describe: one card for each column, with what was guessed and how the rows fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from starlette.responses import Response

from dpcurate import TableCheck
from dpcurate.studio.cards import DROP, EDITED, USES, Card, said, schema_of
from dpcurate.studio.project import ProjectState
from dpcurate.studio.visit import Visit

MOST_BARS = 12
"""Levels of a column that are shown with their rows."""
SAID_ABOVE = ("of the rows are left out for", "of the cells are outside")
"""What a check says of cells that a card counts already."""
LONG = 40
"""Levels from which a card has a text field alone."""


@dataclass(frozen=True, slots=True)
class Look:
    """How the rows fit a card: bars of its levels or of equal parts, other cells, and what stands out."""

    bars: tuple[tuple[str, int, float], ...]
    more: int
    notes: tuple[str, ...]


def show(visit: Visit) -> Response:
    """The cards."""
    state = visit.project.state
    if not state.cards:
        return visit.page("drafting.html", "describe", drafting=visit.site.looks.draft(visit.project))
    schema, problems = schema_of(state.cards, state.rows, state.file)
    job = None if schema is None else visit.site.looks.check(visit.project, schema)
    check: TableCheck | None = None if job is None else job.value
    shown = check or visit.site.looks.newest(visit.project)
    known = {} if shown is None else shown.columns
    looks = {c.name: _look(c, shown) for c in state.cards if shown is not None and c.used and c.name in known}
    values: dict[str, Any] = {
        "uses": USES, "problems": problems, "job": job, "looks": looks, "check": check, "long": LONG,
        "remarks": () if check is None else [said(one.text) for one in check.remarks if one.column is None],
    }  # fmt: skip
    return visit.page("describe.html", "describe", **values)


def _look(card: Card, check: TableCheck) -> Look:
    fill = check.columns[card.name]
    most = max((count for _, count in fill.levels), default=1) or 1
    bars = tuple((name, count, round(100 * count / most, 1)) for name, count in fill.levels[:MOST_BARS])
    notes = []
    if fill.missing:
        notes.append(f"{_cells(fill.missing, check.rows)} empty: {_fate(card.missing, card.missing_as)}.{_way(card)}")
    if fill.outside:
        beyond = "beyond the bounds" if card.use == "number" else "none of the values above"
        notes.append(f"{_cells(fill.outside, check.rows)} {beyond}: {_fate(card.outside, card.outside_as)}.")
    others = [said(text) for text in check.of_column(card.name) if not any(words in text for words in SAID_ABOVE)]
    return Look(bars, max(0, len(fill.levels) - MOST_BARS), (*notes, *others))


def _way(card: Card) -> str:
    return " To keep them, open “Empty and strange cells”." if card.missing == DROP else ""


def _cells(count: int, rows: int) -> str:
    share = f" ({count / rows:.1%})" if rows and count >= rows / 1000 else ""
    return f"{count:,} {'cell' if count == 1 else 'cells'}{share} {'is' if count == 1 else 'are'}"


def _fate(rule: str, value: str) -> str:
    told = {"drop": "their rows are left out", "own": "their rows stay", "clamp": "they count as the bound"}
    return told.get(rule, f"they count as {value}")


def save(visit: Visit) -> Response:
    """Keep what was typed, and confirm what was asked to be confirmed."""
    with visit.project.changing() as holder:
        holder[0] = _typed(visit, holder[0])
    if visit.text("do") == "confirm" and not visit.project.state.unconfirmed and visit.project.schema is not None:
        return visit.go("order")
    return visit.go("describe")


def _typed(visit: Visit, state: ProjectState) -> ProjectState:
    cards = []
    confirm_all = visit.text("do") == "confirm"
    for i, card in enumerate(state.cards):
        if visit.form.get(f"c{i}.name") == card.name:  # a form of an older draft changes nothing
            card = card.edited(_fields(visit, i, card))
            if f"c{i}.shown" in visit.form and card.guessed:
                confirmed = f"c{i}.ok" in visit.form or card.confirmed != state.cards[i].confirmed
                card = replace(card, confirmed=confirmed)
            if confirm_all and card.used:
                card = replace(card, confirmed=True)
        cards.append(card)
    rows = visit.form.get("rows", state.rows).strip()
    guessed = state.rows_guessed and rows == state.rows and not confirm_all and "rows_ok" not in visit.form
    return replace(state, cards=tuple(cards), rows=rows, rows_guessed=guessed)


def _fields(visit: Visit, i: int, card: Card) -> dict[str, Any]:
    typed: dict[str, Any] = {}
    for name in EDITED:
        value = visit.form.get(f"c{i}.{name}")
        if value is None:
            continue
        if name == "levels":
            typed[name] = tuple(line.strip("\r") for line in value.split("\n") if line.strip())
        else:
            typed[name] = value.strip()
    if "use" in typed and typed["use"] not in USES:
        del typed["use"]
    return _with_defaults(typed, card)


def _with_defaults(typed: dict[str, Any], card: Card) -> dict[str, Any]:
    """Rules that mean nothing for the new use become the usual ones; a new number has no levels to keep."""
    use = typed.get("use", card.use)
    if use != card.use and use != "number":
        typed["outside"] = (
            "drop" if typed.get("outside", card.outside) == "clamp" else typed.get("outside", card.outside)
        )
        typed["missing"] = (
            "drop" if use == "ordered" and typed.get("missing") == "own" else typed.get("missing", card.missing)
        )
    elif use != card.use and typed.get("outside", card.outside) != "drop":
        typed["outside"] = "clamp"
    return typed
