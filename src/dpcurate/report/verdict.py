"""The verdict as markup: a red banner where a result is mostly noise, else a few lines under the title."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpcurate.report.markup import Html, element, paragraphs

if TYPE_CHECKING:
    from dpcurate.learn.directions import DirectionVerdict
    from dpcurate.learn.verdict import Verdict


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
