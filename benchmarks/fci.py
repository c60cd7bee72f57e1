"""Exact FCI against causal-learn's, in one process: processor time, and whether the skeletons are the same.

    python -m benchmarks.fci [--rows 100000] [--repeats 5]

G test at 0.01, no limit on the order, sets from Possible-D-SEP on both sides, the same integers; on Sachs, Child and
random networks of 11 to 20 columns with hidden ones. Of dpcurate the fit on an open curator is timed, and opening it
beside that. Needs causal-learn: pip install --group peers. Figures are printed and a person reads them.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpcurate import Budget, Categorical, Curator, Schema, networks
from dpcurate.learn.methods import PC

ALPHA = 0.01
RANDOM = ((11, 1, 2.0), (11, 2, 2.4), (12, 2, 2.0), (14, 2, 2.0), (16, 2, 2.0), (20, 3, 2.0))
"""Visible columns, hidden ones, and the average degree."""


def worlds() -> Iterator[tuple[str, Any]]:
    """Networks by name."""
    for name in ("sachs", "child"):
        yield name, networks.load(name).hide()
    for seed, (visible, hidden, degree) in enumerate(RANDOM, start=1):
        dag = networks.random_dag(visible + hidden, degree=degree, seed=seed)
        most = sorted(dag.nodes, key=lambda n: -sum(a == n for a, _ in dag.arrows))[:hidden]
        world = networks.random_network(dag, levels=(2, 3), seed=seed)
        yield f"random, {visible} columns, {hidden} hidden", world.hide(*most)


def codes_of(world: Any, rows: int) -> tuple[np.ndarray, Schema]:
    """Level numbers, and a schema of them."""
    drawn, columns = world.sample(rows, seed=1), world.schema.columns
    places = [{level: i for i, level in enumerate(c.levels)} for c in columns]
    codes = [[place[x] for x in drawn[c.name].tolist()] for place, c in zip(places, columns, strict=True)]
    schema = Schema(tuple(Categorical(c.name, tuple(range(c.size))) for c in columns))
    return np.ascontiguousarray(np.array(codes, dtype=np.int64).T), schema


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result and the processor time it took."""
    start = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        found = call()
    return found, time.process_time() - start


def compare(name: str, codes: np.ndarray, schema: Schema, repeats: int) -> str:
    """One line of the table."""
    from causallearn.search.ConstraintBased.FCI import fci

    opening, ours, theirs = [], [], []
    for _ in range(repeats):
        curator, seconds = timed(lambda: Curator(codes, schema, budget=Budget.unlimited()))
        opening.append(seconds)
        found, seconds = timed(lambda c=curator: PC(test="g", alpha=ALPHA, latent=True).fit(c))  # type: ignore[misc]
        ours.append(seconds)
        (graph, _), seconds = timed(lambda: fci(codes, "gsq", ALPHA, show_progress=False))
        theirs.append(seconds)
    names = schema.names
    pairs = {frozenset((names[i], names[j])) for i, j in np.argwhere(graph.graph)}
    a, b, c = (statistics.median(x) for x in (ours, opening, theirs))
    differ = len(pairs ^ found.graph.edges)
    return (
        f"{name:32} {sum(found.tests):6} tests  ours {a:7.3f} s (+ {b:.3f} opening)  causal-learn {c:8.3f} s  "
        f"{c / a:5.1f} x ({c / (a + b):.1f} x with opening)  {differ} edges differ"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    for name, world in worlds():
        print(compare(name, *codes_of(world, arguments.rows), arguments.repeats), flush=True)


if __name__ == "__main__":
    main()
