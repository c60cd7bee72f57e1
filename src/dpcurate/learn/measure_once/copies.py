"""Columns that say what an earlier one says: of two, the first in the schema stands for both."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from dpcurate.arrays import FloatArray
from dpcurate.learn.measure_once.moments import CentralMoments, Margin

SAME = 0.01
"""Share of the rows beside a column's most common level in which a copy may differ and is a copy still."""
SURE = 3.0
"""Standard deviations of noise that are added to it."""
MOST = 0.05
"""With more than this in all nothing is taken for a copy."""


def copies(moments: CentralMoments) -> dict[int, int]:
    """For each column that repeats an earlier one, the first of these."""
    found: dict[int, int] = {}
    for a, b in combinations(range(len(moments.levels)), 2):
        if a not in found and b not in found and moments.measured(a, b) and _same(moments, a, b):
            found[b] = a
    return found


def _same(moments: CentralMoments, a: int, b: int) -> bool:
    one, other = moments.margins[a], moments.margins[b]
    rest = 1 - max(one.probabilities.max(), other.probabilities.max())
    block = moments.blocks[a, b]
    noise = np.sqrt(block.noise * _spread(one) * _spread(other) * max(moments.levels[a], moments.levels[b]))
    allowed = SAME * rest + SURE * noise
    if allowed > MOST * rest:
        return False
    table = np.outer(one.probabilities, other.probabilities) + one.basis @ block.observed @ other.basis.T
    same = min(table.max(axis=0).sum(), table.max(axis=1).sum())
    return bool(1 - same < allowed)


def _spread(margin: Margin) -> float:
    return float(np.mean(((margin.basis @ margin.shape) * margin.basis).sum(axis=1)))
