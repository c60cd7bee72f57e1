"""`dpcurate network`: public worlds to practise on."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from dpcurate import networks
from dpcurate.cli.texts import columns, fresh, say, show
from dpcurate.errors import FormatError
from dpcurate.networks import Network

_COPY = {".parquet": "FORMAT parquet", ".csv": "FORMAT csv, HEADER true"}


def listing(_args: Namespace) -> None:
    rows = [("name", "columns", "arrows", "parameters")]
    for name in networks.names():
        network = networks.load(name)
        rows.append((name, f"{len(network.nodes)}", f"{len(network.arcs)}", f"{network.parameters}"))
    show(columns(rows, right=frozenset((1, 2, 3))))


def sample(args: Namespace) -> None:
    """Rows of a network in a file, and its schema beside it if wanted."""
    network = networks.load(args.name)
    target = fresh(args.output, force=args.force)
    schema = None if args.schema is None else fresh(args.schema, force=args.force)
    write_rows(network, target, rows=args.rows, seed=args.seed)
    say(f"written: {target}, {args.rows:,} rows of {len(network.nodes)} columns")
    if schema is not None:
        network.schema.save(schema)
        say(f"written: {schema}")


def write_rows(network: Network, target: Path, *, rows: int, seed: int) -> None:
    """A sample as Parquet or CSV; the suffix says which."""
    import duckdb

    how = _COPY.get(target.suffix.lower())
    if how is None:
        raise FormatError(f"cannot tell what {str(target)!r} is to be; known are {' and '.join(_COPY)}")
    connection = duckdb.connect()
    connection.execute("SET pandas_analyze_sample = 0")  # text stays text
    connection.register("drawn", network.sample(rows, seed=seed))
    name = str(target).replace("'", "''")
    connection.execute(f"COPY (SELECT * FROM drawn) TO '{name}' ({how})")
