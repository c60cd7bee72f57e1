"""Spark: this package's counts against Spark SQL written by hand for the same tables.

python -m benchmarks.engines_spark 3000000   (prints JSON)
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.growth import peak_mb
from dpcurate.private.row_sums import CountRows
from dpcurate.private.sources import open_source
from dpcurate.schema import Categorical, Schema

COLUMNS = [f"a{i}" for i in range(8)]
PAIRS = list(combinations(COLUMNS, 2))


def compare(rows: int, levels: int) -> dict[str, Any]:
    """The 28 tables of pairs of 8 columns in one session of two cores, the best of two.

    With 12 levels the domain is too large to be held, so the tables are counted in place; with 4 it is held, and
    opening counts.
    """
    session = _session()
    try:
        with tempfile.TemporaryDirectory() as folder:
            table = _table(session, f"{folder}/t.parquet", rows, levels)
            schema = Schema(tuple(Categorical(n, tuple(range(levels))) for n in COLUMNS))
            ours, seconds, opening = _ours(table, schema)
            theirs, hand = _best(lambda: _grouping_sets(session, table, levels))
    finally:
        session.stop()
    assert np.array_equal(ours, theirs)
    held = levels == 4
    where = "collapsed at opening" if held else f"counted in place (opening took {opening:.1f} s)"
    peak = peak_mb()
    return {
        "what": f"28 tables of 2 columns of {levels} levels in Spark, {where}; memory is the driver's Python",
        "rows": rows,
        "other": "GROUPING SETS",
        "ours": {"seconds": seconds + (opening if held else 0), "peak_mb": peak},
        "theirs": {"seconds": hand, "peak_mb": peak},
    }


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


def _best(work: Any, times: int = 2) -> tuple[Any, float]:
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        found = work()
        seconds.append(time.perf_counter() - start)
    return found, round(min(seconds), 2)


def _ours(table: Any, schema: Schema) -> tuple[Any, float, float]:
    """The tables, and the seconds for counting and for opening, each the best of two."""
    asked = [CountRows(p, schema.sizes(p)) for p in PAIRS]
    sources = iter([open_source(table, schema) for _ in range(2)])  # one that has counted knows the tables
    found, seconds = _best(lambda: next(sources).totals(asked))
    return np.stack(found), seconds, _best(lambda: open_source(table, schema))[1]


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


if __name__ == "__main__":
    print(json.dumps([compare(int(sys.argv[1]), levels) for levels in (12, 4)]))
