"""Worlds with a known truth on which confidence is fitted and checked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpcurate import networks
from dpcurate.graphs.graph import Dag
from dpcurate.networks import random_dag, random_linear, random_mixed, random_network
from dpcurate.networks.network import Network, Variable
from dpcurate.schema import Schema


@dataclass(frozen=True)
class World:
    """Rows on demand, their schema and the truth."""

    sample: Callable
    schema: Schema
    dag: Dag


def world(name: str, seed: int) -> World:
    """A random world of a kind, or a network by its name or file."""
    draw = np.random.default_rng([seed, 1])
    if name not in KINDS:
        known = networks.load(Path(name) if "." in name else name)
        return World(known.sample, known.schema, known.dag)
    columns, make = KINDS[name]
    dag = random_dag(int(draw.integers(*columns)), degree=float(draw.uniform(1.2, 3.0)), seed=seed)
    made = make(dag, draw, seed)
    return World(made.sample, made.schema, made.dag)


def _dirichlet(dag: Dag, draw, seed: int) -> Network:
    """Tables of 2 to 4 levels, from nearly deterministic to weak."""
    return random_network(dag, levels=(2, 4), concentration=float(np.exp(draw.uniform(-1.2, 1.6))), seed=seed)


def _linear(dag: Dag, draw, seed: int):
    return random_linear(dag, weights=(float(draw.uniform(0.1, 0.4)), 1.0), seed=seed).standardised()


def _mixed(dag: Dag, _, seed: int):
    return random_mixed(dag, seed=seed)


def sharp(dag: Dag, _, seed: int) -> Network:
    """Rare causes, noisy ors, functions with few errors and skewed tables, as expert systems have them."""
    draw = np.random.default_rng([seed, 5])
    sizes = {name: int(draw.choice([2, 2, 2, 3, 4])) for name in dag.nodes}
    tables = {name: _table(sizes[name], [sizes[p] for p in dag.parents(name)], draw) for name in dag.nodes}
    return Network(
        "sharp",
        tuple(Variable(n, tuple(map(str, range(sizes[n]))), tuple(dag.parents(n)), tables[n]) for n in dag.nodes),
    )


def _table(size: int, parents: list[int], draw) -> np.ndarray:
    if not parents:
        return 0.99 * draw.dirichlet(np.full(size, draw.choice([0.3, 1, 3])))[None] + 0.01 / size
    return TABLES[draw.integers(len(TABLES))](size, parents, draw)


def _noisy_or(size: int, parents: list[int], draw) -> np.ndarray:
    levels = np.indices(parents).reshape(len(parents), -1).T / (np.array(parents) - 1)
    weights, leak = draw.uniform(0.1, 0.98, len(parents)), draw.choice([0.001, 0.01, 0.1])
    none = (1 - leak) * np.prod(1 - weights * levels, axis=1)
    return np.c_[none, (1 - none)[:, None] * draw.dirichlet(np.ones(size - 1))]


def _function(size: int, parents: list[int], draw) -> np.ndarray:
    error, rows = draw.choice([0.002, 0.02, 0.1]), math.prod(parents)
    return error / size + (1 - error) * np.eye(size)[draw.integers(0, size, rows)]


def _skewed(size: int, parents: list[int], draw) -> np.ndarray:
    return 0.99 * draw.dirichlet(np.full(size, draw.choice([0.2, 0.5, 1])), math.prod(parents)) + 0.01 / size


def _weak(size: int, parents: list[int], draw) -> np.ndarray:
    usual = draw.dirichlet(np.ones(size))
    return usual + draw.uniform(0.05, 0.5) * (draw.dirichlet(np.full(size, 0.5), math.prod(parents)) - usual)


TABLES = (_noisy_or, _function, _skewed, _weak)
KINDS = {
    "dirichlet": ((5, 19), _dirichlet),
    "sharp": ((5, 19), sharp),
    "linear": ((6, 16), _linear),
    "mixed": ((6, 16), _mixed),
    "wide": ((20, 36), sharp),
}
"""Numbers of columns and how they are filled."""
