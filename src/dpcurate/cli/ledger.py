"""`dpcurate ledger`: create a ledger, read it, and say that it was moved."""

from __future__ import annotations

import math
import re
from argparse import Namespace
from collections.abc import Iterator

from dpcurate._messages import one_line
from dpcurate.accounting import DELTA, Budget, Event, epsilon_of
from dpcurate.accounting.cautions import cautions
from dpcurate.accounting.composition import RULES
from dpcurate.cli.files import load_schema
from dpcurate.cli.texts import columns, existing, say, show
from dpcurate.errors import QueryError
from dpcurate.private.ledger import Ledger
from dpcurate.schema import Neighbours
from dpcurate.study.run_budget import NEGLIGIBLE


def init(args: Namespace) -> None:
    schema = load_schema(args.schema)
    budget = Budget(epsilon=args.epsilon, delta=DELTA if args.delta is None else args.delta)
    for caution in cautions(budget, schema.rows):
        say(f"warning: {caution}")
    neighbours = Neighbours.of(args.neighbours or Neighbours.ADD_REMOVE).value
    ledger = Ledger.create(args.path, table=args.table, schema=schema, neighbours=neighbours, budget=budget)
    show(f"{one_line(args.path)}: the most that may ever be spent on {args.table!r} is {ledger.budget}")
    show("keep this file with the table for good, and back it up")


def report(args: Namespace) -> None:
    ledger = Ledger.open(existing(args.path, "ledger"))
    for line in _facts(ledger):
        show(one_line(line))
    show("\nwhere it went:\n" + columns(_groups(ledger), right=frozenset((2, 3, 4))))
    if args.composition:
        show("\nwhat other composition rules would report for the same steps (only the ledger decides):")
        show(columns(_rules(ledger), right=frozenset((1,))))


def log(args: Namespace) -> None:
    ledger = Ledger.open(existing(args.path, "ledger"))
    show(columns(_runs(ledger), right=frozenset((0, 4, 5))))


def _runs(ledger: Ledger) -> Iterator[tuple[str, ...]]:
    budget = ledger.budget
    yield ("run", "started", "by", "method", "epsilon", budget.currency, "schema", "outcome", "purpose", "result")
    for run in ledger.log():
        facts, units = run.facts, run.spent
        alone = units if budget.pure else epsilon_of(rho=units, delta=float(budget.delta or 0)) if units else 0.0
        spent = f"{alone:.4g}", f"{units:.4g}"
        yield (f"{run.number}", run.started, facts.by, facts.method, *spent, facts.schema, run.outcome, facts.purpose,
               facts.result)  # fmt: skip
    if not ledger.log():
        yield ("-", "no runs yet", *[""] * 8)


def moved(args: Namespace) -> None:
    ledger = Ledger.moved(existing(args.path, "ledger"))
    assert ledger.facts is not None
    show(one_line(f"the ledger of {ledger.facts.table!r} is now kept at {ledger.facts.path}"))


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
    yield f"left     {_left(ledger)}"
    if ledger.reserved > 0:
        held = _amount(ledger.reserved, budget)
        yield f"reserved {held}: by a run under way, or lost in one that crashed; it counts as spent"


def _left(ledger: Ledger) -> str:
    nothing = ledger.remaining <= NEGLIGIBLE * float(ledger.budget.ceiling)
    return "nothing left" if nothing else _amount(ledger.remaining, ledger.budget)


def _amount(amount: float, budget: Budget) -> str:
    share = f"{amount / float(budget.ceiling):.1%} of the ceiling"
    if budget.pure:
        return f"epsilon = {amount:.4g} ({share})"
    alone = epsilon_of(rho=amount, delta=float(budget.delta or 0))
    return f"rho = {amount:.4g} ({share}; by itself epsilon = {alone:.4g})"


def _groups(ledger: Ledger) -> Iterator[tuple[str, ...]]:
    """Steps of one kind together, the most expensive first."""
    budget = ledger.budget
    yield ("step", "mechanism", "times", budget.currency, "of the ceiling")
    cost: dict[tuple[str, str], list[float]] = {}
    for event in ledger.events:
        cost.setdefault((_kind(event), event.mechanism), []).append(float(event.cost.within(budget)))
    for (kind, mechanism), parts in sorted(cost.items(), key=lambda item: -math.fsum(item[1])):
        total = math.fsum(parts)
        yield kind, mechanism, f"{len(parts)}", f"{total:.4g}", f"{total / float(budget.ceiling):.1%}"
    if not cost:
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
