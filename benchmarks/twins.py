"""Private methods against their non-private twins on the same tables, in one run.

    python -m benchmarks.twins [-o speed/twins.json]

The twin of a PC-like method is PC with Kendall's test through the same queryable, of a descent NOTEARS on exact
moments, of measure-once the same search on an unlimited budget. Tables of 100,000 rows are in memory; opening them
counts for both. Median of five, the first call left out (it pays for imports).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import pandas as pd

from dpcurate import Budget, Curator, fit, networks
from dpcurate.learn.methods import PC, Method, Notears, get

ROWS, TIMES = 100_000, 5
TWINS: dict[str, Method | None] = {
    "measure-once": None,
    "svt-pc": PC(test="kendall", max_order=2),
    "priv-pc": PC(test="kendall", max_order=2),
    "curate-pc": PC(test="kendall", max_order=2),
    "em-pc": PC(test="kendall", max_order=2),
    "notears-moments": Notears(),
    "noleaks": Notears(),
    "curate-score": Notears(),
}


def seconds(table: Any, schema: Any, method: Method, budget: Budget) -> float:
    taken = []
    for _ in range(TIMES + 1):
        start = time.perf_counter()
        fit(Curator(table, schema, budget=budget), method)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])


def compare(names: list[str]) -> list[dict[str, Any]]:
    told = []
    for name in names:
        network = networks.load(name)
        table = pd.DataFrame(network.sample(ROWS, seed=1))
        for method, twin in TWINS.items():
            own = get(method)
            private = seconds(table, network.schema, own, Budget(epsilon=1, delta=1e-10))
            exact = seconds(table, network.schema, own if twin is None else twin, Budget.unlimited())
            told.append({"network": name, "method": method, "private": private, "twin": exact})
            print(
                f"{name:<8} {method:<16} {private:7.3f} s   twin {exact:7.3f} s   ratio {private / exact:5.2f}",
                flush=True,
            )
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("speed/twins.json"))
    parser.add_argument("--networks", nargs="+", default=["asia", "sachs", "child"])
    given = parser.parse_args()
    told = compare(given.networks)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
