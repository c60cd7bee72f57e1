"""A real table learnt again and again with fresh noise: do edges that were said at .9 and more come back?

    python -m benchmarks.stability TABLE --schema SCHEMA.toml [--epsilons 0.3 1 3] [--runs 6]

Prints, for each epsilon: edges of each run, how many sayings of .9 and more there were, in what share of the other runs
the same pair was linked (P at least a half), how often two runs that both drew an arrow drew it opposite ways, and the
verdicts. Every run has the whole budget, so this is for tables that may be read without a guarantee.
"""

from __future__ import annotations

import argparse
from collections import Counter
from itertools import permutations

import numpy as np

import dpcurate

SAID, LINKED = 0.9, 0.5


def learn(options: argparse.Namespace, epsilon: float) -> list[dpcurate.Discovery]:
    schema = dpcurate.Schema.of(options.schema)
    budget = dpcurate.Budget(epsilon=epsilon, delta=1e-10)
    return [
        dpcurate.fit(dpcurate.Curator(options.table, schema, budget=budget, insecure_seed=seed))
        for seed in range(options.runs)
    ]


def returns(runs: list[dpcurate.Discovery]) -> list[bool]:
    """For every pair said at .9 and every other run: was it linked there?"""
    probabilities = [found.learned.linked for found in runs]
    return [
        there[pair] >= LINKED for here, there in permutations(probabilities, 2) for pair in here if here[pair] >= SAID
    ]


def opposites(runs: list[dpcurate.Discovery]) -> list[bool]:
    """For every arrow that two runs drew: the other way round?"""
    arrows = [found.graph.arrows for found in runs]
    return [(b, a) in there for here, there in permutations(arrows, 2) for a, b in here if {(a, b), (b, a)} & there]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--schema", required=True)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--runs", type=int, default=6)
    options = parser.parse_args()
    print("| epsilon | edges | said at .9 | come back | arrows turned round | verdicts |\n|---|---|---|---|---|---|")
    for epsilon in options.epsilons:
        runs = learn(options, epsilon)
        back, turned = returns(runs), opposites(runs)
        verdicts = Counter(found.verdict.level for found in runs if found.verdict)
        print(
            f"| {epsilon:g} | {', '.join(str(len(found.edges)) for found in runs)} | {len(back) // (len(runs) - 1)} | "
            f"{np.mean(back) if back else float('nan'):.2f} | {np.mean(turned) if turned else float('nan'):.2f} | "
            f"{', '.join(f'{n} {level}' for level, n in verdicts.items())} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
