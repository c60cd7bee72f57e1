"""From probabilities to a graph: which pairs are drawn, and which of them as arrows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import inf
from numbers import Real

from dpcurate._messages import shown
from dpcurate.errors import QueryError
from dpcurate.graphs.base_graph import Arrow, Mark, UnorderedPair, find_cycle, hint, reachable
from dpcurate.graphs.graph import Cpdag, Dag, Pag
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.result.fit import FitResult

BEST_F1 = "best-f1"
"""The method's own graph, where it has probabilities the one of the highest expected F1."""
Way = Callable[[str, str], float | None]
"""P(a -> b | edge) of two columns, None where it is not known."""
CERTAIN = 1 - 1e-12
"""A cut above what evidence gives: it draws what background knowledge requires, and nothing else."""
DOUBTFUL = 0.2
"""A pair left out of a graph that is at least so likely to be linked is undecided, not apart."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """Pairs are drawn from this P(edge) on, as arrows from this P(direction | edge) on, else as lines."""

    linked: float = 0.5
    direction: float = 0.8

    def __post_init__(self) -> None:
        if not (_is_number(self.linked) and 0 < self.linked < 1):
            raise QueryError(
                f"a cut of P(edge) lies between 0 and 1, not {shown(self.linked)}; 0.5 draws every pair that is more "
                f"likely linked than not, {BEST_F1!r} the graph of the highest expected F1"
            )
        if not (_is_number(self.direction) and 0.5 <= self.direction <= 1):
            raise QueryError(
                f"a cut of directions lies between 0.5 and 1, not {shown(self.direction)}: of the two ways round, one "
                "always has 0.5 or more"
            )

    @classmethod
    def of(cls, linked: float | str, direction: float | None = None) -> Threshold | None:
        """The cut, None for the name best-f1; refuses what means nothing."""
        if isinstance(linked, str) and linked != BEST_F1:
            raise QueryError(f"unknown cut {shown(linked)}{hint(linked, [BEST_F1])}; give a number or {BEST_F1!r}")
        if not isinstance(linked, str):
            return cls(linked) if direction is None else cls(linked, direction)
        if direction is not None:
            raise QueryError(f"{BEST_F1!r} is one graph, arrows included, so a direction of {direction:g} has no use")
        return None

    @property
    def doubtful(self) -> float:
        """P(edge) from which on a pair that is not drawn is undecided."""
        return min(DOUBTFUL, 1 - self.linked)


def _is_number(value: object) -> bool:
    return isinstance(value, Real)


def graph_at(learned: FitResult, cut: Threshold | None, knowledge: Knowledge | None = None) -> Cpdag | Dag | Pag:
    """The graph at a cut; the method's own where it has no probabilities, or for None.

    Background knowledge holds whatever the probabilities say. Arrows never close a cycle: the least sure
    one of a cycle is a line.
    """
    known = knowledge or Knowledge()
    if cut is None and isinstance(learned.graph, Pag) and not _readable(learned):
        return _marked_at(Threshold().direction, learned, learned.graph, known)
    if cut is None or not learned.linked:
        return learned.graph
    if isinstance(learned.graph, Pag):
        return _pag_at(learned, learned.graph, cut, known)
    way = learned.way if learned.direction else as_drawn(learned.graph)
    return directed_at(cut.direction, learned.graph.nodes, drawn_pairs(learned, cut, known), way, known)


def directed_at(
    direction: float, nodes: tuple[str, ...], edges: frozenset[UnorderedPair], way: Way, knowledge: Knowledge | None
) -> Cpdag:
    """Edges as arrows from this P(direction) on, else as lines; see `graph_at` for what else holds."""
    known, sure = knowledge or Knowledge(), dict[Arrow, float]()
    for a, b in combinations(nodes, 2):
        if frozenset((a, b)) in edges:
            sure |= _arrow(direction, way(a, b), known, a, b)
    arrows = _without_cycles(nodes, sure)
    return Cpdag(nodes, arrows, edges - {frozenset(arrow) for arrow in arrows})


def as_drawn(graph: Cpdag | Dag) -> Callable[[str, str], float]:
    """What a graph by itself says: its arrows are sure, of its lines nothing is known."""

    def way(a: str, b: str) -> float:
        return 0.5 + ((a, b) in graph.arrows) / 2 - ((b, a) in graph.arrows) / 2

    return way


def _pag_at(learned: FitResult, pag: Pag, cut: Threshold, known: Knowledge) -> Pag:
    """Its edges that are likely enough, with circles where neither mark is; what knowledge says stays."""
    kept = {pair for pair in pag.edges if learned.linked.get(pair, 1.0) >= cut.linked or known.requires(*pair)}

    marks = {end: mark for end, mark in pag.marks.items() if frozenset(end) in kept}
    return _marked_at(cut.direction, learned, Pag(pag.nodes, marks), known)


def _marked_at(least: float, learned: FitResult, pag: Pag, known: Knowledge) -> Pag:
    """The marks that are likely enough, and circles for the others."""

    def mark(a: str, b: str) -> Mark:
        here = pag.marks[a, b]
        tail, arrow = learned.marks.get((a, b), (1.0, 1.0))
        sure = here == "circle" or (tail if here == "tail" else arrow) >= least
        return here if sure or not known.may_point(b, a) or (b, a) in known.required_arrows else "circle"

    return Pag(pag.nodes, {(a, b): mark(a, b) for a, b in pag.marks})


def _readable(learned: FitResult) -> bool:
    return learned.directions is None or learned.directions.readable


def drawn_pairs(learned: FitResult, cut: Threshold, knowledge: Knowledge) -> frozenset[UnorderedPair]:
    """Pairs likely enough, required ones, and edges of the method that it has no probability of."""
    likely = {pair for pair, p in learned.linked.items() if p >= cut.linked and knowledge.allows(*pair)}
    return frozenset(likely | knowledge.required_pairs() | learned.graph.edges.difference(learned.linked))


def surely_linked(learned: FitResult, knowledge: Knowledge | None, a: str, b: str) -> float | None:
    """P(edge), 1 or 0 where knowledge says so; None if the method has no probability."""
    if not learned.linked:
        return None
    if knowledge is not None and (knowledge.requires(a, b) or not knowledge.allows(a, b)):
        return float(knowledge.allows(a, b))
    return learned.linked.get(frozenset((a, b)))


def way_round(learned: FitResult, knowledge: Knowledge | None, a: str, b: str) -> float | None:
    """P(a -> b | edge), 1 or 0 where knowledge leaves one way; None if the method has no directions."""
    if not learned.direction:
        return None
    if knowledge is not None and knowledge.may_point(a, b) != knowledge.may_point(b, a):
        return float(knowledge.may_point(a, b))
    return learned.way(a, b)


def _arrow(direction: float, p: float | None, known: Knowledge, a: str, b: str) -> dict[Arrow, float]:
    """The arrow between the two, of which one way has this probability, and how sure it is; nothing for a line."""
    if known.may_point(a, b) != known.may_point(b, a):
        return {(a, b) if known.may_point(a, b) else (b, a): inf}
    if p is None or max(p, 1 - p) < direction or p == 0.5:
        return {}
    return {(a, b): p} if p > 0.5 else {(b, a): 1 - p}


def _without_cycles(nodes: tuple[str, ...], sure: dict[Arrow, float]) -> frozenset[Arrow]:
    """The surest arrows first, without those that would close a cycle with surer ones."""
    if find_cycle(nodes, sure) is None:
        return frozenset(sure)
    children: dict[str, list[str]] = {name: [] for name in nodes}
    for a, b in sorted(sure, key=lambda arrow: -sure[arrow]):  # stable: equals stay in the columns' order
        if a not in reachable(b, children):
            children[a].append(b)
    return frozenset((a, b) for a, below in children.items() for b in below)
