"""`dpcurate network`: public worlds to practise on."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from dpcurate import networks
from dpcurate._files import Folder, Inputs
from dpcurate._messages import how_many
from dpcurate.cli.texts import columns, say, show
from dpcurate.errors import FormatError, OutputError
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
    target, source = Path(args.output), Inputs.of(network=args.name)
    folder = Folder.of_file(target, source, force=args.force)
    check_suffix(target)
    beside = None
    if args.schema is not None:
        beside = Folder.of_file(
            args.schema, Inputs((*source.files, ("file of the rows", args.output))), force=args.force
        )
    write_rows(network, folder, target.name, rows=args.rows, seed=args.seed)
    say(f"written: {target}, {how_many(args.rows, 'row')} of {how_many(len(network.nodes), 'column')}")
    if beside is not None:
        schema = replace(network.schema, rows=args.rows)
        say(f"written: {beside.write(Path(args.schema).name, schema.dumps())}")


def check_suffix(target: Path) -> None:
    """Refuse a kind of file that cannot be written, before any row is drawn."""
    if target.suffix.lower() not in _COPY:
        raise FormatError(f"cannot tell what {str(target)!r} is to be; known are {' and '.join(_COPY)}")


def write_rows(network: Network, folder: Folder, name: str, *, rows: int, seed: int) -> None:
    """A sample as Parquet or CSV; the suffix says which."""
    import duckdb

    how = _COPY[Path(name).suffix.lower()]
    connection = duckdb.connect()
    connection.execute("SET pandas_analyze_sample = 0")  # text stays text
    connection.register("drawn", network.sample(rows, seed=seed))
    with TemporaryDirectory(prefix="dpcurate-") as private:  # DuckDB takes a path, and follows any link there
        draft = Path(private, "rows")
        place = str(draft).replace("'", "''")
        try:
            connection.execute(f"COPY (SELECT * FROM drawn) TO '{place}' ({how})")
        except duckdb.Error as problem:
            raise OutputError(f"cannot write {str(folder.path / name)!r}: {problem}") from None
        folder.write_bytes(name, draft.read_bytes())
