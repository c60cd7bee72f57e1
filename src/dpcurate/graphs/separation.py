"""Which nodes lie between two others: d-separation in a DAG, and the blocks of a skeleton.

d-separation works on bit masks, a set of nodes being one integer, so thousands of queries are cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpcurate.graphs.base_graph import Arrow, neighbour_sets

if TYPE_CHECKING:
    from dpcurate.graphs.graph import Skeleton


@dataclass(frozen=True, slots=True)
class NodeMasks:
    """Parents and children of every node as masks over the nodes' places."""

    place: Mapping[str, int]
    parents: tuple[int, ...]
    children: tuple[int, ...]

    @classmethod
    def of(cls, nodes: tuple[str, ...], arrows: Iterable[Arrow]) -> NodeMasks:
        """Bit masks of parents and children."""
        place = {name: i for i, name in enumerate(nodes)}
        parents, children = [0] * len(nodes), [0] * len(nodes)
        for a, b in arrows:
            parents[place[b]] |= 1 << place[a]
            children[place[a]] |= 1 << place[b]
        return cls(place, tuple(parents), tuple(children))

    def mask(self, names: Iterable[str]) -> int:
        """A bit for each of these names."""
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


def blocks(skeleton: Skeleton) -> list[frozenset[str]]:
    """Biconnected components (Hopcroft and Tarjan 1973): a node lies on a path between the ends of an edge if and
    only if it is in the edge's block.
    """
    around = neighbour_sets(skeleton.nodes, skeleton.edges)
    found: list[frozenset[str]] = []
    seen: dict[str, int] = {}
    for start in skeleton.nodes:
        if start not in seen:
            found += _from(start, around, seen)
    return found


def _from(start: str, around: dict[str, set[str]], seen: dict[str, int]) -> Iterator[frozenset[str]]:
    """Depth first: `seen` is when a node was met, `low` the earliest node that its part reaches back to."""
    low, path = {start: len(seen)}, [start]
    seen[start] = len(seen)
    stack: list[tuple[str, str | None, Iterator[str]]] = [(start, None, iter(around[start]))]
    while stack:
        node, above, rest = stack[-1]
        child = next(rest, None)
        if child is None:
            stack.pop()
            if above is not None:
                low[above] = min(low[above], low[node])
                if low[node] >= seen[above]:
                    cut = path.index(node)
                    yield frozenset((*path[cut:], above))
                    del path[cut:]
        elif child not in seen:
            low[child] = seen[child] = len(seen)
            path.append(child)
            stack.append((child, node, iter(around[child])))
        elif child != above:
            low[node] = min(low[node], seen[child])
