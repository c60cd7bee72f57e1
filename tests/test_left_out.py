"""A run of the tests says what it left out, and how to have it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from left_out import MARKERS, OTHERWISE, deselected, remedy, summary

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("reason", "how"),
    [
        ("browser tests need a chromium: apt-get install chromium", "install chromium"),
        ("Spark needs Java, and there is none on the path", "openjdk-17"),
        ("no PostgreSQL server here", "install postgresql"),
        ("DoWhy is not installed here", "make test-tools"),
        ("could not import 'mbi': No module named 'mbi'", "package mbi"),
        ("there is no nginx here, or no openssl", "install nginx-light"),
        ("no named pipes here", OTHERWISE),
    ],
)
def test_every_reason_has_a_remedy(reason, how):
    assert how in remedy(reason)


def test_equal_reasons_are_counted_and_nothing_is_said_of_nothing():
    lines = summary([("tests/a/test_x.py", "Skipped: no Java"), ("tests/a/test_x.py", "Skipped: no Java")])
    assert lines[1] == "  test_x.py (2): no Java"
    assert summary([]) == []


def test_a_run_without_a_browser_says_so_at_its_end(tmp_path):
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "tests/report/test_page.py",
        "-k",
        "can_be_saved",
    ]
    settings = {k: v for k, v in os.environ.items() if k != "DPCURATE_REQUIRE_ALL" and not k.startswith("PYTEST")}
    done = subprocess.run(
        words, cwd=ROOT, env={**settings, "PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    said = done.stdout.partition(" left out ")[2]
    assert "test_page.py (1): " in said
    assert "to have it: a browser: apt-get install chromium" in said


def test_what_was_not_asked_for_is_said_with_how_to_have_it():
    lines = deselected({"slow": 3, "spark": 2})
    assert "make test-all" in lines[0]
    assert lines[1:] == [f"  3 slow: {MARKERS['slow']}", f"  2 spark: {MARKERS['spark']}"]
    assert deselected({}) == []
