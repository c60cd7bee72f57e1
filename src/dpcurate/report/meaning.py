"""What a reader may conclude, and where the picture comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpcurate._messages import how_many
from dpcurate.draw.svg import DrawnEdge
from dpcurate.learn.methods import DESCRIPTIONS, listed
from dpcurate.report.markup import Html, HtmlOrText, bullets, element, facts, folded, paragraphs

if TYPE_CHECKING:
    from dpcurate.result.discovery import Discovery

MEANS = (
    "An arrow a → b says, under the assumptions below, that b does not cause a. Either a causes b, relative to "
    "the columns in this table, or something outside the table drives both. An arrow that says only that a causes b is "
    "one that no hidden cause can explain.",
    "A line a — b says that the two are directly related, and that neither direction is probable enough to draw: often "
    "graphs with either direction imply the same independences. Where directions cannot be read, every edge is a line "
    "unless background knowledge directs it.",
    "No edge says that some other columns, or none, account for the dependence that was seen between the two, or that "
    "the pair is undecided.",
)
MEANS_HIDDEN = (
    "An arrowhead at b on an edge with a says that b does not cause a. A tail at a says that a causes b, by itself or "
    "through other columns, seen or hidden. A circle says that either is possible.",
    "So a → b: a causes b. a ○→ b: a causes b, or a hidden cause moves both. a ↔ b: neither causes the other, and a "
    "hidden cause moves both. a ○—○ b: all of this is possible.",
    "No edge says that some other columns, or none, account for the dependence that was seen between the two, or that "
    "the pair is undecided.",
)
MEANS_NOT_HIDDEN = (
    "A tail does not rule out that a hidden cause moves the two as well: a → b can be confounded. Where it can, no "
    "effect is given.",
    "An edge need not be a direct link: it says that no columns of this table separate the two.",
)
MEANS_NOT = (
    "A missing edge is not proof of no effect. Noise for privacy hides weak effects: the smaller epsilon or the "
    "table, the more edges are missed.",
    "P(edge) and P(direction) say whether an edge exists and where it points, under the assumptions below. They do not "
    "measure its strength.",
    "Another run with the same settings draws other noise and can give another graph. Choosing among several runs "
    "spends budget for each, and favours flukes.",
)
NO_EFFECTS = "The graph shows neither the size of an effect nor its sign."
EFFECTS = (
    "An effect beside an edge a → b is what setting a would do to b, along all paths, if the graph is right. Its 95 % "
    "interval holds sampling and privacy noise, not the uncertainty about the graph."
)
ASSUMES = (
    "Causal sufficiency: no common cause of two columns is missing from the table. Where one is, an "
    "edge can stand for that hidden cause.",
    "Faithfulness: effects do not cancel exactly. Where they do, a real edge is missed.",
    "No feedback: causes do not run in a circle.",
    "Rows are drawn independently from one population, and which rows were kept does not depend on two columns "
    "at once (no selection effect).",
    "Levels and bins keep what matters about a quantity. Coarse bins leave part of a common cause unexplained, which "
    "shows up as extra edges.",
)
CITATION = (
    "The dpcurate developers. dpcurate {version}: differentially private causal discovery with proven guarantees. "
    "Python package."
)


def meaning(result: Discovery, edges: Sequence[DrawnEdge]) -> Html:
    """The section for readers who did not make the graph."""
    sized = any(edge.strength is not None for edge in edges)
    why = result.reported_effects.why_none
    says, says_not = ((EFFECTS,), ()) if sized else ((), (f"{NO_EFFECTS} {why.capitalize()}." if why else NO_EFFECTS,))
    parts = [_list("It says", (*MEANS, *says)), _list("It does not say", (*MEANS_NOT, *says_not))]
    parts.append(_list("It assumes", ASSUMES))
    if result.graph.latent:  # the first assumption is the one that it does without
        not_said = (*MEANS_NOT_HIDDEN, *MEANS_NOT, *says_not)
        parts = [_list("It says", (*MEANS_HIDDEN, *says)), _list("It does not say", not_said)]
        parts.append(_list("It assumes", ASSUMES[1:]))
    known = sum("background" in edge.source.value for edge in edges)
    if result.knowledge is not None:
        parts.append(
            paragraphs(
                "Background knowledge was imposed without looking at data; "
                f"it decided on {how_many(known, 'edge')} here."
            )
        )
    return Html("".join(parts))


def _list(title: str, texts: Sequence[str]) -> Html:
    return Html(element("h3", title) + bullets(texts))


def origin(result: Discovery) -> Html:
    """Who made it, when, what for, of what and how; settings are folded away."""
    version = result.versions.get("dpcurate", "")
    versions = ", ".join(f"{name} {number}" for name, number in result.versions.items()) or "not recorded"
    known: list[tuple[str, HtmlOrText]] = [
        *_run(result),
        ("Method", method_words(result.method)),
        ("Schema", _schema(result)),
        ("Rows", "private" if result.schema.rows is None else f"about {result.schema.rows:,} by public knowledge"),
        ("Versions", versions),
        ("Cite as", CITATION.format(version=version).replace("  ", " ").replace(" :", ":")),
    ]
    settings = "" if result.run is None else result.run.settings
    return Html(facts(known) + (folded("All settings of the method", element("pre", settings)) if settings else ""))


def _run(result: Discovery) -> list[tuple[str, HtmlOrText]]:
    run = result.run
    if run is None:
        return []
    number = "" if run.number is None else f" (run {run.number} in its ledger's log)"
    said = [("Table", run.table and f"{run.table}{number}"), ("Made by", run.by), ("Made on", run.clock(run.at))]
    said += [("Purpose", run.purpose or "not stated")]
    said += [
        ("Used again", "" if run.again is None else f"{run.clock(run.again)}, from stored answers and without charge")
    ]
    return [(name, text) for name, text in said if text]


def _schema(result: Discovery) -> Html:
    file = "" if result.run is None else result.run.schema_file
    named = element("code", file) + ", " if file else ""
    return Html(named + f"{len(result.schema.columns)} columns, fingerprint " + element("code", result.schema.hash))


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
