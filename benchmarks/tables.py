"""The default on tables that are not the six networks: numbers, mixtures, long lists of levels.

    python -m benchmarks.tables [--seeds 10] [--first 1000] [--only linear mixed] [--epsilons 0.1 1 5]

Skeleton F1, mean and standard error over fresh seeds of world, data and noise (add-remove, delta = 1e-10); 'none'
is the same method without noise, 'pc' exact PC with partial correlations, where it can read the table. Of the best-f1
cut; in brackets the mean of what `discover` draws, pairs from P(edge) = 1/2 on.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpcurate import Budget, Curator
from dpcurate.errors import DpcurateError
from dpcurate.graphs.metrics import skeleton_rates
from dpcurate.learn.measure_once import MeasureOnce
from dpcurate.learn.methods import PC
from dpcurate.networks import random_dag, random_linear, random_mixed
from dpcurate.result.threshold import Threshold, graph_at
from dpcurate.schema import Numeric, Schema


@dataclass(frozen=True)
class Drawn:
    """A table with its schema and the truth."""

    table: dict
    schema: Schema
    dag: object


def linear(columns: int, rows: int, seed: int, *, wide: float = 1.0, bent: bool = False) -> Drawn:
    """Linear Gaussian, weights .3 to 1, standardised, degree 2.5; exp and cubes of the columns in turn if bent."""
    dag = random_dag(columns, degree=2.5, seed=seed)
    world = random_linear(dag, weights=(0.3, 1.0), seed=seed).standardised()
    table = world.sample(rows, seed=seed)
    if bent:
        table = {name: np.exp(x) if i % 2 else x**3 for i, (name, x) in enumerate(table.items())}
        ends = {name: (float(x.min()), float(x.max())) for name, x in table.items()}
    else:
        ends = dict.fromkeys(table, (-4.0 * wide, 4.0 * wide))
    return Drawn(table, Schema(tuple(Numeric(name, *ends[name]) for name in table)), dag)


def mixed(columns: int, rows: int, seed: int, **options) -> Drawn:
    world = random_mixed(random_dag(columns, degree=2.5, seed=seed), seed=seed, **options)
    return Drawn(world.sample(rows, seed=seed), world.schema, world.dag)


WORLDS: dict[str, Callable[[int], list[Drawn]]] = {
    "linear, 100,000 rows": lambda s: [linear(d, 100_000, s) for d in (8, 15)],
    "linear, 10,000 rows": lambda s: [linear(d, 10_000, s) for d in (8, 15)],
    "linear, bounds ten times too wide": lambda s: [linear(d, 100_000, s, wide=10) for d in (8, 15)],
    "linear, exp and cubes": lambda s: [linear(d, 100_000, s, bent=True) for d in (8, 15)],
    "mixed, 12 columns": lambda s: [mixed(12, 100_000, s)],
    "mixed, heavy tails, zeros, products": lambda s: [
        mixed(12, 100_000, s, margins=("heavy", "zeros", "cubic"), products=0.5)
    ],
    "mixed, 12 columns, 10,000 rows": lambda s: [mixed(12, 10_000, s)],
    "categories of 40 to 100 levels among numbers": lambda s: [
        mixed(10, 100_000, s, ordinals=0.0, categories=0.3, levels=(40, 100))
    ],
}


def f1(drawn: Drawn, epsilon: float | None, seed: int) -> tuple[float, float]:
    """At best-f1 and at 1/2; `epsilon` None is without noise, 0 exact PC."""
    budget = Budget(epsilon=epsilon, delta=1e-10) if epsilon else Budget.unlimited()
    curator = Curator(drawn.table, drawn.schema, budget=budget, insecure_seed=seed)
    try:
        found = PC(test="partial-correlation", alpha=0.01) if epsilon == 0 else MeasureOnce()
        learned = found.fit(curator)
    except DpcurateError:
        return float("nan"), float("nan")
    return skeleton_rates(learned.graph, drawn.dag).f1, skeleton_rates(graph_at(learned, Threshold()), drawn.dag).f1


def told(values: np.ndarray) -> str:
    best, half = values.T
    return f"{best.mean():.3f} ± {best.std() / np.sqrt(len(best)):.3f} ({half.mean():.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--only", nargs="*", default=[], help="worlds whose names begin so")
    parser.add_argument("--epsilons", nargs="*", type=float, default=[0.1, 1, 5])
    asked = parser.parse_args()
    print("| worlds |", " | ".join(f"eps {e:g}" for e in asked.epsilons), "| none | pc |")
    print("|---" * (len(asked.epsilons) + 3) + "|")
    for name, draw in WORLDS.items():
        if asked.only and not name.startswith(tuple(asked.only)):
            continue
        seen: dict[float | None, list[tuple[float, float]]] = {e: [] for e in (*asked.epsilons, None, 0)}
        for seed in range(asked.first, asked.first + asked.seeds):
            for drawn in draw(seed):
                for epsilon, values in seen.items():
                    values.append(f1(drawn, epsilon, seed))
        cells = [told(np.array(values)) for values in seen.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
