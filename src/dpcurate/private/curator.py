"""The curator: the trusted party that holds the table, and the only queryable to it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from dpcurate._messages import how_many, shown
from dpcurate._validation import number
from dpcurate.accounting import Budget, Cost, Event
from dpcurate.errors import BudgetError, LedgerError, QueryError
from dpcurate.private.ledger import Ledger, LoggedRun
from dpcurate.private.noise import Randomness, Secure, Seeded
from dpcurate.private.origin import TableOrigin
from dpcurate.private.session import Session
from dpcurate.private.sources import check_rows, open_source
from dpcurate.private.sources.engine import OneAtATime
from dpcurate.private.stored import StoredAnswers
from dpcurate.schema import Neighbours, Schema


class Curator(Session):
    """Holds a table and answers queries within a privacy budget.

    >>> from dpcurate import Budget, Curator
    >>> from dpcurate.queries import Counts, Gaussian, Release
    >>> table = {"smokes": ["yes", "no", "no"], "coughs": ["yes", "yes", "no"]}
    >>> levels = {"smokes": ("no", "yes"), "coughs": ("no", "yes")}
    >>> curator = Curator(table, levels, budget=Budget(epsilon=1, delta=1e-6))
    >>> answer = curator.ask(Release(Counts(("smokes", "coughs")), Gaussian(rho=0.01)))
    >>> answer.value.shape
    (2, 2)

    `table` is a pandas, polars or Arrow frame, a mapping of arrays, a NumPy array with columns in the
    schema's order, a Parquet or CSV path or pattern, `file.duckdb#table`, `postgresql://...#table`, or
    a Spark, Dask, lazy Polars or Ibis frame (docs/engines.md). `ledger` is a path: several runs and
    processes, with whatever schemas, then share the table's one budget; `name` is the table's name in it.
    Whatever is wrong with the rows is told here, to the owner; `check=True` prints a summary of it and says
    that it looked.
    """

    def __init__(
        self,
        table: Any,
        schema: Schema | str | Path | dict[str, Any] | None = None,
        *,
        budget: Budget | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        ledger: str | Path | None = None,
        name: str | None = None,
        allow_unproved: bool = False,
        insecure_seed: int | None = None,
        check: bool = False,
    ) -> None:
        _check_options(ledger, allow_unproved=allow_unproved, check=check)
        schema, relation = Schema.of(schema), Neighbours.of(neighbours)
        if budget is None and (ledger is None or not Ledger.exists(ledger)):
            raise BudgetError("give a budget, such as Budget(epsilon=1, delta=1e-10)")
        if budget is not None and not isinstance(budget, Budget):
            raise BudgetError(f"a budget is Budget(epsilon=, delta=) or Budget(rho=), got {shown(budget)}")
        if insecure_seed is not None and ledger is not None:
            raise LedgerError("insecure_seed= is for simulation: the ledger of a real table cannot hold such a run")
        randomness = _randomness(insecure_seed)
        self._origin = TableOrigin.from_table(table)
        source = open_source(table, schema)
        if check:
            for sentence in check_rows(table, schema):
                print(f"owner's check (this looked at the data): {sentence}", file=sys.stderr)
        charged = _ledger(ledger, name, table, schema, relation, budget, allow_unproved or insecure_seed is not None)
        super().__init__(source, schema, relation, charged, randomness, allow_unproved=allow_unproved)
        self._one_at_a_time = OneAtATime(source)
        if insecure_seed is not None:
            charged.charge([Event("insecure-seed", "whoever knows the seed can undo the noise", Cost.infinite())])

    @property
    def origin(self) -> TableOrigin:
        """Which table it is, as far as that can be told without its rows."""
        return self._origin

    def of_share(self, name: str) -> Session:
        """A session for the analyst who has this share: the same rows, its own runs, and what the share has left.

        Raises:
            LedgerError: there is no such share, or the budget is kept in memory.
        """
        ledger = self._ledger.of_share(name)
        return Session(
            self._one_at_a_time, self._schema, self._neighbours, ledger, self._randomness, allow_unproved=False
        )

    # --- runs, as a study keeps them: study/run_keeper.py -------------------------------------------------------------

    @property
    def keeps_runs(self) -> bool:
        """Whether runs are logged and resumed: if a file keeps the budget."""
        return self._ledger.facts is not None

    @property
    def running(self) -> int | None:
        """The number of the run that is under way here."""
        return self._ledger.running_number

    @property
    def table(self) -> str:
        """The table's name in its ledger; empty without one."""
        return "" if self._ledger.facts is None else self._ledger.facts.table

    @property
    def analyst(self) -> str | None:
        """Nobody in particular: whoever has the table says who runs what."""
        return None

    def log(self) -> tuple[LoggedRun, ...]:
        """Every run on the ledger, in order."""
        return self._ledger.log()

    def stopped(self, command: str) -> LoggedRun | None:
        """The stopped run that the same command would resume."""
        return self._ledger.stopped(command)

    def stored(self, run: int | None = None, *, passing_over: tuple[str, ...] = ()) -> StoredAnswers:
        """The stored answers of a run, by default of the newest whose method begins with none of `passing_over`."""
        if self._ledger.facts is None:
            raise LedgerError("answers are stored in a ledger on disk: open the curator with ledger=")
        return StoredAnswers(self._ledger.facts.path, run, passing_over=passing_over)

    def __repr__(self) -> str:
        private = "" if self.ledger.private else ", NOT PRIVATE"
        unit = f"{how_many(self.schema.person.rows, 'row')} per person" if self.schema.person else "row"
        return (
            f"Curator({len(self.schema.names)} columns, {self.neighbours.value}, unit: {unit}, "
            f"budget: {self.ledger.budget}{private})"
        )


def _check_options(ledger: object, **switches: object) -> None:
    for name, value in switches.items():
        if type(value) is not bool:  # the text "no" would count as yes
            raise QueryError(f"{name} must be True or False, got {shown(value)}")
    if ledger is not None and (not isinstance(ledger, (str, Path)) or not str(ledger) or "\0" in str(ledger)):
        raise LedgerError(f"ledger is the path of a file that keeps the budget, got {shown(ledger)}")


def _randomness(seed: int | None) -> Randomness:
    if seed is None:
        return Secure()
    whole = number(seed)
    if type(whole) is not int or whole < 0:
        raise QueryError(
            f"insecure_seed must be a whole number, 0 or more, got {shown(seed)}: give one for a simulation, "
            "or leave it out for noise that is private"
        )
    return Seeded(whole)


def _ledger(
    ledger: str | Path | None,
    name: str | None,
    table: Any,
    schema: Schema,
    neighbours: Neighbours,
    budget: Budget | None,
    allow_unproved: bool,
) -> Ledger:
    if ledger is None:
        assert budget is not None
        return Ledger(budget, allow_unproved=allow_unproved, neighbours=neighbours.value)
    if Ledger.exists(ledger):
        kept = Ledger.open(ledger, table=name, budget=budget, neighbours=neighbours.value)
        kept.use(schema)
        return kept
    assert budget is not None
    return Ledger.create(
        ledger, table=name or _name_of(table) or Path(ledger).stem, schema=schema, neighbours=neighbours.value,
        budget=budget, allow_unproved=allow_unproved,
    )  # fmt: skip


def _name_of(table: Any) -> str:
    """A table's own name, if it has one: of a URL or a database what follows the #, of a file its name."""
    if not isinstance(table, (str, Path)):
        return ""
    place, _, inside = str(table).partition("#")
    return inside.strip() or ("" if "://" in place else Path(place).stem.strip(" *?[]"))
