"""The default beside exact PC on the same table: processor time of whole calls, opening the table included.

    python -m benchmarks.search_time child NETWORK.bif.gz ... [--rows 100000] [--epsilons 1 5] [--repeats 3] [--no-pc]

Networks are names of ours or BIF files. The default finds its graph with both probabilities of every pair. Least of
some repeats, which other work on the machine disturbs least; then the peak memory of the process so far. Figures are
printed and a person reads them.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import pandas as pd

from dpcurate import Budget, Curator, networks
from dpcurate.learn.measure_once import MeasureOnce
from dpcurate.learn.methods import PC

DELTA = 1e-10


def least(run: Callable[[], object], repeats: int) -> float:
    """The least processor time of some calls."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found)


def lines(name: str, options: argparse.Namespace) -> None:
    """One line for each epsilon."""
    network = networks.load(name)
    table = pd.DataFrame(network.sample(options.rows, seed=20_000))

    def exact() -> None:
        PC().fit(Curator(table, network.schema, budget=Budget.unlimited()))

    pc = None if options.no_pc else least(exact, options.repeats)
    for epsilon in options.epsilons:

        def default(epsilon: float = epsilon) -> None:
            budget = Budget(epsilon=epsilon, delta=DELTA)
            MeasureOnce().fit(Curator(table, network.schema, budget=budget, insecure_seed=20_000))

        ours = least(default, options.repeats)
        beside = f"exact PC {pc:7.2f} s, {ours / pc:5.1f} x" if pc else "exact PC not run"
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{name:28} {len(network.dag.nodes):4} columns, eps {epsilon:<4g} {ours:7.2f} s, {beside}, {memory} MB",
              flush=True)  # fmt: skip


def main() -> None:
    """Print a line for each network and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1, 5])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-pc", action="store_true")
    options = parser.parse_args()
    for name in options.networks:
        lines(name, options)


if __name__ == "__main__":
    main()
