"""Effects as files carry them: beside the edges of a graph, and as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from dpcurate.effects.effect import Effect
from dpcurate.effects.table import EffectTable
from dpcurate.graphs.base import Arrow
from dpcurate.graphs.formats.draft import EFFECT, Chance, Chances, written

PLAIN = (
    *("cause", "outcome", "state", "estimate", "error", "low", "high", "adjusted_for", "to", "instead_of"),
    *("level", "strength", "reason"),
)


def with_effects(chances: Chances, edges: Iterable[Arrow], effects: Iterable[Effect]) -> Chances:
    """How sure edges are, with the effect along each as it is written."""
    known = {(effect.cause, effect.outcome): effect for effect in effects}
    told = {ends: replace(chances.get(ends, Chance()), effect=_beside(known[ends])) for ends in edges if ends in known}
    return {**chances, **told}


def _beside(effect: Effect) -> tuple[tuple[str, str], ...]:
    numbers = effect.estimate, effect.low, effect.high
    return tuple(zip(EFFECT, (*("" if x is None else written(x) for x in numbers), effect.brief), strict=True))


def plain(effect: Effect) -> dict[str, Any]:
    """An effect as JSON holds it."""
    values = {name: getattr(effect, name) for name in PLAIN}
    table = {} if effect.table is None else {"table": _plain_table(effect.table)}
    possible = {"possible": [plain(one) for one in effect.possible]} if effect.possible else {}
    return {**values, "adjusted_for": list(effect.adjusted_for), "words": effect.sentence, **table, **possible}


def _plain_table(table: EffectTable) -> dict[str, Any]:
    return {
        "causes": list(table.causes),
        "outcomes": list(table.outcomes),
        "values": table.values.tolist(),
        "errors": table.errors.tolist(),
    }
