"""What the report says of the effect along an edge: in figures, in words, and how thick its line is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpcurate.effects.effect import Effect
from dpcurate.graphs.drawing.edges import Shown
from dpcurate.graphs.drawing.text import clean
from dpcurate.report.markup import Html, TableCell

if TYPE_CHECKING:
    from dpcurate.discovery import Discovery


def shown_effects(result: Discovery) -> dict[tuple[str, str], dict[str, Any]]:
    """What a drawn edge has of its effects, by its ends as they are drawn; nothing where no answers were kept."""
    known = {(effect.cause, effect.outcome): effect for effect in result.told_effects}
    ends = [(edge.a, edge.b) for edge in result.edges if (edge.a, edge.b) in known]
    return {(a, b): _shown(known[a, b], known.get((b, a))) for a, b in ends}


def _shown(effect: Effect, other: Effect | None) -> dict[str, Any]:
    """Of an arrow its effect; of another edge both, and the stronger one to draw it by."""
    if other is None:
        said = (clean(effect.sentence),)
        sure = effect.sign in (-1, 1)
        raises = effect.sign == 1 if sure else None
        return {"effects": said, "strength": effect.strength, "raises": raises}
    each = (effect, other)
    strengths = [e.strength for e in each if e.strength is not None]
    return {
        "effects": tuple(clean(f"if {e.cause} → {e.outcome}: {e.supposed.sentence}") for e in each),
        "strength": max(strengths, default=None),
    }


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
