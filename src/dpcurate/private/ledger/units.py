"""What a ledger writes down and in which units, and a store that is kept in memory.

Amounts are integers in units of 2**-100 of the budget's currency, so sums are exact. Costs are
rounded up and totals down: an error can only refuse what would have fitted. A store knows how to
write atomically; whether something may be written is the ledger's decision, which it hands over
as a function of what has been spent. The store in a file is in disk_store.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from dpcurate._validation import Number
from dpcurate.accounting import Budget, Cost, Event

PLACES = 100
UNIT = Fraction(1, 1 << PLACES)


def round_up(value: Number) -> int:
    """The least number of units that is at least `value`."""
    top, bottom = value.as_integer_ratio()
    return -((-top << PLACES) // bottom)


def round_down(value: Number) -> int:
    """The greatest number of units that is at most `value`."""
    top, bottom = value.as_integer_ratio()
    return (top << PLACES) // bottom


def float_up(units: int) -> float:
    """The least float that is at least `units`."""
    try:
        near = units / (1 << PLACES)
    except OverflowError:
        return math.inf
    return math.nextafter(near, math.inf) if round_down(near) < units else near


def float_down(units: int) -> float:
    """The greatest float that is at most `units`."""
    near = units / (1 << PLACES)
    return math.nextafter(near, -math.inf) if round_up(near) > units else near


def price(cost: Cost, *, pure: bool) -> int:
    """What a step takes from the budget, in units; one without a finite cost takes none and leaves a mark."""
    amount = cost.epsilon if pure else cost.rho
    return 0 if math.inf in (amount, cost.rho) else round_up(amount)


Decide = Callable[[int], int]
"""Given the units that count as spent so far, the units to take; raises to refuse."""


@dataclass(frozen=True, slots=True)
class State:
    """Where the ledger stands. `spent` includes `reserved`; `unproved` once an infinite cost was admitted.

    `taken` is what counts as spent for whoever spends here: with what is reserved for others (shares.py).
    """

    spent: int = 0
    reserved: int = 0
    unproved: bool = False
    taken: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFacts:
    """What a ledger on disk is about, and the one path it is kept at."""

    table: str
    schema_hash: str
    neighbours: str
    budget: Budget
    allow_unproved: bool
    created: str
    identity: str
    path: str


class LedgerStore(Protocol):
    """What the ledger needs of its store. Every method is all or nothing."""

    def state(self) -> State:
        """Where the ledger stands."""

    def events(self) -> tuple[Event, ...]:
        """Everything charged, in order."""

    def charge(self, decide: Decide, events: Sequence[Event], *, unproved: bool) -> None:
        """Add events and what `decide` says they take."""

    def mark_unproved(self) -> None:
        """Record for good that a step without a finite cost was let through."""

    def hold(self, decide: Decide) -> tuple[int, int]:
        """Set aside what `decide` says; the block's number and size."""

    def settle(self, hold: int, used: int, events: Sequence[Event]) -> None:
        """Close a block: write its events, give back what it did not use."""


class MemoryStore:
    """A store that ends with the process. The ledger's lock makes each method atomic."""

    def __init__(self) -> None:
        self._spent = 0
        self._held = 0
        self._unproved = False
        self._events: list[Event] = []

    def state(self) -> State:
        """Where the ledger stands."""
        return State(self._spent, self._held, self._unproved, self._spent)

    def events(self) -> tuple[Event, ...]:
        """Everything charged, in order."""
        return tuple(self._events)

    def charge(self, decide: Decide, events: Sequence[Event], *, unproved: bool) -> None:
        """Add events and the units that `decide` says they take."""
        self._spent += decide(self._spent)
        self._unproved |= unproved
        self._events.extend(events)

    def mark_unproved(self) -> None:
        """Record for good that a step without a finite cost was let through."""
        self._unproved = True

    def hold(self, decide: Decide) -> tuple[int, int]:
        """Set aside what `decide` says; the block's number and size."""
        self._held = decide(self._spent)
        self._spent += self._held
        return 0, self._held

    def settle(self, hold: int, used: int, events: Sequence[Event]) -> None:
        """Close a block: write its events, give back what it did not use."""
        self._spent += used - self._held
        self._held = 0
        self._events.extend(events)
