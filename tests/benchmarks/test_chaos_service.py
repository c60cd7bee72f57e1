"""The chaos of a service: its judgements see what they are there for, and a short run finds nothing."""

from __future__ import annotations

import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from benchmarks.chaos import page, service, service_page
from benchmarks.chaos.arena import Arena
from benchmarks.chaos.diary import Diary
from benchmarks.chaos.service import ASKS, COST, Books, Job, judged, settled

ROOT = Path(__file__).parents[2]
ONE = Fraction(COST)
JOB = Job("alice", "token", 0)


def books(paid=ASKS, **more):
    """A ledger on which alice has paid for one run of some questions."""
    found = {
        "spent": ONE * paid, "ceiling": ONE * 100, "events": ONE * paid,
        "shares": (("alice", ONE * paid, ONE * 30), ("bob", Fraction(0), ONE * 70)),
        "runs": ((1, "alice", "alice.0", "finished", ONE * paid, paid),),
        "stored": tuple((1, f"d{i}") for i in range(paid)),
    }  # fmt: skip
    return Books(**{**found, **more})


@pytest.fixture
def diary(tmp_path):
    made = Diary(tmp_path / "diary")
    made.write("answered", [f"alice.0.{i}=d{i}" for i in range(ASKS)])
    made.write("done", ["alice.0"])
    yield made
    made.close()


def test_what_is_in_order_is_no_fault(diary):
    assert list(judged(books(), None, diary)) == []
    assert list(judged(books(), books(3), diary)) == []
    assert list(settled(books(), [JOB], diary)) == []


@pytest.mark.parametrize(
    ("now", "fault"),
    [
        (books(ceiling=ONE * 3), "the ceiling is exceeded"),
        (books(events=ONE), "not the sum of events"),
        (books(shares=(("alice", ONE * ASKS, ONE),)), "the share of alice is exceeded"),
        (books(shares=(("alice", ONE, ONE * 30),)), "and its runs"),
        (books(stored=()), "are not stored"),
        (books(trouble="the ledger is refused"), "refused"),
    ],
)
def test_what_must_hold_at_every_instant(diary, now, fault):
    assert any(fault in text for text in judged(now, None, diary))


def test_what_was_paid_and_stored_stays(diary):
    more = books(ASKS + 1)
    assert any("a payment is lost" in text for text in judged(books(), more, diary))
    assert any("a stored answer is lost" in text for text in judged(books(), more, diary))


def test_a_run_is_paid_once_and_comes_to_its_end(diary):
    assert any("has paid 9.0 questions of 8" in text for text in settled(books(9), [JOB], diary))
    first = (1, "alice", "alice.0", "stopped", ONE, 1)
    assert any("1 were not resumed" in text for text in settled(books(runs=(first, *books().runs)), [JOB], diary))
    assert any("paid in 0 runs" in text for text in settled(books(runs=()), [JOB], diary))
    other = Job("bob", "token", 1)
    assert any("bob.1 was neither resumed nor finished" in text for text in settled(books(), [other], diary))
    diary.write("answered", ["alice.0.0=other"])
    assert any("question alice.0.0 has 2 answers" in text for text in settled(books(), [JOB], diary))


def test_the_section_of_the_page_stays_when_the_page_is_written_again(tmp_path):
    path, arena = tmp_path / "page.md", Arena("service", random.Random(0))
    page.write(path, [], "first")
    assert service_page.HEAD not in path.read_text()
    arena.tried["races"] = 3
    service_page.write(path, arena, 5, "--kills 5")
    page.write(path, [], "second")
    service_page.write(path, arena, 7, "--kills 7")
    page.write(path, [], "third")
    text = path.read_text()
    assert text.count(service_page.HEAD) == 1
    assert "third" in text
    assert "**7 kills**" in text
    assert "**3 races**" in text


def test_figures_of_several_runs_add_up(tmp_path):
    path, arena = tmp_path / "page.md", Arena("service", random.Random(0))
    page.write(path, [], "first")
    arena.tried.update({"races": 1_200, "kills of clients": 5, "answered": 7, "refused": 3})
    service_page.write(path, arena, 5, "--seed 1")
    assert service_page.earlier(path) == {"races": 1_200, "kills of clients": 5, "answered": 7}


def chaos(*words):
    run = [sys.executable, "-m", "benchmarks.chaos.service", *words]
    return subprocess.run(run, capture_output=True, text=True, cwd=ROOT)


@pytest.mark.slow
def test_a_short_run_finds_nothing():
    done = chaos("--kills", "20", "--races", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every answer was paid for and stored" in done.stdout


@pytest.mark.slow
def test_a_store_that_is_broken_on_purpose_is_seen():
    done = chaos("--self-test")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": seen, such as: ") == len(service.BROKEN)
