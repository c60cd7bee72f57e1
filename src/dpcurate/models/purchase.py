"""What a model buys: the contrasts of every family of its graph, each as well as its error matters.

The tables of interest are the families of the graph and all pairs of columns. A contrast of variance v in each of its
k coordinates adds k v / (cells of the other columns) to the squared error of every table that holds it: c v in all.
With precision a before and x more, at the price g for each (the squared length of a row's contrast), the sum of
c / (a + x) for a given total of g x is smallest where x = l sqrt(c / g) - a, or 0 if that is negative: water filling,
l being the level. After Xiao, He, Zhang and Kifer, "An optimal and scalable matrix mechanism for noisy marginals
under convex loss functions", 2023 (ResidualPlanner).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod, sqrt

import numpy as np

from dpcurate.graphs.graph import Dag
from dpcurate.learn.measure_once.blocks import Columns, sorted_set, subsets
from dpcurate.learn.measure_once.central_moments import Released
from dpcurate.learn.measure_once.release import Weights

HALVINGS = 60
LEAST = 1e-4
"""Contrasts that would get less than this part of the most are left as they are."""
PAIRS = 3.0
"""What the error of a pair's table counts beside that of a family's, where both are noise."""


def families(dag: Dag) -> list[Columns]:
    """Every column with its parents, by position."""
    place = {name: i for i, name in enumerate(dag.nodes)}
    return [sorted_set(place[x], *(place[p] for p in dag.parents(x))) for x in dag.nodes]


def importance(levels: Sequence[int], wanted: Sequence[Columns], pairs: float) -> dict[Columns, float]:
    """How much the variance of each contrast adds to the squared error of all tables of interest, pairs so weighted."""
    matters = {(): 0.0} | {u: 0.0 for family in wanted for u in subsets(family)}
    for table in (family for family in wanted if len(family) > 2):
        _add(matters, levels, table, 1.0)
    for pair in combinations(range(len(levels)), 2):
        _add(matters, levels, pair, pairs)
    return matters


def _add(matters: dict[Columns, float], levels: Sequence[int], table: Columns, weight: float) -> None:
    cells = prod(levels[a] for a in table)
    for u in ((), *subsets(table)):
        if u in matters:
            matters[u] += weight * prod(levels[a] * (levels[a] - 1) for a in u) / cells


def family_weights(released: Released, dag: Dag, precision: float) -> Weights:
    """Weights of the contrasts to buy; `precision` is the sum of price times precision that can be paid for."""
    wanted = families(dag)
    loud = _filled(released, importance(released.levels, wanted, PAIRS), precision)
    share = sqrt(_noise_share(released, loud, wanted))
    bought = _filled(released, importance(released.levels, wanted, PAIRS * share), precision)
    most = max(bought.values())
    return {u: sqrt(x / most) for u, x in bought.items() if x > LEAST * most}


def _filled(released: Released, matters: Mapping[Columns, float], precision: float) -> dict[Columns, float]:
    """The precision to buy of each contrast."""
    price = np.array([prod(1 - 1 / released.levels[a] for a in u) for u in matters])
    before = np.array([_precision(released, u) for u in matters])
    ideal = np.sqrt(np.array(list(matters.values())) / price)
    low, high = 0.0, (precision + float(price @ before)) / float(price @ ideal)
    for _ in range(HALVINGS):
        level = (low + high) / 2
        too_much = float(price @ np.maximum(level * ideal - before, 0.0)) > precision
        low, high = (low, level) if too_much else (level, high)
    return dict(zip(matters, np.maximum(high * ideal - before, 0.0).tolist(), strict=True))


def _precision(released: Released, columns: Columns) -> float:
    return 1 / released.variances[columns] if columns in released.variances else 0.0


def _noise_share(released: Released, bought: Mapping[Columns, float], wanted: Sequence[Columns]) -> float:
    """How much of the squared error of a pair's table would be noise, the rest being sampling; 1 without a row count.

    Where sampling rules, less noise in pairs mends little, and families matter more.
    """
    if () not in released.sums:
        return 1.0
    pairs = sorted({u for family in wanted for u in subsets(family) if len(u) == 2})
    noise = [
        sum(
            prod(released.levels[a] - 1 for a in u) / prod(released.levels[a] for a in pair if a not in u)
            / (_precision(released, u) + bought[u])
            for u in subsets(pair)
        )
        for pair in pairs
    ]  # fmt: skip
    return float(np.mean(noise) / (np.mean(noise) + released.rows)) if noise else 1.0
