"""What a reader of a file has seen so far, and the numbers that files carry beside edges."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import get_args

from dpcurate._messages import shown
from dpcurate.errors import FormatError, GraphError
from dpcurate.graphs.base_graph import Arrow, GraphKind, UnorderedPair, find_cycle, hint
from dpcurate.graphs.graph import Cpdag, Dag, Graph, Skeleton, ordered_edges
from dpcurate.graphs.pag import MARKS, SIGNS, Pag, marks_of, sign_of

EDGE_NUMBERS = "linked", "direction"
MARK_NUMBERS = "tail_from", "head_from", "tail_to", "head_to"
MEANING_COLUMN = "meaning"
EFFECT_COLUMNS = "effect", "effect_low", "effect_high", "effect_in_words"


@dataclass(frozen=True, slots=True)
class EdgeProbability:
    """Of an edge from a to b as it is written: P(edge), and P(a -> b | edge); None where unknown.

    Of an edge of a PAG also the probabilities of a tail and of an arrowhead at a, and of each at b.
    """

    linked: float | None = None
    direction: float | None = None
    tail_from: float | None = None
    head_from: float | None = None
    tail_to: float | None = None
    head_to: float | None = None
    effect: tuple[tuple[str, str], ...] = field(default=(), compare=False, kw_only=True)
    """What setting a does to b, by the names of EFFECT, as text; for people, and not read again."""
    meaning: str = field(default="", compare=False, kw_only=True)
    """What the edge says, in words; for people, too."""

    def turned(self) -> EdgeProbability:
        """The same, written from b to a."""
        direction = None if self.direction is None else 1 - self.direction
        return EdgeProbability(self.linked, direction, self.tail_to, self.head_to, self.tail_from, self.head_from)

    def numbers(self) -> dict[str, float]:
        """Those that are known, by name."""
        known = {name: getattr(self, name) for name in (*EDGE_NUMBERS, *MARK_NUMBERS)}
        return {name: p for name, p in known.items() if p is not None}

    def items(self) -> list[tuple[str, str]]:
        """The numbers that are known, by name, as text."""
        return [(name, written(p)) for name, p in self.numbers().items()]

    @classmethod
    def of(cls, values: Mapping[str, object], line: int | None) -> EdgeProbability | None:
        """From what stands beside an edge in a file; None if no number is there."""
        probability = cls(*(_number(values, name, line) for name in (*EDGE_NUMBERS, *MARK_NUMBERS)))
        return None if probability == cls() else probability


EdgeProbabilities = Mapping[Arrow, EdgeProbability]
NO_PROBABILITIES: EdgeProbabilities = MappingProxyType({})


def names_in(probabilities: EdgeProbabilities) -> tuple[str, ...]:
    """The names of the numbers that a file needs: none, those of edges, and those of their ends if any is known."""
    if not probabilities:
        return ()
    ends = any(probability.numbers().keys() & set(MARK_NUMBERS) for probability in probabilities.values())
    return (*EDGE_NUMBERS, *MARK_NUMBERS) if ends else EDGE_NUMBERS


def written(p: float) -> str:
    """All digits, and no exponent: not every format reads one."""
    return format(Decimal(repr(float(p))), "f")


def _number(values: Mapping[str, object], name: str, line: int | None) -> float | None:
    text = values.get(name)
    if text is None or text == "":
        return None
    try:
        p = float(text) if isinstance(text, (str, int, float)) else -1.0
    except (ValueError, OverflowError):
        p = -1.0
    if not 0 <= p <= 1:
        raise FormatError(f"{name} is a probability between 0 and 1, not {shown(text)}", line=line)
    return p


GRAPH_KINDS: tuple[GraphKind, ...] = get_args(GraphKind)
MAX_NODES = 10_000
MAX_EDGES = 200_000
"""Of a graph in a file: far above any that can be learned, far below what would fill the memory."""


def has_two_arcs(graph: Graph, sign: str) -> bool:
    """Whether an edge is two opposite arcs where there are only arcs: a line, and every edge of a PAG."""
    return graph.latent or (sign == "--" and graph.kind != "skeleton")


def marks_at(graph: Graph, a: str, b: str) -> list[tuple[str, str]]:
    """What an arc from a to b says of the mark at b: in a PAG, only."""
    return [("mark", str(graph.mark(a, b)))] if graph.latent else []


@dataclass(slots=True)
class GraphDraft:
    """Nodes, arrows, lines and edges with other marks in the order they were read, each with its line in the text."""

    kind: GraphKind | None = None
    nodes: dict[str, int | None] = field(default_factory=dict)
    arrows: dict[Arrow, int | None] = field(default_factory=dict)
    lines: dict[UnorderedPair, int | None] = field(default_factory=dict)
    marked: dict[Arrow, tuple[str, int | None]] = field(default_factory=dict)
    separators: dict[UnorderedPair, tuple[str, ...]] = field(default_factory=dict)
    separators_line: int | None = None
    beside: dict[Arrow, tuple[Mapping[str, object], int | None]] = field(default_factory=dict)

    def say_kind(self, word: object, line: int | None) -> None:
        """Take the kind of graph from a word in the text."""
        for kind in GRAPH_KINDS:
            if word == kind:
                self.kind = kind
                return
        raise FormatError(f"the kind of graph is one of {', '.join(GRAPH_KINDS)}, not {shown(word)}", line=line)

    def declare(self, name: str, line: int | None) -> None:
        """A node that must not have been declared before."""
        if name in self.nodes:
            raise FormatError(f"the node {name!r} is listed twice", line=line)
        self.mention(name, line)

    def mention(self, name: str, line: int | None) -> None:
        """A node that may or may not be new."""
        if not name:
            raise FormatError("a node has an empty name", line=line)
        self.nodes.setdefault(name, line)
        if len(self.nodes) > MAX_NODES:
            raise FormatError(f"more than {MAX_NODES} nodes, the limit", line=line)

    def require(self, name: str, line: int | None) -> None:
        """A node that must have been declared."""
        if name not in self.nodes:
            raise FormatError(f"unknown node {name!r}{hint(name, self.nodes)}", line=line)

    def edge(self, a: str, mark: str | None, b: str, line: int | None, said: str) -> None:
        """Add an edge by its sign, "->" or "<-o" and the like; any other was `said` in the text and is refused."""
        if mark == "->":
            self.arrow(a, b, line)
        elif mark == "<-":
            self.arrow(b, a, line)
        elif mark == "--":
            self.line(a, b, line)
        elif mark is not None and _is_sign(mark):
            self._refuse_second(a, b, line, [(a, b), (b, a)])
            self.marked[a, b] = mark, line
        else:
            raise FormatError(f"{said}; dpcurate's edges are {', '.join(SIGNS)}", line=line)

    def arc(self, a: str, b: str, mark: object, back: object) -> None:
        """One of the two arcs of an edge of a PAG, with the mark at its end and that of the other arc."""
        if mark not in MARKS or back not in MARKS:
            known = ", ".join(MARKS)
            raise FormatError(f"the edges of a PAG have marks at both ends, {known}; between {a!r} and {b!r} one lacks")
        ends = self.arrows.keys() | self.marked.keys()
        if frozenset((a, b)) not in self.lines and not {(a, b), (b, a)} & ends:
            self.edge(a, sign_of(back, mark), b, None, "an edge")

    def sure(self, a: str, b: str, values: Mapping[str, object], line: int | None) -> None:
        """What stands beside the edge that was written from a to b; looked at only when asked for."""
        self.beside[a, b] = values, line

    def arrow(self, a: str, b: str, line: int | None) -> None:
        """Add a -> b; an opposite arrow is left to join_opposites or to the search for cycles."""
        self._refuse_second(a, b, line, [(a, b)])
        self.arrows[a, b] = line

    def line(self, a: str, b: str, line: int | None) -> None:
        """An edge without a direction, found on this line."""
        self._refuse_second(a, b, line, [(a, b), (b, a)])
        self.lines[frozenset((a, b))] = line

    def _refuse_second(self, a: str, b: str, line: int | None, arrows: list[Arrow]) -> None:
        if a == b:
            raise FormatError(f"an edge joins {a!r} with itself", line=line)
        marked = (a, b) in self.marked or (b, a) in self.marked
        if marked or frozenset((a, b)) in self.lines or any(arrow in self.arrows for arrow in arrows):
            raise FormatError(f"a second edge between {a!r} and {b!r}", line=line)
        if len(self.arrows) + len(self.lines) + len(self.marked) >= MAX_EDGES:
            raise FormatError(f"more than {MAX_EDGES} edges, the limit", line=line)

    def join_opposites(self) -> None:
        """Two opposite arrows are one line, the custom of networkx, pgmpy and adjacency matrices."""
        for (a, b), line in list(self.arrows.items()):
            if (a, b) in self.arrows and (b, a) in self.arrows:
                del self.arrows[a, b], self.arrows[b, a]
                self.lines[frozenset((a, b))] = line

    def finish(self, kind: GraphKind | None = None) -> Graph:
        """The graph: of this kind, else of the kind the text said, else of the kind it looks like."""
        kind = kind or self.kind or ("pag" if self.marked else "cpdag" if self.lines else "dag")
        if kind not in GRAPH_KINDS:
            raise FormatError(f"the kind of graph is one of {', '.join(GRAPH_KINDS)}, not {kind!r}")
        self._check_cycle()
        if kind != "pag":
            _refuse(
                {ends: line for ends, (_, line) in self.marked.items()},
                "only a PAG has edges with circles or two heads",
            )
        if kind == "dag":
            _refuse(self.lines, "a DAG has no undirected edge")
        if kind == "skeleton":
            _refuse(self.arrows, "a skeleton has no arrow")
        try:
            return self._build(kind)
        except GraphError as error:
            raise FormatError(str(error), line=self.separators_line) from None

    def probabilities(self) -> EdgeProbabilities:
        """How sure the edges are: of a -> b by (a, b), of a line by its ends in the order of nodes."""
        known = {}
        for a, _, b in ordered_edges(self.finish()):
            here, back = (EdgeProbability.of(*self.beside.get(ends, ({}, None))) for ends in ((a, b), (b, a)))
            probability = here or (back and back.turned())
            if probability is not None:
                known[a, b] = probability
        return known

    def _build(self, kind: GraphKind) -> Graph:
        nodes = tuple(self.nodes)
        if kind == "dag":
            return Dag(nodes, frozenset(self.arrows))
        if kind == "cpdag":
            return Cpdag(nodes, frozenset(self.arrows), frozenset(self.lines))
        if kind == "pag":
            edges = [(a, sign, b) for (a, b), (sign, _) in self.marked.items()]
            edges += [(a, "->", b) for a, b in self.arrows] + [(a, "--", b) for a, b in self.lines]
            return Pag.of(nodes, edges)
        return Skeleton(nodes, frozenset(self.lines), self.separators)

    def _check_cycle(self) -> None:
        if find_cycle(tuple(self.nodes), self.arrows) is None:
            return
        # The line to name is that of the first arrow that closes a cycle.
        nodes, arrows = tuple(self.nodes), list(self.arrows)
        closed = range(1, len(arrows) + 1)
        first = bisect_left(closed, True, key=lambda count: find_cycle(nodes, arrows[:count]) is not None)
        message = find_cycle(nodes, arrows[: first + 1])
        raise FormatError(str(message), line=self.arrows[arrows[first]])


def _is_sign(text: str) -> bool:
    try:
        return sign_of(*marks_of(text)) == text
    except GraphError:
        return False


def _refuse(edges: Mapping[Arrow, int | None] | Mapping[UnorderedPair, int | None], why: str) -> None:
    for edge, line in edges.items():
        a, b = sorted(edge)
        raise FormatError(f"{why}, but {a!r} and {b!r} are joined by one; read it as another kind", line=line)


def split_lines(text: str) -> list[str]:
    """Lines ended by a newline only: str.splitlines also cuts at characters a name may hold."""
    return [line.removesuffix("\r") for line in text.split("\n")]
