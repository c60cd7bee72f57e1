"""Worlds that fit a public schema: what a table like this might hold, for planning."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcurate._typing import FloatArray
from dpcurate.graphs.graph import Dag
from dpcurate.networks.network import Network, Variable, stream
from dpcurate.networks.worlds import random_dag
from dpcurate.schema import Column, Numeric, Schema
from dpcurate.schema.column_order import tiers_of

DEGREE = (1.6, 3.2)
"""Mean number of neighbours of a column, drawn for each world; published networks have 1.6 to 3.9."""
SKEW = 0.5
"""Concentration of the distributions of unordered columns: below 1 some levels are rare."""
WEIGHT = (0.3, 1.0)
"""How far an unordered column follows its parents at most: 0 not at all, 1 wholly. Drawn for each world."""
STRENGTH = (0.4, 1.2)
"""How strongly an ordered column follows a parent at most, in standard deviations of its own noise; the same draw."""
LEAST = 0.25
"""The weakest column or effect of a world, over its strongest."""
GOLDEN = (math.sqrt(5) - 1) / 2
MOST_CELLS = 1_000_000
STEPS = 16
"""A number without bins is drawn in so many steps of equal probability, and normally within them."""
SPREAD = 4.0
"""Its bounds are so many standard deviations from its mean."""


def edge_count(columns: int, degree: float) -> int:
    """Edges of a graph of this mean degree; at most all pairs."""
    return min(round(columns * degree / 2), columns * (columns - 1) // 2)


def _between(ends: tuple[float, float], place: float) -> float:
    return ends[0] + (ends[1] - ends[0]) * place


def random_world(schema: Schema, *, seed: int) -> Network:
    """A random graph over the schema's columns with random tables of the schema's own level counts.

    Unordered columns have a usual distribution and another for each combination of parents, mixed by WEIGHT (all
    uniform on the simplex); ordered and numeric ones are cut from a normal that the parents shift by STRENGTH, numbers
    without bins into STEPS. An arrow is left out where a table would have more than a million cells.
    How strong the effects of a world are spreads evenly over seeds that follow each other, so that few worlds hold
    weak and strong ones.
    """
    names, strength = schema.names, seed * GOLDEN % 1
    source = stream(seed, "planned world")
    dag = random_dag(len(names), edges=edge_count(len(names), source.uniform(*DEGREE)), seed=seed)
    own = dict(zip(dag.nodes, names, strict=True))
    if schema.order:
        dag = _in_order(dag, own, schema, seed)
    variables = []
    for node, column in zip(dag.nodes, schema.columns, strict=True):
        parents = _fitting(column, [schema[own[p]] for p in dag.parents(node)])
        levels = tuple(str(i) for i in range(_size(column)))
        variables.append(
            Variable(column.name, levels, tuple(p.name for p in parents), _table(column, parents, strength, source))
        )
    return Network("planned", tuple(variables))


def _in_order(dag: Dag, own: Mapping[str, str], schema: Schema, seed: int) -> Dag:
    """The same pairs, with arrows along a random succession in which no column comes before one of an earlier group."""
    places = stream(seed, "planned order").permutation(len(own)).tolist()
    place = dict(zip(own, places, strict=True))
    tiers = tiers_of(schema.order, schema.names)
    tier = {name: i for i, group in enumerate(tiers) for name in group}
    ordered = [node for node in own if own[node] in tier]
    taken = sorted(place[node] for node in ordered)
    ordered.sort(key=lambda node: (tier[own[node]], place[node]))
    place |= dict(zip(ordered, taken, strict=True))
    return Dag(dag.nodes, frozenset((a, b) if place[a] < place[b] else (b, a) for a, b in dag.arrows))


def _size(column: Column) -> int:
    return column.size if column.has_levels else STEPS


def _fitting(column: Column, parents: list[Column]) -> list[Column]:
    while math.prod(_size(c) for c in (column, *parents)) > MOST_CELLS:
        parents = parents[:-1]
    return parents


def _table(column: Column, parents: list[Column], strength: float, source: np.random.Generator) -> FloatArray:
    """One row for each combination of the parents' levels, the last parent fastest."""
    combinations = math.prod(_size(p) for p in parents)
    if column.kind == "categorical":
        skew = np.full(column.size, SKEW)
        usual, drawn = source.dirichlet(skew), source.dirichlet(skew, combinations)
        return np.asarray(usual + _drawn(WEIGHT, strength, source) * (drawn - usual))
    from scipy.special import ndtr, ndtri

    shift = np.zeros(1)
    for parent in parents:
        weight = _drawn(STRENGTH, strength, source) * source.choice((-1.0, 1.0))
        shift = (shift[:, None] + weight * _places(parent, source)).ravel()
    spread = math.sqrt(1 + float(shift.var()))
    size = _size(column)
    cuts = spread * ndtri(np.arange(1, size) / size)
    below = ndtr(cuts - shift[:, None])
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


def _drawn(most: tuple[float, float], strength: float, source: np.random.Generator) -> float:
    """The strength of one column or effect in a world of this strength."""
    largest = _between(most, strength)
    return float(source.uniform(LEAST * largest, largest))


def _places(column: Column, source: np.random.Generator) -> FloatArray:
    """Where the levels stand on a scale of mean 0 and variance 1: in order if they have one."""
    size = _size(column)
    if column.kind == "categorical":
        place = source.standard_normal(size)
    else:
        place = np.arange(size, dtype=float) if column.has_levels else _normal((np.arange(size) + 0.5) / size)
    return np.asarray((place - place.mean()) / place.std())


def simulate(schema: Schema, network: Network, rows: int, *, seed: int) -> dict[str, npt.NDArray[Any]]:
    """Rows of a world as a table that fits the schema; a person has as many rows as are allowed."""
    codes = network.codes(rows, seed=seed)
    source = stream(seed, "planned rows")
    table: dict[str, npt.NDArray[Any]] = {}
    for place, column in enumerate(schema.columns):
        table[column.name] = _cells(column, codes[:, place], source)
    if schema.person is not None:
        table[schema.person.column] = np.arange(rows) // schema.person.rows
    return table


def _cells(column: Column, codes: npt.NDArray[Any], source: np.random.Generator) -> npt.NDArray[Any]:
    if not isinstance(column, Numeric):
        cells = {place: text for text, place in reversed(column.spellings)}
        return np.array([cells[place] for place in range(column.size)], dtype=object).take(codes)
    if not column.has_levels:
        place = _normal((codes + source.random(len(codes))) / STEPS) / SPREAD
        return np.asarray((column.low + column.high) / 2 + (column.high - column.low) / 2 * place)
    ends = np.array((column.low, *column.edges, column.high))
    return np.asarray(ends[codes] + source.random(len(codes)) * np.diff(ends)[codes])


def _normal(part: FloatArray) -> FloatArray:
    """Where a normal has this part of its mass below, kept within SPREAD."""
    from scipy.special import ndtri

    return np.clip(ndtri(part), -SPREAD, SPREAD)
