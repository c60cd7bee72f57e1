"""A run of the default that was stopped at any instant: the same command again spends what a whole run spends."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcurate
from dpcurate._files import OutputFolder
from dpcurate.cli import main
from dpcurate.errors import LedgerError, QueryError
from dpcurate.networks import load
from dpcurate.private.ledger import Ledger, RunFacts
from dpcurate.private.ledger.file import File
from dpcurate.private.origin import TableOrigin
from dpcurate.queries import Counts, Gaussian, Release
from dpcurate.study.run_budget import RunBudget

ASIA = load("asia")
TABLE = ASIA.sample(4000, seed=3)
NUMBERS = dpcurate.Schema((dpcurate.Numeric("x", -4, 4), dpcurate.Numeric("y", -8, 8), dpcurate.Ordinal("z", (0, 1))))


class Killed(BaseException):
    """Stands for kill -9."""


@contextmanager
def killed() -> Iterator[None]:
    """What is killed on the way."""
    with pytest.raises(Killed):
        yield


def numbers() -> dict[str, Any]:
    random = np.random.default_rng(0)
    x = random.normal(size=2000)
    return {"x": x, "y": 2 * x + random.normal(size=2000), "z": (x > 0).astype(int)}


def spent(path: Path) -> tuple[float, float, int]:
    ledger = Ledger.open(path)
    return ledger.spent, ledger.reserved, len(ledger.events)


def dying(monkeypatch: pytest.MonkeyPatch, place: Any, name: str, nth: int, *, after: bool) -> None:
    """The nth call dies, before or after it is done; what the process would do on its way out is not done."""
    real, count, dead = getattr(place, name), iter(range(10**6)), [False]

    def call(*args: Any, **more: Any) -> Any:
        dies = next(count) == nth or dead[0]
        if dies and not after:
            dead[0] = True
            raise Killed
        result = real(*args, **more)
        if dies:
            dead[0] = True
            raise Killed
        return result

    monkeypatch.setattr(place, name, call)


def killed_in(monkeypatch: pytest.MonkeyPatch, nth: int, *, after: bool) -> None:
    """The nth transaction that writes dies, before it begins or once it is committed; after it there is none."""
    real, count, dead = File.writing, iter(range(10**6)), [False]

    @contextmanager
    def writing(file: File) -> Iterator[Any]:
        mine = next(count) == nth
        dead[0] = dead[0] or (mine and not after)
        if dead[0]:
            raise Killed
        with real(file) as connection:
            yield connection
        if mine:
            dead[0] = True
            raise Killed

    monkeypatch.setattr(File, "writing", writing)


def _finished(path: Path) -> bool:
    return path.exists() and [run.outcome for run in Ledger.open(path).log()] == ["finished"]


CASES = {"levels": (TABLE, ASIA.schema), "numbers": (numbers(), NUMBERS)}


@pytest.mark.slow(but=["levels-1.0-True"])
@pytest.mark.parametrize(
    ("case", "share", "new"), [("levels", None, False), ("levels", 1.0, True), ("numbers", 1.0, False)]
)
def test_killed_at_any_transaction_the_default_ends_with_the_same_spending(
    tmp_path: Path, case: str, share: float | None, new: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every transaction of the run, just before it and just after its commit."""
    table, schema = CASES[case]

    def command(name: str) -> dpcurate.Discovery:
        path = tmp_path / name
        if not new and not path.exists():
            neighbours, budget = "add-remove", dpcurate.Budget(epsilon=2, delta=1e-10)
            Ledger.create(path, table="t", schema=schema, neighbours=neighbours, budget=budget)
        return dpcurate.discover(table, schema, epsilon=share, ledger=path)

    command("whole")
    expected, died = spent(tmp_path / "whole"), 0
    for nth in range(200):
        name = f"{nth}"
        try:
            with monkeypatch.context() as patch:
                killed_in(patch, nth // 2, after=bool(nth % 2))
                command(name)
            break
        except Killed:
            died += 1
            if not _finished(tmp_path / name):  # else it was its last step
                command(name)
        assert spent(tmp_path / name) == pytest.approx(expected), nth
    assert died >= 10
    assert spent(tmp_path / name) == pytest.approx(expected)


def test_a_result_is_the_same_whether_or_not_the_run_was_stopped_after_its_last_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "l"
    first: list[Any] = []
    real = dpcurate.methods.get("auto").fit

    def stopped(*args: Any) -> Any:
        first.append(real(*args))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dpcurate.learn.measure_once.method.MeasureOnce.fit", lambda _self, *args: stopped(*args))
        with pytest.raises(KeyboardInterrupt):
            dpcurate.discover(TABLE, ASIA.schema, epsilon=1, ledger=path, purpose="to see")
    before = spent(path)
    assert Ledger.open(path).log()[0].outcome == "stopped"
    found = dpcurate.discover(TABLE, ASIA.schema, epsilon=1, ledger=path, purpose="to see")
    assert found.learned.graph == first[0].graph
    assert found.learned.evidence == first[0].evidence
    assert spent(path) == before
    (logged,) = Ledger.open(path).log()
    assert (logged.facts.method, logged.facts.purpose, logged.outcome) == ("auto", "to see", "finished")
    assert (logged.facts.epsilon, logged.facts.schema) == (1.0, ASIA.schema.hash)
    assert found.privacy.run == pytest.approx(before[0])


def test_a_clock_that_goes_backwards_decides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither which run is resumed, nor the order of the log, nor which run is the newest."""
    days = iter(range(10**6))

    class Backwards(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime(2040, 1, 1, tzinfo=tz) - timedelta(days=next(days))

    for place in ("dpcurate.private.ledger.journal", "dpcurate.study.run_budget"):
        monkeypatch.setattr(f"{place}.datetime", Backwards)
    path, small = tmp_path / "l", load("cancer")
    table = small.sample(1000, seed=3)
    budget = dpcurate.Budget(epsilon=4, delta=1e-10)
    Ledger.create(path, table="t", schema=small.schema, neighbours="add-remove", budget=budget)
    dpcurate.discover(table, small.schema, epsilon=0.5, ledger=path)
    with monkeypatch.context() as patch, killed():
        dying(patch, Ledger, "keep", 0, after=True)
        dpcurate.discover(table, small.schema, epsilon=1, ledger=path)
    found = dpcurate.discover(table, small.schema, epsilon=1, ledger=path)
    log = Ledger.open(path).log()
    assert [(one.number, one.outcome, one.facts.epsilon) for one in log] == [(1, "finished", 0.5), (2, "finished", 1.0)]
    assert all(one.ended is not None and one.ended < one.started for one in log)
    assert log[1].started < log[0].started
    assert log[1].spent == pytest.approx(dpcurate.Budget(epsilon=1, delta=1e-10).ceiling)
    assert found.run is not None
    assert (found.run.number, dpcurate.discover_from(path).run.number) == (2, 2)


@pytest.mark.parametrize(
    "other",
    [{"epsilon": 0.9}, {"method": "notears-moments"}, {"knowledge": dpcurate.Knowledge.of(tiers=[["asia"], ["xray"]])}],
)
def test_another_command_is_another_run(tmp_path: Path, other: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "l"
    Ledger.create(path, table="t", schema=ASIA.schema, neighbours="add-remove",
                  budget=dpcurate.Budget(epsilon=4, delta=1e-10))  # fmt: skip
    with monkeypatch.context() as patch, killed():
        dying(patch, Ledger, "keep", 0, after=False)
        dpcurate.discover(TABLE, ASIA.schema, epsilon=1, ledger=path)
    dpcurate.discover(TABLE, ASIA.schema, **{"epsilon": 1, "ledger": path, **other})
    assert [run.outcome for run in Ledger.open(path).log()][1:] == ["finished"]


def test_a_run_that_another_process_resumes_first_is_a_new_one_within_its_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "l"
    Ledger.create(path, table="t", schema=ASIA.schema, neighbours="add-remove",
                  budget=dpcurate.Budget(epsilon=4, delta=1e-10))  # fmt: skip
    with monkeypatch.context() as patch, killed():
        dying(patch, Ledger, "keep", 0, after=False)
        dpcurate.discover(TABLE, ASIA.schema, epsilon=1, ledger=path)
    real = RunBudget.open

    def faster(allowance: RunBudget, *args: Any, **more: Any) -> Any:
        monkeypatch.setattr(RunBudget, "open", real)
        dpcurate.discover(TABLE, ASIA.schema, epsilon=1, ledger=path)
        return real(allowance, *args, **more)

    monkeypatch.setattr(RunBudget, "open", faster)
    dpcurate.discover(TABLE, ASIA.schema, epsilon=1, ledger=path)
    share = dpcurate.Budget(epsilon=1, delta=1e-10).ceiling
    assert [run.spent for run in Ledger.open(path).log()] == pytest.approx([share, share])


class Stopped:
    """A method that is stopped once it has asked."""

    def __init__(self) -> None:
        self.left: list[float] = []

    def __repr__(self) -> str:
        return "Stopped()"

    def fit(self, queryable: Any, _knowledge: object = None) -> Any:
        self.left.append(queryable.remaining)
        queryable.ask(Release(Counts(("xray",)), Gaussian(rho=0.001)))
        raise Killed


def test_on_a_curator_the_share_is_what_is_asked_for_and_not_what_an_earlier_run_had(tmp_path: Path) -> None:
    curator = dpcurate.Curator(TABLE, ASIA.schema, ledger=tmp_path / "l", budget=dpcurate.Budget(rho=1.0))
    method = Stopped()
    for share in (0.5, 0.125, 0.5):
        with killed():
            dpcurate.fit(curator, method, share=share)
    assert method.left == [0.5, 0.125, 0.5]
    assert [run.spent for run in curator.ledger.log()] == pytest.approx([0.001, 0.001])


def test_a_share_is_kept_within_a_run_too(tmp_path: Path) -> None:
    curator = dpcurate.Curator(TABLE, ASIA.schema, ledger=tmp_path / "l", budget=dpcurate.Budget(rho=1.0))
    method, facts = Stopped(), RunFacts(command="c", method="by hand", schema=ASIA.schema.hash, by="ann")
    with killed(), curator.run(facts):
        dpcurate.fit(curator, method, share=0.125)
    assert method.left == [0.125]


def test_who_ran_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ann")
    path = tmp_path / "l"
    dpcurate.discover(TABLE, ASIA.schema, epsilon=0.5, ledger=path)
    assert Ledger.open(path).log()[0].facts.by == "ann"

    def nobody() -> str:
        raise OSError("no such user")

    from dpcurate.study.run_budget import RunSpec

    facts = {"table": "postgresql://me:secret@host/db#t", "schema": ASIA.schema, "method": "m", "recipe": ""}
    with monkeypatch.context() as patch:
        patch.setattr("getpass.getuser", nobody)
        assert RunSpec(**facts).facts.by == "unknown"
    assert RunSpec(**facts, by="bob").facts.by == "bob"
    other = {**facts, "table": "postgresql://you:other@host/db#t"}
    assert RunSpec(**facts).facts.command == RunSpec(**other).facts.command  # a password makes no other table


# --- the command -----------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("asia.csv", index=False) if hasattr(TABLE, "to_csv") else _csv("asia.csv")
    ASIA.schema.save("asia.toml")
    return tmp_path


def _csv(name: str) -> None:
    import pandas

    pandas.DataFrame(TABLE).to_csv(name, index=False)


FILES = ["edges.csv", "graph.dot", "graph.graphml", "graph.json", "report.html", "report.json"]
WORDS = ["discover", "asia.csv", "--schema", "asia.toml", "--epsilon", "1", "--ledger", "asia.ledger", "-o", "result"]


@pytest.mark.parametrize(("nth", "after"), [(0, False), (0, True), (5, True)], ids=["none", "one", "all"])
def test_a_command_that_was_stopped_while_it_wrote_its_files_goes_on(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, nth: int, after: bool
) -> None:
    with monkeypatch.context() as patch, killed():
        dying(patch, OutputFolder, "write", nth, after=after)
        main(WORDS)
    written = sorted(file.name for file in Path("result").iterdir())
    assert len(written) == nth + after  # and no half a file beside them
    assert set(written) <= set(FILES)
    before = spent(here / "asia.ledger")
    capsys.readouterr()
    assert main([*WORDS, "--purpose", "a second try", "--by", "bob"]) == 0
    assert "this resumes run 1" in capsys.readouterr().err
    assert spent(here / "asia.ledger") == before
    assert sorted(file.name for file in Path("result").iterdir()) == FILES
    assert main(WORDS) == 1  # it is finished now, so this would be another run
    assert "nothing is left" in capsys.readouterr().err
    assert main(["ledger", "log", "asia.ledger"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert " ".join(head.split()) == "run started by method epsilon rho schema outcome purpose result"
    assert line.split()[0] == "1"
    for part in ("auto", "1", ASIA.schema.hash, "finished", str(here / "result")):
        assert part in line.split()


def test_the_log_of_a_ledger_without_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "init", "l", "--table", "t", "--schema", "asia.toml", "--epsilon", "1"]) == 0
    capsys.readouterr()
    assert main(["ledger", "log", "l"]) == 0
    assert "no runs yet" in capsys.readouterr().out
    with pytest.raises(LedgerError):
        Ledger.open("asia.toml")


# --- which table it is -------------------------------------------------------------------------------------


def test_a_stopped_run_is_not_resumed_on_another_frame_while_both_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = [pd.DataFrame(numbers()) for _ in range(2)]

    def command(frame: pd.DataFrame) -> dpcurate.Discovery:
        return dpcurate.discover(frame, NUMBERS, epsilon=2.0, ledger=tmp_path / "l.ledger")

    with monkeypatch.context() as patch:
        killed_in(patch, 3, after=True)
        with killed():
            command(frames[0])
    before = spent(tmp_path / "l.ledger")
    assert before[0] > 0
    with pytest.raises(LedgerError, match="stopped on another table in memory; nothing was read or spent"):
        command(frames[1])
    assert spent(tmp_path / "l.ledger") == before
    command(frames[0])


def test_a_copy_may_resume_when_the_table_is_gone_and_saved_records_know_no_table() -> None:
    frames = [pd.DataFrame({"a": [0, 1]}) for _ in range(2)]
    one, other = map(TableOrigin.from_table, frames)
    assert one.differs(other)
    assert not one.differs(TableOrigin.from_table(frames[0]))
    assert not one.differs(TableOrigin.from_table({"a": [0, 1]}))
    assert not one.differs(pickle.loads(pickle.dumps(other)))
    assert TableOrigin.from_table("a.csv").differs(TableOrigin.from_table(Path("b.csv")))
    assert not TableOrigin.from_table("a.csv").differs(one)
    del frames[0]
    gc.collect()
    assert not one.differs(other)


def test_a_model_of_another_table_is_refused_unless_a_ledger_says_that_both_are_one(tmp_path: Path) -> None:
    frames = [pd.DataFrame(numbers()) for _ in range(2)]
    found = dpcurate.discover(frames[0], NUMBERS, epsilon=10.0)
    other = dpcurate.Curator(frames[1], NUMBERS, budget=dpcurate.Budget(epsilon=10, delta=1e-10))
    with pytest.raises(QueryError, match="found in another table than the curator's"):
        dpcurate.quantify(found, other)
    assert other.ledger.spent == 0
    same = dpcurate.Curator(frames[0], NUMBERS, budget=dpcurate.Budget(epsilon=10, delta=1e-10))
    dpcurate.quantify(found, same)
    kept = {"ledger": tmp_path / "l.ledger"}
    found = dpcurate.discover(frames[0], NUMBERS, epsilon=10.0, **kept)
    more = dpcurate.Curator(
        frames[1], NUMBERS, budget=dpcurate.Budget(epsilon=10, delta=1e-10), ledger=tmp_path / "x.ledger", name="l"
    )
    dpcurate.quantify(found, more)
