"""`dpcurate ask`, as a person and as a script would use it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcurate import Categorical, Numeric, Schema
from dpcurate.cli import main
from dpcurate.cli.ask import _columns
from dpcurate.private.ledger import Ledger

ROWS = 5_000
SCHEMA = Schema((Categorical("sex", ("f", "m")), Numeric("age", 0, 100, bins=4), Numeric("pay, net", 0, 1000)))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with a table and its schema."""
    folder, random = tmp_path_factory.mktemp("asked"), np.random.default_rng(2)
    with (folder / "people.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(SCHEMA.names)
        cells = random.choice(["f", "m"], ROWS), random.integers(0, 100, ROWS), random.normal(500, 100, ROWS)
        rows.writerows(zip(*cells, strict=True))
    SCHEMA.save(folder / "people.toml")
    return folder


@pytest.fixture
def here(world, tmp_path, monkeypatch):
    for name in ("people.csv", "people.toml"):
        (tmp_path / name).symlink_to(world / name)
    monkeypatch.chdir(tmp_path)
    assert main(["ledger", "init", "l", "--table", "people", "--schema", "people.toml", "--epsilon", "2"]) == 0
    return tmp_path


def ask(*words: str, ledger: str | None = "l") -> int:
    kept = [] if ledger is None else ["--ledger", ledger]
    return main(["ask", "people.csv", "--schema", "people.toml", *kept, *words])


def spent() -> float:
    return Ledger.open("l").spent


def test_counts_come_as_a_table_after_what_they_cost(here, capsys):
    capsys.readouterr()
    assert ask("--counts", "age, sex", "--epsilon", "0.5", "--by", "me", "--purpose", "table 1") == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].split() == ["age", "sex", "count", "error"]
    assert re.search(r"this will cost epsilon = 0.5, delta = 1e-10 \(rho = 0.003\d+\), \d\.\d\d% of what is left", err)
    assert "8 counts of age, sex of 'people.csv'" in err
    noise = re.search(r"noise of standard deviation (\S+) on every count", err)
    assert noise is not None
    assert f"(noise of standard deviation {noise[1]} on every count" in out  # what was said is what came
    (run,) = Ledger.open("l").log()
    assert (run.facts.method, run.facts.by, run.facts.purpose) == ("ask counts", "me", "table 1")
    assert run.outcome == "finished"
    assert main(["ledger", "log", "l"]) == 0
    assert "table 1" in capsys.readouterr().out


def test_means_and_quantiles_by_names_with_commas_too(here, capsys):
    assert ask("--mean", "pay, net", "--epsilon", "1") == 0
    assert abs(float(capsys.readouterr().out.split("pay, net")[1].split()[0]) - 500) < 30
    assert ask("--quantiles", "pay, net", "0.25,0.5", "--epsilon", "1", "--csv", ledger=None) == 0
    head, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    assert head == ["quantile of pay, net", "value", "low", "high"]
    assert [row[0] for row in rows] == ["0.25", "0.5"]
    assert float(rows[1][2]) <= 500 <= float(rows[1][3])


def test_json_has_what_it_cost_and_a_file_is_written(here, capsys):
    assert ask("--counts", "sex", "--epsilon", "0.5", "--json", "-o", "a.csv") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["run"]["number"] == 1
    rows = list(csv.reader(io.StringIO(Path("a.csv").read_text())))
    assert [float(row[1]) for row in rows[1:]] == [row["value"] for row in told["tables"][0]["rows"]]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--counts", "sx"), "did you mean 'sex'"),
        (("--counts", "pay, net"), "ask for its mean or its quantiles"),
        (("--mean", "sex"), "no mean"),
        (("--quantiles", "age", "0.5,half"), "numbers between 0 and 1"),
        (("--counts", "sex", "-o", "a.xlsx"), "unsupported suffix '.xlsx'; use .csv, .json or .txt"),
        (("--counts", "sex", "-o", "people.toml"), "is the schema of this run and is never overwritten"),
        (("--counts", "sex", "-o", "./people.csv", "--force"), "is the table of this run and is never overwritten"),
        (("--counts", "sex", "-o", "nowhere/a.csv"), "no folder"),
        (("--counts", "sex", "--epsilon", "3"), "is left; nothing was read"),
        (("--counts", "sex", "--delta", "1e-3"), "counts with delta"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_before_anything_is_spent(here, capsys, words, why):
    assert ask("--epsilon", "0.5", *words) == 1
    err = capsys.readouterr().err
    assert why in err
    assert "before any row is read" not in err
    assert spent() == 0
    assert Ledger.open("l").log() == ()


def test_a_folder_that_cannot_be_written_is_found_out_before_anything_is_spent(here, capsys, monkeypatch):
    def read_only(*_: Any, **__: Any) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr("dpcurate._files.os.open", read_only)
        assert ask("--counts", "sex", "--epsilon", "0.5", "-o", "a.csv") == 1
    assert "cannot write to the folder '.': Read-only file system; nothing was read or spent" in capsys.readouterr().err
    assert spent() == 0


@pytest.mark.parametrize("words", [(), ("--counts", "sex", "--mean", "age"), ("--counts", "sex", "--json", "--csv")])
def test_one_question_in_one_form(here, capsys, words):
    with pytest.raises(SystemExit):
        ask("--epsilon", "1", *words)
    assert "usage: dpcurate ask" in capsys.readouterr().err


def test_an_answer_that_could_not_be_written_is_shown_and_the_same_command_pays_nothing(here, capsys, monkeypatch):
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("dpcurate._files.os.fsync", full)
        assert ask("--counts", "sex", "--epsilon", "0.5", "-o", "a.csv") == 1
    first, paid = capsys.readouterr().out, spent()
    assert "count" in first
    assert ask("--counts", "sex", "--epsilon", "0.5", "-o", "a.csv") == 0
    out, err = capsys.readouterr()
    assert out == first
    assert "this resumes run 1" in err
    assert spent() == paid


def test_an_answer_is_shown_again_for_nothing_and_the_same_question_says_so(here, capsys):
    for _ in range(2):
        assert ask("--counts", "sex", "--epsilon", "0.1", "--csv") == 0
    first, err = capsys.readouterr()
    assert err.count("note: run 1 asked the same") == 1
    assert "dpcurate ask --from-answers l 1" in err
    paid = spent()
    assert main(["ask", "--from-answers", "l", "1", "--csv", "-o", "again.csv"]) == 0
    out, err = capsys.readouterr()
    assert first.splitlines()[-6:-3] == out.splitlines()
    assert Path("again.csv").read_text() == out
    assert "nothing is spent" in err
    assert spent() == paid
    for words, why in ((("--epsilon", "1"), "leave out --epsilon"), (("--purpose", "x"), "leave out --purpose")):
        assert main(["ask", "--from-answers", "l", *words]) == 1
        assert why in capsys.readouterr().err


def test_a_seed_is_said_not_to_be_private(here, capsys):
    assert ask("--counts", "sex", "--epsilon", "1", "--insecure-seed", "1", ledger=None) == 0
    assert capsys.readouterr().err.count("NOT PRIVATE") == 2


def test_help_shows_examples_that_can_be_typed(capsys):
    with pytest.raises(SystemExit):
        main(["ask", "--help"])
    told = capsys.readouterr().out
    assert "--counts age,sex --epsilon 0.1" in told
    assert "--quantiles income 0.25,0.5,0.75" in told


def test_a_name_with_a_comma_stands_in_quotes_beside_others():
    schema = Schema(tuple(Categorical(x, ("u", "v")) for x in ("a,b", 'say "c"', "d")))
    for text, names in (("a,b", ("a,b",)), ('"a,b", d', ("a,b", "d")), ('say "c",d', ('say "c"', "d"))):
        assert _columns(text, schema) == names
