"""`dpcurate discover`: say what will be spent, spend it, hand over what was found."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from dpcurate.budget import Budget, epsilon_of
from dpcurate.cli.progress import Bar, watched
from dpcurate.cli.texts import existing, one_line, say, show, some_table, table_name
from dpcurate.discovery import Discovery, fit
from dpcurate.doors import share
from dpcurate.errors import BudgetError, BudgetExceeded, DpcurateError, LedgerError
from dpcurate.graphs.formats import save
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.recipes import recipe
from dpcurate.private.curator import Curator
from dpcurate.private.ledger import Ledger
from dpcurate.schema import Neighbours, Schema

DELTA = 1e-10
DUST = 1e-6
"""Less than this part of a budget buys nothing but noise, which would look like a result."""
GRAPHS = ("graph.json", "graph.dot", "graph.graphml", "edges.csv")
REPORTS = ("report.json", "report.html")
_DRAFT = "# DRAFT: dpcurate LOOKED AT THE DATA"


@dataclass(frozen=True, slots=True)
class Purse:
    """Which budget a run draws on: a new one, or a share of a ledger's (None is all that is left)."""

    budget: Budget
    neighbours: Neighbours
    ledger: Path | None = None
    left: float | None = None
    share: float | None = None

    @property
    def old(self) -> bool:
        """Whether the books were there before."""
        return self.left is not None

    def __str__(self) -> str:
        if not self.old:
            return str(self.budget)
        amount = cast(float, self.left if self.share is None else self.share)
        if self.budget.pure:
            return f"epsilon = {amount:.4g}, delta = 0"
        delta = float(self.budget.delta or 0)
        return f"epsilon = {epsilon_of(rho=amount, delta=delta):.4g}, delta = {delta:.3g} (rho = {amount:.4g})"

    @property
    def books(self) -> str:
        """Who remembers."""
        if self.ledger is None:
            return "none, so nothing remembers this spending (--ledger FILE would)"
        name = repr(str(self.ledger))
        if self.left is None:
            return f"{name}, which is new; the epsilon of this run becomes the ceiling of the table"
        total = float(self.budget.ceiling)
        return f"{name}, where {self.left:.4g} of {self.budget.currency} = {total:.4g} is left"


def run(args: Namespace) -> None:
    """Find a graph."""
    folder = _folder(args.output, force=args.force)
    recipe(args.method)
    table = some_table(args.table)
    schema = load_schema(args.schema)
    knowledge = None if args.knowledge is None else Knowledge.load(existing(args.knowledge, "knowledge file"))
    if knowledge is not None:
        knowledge.check(schema.names)
    purse = _purse(args)
    _announce(args, schema, purse)
    curator = Curator(
        table,
        schema,
        budget=None if purse.old else purse.budget,
        neighbours=purse.neighbours,
        ledger=purse.ledger,
        name=args.name,
        insecure_seed=args.insecure_seed,
    )
    found = _learn(curator, args.method, knowledge, purse.share)
    if curator.passes > 1:  # a table that is held is read once
        say(f"passes over the table: {curator.passes}")
    hand_over(found, folder)


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


def _purse(args: Namespace) -> Purse:
    if args.ledger is not None and Path(args.ledger).exists():
        return _old_purse(args)
    if args.epsilon is None:
        raise BudgetError("say how much may be spent, such as --epsilon 1; 'dpcurate plan' helps to choose")
    budget = Budget(epsilon=args.epsilon, delta=DELTA if args.delta is None else args.delta)
    relation = Neighbours.of(args.neighbours or Neighbours.ADD_REMOVE)
    return Purse(budget, relation, None if args.ledger is None else Path(args.ledger))


def _old_purse(args: Namespace) -> Purse:
    books = Ledger.open(args.ledger)
    facts = books.facts
    assert facts is not None
    budget = books.budget
    if args.delta not in (None, budget.delta):
        raise LedgerError(
            f"{args.ledger!r} counts with delta = {budget.delta:.3g}, not {args.delta:.3g}; leave --delta out"
        )
    if books.remaining <= DUST * float(budget.ceiling):
        raise BudgetExceeded(f"nothing is left of the budget in {args.ledger!r} ({budget}); nothing was read")
    part = None if args.epsilon is None else Budget(epsilon=args.epsilon, delta=budget.delta).ceiling
    relation = Neighbours.of(args.neighbours or facts.neighbours)
    return Purse(budget, relation, Path(args.ledger), books.remaining, part)


def _announce(args: Namespace, schema: Schema, purse: Purse) -> None:
    person = schema.person
    unit = "one row" if person is None else f"one person, at most {person.rows} rows each"
    columns, table = len(schema.names), table_name(args.table)
    say(f"before any row is read: this run may spend {purse}")
    say(f"  on      the edges among {columns} columns of {table} ({columns * (columns - 1) // 2} pairs)")
    say(f"  method  {one_line(args.method)}; neighbours: {purse.neighbours.value}; unit: {unit}")
    say(f"  ledger  {one_line(purse.books)}")
    if args.insecure_seed is not None:
        say("  NOT PRIVATE: with --insecure-seed whoever knows the seed can undo the noise")


def _learn(curator: Curator, method: str, knowledge: Knowledge | None, amount: float | None) -> Discovery:
    bar, before = Bar(), curator.ledger.spent
    try:
        with share(curator, amount) as door:
            # fit() needs no more than a door; its signature says Curator.
            found = fit(cast(Curator, watched(door, bar)), method, knowledge)
        return replace(found, privacy=curator.privacy())  # the block has given back what it did not use
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


def hand_over(found: Discovery, folder: Path | None) -> None:
    """Files first, then the edges; if a file fails the edges still come."""
    try:
        if folder is not None:
            for name in GRAPHS:
                save(found.graph, folder / name)
            for name in REPORTS:
                found.report(folder / name)
            say(f"written: {folder / 'report.html'} and {', '.join((*GRAPHS, 'report.json'))}")
    finally:
        say(f"{len(found.edges)} edges among {len(found.graph.nodes)} columns; {found.privacy}")
        for note in found.notes:
            say(f"note: {note}")
        for edge in found.edges:
            show(one_line(edge))
