"""What noise does to small groups: edges that rest on a group, and counts in it.

    python -m benchmarks.small_groups

Prints the tables of docs/nist-800-226.md. A group is the rows with level 1 of one column of a table of eight yes/no
columns; membership doubles the odds of an outcome, and the other seven columns are the same for every size of group.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

import dpcurate

ROWS = 20_000
SHARES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
EPSILONS = (0.1, 1.0, 10.0, 1_000.0)
"""The last is as good as no noise."""
NAMES = ("group", "outcome", *(f"x{i}" for i in range(6)))


def world(share: float, seed: int) -> dict[str, np.ndarray]:
    """A table: group -> outcome with an odds ratio of 2, and a chain of six other columns that ends in the outcome."""
    rng = np.random.default_rng(seed)
    columns = {"group": rng.random(ROWS) < share}
    before = rng.random(ROWS) < 0.5
    for i in range(6):
        columns[f"x{i}"] = before
        before = rng.random(ROWS) < np.where(before, 0.65, 0.35)
    odds = np.where(columns["group"], 2.0, 1.0) * np.where(columns["x5"], 2.0, 1.0) * 0.5
    columns["outcome"] = rng.random(ROWS) < odds / (1 + odds)
    return {name: columns[name].astype(int) for name in NAMES}


def found(share: float, epsilon: float, seed: int) -> bool:
    """Whether the edge from the group to its outcome is drawn."""
    result = dpcurate.discover(world(share, seed), dict.fromkeys(NAMES, (0, 1)), epsilon=epsilon)
    return frozenset(("group", "outcome")) in result.graph.edges


def edges_table(runs: int) -> Iterator[str]:
    """How often the edge is drawn, by the size of the group."""
    heads = [*(f"epsilon {epsilon:g}" for epsilon in EPSILONS[:-1]), "no noise"]
    yield f"| group | rows in it | {' | '.join(heads)} |"
    yield f"|---|---:|{'---:|' * len(heads)}"
    for share in SHARES:
        rates = [np.mean([found(share, epsilon, seed) for seed in range(runs)]) for epsilon in EPSILONS]
        yield f"| {share:.0%} | {share * ROWS:,.0f} | {' | '.join(f'{rate:.2f}' for rate in rates)} |"


def counts_table() -> Iterator[str]:
    """The 95 % error of one count relative to the count."""
    epsilons = (0.01, 0.1, 1.0)
    yield f"| rows counted | {' | '.join(f'epsilon {epsilon:g}' for epsilon in epsilons)} |"
    yield f"|---:|{'---:|' * len(epsilons)}"
    scales = [float(_scale(epsilon)) for epsilon in epsilons]
    for size in (10_000, 1_000, 100, 10):
        yield f"| {size:,} | {' | '.join(f'{1.96 * scale / size:.1%}' for scale in scales)} |"


def _scale(epsilon: float) -> float:
    """The standard deviation of the noise on a count."""
    table = {name: cells[:100] for name, cells in world(0.5, 0).items()}
    asked = dpcurate.ask(
        table, dict.fromkeys(NAMES, (0, 1)), dpcurate.queries.Counts(("group", "outcome")), epsilon=epsilon
    )
    event = asked.privacy.events[0]
    return float(event.noise or 0)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=25)
    args = parser.parse_args()
    for line in (*edges_table(args.runs), "", *counts_table()):
        print(line, flush=True)


if __name__ == "__main__":
    main()
