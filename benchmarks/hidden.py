"""Where a common cause is hidden: the default's PAG beside exact FCI's on the same rows, six networks.

    python -m benchmarks.hidden [--seeds 10] [--first 8800] [--epsilons 0.1 1] [--rows 100000]
                                [--networks cancer survey]

In each network the column of most children is hidden. Exact FCI has a G test at 0.01. F1 against the true PAG; the
default less exact FCI is what the last columns say, with the standard error over seeds.
"""

from __future__ import annotations

import argparse

import numpy as np

from dpcurate import Budget, Curator, networks
from dpcurate.graphs.pag_metrics import score_pag
from dpcurate.learn.measure_once import MeasureOnce
from dpcurate.learn.methods import PC
from dpcurate.networks.hidden import HiddenWorld

SIX = ("cancer", "earthquake", "survey", "asia", "sachs", "child")


def hidden(name: str) -> HiddenWorld:
    """A network without its column of most children, of equals the first."""
    network = networks.load(name)
    children = {node: sum(tail == node for tail, _ in network.dag.arrows) for node in network.dag.nodes}
    return network.hide(max(children, key=children.__getitem__))


def compared(world: HiddenWorld, seed: int, rows: int, epsilon: float) -> list[float]:
    """F1 of adjacencies and of arrowheads of exact FCI, and of the default."""
    table, found = world.sample(rows, seed=seed), []
    budgets = (PC(latent=True), Budget.unlimited()), (MeasureOnce(latent=True), Budget(epsilon=epsilon, delta=1e-10))
    for method, budget in budgets:
        learned = method.fit(Curator(table, world.schema, budget=budget, insecure_seed=seed))
        scores = score_pag(learned.graph, world.pag)
        found += [scores.adjacency.f1, scores.arrowheads.f1]
    return found


def line(name: str, epsilon: float, runs: np.ndarray) -> str:
    """Means, and differences with their errors."""
    error = np.std(runs[:, 2:] - runs[:, :2], axis=0, ddof=1) / np.sqrt(len(runs))
    fci, default = runs.mean(axis=0)[:2], runs.mean(axis=0)[2:]
    parts = [f"{d:.3f} | {e:.3f} | {d - e:+.3f} ± {s:.3f}" for d, e, s in zip(default, fci, error, strict=True)]
    return f"| {name} | {epsilon:g} | {' | '.join(parts)} |"


def main() -> None:
    """Print a table: of adjacencies, then of arrowheads, the default, exact FCI and the difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=8800)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 1])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--networks", nargs="+", default=SIX)
    options = parser.parse_args()
    print("| network | eps | adjacency | exact FCI | less | arrowheads | exact FCI | less |")
    print("|---|---|---|---|---|---|---|---|")
    for epsilon in options.epsilons:
        means = []
        for name in options.networks:
            seeds = range(options.first, options.first + options.seeds)
            runs = np.array([compared(hidden(name), seed, options.rows, epsilon) for seed in seeds])
            means.append(runs.mean(axis=0))
            print(line(name, epsilon, runs), flush=True)
        if len(means) > 1:
            print(line("**mean**", epsilon, np.array(means)), flush=True)


if __name__ == "__main__":
    main()
