"""One run: what makes it the same run again, and what it may spend."""

from __future__ import annotations

import getpass
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpcurate._files import NO_INPUTS, Inputs
from dpcurate.accounting import DELTA, Budget, epsilon_of
from dpcurate.errors import BudgetError, BudgetExceeded, LedgerError
from dpcurate.private.curator import Curator
from dpcurate.private.ledger import Ledger, LoggedRun, RunFacts
from dpcurate.private.origin import TableOrigin, place_of
from dpcurate.private.stored import StoredAnswers
from dpcurate.queries import Queryable
from dpcurate.queries.proxies import limited
from dpcurate.result.run_record import RunRecord
from dpcurate.schema import Neighbours, Schema
from dpcurate.study.run_keeper import keeper_of

ASK_RUN, QUANTIFY_RUN, STUDY_RUN = "ask", "quantify", "study"
"""How the log calls runs that answer a question (the word begins the name), runs that buy a model, and rounds of a
study of several sites."""
_ASKED: dict[tuple[str, str], TableOrigin] = {}
"""Of which table a command was, by ledger and command: what this process has asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """A run that is asked for: what makes it the same command again, and what the log says of it."""

    table: Any
    schema: Schema
    method: str
    recipe: object
    knowledge: str = ""
    epsilon: float | None = None
    share: float | None = None
    by: str | None = None
    purpose: str | None = None
    result: str = ""
    schema_file: str = ""
    quantify: float | None = None
    named: str = ""
    """What a table that is open elsewhere is called there."""
    inputs: Inputs = NO_INPUTS

    @property
    def table_name(self) -> str:
        """The table in words; of a URL only the scheme, because the rest may hold a password."""
        if not isinstance(self.table, (str, Path)):
            return repr(self.named) if self.named else "the table in memory"
        scheme, colon, _ = str(self.table).partition("://")
        return f"{scheme}{colon}..." if colon else repr(str(self.table))

    @property
    def facts(self) -> RunFacts:
        """What the ledger writes down; of the table only a hash of where it is."""
        from dpcurate import __version__

        spending = [self.epsilon, self.share]
        same = [place_of(self.table), self.schema.hash, repr(self.recipe), self.knowledge, *spending, __version__]
        same += [] if self.quantify is None else [self.quantify]  # runs without it stay the same command
        return RunFacts(
            command=hashlib.sha256(json.dumps(same, default=str).encode()).hexdigest(),
            method=self.method,
            schema=self.schema.hash,
            by=login() if self.by is None else self.by,
            purpose=self.purpose or "",
            epsilon=None if self.epsilon is None else float(self.epsilon),
            result=self.result,
            quantify=self.quantify,
        )


def record_of(curator: Queryable, spec: RunSpec) -> RunRecord:
    """The record of a run that is under way."""
    schema_file, settings = spec.schema_file, repr(spec.recipe)
    if isinstance(curator, StoredAnswers):
        run = curator.logged
        return RunRecord(
            by=run.facts.by, at=_second(run.started), purpose=run.facts.purpose, table=curator.table,
            number=run.number, schema_file=schema_file, settings=settings, again=_now(),
        )  # fmt: skip
    facts, keeper = spec.facts, keeper_of(curator)
    record = RunRecord(by=facts.by, at=_now(), purpose=facts.purpose, schema_file=schema_file, settings=settings)
    if keeper is None:
        return record
    by = facts.by if keeper.analyst is None else keeper.analyst
    return replace(record, by=by, table=keeper.table, number=keeper.running, origin=keeper.origin)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _second(time: str) -> str:
    """A time of the log, to the second."""
    return datetime.fromisoformat(time).isoformat(timespec="seconds")


def login() -> str:
    """The login name of whoever runs this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container may run as a number without a name
        return "unknown"


@contextmanager
def running(curator: Queryable, spec: RunSpec, share: float | None) -> Iterator[Queryable]:
    """The queryable of one run: within its share, and logged where runs are kept.

    Inside a run that was begun already it is a part of that one.
    """
    keeper = keeper_of(curator)
    if keeper is None or not keeper.keeps_runs or keeper.running is not None:
        with limited(curator, share) as queryable:
            yield queryable
    else:
        with keeper.run(spec.facts, share=share):
            yield curator


def _key(ledger: Path, spec: RunSpec) -> tuple[str, str]:
    return str(ledger.resolve()), spec.facts.command


def _check_same_table(ledger: Path, spec: RunSpec) -> None:
    """Refuse to resume a run on another object than the one it was stopped on, if both are in memory."""
    before = _ASKED.get(_key(ledger, spec), TableOrigin())
    if (
        before.differs(TableOrigin.from_table(spec.table))
        and Ledger.open(ledger).stopped(spec.facts.command) is not None
    ):
        raise LedgerError(
            f"this command would resume a run in {str(ledger)!r} that was stopped on another table in memory; nothing "
            "was read or spent. Give that table, or let go of it if this is a copy (del); another table needs a ledger "
            "of its own"
        )


@dataclass(frozen=True, slots=True)
class RunBudget:
    """The budget a run draws on.

    Without a ledger, or with one that is not there yet, `budget` is the run's own and becomes the ceiling of
    the new ledger. With a ledger that exists, `left` is what it has left and `share` what this run may take
    of it (None: all that is left), in the budget's currency.
    """

    budget: Budget
    neighbours: Neighbours
    ledger: Path | None = None
    left: float | None = None
    share: float | None = None
    resumes: LoggedRun | None = None
    keeper: str = ""
    """Who remembers the spending, in words, where it is no file of the caller's."""

    @classmethod
    def of(
        cls,
        spec: RunSpec,
        *,
        ceiling: Budget | None = None,
        delta: float | None = None,
        neighbours: Neighbours | str | None = None,
        ledger: Path | None = None,
    ) -> RunBudget:
        """What `spec.epsilon` means on a table that is not open yet: a share of its ledger, or a budget of its own.

        `ceiling` is the budget of a ledger that does not exist yet, or of none; without it the run's epsilon is the
        ceiling. A run that was stopped keeps what it was allowed when it began.
        """
        if ledger is not None:
            again = Ledger.exists(ledger)
            if again:
                _check_same_table(ledger, spec)
            _ASKED[_key(ledger, spec)] = TableOrigin.from_table(spec.table)
            if again:
                return cls._of_ledger(ledger, spec, ceiling, delta, neighbours)
        relation = Neighbours.of(neighbours or Neighbours.ADD_REMOVE)
        if ceiling is None:
            if spec.epsilon is None:
                raise BudgetError("say how much may be spent: epsilon=1 (--epsilon 1); `dpcurate plan` helps to choose")
            return cls(Budget(epsilon=spec.epsilon, delta=DELTA if delta is None else delta), relation, ledger)
        share = None if spec.epsilon is None else float(Budget(epsilon=spec.epsilon, delta=ceiling.delta).ceiling)
        if share is not None and share > float(ceiling.ceiling):
            raise BudgetExceeded(f"epsilon = {spec.epsilon:g} is more than the budget of this table ({ceiling})")
        return cls(ceiling, relation, ledger, share=share)

    @classmethod
    def whole(cls, ledger: Path | None, *, ceiling: Budget | None, neighbours: Neighbours | str | None) -> RunBudget:
        """All of a table's budget, for whoever opens it before there is a run."""
        if ledger is not None and Ledger.exists(ledger):
            kept = Ledger.open(ledger, budget=ceiling)
            assert kept.facts is not None
            relation = Neighbours.of(neighbours or kept.facts.neighbours)
            return cls(kept.budget, relation, ledger, kept.remaining)
        if ceiling is None:
            raise BudgetError("say how much may be spent on the table: dpcurate.open(table, schema, epsilon=1)")
        return cls(ceiling, Neighbours.of(neighbours or Neighbours.ADD_REMOVE), ledger)

    @classmethod
    def of_open(cls, queryable: Queryable, spec: RunSpec, path: Path | None) -> RunBudget:
        """The same on something that is open; `path` is where its ledger is, if it has one."""
        budget, share, resumes = queryable.budget, spec.share, None
        if spec.epsilon is not None and share is not None:
            raise BudgetError("give epsilon or share, not both: they are the same amount in two currencies")
        if spec.epsilon is not None:
            share = float(Budget(epsilon=spec.epsilon, delta=budget.delta).ceiling)
        keeper, kept = keeper_of(queryable), ""
        if keeper is not None and keeper.keeps_runs:
            resumes, kept = keeper.stopped(spec.facts.command), f"that of {keeper.table!r}"
            kept += "" if keeper.analyst is None else f", as {keeper.analyst}"
        return cls(budget, queryable.neighbours, path, queryable.remaining, share, resumes, kept)

    @classmethod
    def _of_ledger(
        cls,
        path: Path,
        spec: RunSpec,
        ceiling: Budget | None,
        delta: float | None,
        neighbours: Neighbours | str | None,
    ) -> RunBudget:
        ledger = Ledger.open(path, budget=ceiling)
        facts, budget = ledger.facts, ledger.budget
        assert facts is not None
        if delta not in (None, budget.delta):
            raise LedgerError(f"{str(path)!r} counts with delta = {budget.delta:.3g}, not {delta:.3g}; leave delta out")
        relation, left = Neighbours.of(neighbours or facts.neighbours), ledger.remaining
        resumes = ledger.stopped(spec.facts.command)
        share = None if spec.epsilon is None else Budget(epsilon=spec.epsilon, delta=budget.delta).ceiling
        if resumes is not None and resumes.allowed is not None:  # the share, in case another process is faster
            return cls(budget, relation, path, resumes.allowed, share, resumes)
        if budget.is_negligible(left):
            raise BudgetExceeded(
                f"nothing is left of the budget in {str(path)!r} ({budget}); nothing was read. "
                "What was released can be used again for free: --from-answers, discover_from, asked_from"
            )
        return cls(budget, relation, path, left, share)

    def check_share(self) -> None:
        """Refuse a share that is more than what is left, where less would be another answer than was asked for."""
        if self.left is not None and self.resumes is None and self.left < float(self.share or 0) * (1 - 1e-9):
            raise BudgetExceeded(
                f"this asks for {self}, and of the budget ({self.budget}) only {self.budget.currency} = "
                f"{self.left:.4g} is left; nothing was read. Ask with a smaller epsilon"
            )

    @property
    def shared(self) -> bool:
        """Whether the ledger was there before."""
        return self.left is not None

    @property
    def of_run(self) -> Budget:
        """What this run may spend, as a budget of its own."""
        amounts = [float(amount) for amount in (self.left, self.share) if amount is not None]
        return self.budget.with_ceiling(min(amounts)) if amounts else self.budget

    def open(
        self,
        table: Any,
        schema: Schema,
        *,
        name: str | None = None,
        insecure_seed: int | None = None,
        make: Callable[..., Curator] = Curator,
    ) -> Curator:
        """A curator on the table that keeps this budget; `make` makes it."""
        return make(
            table,
            schema,
            budget=None if self.shared else self.budget,
            neighbours=self.neighbours,
            ledger=self.ledger,
            name=name,
            insecure_seed=insecure_seed,
        )

    def __str__(self) -> str:
        amount = self.left if self.share is None else self.share
        if amount is None:
            return str(self.budget)
        if self.budget.pure:
            return f"epsilon = {amount:.4g}, delta = 0"
        delta = float(self.budget.delta or 0)
        return f"epsilon = {epsilon_of(rho=amount, delta=delta):.4g}, delta = {delta:.3g} (rho = {amount:.4g})"

    @property
    def kept(self) -> str:
        """Who remembers the spending, in words."""
        if self.ledger is None and not self.keeper:
            return "none: this spending is not recorded (use --ledger)"
        name = self.keeper if self.ledger is None else repr(str(self.ledger))
        if self.resumes is not None:
            return f"{name}; this resumes run {self.resumes.number}, and what that has paid for is not paid again"
        if self.left is None and self.share is not None:
            return f"{name}, which is new; the most that may ever be spent on the table is {self.budget}"
        if self.left is None:
            return f"{name}, which is new; the epsilon of this run becomes the ceiling of the table"
        return f"{name}: {self.budget.currency} = {self.left:.4g} of {float(self.budget.ceiling):.4g} left"
