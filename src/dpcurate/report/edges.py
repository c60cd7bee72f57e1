"""What the report says of one edge: its kind in words, its evidence, and whether it was tested to the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from dpcurate.learn.outcome import Evidence, Pair
from dpcurate.report.text import clean, number

if TYPE_CHECKING:
    from dpcurate.discovery import Discovery, FoundEdge
    from dpcurate.graphs.knowledge import Knowledge

MOST = 12
"""Decisions told for one edge; the last ones decide."""


class Source(Enum):
    """Where an edge comes from."""

    DATA = "found in the data"
    DIRECTION = "found in the data; its direction is background knowledge"
    GIVEN = "required by background knowledge"


@dataclass(frozen=True, slots=True)
class Shown:
    """An edge as the report shows it."""

    a: str
    b: str
    directed: bool
    source: Source
    confidence: float | None = None
    evidence: tuple[str, ...] = ()
    open_at: tuple[int, ...] = ()
    """Orders at which the budget ended before it was tested."""

    @property
    def kind(self) -> str:
        """In one word."""
        return "directed" if self.directed else "undirected"

    @property
    def words(self) -> str:
        """In a sentence."""
        between = f"{clean(self.a)} → {clean(self.b)}" if self.directed else f"{clean(self.a)} — {clean(self.b)}"
        sure = "" if self.confidence is None else f", confidence {self.confidence:.2f}"
        late = ", not tested to the end" if self.open_at else ""
        return f"{between}: {self.kind}, {self.source.value}{sure}{late}"


def shown_edges(found: Discovery) -> tuple[Shown, ...]:
    """Every edge of the graph, in the columns' order."""
    told: dict[Pair, list[Evidence]] = {}
    for item in found.learned.evidence:
        told.setdefault(frozenset(item.pair), []).append(item)
    late = open_orders(found.learned.unfinished)
    return tuple(_shown(edge, found.knowledge, told, late) for edge in found.edges)


def open_orders(unfinished: Mapping[int, Sequence[Pair]]) -> dict[Pair, tuple[int, ...]]:
    """Edges the budget did not reach, with the orders it did not reach them at."""
    late: dict[Pair, tuple[int, ...]] = {}
    for order, pairs in sorted(unfinished.items()):
        for pair in pairs:
            late[frozenset(pair)] = (*late.get(frozenset(pair), ()), order)
    return late


def _shown(
    edge: FoundEdge,
    knowledge: Knowledge | None,
    told: Mapping[Pair, Sequence[Evidence]],
    late: Mapping[Pair, tuple[int, ...]],
) -> Shown:
    pair = frozenset((edge.a, edge.b))
    source = _source(edge, knowledge)
    decisions = _told(told.get(pair, ()))
    return Shown(edge.a, edge.b, edge.directed, source, edge.confidence, decisions, late.get(pair, ()))


def _source(edge: FoundEdge, knowledge: Knowledge | None) -> Source:
    if knowledge is None:
        return Source.DATA
    if knowledge.requires(edge.a, edge.b):
        return Source.GIVEN
    if edge.directed and not knowledge.may_point(edge.b, edge.a):
        return Source.DIRECTION
    return Source.DATA


def _told(decisions: Sequence[Evidence]) -> tuple[str, ...]:
    left_out = len(decisions) - MOST
    first = (f"{left_out} earlier decisions are not shown",) if left_out > 0 else ()
    return (*first, *map(sentence, decisions[-MOST:]))


def sentence(item: Evidence) -> str:
    """One decision: what was compared with what."""
    given = f" given {', '.join(map(clean, item.given))}" if item.given else ""
    value = "" if item.value is None else f": value {number(item.value)}"
    noise = f" ± {number(item.noise)}" if item.noise else ""
    against = "" if item.threshold is None else f" against {number(item.threshold)}"
    return f"{clean(item.verdict)}{given}{value}{noise}{against}"
