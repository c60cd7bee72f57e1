"""The ledger: never above the ceiling, never an answer unpaid, never a file harmed."""

from __future__ import annotations

import contextlib
import copy
import math
import os
import pickle
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dpcurate.accounting import Budget, Cost, Event
from dpcurate.errors import BudgetError, BudgetExceeded, LedgerError, NotPrivate
from dpcurate.private.ledger import Ledger
from dpcurate.private.ledger import file as ledger_file
from dpcurate.private.ledger import format as ledger_format
from dpcurate.private.ledger.units import UNIT, float_down, float_up, round_down, round_up

ZCDP = Budget(rho=1.0)
PURE = Budget(epsilon=1.0, delta=0)
TIGHT = Budget(epsilon=1.0, delta=1e-10)
NAMES = {"table": "patients", "schema_hash": "abc123", "neighbours": "add-remove"}


def gaussian(rho: float | Fraction) -> Event:
    return Event("gaussian", "counts of a, b", Cost.concentrated(Fraction(rho)), noise=1 / math.sqrt(2 * rho))


def laplace(epsilon: float | Fraction) -> Event:
    return Event("laplace", "counts of a", Cost.pure(Fraction(epsilon)), noise=float(1 / epsilon))


EXACT = Event("exact", "counts of a", Cost.infinite(), claimed=0.5)


def made(path: Path, budget: Budget = ZCDP, **more: bool) -> Ledger:
    return Ledger.create(path, **NAMES, budget=budget, **more)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "the ledger?.ledger"  # a name that an URI must quote


@pytest.fixture(params=["memory", "disk"])
def new(request: pytest.FixtureRequest, path: Path) -> Callable[..., Ledger]:
    """A ledger of either kind: the same contract holds for both."""
    if request.param == "memory":
        return Ledger
    return lambda budget, **more: made(path, budget, **more)


# --- the filter ------------------------------------------------------------------------------------------


def test_charges_add_up_and_stop_before_the_ceiling(new: Callable[..., Ledger]) -> None:
    ledger = new(ZCDP)
    ledger.charge([gaussian(0.5), gaussian(0.25)])
    assert (ledger.spent, ledger.remaining, ledger.private) == (0.75, 0.25, True)
    with pytest.raises(BudgetExceeded):
        ledger.charge([gaussian(0.125), gaussian(0.25)])
    assert (ledger.spent, len(ledger.events)) == (0.75, 2)
    ledger.charge([gaussian(0.25)])
    assert (ledger.spent, ledger.remaining) == (1.0, 0.0)
    with pytest.raises(BudgetExceeded):
        ledger.charge([gaussian(2.0**-90)])
    assert ledger.events == (gaussian(0.5), gaussian(0.25), gaussian(0.25))


def test_the_refusal_says_what_was_asked_what_is_left_and_what_to_do() -> None:
    ledger = Ledger(TIGHT, neighbours="replace")
    with pytest.raises(BudgetExceeded) as caught:
        ledger.charge([gaussian(0.5)])
    for part in ("rho = 0.5", "epsilon = 6.839", "rho = 0.01324", "epsilon = 1 at delta = 1e-10", "replace"):
        assert part in str(caught.value)
    assert "nothing was spent" in str(caught.value)
    with pytest.raises(BudgetExceeded, match=r"asked for epsilon = 2, but only epsilon = 1 is left"):
        Ledger(PURE).charge([laplace(2)])


def test_a_pure_budget_counts_epsilon_and_refuses_what_has_none(new: Callable[..., Ledger]) -> None:
    ledger = new(PURE, allow_unproved=True)
    ledger.charge([laplace(0.75)])
    with pytest.raises(BudgetExceeded, match="no pure epsilon"):
        ledger.charge([gaussian(1e-9)])  # even here: it is proved, but not for this promise
    with pytest.raises(BudgetExceeded):
        ledger.charge([laplace(0.5)])
    assert (ledger.spent, ledger.private) == (0.75, True)


def test_steps_without_a_finite_cost_need_leave_and_leave_a_mark(new: Callable[..., Ledger]) -> None:
    ledger = new(ZCDP, allow_unproved=True)
    ledger.charge([EXACT, gaussian(0.5)])
    assert not ledger.private
    assert ledger.spent == 0.5
    with pytest.raises(BudgetExceeded):
        ledger.charge([gaussian(0.75)])
    assert ledger.events == (EXACT, gaussian(0.5))


def test_steps_without_a_finite_cost_are_refused_by_default(new: Callable[..., Ledger]) -> None:
    ledger = new(PURE)
    with pytest.raises(NotPrivate, match="allow_unproved=True"):
        ledger.charge([laplace(0.5), EXACT])
    assert (ledger.spent, ledger.private, ledger.events) == (0.0, True, ())


@pytest.mark.parametrize("budget", [Budget.unlimited(), Budget(epsilon=math.inf, delta=0)])
def test_an_unlimited_budget_takes_everything_and_promises_nothing(new: Callable[..., Ledger], budget: Budget) -> None:
    ledger = new(budget)
    assert not ledger.private
    ledger.charge([EXACT, gaussian(10), laplace(3)])
    with ledger.reserve(5.0):
        ledger.charge([laplace(2)])
    assert ledger.remaining == math.inf
    assert ledger.spent == (5.0 if budget.pure else 16.5)
    assert "NOT PRIVATE" in repr(ledger)


@pytest.mark.parametrize("cost", [Cost(-1.0, 0.5), Cost(1.0, -0.5), Cost(1.0, math.nan), Cost(-math.inf, -math.inf)])
def test_a_cost_that_means_nothing_is_refused(cost: Cost) -> None:
    ledger = Ledger(Budget.unlimited())
    with pytest.raises(BudgetError, match="means nothing"):
        ledger.charge([Event("odd", "a refund", cost)])
    assert ledger.spent == 0


def test_nothing_to_pay_is_free(new: Callable[..., Ledger]) -> None:
    ledger = new(ZCDP)
    ledger.charge([])
    ledger.charge([Event("constant", "no data", Cost(0.0, 0.0))])
    assert ledger.spent == 0
    assert len(ledger.events) == 1


positive = st.one_of(st.fractions(min_value=0, max_value=4, max_denominator=10**6), st.floats(min_value=0, max_value=4))


@settings(deadline=None)
@given(positive)
def test_rounding_is_towards_safety(value: Fraction | float) -> None:
    exact = Fraction(value)
    up, down = round_up(value), round_down(value)
    assert down * UNIT <= exact <= up * UNIT
    assert up - down <= 1
    assert Fraction(float_up(up)) >= up * UNIT
    assert Fraction(float_down(down)) <= down * UNIT
    assert float_up(round_up(2.0)) == float_down(round_down(2.0)) == 2.0


def test_a_cost_beyond_all_floats_is_still_refused() -> None:
    assert float_up(10**400 << 100) == math.inf
    with pytest.raises(BudgetExceeded):
        Ledger(ZCDP).charge([gaussian(1) for _ in range(2)] + [Event("huge", "x", Cost(math.inf, Fraction(10**400)))])


@settings(deadline=None)
@given(st.lists(positive, max_size=40), st.sampled_from([ZCDP, PURE, TIGHT, Budget(epsilon=Fraction(1, 3), delta=0)]))
def test_the_exact_sum_never_passes_the_ceiling(costs: list[Fraction | float], budget: Budget) -> None:
    ledger = Ledger(budget)
    paid = Fraction(0)
    for cost in costs:
        before = ledger.spent
        try:
            ledger.charge([Event("step", "x", Cost(cost, cost))])
        except BudgetExceeded:
            assert ledger.spent == before
            assert paid + Fraction(cost) > Fraction(budget.ceiling) - 41 * UNIT
        else:
            paid += Fraction(cost)
    assert paid <= Fraction(budget.ceiling)
    assert Fraction(ledger.spent) >= paid
    assert Fraction(ledger.remaining) <= Fraction(budget.ceiling) - paid


# --- to the last unit ------------------------------------------------------------------------------------

THIRD = Fraction(1, 3)
CEILINGS = [ZCDP, PURE, TIGHT, Budget(rho=THIRD), Budget(epsilon=THIRD, delta=0)]


def floor_of(budget: Budget) -> Fraction:
    """The ceiling rounded down to whole units, by other means than the ledger's."""
    return math.floor(Fraction(budget.ceiling) * 2**100) * UNIT


def step(cost: Fraction) -> Event:
    return Event("step", "x", Cost(cost, cost))


def reopened(ledger: Ledger) -> Ledger:
    return ledger if ledger.facts is None else Ledger.open(ledger.facts.path)


@pytest.mark.parametrize("budget", CEILINGS)
def test_exactly_the_ceiling_fits_and_one_unit_more_does_not(new: Callable[..., Ledger], budget: Budget) -> None:
    ledger, all_of_it = new(budget), floor_of(budget)
    for cost in (all_of_it + UNIT, all_of_it + UNIT / 1024, Fraction(budget.ceiling) + UNIT / 1024):
        with pytest.raises(BudgetExceeded):
            ledger.charge([step(cost)])
    with pytest.raises(BudgetExceeded):
        ledger.charge([step(all_of_it), step(UNIT / 1024)])
    ledger = reopened(ledger)
    ledger.charge([step(all_of_it - UNIT)])
    ledger = reopened(ledger)
    with pytest.raises(BudgetExceeded):
        ledger.charge([step(UNIT * 2)])
    with pytest.raises(BudgetExceeded):
        ledger.charge([step(UNIT + UNIT / 1024)])
    ledger.charge([step(UNIT)])
    ledger = reopened(ledger)
    assert ledger.remaining == 0
    for cost in (UNIT, UNIT / 1024):
        with pytest.raises(BudgetExceeded):
            ledger.charge([step(cost)])
        with pytest.raises(BudgetExceeded), ledger.reserve(UNIT):
            pass
    ledger.charge([step(Fraction(0))])
    assert sum(Fraction(event.cost.rho) for event in ledger.events) == all_of_it


@pytest.mark.parametrize("budget", CEILINGS)
def test_a_block_of_exactly_what_is_left_fits_and_one_unit_more_does_not(
    new: Callable[..., Ledger], budget: Budget
) -> None:
    ledger, all_of_it = new(budget), floor_of(budget)
    for amount in (all_of_it + UNIT, all_of_it + UNIT + UNIT / 1024):
        with pytest.raises(BudgetExceeded), ledger.reserve(amount):
            pass
    with ledger.reserve(all_of_it + UNIT / 1024):  # rounded down it fits, and it holds no more than there is
        with pytest.raises(BudgetExceeded, match="reserved block"):
            ledger.charge([step(all_of_it + UNIT)])
        ledger.charge([step(all_of_it - UNIT)])
        with pytest.raises(BudgetExceeded, match="reserved block"):
            ledger.charge([step(UNIT + UNIT / 1024)])
        ledger.charge([step(UNIT)])
        with pytest.raises(BudgetExceeded, match="reserved block"):
            ledger.charge([step(UNIT / 1024)])
    ledger = reopened(ledger)
    assert ledger.remaining == 0
    with pytest.raises(BudgetExceeded):
        ledger.charge([step(UNIT)])


def test_a_block_holds_its_amount_rounded_up_and_gives_the_rest_back(new: Callable[..., Ledger]) -> None:
    ledger = new(ZCDP)
    with ledger.reserve(UNIT * 5 / 2):
        ledger.charge([step(UNIT * 5 / 2)])  # three units, and the block has three
        with pytest.raises(BudgetExceeded):
            ledger.charge([step(UNIT)])
    with ledger.reserve(UNIT * 5 / 2):
        ledger.charge([step(UNIT)])
    ledger = reopened(ledger)
    with pytest.raises(BudgetExceeded):
        ledger.charge([step(1 - 3 * UNIT)])
    ledger.charge([step(1 - 4 * UNIT)])


@pytest.mark.parametrize("budget", [ZCDP, PURE])
def test_every_cost_is_rounded_up_by_itself(new: Callable[..., Ledger], budget: Budget) -> None:
    """A thousand costs of a thousandth of a unit are a thousand units."""
    ledger = new(budget)
    ledger.charge([step(UNIT / 1000)] * 1000)
    with pytest.raises(BudgetExceeded):
        ledger.charge([step(1 - 999 * UNIT)])
    ledger.charge([step(1 - 1000 * UNIT)])
    assert reopened(ledger).remaining == 0


# --- blocks ----------------------------------------------------------------------------------------------


def test_a_block_is_a_ceiling_and_its_rest_returns(new: Callable[..., Ledger]) -> None:
    ledger = new(ZCDP)
    ledger.charge([gaussian(0.25)])
    with ledger.reserve(0.5) as same:
        assert same is ledger
        assert (ledger.spent, ledger.reserved, ledger.remaining) == (0.75, 0.5, 0.5)
        ledger.charge([gaussian(0.125)])
        assert (ledger.spent, ledger.remaining) == (0.75, 0.375)
        with pytest.raises(BudgetExceeded, match="left of the reserved block"):
            ledger.charge([gaussian(0.5)])
        with pytest.raises(LedgerError, match="already reserved"), ledger.reserve(0.125):
            pass
        assert len(ledger.events) == 2
    assert (ledger.spent, ledger.reserved, ledger.remaining) == (0.375, 0.0, 0.625)
    assert ledger.events == (gaussian(0.25), gaussian(0.125))


def test_a_block_returns_its_rest_after_an_error(new: Callable[..., Ledger]) -> None:
    ledger = new(ZCDP)
    with contextlib.suppress(ZeroDivisionError), ledger.reserve(1.0):
        ledger.charge([gaussian(0.5)])
        raise ZeroDivisionError
    assert ledger.spent == 0.5
    with ledger.reserve(ledger.remaining):
        assert ledger.remaining == 0.5


class Loud(float):
    """A number with code of its own, which must not run in the session."""

    def __lt__(self, other: object) -> bool:
        raise AssertionError

    __gt__ = __le__ = __ge__ = __lt__

    def __repr__(self) -> str:
        raise AssertionError


def test_a_block_larger_than_what_is_left_is_refused(new: Callable[..., Ledger]) -> None:
    ledger = new(ZCDP)
    with pytest.raises(BudgetExceeded), ledger.reserve(1.5):
        pass
    assert ledger.spent == 0
    for amount in (0, -1.0, math.inf, math.nan, -math.inf, "1", b"1", True, None, [1], 1j, Decimal(1), Loud(1.0)):
        with pytest.raises(BudgetError, match="finite amount above 0"):
            ledger.reserve(amount)  # type: ignore[arg-type]


def test_all_that_remains_can_be_reserved_and_a_block_holds_what_it_was_made_for() -> None:
    ledger = Ledger(Budget(epsilon=Fraction(1, 3), delta=0))
    with ledger.reserve(Fraction(1, 3)):
        with pytest.raises(BudgetExceeded):
            ledger.charge([laplace(Fraction(1, 3))])  # rounded up this is above the total rounded down
        ledger.charge([laplace(ledger.remaining)])
    ledger = Ledger(ZCDP)
    with ledger.reserve(Fraction(1, 3)):
        ledger.charge([gaussian(Fraction(1, 3))])


def test_an_unproved_step_in_a_block_is_known_at_once(path: Path) -> None:
    ledger = made(path, allow_unproved=True)
    with ledger.reserve(0.5):
        ledger.charge([EXACT])
        assert not Ledger.open(path).private
        ledger.charge([EXACT])
    assert Ledger.open(path).events == (EXACT, EXACT)


def test_an_unproved_step_in_a_block_in_memory() -> None:
    ledger = Ledger(ZCDP, allow_unproved=True)
    with ledger.reserve(0.5):
        ledger.charge([EXACT, gaussian(0.25)])
        assert not ledger.private
    assert (ledger.private, ledger.spent, ledger.events) == (False, 0.25, (EXACT, gaussian(0.25)))


def test_thousands_of_charges_in_a_block_are_two_transactions(path: Path) -> None:
    ledger = made(path)
    before = _transactions(path)
    with ledger.reserve(0.5):
        for _ in range(5000):
            ledger.charge([gaussian(2.0**-14)])
    assert _transactions(path) - before == 2
    again = Ledger.open(path)
    assert again.spent == 5000 * 2.0**-14
    assert len(again.events) == 5000


def _transactions(path: Path) -> int:
    """SQLite's file change counter: it grows by one with every committed writing transaction."""
    return int.from_bytes(path.read_bytes()[24:28], "big")


# --- the stateful test -----------------------------------------------------------------------------------


class Bookkeeping(RuleBasedStateMachine):
    """Random charges, blocks and reopenings against a model that is a list of fractions."""

    on_disk = False

    @initialize(budget=st.sampled_from([ZCDP, PURE, TIGHT]))
    def begin(self, budget: Budget) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "ledger"
        self.budget = budget
        self.ledger = made(self.path, budget) if self.on_disk else Ledger(budget)
        self.paid: list[Fraction] = []
        self.block: contextlib.AbstractContextManager[Ledger] | None = None
        self.size = Fraction(0)
        self.from_block = 0

    def teardown(self) -> None:
        self.folder.cleanup()

    def left(self) -> Fraction:
        if self.block is not None:
            return self.size - sum(self.paid[self.from_block :], Fraction(0))
        return Fraction(self.budget.ceiling) - sum(self.paid, Fraction(0))

    @rule(shares=st.lists(st.integers(0, 40), max_size=4))
    def charge(self, shares: list[int]) -> None:
        costs = [Fraction(self.budget.ceiling) * share / 64 for share in shares]
        before = (self.ledger.spent, self.ledger.remaining, len(self.ledger.events))
        try:
            self.ledger.charge([Event("step", "x", Cost(cost, cost)) for cost in costs])
        except BudgetExceeded:
            assert sum(costs) > self.left() - Fraction(2) ** -90
            assert before == (self.ledger.spent, self.ledger.remaining, len(self.ledger.events))
        else:
            assert sum(costs) <= self.left()
            self.paid += costs

    @rule(share=st.integers(1, 40))
    def reserve(self, share: int) -> None:
        amount = Fraction(self.budget.ceiling) * share / 64
        block = self.ledger.reserve(amount)
        try:
            block.__enter__()
        except BudgetExceeded:
            assert amount > self.left() - Fraction(2) ** -90
        except LedgerError:
            assert self.block is not None
        else:
            assert amount <= self.left() + UNIT
            self.block, self.size, self.from_block = block, amount, len(self.paid)

    @rule()
    def leave(self) -> None:
        if self.block is not None:
            self.block.__exit__(None, None, None)
            self.block = None

    @rule()
    def refuse(self) -> None:
        with pytest.raises(NotPrivate):
            self.ledger.charge([EXACT])

    @rule()
    def reopen(self) -> None:
        if self.on_disk and self.block is None:
            self.ledger = Ledger.open(self.path, **NAMES, budget=self.budget)

    @invariant()
    def never_above_the_ceiling(self) -> None:
        assert sum(self.paid) <= Fraction(self.budget.ceiling)
        assert sum(self.paid) <= Fraction(self.ledger.spent) <= Fraction(self.budget.ceiling)
        assert len(self.ledger.events) == len(self.paid)
        assert self.ledger.private


class BookkeepingOnDisk(Bookkeeping):
    on_disk = True


TestInMemory = Bookkeeping.TestCase
TestInMemory.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestOnDisk = BookkeepingOnDisk.TestCase
TestOnDisk.settings = settings(max_examples=10, stateful_step_count=15, deadline=None)


# --- one budget, one ledger ------------------------------------------------------------------------------


def test_copies_and_pickles_are_refused(new: Callable[..., Ledger]) -> None:
    ledger = new(ZCDP)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LedgerError, match="second budget"):
            duplicate(ledger)


WAYS_IN: dict[str, Callable[[Ledger], object]] = {
    "charge": lambda ledger: ledger.charge([gaussian(0.1)]),
    "charge nothing": lambda ledger: ledger.charge([]),
    "charge what would be refused": lambda ledger: ledger.charge([EXACT]),
    "reserve": lambda ledger: ledger.reserve(0.1),
    "under": lambda ledger: ledger.under("zcdp"),
} | {
    name: lambda ledger, name=name: getattr(ledger, name)
    for name, value in vars(Ledger).items()
    if isinstance(value, property)
}


def test_a_fork_is_refused(new: Callable[..., Ledger], monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = new(ZCDP)
    block = ledger.reserve(0.5)
    block.__enter__()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        for use in WAYS_IN.values():
            with pytest.raises(LedgerError, match="second budget"):
                use(ledger)
        with pytest.raises(LedgerError, match="second budget"):
            block.__exit__(None, None, None)  # a child must not return what its parent still spends
    assert ledger.spent == 0.5


@pytest.mark.parametrize("kind", ["memory", "block", "disk"])
def test_threads_share_one_budget(path: Path, kind: str) -> None:
    count = 32 if kind == "disk" else 4096
    ledger = made(path) if kind == "disk" else Ledger(ZCDP)
    answers: list[int] = []

    def ask() -> None:
        with contextlib.suppress(BudgetExceeded):
            while True:
                ledger.charge([gaussian(1 / count)])
                answers.append(1)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that threads get in each other's way
    try:
        with ledger.reserve(1.0) if kind == "block" else contextlib.nullcontext():
            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(usual)
    assert len(answers) == len(ledger.events) == count
    assert ledger.spent == 1.0


def test_what_it_shows(path: Path) -> None:
    ledger = made(path, TIGHT)
    assert ledger.facts is not None
    assert ledger.facts.table == "patients"
    assert "patients" in repr(ledger)
    assert Ledger(PURE).facts is None
    assert repr(Ledger(PURE)) == "<Ledger in memory: epsilon = 1 at delta = 0>"


# --- on disk ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "budget",
    [ZCDP, PURE, TIGHT, Budget.unlimited(), Budget(rho=Fraction(1, 3)), Budget(epsilon=Fraction(1, 3), delta=0)],
)
def test_a_ledger_reads_as_it_was_written(path: Path, budget: Budget) -> None:
    events = (
        Event("laplace", "counts of 'a'; DROP TABLE event; \x00 é", Cost(0.0625, Fraction(1, 512)), 16.0),
        Event("exponential", "", Cost.bounded_range(Fraction(1, 64)), None, 0.1),
        Event("odd", "noise", Cost.pure(Fraction(1, 1024)), -0.0, math.inf),
    )
    ledger = made(path, budget)
    ledger.charge(events)
    again = Ledger.open(path, **NAMES, budget=budget)
    assert again.events == events
    assert again.budget == budget
    assert (again.spent, again.remaining, again.facts) == (ledger.spent, ledger.remaining, ledger.facts)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]  # one file, nothing beside it


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"table": "visits"}, "'visits'"),
        ({"schema_hash": "fff"}, "'fff'"),
        ({"neighbours": "replace"}, "'replace'"),
        ({"budget": Budget(rho=2.0)}, "rho = 2,"),
        ({"budget": Budget(epsilon=1.0, delta=0)}, "epsilon = 1 at delta = 0"),
    ],
)
def test_a_mismatch_is_refused_and_names_both(path: Path, wrong: dict[str, object], word: str) -> None:
    made(path).charge([gaussian(0.5)])
    before = path.read_bytes()
    with pytest.raises(LedgerError) as caught:
        Ledger.open(path, **{**NAMES, "budget": ZCDP, **wrong})
    (key,) = wrong
    assert word in str(caught.value)
    assert (NAMES.get(key) or "rho = 1,") in str(caught.value)
    assert path.read_bytes() == before


def test_a_budget_given_either_way_is_the_same_budget(path: Path) -> None:
    made(path, TIGHT)
    assert Ledger.open(path, budget=Budget(rho=TIGHT.rho, delta=1e-10)).budget == TIGHT


@pytest.mark.parametrize("name", ["table", "schema_hash", "neighbours"])
@pytest.mark.parametrize("value", ["", " ", None])
def test_blank_names_are_refused(path: Path, name: str, value: str | None) -> None:
    with pytest.raises(LedgerError, match=name):
        Ledger.create(path, **{**NAMES, name: value}, budget=ZCDP)  # type: ignore[arg-type]
    assert not path.exists()


def test_an_existing_file_is_never_overwritten(path: Path) -> None:
    path.write_text("a diary")
    with pytest.raises(LedgerError, match="never overwritten"):
        made(path)
    assert path.read_text() == "a diary"


def test_places_that_do_not_exist(path: Path) -> None:
    with pytest.raises(LedgerError, match="could not be created"):
        made(path / "deeper")
    with pytest.raises(LedgerError, match="could not be read"):
        Ledger.open(path)
    assert not path.exists()


def test_a_creation_that_fails_leaves_nothing(path: Path) -> None:
    with pytest.raises(LedgerError, match="could not be read or written"):
        Ledger.create(path, **{**NAMES, "table": "\ud800"}, budget=ZCDP)
    assert list(path.parent.iterdir()) == []


def _sqlite(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def _sealed(path: Path, spent: str, unproved: str) -> str:
    connection = sqlite3.connect(path)
    ((chain,),) = connection.execute("SELECT chain FROM book").fetchall()
    seal = ledger_format._seal(connection, chain, spent, unproved)
    connection.close()
    return seal


def _written(path: Path) -> Path:
    ledger = made(path)
    ledger.charge([gaussian(0.25) for _ in range(3)])
    return path


EDITS = {
    "spent lowered": ["UPDATE book SET spent = '0'"],
    "spent is not a number": ["UPDATE book SET spent = 'lots'"],
    "mark removed": ["UPDATE book SET unproved = '1'"],
    "ceiling raised": ["UPDATE book SET rho = '100'"],
    "ceiling is no number": ["UPDATE book SET rho = 'x'"],
    "budget means nothing": ["UPDATE book SET rho = '-1'"],
    "division by zero": ["UPDATE book SET rho = '1/0'"],
    "event removed": ["DELETE FROM event WHERE id = 2"],
    "event edited": ["UPDATE event SET about = 'nothing' WHERE id = 2"],
    "event without a cost": ["UPDATE event SET rho = NULL WHERE id = 2"],
    "block added": ["INSERT INTO hold (units, opened) VALUES ('5', 'today')"],
    "block that is not a number": ["INSERT INTO hold (units, opened) VALUES ('x', 'today')"],
    "no row of facts": ["DELETE FROM book"],
    "two rows of facts": ["INSERT INTO book SELECT * FROM book"],
    "trigger": ["CREATE TRIGGER t AFTER INSERT ON event BEGIN UPDATE book SET spent = '0'; END"],
    "table missing": ["DROP TABLE hold"],
    "path edited": ["UPDATE note SET body = replace(body, 'ledger', 'Ledger')"],
    "path removed": ["DELETE FROM note"],
    "time of a note edited": ["UPDATE note SET written = 'yesterday'"],
    "note added": ["INSERT INTO note (kind, body, written, chain) VALUES ('run', '', '', '')"],
    "journal mode": ["PRAGMA journal_mode = WAL"],
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_ledger_is_refused_and_left_alone(path: Path, edit: str) -> None:
    _sqlite(_written(path), *EDITS[edit])
    _refused(path, "kept at" if edit == "path edited" else "damaged")


def test_a_total_lowered_with_a_fitting_seal_is_refused(path: Path) -> None:
    _sqlite(_written(path), f"UPDATE book SET spent = '0', seal = '{_sealed(path, '0', '0')}'")
    _refused(path, "not the sum of its events")


def _refused(path: Path, why: str = "left as it is") -> None:
    before = _folder(path)
    with pytest.raises(LedgerError, match=why):
        Ledger.open(path)
    with pytest.raises(LedgerError, match="never overwritten"):
        made(path)
    assert _folder(path) == before


def _folder(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


FOREIGN: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda path: path.write_bytes(b""), "is empty"),
    "text": (lambda path: path.write_text("a,b\n1,2\n" * 99), "not an SQLite file"),
    "a few bytes": (lambda path: path.write_bytes(ledger_format.SQLITE), "not an SQLite file"),
    "another program's": (lambda path: _sqlite(path, "CREATE TABLE t (x)"), "another program"),
    "another program's, WAL": (
        lambda path: _sqlite(path, "PRAGMA journal_mode = WAL", "CREATE TABLE t (x)"),
        "another program",
    ),
    "the first format": (lambda path: _sqlite(_written(path), "PRAGMA user_version = 1"), "reads only format 4"),
    "the second format": (lambda path: _sqlite(_written(path), "PRAGMA user_version = 2"), "has ledger format 2"),
    "a later format": (lambda path: _sqlite(_written(path), "PRAGMA user_version = 5"), "has ledger format 5"),
    "a folder": (lambda path: path.mkdir(), "not a plain file"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_files_are_refused_and_left_alone(path: Path, kind: str) -> None:
    make, why = FOREIGN[kind]
    make(path)
    if path.is_dir():
        with pytest.raises(LedgerError, match=why):
            Ledger.open(path)
    else:
        _refused(path, why)


def test_a_truncated_ledger_is_refused_and_left_alone(path: Path) -> None:
    whole = _written(path).read_bytes()
    for length in [0, 1, 99, 100, 4095, 4096, 5000, 8192, len(whole) - 4096, len(whole) - 1]:
        path.write_bytes(whole[:length])
        _refused(path)


def test_flipped_bytes_are_refused_or_change_nothing(path: Path) -> None:
    """A flip in a byte that SQLite does not use may pass, but then the ledger must read the same."""
    whole = _written(path).read_bytes()
    truth = Ledger.open(path)
    expected = (truth.events, truth.spent, truth.private, truth.facts)
    used = [i for i, byte in enumerate(whole) if byte]
    chance = random.Random(1)
    refused = 0
    for place in chance.sample(used, 150) + chance.sample(range(len(whole)), 50):
        broken = bytearray(whole)
        broken[place] ^= 1 << chance.randrange(8)
        path.write_bytes(broken)
        try:
            ledger = Ledger.open(path)
        except LedgerError:
            refused += 1
        else:
            assert (ledger.events, ledger.spent, ledger.private, ledger.facts) == expected
        assert path.read_bytes() == broken
    assert refused > 120


def test_the_file_is_watched_while_it_is_used(path: Path, tmp_path: Path) -> None:
    ledger = made(path)
    ledger.charge([gaussian(0.5)])
    kept = path.read_bytes()
    _sqlite(path, "UPDATE book SET spent = '0'")
    with pytest.raises(LedgerError, match="edited"):
        ledger.charge([gaussian(0.25)])
    _sqlite(path, "UPDATE book SET spent = x'ff'")
    with pytest.raises(LedgerError, match="a part of it cannot be read"):
        ledger.charge([gaussian(0.25)])
    path.unlink()
    with pytest.raises(LedgerError, match="could not be read or written"):
        ledger.charge([gaussian(0.25)])
    assert not path.exists()
    made(path)
    with pytest.raises(LedgerError, match="not the file that was opened"):
        ledger.charge([gaussian(0.25)])
    path.write_bytes(kept[:100] + b"\xff" * (len(kept) - 100))
    with pytest.raises(LedgerError, match="damaged"):
        ledger.charge([gaussian(0.25)])
    path.write_bytes(kept)
    ledger.charge([gaussian(0.25)])
    assert ledger.spent == 0.75


def test_a_block_that_has_gone_is_not_returned(path: Path) -> None:
    ledger = made(path)
    with pytest.raises(LedgerError, match="open block has gone"), ledger.reserve(0.5):
        _sqlite(path, "DELETE FROM hold")
    assert ledger.spent == 0.5


def test_a_ledger_held_too_long_is_an_error_not_an_answer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_file, "WAIT_SECONDS", 0.05)
    ledger = made(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="held by another process"):
        ledger.charge([gaussian(0.5)])
    other.close()
    ledger.charge([gaussian(0.5)])
    assert ledger.spent == 0.5


@contextlib.contextmanager
def _nobody() -> Iterator[None]:
    """Root may write everywhere; for a while, be somebody who may not."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_folder_or_file_that_cannot_be_written() -> None:
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    path = folder / "ledger"
    try:
        ledger = made(path)
        ledger.charge([gaussian(0.5)])
        path.chmod(0o444)
        folder.chmod(0o555)
        with _nobody():
            assert Ledger.open(path).spent == 0.5  # reading needs no leave to write
            with pytest.raises(LedgerError, match="must exist, be writable"):
                ledger.charge([gaussian(0.25)])
            with pytest.raises(LedgerError, match="could not be created: Permission denied"):
                made(folder / "new")
        assert ledger.spent == 0.5
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def _start(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a program with the names of this module."""
    folders = [str(folder) for folder in Path(__file__).parents[:2]]
    setup = f"import sys; sys.path[:0] = {folders!r}; from test_ledger import *\n"
    command = [sys.executable, "-W", "error", "-c", setup + textwrap.dedent(program), *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _python(program: str, *arguments: object) -> str:
    """Run a program with the names of this module; its output."""
    running = _start(program, *arguments)
    out, problems = running.communicate()
    assert running.returncode == 0, problems
    return out


def test_a_full_disk_is_an_error_not_an_answer(path: Path) -> None:
    program = """
    import resource
    path = Path(sys.argv[1])
    ledger = Ledger.open(path)
    size = path.stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    try:
        for _ in range(1000):
            ledger.charge([gaussian(2.0**-20)] * 20)
            print("answer")
    except LedgerError as problem:
        assert "no answer was given" in str(problem).lower(), problem
    else:
        raise AssertionError("the disk never filled up")
    """
    made(path)
    answers = _python(program, path).count("answer")
    again = Ledger.open(path)
    assert len(again.events) == 20 * answers
    again.charge([gaussian(0.5)])


# --- crashes and races -----------------------------------------------------------------------------------

KILLED = """
import signal, time
path, block = Path(sys.argv[1]), sys.argv[2] == "block"
chance = random.Random(7)
answers = 0
began = time.perf_counter()
for _ in range(4):
    with Ledger.open(path).reserve(2.0**-14):
        pass
pace = (time.perf_counter() - began) / 8  # what a transaction takes on this disk today

def work(pipe):
    ledger = Ledger.open(path)
    os.write(pipe, b"r")
    while True:
        if block:
            with ledger.reserve(2.0**-12):
                for _ in range(chance.randrange(1, 5)):
                    ledger.charge([gaussian(2.0**-14)])
                    os.write(pipe, b".")
        else:
            ledger.charge([gaussian(2.0**-14)])
            os.write(pipe, b".")

for _ in range(20):
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work(into)
        finally:
            os._exit(1)
    os.close(into)
    for _ in range(chance.randrange(1, 4)):  # ready, and after up to two answers
        assert os.read(out, 1)
        answers += 1
    time.sleep(chance.uniform(0, 2 * pace))  # spreads the kills over a transaction, and decides nothing
    os.kill(child, signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    while tokens := os.read(out, 65536):
        answers += len(tokens)
    answers -= 1  # ready is no answer
    os.close(out)
    ledger = Ledger.open(path)
    assert ledger.spent >= answers * 2.0**-14, (ledger.spent, answers)
print(answers)
"""


@pytest.mark.parametrize("kind", ["single", "block"])
def test_killed_at_any_instant_every_answer_is_paid_for(path: Path, kind: str) -> None:
    made(path, Budget(rho=4.0))
    answers = int(_python(KILLED, path, kind))
    ledger = Ledger.open(path)
    assert answers > 0
    assert ledger.spent >= answers * 2.0**-14
    assert len(ledger.events) * 2.0**-14 + ledger.reserved == ledger.spent
    if kind == "single":  # a child may die between paying and telling
        assert answers <= len(ledger.events) <= answers + 20


def test_what_a_crash_leaves_reserved_is_spent_forever(path: Path) -> None:
    made(path)
    program = """
    ledger = Ledger.open(sys.argv[1])
    ledger.charge([gaussian(0.25)])
    with ledger.reserve(0.5):
        ledger.charge([gaussian(0.125)])
        os._exit(0)
    """
    _python(program, path)
    ledger = Ledger.open(path)
    assert (ledger.spent, ledger.reserved, ledger.remaining) == (0.75, 0.5, 0.25)
    with ledger.reserve(0.25):
        assert (ledger.reserved, ledger.remaining) == (0.75, 0.25)
    assert Ledger.open(path).spent == 0.75
    with pytest.raises(BudgetExceeded):
        ledger.charge([gaussian(0.5)])


def test_a_journal_left_by_a_crash_is_undone(path: Path) -> None:
    """File and journal as they are in the middle of a transaction: what a power cut would leave."""
    whole = _written(path).read_bytes()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE book SET spent = '0'")
    connection.executemany("INSERT INTO event (about) VALUES (?)", [("x" * 3000,)] * 50)
    crashed = _folder(path)
    connection.close()
    for name, content in crashed.items():
        path.with_name(name).write_bytes(content)
    assert path.read_bytes() != whole
    ledger = Ledger.open(path)
    assert ledger.spent == 0.75
    assert not Path(f"{path}-journal").exists()


RACE = """
ledger = Ledger.open(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
got = 0
try:
    while True:
        ledger.charge([gaussian(2.0**-5)])
        got += 1
except BudgetExceeded:
    print(got)
"""


def test_processes_cannot_both_get_the_last_of_the_budget(path: Path) -> None:
    made(path)
    racers = [_start(RACE, path) for _ in range(3)]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    results = [racer.communicate() for racer in racers]
    assert sum(int(got) for got, _ in results) == 32, results
    assert Ledger.open(path).spent == 1.0


def test_a_fork_in_the_middle_of_other_threads_charges(path: Path) -> None:
    """The child refuses the inherited ledger, can open its own, and the two do not disturb each other."""
    program = """
    path = sys.argv[1]
    ledger = Ledger.open(path)
    stop = threading.Event()
    paid = []

    turns = threading.Semaphore(0)

    def work():
        while turns.acquire() and not stop.is_set():
            ledger.charge([gaussian(2.0**-14)])
            paid.append(1)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(6):
            turns.release(4)  # charges under way while the fork is made, and no more than that
            child = os.fork()
            if child == 0:
                try:
                    ledger.charge([gaussian(2.0**-14)])
                except LedgerError:
                    Ledger.open(path).charge([gaussian(2.0**-14)])
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitpid(child, 0)[1] == 0
            paid.append(1)
    finally:
        stop.set()
        turns.release(2)
    for thread in threads:
        thread.join()
    print(len(paid))
    """
    made(path)
    setup = "import warnings; warnings.simplefilter('ignore', DeprecationWarning)\n"  # 3.12 warns of such forks
    paid = int(_python(setup + textwrap.dedent(program), path))
    assert len(Ledger.open(path).events) == paid
