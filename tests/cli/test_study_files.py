"""`dpcurate study`, as a coordinator and three sites would use it."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from dpcurate import Ledger, networks
from dpcurate.cli import main

NETWORK = networks.load("cancer")
SITES = ("berlin", "oslo", "rome")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with a schema and the tables of three sites."""
    folder = tmp_path_factory.mktemp("study")
    NETWORK.schema.save(folder / "study.toml")
    for seed, name in enumerate(SITES):
        table = NETWORK.sample(4000, seed=seed)
        rows = zip(*table.values(), strict=True)
        text = "\n".join([",".join(table), *(",".join(map(str, row)) for row in rows)])
        (folder / f"{name}.csv").write_text(f"{text}\n")
    return folder


@pytest.fixture
def here(world, tmp_path, monkeypatch):
    for path in world.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def new(*words: str) -> int:
    return main(["study", "new", "--schema", "study.toml", "--sites", *SITES, "--epsilon", "1", *words])


def answer(site: str, study: str, output: str, *words: str) -> int:
    where = ["--site", site, "--ledger", f"{site}.ledger", "-o", output]
    return main(["study", "answer", study, f"{site}.csv", *where, *words])


def test_a_study_goes_from_file_to_file_to_a_result(here, capsys):
    assert new("-o", "study.json", "--purpose", "a trial") == 0
    assert "round 1 of at most 4" in capsys.readouterr().err
    study, number = "study.json", 1
    while study:
        for site in SITES:
            assert answer(site, study, f"{site}{number}.json", "--yes") == 0
        said = capsys.readouterr()
        assert said.out == ""
        assert "purpose a trial" in said.err
        assert f"round {number} releases Contrasts(" in said.err
        assert ("which is new" in said.err) == (number == 1)
        files = [f"{site}{number}.json" for site in SITES]
        assert main(["study", "combine", study, *files, "-o", f"out{number}"]) == 0
        study, number = (f"out{number}/study.json" if Path(f"out{number}/study.json").exists() else ""), number + 1
    said = capsys.readouterr()
    assert "3 sites, each with a promise and a ledger of its own" in said.err
    assert "P(edge)" in said.out
    assert Path(f"out{number - 1}/report.html").exists()
    for site in SITES:
        ledger = Ledger.open(f"{site}.ledger")
        assert ledger.remaining == pytest.approx(0, abs=1e-6)
        assert {run.facts.purpose for run in ledger.log()} == {"a trial"}


def test_nothing_is_read_before_a_person_agrees(here, capsys, monkeypatch):
    new("-o", "study.json", "--rounds", "1")
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert answer("oslo", "study.json", "oslo.json") == 1
    assert "add --yes" in capsys.readouterr().err
    terminal = io.StringIO("n\n")
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdin", terminal)
    assert answer("oslo", "study.json", "oslo.json") == 1
    assert "stopped before anything was read or spent" in capsys.readouterr().err
    assert not Path("oslo.ledger").exists()
    assert not Path("oslo.json").exists()
    terminal = io.StringIO("y\n")
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdin", terminal)
    assert answer("oslo", "study.json", "oslo.json") == 0
    before = Path("oslo.json").read_bytes()
    assert answer("oslo", "study.json", "oslo.json") == 1  # a file that is there is left as it is
    assert answer("oslo", "study.json", "again.json") == 0  # free, so nobody is asked
    assert Path("again.json").read_bytes() == before
    assert "answered before, free" in capsys.readouterr().err


def test_a_site_s_own_names_are_mapped(here, capsys):
    new("-o", "study.json", "--rounds", "1")
    text = Path("oslo.csv").read_text()
    Path("eigen.csv").write_text(text.replace("Smoker", "Raucher", 1))
    Path("oslo.map").write_text('[map.Smoker]\ncolumn = "Raucher"\n')
    words = ["--site", "oslo", "--ledger", "oslo.ledger", "--map", "oslo.map", "--yes", "-o", "oslo.json"]
    assert main(["study", "answer", "study.json", "eigen.csv", *words]) == 0
    assert main(["study", "show", "oslo.json"]) == main(["study", "show", "study.json"]) == 0
    said = capsys.readouterr().out
    assert "answer of site 'oslo' to round 1" in said
    assert "noised numbers" in said
    assert "may spend epsilon = 1" in said


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["combine", "study.json", "study.json", "-o", "out"], "this is a study, and an answer is needed here"),
        (["combine", "none.json", "study.json", "-o", "out"], "there is no study"),
        (["combine", "study.toml", "study.json", "-o", "out"], "not JSON"),
        (["answer", "study.json", "oslo.csv", "--site", "x", "--ledger", "l", "-o", "x.json"], "'x' is no site"),
        (["answer", "study.json", "oslo.csv", "--site", "oslo", "--ledger", "l", "-o", "x.txt"], "unsupported suffix"),
        (["answer", "study.json", "oslo.csv", "--site", "oslo", "--ledger", "l", "-o", "study.json"], "overwritten"),
        (["show", "oslo.csv"], "not JSON"),
    ],
)
def test_mistakes_are_refused_in_a_sentence(words, hint, here, capsys):
    new("-o", "study.json")
    assert main(["study", *words]) == 1
    assert hint in capsys.readouterr().err
    assert not Path("l").exists()
