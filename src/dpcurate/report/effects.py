"""What the report says of the effect along an edge: in figures, in words, and how thick its line is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpcurate.effects.effect import Effect
from dpcurate.graphs.drawing.edges import Shown
from dpcurate.graphs.drawing.text import clean
from dpcurate.report.markup import Html, TableCell

if TYPE_CHECKING:
    from dpcurate.result import Discovery

WHY = {
    "not identified": "Not identified: a hidden cause may move both, or too many directions are open.",
    "not determined": "Not determined: what was released does not tell; found.effects() says why, and what to do.",
}


def shown_effects(result: Discovery) -> dict[tuple[str, str], dict[str, Any]]:
    """What a drawn edge has of its effects, by its ends as they are drawn; nothing where none is known."""
    if result.reported_effects.why_none:
        return {}
    known = {(effect.cause, effect.outcome): effect for effect in result.reported_effects}
    ends = [(edge.a, edge.b) for edge in result.edges if (edge.a, edge.b) in known]
    return {(a, b): _shown(known[a, b], known.get((b, a))) for a, b in ends}


def _shown(effect: Effect, other: Effect | None) -> dict[str, Any]:
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
        return ("no effect either way",)
    if len(acting) == 2 and acting[0].state in WHY and acting[0].state == acting[1].state:
        return (acting[0].state,)
    return tuple(clean(f"if {e.cause} → {e.outcome}: {e.brief}") for e in acting)


def reasons(edges: Sequence[Shown]) -> str:
    """Why some effects are not known, once for all edges."""
    return "".join(f" {text}" for state, text in WHY.items() if any(state in said for e in edges for said in e.effects))


def effect_cell(edge: Shown) -> TableCell:
    """Words, sorted by strength."""
    by = "-1" if edge.strength is None else f"{edge.strength:.6f}"
    return TableCell("; ".join(edge.effects) or "-", by)


def thickness_choice(edges: Sequence[Shown]) -> Html:
    """What the thickness of lines means, where there is a choice."""
    sure, strong = (any(getattr(edge, name) is not None for edge in edges) for name in ("linked", "strength"))
    if not (sure and strong):
        return Html("")
    return Html(
        '<span class="pair"><label for="thick">Thickness</label><select id="thick">'
        '<option value="linked">how surely linked</option><option value="strength">how strong the effect</option>'
        "</select></span>"
    )
