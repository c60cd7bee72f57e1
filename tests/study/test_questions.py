"""One release asked by a person: what it shows, what its errors mean, what it costs, and what stops it."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_resume import Killed, killed_in, spent

import dpcurate
from dpcurate import Budget, Categorical, Curator, Numeric, Quantiles, Schema
from dpcurate.errors import (
    BudgetError,
    BudgetExceeded,
    DomainTooLarge,
    DpcurateError,
    FormatError,
    LedgerError,
    QueryError,
)
from dpcurate.private.ledger import Ledger
from dpcurate.private.noise import Seeded
from dpcurate.private.row_sums import Rows
from dpcurate.private.session import Session
from dpcurate.private.sources import InMemory, Source, open_source
from dpcurate.queries import Answer, Counts, Estimates, Exact, Gaussian, Means, Moments, Release, Tables
from dpcurate.result.asked import Asked
from dpcurate.schema import GRID, OWN, Neighbours
from dpcurate.study import quantiles
from dpcurate.study.calls import ask
from dpcurate.study.quantiles import ladder, reach
from dpcurate.study.questions import asked_from
from dpcurate.study.study import Study

RANDOM = np.random.default_rng(5)
ROWS = 20_000
TABLE = {
    "sex": RANDOM.choice(["f", "m"], ROWS),
    "age": RANDOM.integers(0, 100, ROWS).astype(float),
    "income": RANDOM.lognormal(10, 0.5, ROWS),
}
SCHEMA = Schema((Categorical("sex", ("f", "m")), Numeric("age", 0, 100, bins=4), Numeric("income", 0, 200_000)))
TRUE = {"age": TABLE["age"].mean(), "income": TABLE["income"].mean()}
BUDGET = Budget(epsilon=1, delta=1e-10)


def session(source: Source, schema: Schema, budget: Budget, seed: int) -> Session:
    """In memory, with seeded noise that its ledger says nothing about: for calibration alone."""
    return Session(source, schema, Neighbours.ADD_REMOVE, Ledger(budget), Seeded(seed), allow_unproved=False)


def held_at(x: Any, low: float, high: float) -> Source:
    """Numbers on their grid."""
    steps = np.trunc((np.clip(x, low, high) - (low + high) / 2) / ((high - low) / 2) * GRID)
    return InMemory(Rows({}, {"x": steps.astype(np.int16)}, None, len(x)))


def created(path: Path, epsilon: float = 1) -> Path:
    Ledger.create(path, table="t", schema=SCHEMA, neighbours="add-remove", budget=Budget(epsilon=epsilon, delta=1e-10))
    return path


# --- what it shows -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def counted() -> Asked:
    return ask(TABLE, SCHEMA, Counts(("age", "sex")), epsilon=1, by="me", purpose="table 1")


def test_counts_have_a_row_for_each_combination_and_the_error_of_their_noise(counted):
    (table,) = counted.tables
    assert [row.of for row in table.rows][:3] == [("[0, 25)", "f"), ("[0, 25)", "m"), ("[25, 50)", "f")]
    scale = math.sqrt(1 / (2 * float(BUDGET.rho or 0)))
    for row in table.rows:
        assert row.error == pytest.approx(scale)
        low, high = (float(x.strip("[]()")) for x in row.of[0].split(", "))
        inside = (TABLE["age"] >= low) & (TABLE["age"] < high) & (TABLE["sex"] == row.of[1])
        assert abs(row.value - inside.sum()) < 6 * scale


def test_an_answer_prints_itself_as_a_table(counted):
    lines = str(counted).splitlines()
    assert lines[0].split() == ["age", "sex", "count", "error"]
    assert len({len(line) for line in lines[:9]}) == 1
    assert "noise of standard deviation 6.145 on every count" in lines[9]
    assert "epsilon = 1, delta = 1e-10" in lines[-1]


def test_an_answer_is_written_as_its_suffix_says(counted, tmp_path):
    rows = list(csv.reader(io.StringIO(counted.report(tmp_path / "a.csv").read_text())))
    assert rows[0] == ["age", "sex", "count", "error"]
    assert float(rows[1][2]) == counted.tables[0].rows[0].value
    told = json.loads(counted.report(tmp_path / "a.json").read_text())
    assert told["tables"][0]["rows"][0]["of"] == ["[0, 25)", "f"]
    assert told["privacy"]["neighbours"] == "add-remove"
    assert (told["run"]["by"], told["run"]["purpose"]) == ("me", "table 1")
    assert counted.report(tmp_path / "a.txt").read_text() == f"{counted}\n"
    with pytest.raises(FormatError, match=r"unsupported suffix '.xlsx'"):
        counted.report(tmp_path / "a.xlsx")


def test_answers_of_a_curator_show_themselves_too():
    curator = Curator(TABLE, SCHEMA, budget=BUDGET)
    one = curator.ask(Release(Counts(("sex",)), Gaussian(rho=0.001)))
    assert str(one).splitlines()[0].split() == ["sex", "count", "error"]
    two = curator.ask(Release(Tables(((), ("sex",))), Gaussian(rho=0.001)))
    assert [t.names for t in two.estimates()] == [("rows",), ("sex",)]
    with pytest.raises(QueryError, match="2 tables"):
        two.plot()
    other = curator.ask(Release(Moments(("age",)), Gaussian(rho=0.001)))
    assert str(other) == repr(other)
    assert "schema" not in repr(other)
    with pytest.raises(QueryError, match="counts, tables and means can be shown"):
        other.estimates()
    exact = Curator(TABLE, SCHEMA, budget=Budget.unlimited()).ask(Release(Counts(("sex",)), Exact()))
    assert "NOT PRIVATE" in str(exact)


def test_an_answer_draws_itself_with_error_bars(counted):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = counted.plot()
    (bars,) = ax.containers
    ends = bars[2][0].get_segments()
    row = counted.tables[0].rows[0]
    assert ends[0][:, 0] == pytest.approx([row.value - 1.96 * row.error, row.value + 1.96 * row.error], rel=1e-3)
    assert ax.get_yticklabels()[0].get_text() == "[0, 25), f"
    curator = Curator(TABLE, SCHEMA, budget=BUDGET)
    assert curator.ask(Release(Means(("age",)), Gaussian(rho=0.01))).plot(ax) is ax
    (median,) = Study.over(curator).ask(Quantiles("age", (0.5,))).tables
    lower, upper = median.plot().containers[0][2][0].get_segments()[0][:, 0]
    assert (lower, upper) == pytest.approx((median.rows[0].low, median.rows[0].high))
    many = Estimates(("x",), "count", counted.tables[0].rows * 30)
    with pytest.raises(QueryError, match="240 numbers"):
        many.plot()
    matplotlib.pyplot.close("all")


def test_without_matplotlib_a_plot_says_what_to_install(counted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(DpcurateError, match="pip install matplotlib"):
        counted.plot()


# --- what its errors mean ------------------------------------------------------------------------------


def test_the_error_of_a_mean_is_that_of_its_noise():
    """As large as the spread of many answers, for one mean and for several, near a bound and in the middle."""
    asked = session(open_source(TABLE, SCHEMA), SCHEMA, Budget(rho=1e9), 1)
    for columns in (("income",), ("age", "income")):
        answers = asked.ask_all([Release(Means(columns), Gaussian(rho=1e-4))] * 400)
        for place, name in enumerate(columns):
            rows = [a.estimates()[0].rows[place] for a in answers]
            apart = np.array([(row.value - TRUE[name]) / row.error for row in rows])
            assert 0.88 < apart.std() < 1.13, name
            assert abs(apart.mean()) < 0.25, name


def test_a_mean_is_of_the_cells_that_are_not_missing():
    schema = Schema((Numeric("x", 0, 10, missing=OWN),))
    x = np.where(np.arange(10_000) % 4 == 0, np.nan, 2.0 + (np.arange(10_000) % 3))
    (table,) = ask({"x": x}, schema, Means(("x",)), epsilon=1).tables
    assert table.rows[0].value == pytest.approx(np.nanmean(x), abs=5 * table.rows[0].error + 0.01)
    assert table.rows[0].error < 0.05


def test_quantiles_are_of_the_cells_that_are_not_missing():
    schema = Schema((Numeric("x", 0, 10, missing=OWN),))
    x = np.where(np.arange(20_000) % 2 == 0, np.nan, np.random.default_rng(1).normal(5, 1, 20_000))
    (row,) = ask({"x": x}, schema, Quantiles("x", (0.25,)), epsilon=1).tables[0].rows
    assert row.value == pytest.approx(np.nanquantile(x, 0.25), abs=0.2)
    assert 4 < row.low < row.value < row.high < 5


def test_a_mean_over_a_count_that_is_mostly_noise_says_nothing():
    few = {name: column[:20] for name, column in TABLE.items()}
    (row,) = ask(few, SCHEMA, Means(("age",)), epsilon=0.1).tables[0].rows
    assert (row.value, row.error) == (50, 50)


WORLDS: dict[str, tuple[float, float, Callable[[np.random.Generator, int], Any]]] = {
    "normal": (0, 100, lambda r, n: r.normal(50, 10, n)),
    "bounds far too wide": (-1000, 1000, lambda r, n: r.normal(50, 10, n)),
    "a gap": (0, 100, lambda r, n: np.where(r.random(n) < 0.52, r.normal(10, 2, n), r.normal(90, 2, n))),
    "whole numbers, many zeros": (0, 100, lambda r, n: np.where(r.random(n) < 0.4, 0.0, r.integers(1, 60, n))),
}


def coverage(name: str, runs: int = 20) -> float:
    """How often intervals hold the quantile of the world, over worlds of one kind, noise and probabilities."""
    low, high, draw = WORLDS[name]
    schema, asked = Schema((Numeric("x", low, high),)), Quantiles("x", (0.1, 0.5, 0.75))
    random = np.random.default_rng(7)
    true = np.quantile(np.clip(draw(random, 1_000_000), low, high), asked.probabilities, method="inverted_cdf")
    held = []
    for run in range(runs):
        one = session(held_at(draw(random, 4_000), low, high), schema, BUDGET, run)
        rows = Study.over(one).ask(asked).tables[0].rows
        held += [row.low <= t <= row.high for row, t in zip(rows, true, strict=True)]
    return float(np.mean(held))


@pytest.mark.parametrize("name", list(WORLDS))
def test_intervals_of_quantiles_hold_the_truth(name):
    assert coverage(name) >= 0.95


def test_intervals_that_forget_noise_and_sampling_would_be_caught(monkeypatch):
    monkeypatch.setattr(quantiles, "reach", lambda *_: 1)
    assert coverage("normal") < 0.9


def test_an_interval_is_not_much_wider_than_it_must_be():
    one = session(open_source(TABLE, SCHEMA), SCHEMA, BUDGET, 3)
    (row,) = Study.over(one).ask(Quantiles("income", (0.5,))).tables[0].rows
    assert abs(row.value - np.median(TABLE["income"])) < 300
    assert row.high - row.low < 1_500  # sampling alone takes 370


def test_too_few_rows_for_an_interval_give_the_whole_range_and_spend_less(tmp_path):
    few = {name: column[:50] for name, column in TABLE.items()}
    asked = ask(few, SCHEMA, Quantiles("income", (0.5,)), epsilon=0.1)
    (row,) = asked.tables[0].rows
    assert (row.low, row.high) == (0, 200_000)
    assert asked.privacy.spent < 0.55 * float(asked.privacy.budget.ceiling)


def test_the_reach_of_noise_and_sampling_is_what_it_says():
    random = np.random.default_rng(1)
    for scale, spread, candidates in ((100.0, 1.0, 25), (1.0, 100.0, 25), (50.0, 60.0, 3)):
        rows = reach(scale, spread, candidates)
        wrong = np.minimum(1, candidates * np.exp(-(rows - spread * random.normal(size=400_000)) / scale)).mean()
        assert 0.8 * quantiles.END_ERROR < wrong <= 1.05 * quantiles.END_ERROR


def test_ladders_lie_on_one_side_and_cover_the_range():
    for cell in (0, 1, 2000, 4094, 4095):
        for side in (-1, 1):
            cuts = ladder(cell, side)
            assert (cuts[0], cuts[-1]) == (0, 4096)
            assert list(cuts) == sorted(set(cuts))
            if 0 < cell < 4095:
                assert all((cut <= cell) if side < 0 else (cut > cell) for cut in cuts[1:-1])
            quantiles.Quantile(column="x", probability=0.5, epsilon=1, cuts=cuts)


# --- what it costs -------------------------------------------------------------------------------------


def test_it_spends_its_epsilon_of_the_ledger_and_is_logged(tmp_path):
    path = created(tmp_path / "l")
    share = float(Budget(epsilon=0.1, delta=1e-10).ceiling)
    for question in (Counts(("sex",)), Means(("age",)), Quantiles("income")):
        ask(TABLE, SCHEMA, question, epsilon=0.1, ledger=path, by="me", purpose="table 1")
    log = Ledger.open(path).log()
    assert [run.facts.method for run in log] == ["ask counts", "ask means", "ask quantiles"]
    assert {(run.facts.by, run.facts.purpose, run.outcome) for run in log} == {("me", "table 1", "finished")}
    assert [run.spent for run in log] == pytest.approx([share] * 3, rel=1e-4)
    assert all(run.spent <= share for run in log)
    assert [run.answers for run in log] == [1, 1, 2]


@pytest.mark.parametrize("question", [Counts(("sex",)), Tables(((), ("sex",))), Means(("age",)), Quantiles("income")])
def test_a_stored_answer_is_shown_again_for_nothing(question, tmp_path):
    path = created(tmp_path / "l")
    first = ask(TABLE, SCHEMA, question, epsilon=0.5, ledger=path, by="me")
    ask(TABLE, SCHEMA, Counts(("age",)), epsilon=0.1, ledger=path)
    before = spent(path)
    again = asked_from(path, 1)
    assert again.tables == first.tables
    assert (again.run.by, again.run.number, again.privacy.run) == ("me", 1, 0)
    assert asked_from(path).tables[0].names == ("age",)
    assert spent(path) == before
    with pytest.raises(LedgerError, match=r"no run 7 of `ask` with a stored answer; it has 1, 2"):
        asked_from(path, 7)


def test_a_stopped_run_has_nothing_to_show_yet(tmp_path, monkeypatch):
    path = created(tmp_path / "l")
    with monkeypatch.context() as patch:
        patch.setattr("dpcurate.study.quantiles.tell", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            ask(TABLE, SCHEMA, Quantiles("income"), epsilon=0.5, ledger=path)
    with pytest.raises(LedgerError, match="the same command resumes it"):
        asked_from(path)
    assert ask(TABLE, SCHEMA, Quantiles("income"), epsilon=0.5, ledger=path).tables == asked_from(path).tables
    assert len(Ledger.open(path).log()) == 1


def test_a_ledger_without_answers_has_none_to_show(tmp_path):
    with pytest.raises(LedgerError, match="has no run of `ask`"):
        asked_from(created(tmp_path / "l"))


@pytest.mark.parametrize("question", [Counts(("sex",)), Means(("age",)), Quantiles("age", (0.5,))], ids=str)
def test_a_pure_budget_pays_in_epsilon(question):
    asked = ask(TABLE, SCHEMA, question, epsilon=0.5, delta=0)
    assert 0.49 < asked.privacy.spent <= 0.5


def test_stored_answers_of_a_discovery_are_still_the_newest(tmp_path):
    path, binary = tmp_path / "l", Schema(SCHEMA.columns[:2])
    Ledger.create(path, table="t", schema=binary, neighbours="add-remove", budget=Budget(epsilon=2, delta=1e-10))
    table = {name: TABLE[name] for name in binary.names}
    found = dpcurate.discover(table, binary, epsilon=1, ledger=path)
    ask(table, binary, Counts(("sex",)), epsilon=0.1, ledger=path)
    assert dpcurate.discover_from(path).learned.graph == found.learned.graph


def test_killed_at_any_transaction_it_ends_with_the_same_spending(tmp_path, monkeypatch):
    few = {name: column[:2000] for name, column in TABLE.items()}

    def command(name: str) -> Asked:
        path = tmp_path / name
        return ask(few, SCHEMA, Quantiles("income", (0.5,)), epsilon=1, ledger=path if path.exists() else created(path))

    command("whole")
    expected, died = spent(tmp_path / "whole"), 0
    for nth in range(40):
        name = f"{nth}"
        created(tmp_path / name)
        try:
            with monkeypatch.context() as patch:
                killed_in(patch, nth, after=bool(nth % 2))
                command(name)
            break
        except Killed:
            died += 1
            if [run.outcome for run in Ledger.open(tmp_path / name).log()] != ["finished"]:
                command(name)
        assert spent(tmp_path / name) == pytest.approx(expected), nth
    assert died >= 6


# --- what stops it -------------------------------------------------------------------------------------

WRONG = [
    (Counts(("sx",)), QueryError, "did you mean 'sex'"),
    (Counts(("income",)), QueryError, "ask for its mean or its quantiles"),
    (Means(("sex",)), QueryError, "no mean"),
    (Quantiles("sex"), QueryError, "no quantile"),
    ("counts", QueryError, "not for str"),
]


@pytest.mark.parametrize(("question", "error", "why"), WRONG, ids=str)
def test_a_question_that_has_no_answer_is_refused_before_a_ledger_is_made(question, error, why, tmp_path):
    with pytest.raises(error, match=why):
        ask("there is no such table.csv", SCHEMA, question, epsilon=1, ledger=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_noise_too_large_for_integers_is_refused_before_a_ledger_is_made(tmp_path):
    for question in (Counts(("sex",)), Means(("age",)), Quantiles("age")):
        with pytest.raises(QueryError, match="ask for less noise"):
            ask("no table.csv", SCHEMA, question, epsilon=1e-20, delta=0, ledger=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_more_cells_than_can_be_counted_are_refused_with_their_number():
    wide = Schema(tuple(Categorical(name, tuple(range(1000))) for name in "abc"))
    with pytest.raises(DomainTooLarge, match="1,000,000,000 cells"):
        ask({}, wide, Counts(("a", "b", "c")), epsilon=1)


def test_more_than_what_is_left_is_refused_with_the_numbers(tmp_path):
    path = created(tmp_path / "l", 0.5)
    with pytest.raises(BudgetExceeded, match=r"asks for epsilon = 1, .* only rho = 0.003\d+ is left; nothing was read"):
        ask(TABLE, SCHEMA, Counts(("sex",)), epsilon=1, ledger=path)
    ask(TABLE, SCHEMA, Counts(("sex",)), epsilon=0.5, ledger=path)
    with pytest.raises(BudgetExceeded, match="nothing is left"):
        ask(TABLE, SCHEMA, Counts(("sex",)), epsilon=0.1, ledger=path)
    curator = Curator(TABLE, SCHEMA, ledger=path)
    with pytest.raises(BudgetExceeded, match="nothing is left"):
        Study.over(curator).ask(Counts(("sex",)))
    with pytest.raises(BudgetError, match="how much"):
        ask(TABLE, SCHEMA, Counts(("sex",)), epsilon=None, ledger=path)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::dpcurate.errors.PrivacyWarning")
def test_a_small_share_of_a_large_budget_is_not_nothing(tmp_path):
    path = created(tmp_path / "l", 20)
    asked = ask(TABLE, SCHEMA, Counts(("sex",)), epsilon=0.001, ledger=path)
    assert 0 < (asked.privacy.run or 0) < 1e-6 * float(asked.privacy.budget.ceiling)


def test_quantiles_need_probabilities():
    for given, why in (((), "at least one"), ((0.5, 0.5), "more than once"), ((2,), "between 0 and 1"), (7, "a tuple")):
        with pytest.raises(QueryError, match=why):
            Quantiles("x", given)  # type: ignore[arg-type]


def test_an_answer_without_a_question_is_an_array():
    bare = Answer((np.zeros(2),), (1.0,))
    assert str(bare) == repr(bare)
