"""`dpcurate ledger`: begin the books, and read them."""

from __future__ import annotations

import math
import re
from argparse import Namespace
from collections.abc import Iterable

from dpcurate.budget import Budget, Event, epsilon_of
from dpcurate.cli.discover import DELTA, load_schema
from dpcurate.cli.texts import columns, existing, one_line, show
from dpcurate.errors import RequestError
from dpcurate.private.ledger import Ledger
from dpcurate.private.lenses import LENSES
from dpcurate.schema import Neighbours


def init(args: Namespace) -> None:
    """Begin the books of a table."""
    books = Ledger.create(
        args.path,
        table=args.table,
        schema_hash=load_schema(args.schema).hash,
        neighbours=Neighbours.of(args.neighbours or Neighbours.ADD_REMOVE).value,
        budget=Budget(epsilon=args.epsilon, delta=DELTA if args.delta is None else args.delta),
    )
    show(f"{one_line(args.path)}: the most that may ever be spent on {args.table!r} is {books.budget}")
    show("keep this file with the table for good, and back it up")


def show_books(books: Ledger) -> Iterable[str]:
    """The facts, and what is spent and left."""
    facts, budget = books.facts, books.budget
    assert facts is not None
    yield f"table {facts.table!r}, schema {facts.schema_hash}, {facts.neighbours} neighbours, since {facts.created}"
    if not books.private:
        yield "NOT PRIVATE: exact, unproved or seeded releases took part"
    yield f"ceiling: {budget} (this is the guarantee)"
    yield f"spent:   {_amount(books.spent, budget)}"
    yield f"left:    {_amount(books.remaining, budget)}"
    if books.reserved > 0:
        yield f"of what is spent, {_amount(books.reserved, budget)} is reserved by a run under way or one that crashed"


def show(args: Namespace) -> None:  # noqa: F811
    """Where the budget went."""
