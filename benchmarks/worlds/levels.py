"""Worlds of columns with levels: published networks, random tables, long skewed lists of levels."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from benchmarks.worlds.world import World
from dpcurate import networks
from dpcurate.graphs.graph import Dag
from dpcurate.networks import random_dag, random_network
from dpcurate.networks.network import Network, Variable
from dpcurate.schema import Categorical, Schema


def published(seed: int, rows: int) -> World:
    """The networks that the package ships, in turn."""
    return of_network("networks", seed, rows, networks.load(networks.SHIPPED[seed % len(networks.SHIPPED)]))


def of_network(family: str, seed: int, rows: int, network: Network) -> World:
    return World.of(family, seed, network.sample(rows, seed=seed), network.schema, network.dag)


def some_dag(seed: int, low: int, high: int) -> Dag:
    """Of `low` to `high` columns and a mean degree of 1.2 to 3."""
    draw = np.random.default_rng([seed, 1])
    columns = int(draw.integers(low, high + 1))
    return random_dag(columns, degree=float(draw.uniform(1.2, 3.0)), seed=seed)


def dirichlet(seed: int, rows: int) -> World:
    """Tables of 2 to 4 levels, from nearly deterministic to weak."""
    draw = np.random.default_rng([seed, 2])
    made = random_network(
        some_dag(seed, 5, 18), levels=(2, 4), concentration=float(np.exp(draw.uniform(-1.2, 1.6))), seed=seed
    )
    return of_network("dirichlet", seed, rows, made)


def sharp(seed: int, rows: int) -> World:
    return of_network("sharp", seed, rows, _expert(some_dag(seed, 5, 18), seed))


def wide(seed: int, rows: int) -> World:
    return of_network("wide", seed, rows, _expert(some_dag(seed, 20, 35), seed))


def hubs(seed: int, rows: int) -> World:
    """One column in twenty or so with many children."""
    draw = np.random.default_rng([seed, 3])
    columns = int(draw.integers(10, 25))
    dag = random_dag(columns, edges=columns + int(draw.integers(columns // 2)), kind="scale-free", seed=seed)
    return of_network("hubs of levels", seed, rows, _expert(dag, seed))


def _expert(dag: Dag, seed: int) -> Network:
    """Rare causes, noisy ors, functions with few errors and skewed tables, as expert systems have them."""
    draw = np.random.default_rng([seed, 5])
    sizes = {name: int(draw.choice([2, 2, 2, 3, 4])) for name in dag.nodes}
    tables = {name: _table(sizes[name], [sizes[p] for p in dag.parents(name)], draw) for name in dag.nodes}
    return Network(
        "expert",
        tuple(Variable(n, tuple(map(str, range(sizes[n]))), tuple(dag.parents(n)), tables[n]) for n in dag.nodes),
    )


def _table(size: int, parents: list[int], draw: np.random.Generator) -> np.ndarray:
    if not parents:
        return 0.99 * draw.dirichlet(np.full(size, draw.choice([0.3, 1, 3])))[None] + 0.01 / size
    return TABLES[draw.integers(len(TABLES))](size, parents, draw)


def _noisy_or(size: int, parents: list[int], draw: np.random.Generator) -> np.ndarray:
    levels = np.indices(parents).reshape(len(parents), -1).T / (np.array(parents) - 1)
    weights, leak = draw.uniform(0.1, 0.98, len(parents)), draw.choice([0.001, 0.01, 0.1])
    none = (1 - leak) * np.prod(1 - weights * levels, axis=1)
    return np.c_[none, (1 - none)[:, None] * draw.dirichlet(np.ones(size - 1))]


def _function(size: int, parents: list[int], draw: np.random.Generator) -> np.ndarray:
    error, rows = draw.choice([0.002, 0.02, 0.1]), math.prod(parents)
    return error / size + (1 - error) * np.eye(size)[draw.integers(0, size, rows)]


def _skewed(size: int, parents: list[int], draw: np.random.Generator) -> np.ndarray:
    return 0.99 * draw.dirichlet(np.full(size, draw.choice([0.2, 0.5, 1])), math.prod(parents)) + 0.01 / size


def _weak(size: int, parents: list[int], draw: np.random.Generator) -> np.ndarray:
    usual = draw.dirichlet(np.ones(size))
    return usual + draw.uniform(0.05, 0.5) * (draw.dirichlet(np.full(size, 0.5), math.prod(parents)) - usual)


TABLES = (_noisy_or, _function, _skewed, _weak)


def many_levels(seed: int, rows: int) -> World:
    """Columns of 2 to 100 skewed levels; each level of a parent has an effect of its own on each level of a child."""
    draw = np.random.default_rng([seed, 7])
    dag = some_dag(seed, 6, 16)
    sizes = {name: _size(draw) for name in dag.nodes}
    strength = float(draw.uniform(0.4, 1.5))
    codes: dict[str, np.ndarray] = {}
    for node in dag.order():
        scores = np.broadcast_to(np.log(skewed_margin(sizes[node], draw)), (rows, sizes[node])).copy()
        for parent in dag.parents(node):
            scores += (strength * draw.standard_normal((sizes[parent], sizes[node])))[codes[parent]]
        codes[node] = (scores + draw.gumbel(size=scores.shape)).argmax(axis=1)
    return World.of("many levels", seed, {n: codes[n].astype(str) for n in dag.nodes}, _schema(sizes, dag.nodes), dag)


def many_levels_wide(seed: int, rows: int) -> World:
    """35 to 50 columns of 2 to 100 levels, two of three of them numbers cut into classes, as experts' networks have."""
    draw = np.random.default_rng([seed, 9])
    dag = some_dag(seed, 35, 50)
    sizes = {name: _size(draw) for name in dag.nodes}
    strength = float(draw.uniform(0.4, 1.5))
    codes: dict[str, np.ndarray] = {}
    for node in dag.order():
        parents, size = dag.parents(node), sizes[node]
        margin = skewed_margin(size, draw)
        if draw.random() < 2 / 3:
            codes[node] = _classes([codes[p] / (sizes[p] - 1) for p in parents], rows, margin, draw)
            continue
        scores = np.broadcast_to(np.log(margin), (rows, size)).copy()
        for parent in parents:
            scores += (strength * draw.standard_normal((sizes[parent], size)))[codes[parent]]
        codes[node] = (scores + draw.gumbel(size=scores.shape)).argmax(axis=1)
    table = {n: codes[n].astype(str) for n in dag.nodes}
    return World.of("many levels, wide", seed, table, _schema(sizes, dag.nodes), dag)


def _classes(parents: list[np.ndarray], rows: int, margin: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """A number that parents in [0, 1] and noise make, cut into classes of these shares."""
    noise = float(np.exp(draw.uniform(np.log(0.05), np.log(1.0))))
    total = noise * draw.standard_normal(rows)
    for x in parents:
        turn = draw.uniform(0, 1) if draw.random() < 0.3 else 0.0
        effect = np.abs(x - turn)
        total = total + draw.uniform(0.3, 1.0) * draw.choice([-1, 1]) * effect / max(float(effect.std()), 1e-9)
    return np.searchsorted(np.quantile(total, np.cumsum(margin)[:-1]), total)


def independent(seed: int, rows: int) -> World:
    """The same columns without any link."""
    draw = np.random.default_rng([seed, 8])
    dag = Dag.of(tuple(f"X{i + 1}" for i in range(int(draw.integers(5, 41)))))
    sizes = {name: _size(draw) for name in dag.nodes}
    table = {n: draw.choice(sizes[n], size=rows, p=skewed_margin(sizes[n], draw)).astype(str) for n in dag.nodes}
    return World.of("independent levels", seed, table, _schema(sizes, dag.nodes), dag)


def skewed_margin(size: int, draw: np.random.Generator) -> np.ndarray:
    """From nearly even to a few usual levels and many rare ones; none below a tenth of an even share's hundredth."""
    share = draw.dirichlet(np.full(size, draw.choice([0.3, 1.0, 5.0])))
    return 0.999 * share + 0.001 / size


def _size(draw: np.random.Generator) -> int:
    """2 to 100 levels, as many of 2 to 10 as of 10 to 100."""
    return round(float(np.exp(draw.uniform(np.log(2), np.log(100)))))


def _schema(sizes: dict[str, int], names: tuple[str, ...]) -> Schema:
    return Schema(tuple(Categorical(name, tuple(map(str, range(sizes[name])))) for name in names))


FAMILIES: dict[str, Callable[[int, int], World]] = {
    "networks": published,
    "dirichlet": dirichlet,
    "sharp": sharp,
    "wide": wide,
    "hubs of levels": hubs,
    "many levels": many_levels,
    "many levels, wide": many_levels_wide,
    "independent levels": independent,
}
