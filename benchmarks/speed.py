"""Speed and memory: the session here, then the other benchmarks, each figure asked for beside the figure measured.

    python -m benchmarks.speed [--quick | --session]

The whole takes about an hour and writes docs/performance.md. Nothing here is a test: machines differ, so figures are
printed and a person reads them.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice
from pathlib import Path

import numpy as np

from benchmarks.pages.performance import publish
from dpcurate import Budget, Categorical, Curator, Schema
from dpcurate.accounting import Cost, Event
from dpcurate.private.ledger import Ledger
from dpcurate.private.noise import Randomness, Secure, Seeded
from dpcurate.private.row_sums import CountRows, Rows
from dpcurate.private.sources import InMemory, open_source
from dpcurate.queries import Counts, Gaussian, Release

ROWS = 100_000
OTHERS = {
    "engines": ["--rows", "2000000", "--spark-rows", "500000"],
    "twins": ["--networks", "asia"],
    "growth": ["--quick"],
    "peers": ["--quick"],
}
"""The other benchmarks, each a module and a process of its own, and what makes it quick."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    what: str
    asked: str
    measured: str


def seconds(run: Callable[[], object], *, times: int = 1) -> float:
    """The median time of a call."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def counting() -> Iterator[Figure]:
    """A fresh table over encoded rows that are not collapsed: the session's own counting path."""
    rng = np.random.default_rng(0)
    names = ("a", "b", "c", "d")
    codes = {n: rng.integers(0, 4, ROWS, dtype=np.uint8) for n in names}
    rows = Rows(codes, {}, None, ROWS)
    for ways in (2, 3, 4):
        row_sum = CountRows(names[:ways], (4,) * ways)
        took = seconds(
            lambda row_sum=row_sum: InMemory(rows).totals([row_sum]), times=200
        )  # a new one has kept nothing
        asked = "< 1 ms" if ways == 4 else ""
        yield Figure(f"fresh {ways}-way table, {ROWS:,} rows of uint8 codes", asked, f"{took * 1e3:.3f} ms")


def twenty_columns() -> tuple[dict[str, np.ndarray], Schema]:
    rng = np.random.default_rng(1)
    table = {f"c{i}": rng.integers(0, 3, ROWS) for i in range(20)}
    return table, Schema(tuple(Categorical(name, (0, 1, 2)) for name in table))


def queries() -> Iterator[Figure]:
    """1,000 distinct 3-way releases through the queryable, noise from the operating system."""
    table, schema = twenty_columns()
    opened = time.perf_counter()
    curator = Curator(table, schema, budget=Budget(epsilon=1, delta=1e-10))
    yield Figure(f"open a 20-column table of {ROWS:,} rows", "", f"{time.perf_counter() - opened:.2f} s")
    rho = curator.remaining / 1001
    triples = list(islice(combinations(schema.names, 3), 1000))
    asked = [Release(Counts(names), Gaussian(rho=rho)) for names in triples]
    scale = curator.ask(Release(Counts(()), Gaussian(rho=rho))).scale  # loads OpenDP
    busy = time.process_time()  # wall time above processor time means that the machine had other work
    took = seconds(lambda: [curator.ask(query) for query in asked])
    busy = time.process_time() - busy
    yield Figure("1,000 distinct 3-way queries, secure noise", "< 2 s", f"{took:.2f} s ({busy:.2f} s of processor)")
    source, randomness = open_source(table, schema), Secure()
    read = seconds(lambda: [source.totals([CountRows(names, (3, 3, 3))])[0] for names in triples])
    noise = seconds(lambda: [randomness.gaussian(scale, 27) for _ in triples])
    yield Figure("  of which counting", "", f"{read:.2f} s")
    yield Figure("  of which noise (27 draws each)", "", f"{noise:.2f} s")


def charging() -> Iterator[Figure]:
    """One charge to a ledger in memory, and to one on disk with and without a reserved block."""
    event = Event("gaussian", "Counts(a)", Cost.concentrated(Fraction(1, 10**7)))
    ledger = Ledger(Budget(rho=1))
    took = seconds(lambda: [ledger.charge([event]) for _ in range(2000)]) / 2000
    yield Figure("charge to a ledger in memory", "", f"{took * 1e6:.1f} us")
    with tempfile.TemporaryDirectory() as folder:
        about = {"table": "t", "schema_hash": "h", "neighbours": "add-remove", "budget": Budget(rho=1)}
        disk = Ledger.create(Path(folder) / "ledger.db", **about)
        took = seconds(lambda: disk.charge([event]), times=50)
        yield Figure("charge to a ledger on disk (median)", "", f"{took * 1e3:.2f} ms")
        with disk.reserve(0.5):
            took = seconds(lambda: [disk.charge([event]) for _ in range(2000)]) / 2000
        yield Figure("charge to a reserved block on disk", "", f"{took * 1e6:.1f} us")


def drawing() -> Iterator[Figure]:
    """A draw of noise, alone and in a vector, from the operating system and from a seed."""
    kinds: dict[str, Randomness] = {"secure": Secure(), "seeded": Seeded(0)}
    for name, randomness in kinds.items():
        asked = "" if name == "secure" else "microseconds"
        for law in ("gaussian", "laplace"):
            draw = getattr(randomness, law)
            draw(100.0, 1)
            one = seconds(lambda draw=draw: draw(100.0, 1), times=1000)
            many = seconds(lambda draw=draw: draw(100.0, 1000), times=5) / 1000
            measured = f"{one * 1e6:.1f} us alone, {many * 1e6:.2f} us in 1,000"
            yield Figure(f"{name} {law} draw", asked, measured)


def show(figures: Iterator[Figure]) -> None:
    for figure in figures:
        print(f"{figure.what:<56} {figure.asked:>13}   {figure.measured}", flush=True)


def main() -> None:
    """Print every figure, then run the other benchmarks and write docs/performance.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller tables and fewer networks: minutes, not an hour")
    parser.add_argument("--session", action="store_true", help="the figures of the session only")
    given = parser.parse_args()
    show(iter([Figure("figure", "asked", "measured")]))
    for part in (counting(), queries(), charging(), drawing()):
        show(part)
    if not given.session:
        for module, few in OTHERS.items():
            print(f"\n{module}", flush=True)
            command = [sys.executable, "-m", f"benchmarks.{module}", *(few if given.quick else [])]
            subprocess.run(command, check=True)
        publish()


if __name__ == "__main__":
    main()
