"""The filter that decides: one ledger per budget, fully adaptive, stop before exceeding.

The guarantee of a table is the ledger's ceiling. What has been spent so far is bookkeeping, not a
smaller guarantee. The proof is in docs/proofs/ledger.md; where it is kept, in units.py (memory)
and disk_store.py (a file).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

from dpcurate import _validation
from dpcurate._messages import shown
from dpcurate._validation import Number
from dpcurate.accounting import Budget, Cost, Event, composition, epsilon_of
from dpcurate.errors import BudgetError, BudgetExceeded, LedgerError, NotPrivate
from dpcurate.private.ledger.disk_store import DiskStore
from dpcurate.private.ledger.run_log import LedgerRun
from dpcurate.private.ledger.units import (
    UNIT,
    Decide,
    LedgerFacts,
    LedgerStore,
    MemoryStore,
    State,
    float_down,
    float_up,
    price,
    round_down,
    round_up,
)
from dpcurate.private.process import process

NOTHING = "Nothing was read and nothing was spent."


@dataclass(slots=True)
class _Block:
    """Budget set aside by `reserve`, and what has been charged to it."""

    hold: int
    units: int
    used: int = 0
    events: list[Event] = field(default_factory=list)


class Filter:
    """Decides, charges and remembers; `Ledger`, which people use, is this with a file and with runs."""

    def __init__(self, budget: Budget, *, allow_unproved: bool = False, neighbours: str | None = None) -> None:
        self._start(budget, MemoryStore(), allow_unproved=allow_unproved, neighbours=neighbours)

    def _start(self, budget: Budget, store: LedgerStore, *, allow_unproved: bool, neighbours: str | None) -> None:
        self._budget = budget
        self._store = store
        self._facts = store.facts if isinstance(store, DiskStore) else None
        self._unlimited = math.isinf(budget.ceiling)
        self._ceiling = 0 if self._unlimited else round_down(budget.ceiling)
        self._lenient = allow_unproved or self._unlimited
        self._neighbours = neighbours
        self._purse = "the budget"
        self._block: _Block | None = None
        self._run: LedgerRun | None = None
        self._lock = threading.RLock()
        self._process = process()

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

    def reserve(self, amount: Number) -> AbstractContextManager[Filter]:
        """Set budget aside for a block of small charges, which then need no disk each.

        Inside the `with`, every charge to this ledger is taken from the block and never exceeds it,
        even if the ledger has more: what was not set aside beforehand is not durably paid. On the way
        out the events are written and the rest returns, in one transaction. What a crash leaves
        reserved counts as spent forever. Blocks do not nest.
        """
        self._check_process()
        taken = _validation.between(0, amount, math.inf)
        if taken is None:
            raise BudgetError(f"a block to reserve must be a finite amount above 0, got {shown(amount)}")
        return _Reservation(self, taken)

    def _open_block(self, amount: Number) -> None:
        with self._mine():
            if self._block is not None:
                raise LedgerError("a block is already reserved; leave it before reserving another")
            self._check_run(round_down(amount))
            self._block = _Block(*self._store.hold(self._decide_hold(amount)))

    def _close_block(self) -> None:
        with self._mine():
            block, self._block = self._block, None
            assert block is not None
            self._store.settle(block.hold, block.used, block.events)
            self._count(block.used)

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

    def _decide_hold(self, amount: Number) -> Decide:
        least, most = round_down(amount), round_up(amount)

        def decide(spent: int) -> int:
            left = self._ceiling - spent
            self._fit(least, left)
            return most if self._unlimited else min(most, left)  # so that all that remains can be reserved

        return decide

    def _price(self, event: Event) -> int:
        """The event's cost in units, or a refusal of an event that no amount of budget covers."""
        cost = event.cost
        if not (cost.rho >= 0 and cost.epsilon >= 0):
            raise BudgetError(f"{named(event)} states a cost that means nothing: {cost}. {NOTHING}")
        if cost.rho == math.inf and not self._lenient:
            raise NotPrivate(
                f"{named(event)} is an exact or unproved release: no finite privacy cost is known for it. "
                f"{NOTHING} Choose a proved release, or open the curator with allow_unproved=True, "
                "after which every report says NOT PRIVATE"
            )
        if self._budget.pure and cost.epsilon == math.inf != cost.rho and not self._unlimited:
            raise BudgetExceeded(
                f"{named(event)} has no pure epsilon (at delta = 0 it is infinite), and this budget has "
                f"delta = 0. {NOTHING} Use Laplace noise or the exponential mechanism, or a budget "
                "with delta > 0"
            )
        return price(cost, pure=self._budget.pure)

    def _fit(self, units: int, left: int) -> int:
        if units > left and not self._unlimited:
            self._refuse(units, left, self._purse)
        return units

    def _refuse(self, units: int, left: int, source: str) -> NoReturn:
        asked, rest = float_up(units), max(0.0, float_down(left))
        relation = f", neighbours {self._neighbours}" if self._neighbours else ""
        raise BudgetExceeded(
            f"asked for {self._amount(asked)}, but only {self._amount(rest)} is left of {source}; "
            f"the ceiling is {worth(self._budget)}{relation}. {NOTHING} Ask for less (more noise, fewer "
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
    def facts(self) -> LedgerFacts | None:
        """What a ledger on disk says it is about, and where it is kept; None in memory."""
        self._check_process()
        return self._facts

    @property
    def spent(self) -> float:
        """What has been taken from the budget, reserved blocks included, in its currency; rounded up."""
        return float_up(self._state().spent)

    @property
    def reserved(self) -> float:
        """The part of `spent` that is set aside in blocks still open or left by a crash; rounded up."""
        return float_up(self._state().reserved)

    @property
    def remaining(self) -> float:
        """The most that the next charge may cost: inside `reserve` of the block. Rounded down."""
        with self._mine():
            if self._block is not None:
                return float_down(self._block.units - self._block.used)
            left = None if self._unlimited else self._ceiling - self._state().taken
            left = left if self._run is None else self._run.left(left)
            return math.inf if left is None else float_down(left)

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
            cost = self._block_cost(lost * UNIT)
            events += (Event("reserved", "blocks left by a crash or open elsewhere", cost),)
        return composition.under(events, rule, delta=float(self._budget.delta or 0) if delta is None else delta)

    def _block_cost(self, amount: Fraction) -> Cost:
        """A block is itself a filter, so as a whole it costs what it holds."""
        return Cost.pure(amount) if self._budget.pure else Cost.concentrated(amount)

    def _state(self) -> State:
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
        return f"<Ledger {where}: {worth(self._budget)}>"


class _Reservation(AbstractContextManager[Filter]):
    """The `with` of `Ledger.reserve`. Not a generator: one that is dropped would give back when it is collected."""

    def __init__(self, ledger: Filter, amount: Number) -> None:
        self._ledger = ledger
        self._amount = amount

    def __enter__(self) -> Filter:
        self._ledger._open_block(self._amount)
        return self._ledger

    def __exit__(self, *problem: object) -> None:
        self._ledger._close_block()


# --- messages -------------------------------------------------------------------------------------------


def named(event: Event) -> str:
    """An event in words."""
    return f"{event.about!r} ({event.mechanism})"


def worth(budget: Budget) -> str:
    """A budget in words, in its currency and in epsilon."""
    if math.isinf(budget.ceiling):
        return "unlimited (NOT PRIVATE)"
    rho = "" if budget.pure else f"rho = {float(budget.ceiling):.6g}, that is "
    return f"{rho}epsilon = {float(budget.epsilon or 0):.6g} at delta = {budget.delta:.3g}"


def same(one: Budget, other: Budget) -> bool:
    """Whether two budgets were given by the same numbers: the converted one may differ in its last bit."""
    return one.delta == other.delta and (one.epsilon == other.epsilon or one.rho == other.rho)


def mismatch(path: Path, what: str, asked: str, written: str) -> NoReturn:
    """Refuse a ledger that was made for something else."""
    raise LedgerError(
        f"{path} is the ledger for {what} {written}, not for {asked}; it was left as it is. Open it with "
        "what it was made for, or create another ledger, knowing that the budget belongs to the table"
    )
