"""`dpcurate demo`: the first thing to try."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from dpcurate import networks
from dpcurate.cli import discover
from dpcurate.cli.network import write_rows
from dpcurate.cli.parser import build
from dpcurate.cli.texts import say

ROWS, SEED = 100_000, 1


def run(args: Namespace) -> None:
    """Draw rows of Asia, find its graph with epsilon = 1, say where the result is."""
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    table, schema = folder / "asia.parquet", folder / "asia.toml"
    asia = networks.load("asia")
    write_rows(asia, table, rows=ROWS, seed=SEED)
    replace(asia.schema, rows=ROWS).save(schema)
    words = ["discover", str(table), "--schema", str(schema), "--epsilon", "1", "-o", str(folder), "--force"]
    say(f"$ dpcurate {' '.join(words)}")
    discover.run(build().parse_args(words))
    truth = ", ".join(f"{a} -> {b}" for a, b in asia.arcs)
    say(f"the true arrows of Asia: {truth}\nopen {folder / 'report.html'} in a browser")
