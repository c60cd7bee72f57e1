"""The documents tell the truth: their code runs, their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpcurate.cli import main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUNNING = [p for p in PAGES if "```python" in p.read_text(encoding="utf-8")]


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("page", RUNNING, ids=lambda p: p.name)
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(page):
        exec(compile(block, page.name, "exec"), names)


def commands():
    """The command lines of the README, without their remarks."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return [line.split("#")[0].split() for line in re.findall(r"^    (dpcurate .*)$", text, flags=re.MULTILINE)]


def test_the_readmes_commands_run_as_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["network", "sample", "cancer", "--rows", "20000", "-o", "patients.parquet"]) == 0
    assert [words[1] for words in commands()] == ["schema", "plan", "discover", "ledger", "ledger", "discover", "diff"]
    for words in commands():
        extra = ["--worlds", "1"] if words[1] == "plan" else []
        assert main([*words[1:], *extra]) == 0, words
    assert Path("result/report.html").exists()
    assert "gaussian" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_documents_speak_of_the_project_alone():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert "/work/" not in text, page.name
        assert "/tmp/" not in text, page.name
