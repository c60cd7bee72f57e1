"""Hostile requests to a running service: a short run finds nothing, and the judge sees what it is there for."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.hostile_requests import Attacker
from benchmarks.service_section import kept, write_section

ROOT = Path(__file__).parents[2]


@pytest.fixture
def attacker():
    made = Attacker.__new__(Attacker)
    made.tried, made.statuses, made.faults, made.lock = Counter(), Counter(), [], threading.Lock()
    return made


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b"{}"),
        (400, b'Traceback (most recent call last):\n  File "app.py"'),
        (503, b'{"error": "/srv/patients.ledger"}'),
        (200, b"<dpcurate.private.session.Session object at 0x7f00>"),
        (422, b"sqlite3.OperationalError: no such table"),
        (400, b"x" * 6_000),
    ],
)
def test_the_judge_sees_what_must_not_come_back(attacker, status, body):
    attacker.judge(status, body, "a request")
    assert attacker.faults


@pytest.mark.parametrize(
    ("status", "body"), [(200, b'{"version":1}'), (401, b'{"error":{"code":"token"}}'), (413, b"")]
)
def test_the_judge_lets_an_answer_or_a_refusal_pass(attacker, status, body):
    attacker.judge(status, body, "a request")
    assert not attacker.faults


def test_a_section_is_replaced_and_others_stay(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("# A page\n\n## How\n\ntext\n")
    write_section(path, "## One", ["first"])
    write_section(path, "## Two", ["second", "", "| a |"])
    write_section(path, "## One", ["third"])
    text = path.read_text()
    assert text.startswith("# A page\n\n## How\n\ntext\n")
    assert "first" not in text
    assert text.index("third") < text.index("## Two") < text.index("| a |")
    assert kept(text).count("## ") == 2


@pytest.mark.slow
def test_a_short_run_finds_nothing():
    words = [sys.executable, "-m", "benchmarks.hostile_requests", "--count", "400", "--slow", "0"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no trace, leak, crash or charge without an answer" in done.stdout
