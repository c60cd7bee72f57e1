"""Columns that repeat another one under other names: no data tell whose links are whose.

All that one of the two says of a third column the other says, too. A search that has both draws some links at one of
them and some at the other, as noise has it, and regressions on one column twice go astray. So the first of the two in
the schema stands for both, unless background knowledge puts the other first: a copy is written after its original.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.moments import CentralMoments, Margin

DIFFERS = 0.001
"""A copy may differ in this share of the rows that lack the most common level."""
DEVIATIONS = 3.0
"""Of the noise in that share, which come on top."""
MOST = 0.15
"""With a larger share than this in all nothing is called a copy."""


def copies(moments: CentralMoments, constraints: Constraints) -> dict[int, int]:
    """For each column that repeats another one, the one that stands for both."""
    found: dict[int, int] = {}
    usual = [float(margin.probabilities.max()) for margin in moments.margins]
    for a, b in combinations(range(len(usual)), 2):
        if abs(usual[a] - usual[b]) > MOST * (1 - max(usual[a], usual[b])):  # most pairs: rows differ by that alone
            continue
        if found.keys().isdisjoint((a, b)) and moments.measured(a, b) and _same(moments, a, b):
            first, copy = (a, b) if constraints.allowed[a, b] else (b, a)
            if copy not in found.values() and not constraints.required[copy].any():
                found[copy] = first
    return found


def _same(moments: CentralMoments, a: int, b: int) -> bool:
    """Whether nearly all rows of a level of one have the same level of the other, as far as noise lets it be seen."""
    one, other, block = moments.margins[a], moments.margins[b], moments.blocks[a, b]
    rare = 1 - max(one.probabilities.max(), other.probabilities.max())
    largest = max(moments.levels[a], moments.levels[b])
    of_cells = largest * block.noise * _cell_share(one) * _cell_share(other)  # one for each level, margins cancel
    most = DIFFERS * rare + DEVIATIONS * np.sqrt(of_cells + moments.count_noise)
    table = np.outer(one.probabilities, other.probabilities) + one.basis @ block.observed @ other.basis.T
    alike = min(table.max(axis=0).sum(), table.max(axis=1).sum())
    return bool(abs(1 - alike) < most < MOST * rare)  # far above 1, margins and pair do not go together


def _cell_share(margin: Margin) -> float:
    """What a level has, on average, of the noise of the coordinates."""
    return float(np.trace(margin.basis @ margin.shape @ margin.basis.T)) / len(margin.basis)
