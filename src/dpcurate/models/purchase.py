"""What a model buys: the contrasts of every family of its graph, each as well as its error matters.

The tables of interest are the families of the graph and all pairs of columns. A contrast of variance v in each of its
k coordinates adds k v / (cells of the other columns) to the squared error of every table that holds it: c v in all.
With precision a before and x more, at the price g for each (the squared length of a row's contrast), the sum of
c / (a + x) for a given total of g x is smallest where x = l sqrt(c / g) - a, or 0 if that is negative: water filling,
l being the level. After Xiao, He, Zhang and Kifer, "An optimal and scalable matrix mechanism for noisy marginals
under convex loss functions", 2023 (ResidualPlanner).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod

import numpy as np

from dpcurate.graphs.graph import Dag
from dpcurate.learn.measure_once.blocks import Columns, sorted_set, subsets
from dpcurate.learn.measure_once.moments import Released
from dpcurate.learn.measure_once.release import Weights

HALVINGS = 60
LEAST = 1e-4
"""Contrasts that would get less than this part of the most are left as they are."""
PAIRS = 3.0
"""What the error of a pair's table counts beside that of a family's."""


def families(dag: Dag) -> list[Columns]:
    """Every column with its parents, by position."""
    place = {name: i for i, name in enumerate(dag.nodes)}
    return [sorted_set(place[x], *(place[p] for p in dag.parents(x))) for x in dag.nodes]


def importance(levels: Sequence[int], wanted: Sequence[Columns]) -> dict[Columns, float]:
    """How much the variance of each contrast adds to the squared error of all tables of interest."""
    matters = {(): 0.0} | {u: 0.0 for family in wanted for u in subsets(family)}
    tables = [(family, 1.0) for family in wanted if len(family) > 2]
    tables += [(pair, PAIRS) for pair in combinations(range(len(levels)), 2)]
    for table, weight in tables:
        cells = prod(levels[a] for a in table)
        for u in ((), *subsets(table)):
            if u in matters:
                inside = prod(levels[a] for a in u)
                matters[u] += weight * prod(levels[a] - 1 for a in u) * inside / cells
    return matters


def family_weights(released: Released, dag: Dag, precision: float) -> Weights:
    """Weights of the contrasts to buy; `precision` is the sum of price times precision that can be paid for."""
    matters = importance(released.levels, families(dag))
    sets = list(matters)
    price = np.array([prod(1 - 1 / released.levels[a] for a in u) for u in sets])
    cost = np.array([matters[u] for u in sets])
    before = np.array([1 / released.variances[u] if u in released.variances else 0.0 for u in sets])
    ideal = np.sqrt(cost / price)
    low, high = 0.0, (precision + float(price @ before)) / float(price @ ideal)
    for _ in range(HALVINGS):
        level = (low + high) / 2
        too_much = float(price @ np.maximum(level * ideal - before, 0.0)) > precision
        low, high = (low, level) if too_much else (level, high)
    bought = np.maximum(high * ideal - before, 0.0)
    most = float(bought.max())
    return {u: float(np.sqrt(x / most)) for u, x in zip(sets, bought, strict=True) if x > LEAST * most}
