"""`dpcurate discover --not-private`: it runs what has no guarantee, and says so at every turn."""

from __future__ import annotations

import io
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from dpcurate import Discovery, Schema, networks
from dpcurate.cli import main
from dpcurate.cli.not_private import MARK, WORDS
from dpcurate.learn.methods import listed

EXACT = [("proved", name) for name, entry in listed().items() if not entry.private]
PUBLISHED = [("published", name) for name in listed("published")]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    words = ["network", "sample", "cancer", "--rows", "2000", "--seed", "1", "-o", str(folder / "cancer.parquet")]
    assert main(words) == 0
    replace(networks.load("cancer").schema, rows=2000).save(folder / "cancer.toml")
    return folder


@pytest.fixture
def here(world, tmp_path, monkeypatch):
    for name in ("cancer.parquet", "cancer.toml"):
        (tmp_path / name).symlink_to(world / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def discover(*words):
    return main(["discover", "cancer.parquet", "--schema", "cancer.toml", *words])


@pytest.mark.parametrize(("variant", "method"), [*EXACT, *PUBLISHED])
def test_every_method_without_a_guarantee_runs_and_says_so(here, capsys, variant, method):
    assert discover("--method", method, "--variant", variant, "--not-private") == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"# {WORDS}\n")
    assert err.startswith(WORDS)
    assert f"\n{WORDS}" in err
    assert set(os.listdir()) == {"cancer.parquet", "cancer.toml"}  # nothing is remembered


def test_every_file_says_so(here, capsys):
    assert discover("--method", "pc", "--not-private", "-o", "result") == 0
    assert set(os.listdir("result")) == {f"{MARK}{name}" for name in Discovery.FILES}
    assert WORDS in Path("result", f"{MARK}report.html").read_text(encoding="utf-8")
    stated = json.loads(Path("result", f"{MARK}report.json").read_text(encoding="utf-8"))["privacy"]
    assert stated["private"] is False
    assert stated["statement"].startswith(WORDS)
    assert discover("--method", "pc", "--not-private", "-o", "result") == 1
    assert "--force" in capsys.readouterr().err


def test_the_progress_line_says_so(here, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr("dpcurate.cli.terminal.REDRAW", 0.0)
    assert discover("--method", "pc", "--not-private") == 0
    drawn = [line for line in screen.getvalue().split("\r") if "[####" in line]
    assert drawn
    assert all(WORDS in line for line in drawn)


@pytest.mark.parametrize(("variant", "method"), [("proved", "pc"), ("proved", "notears"), ("published", "em-pc")])
def test_without_the_flag_it_is_refused_by_name(here, capsys, variant, method):
    assert discover("--method", method, "--variant", variant, "--epsilon", "1") == 1
    out, err = capsys.readouterr()
    assert "--not-private" in err
    assert not out


@pytest.mark.parametrize("method", ["auto", "em-pc"])
def test_a_private_method_is_refused_with_the_flag(here, capsys, method):
    assert discover("--method", method, "--epsilon", "1", "--not-private") == 1
    assert f"{method} is private: leave out --not-private" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--ledger", "new.ledger"], "Leave out --ledger"),
        (["--delta", "1e-6"], "--delta"),
        (["--neighbours", "replace"], "--neighbours"),
        (["--name", "cancer"], "--name"),
        (["--epsilon", "1"], "takes no epsilon"),
    ],
)
def test_what_belongs_to_a_guarantee_is_refused(here, capsys, words, hint):
    assert discover("--method", "pc", "--not-private", *words) == 1
    assert hint in capsys.readouterr().err
    assert not Path("new.ledger").exists()


@pytest.mark.parametrize(("ledger", "schema"), [("cancer.ledger", "other.toml"), ("kept.ledger", "cancer.toml")])
def test_a_table_with_a_ledger_is_refused(here, capsys, ledger, schema):
    Schema.of({"a": ("no", "yes")}).save("other.toml")
    assert main(["ledger", "init", ledger, "--table", "t", "--schema", schema, "--epsilon", "1"]) == 0
    before = Path(ledger).read_bytes()
    capsys.readouterr()
    assert discover("--method", "pc", "--not-private") == 1
    out, err = capsys.readouterr()
    assert ledger in err
    assert "Nothing was read" in err
    assert not out
    assert Path(ledger).read_bytes() == before


def test_the_ledger_of_another_table_is_no_hindrance(here):
    Schema.of({"a": ("no", "yes")}).save("other.toml")
    Path("broken.ledger").write_text("no ledger")
    assert main(["ledger", "init", "other.ledger", "--table", "t", "--schema", "other.toml", "--epsilon", "1"]) == 0
    assert discover("--method", "pc", "--not-private") == 0


@pytest.mark.parametrize("method", ["curate-pc", "noleaks", "svt-pc"])
def test_epsilon_is_what_the_authors_would_claim(here, capsys, method):
    claims = []
    for epsilon in ("0.5", "5"):
        words = ["--method", method, "--variant", "published", "--not-private", "--insecure-seed", "1"]
        assert discover(*words, "--epsilon", epsilon) == 0
        claims.append(float(capsys.readouterr().err.split("would claim epsilon = ")[1].split()[0].rstrip(",;")))
    assert claims[1] > 3 * claims[0]
