"""`dpcurate demo`: the first thing to try."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace

from dpcurate import networks
from dpcurate._files import NO_INPUTS
from dpcurate.cli import discover
from dpcurate.cli.files import result_folder
from dpcurate.cli.network import write_rows
from dpcurate.cli.parser import build
from dpcurate.cli.texts import say

ROWS, SEED = 100_000, 1
TABLE, SCHEMA = "asia.parquet", "asia.toml"


def run(args: Namespace) -> None:
    """Draw rows of Asia, find its graph with epsilon = 1, say where the result is."""
    folder = result_folder(args.output, NO_INPUTS, force=args.force, more=(TABLE, SCHEMA))
    assert folder is not None
    asia = networks.load("asia")
    write_rows(asia, folder, TABLE, rows=ROWS, seed=SEED)
    folder.write(SCHEMA, replace(asia.schema, rows=ROWS).dumps())
    table, schema = folder.path / TABLE, folder.path / SCHEMA
    words = ["discover", str(table), "--schema", str(schema), "--epsilon", "1", "-o", str(folder.path)]
    words += ["--force"] * args.force
    say(f"$ dpcurate {' '.join(words)}")
    discover.run(build().parse_args(words))
    truth = ", ".join(f"{a} -> {b}" for a, b in asia.arcs)
    say(f"the true arrows of Asia: {truth}\nopen {folder.path / 'report.html'} in a browser")
