"""Worlds of numbers: straight and bent links, products, heavy tails, rounded and zero-inflated columns, hubs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from benchmarks.worlds.levels import some_dag
from benchmarks.worlds.world import World
from dpcurate.graphs.graph import Dag
from dpcurate.networks import random_dag
from dpcurate.schema import Numeric, Schema

Rng = np.random.Generator
Numbers = dict[str, np.ndarray]
Effect = Callable[[Rng, np.ndarray], np.ndarray]
"""Of one parent, with what is random about it drawn from the generator."""
Noise = Callable[[Rng, int], np.ndarray]


def straight(_: Rng, x: np.ndarray) -> np.ndarray:
    return x


def monotone(draw: Rng, x: np.ndarray) -> np.ndarray:
    shapes = (lambda x: np.tanh(2 * x), lambda x: np.exp(np.minimum(x, 3)), lambda x: np.clip(x, -3, 3) ** 3)
    return shapes[draw.integers(len(shapes))](x)


def bent(draw: Rng, x: np.ndarray) -> np.ndarray:
    """Not monotone; three of four have no straight part."""
    shapes = (np.square, lambda x: np.sin(2 * x), np.abs, lambda x: np.cos(2 * x))
    return shapes[draw.integers(len(shapes))](x)


def gaussian(draw: Rng, rows: int) -> np.ndarray:
    return draw.standard_normal(rows)


def t3(draw: Rng, rows: int) -> np.ndarray:
    return draw.standard_t(3, rows) / np.sqrt(3)


def standardised(x: np.ndarray) -> np.ndarray:
    spread = float(x.std())
    return (x - x.mean()) / (spread if spread > 0 else 1.0)


def weight(draw: Rng) -> float:
    return float(draw.uniform(0.3, 1.0) * draw.choice([-1, 1]))


def added(draw: Rng, parents: Sequence[np.ndarray], effect: Effect) -> np.ndarray | float:
    """The sum of the parents' effects, each of a weight of .3 to 1."""
    return sum((weight(draw) * standardised(effect(draw, x)) for x in parents), 0.0)


def multiplied(draw: Rng, parents: Sequence[np.ndarray], effect: Effect) -> np.ndarray | float:
    """Products of parents two by two; one that is left over adds straight."""
    pairs = [parents[i] * parents[i + 1] for i in range(0, len(parents) - 1, 2)]
    left = [parents[-1]] if len(parents) % 2 else []
    return added(draw, [*pairs, *left], effect)


def simulated(
    dag: Dag, draw: Rng, rows: int, effect: Effect = straight, noise: Noise = gaussian, combined: Callable = added
) -> Numbers:
    """Parents first; every column has variance 1."""
    values: Numbers = {}
    for node in dag.order():
        signal = combined(draw, [values[p] for p in dag.parents(node)], effect)
        values[node] = standardised(signal + noise(draw, rows))
    return {node: values[node] for node in dag.nodes}


def schema_of(table: Numbers, draw: Rng) -> Schema:
    """Bounds around all values, up to three times as wide as need be."""
    return Schema(tuple(_declared(name, x, float(draw.uniform(0, 1))) for name, x in table.items()))


def _declared(name: str, x: np.ndarray, slack: float) -> Numeric:
    low, high = float(x.min()), float(x.max())
    return Numeric(name, low - slack * (high - low) - 1e-3, high + slack * (high - low) + 1e-3)


def _world(
    name: str, seed: int, rows: int, dag: Dag | None = None, shown: Callable | None = None, **kinds: object
) -> World:
    """`shown` is what the table has of a value, by the column's place."""
    draw = np.random.default_rng([seed, 11])
    dag = dag or some_dag(seed, 6, 16)
    table = simulated(dag, draw, rows, **kinds)  # type: ignore[arg-type]
    if shown is not None:
        table = {name: shown(i, x) for i, (name, x) in enumerate(table.items())}
    return World.of(name, seed, table, schema_of(table, draw), dag)


def dense(seed: int, rows: int) -> World:
    dag = random_dag(8 + seed % 8, degree=4.0, seed=seed)
    return _world("dense linear", seed, rows, dag)


def hubs(seed: int, rows: int) -> World:
    """Some common causes of many columns, or with arrows turned round some effects of many."""
    columns = 10 + seed % 12
    dag = random_dag(columns, edges=columns + seed % columns // 2, kind="scale-free", seed=seed)
    if seed % 2:
        dag = Dag.of(dag.nodes, [(b, a) for a, b in dag.arrows])
    return _world("hubs of numbers", seed, rows, dag)


def products(seed: int, rows: int) -> World:
    """Every column after the first few is the product of two others, and noise."""
    draw = np.random.default_rng([seed, 12])
    columns = 6 + seed % 9
    order = [f"X{i + 1}" for i in draw.permutation(columns)]
    arrows = [(order[p], order[i]) for i in range(3, columns) for p in draw.choice(i, 2, replace=False)]
    dag = Dag.of(tuple(f"X{i + 1}" for i in range(columns)), arrows)
    return _world("products", seed, rows, dag, combined=multiplied)


def independent(seed: int, rows: int) -> World:
    """Of all margins, without any link."""
    dag = Dag.of(tuple(f"X{i + 1}" for i in range(5 + seed % 36)))
    return _world("independent numbers", seed, rows, dag, shown=_any_margin)


def zeros(seed: int, rows: int) -> World:
    """Counts with many zeros, which act on their effects as they are shown."""
    draw = np.random.default_rng([seed, 13])
    dag = some_dag(seed, 6, 16)
    values: Numbers = {}
    for node in dag.order():
        signal = added(draw, [standardised(np.log1p(values[p])) for p in dag.parents(node)], straight)
        counts = np.floor(np.exp(1.2 * standardised(signal + draw.standard_normal(rows))))
        values[node] = np.maximum(counts - draw.integers(0, 2), 0)
    table = {node: values[node] for node in dag.nodes}
    return World.of("zeros", seed, table, schema_of(table, draw), dag)


def _lognormal(_: int, x: np.ndarray) -> np.ndarray:
    return np.exp(x)


def _bent_margin(place: int, x: np.ndarray) -> np.ndarray:
    return (np.exp, lambda x: x**3, lambda x: np.sinh(1.5 * x))[place % 3](x)


def _rounded(place: int, x: np.ndarray) -> np.ndarray:
    """To a tenth up to a half of a standard deviation."""
    step = (0.1, 0.25, 0.5)[place % 3]
    return np.round(x / step) * step


def _any_margin(place: int, x: np.ndarray) -> np.ndarray:
    return (lambda x: x, np.exp, lambda x: x**3, np.round, lambda x: np.maximum(np.floor(np.exp(x)), 1))[place % 5](x)


FAMILIES: dict[str, Callable[[int, int], World]] = {
    "linear": partial(_world, "linear"),
    "dense linear": dense,
    "monotone": partial(_world, "monotone", effect=monotone),
    "margins": partial(_world, "margins", shown=_bent_margin),
    "bent": partial(_world, "bent", effect=bent),
    "products": products,
    "t3": partial(_world, "t3", noise=t3),
    "lognormal": partial(_world, "lognormal", shown=_lognormal),
    "rounded": partial(_world, "rounded", shown=_rounded),
    "zeros": zeros,
    "hubs of numbers": hubs,
    "independent numbers": independent,
}
