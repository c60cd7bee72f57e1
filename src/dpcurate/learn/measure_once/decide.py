"""From evidence to a graph: P(edge) of every pair, which edges to keep, and what separates the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from random import Random

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.graphs.base_graph import UnorderedPair
from dpcurate.graphs.graph import Skeleton
from dpcurate.learn.measure_once.blocks import Columns, members_of
from dpcurate.learn.measure_once.constants import LEAST_THRESHOLD, SEARCHED
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.family_search import FamilySearch
from dpcurate.learn.measure_once.order_search import SearchOrder, best_order, climbed_on, first_orders, number_of_starts
from dpcurate.result.fit import Evidence


@dataclass(frozen=True, slots=True)
class Decision:
    """A graph by the parents of every column, the order it was found in, and P(edge) of every pair."""

    parents: tuple[Columns, ...]
    order: tuple[int, ...]
    probabilities: FloatArray


def decide(families: FamilySearch, random: Random, warm: Sequence[Sequence[int]] = ()) -> Decision:
    """The best order found, P(edge) at it, and the edges that raise the expected F1."""
    cold = number_of_starts(families.constants, families.columns) - SEARCHED * len(warm)
    order = best_order(families, random, [*warm, *first_orders(families, random, cold)])
    order = climbed_on(order, families.constraints, random, families.constants.patience)
    probabilities = edge_probabilities(order)
    kept = _at_best_threshold(families, list(order.columns), probabilities)
    return Decision(tuple(kept.parents()), tuple(kept.columns), probabilities)


def scout(families: FamilySearch, random: Random, warm: Sequence[Sequence[int]] = ()) -> Decision:
    """A quick look, to choose what to ask next: one start, one order, edges more likely than not."""
    order = best_order(families, random, warm or first_orders(families, random, 1))
    return Decision(tuple(order.parents()), tuple(order.columns), edge_probabilities(order))


def _at_best_threshold(
    families: FamilySearch, start: list[int], probabilities: FloatArray
) -> SearchOrder[FamilySearch]:
    """The search once more with the log odds of an edge shifted to where it pays in expected F1."""
    threshold = f1_threshold(probabilities[np.triu_indices(families.columns, 1)])
    return best_order(families.shifted(log((1 - threshold) / threshold)), Random(0), [start])


def f1_threshold(probabilities: FloatArray) -> float:
    """The P(edge) from which on keeping an edge raises the expected F1: half of the best one (Lipton et al., 2014)."""
    falling = np.sort(probabilities)[::-1]
    f1 = 2 * np.cumsum(falling) / (np.arange(1, len(falling) + 1) + falling.sum())
    return max(float(f1.max()) / 2, LEAST_THRESHOLD)


def edge_probabilities(order: SearchOrder[FamilySearch]) -> FloatArray:
    """P(edge) of every pair at one order, given the other parents of its later column."""
    families, p = order.families, np.zeros((len(order.columns), len(order.columns)))
    for column, (before, parents) in enumerate(zip(order.before, order.parents(), strict=True)):
        gains = families.row(column, parents) + families.edge_log_odds
        for x in parents:
            gains[x] = families.gain(column, x, tuple(t for t in parents if t != x))
        known = members_of(before, families.columns) & families.evidence.measured[column]
        p[known, column] = 0.5 + 0.5 * np.tanh(gains[known] / 2)  # 1 / (1 + exp(-gain)) without overflow
    return p + p.T


def skeleton_of(names: Sequence[str], constraints: Constraints, decision: Decision) -> Skeleton:
    """Edges found or required; every other pair is separated by the parents of its later column."""
    edges = {frozenset((names[x], names[y])) for y, parents in enumerate(decision.parents) for x in parents}
    edges |= {frozenset((names[int(x)], names[int(y)])) for x, y in np.argwhere(constraints.required)}
    apart: dict[UnorderedPair, tuple[str, ...]] = {}
    for a, b in constraints.pairs:
        pair = frozenset((names[a], names[b]))
        if pair not in edges:
            apart[pair] = _given(names, decision, a, b)
    return Skeleton.of(names, edges, apart)


def evidence_of(
    names: Sequence[str], constraints: Constraints, decision: Decision, skeleton: Skeleton, linked: FloatArray
) -> tuple[Evidence, ...]:
    """What became of every allowed pair, and P(linked)."""
    rows = []
    for a, b in constraints.pairs:
        pair = names[a], names[b]
        verdict = "kept" if frozenset(pair) in skeleton.edges else "left out"
        rows.append(Evidence(pair, _given(names, decision, a, b), verdict, float(linked[a, b])))
    return tuple(rows)


def _given(names: Sequence[str], decision: Decision, a: int, b: int) -> tuple[str, ...]:
    later = max(a, b, key=decision.order.index)
    return tuple(names[x] for x in decision.parents[later] if x not in (a, b))
