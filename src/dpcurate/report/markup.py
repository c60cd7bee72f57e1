"""Small pieces of HTML; every text passes through `escape` here or in the caller's `Html`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dpcurate._messages import shown_probability
from dpcurate.draw.text import escape


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


HtmlOrText = str | Html


def mark(text: HtmlOrText) -> Html:
    """Markup of a text: escaped unless it is markup already."""
    return text if isinstance(text, Html) else Html(escape(text))


def element(tag: str, *inside: HtmlOrText, **attributes: str) -> Html:
    """<tag ...>inside</tag>; a trailing underscore of an attribute's name is dropped, inner ones become hyphens."""
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    given = "".join(f' {name}="{escape(value)}"' for name, value in names.items())
    return Html(f"<{tag}{given}>{''.join(map(mark, inside))}</{tag}>")


def paragraphs(*texts: HtmlOrText) -> Html:
    """A paragraph of each text."""
    return Html("".join(element("p", text) for text in texts))


def bullets(texts: Iterable[HtmlOrText]) -> Html:
    """A list with a bullet for each text."""
    return element("ul", *(element("li", text) for text in texts))


def facts(pairs: Iterable[tuple[str, HtmlOrText]]) -> Html:
    """A list of names and their values."""
    return element("dl", *(Html(element("dt", name) + element("dd", value)) for name, value in pairs))


def folded(summary: str, *inside: HtmlOrText, class_: str = "print") -> Html:
    """Shown when opened; `print` also on paper."""
    return element("details", element("summary", summary), *inside, class_=class_)


@dataclass(frozen=True, slots=True)
class Head:
    """A column of a table; a number's column is sorted by size."""

    name: str
    number: bool = False


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell and what it is sorted by."""

    text: HtmlOrText
    by: str | None = None


def chance_cell(p: float | None) -> TableCell:
    """A probability; a dash, sorted below all, where there is none."""
    return TableCell("-", "-1") if p is None else TableCell(shown_probability(p), f"{p:.6f}")


def table(
    caption: str,
    heads: Sequence[Head],
    rows: Iterable[Sequence[HtmlOrText | TableCell]],
    *,
    total: Sequence[HtmlOrText] = (),
    sortable: bool = False,
    row_name: str = "",
    class_: str = "",
) -> Html:
    """A table with a caption and headers; `row_name` numbers its rows for the script.

    Of the class `cards`, rows stand as blocks on narrow screens, each cell behind the name of its column.
    """
    named = "cards" in class_.split()
    body = [_row(cells, heads, {row_name: str(i)} if row_name else {}, named) for i, cells in enumerate(rows)]
    parts = [element("caption", caption), element("thead", _head(heads, sortable)), element("tbody", *body)]
    if total:
        parts.append(element("tfoot", _row(total, heads, {})))
    return element("div", element("table", *parts, **({"class_": class_} if class_ else {})), class_="scroll")


def _kind(head: Head) -> dict[str, str]:
    return {"class_": "number"} if head.number else {}


def _head(heads: Sequence[Head], sortable: bool) -> Html:
    if not sortable:
        return element("tr", *(element("th", head.name, scope="col", **_kind(head)) for head in heads))
    return element(
        "tr", *(element("th", *_sorter(head), scope="col", aria_sort="none", **_kind(head)) for head in heads)
    )


def _sorter(head: Head) -> tuple[Html, Html]:
    """A button, and plain text for paper: Chromium does not repeat a head with buttons on the next page."""
    return element("button", head.name, type="button"), element("span", head.name, class_="paper")


def _row(
    cells: Sequence[HtmlOrText | TableCell], heads: Sequence[Head], attributes: dict[str, str], named: bool = False
) -> Html:
    tds = []
    for cell, head in zip(cells, heads, strict=True):
        full = cell if isinstance(cell, TableCell) else TableCell(cell)
        by = {} if full.by is None else {"data_value": full.by}
        name = {"data_head": head.name} if named else {}
        tds.append(element("td", full.text, **_kind(head), **by, **name))
    return element("tr", *tds, **attributes)
