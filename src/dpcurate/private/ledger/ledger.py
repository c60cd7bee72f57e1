"""The ledger of a table: the filter, with a file that keeps it and the runs that spend from it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import cast

from dpcurate import _validation
from dpcurate._messages import shown
from dpcurate._tables import table_html
from dpcurate._validation import Number
from dpcurate.accounting import Budget, Event
from dpcurate.errors import BudgetError, BudgetExceeded, LedgerError, RefusedError
from dpcurate.private.ledger import filter, journal
from dpcurate.private.ledger import format as form
from dpcurate.private.ledger import path as ledger_path
from dpcurate.private.ledger.disk_store import DiskStore, StoredRound, StoredRun
from dpcurate.private.ledger.filter import NOTHING, Filter
from dpcurate.private.ledger.run_log import FINISHED, LedgerRun, Liveness, LoggedRun, Payment, RunFacts, check_facts
from dpcurate.private.ledger.shares import Grant, Share
from dpcurate.private.ledger.units import round_down, round_up
from dpcurate.schema import Schema


class Ledger(Filter):
    """The privacy filter of one budget, and what it has let through.

    `Ledger(budget)` keeps them in memory; `Ledger.create` and `Ledger.open` keep them in a file that
    several processes and days share. With an unlimited budget or `allow_unproved=True` steps without
    a finite cost are let through, after which `private` is False for good; finite costs are filtered
    all the same.

    Safe to share between threads. Refuses copies, pickling and use after a fork: each would be a
    second budget.
    """

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], *, table: str, neighbours: str, budget: Budget, schema: Schema | None = None,
        schema_hash: str | None = None, allow_unproved: bool = False,
    ) -> Ledger:  # fmt: skip
        """A new ledger on disk. An existing file is refused, whatever it holds.

        `schema` is the first that will be used; it fixes the unit of privacy (rows, or persons by a column). If
        only its hash is given, the unit is fixed when a schema that has it is first used.
        """
        schema_hash = schema.hash if schema is not None else schema_hash
        for name, value in (("table", table), ("schema_hash", schema_hash), ("neighbours", neighbours)):
            if not isinstance(value, str) or not value.strip():
                raise LedgerError(f"{name} must be a name that is not blank, got {value!r}; the ledger is found by it")
        home = ledger_path.real(path)
        facts = form.new_facts(
            home, table=table, schema_hash=cast(str, schema_hash), neighbours=neighbours, budget=budget,
            allow_unproved=allow_unproved,
        )  # fmt: skip
        return cls._on(DiskStore.create(home, facts, schema))

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, table: str | None = None, schema_hash: str | None = None,
        neighbours: str | None = None, budget: Budget | None = None,
    ) -> Ledger:  # fmt: skip
        """A ledger that exists, if it is whole and about what the caller thinks it is about.

        `schema_hash` asks that it was used with that schema before.
        """
        disk = DiskStore.open(ledger_path.real(path))
        facts = disk.facts
        for what, asked, written in (("table", table, facts.table), ("neighbours", neighbours, facts.neighbours)):
            if asked is not None and asked != written:
                filter.mismatch(disk.path, what, repr(asked), repr(written))
        used = dict.fromkeys([facts.schema_hash, *(schema.hash for schema in disk.schemas())])
        if schema_hash is not None and schema_hash not in used:
            filter.mismatch(disk.path, "schema hash", repr(schema_hash), " and ".join(map(repr, used)))
        if budget is not None and not filter.same(budget, facts.budget):
            filter.mismatch(disk.path, "budget", filter.worth(budget), filter.worth(facts.budget))
        return cls._on(disk)

    @classmethod
    def moved(cls, path: str | os.PathLike[str]) -> Ledger:
        """A ledger whose file was moved to `path`, adopted there: a ledger is refused anywhere but at its own path.

        Only for a file that was moved for good, with no run under way. Refused while the place it came from
        still holds the journal of an interrupted transaction, or the ledger itself: a copy is not a move, and
        a copy on another machine, which cannot be seen from here, would be a second budget. The adoption is
        written down (`kept_at`).
        """
        return cls._on(DiskStore.moved(ledger_path.real(path)))

    @staticmethod
    def exists(path: str | os.PathLike[str]) -> bool:
        """Whether there is a file, of whatever kind, where `create` would make one."""
        return ledger_path.is_there(ledger_path.real(path))

    @classmethod
    def _on(cls, disk: DiskStore) -> Ledger:
        ledger = cls.__new__(cls)
        facts = disk.facts
        ledger._start(facts.budget, disk, allow_unproved=facts.allow_unproved, neighbours=facts.neighbours)
        return ledger

    def use(self, schema: Schema) -> None:
        """Write a schema down before it is used. One of another unit of privacy is refused: docs/proofs/schemas.md.

        All other changes (levels, bounds, bins, columns, the cap) go on spending the same budget.
        """
        with self._mine():
            if isinstance(self._store, DiskStore):
                self._store.use(schema)

    @property
    def unit(self) -> journal.Unit | None:
        """What a ledger on disk protects, rows or persons; None in memory, and until a schema has told."""
        with self._mine():
            return self._store.unit() if isinstance(self._store, DiskStore) else None

    @property
    def schemas(self) -> tuple[journal.UsedSchema, ...]:
        """Every schema that a ledger on disk was used with, in order: hash, text, since when."""
        with self._mine():
            return self._store.schemas() if isinstance(self._store, DiskStore) else ()

    @property
    def kept_at(self) -> tuple[tuple[str, str], ...]:
        """Since when, and where, a ledger on disk was kept: more than one pair if it was moved and adopted."""
        with self._mine():
            return self._store.kept_at() if isinstance(self._store, DiskStore) else ()

    # --- shares: docs/proofs/shares.md ---------------------------------------------------------------------

    @property
    def shares(self) -> tuple[Share, ...]:
        """The shares of analysts, in the order they were granted; none in memory."""
        with self._mine():
            return self._store.shares() if isinstance(self._store, DiskStore) else ()

    def grant(
        self, name: str, amount: Number, *, reserved: bool = False, purpose: str = "", token: str = "",
        approval: bool = False,
    ) -> Share:  # fmt: skip
        """Give an analyst a share of `amount`, in the budget's currency, under the ceiling of the table.

        Nobody else may spend a `reserved` share; others are served first come, first served, and may add up to more
        than the ceiling. `token` is the SHA-256 of the token that spends it. With `approval` its runs wait for the
        owner.
        """
        with self._mine():
            if not isinstance(self._store, DiskStore) or self._lenient:
                raise LedgerError("shares are parts of a budget that a ledger on disk keeps and that protects somebody")
            taken = _validation.between(0, amount, math.inf)
            if taken is None:
                raise BudgetError(f"a share must be a finite amount above 0, got {shown(amount)}")
            self._store.grant(Grant(name=name, units=round_down(taken), reserved=reserved, purpose=purpose,
                                    token=token, approval=approval))  # fmt: skip
            return next(share for share in self._store.shares() if share.name == name)

    def revoke(self, name: str) -> None:
        """End an analyst's share; what it has spent stays spent."""
        with self._mine():
            if not isinstance(self._store, DiskStore):
                raise LedgerError("a ledger in memory has no shares")
            self._store.revoke(name)

    def of_share(self, name: str) -> Ledger:
        """The same file for whoever spends from one share, with runs and blocks of its own."""
        with self._mine():
            if not isinstance(self._store, DiskStore) or name not in {share.name for share in self._store.shares()}:
                raise LedgerError(f"there is no share of {shown(name)}")
            ledger = self._on(self._store.of_share(name))
            ledger._purse = f"the share of {name}"
            return ledger

    # --- runs: docs/proofs/answers.md ----------------------------------------------------------------------

    def run(self, facts: RunFacts, *, share: Number | None = None) -> AbstractContextManager[LedgerRun]:
        """A run of a method on a ledger in a file: it is logged, spends at most `share`, and its answers are stored.

        The run of the same command that was stopped is resumed: what it paid for is not paid again.
        """
        self._check_process()
        check_facts(facts)
        taken = None if share is None else _validation.between(0, share, math.inf)
        if share is not None and taken is None:
            raise BudgetError(f"a run's share must be a finite amount above 0, got {shown(share)}")
        return _Running(self, facts, taken)

    def _begin(self, facts: RunFacts, share: Number | None) -> LedgerRun:
        with self._mine():
            if not isinstance(self._store, DiskStore) or self._run is not None or self._block is not None:
                raise LedgerError("a run is begun on a ledger in a file that has no other run or block open here")
            self._run = self._store.begin(facts, self._decide_share(share))
            return self._run

    def _decide_share(self, share: Number | None) -> Callable[[int], int | None]:
        """What a new run may spend of what is left; None is no limit."""

        def decide(spent: int) -> int | None:
            if self._unlimited:
                return None if share is None else round_up(share)
            left = self._ceiling - spent
            if left <= 0:
                raise BudgetExceeded(f"nothing is left of the budget ({filter.worth(self._budget)}). {NOTHING}")
            return left if share is None else min(left, self._fit(round_down(share), left))

        return decide

    def _end(self, outcome: str) -> None:
        with self._mine():
            run, self._run = self._run, None
            assert run is not None
            assert isinstance(self._store, DiskStore)
            try:
                self._store.end(run, outcome)
            finally:
                run.leave()

    @property
    def running(self) -> bool:
        """Whether a run is under way on this ledger, here."""
        with self._mine():
            return self._run is not None

    @property
    def running_number(self) -> int | None:
        """The number of the run that is under way here."""
        with self._mine():
            return None if self._run is None else self._run.number

    @property
    def keeps(self) -> bool:
        """Whether answers are stored now: in a run, outside its blocks, and if nothing unproved is ever let through."""
        with self._mine():
            return self._run is not None and self._block is None and not self._lenient

    def pay(self, request: str, events: Sequence[Event], *, once: bool = False) -> Payment:
        """Pay for a request of the run, unless its answer is stored or still owed.

        The same request again is another one, which is paid, too; with `once` it is the same one.
        """
        units = sum([self._price(event) for event in events])
        with self._mine():
            run = self._run
            assert run is not None
            assert isinstance(self._store, DiskStore)
            request = f"{request}-{units:x}"  # at another price it is another request
            name = f"{request}.0" if once else run.next(request)
            owed = name in run.owed.get(request, ())

            def decide(spent: int) -> int:
                self._check_run(units)
                return self._fit(units, self._ceiling - spent)

            charged, stored = self._store.pay(run, name, decide, tuple(events))
            if owed:
                run.owed[request].remove(name)
                return Payment(name, stored, owed)
            if once and run.asked[request]:
                return Payment(name, stored, owed=True)
            run.asked[request] += 1
            run.used += units
            run.charged += charged
            run.replayed += charged < units
            return Payment(name, stored, owed)

    def owe(self, name: str) -> None:
        """Note that a request was paid and could not be answered: when asked again, it is not charged again."""
        with self._mine():
            assert self._run is not None
            self._run.owed.setdefault(name.rpartition(".")[0], []).append(name)

    def keep(self, name: str, body: bytes, shared: str = "") -> None:
        """Store the answer to a request that was paid; it may be returned after this, and only then.

        `shared` is the identity of the round of several sites that it is a part of; of two parts the second is refused.
        """
        with self._mine():
            assert self._run is not None
            assert isinstance(self._store, DiskStore)
            self._store.keep(self._run, name, body, shared)

    def round(self, shared: str) -> StoredRound | None:
        """What was said in a round of several sites, in whatever run; None if nothing was, and in memory."""
        with self._mine():
            return self._store.round(shared) if isinstance(self._store, DiskStore) else None

    def log(self) -> tuple[LoggedRun, ...]:
        """Every run on a ledger in a file, in order."""
        with self._mine():
            return self._store.log() if isinstance(self._store, DiskStore) else ()

    def _repr_html_(self) -> str:
        """What a notebook shows: the budget, and the runs that a file lists."""
        currency, budget = self.budget.currency, [("ceiling", str(self.budget))]
        budget += [
            (name, f"{currency} = {float(x):.4g}") for name, x in (("spent", self.spent), ("left", self.remaining))
        ]
        promise = () if self.private else (("promise", "NOT PRIVATE"),)
        runs = [(r.number, r.started, r.facts.by, r.facts.method, f"{r.spent:.4g}", r.outcome) for r in self.log()]
        heads = ("run", "started", "by", "method", currency, "outcome")
        return table_html(("budget", ""), (*promise, *budget)) + (table_html(heads, runs) if runs else "")

    def alive(self, number: int) -> bool:
        """Whether a process works on this run of a ledger in a file now."""
        facts = self.facts
        if facts is None:
            return False
        lock = Liveness.take(Path(facts.path), number)
        if lock is not None:
            lock.end()
        return lock is None

    def stored(self, number: int, *, most_bytes: int) -> StoredRun | None:
        """What a run on a ledger in a file has released; None if nothing is stored.

        Raises:
            RefusedError: it takes more bytes than that.
        """
        with self._mine():
            return self._store.stored(number, most_bytes) if isinstance(self._store, DiskStore) else None

    def stopped(self, command: str) -> LoggedRun | None:
        """The run that the same command would resume now."""
        with self._mine():
            return self._store.stopped(command) if isinstance(self._store, DiskStore) else None


class _Running(AbstractContextManager[LedgerRun]):
    """The `with` of `Ledger.run`; what ended it is said in the log by one word."""

    def __init__(self, ledger: Ledger, facts: RunFacts, share: Number | None) -> None:
        self._ledger, self._facts, self._share = ledger, facts, share

    def __enter__(self) -> LedgerRun:
        return self._ledger._begin(self._facts, self._share)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ledger._end(FINISHED if kind is None else _outcome(kind))


def _outcome(problem: type[BaseException]) -> str:
    if issubclass(problem, RefusedError):
        return "refused"
    return "failed" if issubclass(problem, Exception) else "stopped"
