"""Shares of a ledger: nobody exceeds a share or the ceiling, whoever asks in whatever order; docs/proofs/shares.md."""

from __future__ import annotations

import hashlib
import multiprocessing
import random
import sqlite3
import threading
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dpcurate.accounting import Budget, Cost, Event
from dpcurate.errors import BudgetExceeded, LedgerError, ShareRevoked
from dpcurate.private.ledger import Ledger, RunFacts, journal
from dpcurate.schema import Categorical, Schema

SCHEMA = Schema((Categorical("a", ("x", "y")),))
TOKEN = hashlib.sha256(b"a token").hexdigest()


def made(path: Path, rho: float = 1.0) -> Ledger:
    budget = Budget(rho=rho, delta=1e-6)
    return Ledger.create(path, table="patients", schema=SCHEMA, neighbours="add-remove", budget=budget)


def step(amount: Fraction) -> Event:
    return Event("gaussian", "Counts(a)", Cost.concentrated(amount))


def facts(who: str) -> RunFacts:
    return RunFacts(command=f"command of {who}", method="ask", schema=SCHEMA.hash, by=who)


def test_a_share_is_a_ceiling_of_its_own(tmp_path: Path) -> None:
    ledger = made(tmp_path / "l")
    ledger.grant("alice", 0.25, token=TOKEN)
    alice = ledger.of_share("alice")
    alice.charge([step(Fraction(1, 4))])
    assert alice.remaining == 0
    assert ledger.remaining == 0.75
    with pytest.raises(BudgetExceeded, match="share of alice"):
        alice.charge([step(Fraction(1, 2**100))])
    (share,) = ledger.shares
    assert share.spent == 0.25


def test_nobody_else_may_spend_what_is_reserved(tmp_path: Path) -> None:
    ledger = made(tmp_path / "l")
    ledger.grant("alice", 0.25, reserved=True)
    ledger.grant("bob", 1.0)
    bob, alice = ledger.of_share("bob"), ledger.of_share("alice")
    assert ledger.remaining == bob.remaining == 0.75
    bob.charge([step(Fraction(3, 4))])
    for nobody in (bob, ledger):
        with pytest.raises(BudgetExceeded):
            nobody.charge([step(Fraction(1, 2**100))])
    alice.charge([step(Fraction(1, 4))])
    assert ledger.spent == 1


def test_shares_that_are_not_reserved_are_first_come_first_served(tmp_path: Path) -> None:
    ledger = made(tmp_path / "l")
    for who in ("alice", "bob"):
        ledger.grant(who, 0.75)
    ledger.of_share("alice").charge([step(Fraction(3, 4))])
    bob = ledger.of_share("bob")
    assert bob.remaining == 0.25
    with pytest.raises(BudgetExceeded):
        bob.charge([step(Fraction(1, 2))])


def test_more_than_the_ceiling_cannot_be_reserved(tmp_path: Path) -> None:
    ledger = made(tmp_path / "l")
    ledger.grant("alice", 0.75, reserved=True)
    with pytest.raises(LedgerError, match=r"0\.25 of the ceiling"):
        ledger.grant("bob", 0.5, reserved=True)
    ledger.grant("bob", 0.25, reserved=True)
    with pytest.raises(LedgerError, match="at most the ceiling"):
        ledger.grant("carol", 1.5)


def test_revoking_keeps_what_was_spent_and_frees_the_rest(tmp_path: Path) -> None:
    ledger = made(tmp_path / "l")
    ledger.grant("alice", 0.5, reserved=True)
    alice = ledger.of_share("alice")
    alice.charge([step(Fraction(1, 4))])
    ledger.revoke("alice")
    assert (ledger.spent, ledger.remaining, alice.remaining) == (0.25, 0.75, 0)
    with pytest.raises(ShareRevoked):
        alice.charge([step(Fraction(1, 2**100))])
    with pytest.raises(ShareRevoked), alice.run(facts("alice")):
        pass
    with pytest.raises(LedgerError, match="has no share"):
        ledger.revoke("alice")


def test_a_share_granted_again_goes_on_from_what_was_spent(tmp_path: Path) -> None:
    ledger = made(tmp_path / "l")
    ledger.grant("alice", 0.5)
    ledger.of_share("alice").charge([step(Fraction(1, 4))])
    with pytest.raises(LedgerError, match="has a share already"):
        ledger.grant("alice", 0.75)
    ledger.revoke("alice")
    with pytest.raises(LedgerError, match="spent before"):
        ledger.grant("alice", 0.25)
    ledger.grant("alice", 0.75)
    assert ledger.of_share("alice").remaining == 0.5


def test_a_block_is_taken_from_the_share_and_given_back_to_it(tmp_path: Path) -> None:
    ledger = made(tmp_path / "l")
    ledger.grant("alice", 0.5)
    alice = ledger.of_share("alice")
    with alice.reserve(0.5):
        assert ledger.shares[0].spent == 0.5
        alice.charge([step(Fraction(1, 8))])
    assert ledger.shares[0].spent == 0.125
    assert alice.remaining == 0.375


def test_a_block_that_a_crash_left_stays_spent_from_the_share(tmp_path: Path) -> None:
    ledger = made(tmp_path / "l")
    ledger.grant("alice", 0.5)
    alice = ledger.of_share("alice")
    alice._open_block(0.25)  # and its process dies
    again = Ledger.open(tmp_path / "l")
    assert again.shares[0].spent == again.spent == 0.25
    assert again.of_share("alice").remaining == 0.25


def test_a_run_pays_from_the_share_and_replays_for_free(tmp_path: Path) -> None:
    ledger = made(tmp_path / "l")
    ledger.grant("alice", 0.5)
    for times in range(2):
        alice = ledger.of_share("alice")
        alice._begin(facts("alice"), 0.5)
        paid = alice.pay("q", [step(Fraction(1, 4))])
        assert (paid.stored is None) == (times == 0)
        if times == 0:
            alice.keep(paid.name, b"an answer")
        alice._end("stopped")
    assert ledger.shares[0].spent == ledger.spent == 0.25


def test_two_views_of_a_share_spend_it_once(tmp_path: Path) -> None:
    ledger = made(tmp_path / "l")
    ledger.grant("alice", 0.5)
    views = [ledger.of_share("alice") for _ in range(4)]
    charged = []

    def spend(view: Ledger) -> None:
        for _ in range(8):
            try:
                view.charge([step(Fraction(1, 32))])
            except BudgetExceeded:
                return
            charged.append(Fraction(1, 32))

    threads = [threading.Thread(target=spend, args=(view,)) for view in views]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(charged) == Fraction(1, 2)
    assert ledger.spent == 0.5


@pytest.mark.parametrize("name", ["", "a b", "../x", "a\nb", "-x", "x" * 65, "ä", 7])
def test_names_that_a_log_could_misread_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(LedgerError, match="the name of an analyst"):
        made(tmp_path / "l").grant(name, 0.5)


def test_a_token_is_never_kept_in_the_clear(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="never the token"):
        made(tmp_path / "l").grant("alice", 0.5, token="in the clear")


def test_a_budget_in_memory_or_without_a_promise_has_no_shares(tmp_path: Path) -> None:
    lenient = Ledger.create(
        tmp_path / "l", table="t", schema=SCHEMA, neighbours="add-remove", budget=Budget(rho=1), allow_unproved=True
    )
    for ledger in (lenient, Ledger(Budget(rho=1))):
        with pytest.raises(LedgerError, match="shares are parts"):
            ledger.grant("alice", 0.5)


def test_a_share_whose_sum_was_edited_is_damage(tmp_path: Path) -> None:
    """Hashes are recomputed, so that only the sum is wrong."""
    path = tmp_path / "l"
    ledger = made(path)
    ledger.grant("alice", 0.5)
    ledger.of_share("alice").charge([step(Fraction(1, 4))])
    with sqlite3.connect(path) as connection:
        from dpcurate.private.ledger import format as form

        form.write_note(connection, "share-spent alice", '{"by": "0", "total": "0"}')
    connection.close()
    with pytest.raises(LedgerError, match="does not add up"):
        Ledger.open(path)


# --- any order of steps against a model in fractions ------------------------------------------------------------


class Shares(RuleBasedStateMachine):
    """Three analysts and the owner on one ledger, and what each of them may have spent."""

    names = st.sampled_from(["alice", "bob", "carol"])
    amounts = st.integers(1, 48).map(lambda n: Fraction(n, 64))

    @initialize()
    def start(self) -> None:
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.ledger = made(Path(self.folder.name) / "l")
        self.spent: dict[str | None, Fraction] = {None: Fraction(0)}
        self.granted: dict[str, tuple[Fraction, bool]] = {}
        self.views: dict[str | None, Ledger] = {None: self.ledger}

    def kept_for_others(self, who: str | None) -> Fraction:
        return sum(
            (c - self.spent[n] for n, (c, reserved) in self.granted.items() if reserved and n != who), Fraction(0)
        )

    def left(self, who: str | None) -> Fraction:
        table = 1 - sum(self.spent.values()) - self.kept_for_others(who)
        return table if who is None else min(table, self.granted[who][0] - self.spent[who])

    @rule(name=names, amount=amounts, reserved=st.booleans())
    def grant(self, name: str, amount: Fraction, reserved: bool) -> None:
        before = self.spent.get(name, Fraction(0))
        free = 1 - sum(self.spent.values()) - self.kept_for_others(None)
        allowed = name not in self.granted and amount > before and (not reserved or amount - before <= free)
        if not allowed:
            with pytest.raises(LedgerError):
                self.ledger.grant(name, amount, reserved=reserved)
            return
        self.ledger.grant(name, amount, reserved=reserved)
        self.granted[name] = amount, reserved
        self.spent.setdefault(name, Fraction(0))
        self.views[name] = self.ledger.of_share(name)

    @rule(name=names)
    def revoke(self, name: str) -> None:
        if self.granted.pop(name, None) is not None:
            self.ledger.revoke(name)

    @rule(who=st.none() | names, amount=amounts, block=st.booleans())
    def charge(self, who: str | None, amount: Fraction, block: bool) -> None:
        if who is not None and who not in self.granted:
            if who in self.views:
                with pytest.raises((ShareRevoked, BudgetExceeded)):
                    self.views[who].charge([step(amount)])
            return
        view = self.views[who]
        if amount > self.left(who):
            with pytest.raises(BudgetExceeded):
                view.charge([step(amount)])
        elif block:
            with view.reserve(float(amount)):
                view.charge([step(amount / 2)])
            self.spent[who] += amount / 2
        else:
            view.charge([step(amount)])
            self.spent[who] += amount

    @rule()
    def reopen(self) -> None:
        self.ledger = Ledger.open(Path(self.folder.name) / "l")
        self.views = {n: self.ledger if n is None else self.ledger.of_share(n) for n in self.views}

    @invariant()
    def all_is_as_in_the_model(self) -> None:
        if not hasattr(self, "ledger"):
            return
        assert Fraction(self.ledger.spent) == sum(self.spent.values())
        assert sum(self.spent.values()) + self.kept_for_others(None) <= 1
        for share in self.ledger.shares:
            assert Fraction(share.spent) == self.spent[share.name]
            if share.name in self.granted:
                assert Fraction(self.views[share.name].remaining) == self.left(share.name)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestShares = Shares.TestCase
TestShares.settings = settings(
    max_examples=12, stateful_step_count=15, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


# --- races of processes --------------------------------------------------------------------------------------------


def _race(path: Path, who: str, start: object, told: object) -> None:
    view = Ledger.open(path).of_share(who)
    start.wait()  # type: ignore[attr-defined]
    spent = 0
    for _ in range(40):
        try:
            view.charge([step(Fraction(1, 40))])
        except BudgetExceeded:
            break
        spent += 1
    told.put((who, spent))  # type: ignore[attr-defined]


def test_processes_that_race_exceed_neither_their_shares_nor_the_ceiling(tmp_path: Path) -> None:
    path = tmp_path / "l"
    ledger = made(path)
    ledger.grant("alice", 0.3)
    ledger.grant("bob", 0.7)
    spawn = multiprocessing.get_context("spawn")
    start, told = spawn.Event(), spawn.Queue()
    workers = [spawn.Process(target=_race, args=(path, who, start, told)) for who in ("alice", "bob", "bob")]
    for worker in workers:
        worker.start()
    start.set()
    paid: dict[str, int] = {}
    for _ in workers:
        who, spent = told.get(timeout=600)
        paid[who] = paid.get(who, 0) + spent
    for worker in workers:
        worker.join(600)
    assert paid == {"alice": 11, "bob": 27}  # the floats 0.3 and 0.7 lie below twelve and twenty-eight fortieths
    again = Ledger.open(path)
    assert {share.name: round(share.spent * 40) for share in again.shares} == paid
    assert again.spent <= 1


def _spend(path: Path, who: str, seed: int, start: object, told: object) -> None:
    """Two threads with views of their own that charge and set aside amounts of a seed until little is left."""

    def work(number: int) -> None:
        chance, view = random.Random(f"{seed} {number}"), Ledger.open(path).of_share(who)
        start.wait()  # type: ignore[attr-defined]
        for _ in range(70):
            amount, used = Fraction(chance.randint(1, 9), 256), Fraction(0)
            try:
                if chance.random() < 0.3:
                    with view.reserve(float(amount)):
                        view.charge([step(amount / 4)])
                        used = amount / 4
                else:
                    view.charge([step(amount)])
                    used = amount
            except BudgetExceeded:
                continue
            paid.append(used)

    paid: list[Fraction] = []
    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told.put((who, sum(paid, Fraction(0))))  # type: ignore[attr-defined]


@pytest.mark.parametrize(("more", "reserved"), [(0.7, False), (0.9, True)])
def test_threads_in_processes_exceed_neither_their_shares_nor_the_ceiling(
    tmp_path: Path, more: float, reserved: bool
) -> None:
    """Alice has .3, reserved or not; bob has .7, or .9 of which alice's part is not his."""
    path, seed = tmp_path / "l", random.randrange(2**32)
    ledger = made(path)
    ledger.grant("alice", 0.3, reserved=reserved)
    ledger.grant("bob", more)
    spawn = multiprocessing.get_context("spawn")
    start, told = spawn.Event(), spawn.Queue()
    workers = [spawn.Process(target=_spend, args=(path, who, seed, start, told)) for who in ("alice", "bob")]
    for worker in workers:
        worker.start()
    start.set()
    paid: dict[str, Fraction] = {}
    for _ in workers:
        who, spent = told.get(timeout=600)
        paid[who] = spent
    for worker in workers:
        worker.join(600)
    again = Ledger.open(path)
    assert {share.name: Fraction(share.spent) for share in again.shares} == paid, seed
    assert paid["alice"] <= Fraction(0.3)
    assert paid["bob"] <= Fraction(0.7) + Fraction(1, 2**50)  # 1 - 0.3 in floats
    assert Fraction(again.spent) == sum(paid.values()) <= 1
    assert again.reserved == 0
    for who, share in (("alice", 0.3), ("bob", 0.7)):  # nobody took anything of the other
        assert paid[who] > Fraction(share) - Fraction(9, 256)


def test_notes_of_the_format_are_found_by_their_kind(tmp_path: Path) -> None:
    made(tmp_path / "l")
    with sqlite3.connect(tmp_path / "l") as connection:
        plan = connection.execute(
            "EXPLAIN QUERY PLAN SELECT body FROM note WHERE kind = 'x' ORDER BY id DESC"
        ).fetchall()
        assert "by_kind" in str(plan)
        assert journal.beginning(connection, "share") == []
    connection.close()
