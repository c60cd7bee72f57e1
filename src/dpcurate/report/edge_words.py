"""What the report says of one edge: its kind in words, its evidence, and whether it was tested to the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpcurate.draw.svg import DrawnEdge, EdgeOrigin
from dpcurate.draw.text import clean, number
from dpcurate.effects.effect import Effect
from dpcurate.graphs.base_graph import UnorderedPair
from dpcurate.report.markup import Html, TableCell
from dpcurate.result.edges import Edge, MarkedEdge
from dpcurate.result.fit import Evidence

if TYPE_CHECKING:
    from dpcurate.graphs.knowledge import Knowledge
    from dpcurate.result.discovery import Discovery

MOST_DECISIONS = 12
"""Decisions told for one edge; the last ones decide."""


def shown_edges(result: Discovery) -> tuple[DrawnEdge, ...]:
    """Every edge of the graph, in the columns' order."""
    told: dict[UnorderedPair, list[Evidence]] = {}
    for item in result.learned.evidence:
        told.setdefault(frozenset(item.pair), []).append(_without_chance(item, result.learned.linked))
    late = open_orders(result.learned.unfinished)
    effects = shown_effects(result)
    return tuple(replace(_shown(e, result.knowledge, told, late), **effects.get((e.a, e.b), {})) for e in result.edges)


def _without_chance(item: Evidence, linked: Mapping[UnorderedPair, float]) -> Evidence:
    """A decision by the probability that is shown anyway was made for one cut: say for which."""
    if item.value is None or item.value != linked.get(frozenset(item.pair)):
        return item
    return replace(item, verdict=f"best-f1: {item.verdict}", value=None)


def open_orders(unfinished: Mapping[int, Sequence[UnorderedPair]]) -> dict[UnorderedPair, tuple[int, ...]]:
    """Edges the budget did not reach, with the orders it did not reach them at."""
    late: dict[UnorderedPair, tuple[int, ...]] = {}
    for order, pairs in sorted(unfinished.items()):
        for pair in pairs:
            late[frozenset(pair)] = (*late.get(frozenset(pair), ()), order)
    return late


def _shown(
    edge: Edge,
    knowledge: Knowledge | None,
    told: Mapping[UnorderedPair, Sequence[Evidence]],
    late: Mapping[UnorderedPair, tuple[int, ...]],
) -> DrawnEdge:
    pair = frozenset((edge.a, edge.b))
    source = _source(edge, knowledge)
    decisions = _told(told.get(pair, ()))
    sign = edge.sign if isinstance(edge, MarkedEdge) else ""
    open_at = late.get(pair, ())
    meaning = edge.meaning if edge.directed and not sign else ""
    shown = DrawnEdge(edge.a, edge.b, edge.directed, source, edge.linked, edge.direction, decisions, open_at, sign)
    return replace(shown, meaning=meaning)


def _source(edge: Edge, knowledge: Knowledge | None) -> EdgeOrigin:
    if knowledge is None:
        return EdgeOrigin.DATA
    if knowledge.requires(edge.a, edge.b):
        return EdgeOrigin.GIVEN
    if edge.directed and not knowledge.may_point(edge.b, edge.a):
        return EdgeOrigin.DIRECTION
    return EdgeOrigin.DATA


def _told(decisions: Sequence[Evidence]) -> tuple[str, ...]:
    left_out = len(decisions) - MOST_DECISIONS
    first = (f"{left_out} earlier decisions are not shown",) if left_out > 0 else ()
    return (*first, *map(sentence, decisions[-MOST_DECISIONS:]))


def sentence(item: Evidence) -> str:
    """One decision: what was compared with what."""
    given = f" given {', '.join(map(clean, item.given))}" if item.given else ""
    value = "" if item.value is None else f": value {number(item.value)}"
    noise = f" ± {number(item.noise)}" if item.noise else ""
    against = "" if item.threshold is None else f" against {number(item.threshold)}"
    return f"{clean(item.verdict)}{given}{value}{noise}{against}"


UNKNOWN_EFFECTS = {
    "not identified": "Not identified: the graph leaves these directions open, or allows a hidden common cause.",
    "not determined": "Not determined: the released statistics do not suffice; found.effects() says why.",
}


def shown_effects(result: Discovery) -> dict[tuple[str, str], dict[str, Any]]:
    """What a drawn edge has of its effects, by its ends as they are drawn; nothing where none is known."""
    if result.reported_effects.why_none:
        return {}
    known = {(effect.cause, effect.outcome): effect for effect in result.reported_effects}
    ends = [(edge.a, edge.b) for edge in result.edges if (edge.a, edge.b) in known]
    return {(a, b): _effect_words(known[a, b], known.get((b, a))) for a, b in ends}


def _effect_words(effect: Effect, other: Effect | None) -> dict[str, Any]:
    """Of an arrow its effect; of another edge both, and the stronger one to draw it by."""
    if other is None:
        raises = effect.sign == 1 if effect.sign in (-1, 1) else None
        return {"effects": (clean(effect.brief),), "strength": effect.strength, "raises": raises}
    acting = [e.supposed for e in (effect, other) if e.state != "none"]
    strengths = [e.strength for e in acting if e.strength is not None]
    return {"effects": _either_way(acting), "strength": max(strengths, default=None if acting else 0.0)}


def _either_way(acting: Sequence[Effect]) -> tuple[str, ...]:
    """What is said of an edge whose direction is open, by the directions in which it may act."""
    if not acting:
        return ("no effect in either direction",)
    if len(acting) == 2 and acting[0].state in UNKNOWN_EFFECTS and acting[0].state == acting[1].state:
        return (acting[0].state,)
    return tuple(clean(f"if {e.cause} → {e.outcome}: {e.brief}") for e in acting)


def reasons(edges: Sequence[DrawnEdge]) -> str:
    """Why some effects are not known, once for all edges."""
    told = [said for edge in edges for said in edge.effects]
    return "".join(f" {text}" for state, text in UNKNOWN_EFFECTS.items() if any(state in said for said in told))


def effect_cell(edge: DrawnEdge) -> TableCell:
    """Words, sorted by strength."""
    by = "-1" if edge.strength is None else f"{edge.strength:.6f}"
    return TableCell("; ".join(edge.effects) or "-", by)


def thickness_choice(edges: Sequence[DrawnEdge]) -> Html:
    """What the thickness of lines means, where there is a choice."""
    sure, strong = (any(getattr(edge, name) is not None for edge in edges) for name in ("linked", "strength"))
    if not (sure and strong):
        return Html("")
    return Html(
        '<span class="pair"><label for="thick">Thickness</label><select id="thick">'
        '<option value="linked">P(edge)</option><option value="strength">strength of the effect</option>'
        "</select></span>"
    )
