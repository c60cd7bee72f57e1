"""From arrows and weights to what a learner returns, and what a learner may spend."""

from __future__ import annotations

import math

import numpy as np

from dpcurate._typing import BoolArray, FloatArray
from dpcurate.errors import QueryError
from dpcurate.graphs.graph import Cpdag, Dag, Skeleton
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.orient import orient
from dpcurate.learn.score.acyclic import AllowedArrows, acyclic_part, dag_of, indices
from dpcurate.queries import Queryable
from dpcurate.result.fit import Evidence, FitResult


def to_spend(queryable: Queryable, rho: float | None) -> float:
    """What a proved run may spend, from public facts."""
    if queryable.budget.pure:
        raise QueryError("this method needs Gaussian noise, which a pure budget (delta = 0) cannot pay: give a delta")
    if rho is None and math.isinf(queryable.remaining):
        raise QueryError("the budget is unlimited: give rho=, or use Notears, which is exact")
    if rho is not None and not 0 < rho < math.inf:
        raise QueryError(f"rho must be a finite number above 0, got {rho!r}")
    return queryable.remaining * (1 - 1e-12) if rho is None else rho


def markov_class(dag: Dag, knowledge: Knowledge | None) -> Cpdag:
    """The CPDAG of a DAG, with what background knowledge orients."""
    if knowledge is None:
        return dag.cpdag()
    place = {name: i for i, name in enumerate(dag.order())}
    separating_sets = {}
    for k, b in enumerate(dag.nodes):
        for a in dag.nodes[:k]:
            if frozenset((a, b)) not in dag.edges:
                # A node's parents separate it from everything that is not below it.
                separating_sets[frozenset((a, b))] = dag.parents(max(a, b, key=place.__getitem__))
    return orient(Skeleton(dag.nodes, dag.edges, separating_sets), knowledge)


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
    graph = markov_class(dag_of(facts.nodes, arrows), knowledge)
    return FitResult(graph, graph.skeleton, notes=(why,))
