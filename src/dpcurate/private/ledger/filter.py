"""The filter that decides: one ledger per budget, fully adaptive, stop before exceeding.

The guarantee of a table is the ledger's ceiling. What has been spent so far is bookkeeping, not a
smaller guarantee. The proof is in docs/proofs/ledger.md; where it is kept, in amounts.py (memory)
and store.py (a file).
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NoReturn, cast

from dpcurate import plain
from dpcurate.accounting import Budget, Cost, Event, composition, epsilon_of
from dpcurate.errors import BudgetError, BudgetExceeded, LedgerError, NotPrivate, RefusedError
from dpcurate.plain import Number
from dpcurate.private.ledger import amounts, notes, place, words
from dpcurate.private.ledger import format as form
from dpcurate.private.ledger.runs import FINISHED, LoggedRun, Run, RunFacts
from dpcurate.private.ledger.store import Disk
from dpcurate.private.process import process
from dpcurate.schema import Schema
from dpcurate.wording import shown

_NOTHING = "Nothing was read and nothing was spent."


@dataclass(slots=True)
class _Block:
    """Budget set aside by `reserve`, and what has been charged to it."""

    hold: int
    units: int
    used: int = 0
    events: list[Event] = field(default_factory=list)


class Ledger:
    """The privacy filter of one budget, and what it has let through.

    `Ledger(budget)` keeps them in memory; `Ledger.create` and `Ledger.open` keep them in a file that
    several processes and days share. With an unlimited budget or `allow_unproved=True` steps without
    a finite cost are let through, after which `private` is False for good; finite costs are filtered
    all the same.

    Safe to share between threads. Refuses copies, pickling and use after a fork: each would be a
    second budget.
    """

    def __init__(self, budget: Budget, *, allow_unproved: bool = False, neighbours: str | None = None) -> None:
        self._start(budget, amounts.MemoryStore(), allow_unproved=allow_unproved, neighbours=neighbours)

    def _start(
        self, budget: Budget, store: amounts.LedgerStore, *, allow_unproved: bool, neighbours: str | None
    ) -> None:
        self._budget = budget
        self._store = store
        self._facts = store.facts if isinstance(store, Disk) else None
        self._unlimited = math.isinf(budget.ceiling)
        self._ceiling = 0 if self._unlimited else amounts.round_down(budget.ceiling)
        self._lenient = allow_unproved or self._unlimited
        self._neighbours = neighbours
        self._block: _Block | None = None
        self._run: Run | None = None
        self._lock = threading.RLock()
        self._process = process()

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
        home = place.real(path)
        facts = form.new_facts(
            home, table=table, schema_hash=cast(str, schema_hash), neighbours=neighbours, budget=budget,
            allow_unproved=allow_unproved,
        )  # fmt: skip
        return cls._on(Disk.create(home, facts, schema))

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, table: str | None = None, schema_hash: str | None = None,
        neighbours: str | None = None, budget: Budget | None = None,
    ) -> Ledger:  # fmt: skip
        """A ledger that exists, if it is whole and about what the caller thinks it is about.

        `schema_hash` asks that it was used with that schema before.
        """
        disk = Disk.open(place.real(path))
        facts = disk.facts
        for what, asked, written in (("table", table, facts.table), ("neighbours", neighbours, facts.neighbours)):
            if asked is not None and asked != written:
                words.mismatch(disk.path, what, repr(asked), repr(written))
        used = dict.fromkeys([facts.schema_hash, *(schema.hash for schema in disk.schemas())])
        if schema_hash is not None and schema_hash not in used:
            words.mismatch(disk.path, "schema hash", repr(schema_hash), " and ".join(map(repr, used)))
        if budget is not None and not words.same(budget, facts.budget):
            words.mismatch(disk.path, "budget", words.worth(budget), words.worth(facts.budget))
        return cls._on(disk)

    @classmethod
    def moved(cls, path: str | os.PathLike[str]) -> Ledger:
        """A ledger whose file was moved to `path`, adopted there: a ledger is refused anywhere but at its own path.

        Only for a file that was moved for good, with no run under way. Refused while the place it came from
        still holds the journal of an interrupted transaction, or the ledger itself: a copy is not a move, and
        a copy on another machine, which cannot be seen from here, would be a second budget. The adoption is
        written down (`kept_at`).
        """
        return cls._on(Disk.moved(place.real(path)))

    @staticmethod
    def exists(path: str | os.PathLike[str]) -> bool:
        """Whether there is a file, of whatever kind, where `create` would make one."""
        return place.is_there(place.real(path))

    @classmethod
    def _on(cls, disk: Disk) -> Ledger:
        ledger = cls.__new__(cls)
        facts = disk.facts
        ledger._start(facts.budget, disk, allow_unproved=facts.allow_unproved, neighbours=facts.neighbours)
        return ledger

    def use(self, schema: Schema) -> None:
        """Write a schema down before it is used. One of another unit of privacy is refused: see docs/proofs/ledger.md.

        All other changes (levels, bounds, bins, columns, the cap) go on spending the same budget.
        """
        with self._mine():
            if isinstance(self._store, Disk):
                self._store.use(schema)

    @property
    def unit(self) -> notes.Unit | None:
        """What a ledger on disk protects, rows or persons; None in memory, and until a schema has told."""
        with self._mine():
            return self._store.unit() if isinstance(self._store, Disk) else None

    @property
    def schemas(self) -> tuple[notes.UsedSchema, ...]:
        """Every schema that a ledger on disk was used with, in order: hash, text, since when."""
        with self._mine():
            return self._store.schemas() if isinstance(self._store, Disk) else ()

    # --- charging ----------------------------------------------------------------------------------------

    def charge(self, events: Sequence[Event]) -> None:
        """Pay for all of the events or for none; when this returns they are paid for, durably.

        Raises BudgetExceeded or NotPrivate, with nothing spent. Call it before any row is read.
        """
        self._check_process()  # also for nothing: a charge is how a step asks whether it may go on
        events = tuple(events)
        units = sum([self._price(event) for event in events])
        if not events:
            return
        unproved = any(event.cost.rho == math.inf for event in events)
        with self._mine():
            if self._block is None:
                self._check_run(units)
                self._store.charge(lambda spent: self._fit(units, self._ceiling - spent), events, unproved=unproved)
                self._count(units)
            else:
                self._charge_block(self._block, units, events, unproved=unproved)

    def _charge_block(self, block: _Block, units: int, events: tuple[Event, ...], *, unproved: bool) -> None:
        if units > block.units - block.used:
            self._refuse(units, block.units - block.used, "the reserved block")
        if unproved and not self._store.state().unproved:
            self._store.mark_unproved()  # a crash may forget the block's events, not that the promise is void
        block.used += units
        block.events.extend(events)

    def reserve(self, amount: Number) -> AbstractContextManager[Ledger]:
        """Set budget aside for a block of small charges, which then need no disk each.

        Inside the `with`, every charge to this ledger is taken from the block and never exceeds it,
        even if the ledger has more: what was not set aside beforehand is not durably paid. On the way
        out the events are written and the rest returns, in one transaction. What a crash leaves
        reserved counts as spent forever. Blocks do not nest.
        """
        self._check_process()
        taken = plain.between(0, amount, math.inf)
        if taken is None:
            raise BudgetError(f"a block to reserve must be a finite amount above 0, got {shown(amount)}")
        return _Reservation(self, taken)

    def _open_block(self, amount: Number) -> None:
        with self._mine():
            if self._block is not None:
                raise LedgerError("a block is already reserved; leave it before reserving another")
            self._check_run(amounts.round_down(amount))
            self._block = _Block(*self._store.hold(self._decide_hold(amount)))

    def _close_block(self) -> None:
        with self._mine():
            block, self._block = self._block, None
            assert block is not None
            self._store.settle(block.hold, block.used, block.events)
            self._count(block.used)

    # --- runs: docs/proofs/answers.md ----------------------------------------------------------------------

    def run(self, facts: RunFacts, *, share: Number | None = None) -> AbstractContextManager[Run]:
        """A run of a method on a ledger in a file: it is logged, spends at most `share`, and its answers are stored.

        The run of the same command that was stopped is resumed: what it paid for is not paid again.
        """
        self._check_process()
        taken = None if share is None else plain.between(0, share, math.inf)
        if share is not None and taken is None:
            raise BudgetError(f"a run's share must be a finite amount above 0, got {shown(share)}")
        return _Running(self, facts, taken)

    def _begin(self, facts: RunFacts, share: Number | None) -> Run:
        with self._mine():
            if not isinstance(self._store, Disk) or self._run is not None or self._block is not None:
                raise LedgerError("a run is begun on a ledger in a file that has no other run or block open here")
            self._run = self._store.begin(facts, self._decide_share(share))
            return self._run

    def _decide_share(self, share: Number | None) -> Callable[[int], int | None]:
        """What a new run may spend of what is left; None is no limit."""

        def decide(spent: int) -> int | None:
            if self._unlimited:
                return None if share is None else amounts.round_up(share)
            left = self._ceiling - spent
            if left <= 0:
                raise BudgetExceeded(f"nothing is left of the budget ({words.worth(self._budget)}). {_NOTHING}")
            return left if share is None else min(left, self._fit(amounts.round_down(share), left))

        return decide

    def _end(self, outcome: str) -> None:
        with self._mine():
            run, self._run = self._run, None
            assert run is not None
            assert isinstance(self._store, Disk)
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
    def keeps(self) -> bool:
        """Whether answers are stored now: in a run, outside its blocks, and if nothing unproved is ever let through."""
        with self._mine():
            return self._run is not None and self._block is None and not self._lenient

    def pay(self, request: str, events: Sequence[Event]) -> tuple[str, bytes | None]:
        """Pay for a request of the run: its name, and the answer if it is stored, which then costs nothing now."""
        units = sum([self._price(event) for event in events])
        with self._mine():
            run = self._run
            assert run is not None
            assert isinstance(self._store, Disk)
            request = f"{request}-{units:x}"  # at another price it is another request
            name = run.next(request)

            def decide(spent: int) -> int:
                self._check_run(units)
                return self._fit(units, self._ceiling - spent)

            charged, stored = self._store.pay(run, name, decide, tuple(events))
            run.asked[request] += 1
            run.used += units
            run.charged += charged
            run.replayed += charged < units
            return name, stored

    def keep(self, name: str, body: bytes) -> None:
        """Store the answer to a request that was paid; it may be returned after this, and only then."""
        with self._mine():
            assert self._run is not None
            assert isinstance(self._store, Disk)
            self._store.keep(self._run, name, body)

    def log(self) -> tuple[LoggedRun, ...]:
        """Every run on a ledger in a file, in order."""
        with self._mine():
            return self._store.log() if isinstance(self._store, Disk) else ()

    def stopped(self, command: str) -> LoggedRun | None:
        """The run that the same command would resume now."""
        with self._mine():
            return self._store.stopped(command) if isinstance(self._store, Disk) else None

    def _check_run(self, units: int) -> None:
        """Refuse what exceeds the share of the run under way."""
        if self._run is not None and self._run.allowance is not None:
            left = self._run.allowance - self._run.paid - self._run.charged
            if units > left:
                self._refuse(units, left, "this run's share")

    def _count(self, units: int) -> None:
        if self._run is not None:
            self._run.used += units
            self._run.charged += units

    # --- blocks --------------------------------------------------------------------------------------------

    def _decide_hold(self, amount: Number) -> amounts.Decide:
        least, most = amounts.round_down(amount), amounts.round_up(amount)

        def decide(spent: int) -> int:
            left = self._ceiling - spent
            self._fit(least, left)
            return most if self._unlimited else min(most, left)  # so that all that remains can be reserved

        return decide

    def _price(self, event: Event) -> int:
        """The event's cost in units, or a refusal of an event that no amount of budget covers."""
        cost = event.cost
        if not (cost.rho >= 0 and cost.epsilon >= 0):
            raise BudgetError(f"{words.named(event)} states a cost that means nothing: {cost}. {_NOTHING}")
        if cost.rho == math.inf and not self._lenient:
            raise NotPrivate(
                f"{words.named(event)} is an exact or unproved release: no finite privacy cost is known for it. "
                f"{_NOTHING} Choose a proved release, or open the curator with allow_unproved=True, "
                "after which every report says NOT PRIVATE"
            )
        if self._budget.pure and cost.epsilon == math.inf != cost.rho and not self._unlimited:
            raise BudgetExceeded(
                f"{words.named(event)} has no pure epsilon (at delta = 0 it is infinite), and this budget has "
                f"delta = 0. {_NOTHING} Use Laplace noise or the exponential mechanism, or a budget "
                "with delta > 0"
            )
        return amounts.price(cost, pure=self._budget.pure)

    def _fit(self, units: int, left: int) -> int:
        if units > left and not self._unlimited:
            self._refuse(units, left, "the budget")
        return units

    def _refuse(self, units: int, left: int, source: str) -> NoReturn:
        asked, rest = amounts.float_up(units), max(0.0, amounts.float_down(left))
        relation = f", neighbours {self._neighbours}" if self._neighbours else ""
        raise BudgetExceeded(
            f"asked for {self._amount(asked)}, but only {self._amount(rest)} is left of {source}; "
            f"the ceiling is {words.worth(self._budget)}{relation}. {_NOTHING} Ask for less (more noise, fewer "
            "queries), or stop here: what has been answered stays within the ceiling"
        )

    def _amount(self, amount: float) -> str:
        if self._budget.pure:
            return f"epsilon = {amount:.6g}"
        epsilon = epsilon_of(rho=amount, delta=float(self._budget.delta or 0))
        return f"rho = {amount:.6g} (by itself epsilon = {epsilon:.4g} at delta = {self._budget.delta:.3g})"

    # --- reading -----------------------------------------------------------------------------------------

    @property
    def budget(self) -> Budget:
        """The ceiling, which is the guarantee."""
        self._check_process()
        return self._budget

    @property
    def facts(self) -> amounts.LedgerFacts | None:
        """What a ledger on disk says it is about, and where it is kept; None in memory."""
        self._check_process()
        return self._facts

    @property
    def kept_at(self) -> tuple[tuple[str, str], ...]:
        """Since when, and where, a ledger on disk was kept: more than one pair if it was moved and adopted."""
        with self._mine():
            return self._store.kept_at() if isinstance(self._store, Disk) else ()

    @property
    def spent(self) -> float:
        """What has been taken from the budget, reserved blocks included, in its currency; rounded up."""
        return amounts.float_up(self._state().spent)

    @property
    def reserved(self) -> float:
        """The part of `spent` that is set aside in blocks still open or left by a crash; rounded up."""
        return amounts.float_up(self._state().reserved)

    @property
    def remaining(self) -> float:
        """The most that the next charge may cost: inside `reserve` of the block. Rounded down."""
        with self._mine():
            if self._block is not None:
                return amounts.float_down(self._block.units - self._block.used)
            left = None if self._unlimited else self._ceiling - self._state().spent
            left = left if self._run is None else self._run.left(left)
            return math.inf if left is None else amounts.float_down(left)

    @property
    def private(self) -> bool:
        """False once a step without a finite cost was let through, and always under an unlimited budget."""
        return not (self._unlimited or self._state().unproved)

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything charged, in order. On disk costs are rounded up to the grid of 2**-100."""
        with self._mine():
            return self._store.events() + tuple(self._block.events if self._block else ())

    def under(self, rule: str, *, delta: float | None = None) -> composition.CompositionReport:
        """The epsilon another composition rule would report for the same events. Only the filter decides."""
        with self._mine():
            events = self.events
            lost = self._state().reserved - (self._block.units if self._block else 0)
        if lost > 0:
            cost = self._block_cost(lost * amounts.UNIT)
            events += (Event("reserved", "blocks left by a crash or open elsewhere", cost),)
        return composition.under(events, rule, delta=float(self._budget.delta or 0) if delta is None else delta)

    def _block_cost(self, amount: Fraction) -> Cost:
        """A block is itself a filter, so as a whole it costs what it holds."""
        return Cost.pure(amount) if self._budget.pure else Cost.concentrated(amount)

    def _state(self) -> amounts.State:
        with self._mine():
            return self._store.state()

    # --- one budget, one ledger --------------------------------------------------------------------------

    @contextmanager
    def _mine(self) -> Iterator[None]:
        """One thread at a time, and only in the process that opened the ledger."""
        self._check_process()  # before the lock, which a fork may have copied while it was held
        with self._lock:
            yield

    def _check_process(self) -> None:
        if process() != self._process:
            raise LedgerError(
                "this ledger was opened by another process, and a forked copy would be a second budget; "
                "keep the ledger on disk and call Ledger.open in each process"
            )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise LedgerError("a ledger cannot be copied or pickled: a second one would be a second budget")

    def __repr__(self) -> str:
        where = f"table {self._facts.table!r}" if self._facts else "in memory"
        return f"<Ledger {where}: {words.worth(self._budget)}>"


class _Running(AbstractContextManager[Run]):
    """The `with` of `Ledger.run`; what ended it is said in the log by one word."""

    def __init__(self, ledger: Ledger, facts: RunFacts, share: Number | None) -> None:
        self._ledger, self._facts, self._share = ledger, facts, share

    def __enter__(self) -> Run:
        return self._ledger._begin(self._facts, self._share)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ledger._end(FINISHED if kind is None else _outcome(kind))


def _outcome(problem: type[BaseException]) -> str:
    if issubclass(problem, RefusedError):
        return "refused"
    return "failed" if issubclass(problem, Exception) else "stopped"


class _Reservation(AbstractContextManager[Ledger]):
    """The `with` of `Ledger.reserve`. Not a generator: one that is dropped would give back when it is collected."""

    def __init__(self, ledger: Ledger, amount: Number) -> None:
        self._ledger = ledger
        self._amount = amount

    def __enter__(self) -> Ledger:
        self._ledger._open_block(self._amount)
        return self._ledger

    def __exit__(self, *problem: object) -> None:
        self._ledger._close_block()
