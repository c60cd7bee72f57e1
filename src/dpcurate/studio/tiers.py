"""What comes first: columns in tiers, and edges that must or must not be there; as typed, and as knowledge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dpcurate import Knowledge

TIERS = ("First", "Second", "Third", "After those")
"""Places on the board, from early to late; the last is where every column begins."""
REST = len(TIERS) - 1
ANYWHERE = -1
"""The place of a column of which nothing is claimed."""
KINDS = {
    "causes": "causes",
    "not": "does not cause",
    "linked": "is directly linked to",
    "apart": "is not directly linked to",
}
"""What can be said of two columns."""


@dataclass(frozen=True, slots=True)
class Board:
    """Places of columns, and sentences about pairs: a column, a kind, a column."""

    places: Mapping[str, int] = field(default_factory=dict)
    facts: tuple[tuple[str, str, str], ...] = ()

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Board:
        """From a project's file."""
        places = {str(name): int(place) for name, place in data.get("places", {}).items()}
        facts = tuple((str(a), str(kind), str(b)) for a, kind, b in data.get("facts", ()))
        return cls({name: place for name, place in places.items() if ANYWHERE <= place <= REST}, facts)

    def place(self, name: str) -> int:
        """The tier of a column."""
        return self.places.get(name, REST)

    def at(self, tier: int, names: Sequence[str]) -> tuple[str, ...]:
        """The columns in a tier."""
        return tuple(name for name in names if self.place(name) == tier)

    def put(self, name: str, tier: int) -> Board:
        """With a column in another tier; beyond the ends it stays."""
        places = {**self.places, name: min(max(tier, ANYWHERE), REST)}
        return replace(self, places={one: place for one, place in places.items() if place != REST})

    def moved(self, name: str, steps: int) -> Board:
        """With a column some tiers earlier or later; what may be anywhere comes back last."""
        here = self.place(name)
        return self.put(name, REST if here == ANYWHERE else max(here + steps, 0))

    def said(self, a: str, kind: str, b: str) -> Board:
        """With one sentence more about a pair."""
        return self if (a, kind, b) in self.facts else replace(self, facts=(*self.facts, (a, kind, b)))

    def unsaid(self, index: int) -> Board:
        """Without one of the sentences."""
        return replace(self, facts=self.facts[:index] + self.facts[index + 1 :])

    def knowledge(self, names: Sequence[str]) -> Knowledge:
        """As knowledge about these columns. If every column is in one place, places say nothing.

        Raises:
            GraphError: two facts contradict each other.
        """
        tiers = [frozenset(self.at(tier, names)) for tier in range(len(TIERS))]
        tiers = [tier for tier in tiers if tier]
        pairs: dict[str, list[tuple[str, str]]] = {kind: [] for kind in KINDS}
        for a, kind, b in self.facts:
            if {a, b} <= set(names) and kind in pairs:
                pairs[kind].append((a, b))
        return Knowledge.of(
            required_arrows=pairs["causes"], forbidden_arrows=pairs["not"], required_edges=pairs["linked"],
            forbidden_edges=pairs["apart"], tiers=tiers if len(tiers) > 1 else (),
        )  # fmt: skip
