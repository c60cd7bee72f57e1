"""The guide to several sites: its commands run as printed. Its Python runs in tests/test_docs.py."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from dpcurate import Codebook, networks
from dpcurate.cli import main
from pages import ROOT

GUIDE = (ROOT / "docs" / "pooling.md").read_text(encoding="utf-8")


def test_the_commands_run_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(line) for line in re.findall(r"^    (dpcurate .*)$", GUIDE, re.MULTILINE)]
    assert {words[2] for words in commands if words[1] == "study"} == {"new", "show", "answer", "combine"}
    for words in commands:
        assert main(words[1:]) == 0, words
    assert Path("result/report.html").exists()


def test_the_map_is_one_for_the_study() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    schema = networks.load("cancer").schema
    book = Codebook.loads(block)
    assert book.to_study(book.at_site(schema)).names == schema.names


def test_the_guide_is_short() -> None:
    assert len(GUIDE.split("<!-- figures -->")[0].split()) < 1500
