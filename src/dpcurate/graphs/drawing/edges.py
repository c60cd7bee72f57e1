"""An edge as it is drawn: its kind in words, where it comes from, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dpcurate.graphs.drawing.text import clean


class Origin(Enum):
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
    source: Origin
    confidence: float | None = None
    evidence: tuple[str, ...] = ()
    open_at: tuple[int, ...] = ()
    """Orders at which the budget ended before it was tested."""

    @property
    def kind(self) -> str:
        return "directed" if self.directed else "undirected"

    @property
    def words(self) -> str:
        between = f"{clean(self.a)} → {clean(self.b)}" if self.directed else f"{clean(self.a)} — {clean(self.b)}"
        sure = "" if self.confidence is None else f", confidence {self.confidence:.2f}"
        late = ", not tested to the end" if self.open_at else ""
        return f"{between}: {self.kind}, {self.source.value}{sure}{late}"
