"""One version everywhere, and what is said of Pythons is what the package says of itself."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import dpcurate

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = [found[1] for line in PROJECT["classifiers"] if (found := re.search(r":: (3\.\d+)$", line))]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_one_version_everywhere():
    cited = re.search(r"^version: (\S+)$", text("CITATION.cff"), flags=re.MULTILINE)
    newest = re.search(r"^## (\S+)", text("CHANGELOG.md"), flags=re.MULTILINE)
    assert {cited[1], newest[1]} == {dpcurate.__version__}
    assert PROJECT["dynamic"] == ["version"]  # the package says it, and its build reads it there


def test_the_readme_the_classifiers_and_the_checked_wheel_name_the_same_pythons():
    assert PYTHONS == ["3.11", "3.12", "3.13", "3.14"]
    assert f"Python {PYTHONS[0]}–{PYTHONS[-1]}" in text("README.md")
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    smoke = text(".ci/smoke.py")
    assert all(f'"{version}"' in smoke for version in PYTHONS)


def test_the_authors_are_named_alike_and_nobody_is_written_to():
    for name in ("CITATION.cff", "pyproject.toml"):
        assert "The dpcurate developers" in text(name)
    for name in ("CITATION.cff", "SECURITY.md"):
        assert not re.search(r"https?://|\S@\S+\.", text(name)), name
