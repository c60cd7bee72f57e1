"""The queryable: validate, charge, read, noise, answer; and nothing that depends on a row besides."""

from __future__ import annotations

import contextlib
import copy
import math
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpcurate import Budget, Categorical, Curator, Neighbours, Numeric, Person, Schema
from dpcurate.accounting import Event
from dpcurate.errors import (
    BudgetError,
    BudgetExceeded,
    DpcurateError,
    GateClosed,
    LedgerError,
    NotPrivate,
    QueryError,
    RefusedError,
    SourceError,
)
from dpcurate.private import process
from dpcurate.private.ledger import Ledger
from dpcurate.private.mechanisms import STEPS, Exponential
from dpcurate.private.noise import Secure
from dpcurate.private.preview import describe
from dpcurate.private.session import Session
from dpcurate.published import PublishedKendallP
from dpcurate.queries import (
    AboveThreshold,
    Answer,
    Choose,
    Contrasts,
    Counts,
    Exact,
    Gaussian,
    Gradient,
    GradientNorms,
    KendallP,
    Laplace,
    Moments,
    Quantile,
    Release,
    Sample,
    Score,
    Tables,
    Tau,
)

SCHEMA = Schema(
    (Categorical("a", ("0", "1")), Categorical("b", ("0", "1", "2")), Numeric("x", 0, 10, bins=2)), rows=300
)
LEVELS = Schema(SCHEMA.columns[:2], rows=300)
WEIGHTS = ((0.0, 0.5), (0.0, 0.0))


def table(rows=300, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, rows)
    b = np.clip(a + rng.integers(0, 2, rows), 0, 2)
    return {"a": a.astype(str), "b": b.astype(str), "x": b + rng.random(rows)}


def curator(budget=None, schema=SCHEMA, **options):
    return Curator(table(), schema, budget=budget or Budget(epsilon=1, delta=1e-6), **options)


class Untouchable:
    """A source that must never be read."""

    made = 0

    def totals(self, row_sums):
        raise AssertionError("the rows were read")

    def passes(self, row_sums):
        return len(row_sums)

    def check(self, row_sum):
        pass

    def check_sample(self):
        pass

    def sample(self, rate, randomness):
        raise AssertionError("the rows were read")


class Broken(Untouchable):
    def totals(self, row_sums):
        raise ValueError("cell 'secret' could not be read")


def session(source, budget=None, allow_unproved=False):
    budget = budget or Budget(rho=1)
    return Session(source, LEVELS, Neighbours.ADD_REMOVE, Ledger(budget), Secure(), allow_unproved=allow_unproved)


EVERY = [
    Release(Counts(("a", "b")), Gaussian(rho=1e-4)),
    Release(Counts(("a", "b")), Laplace(epsilon=1e-3)),
    Release(Contrasts(((), ("a",), ("a", "b")), (0.5, 0.5, 1)), Gaussian(sigma=100.0)),
    Release(Moments(("a", "b", "x")), Gaussian(epsilon=0.05, delta=1e-6)),
    Release(Moments(("a", "x"), clip=0.5), Laplace(scale=1e4)),
    Release(Gradient(("a", "x"), WEIGHTS, clip=0.5), Gaussian(rho=1e-4)),
    Release(GradientNorms(("a", "x"), WEIGHTS, (0.1, 1.0)), Gaussian(rho=1e-4)),
    Release(Tau("a", "b", ("x",)), Laplace(epsilon=1e-3)),
    Release(KendallP("a", "b"), Laplace(epsilon=1e-3)),
    Choose(candidates=(Score(Tau("a", "b"), 5, "above"), Score(Tau("a", "x"), 5, "below")), epsilon=0.01, or_none=True),
]


@pytest.mark.parametrize("request_", EVERY, ids=str)
def test_every_request_is_charged_what_its_noise_costs(request_):
    c = curator()
    before = c.remaining
    answer = c.ask(request_)
    (event,) = c.ledger.events
    assert event.private
    assert before - c.remaining == pytest.approx(float(event.cost.rho), rel=1e-9)
    assert c.ledger.spent == pytest.approx(float(event.cost.rho), rel=1e-9)
    if isinstance(request_, Choose):
        assert answer in (0, 1, 2)
    else:
        assert isinstance(answer, Answer)
        assert len(answer.parts) == len(answer.scales)
        assert all(np.isfinite(p).all() for p in answer.parts)


def test_contrasts_and_moments_mean_what_they_say():
    exact = curator(Budget.unlimited())
    data = table()
    a, b, x = data["a"].astype(int), data["b"].astype(int), data["x"]
    pair = exact.ask(Release(Contrasts(((), ("b",), ("a", "b"))), Exact()))
    phi_a, phi_b = np.eye(2)[a] - 1 / 2, np.eye(3)[b] - 1 / 3
    assert float(pair.parts[0]) == 300
    assert pair.parts[1] == pytest.approx(phi_b.sum(axis=0))
    assert pair.parts[2] == pytest.approx(phi_a.T @ phi_b)
    y = np.column_stack([np.ones(300), 2.0 * a - 1, b - 1.0, np.trunc((x - 5) / 5 * 4096) / 4096])
    assert exact.ask(Release(Moments(("a", "b", "x")), Exact())).value == pytest.approx(y.T @ y)
    u = y[:, [1, 3]]
    rest = u - u @ np.array(WEIGHTS)
    rows = -u[:, :, None] * rest[:, None, :]
    rows[:, range(2), range(2)] = 0
    norm = np.linalg.norm(rows, axis=(1, 2))
    clipped = rows * np.minimum(1, 0.5 / np.maximum(norm, 1e-12))[:, None, None]
    gradient = exact.ask(Release(Gradient(("a", "x"), WEIGHTS, clip=0.5), Exact()))
    assert gradient.value == pytest.approx(clipped.sum(axis=0), abs=1e-3)


def test_a_refusal_reads_nothing_and_spends_nothing():
    r = session(Untouchable(), Budget(rho=1e-6))
    for ask in (
        lambda: r.ask(Release(Counts(("a",)), Gaussian(rho=1e-3))),
        lambda: r.ask(Release(Counts(("a",)), Exact())),
        lambda: r.ask(Release(Counts(("nobody",)), Gaussian(rho=1e-9))),
        lambda: r.ask(Release(PublishedKendallP("a", "b"), Laplace(epsilon=1e-9))),
        lambda: r.ask(Release(Counts(("a",)), Gaussian(sigma=1e300))),
        lambda: r.ask(Choose(candidates=(Score(Tau("a", "b"), 1, "above"),), epsilon=3)),
        lambda: r.ask_all([Release(Counts(("a",)), Gaussian(rho=6e-7))] * 2),
        lambda: r.open(AboveThreshold(epsilon=1)),
        lambda: r.open(Sample(rate=0.5, epsilon=1)),
        lambda: r.open("gate"),
        lambda: r.ask("everything"),
        lambda: r.ask(Release("rows", Gaussian(rho=1e-9))),
        lambda: r.ask(Release(Counts(("a",)), "noise")),
    ):
        with pytest.raises(DpcurateError):
            ask()
    assert r.ledger.spent == 0
    assert r.ledger.events == ()


def test_the_charge_is_made_before_the_rows_are_read():
    r = session(Broken())
    with pytest.raises(SourceError) as caught:
        r.ask(Release(Counts(("a",)), Gaussian(rho=0.25)))
    assert r.ledger.spent == pytest.approx(0.25)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_all_of_a_batch_is_charged_or_none():
    c = curator(Budget(rho=0.01), schema=LEVELS)
    one = Release(Counts(("a",)), Gaussian(rho=0.004))
    assert len(c.ask_all([one, one])) == 2
    with pytest.raises(BudgetExceeded):
        c.ask_all([Release(Counts(("b",)), Gaussian(rho=0.001)), one])
    assert len(c.ledger.events) == 2
    assert c.ask_all([]) == []


def test_unproved_and_exact_releases_need_consent_and_are_marked():
    private = curator()
    for request_ in (Release(Counts(("a",)), Exact()), Release(PublishedKendallP("a", "b"), Laplace(epsilon=0.1))):
        with pytest.raises(NotPrivate):
            private.ask(request_)
    choice = Choose(candidates=(Score(PublishedKendallP("a", "b"), 0.05, "above"),), epsilon=0.1)
    with pytest.raises(NotPrivate, match="allow_unproved=True"):
        private.ask(choice)
    assert private.ledger.private
    open_ = curator(allow_unproved=True)
    p = open_.ask(Release(PublishedKendallP("a", "b"), Laplace(epsilon=0.1)))
    assert math.isfinite(float(p))
    assert not open_.ledger.private
    assert open_.ledger.events[0].claimed == 0.1
    assert math.isinf(open_.ledger.events[0].cost.rho)
    assert open_.ask(choice) == 0
    assert float(open_.ask(Release(Counts(()), Exact()))) == 300
    assert "NOT PRIVATE" in repr(open_)
    assert "NOT PRIVATE" not in repr(private)


def test_a_seeded_run_is_repeatable_and_never_called_private(tmp_path):
    request_ = Release(Counts(("a", "b")), Gaussian(rho=0.001))
    one, two = (curator(insecure_seed=5) for _ in range(2))
    assert (one.ask(request_).value == two.ask(request_).value).all()
    assert not one.ledger.private
    assert "NOT PRIVATE" in repr(one)
    with pytest.raises(BudgetExceeded):  # its budget is kept all the same, as a rehearsal
        one.ask(Release(Counts(("a",)), Gaussian(rho=10)))
    with pytest.raises(NotPrivate):
        one.ask(Release(PublishedKendallP("a", "b"), Laplace(epsilon=0.1)))
    with pytest.raises(LedgerError, match="simulation"):
        curator(insecure_seed=5, ledger=tmp_path / "table.ledger")
    assert not (tmp_path / "table.ledger").exists()


def test_a_pure_budget_takes_no_gaussian_noise():
    c = curator(Budget(epsilon=1, delta=0), schema=LEVELS)
    with pytest.raises(RefusedError):
        c.ask(Release(Counts(("a",)), Gaussian(sigma=1e6)))
    c.ask(Release(Counts(("a",)), Laplace(epsilon=0.25)))
    c.open(AboveThreshold(epsilon=0.5))
    assert c.remaining == pytest.approx(0.25)


def test_a_gate_answers_until_its_first_yes():
    c = curator(Budget(rho=1e5), schema=LEVELS)
    gate = c.open(AboveThreshold(epsilon=100))
    spent = c.ledger.spent
    assert gate.ask(Score(Tau("a", "b"), 1e6, "above")) is False
    assert gate.ask(Score(Tau("a", "b"), 0, "below")) is False
    assert not gate.closed
    assert gate.ask(Score(Tau("a", "b"), 0, "above")) is True
    assert gate.closed
    assert c.ledger.spent == spent
    with pytest.raises(GateClosed):
        gate.ask(Score(Tau("a", "b"), 0, "above"))
    other = c.open(AboveThreshold(epsilon=1))
    with pytest.raises(QueryError, match="asked scores"):
        other.ask(Tau("a", "b"))
    with pytest.raises(NotPrivate):
        other.ask(Score(PublishedKendallP("a", "b"), 0.05, "above"))
    lenient = curator(schema=LEVELS, allow_unproved=True)
    lenient.open(AboveThreshold(epsilon=0.1)).ask(Score(PublishedKendallP("a", "b"), 0.05, "above"))
    assert not lenient.ledger.private


def test_an_undefined_published_test_never_says_yes():
    constant = {"a": ["0"] * 50, "b": ["0"] * 50}
    c = Curator(constant, LEVELS, budget=Budget(epsilon=1, delta=1e-6), allow_unproved=True)
    gate = c.open(AboveThreshold(epsilon=0.1))
    assert gate.ask(Score(PublishedKendallP("a", "b"), 0.05, "above")) is False
    assert float(c.ask(Release(PublishedKendallP("a", "b"), Laplace(epsilon=1)))) < -1e5


def test_choices_prefer_high_scores():
    c = curator(Budget(epsilon=1e4, delta=1e-6), schema=LEVELS)
    strong, weak = Score(Tau("a", "b"), 0, "above"), Score(Tau("a", "b"), 1e5, "above")
    assert c.ask(Choose(candidates=(weak, strong), epsilon=50)) == 1
    assert c.ask(Choose(candidates=(weak, weak), epsilon=50, or_none=True)) == 2


def test_a_secret_sample_is_charged_when_it_opens_and_keeps_its_own_ledger():
    c = curator(Budget(epsilon=1, delta=0), schema=LEVELS)
    inner = c.open(Sample(rate=0.25, epsilon=0.8))
    assert 1 - c.remaining == pytest.approx(math.log1p(0.25 * math.expm1(0.8)), rel=1e-6)
    assert inner.schema.rows == 75
    assert inner.neighbours is Neighbours.ADD_REMOVE
    inner.ask(Release(Tau("a", "b"), Laplace(epsilon=0.5)))
    inner.open(AboveThreshold(epsilon=0.25)).ask(Score(Tau("a", "b"), 10, "above"))
    with pytest.raises(BudgetExceeded):
        inner.ask(Release(Tau("a", "b"), Laplace(epsilon=0.1)))
    assert len(c.ledger.events) == 1
    swap = Curator(table(), LEVELS, budget=Budget(epsilon=1, delta=0), neighbours="replace")
    swap.open(Sample(rate=0.25, epsilon=0.4))
    ratio = (1 + 0.25 * (math.exp(0.4) - 1)) / (1 - 0.25 * (1 - math.exp(-0.4)))
    assert 1 - swap.remaining == pytest.approx(math.log(ratio), rel=1e-6)
    people = Schema(LEVELS.columns, person=Person("id", 2))
    grouped = Curator({**table(), "id": np.arange(300)}, people, budget=Budget(epsilon=1, delta=0))
    with pytest.raises(QueryError, match="protects persons"):
        grouped.open(Sample(rate=0.5, epsilon=0.1))
    unsized = Curator(table(), Schema(LEVELS.columns), budget=Budget(epsilon=1, delta=0))
    assert unsized.open(Sample(rate=1, epsilon=0.1)).schema.rows is None


def test_a_secret_sample_can_spend_what_was_paid_for_it_and_no_more():
    c = curator(Budget(epsilon=1, delta=0), schema=LEVELS)
    inner = c.open(Sample(rate=0.5, epsilon=0.75))
    assert inner.budget == Budget(epsilon=0.75, delta=0)
    inner.ask(Release(Tau("a", "b"), Laplace(epsilon=0.75)))
    with pytest.raises(BudgetExceeded):
        inner.ask(Release(Tau("a", "b"), Laplace(epsilon=1e-6)))


class Spy:
    """Keeps the scores of a choice, and the scale of the noise it asked for."""

    def noisiest(self, scores, scale):
        self.scores, self.scale = scores.astype(float), scale
        return 0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("cap", [None, 1, 3])
def test_a_quantile_is_chosen_with_the_noise_of_a_whole_person(cap, relation, epsilon):
    """Between tables that differ in one unit the log chances of all outcomes move within a range of epsilon."""
    schema = Schema((Numeric("x", 0, 1),), person=None if cap is None else Person("id", cap))
    rows, low, high = cap or 1, [("other", 0.5)] * 9, [("me", 1.0)]
    unit = [("me", 0.0)] * rows
    tables = (low + unit, low + high * rows if relation == "replace" else low)
    chances = []
    for table in tables:
        columns = {"id": [i for i, _ in table], "x": [x for _, x in table]}
        c = Curator(columns, schema, budget=Budget(epsilon=100, delta=0), neighbours=relation)
        c._randomness = spy = Spy()
        c.ask(Quantile(column="x", probability=0.99, epsilon=epsilon))
        weights = np.exp((spy.scores - spy.scores.max()) / spy.scale)
        chances.append(np.log(weights / weights.sum()))
        assert np.ptp(spy.scores) > 0
    apart = chances[0] - chances[1]
    assert 0 < np.ptp(apart) <= epsilon * (1 + 1e-6)  # bounded range


def test_a_choice_has_noise_for_scores_that_move_in_opposite_directions():
    for epsilon in (0.1, 1.0, 8.0):
        spy = Spy()
        Exponential(Fraction(epsilon)).pick(np.array([0, 0]), spy)
        assert 2 * STEPS / spy.scale == pytest.approx(epsilon, rel=1e-12)
        assert Fraction(spy.scale) * Fraction(epsilon) >= 2 * STEPS


def test_an_unproved_release_on_a_sample_marks_the_whole_table():
    c = curator(schema=LEVELS, allow_unproved=True)
    inner = c.open(Sample(rate=0.5, epsilon=0.1))
    assert c.ledger.private
    inner.ask(Release(Counts(("a",)), Exact()))
    assert not c.ledger.private
    strict = curator(schema=LEVELS)
    with pytest.raises(NotPrivate):
        strict.open(Sample(rate=0.5, epsilon=0.1)).ask(Release(Counts(("a",)), Exact()))
    assert strict.ledger.private
    gate = curator(schema=LEVELS, allow_unproved=True)
    gate.open(Sample(rate=0.5, epsilon=0.2)).open(AboveThreshold(epsilon=0.1)).ask(
        Score(PublishedKendallP("a", "b"), 0.05, "above")
    )
    assert not gate.ledger.private


def test_the_curator_cannot_be_multiplied():
    c = curator()
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(RefusedError, match="second budget"):
            duplicate(c)


def test_gates_and_samples_cannot_be_multiplied_either():
    c = curator(Budget(rho=100), schema=LEVELS)
    gate, inner = c.open(AboveThreshold(epsilon=1)), c.open(Sample(rate=0.5, epsilon=1))
    for secret in (gate, inner):
        for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(RefusedError, match="second budget"):
                duplicate(secret)


def test_threads_get_one_yes_from_a_gate():
    c = curator(Budget(rho=1e7), schema=LEVELS)
    for _ in range(20):
        gate, answers = c.open(AboveThreshold(epsilon=100)), []

        def ask(gate=gate, answers=answers):
            with contextlib.suppress(GateClosed):
                answers.append(gate.ask(Score(Tau("a", "b"), 0, "above")))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(answers) == 1


def test_an_exact_release_on_a_sample_of_a_sample_marks_the_table():
    c = curator(schema=LEVELS, allow_unproved=True)
    c.open(Sample(rate=1, epsilon=0.01)).open(Sample(rate=1, epsilon=0.005)).ask(Release(Counts(("a",)), Exact()))
    assert not c.ledger.private


def test_a_strict_curator_stays_strict_on_a_lenient_ledger(tmp_path):
    path = tmp_path / "t.ledger"
    Curator(table(), LEVELS, budget=Budget(rho=1), ledger=path, allow_unproved=True)
    strict = Curator(table(), LEVELS, ledger=path)
    with pytest.raises(NotPrivate):
        strict.ask(Release(Counts(("a",)), Exact()))


def test_the_number_of_rows_is_paid_for_under_replace_too():
    """A row of empty cells may be none to a reader, so that one row changed is one row less."""
    keeps = Schema((Categorical("a", ("0", "1"), missing="0", outside="0"),))
    c = Curator(table(), keeps, budget=Budget(rho=1), neighbours="replace")
    answer = c.ask(Release(Contrasts(((),)), Gaussian(rho=0.125)))
    assert answer.scales == (2.0,)
    assert c.ledger.spent == pytest.approx(0.125)


def test_large_and_small_numbers_are_refused_or_served():
    c = curator(Budget(epsilon=2000, delta=0), schema=LEVELS)
    c.open(Sample(rate=0.5, epsilon=1000))
    with pytest.raises(QueryError):
        c.ask(Release(Counts(("a",)), Laplace(epsilon=1e-300)))
    for rho in (10**400, 1e-200, float("nan")):
        with pytest.raises(BudgetError):
            Budget(rho=rho)


def test_its_repr_shows_public_facts_only():
    assert repr(curator()) == repr(Curator(table(rows=299), SCHEMA, budget=Budget(epsilon=1, delta=1e-6)))
    assert "3 columns, add-remove, unit: row, budget: epsilon = 1, delta = 1e-06" in repr(curator())
    people = Schema(LEVELS.columns, person=Person("id", 2))
    assert "2 rows per person" in repr(Curator({**table(), "id": np.arange(300)}, people, budget=Budget(rho=1)))


def test_bad_budgets_are_refused_before_the_table_is_opened():
    for budget in (None, 1.0, "much"):
        with pytest.raises(BudgetError):
            Curator("absent.parquet", SCHEMA, budget=budget)


def test_a_machine_that_cannot_draw_noise_opens_no_table(tmp_path, monkeypatch):
    def fail():
        raise ImportError("libopendp.so: wrong platform")

    monkeypatch.setattr("dpcurate.private.noise._opendp", fail)
    with pytest.raises(RefusedError, match=r"wrong platform.*nothing was spent"):
        Curator("absent.parquet", SCHEMA, budget=Budget(rho=1), ledger=tmp_path / "t.ledger")
    assert not (tmp_path / "t.ledger").exists()
    curator(insecure_seed=np.int64(3))  # a simulation does without


@pytest.mark.parametrize("seed", ["abc", -1, 1.5, True], ids=repr)
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(QueryError, match="insecure_seed must be a whole number"):
        curator(insecure_seed=seed)


@pytest.mark.parametrize("option", ["allow_unproved", "check"])
@pytest.mark.parametrize("value", ["no", 1, None, np.bool_(True), np.zeros(2)], ids=repr)
def test_a_switch_is_true_or_false(option, value):
    with pytest.raises(QueryError, match=f"{option} must be True or False"):
        curator(**{option: value})


@pytest.mark.parametrize("path", [5, "", "a\0b", [], b"x"], ids=repr)
def test_a_ledger_is_a_path(path):
    with pytest.raises(LedgerError, match="path of a file"):
        curator(ledger=path)


def test_the_owner_can_ask_for_a_check(capsys):
    curator(check=True)
    assert "owner's check (this looked at the data): 300 rows" in capsys.readouterr().err


def test_a_ledger_on_disk_is_shared_between_curators(tmp_path):
    path = tmp_path / "clinic.ledger"
    first = curator(Budget(rho=0.01), ledger=path, name="clinic")
    first.ask(Release(Counts(("a",)), Gaussian(rho=0.006)))
    second = Curator(table(), SCHEMA, ledger=path)
    assert second.remaining == pytest.approx(0.004)
    with pytest.raises(BudgetExceeded):
        second.ask(Release(Counts(("a",)), Gaussian(rho=0.006)))
    assert Curator(table(), LEVELS, ledger=path).remaining == second.remaining  # another schema, the same budget
    with pytest.raises(LedgerError):
        Curator(table(), SCHEMA, ledger=path, budget=Budget(rho=1))
    with pytest.raises(LedgerError):
        Curator(table(), SCHEMA, ledger=path, neighbours="replace")
    with pytest.raises(LedgerError):
        Curator(table(), SCHEMA, ledger=path, name="another clinic")


def test_a_block_of_budget_can_be_reserved():
    c = curator(Budget(rho=0.01), schema=LEVELS)
    with c.reserve(0.005):
        for _ in range(5):
            c.ask(Release(Counts(("a",)), Gaussian(rho=0.0005)))
    assert c.remaining == pytest.approx(0.0075)


class Counting(Untouchable):
    """A source that notes what is asked of it at a time."""

    def __init__(self):
        self.batches = []

    def totals(self, row_sums):
        self.batches.append(list(row_sums))
        return [np.zeros(row_sum.sizes, dtype=np.int64) for row_sum in row_sums]


def test_what_is_asked_together_is_read_together_and_once():
    source = Counting()
    r = session(source, Budget(rho=100))
    asked = [Release(s, Gaussian(rho=0.1)) for s in (Counts(("a",)), Counts(("a", "b")), Counts(("a",)), Tau("a", "b"))]
    assert r.passes_for(asked) == 2
    assert source.batches == []
    assert len(r.ask_all(asked)) == 4
    assert [[k.columns for k in batch] for batch in source.batches] == [[("a",), ("a", "b")]]
    r.ask(Release(Tau("a", "b"), Gaussian(rho=0.1)))
    assert len(source.batches) == 1  # a single number is kept
    r.ask(Choose(candidates=(Score(Tau("a", "b"), 0, "below"), Score(Tau("b", "a"), 0, "below")), epsilon=1))
    assert len(source.batches) == 2


def test_a_batch_holds_a_bounded_number_of_cells(monkeypatch):
    monkeypatch.setattr("dpcurate.private.reader.BATCH_CELLS", 8)
    source = Counting()
    r = session(source, Budget(rho=100))
    r.ask_all([Release(Counts(c), Gaussian(rho=0.1)) for c in (("a", "b"), ("a",), ("b",), ("b", "a"))])
    assert [len(batch) for batch in source.batches] == [2, 1, 1]


def test_a_gate_finds_the_first_yes_of_many_in_one_read():
    c = curator(Budget(rho=1e6), schema=LEVELS)
    low, high = Score(Tau("a", "b"), 1e9, "above"), Score(Tau("a", "b"), 1e9, "below")
    gate = c.open(AboveThreshold(epsilon=100))
    assert gate.first([low, low]) is None
    assert not gate.closed
    assert gate.first([low, high, low]) == 1
    assert gate.closed
    with pytest.raises(GateClosed):
        gate.first([low])
    with pytest.raises(QueryError, match="asked scores"):
        c.open(AboveThreshold(epsilon=1)).first([low, 3])
    source = Counting()
    assert session(source, Budget(rho=100)).open(AboveThreshold(epsilon=1)).first([]) is None
    assert source.batches == []


def test_kept_numbers_are_forgotten_when_too_many(monkeypatch):
    monkeypatch.setattr("dpcurate.private.reader.MOST_SCALARS", 2)
    monkeypatch.setattr("dpcurate.private.session.MOST_BOUND", 2)
    c = curator(Budget(rho=1e6), schema=LEVELS)
    for given in ((), ("b",)):
        for threshold in (0, 1, 2):
            x, y = ("a", "b") if not given else ("b", "a")
            c.open(AboveThreshold(epsilon=1)).ask(Score(Tau(x, y), threshold, "above"))
        c.ask(Release(KendallP("a", "b"), Laplace(epsilon=1)))
        c.ask(Release(Counts(("a",)), Laplace(epsilon=1)))
    assert len(c._known) <= 2
    assert len(c._reader._scores) <= 2
    assert len(c._reader._scalars) <= 2


def test_a_gate_on_a_table_that_is_gone_is_refused_and_free():
    class Gone(Untouchable):
        def check(self, row_sum):
            raise QueryError("gone")

    r = session(Gone())
    for gate in (AboveThreshold(epsilon=1), Sample(rate=0.5, epsilon=1)):
        with pytest.raises(QueryError, match="gone"):
            r.open(gate)
    assert r.ledger.spent == 0


def test_forgetting_in_the_middle_of_a_batch_loses_nothing(monkeypatch):
    monkeypatch.setattr("dpcurate.private.reader.MOST_SCALARS", 3)
    c = curator(Budget(rho=1e6), schema=LEVELS)
    asked = [Tau("a", "b"), Tau("b", "a"), KendallP("a", "b"), KendallP("b", "a")]
    for _ in range(3):
        for k in range(1, 5):
            assert len(c.ask_all([Release(s, Laplace(epsilon=1)) for s in (*asked[k:], *asked[:k])])) == 4


def test_events_are_described_by_public_facts():
    assert describe(Tau("a", "b", ("x",))) == "Tau(a, b | x)"
    assert describe(Contrasts(((), ("a",)))) == "Contrasts(2 sets)"
    assert describe(Counts(tuple("abcdefgh"))) == "Counts(8 columns)"
    assert describe(Counts(("a",))) == "Counts(a)"


# --- a fork is a stranger -----------------------------------------------------------------------------

YES = Score(Tau("a", "b"), 1e9, "below")  # about surely positive
forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def in_a_fork(call):
    """What a forked copy of this process gets out of a call."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(120)  # a child that waits for a lock says nothing
        try:
            said = f"answer {call()!r}"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(into, said.encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


@forks
def test_forked_copies_of_a_gate_get_no_answer():
    c = curator(Budget(rho=1e6), schema=LEVELS)
    gate = c.open(AboveThreshold(epsilon=100))
    bound = gate.ask  # taken before the fork
    for ask in (lambda: gate.ask(YES), lambda: gate.first([YES]), lambda: bound(YES), lambda: gate.closed):
        for _ in range(5):
            assert in_a_fork(ask).startswith("RefusedError: this was opened by another process")
    spent = c.ledger.spent
    assert gate.ask(YES) is True
    assert c.ledger.spent == spent


GATES = {}  # what a pool's workers inherit


def of_a_worker(_):
    try:
        return GATES["open"].ask(YES)
    except DpcurateError as error:
        return str(error)


@forks
def test_workers_of_a_pool_get_no_answer_from_a_gate_on_a_ledger_on_disk(tmp_path):
    c = curator(Budget(rho=1e6), schema=LEVELS, ledger=tmp_path / "t.ledger")
    GATES["open"] = c.open(AboveThreshold(epsilon=100))
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        said = list(pool.map(of_a_worker, range(20)))
    assert all("another process" in str(one) for one in said)
    assert GATES.pop("open").ask(YES) is True


@forks
def test_forked_copies_of_a_sample_and_of_a_reserved_block_get_no_answer(tmp_path):
    request_ = Release(Tau("a", "b"), Laplace(epsilon=1))
    for where in ({}, {"ledger": tmp_path / "t.ledger"}):
        c = curator(Budget(rho=1e6), schema=LEVELS, **where)
        inner = c.open(Sample(rate=0.5, epsilon=10))
        assert in_a_fork(lambda inner=inner: inner.ask(request_)).startswith("RefusedError")
        assert in_a_fork(lambda inner=inner: inner.ask_all([])).startswith("RefusedError")
        assert isinstance(inner.ask(request_), Answer)
        with c.reserve(10):
            spent = c.ledger.spent
            assert in_a_fork(lambda c=c: c.ask(request_)).startswith("RefusedError")
            assert isinstance(c.ask(request_), Answer)
            assert c.ledger.spent == spent
        assert len(c.ledger.events) == 2


def everything(secret):
    """All that an object offers in public, as calls; the process is checked before the arguments are looked at."""
    names = [name for name in dir(type(secret)) if not name.startswith("_")]
    assert names
    calls = {name: (lambda n=name: getattr(secret, n)()) for name in names}
    return calls | {"repr": lambda: repr(secret)} if isinstance(secret, Curator) else calls


@forks
def test_every_way_in_checks_the_process_first(monkeypatch):
    c = curator(Budget(rho=1e6), schema=LEVELS)
    secrets = (c, c.open(Sample(rate=0.5, epsilon=10)), c.open(AboveThreshold(epsilon=1)))
    for secret in secrets:
        for name, call in everything(secret).items():
            assert in_a_fork(call).startswith("RefusedError: this was opened by"), (type(secret).__name__, name)
    with monkeypatch.context() as patch:  # a number that was given anew does not make it the same process
        here = os.getpid()
        patch.setattr(os, "getpid", lambda: here)
        assert in_a_fork(lambda: c.remaining).startswith("RefusedError")
    with monkeypatch.context() as patch:
        patch.setattr(process, "_FORKS", [*process._FORKS])
        process._forked()
        with pytest.raises(RefusedError, match="another process"):
            _ = c.remaining
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        for secret in secrets:
            for call in everything(secret).values():
                with pytest.raises(RefusedError, match="another process"):
                    call()
    assert c.ledger.private


@forks
def test_a_lock_that_a_fork_copied_does_not_hold_the_child():
    c = curator(Budget(rho=1e6), schema=LEVELS)
    gate = c.open(AboveThreshold(epsilon=1))
    held, done = threading.Event(), threading.Event()

    def hold():
        with c._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert in_a_fork(lambda: gate.ask(YES)).startswith("RefusedError")
    assert in_a_fork(lambda: c.ask(EVERY[0])).startswith("RefusedError")
    done.set()
    thread.join()


GARBAGE = [None, True, -5, -1.5, "a", b"x", {}, [1], ("a",), float, object(), math.nan, np.zeros(2), 10**5000]


def test_garbage_at_any_way_in_is_refused_in_a_sentence_and_free():
    r = session(Untouchable(), Budget(rho=100))
    gate = r.open(AboveThreshold(epsilon=1))
    spent = r.ledger.spent
    ways = [r.ask, r.ask_all, r.open, r.sensitivity, r.reserve, gate.ask, gate.first, r.passes_for]
    ways += [lambda g: r.ask_all([g]), lambda g: gate.first([g]), lambda g: r.passes_for([g])]
    for way in ways:
        for odd in GARBAGE:
            with pytest.raises(DpcurateError) as caught:
                way(odd)
            assert len(str(caught.value)) > 20
    assert r.ledger.spent == spent
    assert not gate.closed


# --- what leaves is noised, by the noise that was paid for --------------------------------------------
# Each of these fails on a broken session: exact answers, noise shared by parts, half the noise, one coin for all.

LEVEL = 1e-7  # a right session is accused once in ten million runs
NOISES = [Gaussian(rho=0.02), Gaussian(epsilon=1.0, delta=1e-6), Laplace(epsilon=0.5)]
NOISED = [
    Counts(("a", "b", "x")),
    Tables(((), ("a",), ("b",), ("a", "b"), ("b", "x"))),
    Contrasts(((), ("a",), ("b",), ("a", "b"), ("a", "b", "x")), (0.5, 2, 1, 1, 0.25)),
    Moments(("a", "b", "x")),
    Moments(("a", "x"), clip=0.5),
    Gradient(("a", "x"), WEIGHTS, clip=0.5),
    GradientNorms(("a", "x"), WEIGHTS, (0.1, 1.0)),
    Tau("a", "b"),
    KendallP("a", "b"),
]


def free_entries(statistic, shape):
    """Which entries carry noise of their own: no mirrored triangle, known diagonal or repeated count."""
    whole = np.ones(shape, dtype=bool)
    if isinstance(statistic, Moments):
        whole = np.triu(whole)
        if statistic.clip is None:
            whole[1, 1] = False  # the square of the binary a is the count
    if isinstance(statistic, Gradient):
        np.fill_diagonal(whole, val=False)
    return whole


def errors_of(statistic, noise, draws=400):
    """What noise did to each part, an array of draws x entries, in stated standard deviations."""
    true = curator(Budget.unlimited()).ask(Release(statistic, Exact()))
    answers = curator(Budget(rho=1e12)).ask_all([Release(statistic, noise)] * draws)
    for i, exact in enumerate(true.parts):
        free = free_entries(statistic, exact.shape)
        yield np.array([(a.parts[i] - exact)[free] / a.scales[i] for a in answers])


CASES = [(s, n) for s in NOISED for n in (Gaussian(sigma=5.0), Laplace(scale=5.0))] + [(NOISED[1], n) for n in NOISES]


@pytest.mark.secure_noise
@pytest.mark.parametrize(("statistic", "noise"), CASES, ids=lambda x: type(x).__name__)
def test_every_entry_of_an_answer_has_fresh_noise_of_the_stated_scale(statistic, noise):
    parts = list(errors_of(statistic, noise))
    for part in parts:
        assert ((part**2).mean(axis=0) > 0.4).all()  # half the noise would give a quarter
        assert ((part**2).mean(axis=0) < 2.5).all()
    entries = np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
    together = np.corrcoef(np.concatenate([entries[1:], entries[:-1]], axis=1).T)  # one draw and the one before
    assert np.abs(together - np.diag(np.diag(together))).max() < 0.4  # shared noise would give 1


@pytest.mark.secure_noise
def test_a_choice_between_scores_that_move_in_opposite_directions_has_its_full_noise():
    """Odds of e^(epsilon (|v| - t) / D): half the scale would square them."""
    value = abs(float(curator(Budget.unlimited(), schema=LEVELS).ask(Release(Tau("a", "b"), Exact()))))
    c = curator(Budget(rho=1e9), schema=LEVELS)
    threshold = value - c.sensitivity(Tau("a", "b"))
    pair = tuple(Score(Tau("a", "b"), threshold, side) for side in ("above", "below"))
    runs = 4000  # of 1000 one test in a hundred would take the right odds for their root
    picks = c.ask_all([Choose(candidates=pair, epsilon=1)] * runs)

    def plausible(odds):
        return stats.binomtest(picks.count(0), runs, odds / (1 + odds)).pvalue > LEVEL

    assert plausible(math.e)
    assert not plausible(math.e**2)
    assert not plausible(math.e**0.5)


@pytest.mark.secure_noise
def test_a_gate_has_its_full_noise():
    """A score four steps below the threshold; noise of scale 4 on the score and 2 on the threshold."""
    c = curator(Budget(rho=1e9), schema=LEVELS)
    value = abs(float(curator(Budget.unlimited(), schema=LEVELS).ask(Release(Tau("a", "b"), Exact()))))
    score = Score(Tau("a", "b"), value + 4 * c.sensitivity(Tau("a", "b")), "above")
    gates = [c.open(AboveThreshold(epsilon=1)) for _ in range(1500)]
    thresholds = [gate._threshold / STEPS for gate in gates]
    yes = sum(gate.ask(score) for gate in gates)

    def chance(a, b):  # that Laplace noise of scale a less that of scale b is above 4
        return (a * a * math.exp(-4 / a) - b * b * math.exp(-4 / b)) / (2 * (a * a - b * b))

    assert stats.binomtest(yes, 1500, chance(4, 2)).pvalue > LEVEL
    assert stats.binomtest(yes, 1500, chance(2, 1.999)).pvalue < LEVEL
    assert stats.kstest(thresholds, stats.laplace(scale=2).cdf).pvalue > LEVEL
    assert stats.kstest(thresholds, stats.laplace(scale=1).cdf).pvalue < LEVEL
    assert len(set(thresholds)) > 1400


@pytest.mark.secure_noise
@pytest.mark.parametrize("kind", ["memory", "parquet"])
def test_equal_rows_of_a_secret_sample_have_coins_of_their_own(kind, tmp_path):
    rows = pd.DataFrame({"a": ["0"] * 4000 + ["1"] * 4000, "b": ["2"] * 8000})
    rows.to_parquet(tmp_path / "t.parquet")
    c = Curator(
        rows if kind == "memory" else tmp_path / "t.parquet", LEVELS, budget=Budget(rho=1e9), allow_unproved=True
    )
    kept = [c.open(Sample(rate=0.5, epsilon=1)).ask(Release(Counts(("a",)), Exact())).value for _ in range(30)]
    spread = float((((np.array(kept) - 2000) ** 2) / 1000).sum())  # chi-squared of 60 degrees of freedom
    assert stats.chi2(60).cdf(spread) > LEVEL
    assert stats.chi2(60).sf(spread) > LEVEL


# --- what comes in is taken by its exact type ---------------------------------------------------------


def spied(base, log):
    """A subclass of a query that notes when anything of it is looked at in the session."""

    def spy(name):
        def called(self, *args):
            log.append(f"{base.__name__}.{name}")
            return getattr(base, name)(self, *args)

        return called

    body = {name: spy(name) for name in ("__hash__", "__eq__", "__getattribute__")}
    return type(f"My{base.__name__}", (base,), body)


def spies(log):
    """Every kind of query with a part, or itself, of a subclass: how to ask, and what is asked."""

    def mine(base, *args, **options):
        return spied(base, log)(*args, **options)

    tau, noise = Tau("a", "b"), Laplace(epsilon=0.1)
    yield "ask", mine(Release, tau, noise)
    yield "ask", mine(Choose, candidates=(Score(tau, 1, "above"),), epsilon=0.1)
    for kind in (Tau, KendallP):
        yield "ask", Release(mine(kind, "a", "b"), noise)
        yield "ask", Choose(candidates=(Score(mine(kind, "a", "b"), 1, "above"),), epsilon=0.1)
        yield "gate", Score(mine(kind, "a", "b"), 1, "above")
    yield "ask", Release(mine(Counts, ("a",)), noise)
    yield "ask", Release(mine(Contrasts, (("a",),)), noise)
    yield "gate", mine(Score, tau, 1, "above")
    yield "open", mine(AboveThreshold, epsilon=0.1)
    yield "open", mine(Sample, rate=0.5, epsilon=0.1)


def test_subclasses_of_requests_are_refused_before_anything_of_them_is_called():
    log = []
    r = session(Untouchable(), Budget(epsilon=10, delta=0))
    gate = r.open(AboveThreshold(epsilon=1))
    spent = r.ledger.spent
    ways = {"ask": r.ask, "gate": gate.ask, "open": r.open}
    tried = 0
    for way, odd in spies(log):
        log.clear()  # a query may be looked at where it is made, which is the analyst's side
        with pytest.raises(QueryError, match=r"itself"):
            ways[way](odd)
        assert log == []
        tried += 1
    assert tried == 13
    assert r.ledger.spent == spent
    with pytest.raises(QueryError, match="itself"):
        r.sensitivity(spied(Tau, log)("a", "b"))


def test_many_requests_come_as_a_list_or_tuple():
    """Another iterable could fork, or run for ever, while the session goes through it."""
    r = session(Untouchable())
    gate = r.open(AboveThreshold(epsilon=0.1))
    for odd in (iter([]), (x for x in ()), {}, "ab", 5, None, np.zeros(2), type("L", (list,), {})()):
        for ask in (r.ask_all, r.passes_for, gate.first):
            with pytest.raises(QueryError, match="list or tuple"):
                ask(odd)


@pytest.mark.parametrize("half", [Fraction(1, 2), np.float64(0.5), np.float32(0.5)], ids=lambda x: type(x).__name__)
def test_numbers_of_every_kind_are_served(half):
    c = curator(Budget(rho=1e9), schema=LEVELS)
    tau = Tau("a", "b")
    inner = c.open(Sample(rate=half, epsilon=half))
    inner.ask(Release(tau, Laplace(epsilon=half / 2)))
    c.open(AboveThreshold(epsilon=half)).ask(Score(tau, half, "above"))
    c.ask(Choose(candidates=(Score(tau, half, "below"),), epsilon=half))
    for noise in (Laplace(scale=half), Gaussian(sigma=half), Gaussian(rho=half), Gaussian(epsilon=half, delta=half)):
        c.ask(Release(Contrasts((("a",), ("a", "b")), (half, 1)), noise))
        c.ask(Release(Moments(("a", "b"), clip=half), noise))
        c.ask(Release(Gradient(("a", "b"), ((0, half), (0, 0)), clip=half), noise))
        c.ask(Release(GradientNorms(("a", "b"), ((0, half), (0, 0)), (half, 1)), noise))
    with c.reserve(half):
        assert c.remaining == 0.5


@pytest.mark.parametrize(
    "bad", ["1", None, 0, -1, math.nan, math.inf, True, [1], type("F", (float,), {})(1.0)], ids=repr
)
def test_a_block_is_an_amount(bad):
    with pytest.raises(BudgetError, match="finite amount above 0"):
        curator(schema=LEVELS).reserve(bad)


# --- what the analyst sees never depends on a row outside a charged release ---------------------------


def script(c: Curator) -> list[str]:
    """Everything an analyst can see but for released values: types, texts, shapes, events, in order."""
    seen: list[str] = []

    def note(action):
        try:
            out = action()
            shape = [p.shape for p in out.parts] if isinstance(out, Answer) else ""
            scales = out.scales if isinstance(out, Answer) else ""
            seen.append(f"{type(out).__name__} {shape} {scales}")
        except DpcurateError as error:
            seen.append(f"{type(error).__name__}: {error} {error.__context__!r} {error.__cause__!r}")

    for request_ in EVERY:
        note(lambda r=request_: c.ask(r))
    note(lambda: c.ask_all(EVERY[:3]) and None)
    note(lambda: c.ask(Release(Counts(("zz",)), Gaussian(rho=1))))
    note(lambda: c.ask(Release(Counts(("a",)), Gaussian(rho=1))))
    note(lambda: c.ask(Release(Counts(("a",)), Exact())))
    gate = c.open(AboveThreshold(epsilon=0.001))
    note(lambda: gate.ask(Score(Tau("a", "b"), 1e9, "above")))
    inner = c.open(Sample(rate=0.5, epsilon=0.01))
    note(lambda: inner.ask(Release(Tau("a", "b"), Laplace(epsilon=0.005))))
    note(lambda: inner.ask(Release(Tau("a", "b"), Laplace(epsilon=5))))
    note(lambda: inner.ask(Release(KendallP("a", "b"), Laplace(epsilon=0.001))))
    with c.reserve(1e-5):
        note(lambda: c.ask(Release(Tau("a", "b"), Laplace(epsilon=0.001))))
    seen += [repr(c), repr(c.remaining), repr(c.ledger.spent), repr(inner.schema)]
    seen += [repr(e) for e in c.ledger.events if isinstance(e, Event)]
    return seen


GOOD = [("0", "1", 3.0), ("1", "2", 9.0)] * 4
NEIGHBOURS = {
    "one row more": (GOOD, [*GOOD, ("1", "0", 5.0)]),
    "an empty table": ([], [("0", "0", 1.0)]),
    "a missing cell": (GOOD, [*GOOD, (None, "1", 2.0)]),
    "an unknown level": (GOOD, [*GOOD, ("0", "seven", 2.0)]),
    "a wild number": (GOOD, [*GOOD, ("0", "1", float("inf"))]),
    "no number": (GOOD, [*GOOD, ("0", "1", float("nan"))]),
    "all bad": ([(None, None, None)], []),
}


@pytest.mark.parametrize("pair", NEIGHBOURS, ids=str)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_neighbouring_tables_look_the_same(pair, relation):
    views = []
    for rows in NEIGHBOURS[pair]:
        columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
        data = {
            "a": np.array(columns[0], dtype=object),
            "b": np.array(columns[1], dtype=object),
            "x": np.array(columns[2], dtype=float),
        }
        views.append(script(Curator(data, SCHEMA, budget=Budget(epsilon=1, delta=1e-6), neighbours=relation)))
    assert views[0] == views[1]


def test_a_platform_without_forks_and_affinity_answers(tmp_path):
    """Windows and macOS lack these; they are taken away before anything is imported."""
    program = """
import os, sys
for name in ("register_at_fork", "fork", "sched_getaffinity"):
    if hasattr(os, name):
        delattr(os, name)
from dpcurate import Budget, Curator
from dpcurate.queries import Counts, Gaussian, Release
table = {"a": ["0", "1"] * 50}
curator = Curator(table, {"a": ("0", "1")}, budget=Budget(epsilon=1, delta=1e-6), ledger=sys.argv[1])
print(curator.ask(Release(Counts(("a",)), Gaussian(rho=0.01))).value.shape, len(curator.ledger.events))
"""
    command = [sys.executable, "-c", program, str(tmp_path / "l.ledger")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "(2,) 1", run.stderr
