"""What can be typed. Nothing of the library is imported here, so that help comes at once."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, TypeAlias

from dpcurate import __version__
from dpcurate.accounting import DELTA

if TYPE_CHECKING:
    _Parsers: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001
_HELP = argparse.RawDescriptionHelpFormatter
_TABLE = "Parquet or CSV file, a folder of Parquet files, FILE.duckdb#TABLE, or postgresql://USER@HOST/DATABASE#TABLE"
_SCHEMA = "public description of the table (TOML); see 'dpcurate schema draft'"
_FORCE = "overwrite what is there"


def build() -> argparse.ArgumentParser:
    """The whole tree of commands."""
    root = argparse.ArgumentParser(
        prog="dpcurate",
        description="Causal graph discovery with a privacy guarantee that is true.",
        epilog="first steps:\n  dpcurate demo\n"
        "  dpcurate schema draft patients.parquet -o patients.toml   (then check every line)\n"
        "  dpcurate plan --schema patients.toml --rows 50000 --accuracy 0.8\n"
        "  dpcurate discover patients.parquet --schema patients.toml --epsilon 1 -o result\n\n"
        "exit codes: 0 done, 1 refused or failed (with a sentence), 2 wrong usage, 130 stopped by Ctrl-C",
        formatter_class=_HELP,
    )
    root.add_argument("--version", action="version", version=f"dpcurate {__version__}")
    commands = root.add_subparsers(metavar="COMMAND", required=True)
    for add in (_discover, _plan, _schema, _ledger, _methods, _network, _audit, _reproduce, _demo):
        add(commands)
    return root


def _command(commands: _Parsers, name: str, line: str, *, more: str = "", to: str) -> argparse.ArgumentParser:
    """A command that runs `module:function` of this package."""
    made = commands.add_parser(name, help=line, description=f"{line}.", epilog=more or None, formatter_class=_HELP)
    module, _, function = to.partition(":")
    made.set_defaults(module=module, function=function)
    return made


def _group(commands: _Parsers, name: str, line: str) -> _Parsers:
    made = commands.add_parser(name, help=line, description=f"{line}.", formatter_class=_HELP)
    return made.add_subparsers(metavar="COMMAND", required=True)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return value


def _whole(text: str) -> int:
    try:
        return int(text.replace("_", "").replace(",", ""))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def _privacy(made: argparse.ArgumentParser, *, epsilon: str, required: bool) -> None:
    made.add_argument("--epsilon", type=_number, required=required, metavar="E", help=epsilon)
    made.add_argument(
        "--delta", type=_number, metavar="D", help=f"probability of failure; 0 is pure (default: {DELTA:g})"
    )
    made.add_argument(
        "--neighbours",
        metavar="N",
        help="add-remove: one unit more or less (default); replace: one unit changed, row count public",
    )


def _discover(commands: _Parsers) -> None:
    made = _command(
        commands,
        "discover",
        "find which columns drive which, within a privacy budget",
        to="discover:run",
        more="The edges found go to standard output, all else to standard error. What will be spent, and on what, is\n"
        "said before the first row is read.\n\n"
        "example:\n  dpcurate discover patients.parquet --schema patients.toml --epsilon 1 \\\n"
        "    --ledger patients.ledger -o result",
    )
    made.add_argument("table", metavar="TABLE", help=_TABLE)
    made.add_argument("--schema", required=True, metavar="FILE", help=_SCHEMA)
    _privacy(
        made,
        epsilon="the most this run may spend; may be left out with a ledger that exists: all that is left",
        required=False,
    )
    made.add_argument("--method", default="auto", metavar="M", help="see 'dpcurate methods' (default: auto)")
    made.add_argument("--ledger", metavar="FILE", help="books shared by all runs on this table; made if not there")
    made.add_argument("--name", metavar="NAME", help="the table's name in the ledger (default: the ledger's file name)")
    made.add_argument("--knowledge", metavar="FILE", help="required and forbidden edges, tiers (TOML)")
    made.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="write report.html, report.json, graph.json, graph.dot, graph.graphml and edges.csv here",
    )
    made.add_argument("--force", action="store_true", help=_FORCE)
    made.add_argument("--insecure-seed", type=_whole, metavar="N", help="repeatable noise: NOT PRIVATE, for simulation")


def _plan(commands: _Parsers) -> None:
    made = _command(
        commands,
        "plan",
        "see what accuracy to expect before spending anything; touches no private data",
        to="plan:run",
        more="example:\n  dpcurate plan --schema patients.toml --rows 50000 --accuracy 0.8 -o plan.html",
    )
    made.add_argument("--schema", required=True, metavar="FILE", help=_SCHEMA)
    made.add_argument("--rows", type=_whole, required=True, metavar="N", help="about how many rows the table has")
    made.add_argument("--accuracy", type=_number, metavar="F", help="wanted skeleton F1 (0 to 1): says which epsilon")
    made.add_argument("--epsilons", type=_number, nargs="+", metavar="E", help="default: 0.03 0.1 0.3 1 3 10")
    made.add_argument("--delta", type=_number, default=DELTA, metavar="D", help=f"default: {DELTA:g}")
    made.add_argument("--neighbours", default="add-remove", metavar="N", help="add-remove (default) or replace")
    made.add_argument("--methods", nargs="+", metavar="M", help="default: every private method")
    made.add_argument("--worlds", type=_whole, default=8, metavar="N", help="how many random worlds (default: 8)")
    made.add_argument("--seed", type=_whole, default=0, metavar="N", help="the same seed gives the same worlds")
    made.add_argument("-o", "--output", metavar="FILE", help="write a page (.html) or the figures (.json)")
    made.add_argument("--force", action="store_true", help=_FORCE)


def _schema(commands: _Parsers) -> None:
    group = _group(commands, "schema", "write and check the public description of a table (for its owner)")
    draft = _command(
        group,
        "draft",
        "write a first schema; LOOKS AT THE DATA, a person must check every line",
        to="schema:draft_file",
    )
    draft.add_argument("table", metavar="TABLE", help=_TABLE)
    draft.add_argument("-o", "--output", metavar="FILE", help="write here (default: standard output)")
    draft.add_argument("--force", action="store_true", help=_FORCE)
    check = _command(
        group,
        "check",
        "tell how the rows fit a schema; LOOKS AT THE DATA, for the owner's eyes only",
        to="schema:check",
    )
    check.add_argument("table", metavar="TABLE", help=_TABLE)
    check.add_argument("--schema", required=True, metavar="FILE", help=_SCHEMA)


def _ledger(commands: _Parsers) -> None:
    group = _group(commands, "ledger", "keep one budget per table, across runs and people")
    init = _command(
        group,
        "init",
        "begin the books of a table, once",
        to="ledger:init",
        more="The budget belongs to the people in the table: a second ledger is not a second budget.\n\n"
        "example:\n  dpcurate ledger init patients.ledger --table patients --schema patients.toml --epsilon 3",
    )
    init.add_argument("path", metavar="PATH", help="file to make; an existing one is never touched")
    init.add_argument("--table", required=True, metavar="NAME", help="a name for the table")
    init.add_argument("--schema", required=True, metavar="FILE", help=_SCHEMA)
    _privacy(init, epsilon="the most that may ever be spent on this table", required=True)
    show = _command(group, "show", "where did my epsilon go, and what is left", to="ledger:report")
    show.add_argument("path", metavar="PATH", help="the ledger")
    show.add_argument("--lenses", action="store_true", help="also what other ways of counting would report")
    moved = _command(
        group,
        "moved",
        "adopt a ledger whose file was moved",
        to="ledger:moved",
        more="A ledger is refused anywhere but at its own path, because an interrupted payment is put right by the\n"
        "file PATH-journal beside it, which is found by the ledger's name. Use this only after the file was moved for\n"
        "good, with no run under way. Nothing is adopted while a -journal, or the ledger itself, is still where it\n"
        "was; if that place cannot be seen from here, make sure yourself. A copy is not a move: used beside the\n"
        "original it is a second budget, which nothing here can see on another machine.\n"
        "In containers mount the folder, not the file, at the same path everywhere.\n\n"
        "example:\n  mv patients.ledger archive/ && dpcurate ledger moved archive/patients.ledger",
    )
    moved.add_argument("path", metavar="PATH", help="where the ledger is now")


def _methods(commands: _Parsers) -> None:
    _command(commands, "methods", "list the methods", to="methods:run")


def _network(commands: _Parsers) -> None:
    group = _group(commands, "network", "benchmark networks: public worlds to practise on")
    _command(group, "list", "list the networks by name", to="network:listing")
    sample = _command(
        group,
        "sample",
        "draw rows from a network into a file",
        to="network:sample",
        more="example:\n  dpcurate network sample asia --rows 100000 --seed 1 -o asia.parquet --schema asia.toml",
    )
    sample.add_argument("name", metavar="NAME", help="see 'dpcurate network list', or a .bif file")
    sample.add_argument("--rows", type=_whole, required=True, metavar="N", help="how many rows")
    sample.add_argument("--seed", type=_whole, default=0, metavar="S", help="the same seed gives the same rows")
    sample.add_argument("-o", "--output", required=True, metavar="FILE", help=".parquet or .csv")
    sample.add_argument("--schema", metavar="FILE", help="also write the network's public schema")
    sample.add_argument("--force", action="store_true", help=_FORCE)


def _audit(commands: _Parsers) -> None:
    made = _command(
        commands,
        "audit",
        "try to tell two neighbouring tables apart by what a method releases; touches no private data",
        to="audit:run",
        more="example:\n  dpcurate audit em-pc --epsilon 1\n  dpcurate audit curate-pc --variant published",
    )
    made.add_argument("method", nargs="?", metavar="METHOD", help="see 'dpcurate methods'")
    made.add_argument("--variant", choices=("proved", "published"), default="proved", help="default: proved")
    made.add_argument("--epsilon", type=_number, default=1.0, metavar="E", help="budget of each run (default: 1)")
    made.add_argument("--runs", type=_whole, default=4000, metavar="N", help="runs on either table (default: 4000)")
    made.add_argument("--seed", type=_whole, default=0, metavar="S", help="the same seed gives the same audit")
    made.add_argument("--long", action="store_true", help="all methods and controls, about 40 minutes")


def _reproduce(commands: _Parsers) -> None:
    line = "run the CURATE paper's tables and figures again, published and proved"
    made = _command(commands, "reproduce", line, to="reproduce:run")
    made.add_argument("--quick", action="store_true", help="few runs, under 90 seconds")
    made.add_argument("--fresh", action="store_true", help="do not go on from an earlier, interrupted run")
    made.add_argument("--workers", type=_whole, default=2, metavar="N", help="processes (default: 2)")
    made.add_argument("-o", "--output", default="paper", metavar="DIR", help="where to (default: paper)")


def _demo(commands: _Parsers) -> None:
    made = _command(
        commands,
        "demo",
        "try it: draws 100,000 rows of the network Asia and finds its graph with epsilon = 1",
        to="demo:run",
    )
    made.add_argument("-o", "--output", default="demo", metavar="DIR", help="where to (default: demo)")
