"""What `epsilon` means with and without a ledger: the library and the command spend alike."""

from __future__ import annotations

from fractions import Fraction

import pytest

import dpcurate
from dpcurate import Budget, networks
from dpcurate.cli import main
from dpcurate.errors import BudgetError, BudgetExceeded, LedgerError
from dpcurate.private.ledger import Ledger

ASIA = networks.load("asia")
TABLE = ASIA.sample(2_000, seed=1)


def test_a_new_ledger_gets_the_budget_of_the_first_run(tmp_path):
    found = dpcurate.discover(TABLE, ASIA.schema, epsilon=0.5, ledger=tmp_path / "l")
    ledger = Ledger.open(tmp_path / "l")
    assert ledger.budget.epsilon == 0.5
    assert ledger.budget.delta == 1e-10
    assert ledger.spent == pytest.approx(found.privacy.spent)


def test_an_exact_epsilon_is_a_number_too(tmp_path):
    dpcurate.discover(TABLE, ASIA.schema, epsilon=Fraction(1, 2), ledger=tmp_path / "l", method="em-pc")
    assert Ledger.open(tmp_path / "l").budget.epsilon == 0.5


def test_an_existing_ledger_gives_a_share_as_the_command_does(tmp_path):
    Ledger.create(tmp_path / "l", table="l", schema_hash=ASIA.schema.hash, neighbours="add-remove",
                  budget=Budget(epsilon=2, delta=1e-10))  # fmt: skip
    share = float(Budget(epsilon=1, delta=1e-10).rho)
    dpcurate.discover(TABLE, ASIA.schema, epsilon=1, ledger=tmp_path / "l")
    by_library = Ledger.open(tmp_path / "l").spent
    assert 0.99 * share <= by_library <= share
    assert main(["network", "sample", "asia", "--rows", "2000", "-o", str(tmp_path / "a.parquet")]) == 0
    ASIA.schema.save(tmp_path / "a.toml")
    words = ["discover", str(tmp_path / "a.parquet"), "--schema", str(tmp_path / "a.toml"), "--epsilon", "1"]
    assert main([*words, "--ledger", str(tmp_path / "l")]) == 0
    assert Ledger.open(tmp_path / "l").spent == pytest.approx(2 * by_library)
    assert Ledger.open(tmp_path / "l").reserved == 0


def test_without_epsilon_all_that_is_left(tmp_path):
    dpcurate.discover(TABLE, ASIA.schema, epsilon=1, ledger=tmp_path / "l", method="em-pc")
    dpcurate.discover(TABLE, ASIA.schema, ledger=tmp_path / "l")
    ledger = Ledger.open(tmp_path / "l")
    assert ledger.remaining < 1e-6 * float(ledger.budget.ceiling)
    with pytest.raises(BudgetExceeded, match="nothing is left"):
        dpcurate.discover(TABLE, ASIA.schema, epsilon=1, ledger=tmp_path / "l")


def test_more_than_is_left_is_refused_and_nothing_is_spent(tmp_path):
    Ledger.create(tmp_path / "l", table="l", schema_hash=ASIA.schema.hash, neighbours="add-remove",
                  budget=Budget(epsilon=1, delta=1e-10))  # fmt: skip
    with pytest.raises(BudgetExceeded, match="is left"):
        dpcurate.discover(TABLE, ASIA.schema, epsilon=1.5, ledger=tmp_path / "l")
    assert Ledger.open(tmp_path / "l").spent == 0


@pytest.mark.parametrize("method", ["pc", dpcurate.methods.PC()])
def test_a_method_that_is_not_private_makes_no_ledger(tmp_path, method):
    with pytest.raises(dpcurate.NotPrivate, match="pc is NOT PRIVATE"):
        dpcurate.discover(TABLE, ASIA.schema, epsilon=1, ledger=tmp_path / "new", method=method)
    assert not (tmp_path / "new").exists()


def test_refusals(tmp_path):
    with pytest.raises(BudgetError, match="how much may be spent"):
        dpcurate.open(TABLE, ASIA.schema, ledger=tmp_path / "new").preview()
    dpcurate.discover(TABLE, ASIA.schema, epsilon=1, ledger=tmp_path / "l", method="em-pc")
    with pytest.raises(LedgerError, match="leave delta out"):
        dpcurate.open(TABLE, ASIA.schema, delta=1e-5, ledger=tmp_path / "l").preview(epsilon=0.1)
