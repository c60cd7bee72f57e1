"""What a run is expected to find, said before it spends anything; asks first where that is next to nothing."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable

from dpcurate.accounting import Budget
from dpcurate.cli.texts import say
from dpcurate.errors import DpcurateError
from dpcurate.learn.power import Power
from dpcurate.planning.estimate import estimate
from dpcurate.planning.plan import ESTIMATED
from dpcurate.result.verdict import HOPELESS, WORTHWHILE, visible, ways_to
from dpcurate.schema import Schema
from dpcurate.study.run_budget import RunBudget

MOST = 1e6
"""Times as much epsilon, or as many rows, as would be needed at most."""
NO_ROWS = (
    "note: without a rough public number of rows dpcurate cannot estimate what this run will find, and on a small "
    "table that may be mostly noise. Add --rows N, or `rows = N` to the schema"
)
Expected = Callable[[float, float], Power]
"""What a run would see with so many times its epsilon and so many times its rows."""


def check_worth(args: Namespace, schema: Schema, run: RunBudget) -> None:
    """Return if the run is worth its budget or wanted all the same; nothing is read and nothing is spent here."""
    if args.rows is not None and args.rows < 1:
        raise DpcurateError(f"--rows is a rough number of rows, at least 1, not {args.rows}")
    if len(schema.names) < 2:
        return
    rows = args.rows or schema.rows or (None if args.yes else _asked_rows())
    if rows is None:
        say(NO_ROWS)
        return
    budget, graph = run.of_run, 1 - (args.quantify or 0)

    def expected(epsilons: float, times_rows: float) -> Power:
        whole = budget if epsilons == 1 else Budget(epsilon=float(budget.epsilon or 0) * epsilons, delta=budget.delta)
        part = _part(whole, graph)
        return estimate(schema, max(round(rows * times_rows), 1), budget=part, neighbours=run.neighbours)

    power = expected(1, 1)
    if power.f1 >= HOPELESS:
        for sentence in visible(power) if args.method in ESTIMATED else ():
            say(f"  expect  {sentence}")
        return
    say(f"warning: {len(schema.names)} columns, {rows:,} rows and {budget} leave mostly noise.")
    for sentence in (*visible(power), _needed(expected, float(budget.epsilon or 0), rows)):
        say(f"  {sentence}")
    if not args.yes and not _agreed():
        raise DpcurateError("stopped before anything was read or spent")


def _part(budget: Budget, share: float) -> Budget:
    """What is left for the graph where the rest is set aside for its tables."""
    if share == 1:
        return budget
    amount = budget.ceiling * share
    return Budget(epsilon=amount, delta=0) if budget.pure else Budget(rho=amount, delta=budget.delta)


def _needed(expected: Expected, epsilon: float, rows: int) -> str:
    """How much more epsilon, or how many more rows, would do."""
    ways = ways_to(WORTHWHILE, expected, epsilon=epsilon, rows=rows, most=MOST)
    takes = f"An F1 of {WORTHWHILE:g} takes about {ways}; f" if ways else "F"
    return f"{takes}ewer columns and fewer levels help. `dpcurate plan` shows what to expect, and spends nothing."


def _asked_rows() -> int | None:
    """A rough public number of rows from whoever sits at the terminal; None where nobody does or says."""
    if not sys.stdin.isatty():
        return None
    say("Roughly how many rows may a reader know the table to have? (Enter to go on without: no estimate then)")
    answer = sys.stdin.readline().strip().replace(",", "").replace("_", "")
    if answer and not (answer.isdecimal() and int(answer) > 0):
        raise DpcurateError(f"{answer!r} is not a number of rows; nothing was read or spent")
    return int(answer) if answer else None


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise DpcurateError("nothing was read or spent. With nobody at the terminal to ask, --yes runs it all the same")
    say("Spend it all the same? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
