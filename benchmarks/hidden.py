"""Where common causes are hidden: the default's PAG beside exact FCI's on the same rows.

    python -m benchmarks.hidden [--seeds 10] [--first 8800] [--epsilons 0.1 1] [--rows 100000]
                                [--worlds cancer survey mixed] [--hidden 1]

Six networks, each without its column of most children (or so many of these), and random mixed worlds of 7 to 10
columns without one or two of these, another world for each seed. Exact FCI has a test at 0.01: G on levels, partial
correlations on mixed worlds. F1 against the true PAG; what is printed last of adjacencies and of arrowheads is the
default less exact FCI, with the standard error over seeds. Then the confounded pairs: of how many the default says that
one end is a tail, at 0.9 or more, and in how many exact FCI draws one.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np

from dpcurate import Budget, Curator, networks
from dpcurate.graphs.metrics import score
from dpcurate.learn.measure_once import MeasureOnce
from dpcurate.learn.methods import PC
from dpcurate.networks import random_dag, random_mixed
from dpcurate.networks.interventions import HiddenWorld
from dpcurate.result.fit import FitResult

WORLDS = ("cancer", "earthquake", "survey", "asia", "sachs", "child", "mixed")
ALPHA = 0.01
SURE = 0.9
"""A tail said with at least this probability counts."""


class Run(NamedTuple):
    """F1 of adjacencies and of arrowheads, and what was said of confounded pairs."""

    adjacency: float
    arrowheads: float
    tails: int
    confounded: int


def world_of(name: str, seed: int, hidden: int) -> HiddenWorld:
    """A network, or a mixed world of this seed, without its columns of most children, of equals the first."""
    if name == "mixed":
        world: Any = random_mixed(random_dag(7 + seed % 4, degree=2.0, seed=seed), seed=seed)
        hidden = 1 + seed % 2
    else:
        world = networks.load(name)
    dag = world.dag
    children = {node: sum(tail == node for tail, _ in dag.arrows) for node in dag.nodes}
    return world.hide(*sorted(dag.nodes, key=lambda node: -children[node])[:hidden])


def judged(learned: FitResult, world: HiddenWorld) -> Run:
    """Against the true PAG; a mark that exact FCI draws is taken to be sure."""
    scores, ancestral = score(learned.graph, world.pag), world.ancestral
    marks = learned.marks or {end: (float(mark == "tail"), 0.0) for end, mark in learned.graph.marks.items()}
    pairs = [pair for pair in map(tuple, map(sorted, ancestral.edges)) if ancestral.sign(*pair) == "<->"]
    tails = [any(marks.get(end, (0.0, 0.0))[0] >= SURE for end in (pair, pair[::-1])) for pair in pairs]
    return Run(scores.adjacency.f1, scores.arrowheads.f1, sum(tails), len(pairs))


def compared(name: str, seed: int, rows: int, epsilon: float, hidden: int) -> tuple[Run, Run]:
    """The default, and exact FCI."""
    world = world_of(name, seed, hidden)
    table = world.sample(rows, seed=seed)
    test = "partial-correlation" if name == "mixed" else "g"
    budgets = (
        (MeasureOnce(latent=True), Budget(epsilon=epsilon, delta=1e-10)),
        (PC(test=test, alpha=ALPHA, latent=True), Budget.unlimited()),
    )
    default, fci = (
        judged(method.fit(Curator(table, world.schema, budget=budget, insecure_seed=seed)), world)
        for method, budget in budgets
    )
    return default, fci


def line(name: str, epsilon: float, runs: np.ndarray) -> str:
    """Means, and differences with their errors; (runs, default and FCI, four figures)."""
    differences = runs[:, 0, :2] - runs[:, 1, :2]
    error = differences.std(axis=0, ddof=1) / np.sqrt(len(runs))
    default, fci = runs.mean(axis=0)[:, :2]
    parts = [f"{d:.3f} | {e:.3f} | {d - e:+.3f} ± {s:.3f}" for d, e, s in zip(default, fci, error, strict=True)]
    tails, confounded = runs[:, :, 2].sum(axis=0), runs[:, 0, 3].sum()
    return f"| {name} | {epsilon:g} | {' | '.join(parts)} | {tails[0]:.0f} | {tails[1]:.0f} | {confounded:.0f} |"


def main() -> None:
    """Print a table: of adjacencies, then of arrowheads, the default, exact FCI and the difference; and of tails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=8800)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--worlds", nargs="+", default=WORLDS, choices=WORLDS)
    parser.add_argument("--hidden", type=int, default=1)
    options = parser.parse_args()
    print("| world | eps | adjacency | exact FCI | less | arrowheads | exact FCI | less | tails | FCI | confounded |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for epsilon in options.epsilons:
        means = []
        for name in options.worlds:
            seeds = range(options.first, options.first + options.seeds)
            drawn = [compared(name, seed, options.rows, epsilon, options.hidden) for seed in seeds]
            runs = np.array(drawn, dtype=float)
            means.append([[*of[:2], *total] for of, total in zip(runs.mean(0), runs.sum(0)[:, 2:], strict=True)])
            print(line(name, epsilon, runs), flush=True)
        if len(means) > 1:
            print(line("**mean**", epsilon, np.array(means)), flush=True)


if __name__ == "__main__":
    main()
