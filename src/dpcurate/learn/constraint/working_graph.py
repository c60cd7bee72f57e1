"""The released graph that a PC search works on, and the questions it asks about it; all of it is public."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

from dpcurate.graphs.base_graph import UnorderedPair
from dpcurate.graphs.graph import Skeleton
from dpcurate.graphs.knowledge import Knowledge

Scope = Literal["test", "node", "order"]
Style = Literal["stable", "sequential"]
Allows = Callable[[str, str], bool]
EdgeEnds = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PairQuestion:
    """Whether x is independent of y given some others."""

    x: str
    y: str
    given: tuple[str, ...]

    @property
    def pair(self) -> UnorderedPair:
        return frozenset((self.x, self.y))


@dataclass(slots=True)
class WorkingGraph:
    """The released graph so far.

    Sets that may separate a from b are made of neighbours of a or of b; with `wider`, of the nodes at (a, b) or at
    (b, a) there, and those within `tried` of either end are not asked about again.
    """

    nodes: tuple[str, ...]
    around: dict[str, set[str]]
    fixed: frozenset[UnorderedPair]
    separating_sets: dict[UnorderedPair, tuple[str, ...]] = field(default_factory=dict)
    wider: Mapping[EdgeEnds, set[str]] = field(default_factory=dict)
    tried: dict[str, set[str]] = field(default_factory=dict)

    def widen(self, wider: Mapping[EdgeEnds, set[str]]) -> None:
        """Look for sets here from now on; those among neighbours have been tried."""
        self.wider, self.tried = wider, {node: set(near) for node, near in self.around.items()}

    @classmethod
    def complete(
        cls, nodes: tuple[str, ...], knowledge: Knowledge | None, allows: Allows | None = None
    ) -> WorkingGraph:
        """Every pair adjacent that `allows` lets be, the knowledge's own unless given."""
        may_link = allows or (knowledge or Knowledge()).allows
        around: dict[str, set[str]] = {n: set() for n in nodes}
        for a, b in combinations(nodes, 2):
            if may_link(a, b):
                around[a].add(b)
                around[b].add(a)
        fixed: frozenset[UnorderedPair] = frozenset() if knowledge is None else knowledge.required_pairs()
        return cls(nodes, around, fixed)

    def beside(self, a: str, b: str) -> list[str]:
        """What sets at a are made of that may separate it from b, in the nodes' order."""
        near = self.wider.get((a, b)) or self.around[a]
        return [n for n in self.nodes if n in near and n != b]

    def reach(self) -> list[int]:
        """Of every node, how many others its sets are made of."""
        sets = {node: set(near) for node, near in self.around.items()}
        for (a, _), near in self.wider.items():
            sets[a] |= near
        return list(map(len, sets.values()))

    def joined(self, a: str, b: str) -> bool:
        return b in self.around[a]

    def degrees(self, edges: list[tuple[str, str]]) -> list[tuple[int, int]]:
        """How many nodes sets are made of at both ends of each edge, the other end included."""
        return [(len(self.beside(a, b)) + 1, len(self.beside(b, a)) + 1) for a, b in edges]

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Adjacent pairs, each once, in the nodes' order."""
        return [(a, b) for i, a in enumerate(self.nodes) for b in self.nodes[i + 1 :] if b in self.around[a]]

    @property
    def open_edges(self) -> list[tuple[str, str]]:
        return [(a, b) for a, b in self.edges if frozenset((a, b)) not in self.fixed]

    def cut(self, test: PairQuestion) -> None:
        self.around[test.x].discard(test.y)
        self.around[test.y].discard(test.x)
        self.separating_sets.setdefault(test.pair, test.given)

    def skeleton(self) -> Skeleton:
        return Skeleton.of(self.nodes, self.edges, self.separating_sets)
