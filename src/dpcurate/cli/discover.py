"""`dpcurate discover`: say what will be spent, spend it, hand over what was found."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from dpcurate.allowance import Allowance
from dpcurate.cli.progress import Bar, progress
from dpcurate.cli.texts import existing, one_line, say, show, some_table, table_name
from dpcurate.discovery import Discovery, fit
from dpcurate.errors import DpcurateError
from dpcurate.graphs.formats import save
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn import methods
from dpcurate.private.curator import Curator
from dpcurate.schema import Schema

GRAPHS = ("graph.json", "graph.dot", "graph.graphml", "edges.csv")
REPORTS = ("report.json", "report.html")
_DRAFT = "# DRAFT: dpcurate LOOKED AT THE DATA"


def run(args: Namespace) -> None:
    folder = _folder(args.output, force=args.force)
    methods.check_keeps_budget(args.method)
    table = some_table(args.table)
    schema = load_schema(args.schema)
    knowledge = None if args.knowledge is None else Knowledge.load(existing(args.knowledge, "knowledge file"))
    if knowledge is not None:
        knowledge.check(schema.names)
    allowance = Allowance.of(epsilon=args.epsilon, delta=args.delta, neighbours=args.neighbours, ledger=args.ledger)
    _announce(args, schema, allowance)
    curator = allowance.open(table, schema, name=args.name, insecure_seed=args.insecure_seed)
    result = _learn(curator, args.method, knowledge, allowance.share)
    if curator.passes > 1:  # a table that is held is read once
        say(f"passes over the table: {curator.passes}")
    hand_over(result, folder)


def load_schema(path: str) -> Schema:
    """The schema; one that still says it is a draft is pointed out."""
    place = Path(existing(path, "schema"))
    schema = Schema.load(place)
    if _DRAFT in place.read_text(encoding="utf-8"):
        say(f"warning: {path!r} still says that it was drafted from the data; check it, then delete those lines")
    return schema


def _folder(path: str | None, *, force: bool) -> Path | None:
    """The folder, made and found writable: a result that was paid for must not get lost."""
    if path is None:
        return None
    folder = Path(path)
    there = [name for name in (*GRAPHS, *REPORTS) if (folder / name).exists()]
    if there and not force:
        raise DpcurateError(
            f"{path!r} already holds {', '.join(there)}; nothing was read or spent. Choose another -o, or add --force"
        )
    folder.mkdir(parents=True, exist_ok=True)
    trial = folder / ".dpcurate"
    trial.touch()
    trial.unlink()
    return folder


def _announce(args: Namespace, schema: Schema, allowance: Allowance) -> None:
    person = schema.person
    unit = "one row" if person is None else f"one person, at most {person.rows} rows each"
    columns, table = len(schema.names), table_name(args.table)
    say(f"before any row is read: this run may spend {allowance}")
    say(f"  on      the edges among {columns} columns of {table} ({columns * (columns - 1) // 2} pairs)")
    say(f"  method  {one_line(args.method)}; neighbours: {allowance.neighbours.value}; unit: {unit}")
    say(f"  ledger  {one_line(allowance.kept)}")
    if args.insecure_seed is not None:
        say("  NOT PRIVATE: with --insecure-seed whoever knows the seed can undo the noise")


def _learn(curator: Curator, method: str, knowledge: Knowledge | None, amount: float | None) -> Discovery:
    bar, before = Bar(), curator.ledger.spent
    try:
        return fit(curator, method, knowledge, share=amount, notice=progress(curator, bar))
    except BaseException as problem:  # told, and raised again: what was spent stays spent whatever went wrong
        bar.clear()
        if curator.ledger.spent > before:
            _tell_spent(curator)
        elif isinstance(problem, KeyboardInterrupt):
            say("stopped before anything was spent")
        raise
    finally:
        bar.clear()


def _tell_spent(curator: Curator) -> None:
    kept = "the ledger holds it" if curator.ledger.facts else "no ledger holds it: write it down"
    say(f"stopped before the end, nothing was written. Spent on this table: {curator.privacy()}; {kept}")


def hand_over(result: Discovery, folder: Path | None) -> None:
    """Files first, then the edges; if a file fails the edges still come."""
    try:
        if folder is not None:
            for name in GRAPHS:
                save(result.graph, folder / name)
            for name in REPORTS:
                result.report(folder / name)
            say(f"written: {folder / 'report.html'} and {', '.join((*GRAPHS, 'report.json'))}")
    finally:
        say(f"{len(result.edges)} edges among {len(result.graph.nodes)} columns; {result.privacy}")
        for note in result.notes:
            say(f"note: {note}")
        for edge in result.edges:
            show(one_line(edge))
