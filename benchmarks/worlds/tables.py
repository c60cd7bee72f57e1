"""Worlds that look like people's tables: kinds mixed, cells missing, rows in clusters, near copies, hidden columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.worlds import levels, numbers
from benchmarks.worlds.world import World
from dpcurate.graphs.graph import Dag
from dpcurate.networks import random_dag, random_mixed
from dpcurate.schema import Categorical, Numeric, Schema

MARGINS = ("plain", "skewed", "cubic", "heavy")


def mixed(seed: int, rows: int, family: str = "mixed") -> World:
    """Numbers, ordinals and categories of 2 to 6 levels."""
    made = random_mixed(levels.some_dag(seed, 6, 16), margins=MARGINS, seed=seed)
    return World.of(family, seed, made.sample(rows, seed=seed), made.schema, made.dag)


def mixed_long(seed: int, rows: int) -> World:
    """Categories of 10 to 100 levels among numbers."""
    dag = levels.some_dag(seed, 6, 14)
    made = random_mixed(dag, ordinals=0.1, categories=0.35, levels=(10, 100), seed=seed)
    return World.of("mixed, long lists", seed, made.sample(rows, seed=seed), made.schema, made.dag)


def missing(seed: int, rows: int, rule: str) -> World:
    """A mixed world of which half of the columns have 2 to 20 % of their cells missing, by chance alone."""
    whole, draw = mixed(seed, rows), np.random.default_rng([seed, 21])
    table, columns = {}, []
    for column in whole.schema.columns:
        cells = np.array(whole.table[column.name], dtype=object)
        if draw.random() < 0.5:
            cells[draw.random(rows) < draw.uniform(0.02, 0.2)] = None
        own = rule == "own" and column.kind != "ordinal"  # an order has no place for a missing cell
        columns.append(replace(column, missing=rule if own else "drop"))
        is_number = isinstance(column, Numeric)
        table[column.name] = cells.astype(float) if is_number else cells
    assert whole.dag is not None
    return World.of(f"missing {rule}", seed, table, Schema(tuple(columns)), whole.dag)


def independent(seed: int, rows: int) -> World:
    """A mixed world without any link."""
    dag = Dag.of(tuple(f"X{i + 1}" for i in range(5 + seed % 26)))
    made = random_mixed(dag, levels=(2, 30), margins=(*MARGINS, "zeros"), seed=seed)
    return World.of("independent mixed", seed, made.sample(rows, seed=seed), made.schema, dag)


def clustered(seed: int, rows: int) -> World:
    """Numbers of which rows of one cluster (2 to 20 rows) share a part of the noise, each column its own part."""
    draw = np.random.default_rng([seed, 22])
    dag, size = levels.some_dag(seed, 6, 16), int(draw.integers(2, 21))
    cluster = np.arange(rows) // size

    def noise(draw: np.random.Generator, rows: int) -> np.ndarray:
        shared = draw.uniform(0.1, 0.7)
        own = draw.standard_normal(rows)
        return np.sqrt(shared) * draw.standard_normal(cluster[-1] + 1)[cluster] + np.sqrt(1 - shared) * own

    table = numbers.simulated(dag, draw, rows, noise=noise)
    return World.of("clustered", seed, table, numbers.schema_of(table, draw), dag)


def copies(seed: int, rows: int, of: str, differ: tuple[float, float]) -> World:
    """A world with copies of one to three columns; a copied cell that differs is another row's."""
    whole, draw = (levels.sharp if of == "levels" else numbers.FAMILIES["linear"])(seed, rows), _draw(seed, 23)
    table, columns, arrows = dict(whole.table), list(whole.schema.columns), set(whole.dag.arrows if whole.dag else ())
    for i in draw.choice(len(columns), size=int(draw.integers(1, 4)), replace=False):
        column = whole.schema.columns[i]
        cells, name = np.array(whole.table[column.name]), f"{column.name}_again"
        other = draw.random(rows) < draw.uniform(*differ)
        table[name] = np.where(other, cells[draw.permutation(rows)], cells)
        columns.append(replace(column, name=name))
        arrows.add((column.name, name))
    kind = "exact copies" if differ == EXACT else f"near copies of {of}"
    return World.of(kind, seed, table, Schema(tuple(columns)), Dag.of(tuple(table), arrows))


EXACT, NEAR = (0.0, 0.0), (0.01, 0.05)


def hidden(seed: int, rows: int, of: str, make: Callable[[int, int], World]) -> World:
    """A world of which 10 to 40 % of the columns are not in the table."""
    whole, draw = make(seed, rows), _draw(seed, 24)
    names = whole.columns
    count = min(max(1, round(draw.uniform(0.1, 0.4) * len(names))), len(names) - 3)
    assert whole.dag is not None
    unseen = [str(name) for name in draw.choice(names, size=count, replace=False)]
    return World.of(f"hidden, {of}", seed, whole.table, whole.schema, whole.dag, hidden=unseen)


def _draw(seed: int, purpose: int) -> np.random.Generator:
    return np.random.default_rng([seed, purpose])


def rare(seed: int, rows: int) -> World:
    """Binary columns whose second level has .3 to 5 % of the rows."""
    draw = _draw(seed, 25)
    dag = random_dag(8 + seed % 6, degree=2.0, seed=seed)
    codes: dict[str, np.ndarray] = {}
    for node in dag.order():
        p = np.full(rows, np.exp(draw.uniform(np.log(0.003), np.log(0.05))))
        for parent in dag.parents(node):
            p = np.where(codes[parent] == 1, np.maximum(p, draw.uniform(0.1, 0.6)), p)
        codes[node] = (draw.random(rows) < p).astype(int)
    schema = Schema(tuple(Categorical(name, ("0", "1")) for name in dag.nodes))
    return World.of("rare levels", seed, {n: codes[n].astype(str) for n in dag.nodes}, schema, dag)


FAMILIES: dict[str, Callable[[int, int], World]] = {
    "mixed": mixed,
    "mixed, long lists": mixed_long,
    "missing own": partial(missing, rule="own"),
    "missing drop": partial(missing, rule="drop"),
    "independent mixed": independent,
    "rare levels": rare,
    "clustered": clustered,
    "exact copies": partial(copies, of="levels", differ=EXACT),
    "near copies of levels": partial(copies, of="levels", differ=NEAR),
    "near copies of numbers": partial(copies, of="numbers", differ=NEAR),
    "hidden, linear": partial(hidden, of="linear", make=numbers.FAMILIES["linear"]),
    "hidden, dirichlet": partial(hidden, of="dirichlet", make=levels.dirichlet),
    "hidden, networks": partial(hidden, of="networks", make=levels.published),
    "hidden, mixtures": partial(hidden, of="mixtures", make=mixed),
}
