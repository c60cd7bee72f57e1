"""What each method does, for readers of a report who will never open its code. Data alone: no method is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_PC = (
    "The PC algorithm starts with an edge between every two columns and removes those that some other columns explain. "
)
DESCRIPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "MeasureOnce": (
            "Noised statistics of how columns go together were released, in few large releases instead of many small "
            "ones. All else was computed from them, without another look at the table: a search for the order of the "
            "columns and the parents of each that fit best, knowing how large the noise is, and for every pair how "
            "likely it is linked and which way round."
        ),
        "EMPC": _PC + "Which edge goes next is chosen at random in favour of the weakest (exponential mechanism).",
        "SVTPC": _PC
        + "A noised comparison with a noised threshold says when an edge may go; each that goes is paid for.",
        "PrivPC": _PC
        + "A cheap noised comparison picks out weak edges; a second, noised look decides on each of these.",
        "CuratePC": _PC
        + "Each edge is judged by a noised number. The budget of each round is found by optimisation beforehand.",
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
        "PublishedEMPC": "EM-PC as coded with Priv-PC.",
        "PublishedSVTPC": "SVT-PC as printed.",
        "PublishedPrivPC": "Priv-PC as coded.",
        "PublishedCuratePC": "CURATE's Algorithm 1 as printed.",
        "PublishedNoleaks": "NOLEAKS as in its artifact, on all rows.",
        "PublishedCurateScore": "Score-based CURATE.",
        "PublishedPC": "PC with Kendall's test as the papers compute it.",
    }
)
"""By the class of the recipe. Any other method is described by its line in the registry."""
