"""What a run is expected to find, before it spends anything, and whether that is worth its budget."""

from __future__ import annotations

from dataclasses import dataclass

from dpcurate.accounting import Budget
from dpcurate.errors import QueryError
from dpcurate.learn.power import Power
from dpcurate.planning.estimate import estimate
from dpcurate.result.verdict import HOPELESS, WORTHWHILE, visible, ways_to
from dpcurate.schema import Neighbours, Schema

MOST_TIMES = 1e6
"""Advice names no more than so many times the epsilon or the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What the default method is expected to find, in closed form, from public facts alone.

    `budget` is what the run may spend; `part` of it is for the graph, the rest for a model of the graph.
    """

    schema: Schema
    rows: int
    budget: Budget
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    part: float = 1.0

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise QueryError(f"the rough number of rows is at least 1, not {self.rows}")

    @property
    def power(self) -> Power:
        """The smallest effect that shows, and how much of a graph that tends to be."""
        return self._power(1, 1)

    @property
    def hopeless(self) -> bool:
        """Whether the run is expected to find next to nothing."""
        return self.power.f1 < HOPELESS

    @property
    def sentences(self) -> tuple[str, ...]:
        """The power in words."""
        return visible(self.power)

    @property
    def advice(self) -> str:
        """How much more epsilon, or how many more rows, a hopeless run needs."""
        ways = ways_to(
            WORTHWHILE, self._power, epsilon=float(self.budget.epsilon or 0), rows=self.rows, most=MOST_TIMES
        )
        needed = f"An F1 of {WORTHWHILE:g} takes about {ways}; f" if ways else "F"
        return f"{needed}ewer columns and fewer levels help. `dpcurate plan` shows what to expect and is free."

    def _power(self, times_epsilon: float, times_rows: float) -> Power:
        """The power with so many times the epsilon and so many times the rows."""
        whole = self.budget
        if times_epsilon != 1:
            whole = Budget(epsilon=float(whole.epsilon or 0) * times_epsilon, delta=whole.delta)
        rows = max(round(self.rows * times_rows), 1)
        return estimate(self.schema, rows, budget=_share(whole, self.part), neighbours=self.neighbours)


def _share(budget: Budget, part: float) -> Budget:
    if part == 1:
        return budget
    amount = budget.ceiling * part
    return Budget(epsilon=amount, delta=0) if budget.pure else Budget(rho=amount, delta=budget.delta)
