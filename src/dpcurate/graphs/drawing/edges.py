"""An edge as it is drawn: its kind in words, where it comes from, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dpcurate.graphs.drawing.text import clean
from dpcurate.wording import chance


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

    @property
    def kind(self) -> str:
        return "directed" if self.directed else "undirected"

    @property
    def between(self) -> str:
        return f"{clean(self.a)} {'→' if self.directed else '—'} {clean(self.b)}"

    @property
    def words(self) -> str:
        sure = f", {self.sure}" if self.sure else ""
        late = ", not tested to the end" if self.open_at else ""
        return f"{self.between}: {self.kind}, {self.source.value}{sure}{late}"

    @property
    def sure(self) -> str:
        """Both numbers, as far as they are known."""
        said = [("linked", self.linked), ("this way" if self.directed else "→", self.direction)]
        return ", ".join(f"{word} {chance(p)}" for word, p in said if p is not None)

    @property
    def thickness(self) -> float:
        """Thicker the more surely linked: between 0.6 and 3.4, so that a half is thin."""
        return 1.4 if self.linked is None else 0.6 + 2.8 * self.linked**2
