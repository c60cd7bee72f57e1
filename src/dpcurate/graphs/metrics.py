"""How far an estimated graph is from the true one.

A rate over nothing is 1: an empty estimate makes no false claim, an empty truth leaves nothing
to find.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from dpcurate.errors import DpcurateError, GraphError
from dpcurate.graphs.base_graph import Arrow, Mark, UnorderedPair, hint
from dpcurate.graphs.graph import Cpdag, Dag, Graph
from dpcurate.graphs.orient import extension
from dpcurate.graphs.pag import Pag

T = TypeVar("T")
AdjustmentKind = Literal["ancestor", "parent", "oset"]
PairVerdict = Literal["right", "reversed", "undirected", "directed", "extra", "missing"]


@dataclass(frozen=True, slots=True)
class Rates:
    """Precision, recall and their harmonic mean."""

    precision: float
    recall: float

    @classmethod
    def of(cls, ours: AbstractSet[T], theirs: AbstractSet[T]) -> Rates:
        """Of what is claimed, how much is true, and the other way round."""
        both = len(ours & theirs)
        return cls(both / len(ours) if ours else 1.0, both / len(theirs) if theirs else 1.0)

    @property
    def f1(self) -> float:
        """The harmonic mean; 0 where both are 0."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


@dataclass(frozen=True, slots=True)
class Scores:
    """All measures of one estimate; `score` says what each compares.

    The adjustment distances are None where gadjid is not installed or the estimate is no CPDAG.
    """

    skeleton_precision: float
    skeleton_recall: float
    skeleton_f1: float
    cpdag_precision: float
    cpdag_recall: float
    cpdag_f1: float
    mark_precision: float
    mark_recall: float
    mark_f1: float
    arrow_precision: float
    arrow_recall: float
    arrow_f1: float
    shd: int
    ancestor_distance: float | None
    parent_distance: float | None


@dataclass(frozen=True, slots=True)
class EdgeVerdict:
    """One pair of nodes: the edge in both graphs ("->", "<-", "--" or "" read from a to b)."""

    a: str
    b: str
    estimated: str
    truth: str
    verdict: PairVerdict


@overload
def score(estimated: Pag, truth: Pag) -> PagScores: ...
@overload
def score(estimated: Cpdag | Dag, truth: Cpdag | Dag) -> Scores: ...
@overload
def score(estimated: Cpdag | Dag | Pag, truth: Cpdag | Dag | Pag) -> Scores | PagScores: ...
def score(estimated: Cpdag | Dag | Pag, truth: Cpdag | Dag | Pag) -> Scores | PagScores:
    """All measures of an estimated graph against the true one: `Scores` of DAGs and CPDAGs, `PagScores` of two PAGs.

    DAGs and CPDAGs are compared as Markov classes: a DAG is first replaced by its CPDAG. skeleton: adjacent pairs.
    cpdag: the published definition, arcs, a line counting as two. mark: tails and arrowheads, two on each edge.
    arrow: directed edges only. Against `ancestral_graph` instead of the true PAG, precision of a PAG says how often
    marks are true.
    """
    if isinstance(estimated, Pag) and isinstance(truth, Pag):
        return _pag_scores(estimated, truth)
    if isinstance(estimated, Pag) or isinstance(truth, Pag):
        raise GraphError("a PAG is compared with a PAG, and a DAG or CPDAG with a DAG or CPDAG; true_pag makes a PAG")
    return _class_scores(estimated, truth)


score_pag = score
"""The same, by the name of PAGs."""


def _class_scores(estimated: Cpdag | Dag, truth: Cpdag | Dag) -> Scores:
    ours, theirs = class_of(estimated), class_of(truth)
    parts = {
        "skeleton": skeleton_rates(ours, theirs),
        "cpdag": arc_rates(ours, theirs),
        "mark": mark_rates(ours, theirs),
        "arrow": arrow_rates(ours, theirs),
    }
    names = ("precision", "recall", "f1")
    rates = {f"{part}_{name}": getattr(rate, name) for part, rate in parts.items() for name in names}
    return Scores(
        **rates,
        shd=shd(ours, theirs),
        ancestor_distance=_distance_if_defined(ours, theirs, "ancestor"),
        parent_distance=_distance_if_defined(ours, theirs, "parent"),
    )


def skeleton_rates(estimated: Graph, truth: Graph) -> Rates:
    """Of adjacent pairs, without direction."""
    return _rates(estimated, truth, lambda graph: graph.edges)


def arc_rates(estimated: Graph, truth: Graph) -> Rates:
    """The published definition: an arrow is one arc, a line is two."""
    return _rates(estimated, truth, arcs_of)


def mark_rates(estimated: Graph, truth: Graph) -> Rates:
    """Of edge marks, a tail or an arrowhead at each end of an edge: a line for an arrow is half right."""
    return _rates(estimated, truth, _marks)


def arrow_rates(estimated: Graph, truth: Graph) -> Rates:
    """Of arrows only: how far a drawn direction can be trusted, and how many are found."""
    return _rates(estimated, truth, lambda graph: graph.arrows)


def shd(estimated: Graph, truth: Graph) -> int:
    """Structural Hamming distance: pairs whose edge is missing, extra or of another kind."""
    return sum(edge.verdict != "right" for edge in confusion(estimated, truth))


def confusion(estimated: Graph, truth: Graph) -> tuple[EdgeVerdict, ...]:
    """A verdict for every pair adjacent in either graph, in the truth's node order."""
    require_same_nodes(estimated, truth)
    place = {name: i for i, name in enumerate(truth.nodes)}
    pairs = [sorted(pair, key=place.__getitem__) for pair in estimated.edges | truth.edges]
    pairs.sort(key=lambda pair: (place[pair[0]], place[pair[1]]))
    return tuple(_verdict(a, b, _edge_between(estimated, a, b), _edge_between(truth, a, b)) for a, b in pairs)


def adjustment_distance(estimated: Cpdag | Dag, truth: Cpdag | Dag, kind: AdjustmentKind = "ancestor") -> float:
    """Share of ordered pairs whose effect one would adjust for wrongly (Henckel, Wuertzen and
    Weichwald 2024, UAI), through gadjid. Both graphs must be DAGs or CPDAGs of some DAG.
    """
    require_same_nodes(estimated, truth)
    for graph, which in ((estimated, "estimated"), (truth, "true")):
        if isinstance(graph, Cpdag) and not is_class(graph):
            raise GraphError(f"the {which} graph is the CPDAG of no DAG, so adjusting by it is not defined")
    measure = getattr(_gadjid(), f"{kind}_aid")
    matrices = _coded(truth, truth.nodes), _coded(estimated, truth.nodes)
    return float(measure(*matrices, edge_direction="from row to column")[0])


def is_class(cpdag: Cpdag) -> bool:
    """Whether this is the CPDAG of some DAG."""
    member = extension(cpdag)
    return member is not None and member.cpdag() == cpdag


def class_of(graph: Cpdag | Dag) -> Cpdag:
    """The Markov class of a DAG; a CPDAG is one."""
    return graph.cpdag() if isinstance(graph, Dag) else graph


def _rates(estimated: Graph, truth: Graph, claims: Callable[[Graph], AbstractSet[T]]) -> Rates:
    require_same_nodes(estimated, truth)
    return Rates.of(claims(estimated), claims(truth))


def arcs_of(graph: Graph) -> frozenset[Arrow]:
    """An arrow is one arc, a line is two."""
    return graph.arrows | {arc for a, b in graph.lines for arc in ((a, b), (b, a))}


def _marks(graph: Graph) -> frozenset[tuple[UnorderedPair, str, str]]:
    heads = {(frozenset(pair), pair[1]) for pair in graph.arrows}
    ends = [(pair, end) for pair in graph.edges for end in pair]
    return frozenset((pair, end, "head" if (pair, end) in heads else "tail") for pair, end in ends)


def _edge_between(graph: Graph, a: str, b: str) -> str:
    if (a, b) in graph.arrows:
        return "->"
    if (b, a) in graph.arrows:
        return "<-"
    return "--" if frozenset((a, b)) in graph.lines else ""


def _verdict(a: str, b: str, ours: str, theirs: str) -> EdgeVerdict:
    verdict: PairVerdict = "reversed"
    if ours == theirs:
        verdict = "right"
    elif not theirs:
        verdict = "extra"
    elif not ours:
        verdict = "missing"
    elif ours == "--":
        verdict = "undirected"
    elif theirs == "--":
        verdict = "directed"
    return EdgeVerdict(a, b, ours, theirs, verdict)


def require_same_nodes(estimated: Graph, truth: Graph) -> None:
    """Refuse graphs of different nodes."""
    for name in sorted(set(estimated.nodes) ^ set(truth.nodes)):
        has, lacks = (("estimated", "true"), ("true", "estimated"))[name in truth.nodes]
        near = hint(name, truth.nodes if has == "estimated" else estimated.nodes)
        raise GraphError(f"the {has} graph has a node {name!r} that the {lacks} graph lacks{near}")


def _coded(graph: Cpdag | Dag, nodes: tuple[str, ...]) -> npt.NDArray[np.int8]:
    """The code of gadjid: 1 for an arrow from row to column, 2 for a line."""
    place = [graph.nodes.index(name) for name in nodes]
    matrix = graph.adjacency()[np.ix_(place, place)]
    lines = (matrix & matrix.T).astype(bool)
    matrix[lines] = 2
    return matrix


def _gadjid() -> Any:
    try:
        return import_module("gadjid")
    except ImportError:
        raise DpcurateError("adjustment distances need gadjid; install it with: pip install gadjid") from None


def _distance_if_defined(estimated: Cpdag, truth: Cpdag, kind: AdjustmentKind) -> float | None:
    try:
        return adjustment_distance(estimated, truth, kind)
    except DpcurateError:
        return None


@dataclass(frozen=True, slots=True)
class PagScores:
    """`adjacency`: pairs. `arrowheads` and `tails`: ends of edges that have one, against ends that truly have.

    A mark is right if the true graph has the same mark there: a circle claims nothing and misses what could be
    known. `distance` counts ends whose mark differs, an edge that only one graph has counting twice.
    """

    adjacency: Rates
    arrowheads: Rates
    tails: Rates
    distance: int


def _pag_scores(estimated: Pag, truth: Pag) -> PagScores:
    require_same_nodes(estimated, truth)
    return PagScores(
        adjacency=skeleton_rates(estimated, truth),
        arrowheads=Rates.of(_ends(estimated, "arrow"), _ends(truth, "arrow")),
        tails=Rates.of(_ends(estimated, "tail"), _ends(truth, "tail")),
        distance=mark_distance(estimated, truth),
    )


def mark_distance(estimated: Pag, truth: Pag) -> int:
    """Ends of edges whose marks differ."""
    ends = estimated.marks.keys() | truth.marks.keys()
    return sum(estimated.marks.get(end) != truth.marks.get(end) for end in ends)


def _ends(pag: Pag, mark: Mark) -> set[Arrow]:
    return {end for end, here in pag.marks.items() if here == mark}
