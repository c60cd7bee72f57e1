"""d-separation by bit masks: a set of nodes is one integer, so thousands of queries are cheap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dpcurate.graphs.checks import Arrow


@dataclass(frozen=True, slots=True)
class NodeMasks:
    """Parents and children of every node as masks over the nodes' places."""

    place: Mapping[str, int]
    parents: tuple[int, ...]
    children: tuple[int, ...]

    @classmethod
    def of(cls, nodes: tuple[str, ...], arrows: Iterable[Arrow]) -> NodeMasks:
        place = {name: i for i, name in enumerate(nodes)}
        parents, children = [0] * len(nodes), [0] * len(nodes)
        for a, b in arrows:
            parents[place[b]] |= 1 << place[a]
            children[place[a]] |= 1 << place[b]
        return cls(place, tuple(parents), tuple(children))

    def mask(self, names: Iterable[str]) -> int:
        return sum(1 << self.place[name] for name in set(names))

    def separated(self, a: str, b: str, given: Iterable[str]) -> bool:
        """No active trail from a to b: the Bayes ball of Shachter (1998), UAI.

        `up` are nodes reached from a child (or the start), `down` those reached from a parent. A
        ball from below passes on both ways unless the node is given; one from above falls
        through, and bounces back up off a given node, which opens the colliders above it.
        """
        goal, blocked = 1 << self.place[b], self.mask(given)
        up, down = 1 << self.place[a], 0
        new_up, new_down = up, 0
        while (new_up or new_down) and not (up | down) & goal:
            passing = new_up & ~blocked
            next_up = _union(self.parents, passing | new_down & blocked)
            next_down = _union(self.children, passing | new_down & ~blocked)
            new_up, new_down = next_up & ~up, next_down & ~down
            up, down = up | new_up, down | new_down
        return not (up | down) & goal


def _union(masks: tuple[int, ...], chosen: int) -> int:
    union = 0
    for i in _bits(chosen):
        union |= masks[i]
    return union


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
