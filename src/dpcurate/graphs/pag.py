"""A partial ancestral graph: what is sure of cause and effect when common causes may be hidden.

Every edge has a mark at each end. On an edge between a and b, read at a:

* a tail says that a causes b (or, where rows were selected, which rows were kept),
* an arrowhead says that a does not cause b,
* a circle says that this is open.

"Causes" is through any path, hidden columns included. Zhang (2008), Artificial Intelligence 172.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, get_args

import numpy as np
import numpy.typing as npt

from dpcurate._messages import shown
from dpcurate.errors import GraphError
from dpcurate.graphs.base_graph import (
    Arrow,
    BaseGraph,
    GraphKind,
    Mark,
    UnorderedPair,
    checked_nodes,
    children_of,
    put,
    reachable,
    require_known,
    topological,
)

if TYPE_CHECKING:
    from dpcurate.graphs.adjustment import Adjustment

Marks = Mapping[Arrow, Mark]
"""By (a, b): the mark at b of the edge between a and b."""
MARKS: tuple[Mark, ...] = get_args(Mark)
SIGNS: Mapping[str, tuple[Mark, Mark]] = MappingProxyType(
    {
        "->": ("tail", "arrow"),
        "<->": ("arrow", "arrow"),
        "o->": ("circle", "arrow"),
        "o-o": ("circle", "circle"),
        "o--": ("circle", "tail"),
        "--": ("tail", "tail"),
    }
)
"""How an edge is written, with its marks at the left and at the right end."""
SIGN_OF_MARKS = {marks: sign for sign, marks in SIGNS.items()}
PCALG_CODES: Mapping[Mark, int] = MappingProxyType({"circle": 1, "arrow": 2, "tail": 3})
"""As in the matrices of pcalg; 0 is no edge."""


@dataclass(frozen=True, slots=True)
class Pag(BaseGraph):
    """A mark at both ends of every edge; `marks[a, b]` is the one at b of the edge between a and b.

    Also holds what noisy evidence or background knowledge make of it, so it need not be the PAG of some DAG;
    but no column causes itself, and none that has an arrowhead towards another causes it by a path of arrows.
    Without circles it is a mixed graph, such as the ancestral graph of a DAG with hidden columns.
    """

    kind: ClassVar[GraphKind] = "pag"
    latent: ClassVar[bool] = True
    nodes: tuple[str, ...]
    marks: Marks = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        nodes = checked_nodes(self.nodes)
        marks = _checked_marks(nodes, self.marks)
        put(self, nodes=nodes, marks=MappingProxyType(marks))
        refuse_cycles(nodes, marks)

    @classmethod
    def of(cls, nodes: Iterable[str], edges: Iterable[tuple[str, str, str]] = ()) -> Pag:
        """From edges as they are written: ("a", "o->", "b"), signs either way round."""
        marks: dict[Arrow, Mark] = {}
        for a, sign, b in edges:
            left, right = marks_of(sign)
            if (a, b) in marks:
                raise GraphError(f"a second edge between {a!r} and {b!r}; give it once")
            marks[b, a], marks[a, b] = left, right
        return cls(tuple(nodes), marks)

    def __reduce__(self) -> tuple[Any, ...]:
        return Pag, (self.nodes, dict(self.marks))  # a mapping proxy cannot be pickled

    @property
    def edges(self) -> frozenset[UnorderedPair]:
        """Adjacent pairs."""
        return frozenset(map(frozenset, self.marks))

    @property
    def arrows(self) -> frozenset[Arrow]:
        """Pairs (a, b) of which a surely causes b, and not the other way round."""
        return frozenset(
            (a, b) for (a, b), mark in self.marks.items() if mark == "arrow" and self.marks[b, a] == "tail"
        )

    @property
    def lines(self) -> frozenset[UnorderedPair]:
        """All other edges."""
        return self.edges - {frozenset(arrow) for arrow in self.arrows}

    @property
    def confounded(self) -> frozenset[UnorderedPair]:
        """Pairs a <-> b: neither causes the other, and a hidden cause moves both."""
        return frozenset(frozenset(ends) for ends in self.marks if self.sign(*ends) == "<->")

    def mark(self, a: str, b: str) -> Mark | None:
        """The mark at b of the edge between a and b; None if there is no edge."""
        require_known(a, self.nodes)
        require_known(b, self.nodes)
        return self.marks.get((a, b))

    def adjustments(self, cause: str, outcome: str) -> tuple[Adjustment, ...]:
        """What to adjust for; nothing where the effect is not identified. See `graphs.adjustment`."""
        from dpcurate.graphs.adjustment import pag_adjustment  # built on this module

        found = pag_adjustment(self, cause, outcome)
        return () if found is None else (found,)

    def some_dag(self, *_: object) -> NoReturn:
        """Refused: no DAG shows a hidden cause."""
        raise GraphError("a PAG allows for hidden causes, which no DAG of its columns can show")

    def sign(self, a: str, b: str) -> str:
        """The edge read from a to b, "o->" and the like, "<-", "<-o" and "--o" included; empty if there is none."""
        right = self.mark(a, b)
        return "" if right is None else sign_of(self.marks[b, a], right)

    def written(self) -> list[tuple[str, str, str]]:
        """Every edge once with a sign of `SIGNS`, in node order: the same for equal graphs."""
        place = {name: i for i, name in enumerate(self.nodes)}
        edges = []
        for a, b in (sorted(pair, key=place.__getitem__) for pair in self.edges):
            ends = self.marks[b, a], self.marks[a, b]
            edges.append((a, SIGN_OF_MARKS[ends], b) if ends in SIGN_OF_MARKS else (b, SIGN_OF_MARKS[ends[::-1]], a))
        return sorted(edges, key=lambda edge: (place[edge[0]], place[edge[2]]))

    def adjacency(self) -> npt.NDArray[np.int8]:
        """As in pcalg: [i, j] is the mark at j of the edge with i, 1 a circle, 2 an arrowhead, 3 a tail; 0 no edge."""
        place = {name: i for i, name in enumerate(self.nodes)}
        matrix = np.zeros((len(place), len(place)), dtype=np.int8)
        for (a, b), mark in self.marks.items():
            matrix[place[a], place[b]] = PCALG_CODES[mark]
        return matrix

    def to_networkx(self) -> Any:
        """A networkx DiGraph with two arcs for an edge; the attribute "mark" of an arc is the mark at its end."""
        graph = import_module("networkx").DiGraph(kind="pag")
        graph.add_nodes_from(self.nodes)
        for a, _, b in self.written():
            graph.add_edge(a, b, mark=self.marks[a, b])
            graph.add_edge(b, a, mark=self.marks[b, a])
        return graph


def marks_of(sign: str) -> tuple[Mark, Mark]:
    """The marks at the left and right end of an edge as it is written, either way round."""
    turned = sign[::-1].translate(str.maketrans("<>", "><"))
    if sign in SIGNS:
        return SIGNS[sign]
    if turned in SIGNS:
        left, right = SIGNS[turned]
        return right, left
    raise GraphError(f"an edge of a PAG is written {', '.join(SIGNS)}, or the other way round; not {shown(sign)}")


def sign_of(left: Mark, right: Mark) -> str:
    """How an edge with these marks is written."""
    if (left, right) in SIGN_OF_MARKS:
        return SIGN_OF_MARKS[left, right]
    return SIGN_OF_MARKS[right, left][::-1].translate(str.maketrans("<>", "><"))


def refuse_cycles(nodes: tuple[str, ...], marks: Marks) -> None:
    """A GraphError if a column would cause itself, or one that it is said not to cause."""
    below = reached(nodes, marks)
    for (b, a), mark in sorted(marks.items()):
        if mark == "arrow" and b in below[a]:
            topological(nodes, _arrows(marks))
            raise GraphError(
                f"arrows lead from {a!r} to {b!r}, so {a!r} causes {b!r}; but the arrowhead at {a!r} of their edge "
                "says that it does not"
            )


def reached(nodes: Iterable[str], marks: Marks) -> dict[str, set[str]]:
    """For each node, those that a path of arrows leads to."""
    children = children_of(_arrows(marks))
    return {name: reachable(name, children) for name in nodes}


def _arrows(marks: Marks) -> list[Arrow]:
    return [(a, b) for (a, b), mark in marks.items() if mark == "arrow" and marks[b, a] == "tail"]


def _checked_marks(nodes: tuple[str, ...], given: Marks) -> dict[Arrow, Mark]:
    """Known nodes, known marks, and one at either end."""
    known, marks = set(nodes), {}
    for (a, b), mark in given.items():
        for name in (a, b):
            require_known(name, known)
        if a == b:
            raise GraphError(f"an edge joins two different nodes, not {a!r} with itself")
        if mark not in MARKS:
            raise GraphError(f"a mark is one of {', '.join(MARKS)}, not {shown(mark)}")
        if (b, a) not in given:
            raise GraphError(f"the edge between {a!r} and {b!r} has a mark at {b!r} and none at {a!r}")
        marks[a, b] = mark
    return marks


EDGE_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "->": "{a} causes {b}, perhaps through others",
        "<->": "neither causes the other: a hidden cause moves both",
        "o->": "{a} causes {b}, or a hidden cause moves both; {b} does not cause {a}",
        "o-o": "either causes the other, or a hidden cause moves both",
        "o--": "{b} causes {a}, or the rows were selected by both",
        "--": "the rows were selected by both",
    }
)

EDGE_KINDS: Mapping[str, str] = MappingProxyType(
    {"->": "directed", "<->": "confounded", "o->": "half-open", "o-o": "open", "o--": "selected", "--": "selected"}
)
"""An edge in one word."""
EDGE_GLYPHS: Mapping[str, str] = MappingProxyType(
    {"->": "→", "<->": "↔", "o->": "○→", "o-o": "○—○", "o--": "○—", "--": "—"}
)


def meaning(a: str, sign: str, b: str) -> str:
    """An edge as it is written in node order, in words."""
    return EDGE_MEANINGS[sign].format(a=a, b=b)
