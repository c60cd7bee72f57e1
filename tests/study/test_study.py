"""A study: several runs on one budget, with what is free before and between them."""

from __future__ import annotations

import ast
from functools import partial
from pathlib import Path

import pytest

import dpcurate
from dpcurate import Budget, networks
from dpcurate.errors import BudgetError, BudgetExceeded, QueryError
from dpcurate.private.ledger import Ledger
from dpcurate.queries import Counts

ASIA = networks.load("asia")
TABLE = ASIA.sample(2_000, seed=1)
FAST = "em-pc"


class Untouched:
    """A table that nobody may open."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"the table was touched: {name}")


def test_runs_share_one_budget_in_memory() -> None:
    study = dpcurate.open(TABLE, ASIA.schema, epsilon=1)
    whole = study.remaining
    found = study.discover(epsilon=0.5, method=FAST)
    asked = study.ask(Counts(("smoke",)), epsilon=0.1)
    assert found.privacy.budget == asked.privacy.budget == Budget(epsilon=1, delta=1e-10)
    spent = (found.privacy.run or 0) + (asked.privacy.run or 0)
    assert study.remaining == pytest.approx(whole - spent)
    with pytest.raises(BudgetExceeded, match="is left"):
        study.ask(Counts(("lung",)), epsilon=0.9)
    assert study.remaining == pytest.approx(whole - spent)


def test_a_budget_in_memory_is_never_exceeded_by_its_first_run() -> None:
    study = dpcurate.open(Untouched(), ASIA.schema, epsilon=0.5)
    with pytest.raises(BudgetExceeded, match="more than the budget"):
        study.discover(epsilon=1)


def test_a_question_always_has_a_price() -> None:
    study = dpcurate.open(TABLE, ASIA.schema, epsilon=1)
    study.discover(epsilon=0.5, method=FAST)
    with pytest.raises(BudgetError, match="how much the answer may cost"):
        study.ask(Counts(("smoke",)))


def test_preview_and_log_read_and_spend_nothing(tmp_path: Path) -> None:
    study = dpcurate.open(Untouched(), ASIA.schema, ledger=tmp_path / "l", epsilon=1)
    preview = study.preview(epsilon=0.5)
    assert float(preview.budget.of_run.ceiling) == pytest.approx(float(Budget(epsilon=0.5, delta=1e-10).ceiling))
    assert "the most that may ever be spent on the table is epsilon = 1" in str(preview)
    assert study.log == ()
    assert study.remaining == float(Budget(epsilon=1, delta=1e-10).ceiling)
    assert not (tmp_path / "l").exists()
    with pytest.raises(QueryError, match="no method"):
        study.preview(method="nothing")
    with pytest.raises(QueryError):
        study.preview(quantify=2)


def test_a_preview_says_what_the_run_then_spends(tmp_path: Path) -> None:
    study = dpcurate.open(TABLE, ASIA.schema, ledger=tmp_path / "l", epsilon=2)
    preview = study.preview(epsilon=0.5, method=FAST)
    found = study.discover(epsilon=0.5, method=FAST)
    assert 0 < (found.privacy.run or 0) <= float(preview.budget.of_run.ceiling)
    question = Counts(("smoke",))
    expected = study.preview(question, epsilon=0.1)
    asked = study.ask(question, epsilon=0.1)
    assert asked.privacy.run == pytest.approx(float(expected.budget.of_run.ceiling))
    assert [run.outcome for run in study.log] == ["finished", "finished"]


def test_a_run_ends_when_its_result_has_been_delivered(tmp_path: Path) -> None:
    path = tmp_path / "l"

    def run(deliver: object = None) -> dpcurate.Discovery:
        study = dpcurate.open(TABLE, ASIA.schema, ledger=path, epsilon=1)
        return study.discover(epsilon=0.5, deliver=deliver)  # type: ignore[arg-type]

    def fails(found: dpcurate.Discovery) -> None:
        assert found.privacy.run is not None
        assert found.privacy.run > 0
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        run(fails)
    paid = Ledger.open(path).spent
    preview = dpcurate.open(TABLE, ASIA.schema, ledger=path).preview(epsilon=0.5)
    assert preview.resumes is not None
    found = run()
    assert Ledger.open(path).spent == paid
    assert found.run is not None
    assert found.run.number == 1


def test_another_ceiling_than_the_ledger_has_is_refused(tmp_path: Path) -> None:
    dpcurate.open(TABLE, ASIA.schema, ledger=tmp_path / "l", epsilon=1).discover(epsilon=0.1, method=FAST)
    with pytest.raises(dpcurate.LedgerError):
        dpcurate.open(TABLE, ASIA.schema, ledger=tmp_path / "l", epsilon=5).discover(epsilon=0.1, method=FAST)


def test_stored_answers_are_a_study_too(tmp_path: Path) -> None:
    first = dpcurate.discover(TABLE, ASIA.schema, epsilon=1, ledger=tmp_path / "l")
    again = dpcurate.reopen(tmp_path / "l").discover(latent=True)
    assert isinstance(again.graph, dpcurate.Pag)
    assert dpcurate.reopen(tmp_path / "l").discover().graph.edges == first.graph.edges


def test_a_run_begins_in_one_place_only() -> None:
    """Nobody but the study opens a run: neither the command line nor any other part of the library."""
    source = Path(dpcurate.__file__).parent
    begins = set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"running", "RunSpec"}:
                begins.add(path.relative_to(source).as_posix())
    assert begins == {"study/study.py", "study/questions.py"}  # the second names the run of a stored answer


def test_a_call_on_an_open_curator_takes_its_budget_as_epsilon():
    network = networks.load("cancer")
    curator = dpcurate.Curator(
        network.sample(2000, seed=1), network.schema, budget=dpcurate.Budget(epsilon=3, delta=0), insecure_seed=1
    )
    found = dpcurate.fit(curator, "em-pc", epsilon=1)
    assert 2 - 1e-9 <= curator.remaining < 3
    dpcurate.quantify(found, curator, epsilon=0.5)
    assert curator.remaining >= 1.5 - 1e-9
    for call in (dpcurate.fit, partial(dpcurate.quantify, found)):
        with pytest.raises(BudgetError, match="not both"):
            call(curator, epsilon=0.1, share=0.1)
