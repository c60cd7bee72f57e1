"""Spark: this package's counts against Spark SQL written by hand for the same tables.

python -m benchmarks.engines_spark 1000000
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from itertools import combinations
from typing import Any

import numpy as np

from dpcurate.private.kernels import CountRows
from dpcurate.private.sources import open_source
from dpcurate.schema import Categorical, Schema

COLUMNS = [f"a{i}" for i in range(8)]
PAIRS = list(combinations(COLUMNS, 2))


def compare(rows: int, levels: int = 12) -> dict[str, float]:
    """Seconds for the 28 tables of pairs of 8 columns, each way the best of two, in one session of two cores.

    With 12 levels the domain is too large to be held, so the tables are counted in place; with 4 it is held.
    """
    session = _session()
    try:
        with tempfile.TemporaryDirectory() as folder:
            table = _table(session, f"{folder}/t.parquet", rows, levels)
            schema = Schema(tuple(Categorical(n, tuple(range(levels))) for n in COLUMNS))
            opening = _best(lambda: open_source(table, schema))[1]
            found = {
                "dpcurate, with opening": _best(lambda: _ours(table, schema)),
                "grouping sets": _best(lambda: _grouping_sets(session, table, levels)),
                "a query a table": _best(lambda: _queries(table, levels)),
            }
    finally:
        session.stop()
    tables = [t for t, _ in found.values()]
    assert all(np.array_equal(tables[0], t) for t in tables[1:])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = {name: taken for name, (_, taken) in found.items()}
    return seconds | {"of it opening, one pass to read every cell": opening, "driver's peak MB (Python)": round(peak)}


def _session() -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1", "ui.enabled": "false"}
    settings |= {"ui.showConsoleProgress": "false", "sql.shuffle.partitions": "4"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(f"spark.{name}", value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def _table(session: Any, path: str, rows: int, levels: int) -> Any:
    parts = [f"CAST(abs(xxhash64(id, {i}) % {levels}) AS INT) AS {n}" for i, n in enumerate(COLUMNS)]
    session.range(rows).selectExpr(*parts).write.parquet(path)
    return session.read.parquet(path)


def _best(work: Any) -> tuple[Any, float]:
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        found = work()
        seconds.append(time.perf_counter() - start)
    return found, round(min(seconds), 2)


def _ours(table: Any, schema: Schema) -> Any:
    return np.stack(open_source(table, schema).totals([CountRows(p, schema.sizes(p)) for p in PAIRS]))


def _grouping_sets(session: Any, table: Any, levels: int) -> Any:
    sets = ", ".join(f"({a}, {b})" for a, b in PAIRS)
    names = ", ".join(COLUMNS)
    found = session.sql(
        f"SELECT {names}, grouping_id() AS g, count(*) AS n FROM {{table}} GROUP BY GROUPING SETS ({sets})", table=table
    ).toArrow()
    counts = np.zeros((len(PAIRS), levels, levels), dtype=np.int64)
    group, number = found["g"].to_numpy(), found["n"].to_numpy()
    for i, pair in enumerate(PAIRS):
        absent = sum(1 << (len(COLUMNS) - 1 - j) for j, n in enumerate(COLUMNS) if n not in pair)
        some = group == absent
        counts[(i, *(found[n].to_numpy()[some].astype(int) for n in pair))] = number[some]
    return counts


def _queries(table: Any, levels: int) -> Any:
    counts = np.zeros((len(PAIRS), levels, levels), dtype=np.int64)
    for i, pair in enumerate(PAIRS):
        found = table.groupBy(*pair).count().toArrow()
        counts[(i, *(found[n].to_numpy() for n in pair))] = found["count"].to_numpy()
    return counts


if __name__ == "__main__":
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for levels in (12, 4):
        print(f"{rows:,} rows, 28 tables of {levels} x {levels}:", compare(rows, levels))
