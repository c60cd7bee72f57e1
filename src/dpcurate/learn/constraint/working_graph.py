"""The released graph that a PC search works on, and the questions it asks about it; all of it is public."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

from dpcurate.graphs.graph import Skeleton
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.outcome import Pair

Scope = Literal["test", "node", "order"]
Style = Literal["stable", "sequential"]


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
    """The released graph so far."""

    nodes: tuple[str, ...]
    around: dict[str, set[str]]
    fixed: frozenset[Pair]
    separating_sets: dict[Pair, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def complete(cls, nodes: tuple[str, ...], knowledge: Knowledge | None) -> WorkingGraph:
        around: dict[str, set[str]] = {n: set() for n in nodes}
        for a, b in combinations(nodes, 2):
            if knowledge is None or knowledge.allows(a, b):
                around[a].add(b)
                around[b].add(a)
        fixed: frozenset[Pair] = frozenset() if knowledge is None else knowledge.required_pairs()
        return cls(nodes, around, fixed)

    def beside(self, node: str) -> list[str]:
        near = self.around[node]
        return [n for n in self.nodes if n in near]

    def joined(self, a: str, b: str) -> bool:
        return b in self.around[a]

    def degrees(self, edges: list[tuple[str, str]]) -> list[tuple[int, int]]:
        """Those of both ends of each edge."""
        return [(len(self.around[a]), len(self.around[b])) for a, b in edges]

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
