"""Asked before a budget is spent on a run that is expected to find next to nothing."""

from __future__ import annotations

import sys

from dpcurate.accounting import Budget
from dpcurate.accounting.search import least
from dpcurate.allowance import Allowance
from dpcurate.cli.texts import say
from dpcurate.errors import DpcurateError
from dpcurate.learn.verdict import HOPELESS, visible
from dpcurate.planning.estimate import estimate
from dpcurate.schema import Schema

WORTHWHILE = 0.5
"""The skeleton F1 for which it is told what would be needed."""
MOST = 1e6
"""Times as much epsilon, or as many rows, as would be needed at most."""


def check_worth(schema: Schema, allowance: Allowance, *, yes: bool) -> None:
    """Return if the run is worth its budget or wanted all the same; nothing is read and nothing is spent here."""
    if schema.rows is None or len(schema.names) < 2:
        return
    power = estimate(schema, schema.rows, budget=allowance.of_run, neighbours=allowance.neighbours)
    if power.f1 >= HOPELESS:
        return
    columns = len(schema.names)
    say(f"warning: {columns} columns, {schema.rows:,} rows and {allowance.of_run} leave mostly noise.")
    for sentence in (*visible(power), _needed(schema, schema.rows, allowance)):
        say(f"  {sentence}")
    if not yes and not _agreed():
        raise DpcurateError("stopped before anything was read or spent")


def _needed(schema: Schema, rows: int, allowance: Allowance) -> str:
    """How much more epsilon, or how many more rows, would do."""
    budget = allowance.of_run
    epsilon = float(budget.epsilon or 0)

    def worthwhile(more_epsilon: float, more_rows: float) -> bool:
        more = Budget(epsilon=epsilon * more_epsilon, delta=budget.delta)
        power = estimate(schema, round(rows * more_rows), budget=more, neighbours=allowance.neighbours)
        return power.f1 >= WORTHWHILE

    ways = []
    if worthwhile(MOST, 1):
        ways.append(f"epsilon = {epsilon * least(lambda times: worthwhile(times, 1), 1, MOST):.2g}")
    if worthwhile(1, MOST):
        ways.append(f"{float(f'{rows * least(lambda times: worthwhile(1, times), 1, MOST):.2g}'):,.0f} rows")
    takes = f"An F1 of {WORTHWHILE:g} takes about {' or '.join(ways)}; f" if ways else "F"
    return f"{takes}ewer columns and fewer levels help. `dpcurate plan` shows what to expect, and spends nothing."


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise DpcurateError("nothing was read or spent. With nobody at the terminal to ask, --yes runs it all the same")
    say("Spend it all the same? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
