"""Acyclic graphs from weights: penalties, which arrows are allowed, and the result that a score method hands over."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from dpcurate._typing import BoolArray, FloatArray
from dpcurate.errors import QueryError
from dpcurate.graphs.graph import Dag
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.orient import dag_to_cpdag
from dpcurate.queries import Queryable
from dpcurate.result.fit import Evidence, FitResult

Constraint = Callable[[FloatArray], tuple[float, FloatArray]]

STEEP = 60.0
"""Above this norm of W o W its exponential is continued by a power, so that nothing overflows."""
OUTSIDE = 50.0
"""The log-determinant form is at least this where it is not defined: above what floats reach inside,
and low enough for a line search to back off from without giving up."""


def exponential(weights: FloatArray) -> tuple[float, FloatArray]:
    """The function tr exp(W o W) - d and its gradient 2 W o exp(W o W)^T."""
    from scipy.linalg import expm

    squares = weights * weights
    steep = max(1.0, float(squares.sum(axis=0).max(initial=0.0)) / STEEP)
    power: FloatArray = expm(squares / steep)
    return float(np.trace(power) - len(weights)) * steep**2, 2.0 * weights * power.T


def log_determinant(weights: FloatArray) -> tuple[float, FloatArray]:
    """-log det(I - W o W) and its gradient 2 W o (I - W o W)^-T; a wall outside its domain."""
    squares = weights * weights
    matrix = np.eye(len(weights)) - squares
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return _wall(weights, squares)
    # I - A is an M-matrix, so A has a spectral radius below 1, exactly if its inverse is not negative.
    if not np.isfinite(inverse).all() or inverse.min(initial=0.0) < -1e-12:
        return _wall(weights, squares)
    return max(0.0, -float(np.linalg.slogdet(matrix)[1])), 2.0 * weights * inverse.T


def _wall(weights: FloatArray, squares: FloatArray) -> tuple[float, FloatArray]:
    """A high value, and the slope at the same weights shrunk into the domain."""
    size = float(squares.sum(axis=0).max(initial=0.0))  # at least the spectral radius
    inverse = np.linalg.inv(np.eye(len(weights)) - squares * (0.9 / size))
    return OUTSIDE * (1.0 + size), 2.0 * weights * inverse.T


CONSTRAINTS: dict[str, Constraint] = {"exp": exponential, "logdet": log_determinant}


class Growing:
    """A graph that takes arrows one by one and never a cycle; `below[i, j]` says that j can be reached from i."""

    def __init__(self, size: int) -> None:
        self.arrows: BoolArray = np.zeros((size, size), dtype=bool)
        self.below: BoolArray = np.eye(size, dtype=bool)

    def fits(self, i: int, j: int) -> bool:
        """Whether the arrow closes no cycle."""
        return not self.below[j, i]

    def add(self, i: int, j: int) -> None:
        """Draw i -> j, which must fit."""
        self.arrows[i, j] = True
        self.below |= np.outer(self.below[:, i], self.below[j])


@dataclass(frozen=True, slots=True, eq=False)
class AllowedArrows:
    """Background knowledge as masks: arrows that may be drawn, pairs that must be joined."""

    nodes: tuple[str, ...]
    allowed: BoolArray
    required: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, nodes: tuple[str, ...], knowledge: Knowledge | None) -> AllowedArrows:
        """Check the knowledge against the nodes, before any budget is spent."""
        allowed = ~np.eye(len(nodes), dtype=bool)
        if knowledge is None:
            return cls(nodes, allowed, ())
        knowledge.check(nodes)
        place = {name: i for i, name in enumerate(nodes)}
        for i, a in enumerate(nodes):
            for j, b in enumerate(nodes):
                allowed[i, j] &= knowledge.may_point(a, b)
        pairs = sorted(tuple(sorted(place[x] for x in pair)) for pair in knowledge.required_pairs())
        return cls(nodes, allowed, tuple((i, j) for i, j in pairs))

    def joined(self) -> BoolArray:
        """The required pairs as a symmetric mask."""
        mask = np.zeros_like(self.allowed)
        for i, j in self.required:
            mask[i, j] = mask[j, i] = True
        return mask

    def directions(self, pair: tuple[int, int], weights: FloatArray) -> list[tuple[int, int]]:
        """The allowed arrows of a pair, the heavier first."""
        both = [arrow for arrow in (pair, pair[::-1]) if self.allowed[arrow]]
        return sorted(both, key=lambda arrow: -abs(weights[arrow]))

    def forced_first(self) -> list[tuple[int, int]]:
        """Required pairs, those with one direction left before the others."""
        return sorted(self.required, key=lambda pair: int(self.allowed[pair]) + int(self.allowed[pair[::-1]]))


def acyclic_part(weights: FloatArray, threshold: float, facts: AllowedArrows) -> BoolArray:
    """The arrows of weight at least `threshold`, heaviest first, leaving out any that would close a cycle.

    Always a DAG, whatever the weights; the plain threshold where that is a DAG already. Required
    pairs come first and are kept at any weight.
    """
    graph = Growing(len(weights))
    for pair in facts.forced_first():
        for arrow in facts.directions(pair, weights):
            if graph.fits(*arrow):
                graph.add(*arrow)
                break
    sizes = np.where(facts.allowed, np.abs(weights), 0.0)
    rows, columns = np.nonzero((sizes >= threshold) & (sizes > 0) & ~facts.joined())
    for k in np.argsort(-sizes[rows, columns], kind="stable"):
        i, j = int(rows[k]), int(columns[k])
        if graph.fits(i, j):
            graph.add(i, j)
    return graph.arrows


def dag_of(nodes: tuple[str, ...], arrows: BoolArray) -> Dag:
    """The graph of a matrix of arrows."""
    return Dag(nodes, frozenset((nodes[i], nodes[j]) for i, j in indices(arrows)))


def indices(mask: BoolArray) -> Iterable[tuple[int, int]]:
    """The positions that are true."""
    return ((int(i), int(j)) for i, j in np.argwhere(mask))


def reachable(arrows: BoolArray) -> BoolArray:
    """Which node can be reached from which, itself included."""
    below: BoolArray = arrows | np.eye(len(arrows), dtype=bool)
    for _ in range(max(1, int(np.ceil(np.log2(max(2, len(arrows))))))):
        below = (below.astype(np.float32) @ below.astype(np.float32)) > 0
    return below


def to_spend(queryable: Queryable, rho: float | None) -> float:
    """What a proved run may spend, from public facts."""
    if queryable.budget.pure:
        raise QueryError("this method needs Gaussian noise, which a pure budget (delta = 0) cannot pay: give a delta")
    if rho is None and math.isinf(queryable.remaining):
        raise QueryError("the budget is unlimited: give rho=, or use Notears, which is exact")
    if rho is not None and not 0 < rho < math.inf:
        raise QueryError(f"rho must be a finite number above 0, got {rho!r}")
    return queryable.remaining * (1 - 1e-12) if rho is None else rho


def learned(
    nodes: tuple[str, ...],
    arrows: BoolArray,
    weights: FloatArray,
    threshold: float,
    asked: tuple[int, ...],
    notes: tuple[str, ...],
) -> FitResult:
    """A DAG, with every weight that passed the threshold."""
    dag = dag_of(nodes, arrows)
    shown = arrows | (np.abs(weights) >= threshold)
    evidence = []
    for i, j in indices(shown):
        verdict = "kept" if arrows[i, j] else "closes a cycle"
        evidence.append(Evidence((nodes[i], nodes[j]), (), verdict, float(weights[i, j]), None, threshold))
    return FitResult(dag, dag.skeleton, evidence=tuple(evidence), tests=asked, notes=notes)


def empty(facts: AllowedArrows, knowledge: Knowledge | None, why: str) -> FitResult:
    """What is known without data: the required edges."""
    arrows = acyclic_part(np.zeros(facts.allowed.shape), math.inf, facts)
    graph = dag_to_cpdag(dag_of(facts.nodes, arrows), knowledge)
    return FitResult(graph, graph.skeleton, notes=(why,))
