"""An edge as it is drawn: its kind in words, where it comes from, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dpcurate._messages import chance
from dpcurate.graphs.drawing.text import clean
from dpcurate.graphs.pag import GLYPHS, KINDS, SIGNS, Mark, meaning

EVEN = 0.5
"""P(direction) of which neither way is likelier."""


class Origin(Enum):
    """Where an edge comes from."""

    DATA = "found in the data"
    DIRECTION = "found in the data; its direction is background knowledge"
    GIVEN = "required by background knowledge"


@dataclass(frozen=True, slots=True)
class Shown:
    """An edge as the report shows it; `linked` and `direction` are those of a `FoundEdge`."""

    a: str
    b: str
    directed: bool
    source: Origin
    linked: float | None = None
    direction: float | None = None
    evidence: tuple[str, ...] = ()
    open_at: tuple[int, ...] = ()
    """Orders at which the budget ended before it was tested."""
    sign: str = ""
    """In a PAG, how the edge is written."""
    effects: tuple[str, ...] = ()
    """What setting one end does to the other, in words."""
    strength: float | None = None
    """Of the effect, between 0 and 1."""
    raises: bool | None = None
    """Its sign, where that is sure."""
    meaning: str = ""
    """Of an arrow, what it says in a sentence."""

    @property
    def kind(self) -> str:
        if self.sign:
            return KINDS[self.sign]
        return "directed" if self.directed else "undirected"

    @property
    def glyph(self) -> str:
        if self.sign:
            return GLYPHS[self.sign]
        return "→" if self.directed else "—"

    @property
    def marks(self) -> tuple[Mark, Mark]:
        """At a and at b."""
        return SIGNS[self.sign] if self.sign else ("tail", "arrow" if self.directed else "tail")

    @property
    def likelier(self) -> tuple[Mark, Mark] | None:
        """Of a line the marks of the arrow that is likelier than its opposite, if either is."""
        if self.directed or self.sign or self.direction is None or self.direction == EVEN:
            return None
        return ("tail", "arrow") if self.direction > EVEN else ("arrow", "tail")

    @property
    def says(self) -> str:
        """What it means: one word, in a PAG a sentence."""
        return meaning(clean(self.a), self.sign, clean(self.b)) if self.sign else self.kind

    @property
    def between(self) -> str:
        return f"{clean(self.a)} {self.glyph} {clean(self.b)}"

    @property
    def words(self) -> str:
        sure = f", {self.sure}" if self.sure else ""
        late = ", not tested to the end" if self.open_at else ""
        return f"{self.between}: {self.says}, {self.source.value}{sure}{late}"

    @property
    def sure(self) -> str:
        """Both numbers, as far as they are known."""
        said = [("linked", self.linked), ("this way" if self.directed else "→", self.direction)]
        return ", ".join(f"{word} {chance(p)}" for word, p in said if p is not None)

    @property
    def bold(self) -> float:
        """As thick as its effect is strong, on the same scale."""
        return 0.6 if self.strength is None else 0.6 + 2.8 * self.strength**0.5

    @property
    def thickness(self) -> float:
        """Thicker the more surely linked: between 0.6 and 3.4, so that a half is thin."""
        return 1.4 if self.linked is None else 0.6 + 2.8 * self.linked**2
