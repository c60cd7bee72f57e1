"""The default beside exact PC on the same table: processor time, with opening the table and without.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.search_time child NETWORK.bif.gz ...
        [--rows 100000] [--epsilons 1 5] [--repeats 3] [--no-pc]

Networks are names of ours or BIF files. The default finds its graph with both probabilities of every pair; "graph" is
what it takes without these. Least of some repeats, which other work on the machine disturbs least; then the peak
memory of the process so far. One thread, as threads that wait count as work. Figures are printed and a person reads
them.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from dpcurate import Budget, Curator, networks
from dpcurate.learn.measure_once import MeasureOnce
from dpcurate.learn.measure_once import method as measure_once
from dpcurate.learn.methods import PC
from dpcurate.schema import Schema

DELTA = 1e-10


class Times(NamedTuple):
    """Processor seconds of a whole call, of the same on a table that is open, and of that without probabilities."""

    call: float
    opened: float
    graph: float

    def over(self, other: Times) -> str:
        return ", ".join(f"{name} {x / y:.1f} x" for name, x, y in zip(self._fields, self, other, strict=True))


def timed(table: pd.DataFrame, schema: Schema, budget: Budget, method: MeasureOnce | PC) -> Times:
    """One call."""
    start = time.process_time()
    curator = Curator(table, schema, budget=budget, insecure_seed=20_000)
    opened = time.process_time()
    with probabilities_timed() as seconds:
        method.fit(curator)
    end = time.process_time()
    return Times(end - start, end - opened, end - opened - sum(seconds))


@contextmanager
def probabilities_timed() -> Iterator[list[float]]:
    """What both probabilities take."""
    seconds, confidence = list[float](), measure_once.confidence

    def spy(*given):
        start = time.process_time()
        try:
            return confidence(*given)
        finally:
            seconds.append(time.process_time() - start)

    measure_once.confidence = spy
    try:
        yield seconds
    finally:
        measure_once.confidence = confidence


def least(run: Callable[[], Times], repeats: int) -> Times:
    """The call of some that took the least processor time."""
    return min(run() for _ in range(repeats))


def lines(name: str, options: argparse.Namespace) -> None:
    """One line for each epsilon."""
    network = networks.load(name)
    table = pd.DataFrame(network.sample(options.rows, seed=20_000))
    exact = partial(timed, table, network.schema, Budget.unlimited(), PC())
    pc = None if options.no_pc else least(exact, options.repeats)
    for epsilon in options.epsilons:
        budget = Budget(epsilon=epsilon, delta=DELTA)
        ours = least(partial(timed, table, network.schema, budget, MeasureOnce()), options.repeats)
        beside = f"exact PC {pc.call:6.2f} s: {ours.over(pc)}" if pc else "exact PC not run"
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        about = f"{Path(name).name:20} {len(network.dag.nodes):4} columns, eps {epsilon:<4g} {ours.call:6.2f} s"
        print(f"{about}, {beside}, {memory} MB", flush=True)


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
