"""The released graph that a PC search works on, and the questions it asks about it; all of it is public."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

from dpcurate.graphs.graph import Skeleton
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.outcome import Pair

Scope = Literal["test", "node", "order"]
Style = Literal["stable", "sequential"]
Allows = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Question:
    """Whether x is independent of y given some others."""

    x: str
    y: str
    given: tuple[str, ...]

    @property
    def pair(self) -> Pair:
        return frozenset((self.x, self.y))


@dataclass(slots=True)
class WorkingGraph:
    """The released graph so far; sets that may separate a node come from `pool`, its neighbours unless given.

    Sets within `tried` at either end of an edge are not asked about again.
    """

    nodes: tuple[str, ...]
    around: dict[str, set[str]]
    fixed: frozenset[Pair]
    separating_sets: dict[Pair, tuple[str, ...]] = field(default_factory=dict)
    pool: dict[str, set[str]] = field(init=False)
    tried: dict[str, set[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.pool, self.tried = self.around, {}

    def widen(self, pool: dict[str, set[str]]) -> None:
        """Look for sets in this pool from now on; those among neighbours have been tried."""
        self.pool, self.tried = pool, {node: set(near) for node, near in self.around.items()}

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
        fixed: frozenset[Pair] = frozenset() if knowledge is None else knowledge.required_pairs()
        return cls(nodes, around, fixed)

    def beside(self, node: str) -> list[str]:
        """Where sets are looked for that separate this node, in the nodes' order."""
        near = self.pool[node]
        return [n for n in self.nodes if n in near]

    def joined(self, a: str, b: str) -> bool:
        return b in self.around[a]

    def degrees(self, edges: list[tuple[str, str]]) -> list[tuple[int, int]]:
        """How many nodes sets are made of at both ends of each edge."""
        return [(len(self.pool[a]), len(self.pool[b])) for a, b in edges]

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Adjacent pairs, each once, in the nodes' order."""
        return [(a, b) for i, a in enumerate(self.nodes) for b in self.nodes[i + 1 :] if b in self.around[a]]

    @property
    def open_edges(self) -> list[tuple[str, str]]:
        return [(a, b) for a, b in self.edges if frozenset((a, b)) not in self.fixed]

    def cut(self, test: Question) -> None:
        self.around[test.x].discard(test.y)
        self.around[test.y].discard(test.x)
        self.separating_sets.setdefault(test.pair, test.given)

    def skeleton(self) -> Skeleton:
        return Skeleton.of(self.nodes, self.edges, self.separating_sets)
