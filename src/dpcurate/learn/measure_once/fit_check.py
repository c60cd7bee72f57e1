"""How well the graph that was found explains the released answers."""

from __future__ import annotations

import numpy as np

from dpcurate.learn.fit import Fit
from dpcurate.learn.measure_once.arrows import adjacency
from dpcurate.learn.measure_once.blocks import Columns
from dpcurate.learn.measure_once.decide import Decision
from dpcurate.learn.measure_once.family_search import FamilySearch
from dpcurate.learn.measure_once.hidden import left_over


def fit_of(decision: Decision, families: FamilySearch) -> Fit:
    """Count the pairs left apart that are likelier dependent than independent given the parents of the later column.

    The search forgives small dependences, because a regression may miss something. Here they count: many of them mean
    that the table has causes that the graph lacks.
    """
    strict = families.judging(families.evidence.without_misfit())

    def dependence(a: int, b: int, given: Columns) -> float:
        return strict.dependence(b, a, given)

    joined = adjacency(decision, families.constraints)
    left = np.triu(np.where(joined, -np.inf, left_over(decision, families, dependence)), 1)
    return Fit(
        columns=families.columns,
        edges=int(np.triu(joined).sum()),
        apart=int(np.isfinite(left[np.triu_indices(families.columns, 1)]).sum()),
        dependent=int((left > 0).sum()),
    )
