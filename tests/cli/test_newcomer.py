"""From a table to a page in four commands, on each kind of table, without an edit of the draft."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import which

import pytest

from dpcurate.cli import main
from surveys import KINDS, survey

CHROMIUM = which("chromium") or which("chromium-browser") or which("google-chrome")


def follow(name, capsys):
    """The path as `dpcurate` without a command prints it; the page is part of the result."""
    commands = (
        ["schema", "draft", name, "-o", "t.toml"],
        ["schema", "check", name, "--schema", "t.toml", "--yes"],
        ["plan", "--schema", "t.toml", "--rows", "4000", "--worlds", "1", "--epsilons", "3", "--methods", "auto"],
        ["discover", name, "--schema", "t.toml", "--epsilon", "3", "--ledger", "t.ledger", "-o", "result"],
    )
    for words in commands:
        assert main(words) == 0, (words, capsys.readouterr().err)


@pytest.mark.slow(but=["decimals.csv", "t.dta"])
@pytest.mark.parametrize("name", ["decimals.csv", "semicolons.csv", "t.dta", "t.parquet"])
def test_a_newcomers_path(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    KINDS[name](survey(4000), Path(name))
    follow(name, capsys)
    said = capsys.readouterr()
    assert "4,000 rows, 4,000 of them used (100.0%)" in said.out
    assert "nothing stands out" in said.out
    found = json.loads(Path("result/report.json").read_text(encoding="utf-8"))
    assert {frozenset((e["a"], e["b"])) for e in found["edges"]} >= {
        frozenset(("age", "health")),
        frozenset(("age", "smoker")),
    }
    _check_page(Path("result/report.html"))


def _check_page(path):
    driver = pytest.importorskip("playwright.sync_api", reason="browser tests need playwright: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("browser tests need a chromium: apt-get install chromium")
    with driver.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        tab, wrong = browser.new_page(), []
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.goto(path.resolve().as_uri())
        names = tab.locator("#graph .node text").all_text_contents()
        browser.close()
    assert wrong == []
    assert sorted(names) == sorted(["age", "income", "smoker", "trust", "health", "town"])
