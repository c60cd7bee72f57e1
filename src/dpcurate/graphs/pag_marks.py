"""The drawing of a PAG in progress: marks that proposals change, and what evidence disagreed about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from dpcurate.graphs.checks import Arrow, Edge
from dpcurate.graphs.graph import Skeleton
from dpcurate.graphs.pag import Mark, Pag, reached

End = tuple[str, str, Mark]
"""(a, b, mark): that the end at b of the edge between a and b has this mark."""
Triple = tuple[str, Edge]
Triples = tuple[set[Triple], set[Triple]]
"""Unshielded triples (middle, ends): colliders, and those that are none."""


class PagMarks:
    """`at[a][b]` is the mark at b of the edge between a and b.

    `chains` are the triples (middle, ends) whose ends are separated by a set with the middle in it; a pair
    without a recorded separating set is evidence of nothing. A disputed end stays a circle for good.
    """

    def __init__(self, skeleton: Skeleton, triples: Triples | None = None) -> None:
        self.nodes, self.separators = skeleton.nodes, skeleton.separators
        self.at: dict[str, dict[str, Mark]] = {name: {} for name in skeleton.nodes}
        for a, b in skeleton.edges:
            self.at[a][b] = self.at[b][a] = "circle"
        self.disputed: set[Arrow] = set()
        self.colliders, self.chains = triples or self._sorted_triples()

    def _sorted_triples(self) -> Triples:
        """Unshielded triples as the separating sets of their ends say."""
        colliders: set[Triple] = set()
        chains: set[Triple] = set()
        for middle, near in self.at.items():
            for a, b in combinations(near, 2):
                given = self.separators.get(frozenset((a, b)))
                if given is not None:
                    (chains if middle in given else colliders).add((middle, frozenset((a, b))))
        return colliders, chains

    def edges(self) -> Iterator[Arrow]:
        """Every edge, both ways round."""
        return ((a, b) for a, near in self.at.items() for b in near)

    def joined(self, a: str, b: str) -> bool:
        return b in self.at[a]

    def is_arrow(self, a: str, b: str) -> bool:
        """Whether the edge is a -> b."""
        return self.at[a].get(b) == "arrow" and self.at[b][a] == "tail"

    def chain(self, a: str, middle: str, b: str) -> bool:
        """Whether a and b are apart, and known to be so given the middle among others."""
        return (middle, frozenset((a, b))) in self.chains

    def draw(self, ends: Iterable[End]) -> None:
        """Make these marks, whatever stood there."""
        for a, b, mark in ends:
            self.at[a][b] = mark

    def settle(self, proposed: set[End]) -> bool:
        """Draw the proposals nothing contradicts, remember the disputed rest; whether any was drawn."""
        fresh = {(a, b, m) for a, b, m in proposed if self.at[a][b] == "circle" and (a, b) not in self.disputed}
        agreed = {end for end in fresh if (end[0], end[1], _other(end[2])) not in fresh}
        agreed -= self._against_chains(agreed)
        while wrong := self._on_cycles(agreed):
            agreed -= wrong
        self.disputed |= {(a, b) for a, b, _ in fresh - agreed}
        self.draw(agreed)
        return bool(agreed)

    def _against_chains(self, proposed: set[End]) -> set[End]:
        """Arrowheads that would make a collider of a triple that is known to be none."""
        wrong: set[End] = set()
        heads = {(a, b) for a, b, mark in proposed if mark == "arrow"}
        for a, middle in heads:
            for b in self.at[middle]:
                met = self.at[b][middle] == "arrow" or (b, middle) in heads
                if met and self.chain(a, middle, b):
                    wrong.add((a, middle, "arrow"))
        return wrong

    def _on_cycles(self, proposed: set[End]) -> set[End]:
        """Proposals with which a node would cause itself, or one that an arrowhead says it does not cause."""
        marks = {ends: self.at[ends[0]][ends[1]] for ends in self.edges()}
        marks.update({(a, b): mark for a, b, mark in proposed})
        below = reached(self.nodes, marks)
        wrong: set[End] = set()
        for (b, a), mark in marks.items():
            if mark == "arrow" and b in below[a]:
                path = {a, b} | {x for x in below[a] if b in below[x]}
                wrong |= {end for end in proposed if end[0] in path and end[1] in path}
        return wrong

    def pag(self) -> Pag:
        return Pag(self.nodes, {(a, b): self.at[a][b] for a, b in self.edges()})


def _other(mark: Mark) -> Mark:
    return "tail" if mark == "arrow" else "arrow"
