"""What is said of one edge and of one pair: how probable it is, and its direction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from dpcurate._messages import one_line, probability
from dpcurate.graphs.graph import Graph, ordered_edges
from dpcurate.graphs.pag import meaning
from dpcurate.result.threshold import Threshold, Way

PairState = Literal["linked", "undecided", "apart"]
MarkProbabilities = Mapping[tuple[str, str], tuple[float, float]]
"""P(tail) and P(arrowhead) by the end they stand at."""
LEAST_MARK_SHOWN = 0.5
"""MarkProbabilities that are likelier than not are told of an edge."""
LEAST_CAUSE = 0.75
"""From this P(a causes b) on an arrow says that a causes b."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge of the graph: `a -> b` if directed, `a -- b` otherwise, a before b among the columns.

    `linked` is the probability that the two are adjacent in the true DAG, `direction` the probability
    that it has a -> b if they are: of an arrow, that it points as drawn; of a line, about 1/2, and below
    it where b -> a is likelier. Both are None where the method has no such number.
    """

    a: str
    b: str
    directed: bool
    linked: float | None = None
    direction: float | None = None
    cause: float | None = None
    """Of an arrow: the probability that a causes b if they are linked, hidden causes allowed; None where unknown."""

    @property
    def meaning(self) -> str:
        """What the edge says, in words."""
        if not self.directed:
            return f"{self.a} and {self.b} are linked; the direction is open"
        if self.cause is not None and self.cause >= LEAST_CAUSE:
            return f"{self.a} causes {self.b}"
        return f"{self.a} causes {self.b}, or something not in the table drives both"

    @property
    def confidence(self) -> float | None:
        """The same as `linked`."""
        return self.linked

    @property
    def at_ends(self) -> tuple[float, ...]:
        """P(tail) and P(arrowhead) at a, and at b: of an edge of a PAG, where known."""
        return ()

    def __str__(self) -> str:
        known = [("P(edge)", self.linked), (f"P({self.a} -> {self.b})", self.direction)]
        sure = ", ".join(probability(name, p) for name, p in known if p is not None)
        edge = one_line(f"{self.a} {'->' if self.directed else '--'} {self.b}{f'  {sure}' if sure else ''}")
        return f"{edge}: {one_line(self.meaning)}" if self.directed else edge


@dataclass(frozen=True, slots=True)
class MarkedEdge(Edge):
    """An edge of a PAG, written `a o-> b` and the like; P(tail) and P(arrowhead) at a and at b, where known."""

    sign: str = "o-o"
    tails: tuple[float, float] | None = None
    heads: tuple[float, float] | None = None

    @property
    def meaning(self) -> str:
        """The edge in words."""
        return meaning(self.a, self.sign, self.b)

    @property
    def at_ends(self) -> tuple[float, ...]:
        """P(tail) and P(arrowhead) at a, and at b."""
        ends = zip(self.tails or (), self.heads or (), strict=True)
        return tuple(p for end in ends for p in end)

    def __str__(self) -> str:
        said = [] if self.linked is None else [probability("P(edge)", self.linked)]
        for word, both in (("tail", self.tails), ("head", self.heads)):
            ends = zip((self.a, self.b), both or (), strict=False)
            said += [probability(f"P({word} at {end})", p) for end, p in ends if p >= LEAST_MARK_SHOWN]
        sure = f"  {', '.join(said)}" if said else ""
        return one_line(f"{self.a} {self.sign} {self.b}{sure}: {self.meaning}")


@dataclass(frozen=True, slots=True)
class ColumnPair:
    """Two columns, a before b: P(edge), P(a -> b | edge), and what that makes of them at the cut.

    *linked* pairs have an edge. *undecided* ones have none, but may well be linked. The others are *apart*.
    """

    a: str
    b: str
    linked: float | None
    direction: float | None
    state: PairState

    def __str__(self) -> str:
        sure = "" if self.linked is None else f" ({probability('P(edge)', self.linked)})"
        return one_line(f"{self.a}, {self.b}{sure}")


def found_edges(graph: Graph, linked: Way, way: Way, cause: Way) -> tuple[Edge, ...]:
    """Every edge, in the columns' order."""
    return tuple(
        Edge(a, b, mark == "->", linked(a, b), way(a, b), cause(a, b) if mark == "->" else None)
        for a, mark, b in ordered_edges(graph)
    )


def found_marked(graph: Graph, linked: Way, marks: MarkProbabilities) -> tuple[MarkedEdge, ...]:
    """Every edge of a PAG, in the columns' order."""
    edges = []
    for a, sign, b in ordered_edges(graph):
        at_a, at_b = marks.get((b, a)), marks.get((a, b))
        both = None if at_a is None or at_b is None else ((at_a[0], at_b[0]), (at_a[1], at_b[1]))
        tails, heads = both or (None, None)
        edges.append(MarkedEdge(a, b, sign == "->", linked(a, b), sign=sign, tails=tails, heads=heads))
    return tuple(edges)


def found_pairs(graph: Graph, best: Graph, cut: Threshold | None, linked: Way, way: Way) -> tuple[ColumnPair, ...]:
    """Every pair, in the columns' order."""
    drawn, doubted, least = graph.edges, best.edges, (cut or Threshold()).doubtful
    pairs = []
    for a, b in combinations(graph.nodes, 2):
        p, pair = linked(a, b), frozenset((a, b))
        maybe = pair in doubted or (p is not None and p >= least)
        state: PairState = "linked" if pair in drawn else "undecided" if maybe else "apart"
        pairs.append(ColumnPair(a, b, p, way(a, b), state))
    return tuple(pairs)
