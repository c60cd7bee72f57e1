"""Arrows of the default method: CPDAG F1 (by arcs) with directions by evidence, and by the search's own order.

    python -m benchmarks.arrows [--seeds 5] [--first 0] [--epsilons 0.1 1 5] [--networks survey strong weak]

Both direct the same edges, found from the same answers (100,000 rows, add-remove, delta = 1e-10). 'strong' and
'weak' are random networks, another one for each seed: 5 to 8 columns of 2 to 4 levels, mean degree 1.5 to 2.6, tables
from a Dirichlet of .5 to 1 ('strong') or of 2 to 8 ('weak').
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from dpcurate import Budget, Curator, networks
from dpcurate.graphs.metrics import arc_rates, skeleton_rates
from dpcurate.graphs.orient import dag_to_cpdag, orient
from dpcurate.learn.measure_once import MeasureOnce, method
from dpcurate.learn.measure_once.arrows import directed
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.decide import Decision, skeleton_of
from dpcurate.networks import SHIPPED, Network
from dpcurate.networks.worlds import random_dag, random_network

RANDOM = {"strong": (0.5, 1.0), "weak": (2.0, 8.0)}
ROWS = 100_000


def world(name: str, seed: int) -> Network:
    """A network by name or path, or the random one of this seed."""
    if name not in RANDOM:
        return networks.load(Path(name) if "." in name else name)
    draw = np.random.default_rng(seed)
    dag = random_dag(int(draw.integers(5, 9)), degree=float(draw.uniform(1.5, 2.6)), seed=seed)
    return random_network(dag, levels=(2, 4), concentration=float(draw.uniform(*RANDOM[name])), seed=seed)


@contextmanager
def searched() -> Iterator[list[Decision]]:
    """Keep what the search decided before its edges were directed."""
    kept: list[Decision] = []

    def spy(decision, *rest):
        kept.append(decision)
        return directed(decision, *rest)

    method.directed = spy
    try:
        yield kept
    finally:
        method.directed = directed


def run(name: str, epsilon: float, seed: int) -> tuple[float, float, float]:
    """Skeleton F1, and CPDAG F1 by the search's order and by evidence."""
    truth = world(name, seed)
    table = truth.sample(ROWS, seed=10_000 + seed)
    curator = Curator(table, truth.schema, budget=Budget(epsilon=epsilon, delta=1e-10), insecure_seed=seed)
    with searched() as kept:
        found = MeasureOnce().fit(curator)
    names, cpdag = truth.schema.names, dag_to_cpdag(truth.dag)
    constraints = Constraints.of(names, None)
    # Where no triples were bought the search's order stands.
    before = orient(skeleton_of(names, constraints, kept[0])) if kept else found.graph
    graphs = before, found.graph
    return skeleton_rates(found.graph, cpdag).f1, *(arc_rates(graph, cpdag).f1 for graph in graphs)


def line(name: str, epsilon: float, runs: np.ndarray) -> str:
    """Means and the standard errors of each and of their difference."""
    errors = [np.std(x, ddof=1) / np.sqrt(len(runs)) for x in (*runs.T[1:], runs[:, 2] - runs[:, 1])]
    skeleton, before, after = runs.mean(axis=0)
    return (
        f"{name:11} {epsilon:5} skeleton {skeleton:.3f}  order {before:.3f} ± {errors[0]:.3f}"
        f"  evidence {after:.3f} ± {errors[1]:.3f}  difference {after - before:+.3f} ± {errors[2]:.3f}"
    )


def main() -> None:
    """Print a line for each network and epsilon, and the mean of the networks given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1.0, 5.0])
    parser.add_argument("--networks", nargs="+", default=list(SHIPPED))
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    for epsilon in given.epsilons:
        every = np.array([[run(name, epsilon, seed) for seed in seeds] for name in given.networks])
        for name, runs in zip(given.networks, every, strict=True):
            print(line(name, epsilon, runs), flush=True)
        print(line("mean", epsilon, every.mean(axis=0)), flush=True)


if __name__ == "__main__":
    main()
