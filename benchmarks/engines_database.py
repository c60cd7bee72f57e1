"""A table in PostgreSQL: our counts against the same GROUPING SETS by hand, in one run.

    python -m benchmarks.engines_database postgresql://user@host/database [--rows 2000000]

Writes a table `dpcurate_bench` of 8 columns of 5 levels there, and drops it. The fastest of three is told.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import combinations

import psycopg

from dpcurate.private.row_sums import CountRows
from dpcurate.private.sources import open_engine, open_source
from dpcurate.private.sources.encode import encoded_sql
from dpcurate.private.sources.engine import EngineRows, kinds_of
from dpcurate.schema import Categorical, Schema

NAMES = tuple(f"a{i}" for i in range(8))
SCHEMA = Schema(tuple(Categorical(n, tuple("01234")) for n in NAMES))
PAIRS = tuple(combinations(NAMES, 2))


def write(connection: psycopg.Connection, rows: int, kind: str) -> None:
    cells = ", ".join(f"CAST(floor(random() * 5) AS int)::{kind} AS {n}" for n in NAMES)
    connection.execute("DROP TABLE IF EXISTS dpcurate_bench")
    connection.execute(f"CREATE TABLE dpcurate_bench AS SELECT {cells} FROM generate_series(1, {rows})")
    connection.execute("VACUUM ANALYZE dpcurate_bench")


def fastest(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def our_pairs(url: str) -> None:
    """28 tables as they are asked, not cut out of a larger one."""
    engine, _ = open_engine(url, SCHEMA)
    sql = encoded_sql(engine.relation, SCHEMA, kinds_of(engine, SCHEMA), engine.dialect)
    EngineRows(engine, sql, SCHEMA).count([CountRows(p, SCHEMA.sizes(p)) for p in PAIRS])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--rows", type=int, default=2_000_000)
    args = parser.parse_args()
    table = f"{args.url}#dpcurate_bench"
    sets = ", ".join(f"({a}, {b})" for a, b in PAIRS)
    names = ", ".join(NAMES)
    by_hand = f"SELECT {names}, count(*) FROM dpcurate_bench GROUP BY GROUPING SETS ({sets})"
    with psycopg.connect(args.url, autocommit=True) as connection:
        for kind in ("int", "text"):
            write(connection, args.rows, kind)
            hand = fastest(lambda: connection.execute(by_hand).fetchall())
            ours, whole = fastest(lambda: our_pairs(table)), fastest(lambda: open_source(table, SCHEMA))
            print(f"{args.rows} rows x 8 {kind}: 28 pairs by hand {hand:.2f} s, ours {ours:.2f} s ({ours / hand:.2f})")
            print(f"  one table over all columns, from which every table is cut: {whole:.2f} s ({whole / hand:.2f})")
        connection.execute("DROP TABLE dpcurate_bench")


if __name__ == "__main__":
    main()
