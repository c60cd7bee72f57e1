"""Questions to a fitted network, and to many networks that fit as well: evidence, interventions, and their errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.graphs.graph import Dag
from dpcurate.networks.network import Factor, Network, joint

DRAW = "\0draw"
"""The axis of draws; no column can be called so."""


def factors(network: Network, tables: Mapping[str, FloatArray] | None = None) -> dict[str, Factor]:
    """The factor of every column; of `tables` (draws, combinations, levels), where given, with an axis of draws."""
    sizes = {v.name: len(v.levels) for v in network.variables}
    made: dict[str, Factor] = {}
    for v in network.variables:
        names, shape = (*v.parents, v.name), [sizes[x] for x in (*v.parents, v.name)]
        if tables is None:
            made[v.name] = names, v.probabilities.reshape(shape)
        elif v.name in tables:
            made[v.name] = (DRAW, *names), tables[v.name].reshape(-1, *shape)
    return made


def upstream(dag: Dag, names: Iterable[str], without: str | None = None) -> set[str]:
    """These columns and all that lead to them; `without` has no causes, being set from outside."""
    needed = set(names)
    for name in reversed(dag.order()):
        if name in needed and name != without:
            needed.update(dag.parents(name))
    return needed


def given(network: Network, evidence: Mapping[str, int], outcome: str) -> FloatArray:
    """The distribution of a column in rows of this evidence, by places of levels."""
    needed = upstream(network.dag, [outcome, *evidence])
    some = [_at(f, evidence) for name, f in factors(network).items() if name in needed]
    return joint(some, (outcome,))


def _at(factor: Factor, evidence: Mapping[str, int]) -> Factor:
    names, table = factor
    index = tuple(evidence.get(name, slice(None)) for name in names)
    return tuple(name for name in names if name not in evidence), np.asarray(table[index])


def if_set(made: Mapping[str, Factor], dag: Dag, cause: str, outcome: str) -> FloatArray:
    """P(outcome | do(cause)), a row for each level of the cause; with draws a table for each.

    A column that is set has no causes: the product of all factors but its own, summed over the other columns.
    """
    needed = upstream(dag, [outcome], without=cause) - {cause}
    some = [made[name] for name in dag.nodes if name in needed]
    drawn = (DRAW,) if any(DRAW in names for names, _ in some) else ()
    return joint(some, (*drawn, cause, outcome))


def leads(dag: Dag, cause: str, outcome: str) -> bool:
    """Whether a directed path goes from one to the other."""
    return cause in upstream(dag, [outcome])
