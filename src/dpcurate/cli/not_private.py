"""`dpcurate discover --not-private`: exact methods and papers as published, on tables that need no protection."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from dpcurate._files import Inputs
from dpcurate._messages import one_line
from dpcurate.accounting import Budget
from dpcurate.cli.cuts import at_cut
from dpcurate.cli.files import hand_over, load_knowledge, load_schema, result_folder
from dpcurate.cli.progress import Bar
from dpcurate.cli.quantified import refuse
from dpcurate.cli.settings import with_settings
from dpcurate.cli.texts import say, show, some_table, table_name
from dpcurate.errors import LedgerError, NotPrivate, QueryError
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn import methods
from dpcurate.learn.methods import Listed, Method
from dpcurate.private.curator import Curator
from dpcurate.private.ledger import Ledger
from dpcurate.queries.proxies import Notice
from dpcurate.result.discovery import Discovery
from dpcurate.result.threshold import Threshold
from dpcurate.schema import Schema
from dpcurate.study.calls import fit

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
            f"{_title(entry, args)} is NOT PRIVATE; nothing was read. If everybody may know every row, add "
            "--not-private; otherwise choose a private method ('dpcurate methods')"
        )
    return bool(args.not_private)


def run(args: Namespace, cut: Threshold | None) -> None:
    entry = methods.find(args.method, variant=args.variant)
    _refuse_what_has_no_meaning(args)
    refuse(args, "models are made of private answers")
    recipe = methods.get(with_settings(_with_claim(entry, args), args.set), latent=args.latent)
    inputs = Inputs.of(table=args.table, schema=args.schema, knowledge=args.knowledge)
    folder = result_folder(args.output, inputs, force=args.force, mark=MARK)
    table, schema = some_table(args.table), load_schema(args.schema)
    _refuse_kept_ledgers(table, schema)
    knowledge = load_knowledge(args, schema)
    _announce(entry, args, schema, recipe)
    curator = Curator(table, schema, budget=Budget.unlimited(), insecure_seed=args.insecure_seed)
    result = _learn(curator, recipe, knowledge)
    show(f"# {WORDS}")
    hand_over(at_cut(result, cut), folder, mark=MARK)


def _title(entry: Listed, args: Namespace) -> str:
    return f"{entry.name} as published" if args.variant == "published" else entry.name


def _refuse_what_has_no_meaning(args: Namespace) -> None:
    if args.ledger is not None:
        raise LedgerError(
            f"a ledger keeps the budget of private runs, and this one is {WORDS}; nothing was read. Leave out "
            "--ledger, or --not-private"
        )
    for name in ("delta", "neighbours", "name"):
        if getattr(args, name) is not None:
            raise QueryError(f"--{name} belongs to a guarantee, and with --not-private there is none: leave it out")


def _with_claim(entry: Listed, args: Namespace) -> Method:
    """The recipe; --epsilon is what its authors would claim, for all of it or for each step."""
    recipe: Any = entry.recipe
    if args.epsilon is None:
        return entry.recipe
    setting = _claim_setting(recipe)
    if setting is None:
        raise QueryError(f"{_title(entry, args)} takes no epsilon: leave out --epsilon")
    claimed: Method = replace(recipe, **{setting: args.epsilon})
    return claimed


def _claim_setting(recipe: Any) -> str | None:
    names = {f.name for f in fields(recipe)} if is_dataclass(recipe) else set()
    return next((name for name in ("epsilon", "total") if name in names), None)


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


def _announce(entry: Listed, args: Namespace, schema: Schema, recipe: Method) -> None:
    columns = len(schema.names)
    say(f"{WORDS}: this run protects nobody. It reads {table_name(args.table)} without a budget and remembers nothing")
    say(f"  on      the edges among {columns} columns ({columns * (columns - 1) // 2} pairs)")
    say(f"  method  {one_line(_title(entry, args))}: {entry.about}")
    total = getattr(recipe, "total", None)
    if total is not None:
        say(f"  epsilon {total:g} is the most its authors would claim for the whole run")
    elif args.epsilon is not None:
        say(
            f"  epsilon {args.epsilon:g} is of EACH STEP; the claim for the whole run is larger, and is printed at its "
            f"end. --set total={args.epsilon:g} in place of --epsilon is the claim for the whole run"
        )


def _learn(curator: Curator, recipe: Method, knowledge: Knowledge | None) -> Discovery:
    bar = Bar()
    try:
        return fit(curator, recipe, knowledge, order=(), notice=_progress(bar))
    finally:
        bar.clear()


def _progress(bar: Bar) -> Notice:
    done = 0

    def notice(stage: str, tests: int) -> None:
        nonlocal done
        done += tests
        bar.draw(stage, 1.0, f"{WORDS}, {done:,} tests")

    return notice
