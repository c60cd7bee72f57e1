"""d-separation by bit masks: a set of nodes is one integer, so thousands of queries are cheap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dpcurate.graphs.checks import Arrow


@dataclass(frozen=True, slots=True)
class Ancestry:
    """Parents, children and ancestors (each node among its own) of an ordered acyclic graph."""

    place: Mapping[str, int]
    parents: tuple[int, ...]
    children: tuple[int, ...]
    ancestors: tuple[int, ...]

    @classmethod
    def of(cls, order: tuple[str, ...], arrows: Iterable[Arrow]) -> Ancestry:
        """From nodes listed parents first."""
        place = {name: i for i, name in enumerate(order)}
        parents, children = [0] * len(order), [0] * len(order)
        for a, b in arrows:
            parents[place[b]] |= 1 << place[a]
            children[place[a]] |= 1 << place[b]
        ancestors: list[int] = []
        for i, mask in enumerate(parents):
            # The order puts parents first, so their own ancestors are already known.
            ancestors.append(1 << i | _union(ancestors, mask))
        return cls(place, tuple(parents), tuple(children), tuple(ancestors))

    def mask(self, names: Iterable[str]) -> int:
        """The names as one integer."""
        found = 0
        for name in names:
            found |= 1 << self.place[name]
        return found

    def separated(self, a: str, b: str, given: Iterable[str]) -> bool:
        """No active trail from a to b (Koller and Friedman 2009, algorithm 3.1).

        `up` are nodes reached from a child (or the start), `down` those reached from a parent.
        """
        goal, blocked = 1 << self.place[b], self.mask(given)
        opened = _union(self.ancestors, blocked)
        up, down = 1 << self.place[a], 0
        new_up, new_down = up, 0
        while (new_up or new_down) and not (up | down) & goal:
            free_up, free_down = new_up & ~blocked, new_down & ~blocked
            next_up = _union(self.parents, free_up | new_down & opened)
            next_down = _union(self.children, free_up | free_down)
            new_up, new_down = next_up & ~up, next_down & ~down
            up, down = up | new_up, down | new_down
        return not (up | down) & goal


def _union(masks: tuple[int, ...] | list[int], chosen: int) -> int:
    found = 0
    for i in _bits(chosen):
        found |= masks[i]
    return found


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
