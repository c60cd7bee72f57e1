"""`dpcurate schema` and `dpcurate ledger`: describe a table, and keep its privacy budget."""

from __future__ import annotations

import json
import math
import re
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpcurate import (
    Budget,
    DpcurateError,
    Inputs,
    Ledger,
    Neighbours,
    OutputFolder,
    Schema,
    check_table,
    discover_from,
    draft_schema,
    messages,
)
from dpcurate.accounting import DELTA, Event, cautions
from dpcurate.accounting.composition import RULES
from dpcurate.cli.options import existing, load_schema, some_table
from dpcurate.cli.terminal import aligned, say, show
from dpcurate.errors import QueryError

_WARNING = "NOT PRIVATE, for the owner's eyes only"

# --- schema -------------------------------------------------------------------------------------------------


def draft(args: Namespace) -> None:
    """Write a first schema from a table."""
    inputs = Inputs.of(table=args.table)
    folder = None if args.output is None else OutputFolder.of_file(args.output, inputs, force=args.force)
    given = {"separator": args.separator, "encoding": args.encoding, "decimal": args.decimal}
    result = draft_schema(some_table(args.table), **given, skip=args.skip)
    if result.read_as:
        say(f"read as {result.read_as}")
    say("this looked at the data: check every line before anyone uses the schema")
    if result.repeated_id is not None:
        say(f"does column {result.repeated_id!r} identify persons? Its ids repeat: see [person] in the draft")
    if folder is None:
        show(result.text.rstrip("\n"))
    else:
        target = folder.write(Path(args.output).name, result.text)
        table = repr(args.table) if "://" not in args.table else "TABLE"  # a URL may hold a password
        say(f"written: {target}; next: dpcurate schema check {table} --schema {str(target)!r}")


def check(args: Namespace) -> None:
    """Report how well the rows fit a schema."""
    schema = load_schema(args.schema)
    if not args.yes and not (sys.stdout is not None and sys.stdout.isatty()):
        raise DpcurateError(
            "a check prints exact numbers of the table, which are for the owner's eyes only, and standard output is "
            "no terminal: nothing was read. Run it in a terminal, or add --yes if you may see them"
        )
    say("this looks at the data, for the owner's eyes only: its output is not private, do not publish it")
    show(f"{_WARNING}\n{check_table(some_table(args.table), schema)}\n{_WARNING}\n")
    show(f"the table can be used with this schema (hash {schema.hash})")


def export_csvw(args: Namespace) -> None:
    """Write a schema as CSVW-EO metadata."""
    inputs = Inputs.of(schema=args.schema)
    text = load_schema(args.schema).to_csvw(url=args.url, max_rows=args.max_rows)
    _write_or_show(args, inputs, text)


def import_csvw(args: Namespace) -> None:
    """Write a schema from CSVW metadata, and say what it does not have."""
    notes: list[str] = []
    schema = Schema.from_csvw(Path(existing(args.metadata, "metadata file")), notes=notes)
    for note in notes:
        say(messages.one_line(note))
    _write_or_show(args, Inputs.of(metadata=args.metadata), schema.dumps())
    say("check that every level and bound is public knowledge, and add the rules for missing cells")


def _write_or_show(args: Namespace, inputs: Inputs, text: str) -> None:
    if args.output is None:
        show(text.rstrip("\n"))
    else:
        folder = OutputFolder.of_file(args.output, inputs, force=args.force)
        say(f"written: {folder.write(Path(args.output).name, text)}")


# --- ledger -------------------------------------------------------------------------------------------------


def init(args: Namespace) -> None:
    """Create the ledger of a table."""
    schema = load_schema(args.schema)
    budget = Budget(epsilon=args.epsilon, delta=DELTA if args.delta is None else args.delta)
    for caution in cautions(budget, schema.rows):
        say(f"warning: {caution}")
    neighbours = Neighbours.of(args.neighbours or Neighbours.ADD_REMOVE).value
    ledger = Ledger.create(args.path, table=args.table, schema=schema, neighbours=neighbours, budget=budget)
    show(f"{messages.one_line(args.path)}: the most that may ever be spent on {args.table!r} is {ledger.budget}")
    show("keep this file with the table for good, and back it up")


def report(args: Namespace) -> None:
    """Show where the budget went and what is left."""
    ledger = Ledger.open(existing(args.path, "ledger"))
    for line in _facts(ledger):
        show(messages.one_line(line))
    show("\nwhere it went:\n" + aligned(_steps(ledger), right=frozenset((2, 3, 4))))
    if args.composition:
        show("\nwhat other composition rules would report for the same steps (only the ledger decides):")
        show(aligned(_rules(ledger), right=frozenset((1,))))


def log(args: Namespace) -> None:
    """List the runs."""
    ledger = Ledger.open(existing(args.path, "ledger"))
    show(aligned(_runs(ledger), right=frozenset((0, 4, 5))))


def moved(args: Namespace) -> None:
    """Adopt a ledger whose file was moved."""
    ledger = Ledger.moved(existing(args.path, "ledger"))
    assert ledger.facts is not None
    show(messages.one_line(f"the ledger of {ledger.facts.table!r} is now kept at {ledger.facts.path}"))


_PUBLISHER = ("name", "curator", "curator_type", "description", "intended_use", "region", "sector", "justification")


def record(args: Namespace) -> None:
    """Describe a result for the registry of differential privacy deployments."""
    found = discover_from(existing(args.path, "ledger"), args.run)
    publisher = {name: getattr(args, name) for name in _PUBLISHER}
    told = found.registry_record(**publisher, authors=args.author)
    _write_or_show(args, Inputs.of(ledger=args.path), json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    empty = list(_empty(told))
    if empty:
        say(f"left empty, to be filled in before it is submitted: {', '.join(empty)}")


def _empty(value: Any, key: str = "") -> Iterator[str]:
    """Names of the empty texts in a record."""
    if value == "":
        yield key
    elif isinstance(value, dict):
        for name, inside in value.items():
            yield from _empty(inside, name)
    elif isinstance(value, list):
        for inside in value:
            yield from _empty(inside, key)


def _facts(ledger: Ledger) -> Iterator[str]:
    facts, budget = ledger.facts, ledger.budget
    assert facts is not None
    yield f"table {facts.table!r}, {facts.neighbours} neighbours, since {facts.created}"
    yield f"unit     {ledger.unit or f'that of the schema {facts.schema_hash}, which it has not seen yet'}"
    for schema in ledger.schemas:
        yield f"schema   {schema.hash} since {schema.since}"
    for since, path in ledger.kept_at:
        yield f"kept at  {path} since {since}"
    if not ledger.private:
        yield "NOT PRIVATE: exact, unproved or seeded releases took part"
    yield f"ceiling  {budget}: this is the guarantee"
    yield f"spent    {_amount(ledger.spent, budget)}"
    left = ledger.remaining
    yield f"left     {'nothing left' if budget.is_negligible(left) else _amount(left, budget)}"
    if ledger.reserved > 0:
        amount = _amount(ledger.reserved, budget)
        yield f"reserved {amount}: by a run under way, or lost in one that crashed; it counts as spent"
    for share in ledger.shares:
        spent, ceiling = _amount(share.spent, budget), _amount(share.ceiling, budget)
        yield f"share    {share.name} ({share.kind}): spent {spent}; at most {ceiling}"


def _amount(amount: float, budget: Budget) -> str:
    share = f"{amount / float(budget.ceiling):.1%} of the ceiling"
    if budget.pure:
        return f"epsilon = {amount:.4g} ({share})"
    return f"rho = {amount:.4g} ({share}; by itself epsilon = {budget.as_epsilon(amount):.4g})"


def _runs(ledger: Ledger) -> Iterator[tuple[str, ...]]:
    budget, runs = ledger.budget, ledger.log()
    yield ("run", "started", "by", "method", "epsilon", budget.currency, "schema", "outcome", "purpose", "result")
    for run in runs:
        facts = run.facts
        yield (
            f"{run.number}", run.started, facts.by, facts.method, f"{budget.as_epsilon(run.spent):.4g}",
            f"{run.spent:.4g}", facts.schema, run.outcome, facts.purpose, facts.result,
        )  # fmt: skip
    if not runs:
        yield ("-", "no runs yet", *[""] * 8)


def _steps(ledger: Ledger) -> Iterator[tuple[str, ...]]:
    """Steps of one kind together, the most expensive first."""
    budget = ledger.budget
    costs: dict[tuple[str, str], list[float]] = {}
    for event in ledger.events:
        costs.setdefault((_kind(event), event.mechanism), []).append(float(event.cost.within(budget)))
    yield ("step", "mechanism", "times", budget.currency, "of the ceiling")
    for (kind, mechanism), parts in sorted(costs.items(), key=lambda item: -math.fsum(item[1])):
        total = math.fsum(parts)
        yield kind, mechanism, f"{len(parts)}", f"{total:.4g}", f"{total / float(budget.ceiling):.1%}"
    if not costs:
        yield "nothing yet", "", "", "", ""


def _kind(event: Event) -> str:
    """What was asked, without the columns and numbers it was asked about."""
    return re.sub(r"\(.*\)|\d[\d.e-]* ?", "", event.about, flags=re.DOTALL).strip()


def _rules(ledger: Ledger) -> Iterator[tuple[str, ...]]:
    yield "rule", "epsilon", "costs chosen along the way", "remark"
    for name in RULES:
        try:
            report = ledger.under(name)
        except QueryError as error:  # an optional package
            yield name, "-", "", str(error)
            continue
        yield name, f"{report.epsilon:.4g}", "allowed" if report.adaptive else "not allowed", report.remark
