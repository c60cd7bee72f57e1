"""Runs of a ledger: an answer is stored before it is returned, paid once, and drawn once as far as anybody can see."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_ledger import ZCDP, gaussian

from dpcurate import Curator
from dpcurate.accounting import Budget
from dpcurate.errors import BudgetError, BudgetExceeded, LedgerError, QueryError, SourceError
from dpcurate.private.ledger import Ledger, RunFacts
from dpcurate.private.ledger.run_log import Liveness
from dpcurate.private.preview import largest_parts
from dpcurate.private.session import Session
from dpcurate.private.statistics.registry import PROVED, transformation
from dpcurate.queries import (
    AboveThreshold,
    Answer,
    Choose,
    Contrasts,
    Counts,
    Exact,
    FeatureMap,
    FeatureMoments,
    FeatureNorms,
    Gaussian,
    Gradient,
    GradientNorms,
    Histograms,
    KendallP,
    Laplace,
    Means,
    Moments,
    Release,
    Sample,
    Score,
    Tables,
    Tau,
)
from dpcurate.queries import encoding as stored_answers
from dpcurate.schema import Categorical, Numeric, Schema

TABLE = {"a": [0, 1, 1, 0] * 50, "b": [1, 1, 0, 0] * 50, "c": [0, 1, 0, 1] * 50}
LEVELS = {"a": (0, 1), "b": (0, 1), "c": (0, 1)}
FIRST = Release(Counts(("a", "b")), Gaussian(rho=0.125))
SECOND = Release(Counts(("b", "c")), Gaussian(rho=0.25))
CHOICE = Choose(candidates=(Score(Tau("a", "b"), 1.0, "above"), Score(Tau("b", "c"), 1.0, "above")), epsilon=0.5)
FACTS = RunFacts(command="c0ffee", method="by hand", schema="s", by="ann", purpose="a test", result="here")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "books.ledger"


def opened(path: Path, **more: Any) -> Curator:
    return Curator(TABLE, LEVELS, ledger=path, budget=None if path.exists() else ZCDP, **more)


class Killed(BaseException):
    """Stands for kill -9: nothing of the process runs any more."""


@contextmanager
def killed() -> Iterator[None]:
    """What is killed on the way."""
    with pytest.raises(Killed):
        yield


@contextmanager
def run(curator: Curator, facts: RunFacts = FACTS, share: float | None = None) -> Iterator[Any]:
    """A run that ends without a word if it is killed."""
    running = curator.run(facts, share=share)
    begun = running.__enter__()
    try:
        yield begun
    except Killed:
        begun.lock.__del__()  # the system drops the lock, and the file stays
        raise
    except BaseException as problem:
        running.__exit__(type(problem), problem, None)
        raise
    else:
        running.__exit__(None, None, None)


def numbers(curator: Curator) -> list[list[float]]:
    """A run of three requests, the last asked twice."""
    some = curator.ask_all([FIRST, SECOND])
    again = [curator.ask(FIRST), curator.ask(FIRST)]
    return [a.value.ravel().tolist() for a in (*some, *again)] + [[float(curator.ask(CHOICE))]]


def paid(path: Path) -> tuple[float, int]:
    ledger = Ledger.open(path)
    return ledger.spent, len(ledger.events)


# --- resuming --------------------------------------------------------------------------------------------


def test_a_run_is_logged_and_its_answers_are_stored(path: Path) -> None:
    curator = opened(path)
    with run(curator, share=0.9):
        first = numbers(curator)
    (logged,) = Ledger.open(path).log()
    assert (logged.number, logged.outcome, logged.facts, logged.answers) == (1, "finished", FACTS, 4)
    assert logged.spent == Ledger.open(path).spent > 0.6
    assert logged.allowed == pytest.approx(0.9)
    assert logged.ended is not None
    assert list(path.parent.iterdir()) == [path]
    assert first[2] != first[3]  # asked twice, drawn twice, paid twice
    assert paid(path)[1] == 5


def test_a_run_that_finished_is_not_resumed(path: Path) -> None:
    results = []
    for _ in range(2):
        curator = opened(path)
        with run(curator):
            results.append(curator.ask(FIRST).value.tolist())
    assert results[0] != results[1]
    assert paid(path) == (0.25, 2)
    assert [logged.outcome for logged in Ledger.open(path).log()] == ["finished", "finished"]


STEPS = ("before it is paid", "before it is read", "before it is stored", "before it is returned")


def killed_at(step: str, nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nth request of a process dies at a step."""
    count = iter(range(1000))

    def dying(real: Callable[..., Any], *, after: bool) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            dies = next(count) == nth
            if dies and not after:
                raise Killed
            result = real(*args, **more)
            if dies:
                raise Killed
            return result

        return call

    place, name, after = {
        STEPS[0]: (Ledger, "pay", False),
        STEPS[1]: (Session, "_answers", False),
        STEPS[2]: (Ledger, "keep", False),
        STEPS[3]: (Ledger, "keep", True),
    }[step]
    monkeypatch.setattr(place, name, dying(getattr(place, name), after=after))


@pytest.mark.parametrize("nth", range(4))
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_the_same_command_pays_what_an_undisturbed_run_pays(
    path: Path, step: str, nth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        killed_at(step, nth, patch)
        curator = opened(path)
        with killed(), run(curator, share=0.9):
            numbers(curator)
    before = paid(path)
    curator = opened(path)
    with run(curator, share=0.9) as resumed:
        assert resumed.number == (1 if before[1] else 2)  # nothing was paid: nothing to resume
        result = numbers(curator)
        assert curator.privacy().run == pytest.approx(0.125 * 3 + 0.25 + 0.5**2 / 8)
    assert paid(path)[1] == 5
    assert paid(path)[0] == pytest.approx(0.125 * 3 + 0.25 + 0.5**2 / 8)
    assert Ledger.open(path).log()[-1].spent == pytest.approx(paid(path)[0])
    stored = [a for body in _bodies(path) for _, a in stored_answers.decode(body)]
    assert sorted(map(_listed, stored)) == sorted(result)  # what is stored is what was returned


def _listed(answer: Any) -> list[float]:
    return [float(answer)] if isinstance(answer, int) else answer.value.ravel().tolist()


def _bodies(path: Path) -> list[bytes]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT body FROM answer ORDER BY id").fetchall()
    connection.close()
    return [body for (body,) in rows]


def test_what_is_stored_comes_back_bit_for_bit_and_reads_no_row(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    curator = opened(path)
    with killed(), run(curator):
        result = numbers(curator)
        raise Killed
    monkeypatch.setattr(Session, "_answers", lambda *_: pytest.fail("a row was read"))
    again = opened(path)
    with run(again):
        assert numbers(again) == result


def test_a_request_paid_and_not_stored_gets_fresh_noise(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[bytes] = []
    curator = opened(path)
    with monkeypatch.context() as patch, killed(), run(curator):
        patch.setattr(Ledger, "keep", lambda _self, _name, body: (drawn.append(body), _die()))
        curator.ask(FIRST)
    again = opened(path)
    with run(again):
        seen = again.ask(FIRST).value
    (lost,) = drawn
    assert not np.array_equal(_listed(stored_answers.decode(lost)[0][1]), seen.ravel())
    assert paid(path) == (0.125, 1)
    assert len(_bodies(path)[0]) == len(lost)  # as many bytes, whatever was drawn


def _die() -> None:
    raise Killed


def test_a_table_that_cannot_be_read_is_answered_once_it_can(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    curator = opened(path)
    with monkeypatch.context() as patch:
        patch.setattr(curator._source, "totals", lambda _: 1 / 0)
        with pytest.raises(SourceError), run(curator):
            curator.ask(FIRST)
    assert paid(path) == (0.125, 1)
    assert Ledger.open(path).log()[0].outcome == "failed"
    again = opened(path)
    with run(again):
        again.ask(FIRST)
    assert paid(path) == (0.125, 1)
    assert [(r.number, r.outcome) for r in Ledger.open(path).log()] == [(1, "finished")]


def broken(curator: Curator, patch: pytest.MonkeyPatch, what: str) -> None:
    """The table cannot be read, or the answer cannot be stored."""
    if what == "read":
        patch.setattr(curator._source, "totals", lambda _: 1 / 0)
    else:
        patch.setattr(curator.ledger._store, "keep", lambda *_: _full())


def _full() -> None:
    raise LedgerError("database or disk is full")


@pytest.mark.parametrize("what", ["read", "keep"])
def test_what_was_paid_and_not_answered_is_answered_once_when_asked_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    curator = opened(path)
    with killed(), run(curator, share=0.5):
        before = curator.ask(FIRST).value
        for _ in range(2):
            with monkeypatch.context() as patch:
                broken(curator, patch, what)
                with pytest.raises((SourceError, LedgerError)):
                    curator.ask(FIRST)
            assert paid(path) == (0.25, 2)
        left = curator.remaining
        again = curator.ask(FIRST).value
        assert paid(path) == (0.25, 2)
        assert curator.remaining == left
        assert curator.privacy().run == 0.25
        third = curator.ask(FIRST).value
        assert paid(path) == (0.375, 3)
        raise Killed
    resumed = opened(path)
    with run(resumed):
        for known in (before, again, third):
            assert np.array_equal(resumed.ask(FIRST).value, known)
        assert paid(path) == (0.375, 3)
        resumed.ask(FIRST)
        assert paid(path) == (0.5, 4)


def test_a_resumed_run_that_cannot_read_pays_for_nothing_twice(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    curator = opened(path)
    with monkeypatch.context() as patch, killed(), run(curator):
        curator.ask(FIRST)
        broken(curator, patch, "read")
        with pytest.raises(SourceError):
            curator.ask(SECOND)
        raise Killed
    again = opened(path)
    with run(again):
        again.ask(FIRST)
        with monkeypatch.context() as patch:
            broken(again, patch, "read")
            with pytest.raises(SourceError):
                again.ask(SECOND)
        left = again.remaining
        again.ask(SECOND)
        assert again.remaining == left
        assert paid(path) == (0.375, 2)


def test_outside_of_a_run_too_it_is_answered_once_without_another_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    curator = Curator(TABLE, LEVELS, budget=Budget(rho=1))
    for _ in range(2):
        with monkeypatch.context() as patch:
            broken(curator, patch, "read")
            with pytest.raises(SourceError):
                curator.ask_all([FIRST, SECOND])
        assert curator.ledger.spent == 0.375
    curator.ask(FIRST)  # another list of queries
    assert curator.ledger.spent == 0.5
    curator.ask_all([FIRST, SECOND])
    assert curator.ledger.spent == 0.5
    curator.ask_all([FIRST, SECOND])
    assert curator.ledger.spent == 0.875


OTHERS = {
    "query": (lambda curator: curator.ask(Release(Counts(("a", "b")), Gaussian(rho=0.1250001))), FACTS),
    "columns": (lambda curator: curator.ask(Release(Counts(("a", "c")), Gaussian(rho=0.125))), FACTS),
    "command": (lambda curator: curator.ask(FIRST), RunFacts(command="tea", method="m", schema="s", by="b")),
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_request_or_command_pays(path: Path, other: str) -> None:
    curator = opened(path)
    with killed(), run(curator):
        curator.ask(FIRST)
        raise Killed
    act, facts = OTHERS[other]
    again = opened(path)
    with run(again, facts):
        act(again)
    assert paid(path)[1] == 2


def test_another_schema_pays(path: Path) -> None:
    curator = opened(path)
    with killed(), run(curator):
        curator.ask(FIRST)
        raise Killed
    again = Curator(TABLE, {**LEVELS, "c": (0, 1, 2)}, ledger=path)
    with run(again):
        again.ask(FIRST)
    assert paid(path) == (0.25, 2)


def test_another_price_pays(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later version may know that a statistic moves further: what was paid for less is not given for it."""
    query = Release(Counts(("a",)), Gaussian(sigma=4.0))
    curator = opened(path)
    with killed(), run(curator), monkeypatch.context() as patch:
        patch.setattr(Ledger, "keep", lambda *_: _die())
        curator.ask(query)
    again = opened(path)
    real = again._bound
    monkeypatch.setattr(again, "_bound", lambda statistic: (real(statistic)[0], real(statistic)[1].times(2)))
    with run(again):
        again.ask(query)
    assert paid(path) == (1 / 32 + 1 / 8, 2)


# --- two processes, one run ------------------------------------------------------------------------------


def test_a_run_that_lives_is_not_taken_and_the_same_command_is_a_new_run(path: Path) -> None:
    first, second = opened(path), opened(path)
    with run(first) as one:
        first.ask(FIRST)
        with run(second) as two:
            second.ask(FIRST)
        assert (one.number, two.number) == (1, 2)
    assert paid(path) == (0.25, 2)


@pytest.mark.parametrize("step", ["pay", "keep"])
def test_a_process_that_wakes_up_late_discards_what_it_drew(
    path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was taken for dead, and another process goes on with its run."""
    sleeper, other = opened(path), opened(path)
    seen: list[Any] = []
    real = getattr(Ledger, step)

    def meanwhile(ledger: Ledger, *args: Any) -> Any:
        monkeypatch.setattr(Ledger, step, real)
        assert ledger._run is not None
        assert ledger._run.lock is not None
        ledger._run.lock.__del__()  # as if it were dead
        with run(other):
            seen.append(other.ask(SECOND).value.tolist())
        return real(ledger, *args)

    with contextlib.suppress(LedgerError), run(sleeper):
        sleeper.ask(FIRST)
        monkeypatch.setattr(Ledger, step, meanwhile)
        with pytest.raises(LedgerError, match="resumed by another process"):
            seen.append(sleeper.ask(SECOND))  # never returns
        sleeper.ask(FIRST)
        pytest.fail("a run that was lost goes on")
    assert len(seen) == 1
    assert paid(path) == (0.375, 2)
    stored = [_listed(a) for body in _bodies(path) for _, a in stored_answers.decode(body)]
    assert [x for row in seen[0] for x in row] in stored
    assert len(stored) == 2
    (logged,) = Ledger.open(path).log()
    assert logged.outcome == "finished"  # what the sleeper says of it is not believed


def test_an_answer_is_stored_once(path: Path) -> None:
    curator = opened(path)
    with run(curator):
        curator.ask(FIRST)
        kind = sqlite3.connect(path).execute("SELECT kind FROM note WHERE kind LIKE 'stored %'").fetchone()[0]
        with pytest.raises(LedgerError, match="nobody stored"):
            curator.ledger.keep(kind.split()[2], b"another")
        with pytest.raises(LedgerError, match="a payment has gone"):
            curator.ledger.keep("unheard of", b"another")
    assert len(_bodies(path)) == 1


def test_a_lock_is_let_go_if_the_run_cannot_begin(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpcurate.private.ledger import disk_store

    curator = opened(path)

    def fails(*_: object) -> str:
        raise sqlite3.OperationalError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(disk_store.run_log, "new_note", fails)
        with pytest.raises(LedgerError, match="no room"):
            curator.run(FACTS).__enter__()
    assert list(path.parent.iterdir()) == [path]
    assert not curator.ledger.running


def test_a_lock_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        Liveness.take(tmp_path / "nowhere" / "x.ledger", 1)


def test_a_ledger_that_has_the_name_of_a_lock_is_left_alone(path: Path) -> None:
    """A run that ends removes its lock, and would forget all that was spent from the other table."""
    other = opened(path.with_name(f"{path.name}-run-1"))
    other.ask(FIRST)
    with run(opened(path)):
        other.ask(FIRST)  # nor is it locked
    assert other.ledger.spent == 0.25
    with run(opened(path)) as second:
        assert second.lock is not None
        second.lock._file.write_bytes(b"not ours")
    assert second.lock._file.read_bytes() == b"not ours"


def test_a_run_goes_on_without_a_lock_that_another_program_has(path: Path) -> None:
    curator = opened(path)
    other = Liveness.take(path, 1)
    assert other is not None
    with run(curator):
        curator.ask(FIRST)
    other.end()
    assert Ledger.open(path).log()[0].outcome == "finished"


# --- shares ----------------------------------------------------------------------------------------------


def test_a_run_spends_its_share_and_no_more(path: Path) -> None:
    curator = opened(path)
    with run(curator, share=0.3):
        assert curator.remaining == pytest.approx(0.3)
        curator.ask(FIRST)
        assert curator.remaining == pytest.approx(0.175)
        with pytest.raises(BudgetExceeded, match="this run's share"):
            curator.ask(SECOND)
        with pytest.raises(BudgetExceeded, match="this run's share"):
            curator.reserve(0.2).__enter__()
        with curator.reserve(0.125):
            curator.ask(FIRST)
        assert curator.remaining == pytest.approx(0.05)
        with pytest.raises(BudgetExceeded, match="this run's share"):
            curator.open(AboveThreshold(epsilon=0.5))
    with pytest.raises(BudgetExceeded), run(curator, RunFacts(command="2", method="m", schema="s", by="b"), share=0.1):
        curator.ask(SECOND)
    assert Ledger.open(path).remaining == 0.75
    logged, refused = Ledger.open(path).log()
    assert (logged.spent, logged.answers) == (0.25, 1)  # what a block answers is not stored
    assert (refused.spent, refused.outcome) == (0, "refused")


def test_what_earlier_processes_paid_counts_towards_the_share(path: Path) -> None:
    curator = opened(path)
    with killed(), run(curator, share=0.4):
        curator.ask(SECOND)
        raise Killed
    again = opened(path)
    with run(again, share=0.4):
        assert again.remaining == pytest.approx(0.4)  # as it was for the first one
        again.ask(FIRST)  # another way than before
        with pytest.raises(BudgetExceeded, match="this run's share"):
            again.ask(FIRST)
        again.ask(SECOND)
        assert again.remaining == pytest.approx(0.025)
    assert paid(path) == (0.375, 2)


def test_a_run_whose_payment_used_up_the_ledger_is_resumed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Release(Counts(("a",)), Gaussian(sigma=1))
    curator = Curator(TABLE, LEVELS, ledger=path, budget=Budget(rho=0.5))
    with monkeypatch.context() as patch, killed(), run(curator):
        patch.setattr(Ledger, "keep", lambda *_: _die())
        curator.ask(whole)
    assert Ledger.open(path).remaining == 0
    again = opened(path)
    with run(again):
        assert again.remaining == 0.5
        again.ask(whole)
        assert again.remaining == 0
    assert paid(path) == (0.5, 1)
    with pytest.raises(BudgetExceeded, match="nothing is left"), run(opened(path)):
        pass
    assert len(Ledger.open(path).log()) == 1


@pytest.mark.parametrize("share", [0, -1, math.inf, math.nan, "much"])
def test_a_share_that_is_none(path: Path, share: Any) -> None:
    with pytest.raises(BudgetError, match="share"):
        opened(path).run(FACTS, share=share)


def test_a_share_larger_than_what_is_left_is_refused(path: Path) -> None:
    with pytest.raises(BudgetExceeded, match="only rho = 1"):
        opened(path).run(FACTS, share=2).__enter__()
    assert Ledger.open(path).log() == ()


def test_runs_do_not_nest_and_need_a_file(path: Path) -> None:
    curator = opened(path)
    with run(curator), pytest.raises(LedgerError, match="no other run"):
        curator.run(FACTS).__enter__()
    with curator.reserve(0.1), pytest.raises(LedgerError, match="no other run"):
        curator.run(FACTS).__enter__()
    memory = Ledger(ZCDP)
    with pytest.raises(LedgerError, match="in a file"):
        memory.run(FACTS).__enter__()
    assert (memory.log(), memory.stopped("c0ffee"), memory.running, memory.keeps) == ((), None, False, False)


def test_an_unlimited_ledger_has_no_share_to_keep(path: Path) -> None:
    curator = Curator(TABLE, LEVELS, ledger=path, budget=Budget.unlimited())
    for share, left in ((None, math.inf), (0.5, 0.5)):
        with run(curator, share=share):
            assert curator.remaining == left
            curator.ask(Release(Counts(("a",)), Exact()))
    first, second = Ledger.open(path).log()
    assert (first.allowed, second.allowed) == (None, 0.5)


# --- what is never stored --------------------------------------------------------------------------------


def test_gates_samples_and_blocks_are_not_stored(path: Path) -> None:
    scores = CHOICE.candidates
    curator = opened(path)
    with killed(), run(curator):
        curator.open(AboveThreshold(epsilon=0.25)).first(scores)
        curator.open(Sample(rate=0.5, epsilon=0.25)).ask(Release(Counts(("a",)), Laplace(epsilon=0.1)))
        with curator.reserve(0.25):
            curator.ask(FIRST)
        curator.ask_all([])
        raise Killed
    assert _bodies(path) == []
    assert Ledger.open(path).stopped(FACTS.command) is None
    assert paid(path)[1] == 3


@pytest.mark.parametrize("step", ["gate", "block", "closed block"])
def test_a_run_that_paid_for_what_is_not_stored_is_not_resumed_and_the_log_has_all_it_took(
    path: Path, step: str
) -> None:
    """Else it would open its gate once more after each kill, whatever its share."""
    with killed(), run(curator := opened(path), share=0.3):
        curator.ask(FIRST)
        if step == "gate":
            curator.open(AboveThreshold(epsilon=0.5))
        else:
            with contextlib.ExitStack() as block:
                block.enter_context(curator.reserve(0.15))
                curator.ask(FIRST)
                if step == "block":
                    block.pop_all()  # killed inside: what it set aside is spent for good
        raise Killed
    ledger = Ledger.open(path)
    assert ledger.stopped(FACTS.command) is None
    (logged,) = ledger.log()
    assert logged.spent == ledger.spent == pytest.approx({"gate": 0.25, "block": 0.275, "closed block": 0.25}[step])
    with run(again := opened(path), share=0.3) as second:
        again.ask(FIRST)
    assert second.number == 2


def test_a_process_that_lost_its_run_spends_nothing_more(path: Path) -> None:
    sleeper, other = opened(path), opened(path)
    with run(sleeper) as lost:
        sleeper.ask(FIRST)
        lost.lock.__del__()  # as if it were dead
        with run(other):
            for spend in (lambda: sleeper.open(AboveThreshold(epsilon=0.1)), sleeper.reserve(0.1).__enter__):
                with pytest.raises(LedgerError, match="resumed by another process"):
                    spend()
    assert paid(path) == (0.125, 1)


def test_nothing_is_stored_where_unproved_steps_are_let_through(path: Path) -> None:
    curator = opened(path, allow_unproved=True)
    with killed(), run(curator):
        curator.ask(FIRST)
        curator.ask(Release(Counts(("a",)), Exact()))
        raise Killed
    assert not Ledger.open(path).private
    assert _bodies(path) == []


def test_a_curator_asked_by_hand_stores_nothing(path: Path) -> None:
    opened(path).ask(FIRST)
    assert _bodies(path) == []


# --- the file --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ("UPDATE answer SET body = zeroblob(length(body))", "answer was edited"),
        ("DELETE FROM answer", "answer was edited"),
        ("DELETE FROM note WHERE kind LIKE 'stored %'", "total was edited"),
        ("UPDATE note SET kind = 'strewn 1' WHERE kind LIKE 'stored %'", "notes were edited"),
    ],
)
def test_an_answer_that_was_edited_is_not_returned_and_not_drawn_again(path: Path, edit: str, why: str) -> None:
    curator = opened(path)
    with killed(), run(curator):
        curator.ask(FIRST)
        raise Killed
    connection = sqlite3.connect(path)
    connection.execute(edit)
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match=why):
        _asked_again(path)


def _asked_again(path: Path) -> None:
    curator = opened(path)
    with run(curator):
        curator.ask(FIRST)


QUERIES = (
    FIRST,
    CHOICE,
    Release(Contrasts((("a",), ("a", "b")), (0.1, 1 / 3)), Laplace(epsilon=Fraction(1, 3))),
    Release(Moments(("a", "b"), 0.7), Gaussian(sigma=3.5)),
    Release(FeatureMoments((FeatureMap("a", ((1, 2), (3, 4))),), 1.5), Gaussian(rho=1e-9)),
)


def test_queries_and_answers_come_back_as_they_were(path: Path) -> None:
    curator = Curator(TABLE, LEVELS, budget=Budget(rho=1e6))
    given = curator.ask_all(list(QUERIES))
    back = stored_answers.decode(stored_answers.encode(QUERIES, given))
    assert tuple(query for query, _ in back) == QUERIES
    for (_, after), before in zip(back, given, strict=True):
        if isinstance(before, int):
            assert after == before
        else:
            assert after.scales == before.scales
            assert all(np.array_equal(a, b) for a, b in zip(after.parts, before.parts, strict=True))
    names = {stored_answers.name([q], schema, way) for q in QUERIES for schema in "st" for way in "ra"}
    assert len(names) == 4 * len(QUERIES)


MIXED = Schema(
    (
        Categorical("a", (0, 1, 2)),
        Categorical("b", (0, 1)),
        Numeric("x", 0, 1, missing="own"),
        Numeric("y", 0, 1),
        Numeric("z", 0, 1, 4),
    ),
    rows=100,
)
SHAPED = (
    Counts(()),
    Counts(("a", "b", "z")),
    Tables(((), ("a",), ("a", "z"))),
    Contrasts(((), ("b",), ("a", "b")), (1, 1, 1)),
    Means(("x", "y")),
    Moments(("b", "x", "y")),
    Moments(("b", "y"), 0.7),
    Gradient(("x", "y"), ((0, 1), (0, 0)), 1.0),
    GradientNorms(("x", "y"), ((0, 1), (0, 0)), (0.5, 1.0)),
    Histograms(("a", "x", "y", "z"), 3),
    FeatureMoments((FeatureMap("a", ((1, 2), (3, 4), (5, 6))), FeatureMap("b", ((1,), (2,)))), 1.5),
    FeatureNorms((FeatureMap("b", ((1,), (2,))),), (0.5, 1.0)),
    Tau("a", "b", ("z",)),
    KendallP("a", "b"),
)


def test_shapes_of_answers_are_known_before_anything_is_read() -> None:
    assert {type(statistic) for statistic in SHAPED} == set(PROVED)
    for statistic in SHAPED:
        computed = transformation(statistic, MIXED)
        assert list(computed.shapes) == [part.shape for part in largest_parts(computed)], statistic


def test_no_stored_answer_is_larger_than_is_foreseen() -> None:
    """That is: what is let through fits into SQLite and can be decoded."""
    asked = [Release(statistic, Gaussian(rho=1 / 3)) for statistic in SHAPED] * 20
    answers = [Answer(parts, (1.2345678901234567e-100,) * len(parts)) for parts in map(_blank, asked)]
    shapes = [transformation(one.statistic, MIXED).shapes for one in asked]
    queries = len(stored_answers.encode_queries(asked))
    body = stored_answers.encode(asked, answers)
    numbers = sum(math.prod(shape) for one in shapes for shape in one)
    assert len(body) <= 8 + queries + stored_answers._described(shapes) + 8 * numbers
    most = 8 + 2 * stored_answers.MOST_BYTES + 8 * stored_answers.MOST_NUMBERS
    connection = sqlite3.connect(":memory:")
    assert most + 1000 < connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH)
    connection.close()


def _blank(asked: Release) -> tuple[Any, ...]:
    return tuple(np.zeros(part.shape) for part in largest_parts(transformation(asked.statistic, MIXED)))


@pytest.mark.parametrize(("limit", "least"), [("MOST_NUMBERS", 9), ("MOST_BYTES", 240)])
def test_answers_that_could_not_be_stored_are_refused_before_they_are_paid_for(
    path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, least: int
) -> None:
    curator = opened(path)
    several = [Release(Counts(("a", "b")), Gaussian(rho=1 / 1024))] * 5
    with run(curator):
        monkeypatch.setattr(stored_answers, limit, least)
        with pytest.raises(QueryError, match="are 20 numbers in 5 parts, more than a ledger stores at once"):
            curator.ask_all(several)
        assert paid(path) == (0, 0)
        assert len(curator.ask_all([*several[:1], CHOICE])) == 2
    assert Ledger.open(path).log()[0].answers == 1
    assert len(curator.ask_all(several)) == 5  # outside of a run nothing is stored


# --- processes -------------------------------------------------------------------------------------------

WORK = """
import os, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_ledger_runs import FACTS, numbers, opened
curator = opened(Path(sys.argv[1]))
with curator.run(FACTS, share=0.9):
    print("ready", flush=True)
    numbers(curator)
    print("done", flush=True)
    sys.stdin.read()
"""


def test_a_process_that_is_killed_leaves_its_run_and_one_that_sleeps_keeps_it(path: Path) -> None:
    opened(path)
    program = textwrap.dedent(WORK).format(tests=str(Path(__file__).parent))
    working = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert working.stdout is not None
    assert [working.stdout.readline() for _ in range(2)] == ["ready\n", "done\n"]
    os.kill(working.pid, signal.SIGSTOP)
    assert Ledger.open(path).stopped(FACTS.command) is None
    os.kill(working.pid, signal.SIGKILL)
    working.communicate()
    stopped = Ledger.open(path).stopped(FACTS.command)
    assert stopped is not None
    assert (stopped.number, stopped.outcome, stopped.answers) == (1, "not ended", 4)
    before = paid(path)
    curator = opened(path)
    with run(curator, share=0.9):
        numbers(curator)
    assert paid(path) == before


def test_a_charge_outside_a_run_is_as_ever(path: Path) -> None:
    opened(path).ledger.charge([gaussian(0.25)])
    assert paid(path) == (0.25, 1)
