"""How cost grows with rows and with columns: seconds, passes over the table and peak memory.

    python -m benchmarks.growth [--quick] [-o speed/growth.json]

Tables are sampled from random networks of 2 to 4 levels and written as Parquet in parts. Long ones are read from
there, wide ones are loaded first; each run has a process of its own. The largest (100 million rows x 20 columns)
takes about 1 GB of disk while it runs.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pages.performance import Record
from dpcurate import Budget, Categorical, Curator, Schema, fit
from dpcurate.learn.methods import PC
from dpcurate.networks.plausible import random_world

PART = 1_000_000
ROWS = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
COLUMNS = (10, 20, 50, 100, 200)
WIDE_ROWS = 100_000
LIMIT = 1200
"""Seconds after which a run is given up and said to take longer."""


def schema_of(columns: int) -> Schema:
    return Schema(tuple(Categorical(f"c{i}", tuple(range(2 + i % 3))) for i in range(columns)))


def write(folder: Path, columns: int, rows: int) -> None:
    """Parts of at most a million rows, so that any number of them is a table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    world = random_world(schema_of(columns), seed=1)
    for number in range(math.ceil(rows / PART)):
        codes = world.codes(min(PART, rows - number * PART), seed=number)
        table = pa.table({name: np.ascontiguousarray(codes[:, i]) for i, name in enumerate(world.nodes)})
        pq.write_table(table, folder / f"{number:03}.parquet")


def some(folder: Path, whole: Path, rows: int) -> Path:
    """A folder that holds the first rows of a larger one."""
    folder.mkdir()
    for part in sorted(whole.glob("*.parquet"))[: rows // PART]:
        (folder / part.name).symlink_to(part)
    return folder


def run(path: Path, columns: int, method: str, where: str) -> Record:
    """What a fresh process says of itself."""
    command = [sys.executable, "-m", "benchmarks.growth", "--child", str(path), str(columns), method, where]
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {"method": method, "columns": columns, "over": LIMIT}
    return {"method": method, "columns": columns, **json.loads(done.stdout)}


def peak_mb() -> float:
    """The peak memory of this process alone; getrusage would also count that of the process that started it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def child(path: str, columns: int, method: str, where: str) -> Record:
    table: Any = path
    if where == "memory":
        import pandas as pd

        table = pd.read_parquet(path)
    start = time.perf_counter()
    exact = method == "pc"
    budget = Budget.unlimited() if exact else Budget(epsilon=1, delta=1e-10)
    curator = Curator(table, schema_of(columns), budget=budget, allow_unproved=exact)
    opened = time.perf_counter()
    found = fit(curator, PC(alpha=0.01) if exact else method)
    ended = time.perf_counter()
    peak = peak_mb()
    tests = sum(found.learned.tests) if exact else None
    return {"open": opened - start, "fit": ended - opened, "passes": curator.passes, "peak_mb": peak, "tests": tests}


def by_rows(folder: Path, columns: int, sizes: tuple[int, ...]) -> Iterator[Record]:
    whole = folder / f"d{columns}"
    whole.mkdir()
    write(whole, columns, max(sizes))
    for rows in sizes:
        if rows >= PART:
            path = some(folder / f"d{columns}-{rows}", whole, rows)
        else:
            path = folder / f"d{columns}-{rows}"
            path.mkdir()
            write(path, columns, rows)
        for method in ("auto", "pc"):
            yield {"axis": "rows", "rows": rows, **run(path, columns, method, "disk")}


def by_columns(folder: Path, widths: tuple[int, ...]) -> Iterator[Record]:
    for columns in widths:
        path = folder / f"w{columns}"
        path.mkdir()
        write(path, columns, WIDE_ROWS)
        for method in ("auto", "pc"):
            yield {"axis": "columns", "rows": WIDE_ROWS, **run(path, columns, method, "memory")}


def measure(quick: bool) -> Iterator[Record]:
    sizes, widths = (ROWS[:3], COLUMNS[:3]) if quick else (ROWS, COLUMNS)
    for columns in (8, 20):
        with tempfile.TemporaryDirectory() as folder:
            yield from by_rows(Path(folder), columns, sizes)
    with tempfile.TemporaryDirectory() as folder:
        yield from by_columns(Path(folder), widths)


def said(row: Record) -> str:
    where = f"{row['rows']:>11,} rows {row['columns']:>3} columns {row['method']:<5}"
    if "over" in row:
        return f"{where} > {row['over']} s"
    tests = "" if row["tests"] is None else f"   {row['tests']:,} tests"
    return (
        f"{where} open {row['open']:7.2f} s   fit {row['fit']:7.2f} s   {row['passes']:>3} passes   "
        f"{row['peak_mb']:6.0f} MB{tests}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to a million rows and 50 columns")
    parser.add_argument("-o", "--output", type=Path, default=Path("speed/growth.json"))
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        path, columns, method, where = given.child
        print(json.dumps(child(path, int(columns), method, where)))
        return
    rows = []
    given.output.parent.mkdir(parents=True, exist_ok=True)
    for row in measure(given.quick):
        print(said(row), flush=True)
        rows.append(row)
        given.output.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
