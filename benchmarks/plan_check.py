"""Whether the estimate before a run is right: what the default finds on tables whose truth is known, beside it.

    python -m benchmarks.plan_check [--networks FILE ...] [--most-columns 12] [--fit] [--write docs/choosing-epsilon.md]

Tables are the shipped networks, BIF files that are named, and random worlds of three kinds; each has a few cells of
rows and epsilon. Half of them are for fitting: `--fit` prints the curves of `learn/power.py` from these alone. The
others are for checking. What was run is kept in a file and not run again; a change of the method asks for a new file.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import command, tell
from benchmarks.pages.planning import curves, page
from dpcurate import Budget, Curator, networks
from dpcurate.benchmark.run_file import RunFile
from dpcurate.learn.methods import get
from dpcurate.planning.estimate import estimate
from dpcurate.result.threshold import Threshold, graph_at

ROWS, EPSILONS = (200, 1_000, 5_000, 20_000, 100_000), (0.03, 0.1, 0.3, 1.0, 5.0)
DELTA = 1e-10
HIDDEN = 2.5
CELLS = 8
"""Of each table, drawn by its name."""
KINDS = ("dirichlet", "mixed", "linear")
FITTED = ("cancer", "survey", "sachs", "insurance", "hailfinder", "hepar2")
"""Networks for fitting; all others are for checking."""
World = Any
"""Whatever has `dag`, `schema` and `sample`."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What a run found: the graph that a result shows, of edges more likely than not."""

    table: str
    fitted: bool
    rows: int
    epsilon: float
    columns: int
    effect: float
    """The smallest that would show, as estimated before the run."""
    counts: tuple[int, int, int]
    """Edges found that are there, found, there."""


def worlds() -> Iterator[tuple[str, int, Callable[[], World]]]:
    """Random tables by name, with their numbers of columns: made when they are needed."""
    draw = random.Random(18)
    for i in range(16):
        size, degree = draw.choice([5, 8, 12, 16, 20, 25]), draw.choice([1.5, 2, 2.5, 3])
        spread, levels = draw.choice([0.5, 1, 2]), draw.choice([(2, 2), (2, 4), (2, 6), (3, 5)])
        kind = draw.choice(["er", "scale-free"])
        yield f"dirichlet{i}", size, _dirichlet(size, degree, spread, levels, kind, 1800 + i)
    for i in range(16):
        size, degree = draw.choice([5, 8, 12, 16, 20, 25]), draw.choice([1.5, 2, 2.5, 3])
        weights = draw.choice([(0.1, 0.5), (0.2, 0.7), (0.3, 1.0)])
        shares, products = draw.choice([(0.25, 0.25), (0.5, 0.0), (0.1, 0.5), (0.4, 0.4)]), draw.choice([0, 0.5])
        yield f"mixed{i}", size, _mixed(size, degree, weights, shares, products, 1900 + i)
    for i in range(10):
        size, degree = draw.choice([5, 8, 12, 16, 20]), draw.choice([1.5, 2, 2.5, 3])
        yield f"linear{i}", size, _linear(size, degree, draw.choice([(0.1, 0.5), (0.2, 0.8), (0.3, 1.0)]), 2000 + i)


def _dirichlet(size: int, degree: float, spread: float, levels: Any, kind: Any, seed: int) -> Callable[[], World]:
    dag = networks.random_dag(size, degree=degree, kind=kind, seed=seed)
    return lambda: networks.random_network(dag, levels=levels, concentration=spread, seed=seed)


def _mixed(size: int, degree: float, weights: Any, shares: Any, products: float, seed: int) -> Callable[[], World]:
    dag = networks.random_dag(size, degree=degree, seed=seed)
    words = {"ordinals": shares[0], "categories": shares[1], "weights": weights, "products": products, "seed": seed}
    return lambda: networks.random_mixed(dag, **words)


def _linear(size: int, degree: float, weights: Any, seed: int) -> Callable[[], World]:
    dag = networks.random_dag(size, degree=degree, seed=seed)
    return lambda: networks.random_linear(dag, weights=weights, seed=seed).standardised()


def tables(paths: list[str], most: int) -> dict[str, World]:
    """All tables of at most so many columns."""
    loaded = [(Path(name).name.split(".")[0], networks.load(name)) for name in (*networks.SHIPPED, *paths)]
    named = {name: network for name, network in loaded if len(network.nodes) <= most}
    return named | {name: make() for name, size, make in worlds() if size <= most}


def cells(name: str) -> list[tuple[int, float]]:
    every = [(rows, epsilon) for rows in ROWS for epsilon in EPSILONS]
    random.Random(name).shuffle(every)
    return sorted(every[:CELLS])


def is_fitted(name: str) -> bool:
    """Whether the curves may be fitted to it: some networks, and every other random world of a kind."""
    kind = name.rstrip("0123456789")
    return int(name.removeprefix(kind)) % 2 == 0 if kind in KINDS else name in FITTED


def found(name: str, world: World, rows: int, epsilon: float) -> Cell:
    budget, schema = Budget(epsilon=epsilon, delta=DELTA), world.schema
    learned = get("auto").fit(Curator(world.sample(rows, seed=7), schema, budget=budget, insecure_seed=3))
    effect = estimate(schema, rows, budget=budget).effect
    drawn, true = graph_at(learned, Threshold()).edges, world.dag.edges
    counts = len(drawn & true), len(drawn), len(true)
    return Cell(name, is_fitted(name), rows, epsilon, len(schema.names), effect, counts)


def fill(results: RunFile[Cell], name: str, world: World) -> None:
    """What is missing of one table."""
    for rows, epsilon in cells(name):
        if (name, rows, epsilon) not in results and worth(world, rows, epsilon):
            results.keep(found(name, world, rows, epsilon))


def worth(world: World, rows: int, epsilon: float) -> bool:
    """Nothing is learnt from pure noise, in which a search takes long."""
    return estimate(world.schema, rows, budget=Budget(epsilon=epsilon, delta=DELTA)).effect < HIDDEN


def main() -> None:
    words = command(__doc__, results="speed/plan_check.jsonl", page="docs/choosing-epsilon.md")
    words.add_argument("--networks", nargs="+", default=[], metavar="FILE", help="BIF files beside those shipped")
    words.add_argument("--most-columns", type=int, default=12, help="leave wider tables out")
    words.add_argument("--fit", action="store_true", help="print the curves that fit the tables for fitting")
    args = words.parse_args()
    results = RunFile(args.results, Cell, lambda cell: (cell.table, cell.rows, cell.epsilon))
    for name, world in tables(args.networks, args.most_columns).items():
        fill(results, name, world)
        print(f"{name}: {sum(c.table == name for c in results.rows)} cells", flush=True)
    if args.fit:
        print(curves([c for c in results.rows if c.fitted]))
    tell(page(results.rows), args.write)


if __name__ == "__main__":
    main()
