"""Options of commands as values of the library; what is wrong is refused before anything is read or spent."""

from __future__ import annotations

import hashlib
import os
from argparse import Namespace
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from dpcurate import Discovery, Schema, Study, Threshold, connect, messages, methods
from dpcurate.cli.terminal import say
from dpcurate.errors import FormatError, QueryError

TABLES = (
    ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".xlsx", ".dta", ".sav", ".sas7bdat", ".xpt", ".duckdb", ".db",
)  # fmt: skip
SUFFIXES: dict[str, tuple[str, ...]] = {"table": TABLES, "schema": (".toml",), "knowledge file": (".toml",)}
"""How the names of files end that may have been meant; of other kinds any."""
DRAFT = "# DRAFT: dpcurate LOOKED AT THE DATA"


def existing(path: str, what: str) -> str:
    """The path, if something is there; else a refusal that names the closest file of that kind in its folder."""
    place = Path(path.partition("#")[0])
    if place.exists() or any(c in path for c in "*?["):  # DuckDB reads patterns such as part-*.parquet
        return path
    near = [p.name for p in place.parent.iterdir()] if place.parent.is_dir() else []
    near = [name for name in near if name.lower().endswith(SUFFIXES.get(what, ""))]
    close = get_close_matches(place.name, near, n=1) or [name for name in near if Path(name).stem == place.stem]
    hint = f"; did you mean {str(place.parent / close[0])!r}?" if close else ""
    raise FormatError(f"there is no {what} at {path!r}{hint}")


def some_table(path: str) -> str:
    """The path of a table that is there, or a URL, which is tried when it is opened."""
    return path if "://" in path else existing(path, "table")


def load_schema(path: str) -> Schema:
    """The schema; one that still says it is a draft is pointed out."""
    place = Path(existing(path, "schema"))
    schema = Schema.load(place)
    if DRAFT in place.read_text(encoding="utf-8"):
        say(f"warning: {path!r} still says that it was drafted from the data; check it, then delete those lines")
    return schema


OF_A_TABLE = ("table", "schema", "delta", "neighbours", "ledger", "name", "by", "insecure_seed", "from_answers")
"""Options that mean nothing where a service has the table."""
LONGEST_TOKEN = 1000


def some_study(args: Namespace) -> Study:
    """The table of a command, here or on a server."""
    if args.server is None:
        if args.dummy or args.token_file is not None:
            raise QueryError(f"{'--dummy' if args.dummy else '--token-file'} goes with --server")
        table = some_table(args.table)
        load_schema(args.schema)
        return Study(
            table, args.schema, delta=args.delta, neighbours=args.neighbours, ledger=args.ledger, name=args.name,
            insecure_seed=args.insecure_seed,
        )  # fmt: skip
    for name in OF_A_TABLE:
        if getattr(args, name) is not None:
            word = {"table": "TABLE", "name": "--table"}.get(name, f"--{name.replace('_', '-')}")
            raise QueryError(f"the service of --server has the table, its schema and its ledger: leave out {word}")
    study = connect(args.server, None if args.token_file is None else _token(args.token_file), dummy=args.dummy)
    if args.dummy:
        say("MADE-UP ROWS of the schema, not the table: nothing is spent, and the result says nothing about anybody")
    return study


def _token(path: str) -> str:
    with Path(existing(path, "token")).open(encoding="utf-8", errors="replace") as file:
        return file.read(LONGEST_TOKEN).strip()


def destination(args: Namespace) -> str:
    """Where the result goes, for the log; the log of a service learns no path of this machine."""
    if args.output is None:
        return "standard output"
    path = os.path.abspath(args.output)
    return path if args.server is None else f"files {hashlib.sha256(path.encode()).hexdigest()[:16]}"


def knowledge_file(args: Namespace) -> str | None:
    """The path of `--knowledge`, if something is there."""
    return None if args.knowledge is None else existing(args.knowledge, "knowledge file")


def chosen_method(args: Namespace) -> str | methods.Method:
    """The method's name, or its recipe where settings were given."""
    return methods.with_settings(methods.get(args.method), args.set) if args.set else str(args.method)


def check_threshold(args: Namespace) -> None:
    """Refuse `--at` and `--direction` that no result can be drawn at."""
    Threshold.of(Threshold().linked if args.at is None else args.at, args.direction)


def at_threshold(result: Discovery, args: Namespace) -> Discovery:
    """The result drawn at `--at` and `--direction`; one without probabilities stays as it is, since it was paid for."""
    if args.at is None and args.direction is None:
        return result
    if not result.confidence:
        say(f"note: {messages.one_line(result.method)} gives no probabilities, so --at and --direction change nothing")
        return result
    return result.at(Threshold().linked if args.at is None else args.at, direction=args.direction)


def refuse_for_answers(args: Namespace, names: Iterable[str]) -> None:
    """Refuse options that have no meaning where stored answers are used again."""
    words = {"table": "a table", "name": "--table"}
    for name in names:
        if getattr(args, name) is not None:
            word = words.get(name, f"--{name.replace('_', '-')}")
            raise QueryError(f"--from-answers reads no table and spends nothing: leave out {word}")
