"""The method in words, for readers who will never open its code."""

from __future__ import annotations

from dpcurate.learn.methods import Listed, listed
from dpcurate.report.markup import Html, element

_PC = (
    "The PC algorithm: it starts with an edge between every two columns and takes away those that some other columns "
    "explain. "
)
WORDS = {
    "MeasureOnce": (
        "Noised statistics of how columns go together were released, in few large releases instead of many small "
        "ones. All else was computed from them, without another look at the table: a search for the order of the "
        "columns and the parents of each that fit best, knowing how large the noise is, and for every pair how likely "
        "it is linked and which way round."
    ),
    "EMPC": _PC + "Which edge goes next is chosen at random in favour of the weakest (exponential mechanism).",
    "SVTPC": _PC + "A noised comparison with a noised threshold says when an edge may go; each that goes is paid for.",
    "PrivPC": _PC + "A cheap noised comparison picks out weak edges; a second, noised look decides on each of these.",
    "CuratePC": _PC
    + "Each edge is judged by a noised number. How much budget each round gets is found by optimisation beforehand.",
    "NotearsOnMoments": (
        "Noised means and products of columns were released once. A graph of linear effects was fitted to them "
        "(NOTEARS), mended by a local search, and edges that do not stand out from the noise were left out."
    ),
    "Noleaks": (
        "A graph of linear effects was fitted step by step (NOTEARS), each step by a noised gradient that was paid "
        "for, all at the same price."
    ),
    "CurateScore": (
        "A graph of linear effects was fitted step by step (NOTEARS), each step by a noised gradient that was paid "
        "for; later steps, which matter more, were given more of the budget."
    ),
    "PC": _PC + "Tests were exact, so this protects nobody.",
    "OrderSearch": (
        "A search for the order of the columns and the parents of each that explain the exact table best. This "
        "protects nobody."
    ),
    "Notears": "A graph of linear effects was fitted to exact means and products of columns. This protects nobody.",
}
"""By the recipe's class; any other method is told by its line in the registry."""


def method_words(name: str) -> Html:
    """Its name, and what it does."""
    entry = _entry(name)
    if entry is None:
        return element("code", name)
    text = WORDS.get(type(entry.recipe).__name__, entry.about)
    return Html(element("code", name) + ". " + element("span", text))


def _entry(name: str) -> Listed | None:
    """By its name, or by the class of a recipe with settings of its own."""
    known = listed()
    every = [*known.values(), *listed("published").values()]
    return known.get(name) or next((e for e in every if type(e.recipe).__name__ == name), None)
