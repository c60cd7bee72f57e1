"""Made-up rows in place of a table on a server: the same calls, at no cost, and nothing about anybody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from dpcurate.accounting import Budget, Privacy
from dpcurate.errors import LedgerError
from dpcurate.networks.plausible import random_world, simulate
from dpcurate.private.curator import Curator
from dpcurate.private.ledger import LoggedRun, RunFacts
from dpcurate.private.origin import TableOrigin
from dpcurate.private.stored import StoredAnswers
from dpcurate.queries.proxies import Proxy
from dpcurate.remote.remote_curator import RemoteCurator

MADE_UP = "MADE-UP ROWS, not the table"
USUAL_ROWS = 10_000
MOST_ROWS = 100_000


class DummyTable(Proxy):
    """Rows that a random network draws under the schema of a table; every run has the budget that is left for it."""

    def __init__(self, remote: RemoteCurator) -> None:
        self._remote, self._left = remote, remote.remaining
        schema = remote.schema
        rows = min(schema.rows or USUAL_ROWS, MOST_ROWS)
        self._rows = simulate(schema, random_world(schema, seed=1), rows, seed=1)
        self._running: int | None = None
        self._number, self._paid = 0, 0.0
        super().__init__(self._opened(None))

    def _opened(self, share: float | None) -> Curator:
        """A curator on the rows with a budget of its own."""
        whole = self._remote.budget
        left = self._left if share is None else share
        amount = min(left, whole.ceiling) if left > 0 else whole.ceiling
        budget = Budget(epsilon=amount, delta=0) if whole.pure else Budget(rho=amount, delta=whole.delta)
        return Curator(self._rows, self._remote.schema, budget=budget, neighbours=self._remote.neighbours)

    @property
    def budget(self) -> Budget:
        """The ceiling of the table."""
        return self._remote.budget

    @property
    def remaining(self) -> float:
        """What a run may still spend; between runs what is left for this analyst at the table."""
        return self._left if self._running is None else super().remaining

    def privacy(self) -> Privacy:
        """A statement that says of which rows it is."""
        said = super().privacy()
        run = self._paid + (said.run or 0.0)
        return replace(said, budget=self.budget, unit=f"one row of the {MADE_UP}", run=run)

    # --- runs: study/run_keeper.py ------------------------------------------------------------------------------------

    @property
    def keeps_runs(self) -> bool:
        """Runs are counted and forgotten."""
        return True

    @property
    def running(self) -> int | None:
        """The number of the run under way."""
        return self._running

    @property
    def table(self) -> str:
        """What results say they are made of."""
        return MADE_UP

    @property
    def analyst(self) -> str | None:
        """Whose token it is."""
        return self._remote.analyst

    @property
    def origin(self) -> TableOrigin:
        """Of no table."""
        return TableOrigin()

    @property
    def passes(self) -> int:
        """Over the made-up rows."""
        return 0

    @contextmanager
    def run(self, facts: RunFacts, *, share: float | None = None) -> Iterator[None]:
        """A run on the made-up rows, with the budget that it would have."""
        self._paid += super().privacy().run or 0.0
        self._queryable = self._opened(share)
        self._number += 1
        self._running = self._number
        try:
            yield
        finally:
            self._running = None

    def log(self) -> tuple[LoggedRun, ...]:
        """Nothing: no run on made-up rows is logged."""
        return ()

    def stopped(self, command: str) -> LoggedRun | None:
        """None: there is nothing to resume."""
        return None

    def stored(self, run: int | None = None, *, passing_over: tuple[str, ...] = ()) -> StoredAnswers:
        """Refused: made-up rows store nothing."""
        raise LedgerError("runs on made-up rows are not stored; connect without dummy=True")
