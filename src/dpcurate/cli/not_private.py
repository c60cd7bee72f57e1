"""`dpcurate discover --not-private`: exact methods and papers as published, on tables that need no protection."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from dpcurate import (
    Budget,
    Curator,
    Discovery,
    Inputs,
    Ledger,
    NotPrivate,
    OutputFolder,
    Schema,
    Study,
    messages,
    methods,
)
from dpcurate.cli.options import at_threshold, knowledge_file, load_schema, some_table
from dpcurate.cli.terminal import Bar, RunProgress, hand_over, say, show
from dpcurate.errors import LedgerError, QueryError

WORDS = "NOT PRIVATE"
MARK = "NOT-PRIVATE-"
"""Before the name of every file: a graph's format has no place for a warning."""


def asked(args: Namespace) -> bool:
    """Whether such a run is asked for; refuses a method and a flag that contradict each other."""
    entry = methods.find(args.method, variant=args.variant)
    if entry.private and args.not_private:
        raise QueryError(f"{entry.name} is private: leave out --not-private and say what may be spent (--epsilon 1)")
    if not entry.private and not args.not_private:
        raise NotPrivate(
            f"{_title(args)} is NOT PRIVATE; nothing was read. If everybody may know every row, add --not-private; "
            "otherwise choose a private method ('dpcurate methods')"
        )
    return bool(args.not_private)


def run(args: Namespace) -> None:
    """Run it, and say NOT PRIVATE at every turn."""
    entry = methods.find(args.method, variant=args.variant)
    _refuse_what_has_no_meaning(args)
    recipe = methods.get(methods.with_settings(_with_claim(entry, args), args.set), latent=args.latent)
    folder = None
    if args.output is not None:
        inputs = Inputs.of(table=args.table, schema=args.schema, knowledge=args.knowledge)
        names = [f"{MARK}{name}" for name in Discovery.FILES]
        folder = OutputFolder.made(args.output, names, inputs, force=args.force)
    table, schema, knowledge = some_table(args.table), load_schema(args.schema), knowledge_file(args)
    _refuse_kept_ledgers(table, schema)
    _announce(entry, args, schema, recipe)
    curator = Curator(table, schema, budget=Budget.unlimited(), insecure_seed=args.insecure_seed)
    bar = Bar()
    try:
        progress = RunProgress(bar, lambda: curator.remaining)
        result = Study.over(curator).discover(method=recipe, knowledge=knowledge, order=args.order, progress=progress)
    finally:
        bar.clear()
    show(f"# {WORDS}")
    hand_over(at_threshold(result, args), folder, mark=MARK)


def _title(args: Namespace) -> str:
    return f"{args.method} as published" if args.variant == "published" else str(args.method)


def _refuse_what_has_no_meaning(args: Namespace) -> None:
    if args.ledger is not None:
        raise LedgerError(
            f"a ledger keeps the budget of private runs, and this one is {WORDS}; nothing was read. Leave out "
            "--ledger, or --not-private"
        )
    for name in ("delta", "neighbours", "name"):
        if getattr(args, name) is not None:
            raise QueryError(f"--{name} belongs to a guarantee, and with --not-private there is none: leave it out")
    if args.quantify is not None or args.synthetic is not None:
        raise QueryError("models are made of private answers: leave out --quantify and --synthetic")


def _with_claim(entry: methods.Listed, args: Namespace) -> methods.Method:
    """The recipe; --epsilon is what its authors would claim, for all of it or for each step."""
    recipe: Any = entry.recipe
    if args.epsilon is None:
        return entry.recipe
    names = {f.name for f in fields(recipe)} if is_dataclass(recipe) else set()
    setting = next((name for name in ("epsilon", "total") if name in names), None)
    if setting is None:
        raise QueryError(f"{_title(args)} takes no epsilon: leave out --epsilon")
    claimed: methods.Method = replace(recipe, **{setting: args.epsilon})
    return claimed


def _refuse_kept_ledgers(table: str, schema: Schema) -> None:
    """A table with a ledger holds people's data: its exact figures would undo what the ledger promises."""
    for path in _ledgers_near(table):
        if path.stem == Path(table.partition("#")[0]).stem or schema.hash in _schemas_of(path):
            raise LedgerError(
                f"{str(path)!r} is kept for private runs on this table; a run that is {WORDS} would undo what it "
                "promises. Nothing was read. If it is another table's, keep the two in folders of their own"
            )


def _ledgers_near(table: str) -> Iterator[Path]:
    folders = [Path()] if "://" in table else [Path(table.partition("#")[0]).parent, Path()]
    for folder in dict.fromkeys(f.resolve() for f in folders if f.is_dir()):
        yield from sorted(folder.glob("*.ledger"))


def _schemas_of(path: Path) -> set[str]:
    try:
        ledger = Ledger.open(path)
    except LedgerError:  # damaged, moved or no ledger: only its name counts
        return set()
    assert ledger.facts is not None
    return {ledger.facts.schema_hash, *(schema.hash for schema in ledger.schemas)}


def _announce(entry: methods.Listed, args: Namespace, schema: Schema, recipe: methods.Method) -> None:
    columns = len(schema.names)
    table = "a database" if "://" in args.table else repr(args.table)  # a URL may hold a password
    say(f"{WORDS}: this run protects nobody. It reads {table} without a budget and records nothing")
    say(f"  on      the edges among {columns} columns ({columns * (columns - 1) // 2} pairs)")
    say(f"  method  {messages.one_line(_title(args))}: {entry.about}")
    total = getattr(recipe, "total", None)
    if total is not None:
        say(f"  epsilon {total:g} is the most its authors would claim for the whole run")
    elif args.epsilon is not None:
        say(
            f"  epsilon {args.epsilon:g} is of EACH STEP; the claim for the whole run is larger, and is printed at its "
            f"end. --set total={args.epsilon:g} in place of --epsilon is the claim for the whole run"
        )
