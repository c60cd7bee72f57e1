"""Statistics and tuning of the constraint-based family on the six networks: skeleton F1 against the true network.

    python -m benchmarks.statistics [--seeds 5] [--epsilons 0.1 1 5] [--threshold 0.05] [--only curate-pc]

Proved forms, add-remove, delta = 1e-10, a public row count, fresh seeds of data and noise. `tuned` chooses
threshold and margins from released answers; what a tuned clip brings is in benchmarks/score.py.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from dpcurate import Budget, Curator, networks
from dpcurate.graphs.metrics import skeleton_rates
from dpcurate.learn.methods import CuratePC, Method, PrivPC

SIX = ("cancer", "earthquake", "survey", "asia", "sachs", "child")
NAMES: Any = ("tau", "g", "chi-squared", "spearman")


def variants(level: float) -> dict[str, Method]:
    """Every row of the table."""
    found: dict[str, Method] = {}
    for name in NAMES:
        plain = CuratePC(max_order=2, statistic=name, threshold=level)
        found[f"priv-pc, {name}"] = PrivPC(max_order=2, statistic=name, threshold=level)
        found[f"curate-pc, {name}"] = plain
        found[f"curate-pc, {name}, tuned"] = replace(plain, tune="released")
    return dict(sorted(found.items()))


@cache
def table(network: str, rows: int, seed: int) -> Any:
    return networks.load(network).sample(rows, seed=20_000 + seed)


def f1(method: Method, network: str, rows: int, epsilon: float, seed: int) -> float:
    world = networks.load(network)
    schema, budget = replace(world.schema, rows=rows), Budget(epsilon=epsilon, delta=1e-10)
    curator = Curator(table(network, rows, seed), schema, budget=budget, insecure_seed=seed)
    return skeleton_rates(method.fit(curator).graph, world.dag).f1


def line(name: str, method: Method, epsilon: float, options: argparse.Namespace) -> str:
    seeds = range(options.seeds)
    scores = np.array([[f1(method, w, options.rows, epsilon, s) for s in seeds] for w in options.networks])
    error = np.sqrt((scores.std(axis=1) ** 2).sum() / options.seeds) / len(scores)
    cells = "".join(f" {mean:.2f} |" for mean in scores.mean(axis=1))
    return f"| {name} | {epsilon:g} |{cells} **{scores.mean():.3f}** ({error:.3f}) |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--epsilons", type=float, nargs="*", default=[0.1, 1, 5])
    parser.add_argument("--networks", nargs="*", default=SIX)
    parser.add_argument("--threshold", type=float, default=0.05)
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    options = parser.parse_args()
    print(f"| recipe | eps | {' | '.join(options.networks)} | mean (s.e.) |\n|{'---|' * (len(options.networks) + 3)}")
    for name, method in variants(options.threshold).items():
        for epsilon in options.epsilons if options.only in name else ():
            print(line(name, method, epsilon, options), flush=True)


if __name__ == "__main__":
    main()
