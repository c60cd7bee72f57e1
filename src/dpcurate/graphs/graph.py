"""The graph values: a skeleton with its separating sets, a CPDAG and a DAG; a PAG has a module of its own.

All have `nodes`, `arrows` (directed), `lines` (undirected) and `edges` (both, without
direction), so code that only looks need not ask which one it holds. They are equal when their
nodes (in order), arrows and lines are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from dpcurate.errors import GraphError
from dpcurate.graphs.base_graph import (
    Arrow,
    BaseGraph,
    GraphKind,
    UnorderedPair,
    checked_arrows,
    checked_edges,
    checked_nodes,
    children_of,
    ordered_edges,
    put,
    reachable,
    require_known,
    topological,
)
from dpcurate.graphs.pag import Pag
from dpcurate.graphs.separation import NodeMasks

if TYPE_CHECKING:
    from dpcurate.graphs.adjustment import Adjustment
    from dpcurate.graphs.knowledge import Knowledge
    from dpcurate.graphs.orient import DirectionProbability

__all__ = ["Cpdag", "Dag", "Graph", "Pag", "SeparatingSets", "Skeleton", "ordered_edges"]

SeparatingSets = Mapping[UnorderedPair, tuple[str, ...]]


class _Directed(BaseGraph):
    __slots__ = ()

    @property
    def edges(self) -> frozenset[UnorderedPair]:
        """Adjacent pairs, by an arrow or a line."""
        return self.lines | _pairs(self.arrows)

    @property
    def skeleton(self) -> Skeleton:
        """The adjacent pairs alone, without separating sets."""
        return Skeleton(self.nodes, self.edges)

    def parents(self, node: str) -> tuple[str, ...]:
        """Nodes with an arrow into this one, in node order."""
        require_known(node, self.nodes)
        return tuple(name for name in self.nodes if (name, node) in self.arrows)


@dataclass(frozen=True, slots=True)
class Skeleton(BaseGraph):
    """Which pairs are adjacent and, for pairs that are not, a set that separates them if one is known."""

    kind: ClassVar[GraphKind] = "skeleton"
    nodes: tuple[str, ...]
    edges: frozenset[UnorderedPair]
    separators: SeparatingSets = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        nodes = checked_nodes(self.nodes)
        edges = checked_edges(set(nodes), self.edges)
        put(self, nodes=nodes, edges=edges, separators=_checked_separators(nodes, edges, self.separators))

    @classmethod
    def of(
        cls,
        nodes: Iterable[str],
        edges: Iterable[Iterable[str]] = (),
        separators: Mapping[UnorderedPair, Iterable[str]] | None = None,
    ) -> Skeleton:
        """From any iterables, edges as pairs."""
        known = tuple(nodes)
        sets = {pair: tuple(names) for pair, names in (separators or {}).items()}
        return cls(known, checked_edges(set(known), edges), sets)

    def __reduce__(self) -> tuple[Any, ...]:
        # A mapping proxy cannot be pickled.
        return Skeleton, (self.nodes, self.edges, dict(self.separators))

    @property
    def arrows(self) -> frozenset[Arrow]:
        """None: a skeleton has no directions."""
        return frozenset()

    @property
    def lines(self) -> frozenset[UnorderedPair]:
        """All edges."""
        return self.edges

    @property
    def skeleton(self) -> Skeleton:
        """Itself."""
        return self

    def separator(self, a: str, b: str) -> tuple[str, ...] | None:
        """The recorded separating set of the pair, None where there is none."""
        return self.separators.get(frozenset((a, b)))


@dataclass(frozen=True, slots=True)
class Cpdag(_Directed):
    """Arrows that every DAG of the class has, and lines whose direction is open.

    Also holds what noisy evidence or background knowledge make of it, so it need not be the
    CPDAG of some DAG; but it has no directed cycle, and one edge at most between two nodes.
    """

    kind: ClassVar[GraphKind] = "cpdag"
    nodes: tuple[str, ...]
    arrows: frozenset[Arrow]
    lines: frozenset[UnorderedPair]

    def __post_init__(self) -> None:
        nodes = checked_nodes(self.nodes)
        arrows, lines = checked_arrows(set(nodes), self.arrows), checked_edges(set(nodes), self.lines, "line")
        for pair in sorted(sorted(pair) for pair in lines & _pairs(arrows)):
            raise GraphError(f"{pair[0]!r} and {pair[1]!r} are joined by an arrow and by a line; keep one")
        topological(nodes, arrows)
        put(self, nodes=nodes, arrows=arrows, lines=lines)

    @classmethod
    def of(cls, nodes: Iterable[str], arrows: Iterable[Arrow] = (), lines: Iterable[Iterable[str]] = ()) -> Cpdag:
        """From any iterables, arrows and lines as pairs."""
        known = tuple(nodes)
        return cls(known, checked_arrows(set(known), arrows), checked_edges(set(known), lines, "line"))

    def adjustments(self, cause: str, outcome: str) -> tuple[Adjustment, ...]:
        """What to adjust for, a possibility for each choice of parents that is open; see `graphs.adjustment`."""
        from dpcurate.graphs.adjustment import adjustments  # adjustment is built on this module

        return adjustments(self, cause, outcome)

    def some_dag(self, way: DirectionProbability, knowledge: Knowledge | None = None) -> Dag:
        """One DAG of the class; see `graphs.orient.member`."""
        from dpcurate.graphs.orient import member  # orient is built on this module

        return member(self, way, knowledge)


@dataclass(frozen=True, slots=True)
class Dag(_Directed):
    """A directed acyclic graph; `note` says where it is from, if that should be known."""

    kind: ClassVar[GraphKind] = "dag"
    nodes: tuple[str, ...]
    arrows: frozenset[Arrow]
    note: str = field(default="", compare=False, repr=False)
    _masks: NodeMasks = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        nodes = checked_nodes(self.nodes)
        arrows = checked_arrows(set(nodes), self.arrows)
        put(self, nodes=nodes, arrows=arrows, _masks=NodeMasks.of(topological(nodes, arrows), arrows))

    @classmethod
    def of(cls, nodes: Iterable[str], arrows: Iterable[Arrow] = ()) -> Dag:
        """From any iterables, arrows as pairs."""
        known = tuple(nodes)
        return cls(known, checked_arrows(set(known), arrows))

    @property
    def lines(self) -> frozenset[UnorderedPair]:
        """None: a DAG has only arrows."""
        return frozenset()

    def order(self) -> tuple[str, ...]:
        """Parents before children; among free nodes the earliest listed."""
        return tuple(self._masks.place)

    def upstream(self, names: Iterable[str], cut: Collection[str] = ()) -> set[str]:
        """These nodes and all that lead to them; those in `cut` have no causes, being set from outside."""
        parents = children_of((b, a) for a, b in self.arrows if b not in cut)
        given = set(names)
        return given.union(*(reachable(name, parents) for name in given))

    def leads(self, cause: str, outcome: str) -> bool:
        """Whether a directed path goes from one to the other."""
        return cause in self.upstream([outcome])

    def d_separated(self, a: str, b: str, given: Iterable[str] = ()) -> bool:
        """Whether `given` blocks every trail between a and b."""
        names = tuple(given)
        for name in (a, b, *names):
            require_known(name, self._masks.place)
        if a == b or a in names or b in names:
            raise GraphError(f"{a!r}, {b!r} and the given {list(names)} must not overlap")
        return self._masks.separated(a, b, names)

    def cpdag(self) -> Cpdag:
        """The CPDAG of all DAGs that imply the same independences."""
        from dpcurate.graphs.orient import dag_to_cpdag  # orient is built on this module

        return dag_to_cpdag(self)

    def adjustments(self, cause: str, outcome: str) -> tuple[Adjustment, ...]:
        """What to adjust for, a possibility for each choice of parents that is open; see `graphs.adjustment`."""
        from dpcurate.graphs.adjustment import adjustments  # adjustment is built on this module

        return adjustments(self, cause, outcome)

    def some_dag(self, way: DirectionProbability, knowledge: Knowledge | None = None) -> Dag:
        """Itself."""
        return self


Graph = Skeleton | Cpdag | Dag | Pag


def _pairs(arrows: Iterable[Arrow]) -> frozenset[UnorderedPair]:
    return frozenset(frozenset(pair) for pair in arrows)


def _checked_separators(
    nodes: tuple[str, ...], edges: frozenset[UnorderedPair], given: SeparatingSets
) -> SeparatingSets:
    known, checked = set(nodes), {}
    for pair, names in given.items():
        (key,) = checked_edges(known, [pair], "edge")
        a, b = sorted(key)
        for name in names:
            require_known(name, known)
        if key in edges:
            raise GraphError(f"{a!r} and {b!r} have an edge and a separating set; keep one of the two")
        if key & set(names):
            raise GraphError(f"the separating set of {a!r} and {b!r} holds one of the two: {list(names)}")
        checked[key] = tuple(names)
    return MappingProxyType(checked)
