"""What every graph value has: valid nodes, edges and arrows, and ways to look at them."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from dpcurate._messages import closest, how_many, one_line
from dpcurate.errors import GraphError

GraphKind = Literal["dag", "cpdag", "skeleton", "pag"]
Mark = Literal["tail", "arrow", "circle"]
"""What stands at an end of an edge."""
Arrow = tuple[str, str]
UnorderedPair = frozenset[str]
EdgeOrArrow = TypeVar("EdgeOrArrow", Arrow, UnorderedPair)
Step = TypeVar("Step", bound=Hashable)


def checked_nodes(nodes: Iterable[str]) -> tuple[str, ...]:
    """The nodes as a tuple of distinct non-empty names."""
    if isinstance(nodes, str):
        raise GraphError(f"nodes must be a list of names, not the one string {nodes!r}")
    names = tuple(nodes)
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name:
            raise GraphError(f"a node's name must be a non-empty string, not {name!r}")
        if name in seen:
            raise GraphError(f"the node {name!r} is listed twice; give every node its own name")
        seen.add(name)
    return names


def checked_edges(
    nodes: Collection[str], edges: Iterable[Iterable[str]], what: str = "edge"
) -> frozenset[UnorderedPair]:
    """Undirected pairs of known, different nodes, none given twice."""
    return once([_edge(nodes, tuple(pair), what) for pair in edges], what)


def checked_arrows(nodes: Collection[str], arrows: Iterable[Arrow]) -> frozenset[Arrow]:
    """Directed pairs of known, different nodes, none given twice."""
    return once([_arrow(nodes, tuple(pair)) for pair in arrows], "arrow")


def once(items: list[EdgeOrArrow], what: str) -> frozenset[EdgeOrArrow]:
    """The items as a set, if none is given twice."""
    kept = frozenset(items)
    if len(kept) < len(items):
        again = next(item for item, count in Counter(items).items() if count > 1)
        raise GraphError(f"the {what} {' and '.join(map(repr, sorted(again)))} is given twice; give it once")
    return kept


def _edge(nodes: Collection[str], pair: tuple[str, ...], what: str) -> UnorderedPair:
    if len(pair) != 2 or pair[0] == pair[1]:
        raise GraphError(f"an {what} joins two different nodes, not {list(pair)!r}")
    for name in pair:
        require_known(name, nodes)
    return frozenset(pair)


def _arrow(nodes: Collection[str], pair: tuple[str, ...]) -> Arrow:
    _edge(nodes, pair, "arrow")
    return pair[0], pair[1]


def require_known(name: str, nodes: Iterable[str]) -> None:
    """Refuse a name that is no node."""
    if name not in nodes:
        raise GraphError(f"unknown node {name!r}{hint(name, nodes)}")


def hint(name: str, nodes: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the closest known one, if any is close."""
    near = closest(name, nodes)
    return f"; did you mean {near!r}?" if near else ""


def topological(nodes: tuple[str, ...], arrows: Iterable[Arrow]) -> tuple[str, ...]:
    """Parents before children; among free nodes the earliest listed. A cycle is a GraphError."""
    place = {name: i for i, name in enumerate(nodes)}
    waiting = dict.fromkeys(nodes, 0)
    children: dict[str, list[str]] = {name: [] for name in nodes}
    for a, b in arrows:
        children[a].append(b)
        waiting[b] += 1
    free = [place[name] for name in nodes if not waiting[name]]
    order: list[str] = []
    while free:
        name = nodes[heapq.heappop(free)]
        order.append(name)
        for child in children[name]:
            waiting[child] -= 1
            if not waiting[child]:
                heapq.heappush(free, place[child])
    if len(order) < len(nodes):
        left = {name for name in nodes if waiting[name]}
        raise GraphError(f"the arrows form a cycle: {' -> '.join(map(repr, _cycle(nodes, children, left)))}")
    return tuple(order)


def _cycle(nodes: tuple[str, ...], children: Mapping[str, list[str]], left: set[str]) -> list[str]:
    """One cycle among the nodes that were never free: each of them has a parent there."""
    parent = {child: name for name in nodes if name in left for child in children[name]}
    name = next(name for name in nodes if name in left)
    walk: dict[str, None] = {}
    while name not in walk:
        walk[name] = None
        name = parent[name]
    names = list(walk)
    return [*names[names.index(name) :], name][::-1]


def find_cycle(nodes: tuple[str, ...], arrows: Iterable[Arrow]) -> str | None:
    """The message about a directed cycle, or None."""
    try:
        topological(nodes, arrows)
    except GraphError as error:
        return str(error)
    return None


def children_of(arrows: Iterable[Arrow]) -> dict[str, list[str]]:
    """Where arrows lead from each node that has any."""
    children: dict[str, list[str]] = {}
    for a, b in arrows:
        children.setdefault(a, []).append(b)
    return children


def reachable(start: Step, steps: Mapping[Step, Iterable[Step]]) -> set[Step]:
    """What one or more steps lead to; the start only if they lead back to it."""
    reached: set[Step] = set()
    todo = list(steps.get(start, ()))
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo += steps.get(name, ())
    return reached


def neighbour_sets(nodes: Iterable[str], edges: Iterable[Iterable[str]]) -> dict[str, set[str]]:
    """The nodes that each node has an edge with."""
    near: dict[str, set[str]] = {name: set() for name in nodes}
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)
    return near


class BaseGraph:
    """Looking at a graph, whichever it is."""

    __slots__ = ()
    kind: ClassVar[GraphKind]
    latent: ClassVar[bool] = False
    """Whether causes may be hidden: only then have edges other signs than "->" and "--"."""
    if TYPE_CHECKING:

        @property
        def nodes(self) -> tuple[str, ...]:
            """Names, in the order of the columns."""

        @property
        def arrows(self) -> frozenset[Arrow]:
            """Edges with a direction, as (from, to)."""

        @property
        def lines(self) -> frozenset[UnorderedPair]:
            """Edges whose direction is open."""

        @property
        def edges(self) -> frozenset[UnorderedPair]:
            """Pairs that are joined, whatever the direction."""

    def neighbours(self, node: str) -> tuple[str, ...]:
        """Nodes that share an edge with this one, in node order."""
        require_known(node, self.nodes)
        near = {name for pair in self.edges if node in pair for name in pair}
        return tuple(name for name in self.nodes if name in near and name != node)

    def mark(self, a: str, b: str) -> Mark | None:
        """The mark at b of the edge between a and b; None if there is no edge."""
        require_known(a, self.nodes)
        require_known(b, self.nodes)
        if frozenset((a, b)) not in self.edges:
            return None
        return "arrow" if (a, b) in self.arrows else "tail"

    def adjacency(self) -> npt.NDArray[np.int8]:
        """[i, j] is 1 for an arrow from i to j; a line has 1 both ways."""
        place = {name: i for i, name in enumerate(self.nodes)}
        matrix = np.zeros((len(place), len(place)), dtype=np.int8)
        for a, b in self.arrows:
            matrix[place[a], place[b]] = 1
        for a, b in self.lines:
            matrix[place[a], place[b]] = matrix[place[b], place[a]] = 1
        return matrix

    def to_networkx(self) -> Any:
        """A networkx DiGraph where a line is two opposite arcs; a skeleton is a Graph, without separating sets."""
        networkx = import_module("networkx")  # slow to import, so only those who want it wait
        graph = (networkx.Graph if self.kind == "skeleton" else networkx.DiGraph)(kind=self.kind)
        graph.add_nodes_from(self.nodes)
        for a, mark, b in self.written():
            graph.add_edges_from([(a, b)] if mark == "->" else [(a, b), (b, a)])
        return graph

    def __str__(self) -> str:
        edges = ", ".join(one_line(f"{a} {mark} {b}") for a, mark, b in self.written())
        return f"{type(self).__name__} of {how_many(len(self.nodes), 'node')}: {edges or 'no edges'}"

    def _repr_html_(self) -> str:
        from dpcurate.draw.svg import graph_html  # drawing is built on this module

        return graph_html(self)  # type: ignore[arg-type]

    def written(self) -> list[tuple[str, str, str]]:
        """Every edge once as (a, "->" or "--", b), in node order: the same for equal graphs."""
        place = {name: i for i, name in enumerate(self.nodes)}
        lines = [(*sorted(pair, key=place.__getitem__), "--") for pair in self.lines]
        edges = [(a, "->", b) for a, b in self.arrows] + [(a, mark, b) for a, b, mark in lines]
        return sorted(edges, key=lambda edge: (place[edge[0]], place[edge[2]]))


def ordered_edges(graph: BaseGraph) -> list[tuple[str, str, str]]:
    """Every edge once as (a, sign, b), in node order; "->" and "--", and in a PAG "<->", "o->", "o-o" and "o--"."""
    return graph.written()


def put(graph: object, **values: object) -> None:
    """Set fields of a frozen value while it is made."""
    for name, value in values.items():
        object.__setattr__(graph, name, value)
