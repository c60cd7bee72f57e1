"""Sources that leave rows where they are, against the same counts written by hand, in one run.

    python -m benchmarks.engines [--rows 20000000] [-o speed/engines.json]

DuckDB on Parquet against Polars on the same file, and Spark against Spark SQL. Both count; ours also checks every
cell against the schema. PostgreSQL has a script of its own (engines_database), which needs a server.
Each runs in a process of its own; the fastest of three is told, with the peak memory of its process.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

from benchmarks.growth import peak_mb, schema_of, write
from dpcurate.private.row_sums import CountRows
from dpcurate.private.sources import open_engine, open_source
from dpcurate.private.sources.encode import encoded_sql
from dpcurate.private.sources.engine import EngineRows, kinds_of
from dpcurate.private.sources.pushed_down import PushedDown

COLUMNS = 8
TIMES = 3


def queried(path: str) -> PushedDown:
    """The table left on disk, whatever its domain."""
    schema = schema_of(COLUMNS)
    engine, _ = open_engine(path, schema)
    sql = encoded_sql(engine.relation, schema, kinds_of(engine, schema), engine.dialect)
    return PushedDown(EngineRows(engine, sql, schema), schema)


def ours_all(path: str) -> int:
    """Open the table: one table over all columns."""
    return open_source(path, schema_of(COLUMNS)).made


def ours_pairs(path: str) -> int:
    """28 tables of two columns."""
    schema = schema_of(COLUMNS)
    return len(queried(path).totals([CountRows(p, schema.sizes(p)) for p in combinations(schema.names, 2)]))


def polars_all(path: str) -> int:
    """One table over all columns."""
    import polars as pl

    names = list(schema_of(COLUMNS).names)
    return len(pl.scan_parquet(f"{path}/*.parquet").group_by(names).len().collect(engine="streaming"))


def polars_pairs(path: str) -> int:
    """28 group-bys, handed over together."""
    import polars as pl

    rows = pl.scan_parquet(f"{path}/*.parquet")
    asked = [rows.group_by(list(pair)).len() for pair in combinations(schema_of(COLUMNS).names, 2)]
    return len(pl.collect_all(asked, engine="streaming"))


WORK: dict[str, Callable[[str], int]] = {f.__name__: f for f in (ours_all, polars_all, ours_pairs, polars_pairs)}


def child(what: str, path: str) -> dict[str, Any]:
    taken = []
    for _ in range(TIMES):
        start = time.perf_counter()
        WORK[what](path)
        taken.append(time.perf_counter() - start)
    return {"seconds": min(taken), "peak_mb": peak_mb()}


def run(what: str, path: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.engines", "--child", what, str(path)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def compare(rows: int) -> list[dict[str, Any]]:
    """Ours beside Polars."""
    told = []
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), COLUMNS, rows)
        for name in ("all", "pairs"):
            ours, other = run(f"ours_{name}", Path(folder)), run(f"polars_{name}", Path(folder))
            what = "one table of 8 columns" if name == "all" else "28 tables of 2 columns"
            told.append({"what": what, "rows": rows, "other": "Polars", "ours": ours, "theirs": other})
    return told


def in_spark(rows: int) -> list[dict[str, Any]]:
    """Ours beside Spark SQL, where Spark is installed."""
    if find_spec("pyspark") is None or shutil.which("java") is None:
        print("Spark is not installed and left out")
        return []
    command = [sys.executable, "-m", "benchmarks.engines_spark", str(rows)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: list[dict[str, Any]] = json.loads(told.strip().splitlines()[-1])
    return found


def said(row: dict[str, Any]) -> str:
    ours, other = row["ours"], row["theirs"]
    return (
        f"{row['what']}, {row['rows']:,} rows: ours {ours['seconds']:.2f} s {ours['peak_mb']:.0f} MB, "
        f"{row['other']} {other['seconds']:.2f} s {other['peak_mb']:.0f} MB, "
        f"ratio {ours['seconds'] / other['seconds']:.2f} (asked: at most 1.5)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--spark-rows", type=int, default=3_000_000)
    parser.add_argument("-o", "--output", type=Path, default=Path("speed/engines.json"))
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(*given.child)))
        return
    told = compare(given.rows) + in_spark(given.spark_rows)
    for row in told:
        print(said(row))
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
