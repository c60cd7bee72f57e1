"""What is bought last, where noise is small: all contrasts of the families still possible, for saturated regressions.

With pairs and triples alone a regression on three columns lacks terms, and what they would have explained looks like
an edge; the less noise there is, the surer. The contrasts of all subsets of a column and its neighbours hold every
term of every regression by which an edge of that column can be explained away.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import prod

import numpy as np

from dpcurate._typing import BoolArray
from dpcurate.learn.measure_once.blocks import Columns, sorted_set, subsets
from dpcurate.learn.measure_once.contrast_evidence import ContrastEvidence
from dpcurate.learn.measure_once.decide import Decision

LARGEST = 5
"""Columns in a contrast: a family of four parents."""
ROWS_A_CELL = 50.0
"""A contrast of more cells than rows / this says little that sampling does not drown, and costs time."""
UNSETTLED = -2.0
"""From this log evidence on a pair that lacks terms may be taken for an edge."""


def family_sets(decision: Decision, evidence: ContrastEvidence, linked: BoolArray) -> list[Columns]:
    """Sets not yet released, of columns that are or may be neighbours and of pairs that lack terms."""
    moments = evidence.moments
    wanted = {*_of_neighbours(linked), *_of_pairs(decision, evidence)}
    most = moments.rows / ROWS_A_CELL
    return sorted(
        u
        for u in wanted
        if u not in moments.blocks
        and prod(moments.levels[a] for a in u) <= most
        and all(moments.measured(*pair) for pair in combinations(u, 2))
    )


def _of_neighbours(linked: BoolArray) -> Iterator[Columns]:
    """Subsets of every column with its neighbours."""
    for column, around in enumerate(linked):
        members = sorted_set(column, *(int(x) for x in np.flatnonzero(around)))
        for size in range(3, LARGEST + 1):
            yield from combinations(members, size)


def _of_pairs(decision: Decision, evidence: ContrastEvidence) -> Iterator[Columns]:
    """Terms of the regressions by which the parents of a column should explain its other dependences, and do not."""
    for column, parents in enumerate(decision.parents):
        if len(parents) > 1:
            row = evidence.row(column, parents)  # 0 for the column itself, whose terms are needed too
            for x in (int(x) for x in np.flatnonzero(row > UNSETTLED)):
                yield from (sorted_set(x, *u) for u in subsets(parents) if len(u) > 1 and x not in u)
