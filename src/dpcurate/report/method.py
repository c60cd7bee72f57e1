"""The method in words, for readers who will never open its code."""

from __future__ import annotations

from dpcurate.learn.descriptions import DESCRIPTIONS
from dpcurate.learn.methods import listed
from dpcurate.report.markup import Html, element


def method_words(name: str) -> Html:
    """Its name, and what it does."""
    text = _description(name)
    return element("code", name) if text is None else Html(element("code", name) + ". " + element("span", text))


def _description(name: str) -> str | None:
    """Of a name in the registry, or of the class of a recipe with settings of its own.

    Recipes of papers are described without being loaded: a private run never imports what is published.
    """
    known = listed()
    entry = known.get(name) or next((e for e in known.values() if type(e.recipe).__name__ == name), None)
    if entry is None:
        return DESCRIPTIONS.get(name)
    return DESCRIPTIONS.get(type(entry.recipe).__name__, entry.about)
