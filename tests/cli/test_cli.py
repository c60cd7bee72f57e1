"""The command line, as a person and as a script would use it."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

from dpcurate import Budget, Curator, Schema, networks
from dpcurate._messages import one_line, printable
from dpcurate.accounting import Cost, Event, epsilon_of
from dpcurate.cli import main
from dpcurate.cli.options import existing
from dpcurate.cli.parser import build
from dpcurate.cli.terminal import Bar, RunProgress, aligned
from dpcurate.errors import FormatError, LedgerError, SourceError
from dpcurate.graphs.formats import load, load_probabilities
from dpcurate.learn.methods import listed, private
from dpcurate.private.ledger import Ledger
from dpcurate.private.session import Session
from dpcurate.queries.proxies import Reporting, limited
from dpcurate.schema import TextFormat

DOCS = Path(__file__).parents[2] / "docs" / "choosing-epsilon.md"
FILES = {"report.html", "report.json", "graph.json", "graph.dot", "graph.graphml", "edges.csv"}


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """A folder with rows of Asia and their schema."""
    folder = tmp_path_factory.mktemp("world")
    words = ["network", "sample", "asia", "--rows", "20,000", "--seed", "1", "-o", str(folder / "asia.parquet")]
    assert main(words) == 0
    replace(networks.load("asia").schema, rows=20_000).save(folder / "asia.toml")
    return folder


@pytest.fixture
def here(world, tmp_path, monkeypatch):
    """An empty folder to work in, with the table and schema at hand."""
    for name in ("asia.parquet", "asia.toml"):
        (tmp_path / name).symlink_to(world / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def discover(*words):
    return main(["discover", "asia.parquet", "--schema", "asia.toml", *words])


def shell(*words, **options):
    """The same in a process of its own."""
    command = [sys.executable, "-W", "error", "-m", "dpcurate.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


# --- discover ---------------------------------------------------------------------------------------------


def test_discover_in_a_pipe(here, capsys):
    assert discover("--epsilon", "1") == 0
    out, err = capsys.readouterr()
    edges = out.splitlines()
    assert edges
    assert all(
        re.fullmatch(r"\w+ (->|--) \w+(  P\(edge\) [=<>] \S+, .*?)?(: \w+ causes \w+.*)?", line) for line in edges
    )
    assert f"{len(edges)} edges among 8 columns" in err
    assert set(os.listdir()) == {"asia.parquet", "asia.toml"}


def test_discover_at_a_cut(here, capsys):
    lines, said = {}, {}
    for cut in ("0.5", "0.95", "best-f1"):
        assert discover("--epsilon", "1", "--insecure-seed", "3", "--at", cut) == 0
        out, said[cut] = capsys.readouterr()
        lines[cut] = set(out.splitlines())
        drawn = "the edges of the highest expected F1" if cut == "best-f1" else f"P(edge) at least {cut}"
        assert drawn in said[cut]
    assert lines["0.95"] < lines["0.5"]
    assert re.search(r"\d undecided pairs?, neither drawn nor ruled out: ", said["0.95"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--at", "1.5"], "between 0 and 1, not 1.5"),
        (["--at", "best"], "did you mean 'best-f1'"),
        (["--direction", "0.3"], "between 0.5 and 1, not 0.3"),
        (["--at", "best-f1", "--direction", "0.6"], "arrows included"),
    ],
)
def test_a_cut_that_means_nothing_is_refused_before_anything_is_spent(here, capsys, words, said):
    assert discover("--epsilon", "1", "--ledger", "a.ledger", *words) == 1
    assert said in capsys.readouterr().err
    assert not Path("a.ledger").exists()


def test_a_cut_of_a_method_without_probabilities_still_hands_over(here, capsys):
    assert discover("--epsilon", "3", "--method", "em-pc", "--at", "0.9") == 0
    out, err = capsys.readouterr()
    assert out
    assert "em-pc gives no probabilities, so --at and --direction change nothing" in err


def test_discover_says_what_it_will_spend_before_it_reads(here, capsys, monkeypatch):
    class Reached(Exception):
        pass

    def opened(*_, **__):
        raise Reached

    monkeypatch.setattr("dpcurate.study.run_budget.RunBudget.open", opened)
    with pytest.raises(Reached):
        discover("--epsilon", "0.7", "--delta", "1e-6", "--method", "svt-pc", "--neighbours", "replace")
    err = capsys.readouterr().err
    for words in ("before any row is read", "epsilon = 0.7, delta = 1e-06", "28 pairs", "'asia.parquet'", "svt-pc"):
        assert words in err
    assert "neighbours: replace" in err
    assert "this spending is not recorded" in err


def test_discover_writes_six_files_that_agree(here, capsys):
    assert discover("--epsilon", "3", "-o", "deep/result") == 0
    out, err = capsys.readouterr()
    assert set(os.listdir("deep/result")) == FILES
    assert "deep/result/report.html" in err
    files = ("graph.json", "graph.dot", "graph.graphml", "edges.csv")
    *graphs, table = [load(Path("deep/result", name), "cpdag") for name in files]
    assert all(graph == graphs[0] for graph in graphs)
    assert (table.arrows, table.lines) == (graphs[0].arrows, graphs[0].lines)  # a table of edges has no other nodes
    *sure, of_table = [load_probabilities(Path("deep/result", name)) for name in files]
    assert all(one == sure[0] for one in sure)
    assert {frozenset(ends): probability.linked for ends, probability in of_table.items()} == {
        frozenset(ends): probability.linked for ends, probability in sure[0].items()
    }
    assert {frozenset(ends) for ends in sure[0]} == graphs[0].edges
    assert len(graphs[0].edges) == len(out.splitlines())
    record = json.loads(Path("deep/result/report.json").read_text())
    assert record["privacy"]["private"] is True
    assert record["privacy"]["budget"]["epsilon"] == 3
    page = Path("deep/result/report.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html")


def test_discover_tells_the_passes_over_a_table_that_stays_on_disk(here, capsys, monkeypatch):
    assert discover("--epsilon", "3") == 0
    assert "passes" not in capsys.readouterr().err  # collapsed when it was opened
    monkeypatch.setattr("dpcurate.private.sources.SMALL_DOMAIN", 4)
    monkeypatch.setattr("dpcurate.private.sources.pushed_down.SMALL_DOMAIN", 4)
    assert discover("--epsilon", "3") == 0
    assert "passes over the table: 2" in capsys.readouterr().err


def test_discover_refuses_to_overwrite_and_spends_nothing(here, capsys):
    assert main(["ledger", "init", "asia.ledger", "--table", "asia", "--schema", "asia.toml", "--epsilon", "2"]) == 0
    assert discover("--epsilon", "1", "-o", "result", "--ledger", "asia.ledger") == 0
    before, spent = Path("result/graph.json").read_bytes(), Ledger.open("asia.ledger").spent
    capsys.readouterr()
    assert discover("-o", "result", "--ledger", "asia.ledger") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "already holds report.html" in err
    assert "--force" in err
    assert Path("result/graph.json").read_bytes() == before
    assert Ledger.open("asia.ledger").spent == spent
    assert discover("--epsilon", "1", "-o", "result", "--force") == 0


def test_discover_into_a_folder_with_other_files(here):
    Path("result").mkdir()
    Path("result/notes.txt").write_text("mine")
    assert discover("--epsilon", "1", "-o", "result") == 0
    assert set(os.listdir("result")) == FILES | {"notes.txt"}


def test_output_that_cannot_be_written_is_found_before_spending(here, capsys):
    Path("file").write_text("")
    assert discover("--epsilon", "1", "-o", "file", "--ledger", "asia.ledger") == 1
    assert not Path("asia.ledger").exists()
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "file" in err


def test_a_report_that_fails_does_not_lose_the_edges(here, capsys, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpcurate._files.os.fsync", full)
    assert discover("--epsilon", "1", "-o", "result") == 1
    out, err = capsys.readouterr()
    edges, _, rest = out.partition("{")
    assert "--" in edges or "->" in edges
    assert len(json.loads("{" + rest)["edges"]) == len(edges.splitlines())  # all that report.json would hold
    assert "cannot write 'result/report.html': No space left on device" in err
    assert os.listdir("result") == []


def test_insecure_seed_repeats_and_says_so(here, capsys):
    runs = []
    for _ in range(2):
        assert discover("--epsilon", "0.5", "--insecure-seed", "7") == 0
        runs.append(capsys.readouterr())
    assert runs[0].out == runs[1].out
    assert runs[0].err.count("NOT PRIVATE") == 2
    assert discover("--epsilon", "0.5", "--insecure-seed", "7", "--ledger", "asia.ledger") == 1
    assert "simulation" in capsys.readouterr().err


@pytest.mark.parametrize(
    "method",
    [
        "em-pc",
        "auto",
    ],
)
def test_knowledge_is_kept(here, capsys, method):
    Path("known.toml").write_text('required_arrows = [["asia", "xray"]]\nforbidden_edges = [["smoke", "bronc"]]\n')
    assert discover("--epsilon", "5", "--knowledge", "known.toml", "--method", method) == 0
    out = capsys.readouterr().out.splitlines()
    assert any(line.startswith("asia -> xray") for line in out)
    assert not any("smoke" in line and "bronc" in line for line in out)
    Path("known.toml").write_text('required_arrows = [["asla", "xray"]]\n')
    assert discover("--epsilon", "5", "--knowledge", "known.toml") == 1
    assert "'asia'" in capsys.readouterr().err


def test_pure_budget(here, capsys):
    assert discover("--epsilon", "5", "--delta", "0") == 0
    assert "epsilon = 5, delta = 0" in capsys.readouterr().err


@pytest.mark.parametrize("method", list(private()))
def test_every_method(here, capsys, method):
    assert discover("--epsilon", "1", "--method", method) == 0
    assert f"method  {method}" in capsys.readouterr().err


# --- ledgers ----------------------------------------------------------------------------------------------


def test_a_ledger_is_shared_by_runs(here, capsys):
    assert main(["ledger", "init", "asia.ledger", "--table", "visits", "--schema", "asia.toml", "--epsilon", "2"]) == 0
    assert "'visits'" in capsys.readouterr().out
    assert discover("--ledger", "asia.ledger", "--epsilon", "0.5", "--method", "em-pc") == 0
    err = capsys.readouterr().err
    assert "may spend epsilon = 0.5" in err
    ledger = Ledger.open("asia.ledger")
    half = Budget(epsilon=0.5, delta=1e-10).rho
    assert 0 < ledger.spent <= half
    assert f"spent {epsilon_of(rho=ledger.spent, delta=1e-10):.4g} of 2" in err
    assert ledger.reserved == 0
    assert discover("--ledger", "asia.ledger", "--epsilon", "0.5", "--method", "curate-pc") == 0
    assert half < Ledger.open("asia.ledger").spent <= 2 * half
    capsys.readouterr()
    assert main(["ledger", "show", "asia.ledger", "--composition"]) == 0
    out = capsys.readouterr().out
    for words in ("table 'visits'", "ceiling  epsilon = 2", "choice among tests", "exponential", "Counts", "gaussian"):
        assert words in out
    for rule in ("basic", "advanced", "optimal", "adaptive", "rogers", "moments", "zcdp", "pld"):
        assert re.search(rf"^{rule} ", out, re.MULTILINE)
    # the groups add up to what is spent
    shares = [float(x) for x in re.findall(r"(\d+\.\d)%$", out, re.MULTILINE)]
    assert sum(shares) == pytest.approx(100 * Ledger.open("asia.ledger").spent / ledger.budget.rho, abs=0.2)


def test_all_that_is_left_then_nothing(here, capsys):
    assert discover("--ledger", "asia.ledger", "--epsilon", "0.2", "--method", "curate-pc") == 0
    assert "which is new" in capsys.readouterr().err
    ledger = Ledger.open("asia.ledger")
    assert discover("--ledger", "asia.ledger", "--epsilon", "0.2") == 1
    assert "is left" in capsys.readouterr().err
    ledger.charge([Event("gaussian", "the rest", Cost.concentrated(Fraction(ledger.remaining)))])
    assert discover("--ledger", "asia.ledger") == 1
    err = capsys.readouterr().err
    assert "nothing is left" in err
    assert "nothing was read" in err


def test_a_ledger_of_another_table(here, capsys):
    assert main(["ledger", "init", "asia.ledger", "--table", "t", "--schema", "asia.toml", "--epsilon", "1"]) == 0
    for words, hint in (
        (["--delta", "1e-5"], "leave delta out"),
        (["--neighbours", "replace"], "neighbours"),
        (["--table", "other"], "'other'"),
        (["--neighbours", "swap"], "add-remove"),
    ):
        assert discover("--ledger", "asia.ledger", *words) == 1
        assert hint in capsys.readouterr().err
    assert main(["ledger", "init", "asia.ledger", "--table", "t", "--schema", "asia.toml", "--epsilon", "1"]) == 1
    assert "never overwritten" in capsys.readouterr().err
    assert Ledger.open("asia.ledger").spent == 0
    assert discover("--ledger", "asia.ledger", "--name", "t", "--epsilon", "1") == 0


def test_ledger_show_refuses_what_is_none(here, capsys):
    assert main(["ledger", "show", "nothing"]) == 1
    assert "there is no ledger at 'nothing'" in capsys.readouterr().err
    assert main(["ledger", "show", "asia.toml"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_empty_and_pure_books(here, capsys):
    words = ["--table", "a\x1b[31m\nb", "--schema", "asia.toml", "--epsilon", "1", "--delta", "0"]
    assert main(["ledger", "init", "asia.ledger", *words]) == 0
    assert main(["ledger", "show", "asia.ledger"]) == 0
    out = capsys.readouterr().out
    assert "nothing yet" in out
    assert "\x1b" not in out
    assert "left     epsilon = 1 (100.0% of the ceiling)" in out


# --- stopping ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [[], ["--epsilon", "0.5"]])
def test_ctrl_c_leaves_the_ledger_right(here, capsys, monkeypatch, words):
    """After three answers: those three are paid for, nothing is left reserved, and it is said."""
    main(["ledger", "init", "asia.ledger", "--table", "t", "--schema", "asia.toml", "--epsilon", "1"])
    asked, real = [], Session.ask

    def ask(self, query):
        if len(asked) == 3:
            raise KeyboardInterrupt
        asked.append(query)
        return real(self, query)

    monkeypatch.setattr(Session, "ask", ask)
    capsys.readouterr()
    assert discover("--ledger", "asia.ledger", "-o", "result", "--method", "em-pc", *words) == 130
    out, err = capsys.readouterr()
    ledger = Ledger.open("asia.ledger")
    assert len(ledger.events) == 3
    assert ledger.reserved == 0
    assert ledger.spent == pytest.approx(float(sum(e.cost.rho for e in ledger.events)))
    assert out == ""
    assert "stopped before the end, nothing was written. Spent on this table: epsilon = 1" in err
    assert "the ledger records it" in err
    assert os.listdir("result") == []


@pytest.mark.parametrize("problem", [KeyboardInterrupt, SourceError("the table could not be read")])
def test_a_failure_without_a_ledger(here, capsys, monkeypatch, problem):
    """What was spent is told; a failure before anything was spent is only told as such."""
    real = Session.ask

    def ask(self, query):
        real(self, query)
        raise problem

    monkeypatch.setattr(Session, "ask", ask)
    code = 130 if problem is KeyboardInterrupt else 1
    assert discover("--epsilon", "1") == code
    assert "no ledger records it" in capsys.readouterr().err

    def refuse(self, query):
        raise problem

    monkeypatch.setattr(Session, "ask", refuse)
    assert discover("--epsilon", "1") == code
    err = capsys.readouterr().err
    assert "Spent" not in err
    assert ("before anything was spent" in err) == (code == 130)


INTERRUPTED = """
import os, signal, sys
from dpcurate.cli import main
from dpcurate.private.curator import Curator

ask = Curator.ask

def interrupted(self, query):
    answer = ask(self, query)
    os.kill(os.getpid(), signal.SIGINT)
    return answer

Curator.ask = interrupted
sys.exit(main(sys.argv[1:]))
"""


def test_a_real_interrupt(tmp_path):
    """SIGINT to a run under way, after its first answer."""
    child = networks.load("child")
    main(["network", "sample", "child", "--rows", "20000", "-o", str(tmp_path / "child.parquet")])
    replace(child.schema, rows=20_000).save(tmp_path / "child.toml")
    main(
        [
            "ledger",
            "init",
            str(tmp_path / "b"),
            "--table",
            "c",
            "--schema",
            str(tmp_path / "child.toml"),
            "--epsilon",
            "1",
        ]
    )
    words = ["discover", "child.parquet", "--schema", "child.toml", "--ledger", "b", "--method", "em-pc"]
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 130, run.stderr
    assert "Traceback" not in run.stderr
    assert "the ledger records it" in run.stderr
    ledger = Ledger.open(tmp_path / "b")
    assert ledger.spent > 0
    assert ledger.reserved == 0
    assert ledger.spent == pytest.approx(float(sum(e.cost.rho for e in ledger.events)))


def test_a_reader_that_leaves(here):
    """`dpcurate network list | head -0` neither complains nor fails."""
    run = subprocess.Popen(
        [sys.executable, "-m", "dpcurate.cli", "methods"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    run.stdout.close()
    err = run.stderr.read()
    run.stderr.close()
    assert run.wait() == 0
    assert err == ""


# --- schemas ----------------------------------------------------------------------------------------------


def test_draft_check_and_use(here, capsys):
    assert main(["schema", "draft", "asia.parquet", "-o", "draft.toml"]) == 0
    assert "looked at the data" in capsys.readouterr().err
    assert Schema.load("draft.toml").names == networks.load("asia").nodes
    assert main(["schema", "draft", "asia.parquet", "-o", "draft.toml"]) == 1
    assert "--force" in capsys.readouterr().err
    assert main(["schema", "draft", "asia.parquet"]) == 0
    assert capsys.readouterr().out == Path("draft.toml").read_text()
    assert main(["discover", "asia.parquet", "--schema", "draft.toml", "--epsilon", "1"]) == 0
    assert "still says that it was drafted" in capsys.readouterr().err


def test_check_is_for_the_owner(here, capsys):
    Path("odd.csv").write_text("asia,tub\nyes,no\n,yes\nmaybe,no\n")
    Path("odd.toml").write_text(Schema.of({"asia": ("no", "yes"), "tub": ("no", "yes")}).dumps())
    assert main(["schema", "check", "odd.csv", "--schema", "odd.toml", "--yes"]) == 0
    out, err = capsys.readouterr()
    assert "looks at the data" in err
    assert "not private" in err
    assert out.startswith("NOT PRIVATE, for the owner's eyes only\n3 rows, 1 of them used (33.3%)")
    assert "! asia: 33.3% of the rows are left out for a cell that is no level" in out
    assert "the table can be used with this schema" in out
    Path("odd.toml").write_text(Schema.of({"asai": ("no", "yes")}).dumps())
    assert main(["schema", "check", "odd.csv", "--schema", "odd.toml", "--yes"]) == 1
    assert "no column 'asai'; did you mean 'asia'?" in capsys.readouterr().err


def test_check_prints_to_a_terminal_only(here, capsys, monkeypatch):
    words = ["schema", "check", "asia.parquet", "--schema", "asia.toml"]
    opened = []
    monkeypatch.setattr(duckdb, "connect", lambda *a, **k: opened.append(a))
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert (out, opened) == ("", [])
    assert "standard output is no terminal: nothing was read. Run it in a terminal, or add --yes" in err
    monkeypatch.undo()
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(words) == 0
    assert "20,000 rows" in capsys.readouterr().out


def test_a_draft_tells_how_it_read_a_text_file(here, capsys):
    Path("t.csv").write_bytes("a;b\n1,5;ö\n2,5;x\n3;x\n".encode("windows-1252"))
    assert main(["schema", "draft", "t.csv", "-o", "t.toml"]) == 0
    err = capsys.readouterr().err
    assert "read as a text file separated by semicolons, in windows-1252, numbers with a decimal comma" in err
    assert "next: dpcurate schema check 't.csv' --schema 't.toml'" in err
    Path("t.csv").write_text("a\tb\n1,5\tx\n2\ty\n")
    for tab in ("tab", "\\t", "\t"):
        assert main(["schema", "draft", "t.csv", "--separator", tab, "--encoding", "latin-1", "--decimal", ","]) == 0
        assert Schema.loads(capsys.readouterr().out).file == TextFormat("\t", "latin-1", ",")


# --- plan, networks, methods, demo ------------------------------------------------------------------------


def test_plan(here, capsys):
    words = ["plan", "--schema", "asia.toml", "--rows", "2_000", "--epsilons", "0.1", "5", "--methods", "auto"]
    assert main([*words, "--worlds", "2", "--accuracy", "0.99", "-o", "plan.html"]) == 0
    out = capsys.readouterr().out
    assert "No private data was touched" in out
    assert "No epsilon tried reaches" in out
    assert Path("plan.html").read_text().startswith("<!doctype html>")
    assert main([*words, "-o", "plan.html"]) == 1
    assert "--force" in capsys.readouterr().err
    assert main([*words, "--worlds", "1"]) == 0
    assert "--accuracy" in capsys.readouterr().err


def test_network_sample_both_ways(here, capsys):
    common = ["network", "sample", "asia", "--rows", "500", "--seed", "3"]
    for name in ("a.parquet", "it's.csv"):
        assert main([*common, "-o", name, "--schema", f"{name}.toml"]) == 0
        assert main(["schema", "check", name, "--schema", f"{name}.toml", "--yes"]) == 0
        assert "500 rows, 500 of them used" in capsys.readouterr().out
    drawn = duckdb.sql("SELECT * FROM 'a.parquet'").fetchnumpy()
    expected = networks.load("asia").sample(500, seed=3)
    assert all((drawn[name] == expected[name]).all() for name in expected)
    assert main([*common, "-o", "a.parquet"]) == 1
    assert main([*common, "-o", "a.xlsx"]) == 1
    assert "use .parquet or .csv" in capsys.readouterr().err
    assert main([*common, "-o", "none/a.csv"]) == 1
    assert "no folder 'none'" in capsys.readouterr().err


def test_lists(capsys):
    assert main(["network", "list"]) == 0
    assert re.search(r"^asia +8 +8 +18$", capsys.readouterr().out, re.MULTILINE)
    assert main(["methods"]) == 0
    out = capsys.readouterr().out
    groups = ["recommended:", "from the CURATE paper:", "baselines:", "not private:"]
    assert [line for line in out.splitlines() if not line.startswith(" ")] == groups
    assert re.findall(r"^  (auto, measure-once|\S+)  ", out, re.MULTILINE) == [
        "auto, measure-once", *(name for name in listed() if name not in ("auto", "measure-once"))
    ]  # fmt: skip


def test_without_a_command_the_first_steps_are_shown(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    steps = re.findall(r"^  dpcurate (.*?)(?:   |$)", out, re.MULTILINE)
    assert [step.split()[0] for step in steps] == ["demo", "schema", "schema", "plan", "discover"]
    for step in steps:
        build().parse_args(step.split())


def test_a_run_says_what_it_spent_itself(here, capsys):
    schema = Schema.load("asia.toml").hash
    Ledger.create(
        "t.ledger", table="t", schema_hash=schema, neighbours="add-remove", budget=Budget(epsilon=2, delta=1e-10)
    )
    for said in ("; spent 1 of 2)", "; spent 1 in this run, 1.435 of 2)"):
        assert discover("--epsilon", "1", "--ledger", "t.ledger", "-o", "r", "--force") == 0
        assert said in capsys.readouterr().err
    spent = json.loads(Path("r/report.json").read_text())["privacy"]
    assert spent["spent_by_this_run"]["epsilon"] == pytest.approx(1)
    assert spent["spent"]["epsilon"] == pytest.approx(1.435, abs=0.001)


def test_demo_twice(here, capsys):
    """The second run replaces its files if it may."""
    assert main(["demo"]) == 0
    capsys.readouterr()
    assert main(["demo"]) == 1
    assert "already holds" in capsys.readouterr().err
    for _ in range(2):
        assert main(["demo", "--force"]) == 0
        out, err = capsys.readouterr()
        assert "--" in out or "->" in out
        assert "open demo/report.html in a browser" in err
        assert "true arrows" in err
    assert set(os.listdir("demo")) == FILES | {"asia.parquet", "asia.toml"}


# --- friendly ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["discover", "asai.parquet", "--schema", "asia.toml", "--epsilon", "1"], "did you mean 'asia.parquet'?"),
        (["discover", "asia.xlsx", "--schema", "asia.toml", "--epsilon", "1"], "did you mean 'asia.parquet'?"),
        (["discover", "asia.tml", "--schema", "asia.toml", "--epsilon", "1"], "there is no table at 'asia.tml'"),
        (["discover", "no/asia.parquet", "--schema", "asia.toml", "--epsilon", "1"], "there is no table at 'no/asia"),
        (["discover", "asia.parquet", "--schema", "asia.tml", "--epsilon", "1"], "did you mean 'asia.toml'?"),
        (["discover", "asia.parquet", "--schema", "asia.toml"], "--epsilon 1"),
        (["discover", "asia.parquet", "--schema", "asia.toml", "--epsilon", "-1"], "greater than 0"),
        (["discover", "asia.parquet", "--schema", "asia.toml", "--epsilon", "1", "--delta", "3"], "delta must be"),
        (["discover", "asia.parquet", "--schema", "asia.toml", "--epsilon", "1", "--method", "svtpc"], "'svt-pc'"),
        (["discover", "asia.parquet", "--schema", "asia.toml", "--epsilon", "1", "--neighbours", "x"], "'replace'"),
        (["discover", "asia.parquet", "--schema", "asia.toml", "--epsilon", "1", "--knowledge", "k"], "no knowledge"),
        (["network", "sample", "aisa", "--rows", "5", "-o", "a.csv"], "did you mean 'asia'?"),
        (["network", "sample", "asia", "--rows", "-5", "-o", "a.csv"], "rows must be"),
        (["plan", "--schema", "asia.toml", "--rows", "10", "--accuracy", "80", "--worlds", "1"], "accuracy"),
        (["plan", "--schema", "asia.toml", "--rows", "10", "-o", "p.pdf"], "use .html, .json or .txt"),
        (["plan", "--schema", "asia.toml", "--rows", "10", "--methods", "em_pc"], "did you mean 'em-pc'?"),
    ],
)
def test_refusals_are_one_sentence(here, capsys, words, hint):
    assert main(words) == 1
    err = capsys.readouterr().err.splitlines()
    last = err[-1]
    assert last.startswith("dpcurate: ")
    assert hint in last
    assert "Traceback" not in "".join(err)


def test_a_table_that_is_not_there_is_no_schema(here, capsys):
    Path("wage.toml").touch()
    assert main(["discover", "wage.xlsx", "--schema", "asia.toml", "--epsilon", "1"]) == 1
    assert "wage.toml" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["discvoer"], "there is no command 'discvoer'; did you mean 'discover'?"),
        (["schema", "drat"], "there is no command 'drat'; did you mean 'draft'?"),
        (["xyzzy"], "there is no command 'xyzzy'; it has 'discover', 'ask', "),
        (["audit", "em-pc", "--variant", "publish"], "there is no choice 'publish'; did you mean 'published'?"),
    ],
)
def test_a_mistyped_command_gets_a_suggestion(capsys, words, hint):
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert hint in capsys.readouterr().err


def test_a_column_that_the_table_lacks(here, capsys):
    Path("s.toml").write_text(Schema.of({"smoek": ("no", "yes"), "lung": ("no", "yes")}).dumps())
    assert main(["discover", "asia.parquet", "--schema", "s.toml", "--epsilon", "1", "--ledger", "asia.ledger"]) == 1
    assert "no column 'smoek'; did you mean 'smoke'?" in capsys.readouterr().err
    assert not Path("asia.ledger").exists()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["discover", "t", "--schema", "s", "--epsilon", "abc"], "--epsilon: 'abc' is not a number"),
        (["discover", "t", "--schema", "s", "--epsilon", "inf"], "'inf' is not a finite number"),
        (["plan", "--schema", "s", "--rows", "many"], "--rows: 'many' is not a whole number"),
        (["discover", "t"], "--schema"),
        (["discovr"], "discovr"),
        (["schema"], "COMMAND"),
        (["ledger", "init", "p", "--table", "t", "--schema", "s"], "--epsilon"),
    ],
)
def test_wrong_usage_is_2(capsys, words, hint):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert hint in capsys.readouterr().err


def test_names_are_untrusted_text(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    evil = "owned\nfake -> edge"  # other control characters are refused by the schema
    levels = ("no", "yes")
    columns_ = {evil: ["no", "yes"] * 500, "ü\u202e": ["no", "yes"] * 500}
    connection = duckdb.connect()
    connection.register("t", {k: np.array(v) for k, v in columns_.items()})
    connection.execute("COPY (SELECT * FROM t) TO 't.parquet' (FORMAT parquet)")
    Schema.of(dict.fromkeys(columns_, levels)).save("s.toml")
    assert main(["discover", "t.parquet", "--schema", "s.toml", "--epsilon", "50", "--method", "em-pc"]) == 0
    out = capsys.readouterr().out
    assert out == "owned\\nfake -> edge -- ü\\u202e\n"


def test_a_terminal_without_the_letters(here):
    Path("t.csv").write_text("größe,x\n" + "ja,ja\nnein,nein\n" * 500)
    Schema.of({"größe": ("ja", "nein"), "x": ("ja", "nein")}).save("s.toml")
    run = shell(
        "discover",
        "t.csv",
        "--schema",
        "s.toml",
        "--epsilon",
        "20",
        "--method",
        "em-pc",
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "gr\\xf6\\xdfe -- x\n"


# --- help -------------------------------------------------------------------------------------------------


def leaves(parser, path=()):
    """Every command that does something, with its words."""
    below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not below:
        yield path, parser
    for action in below:
        for name, child in action.choices.items():
            yield from leaves(child, (*path, name))
    if parser.verbs is not None:
        yield from leaves(parser.verbs, path)


COMMANDS = dict(leaves(build()))


def test_the_commands():
    expected = {
        "ask", "diff", "discover", "plan", "schema draft", "schema check", "schema export", "schema import",
        "ledger init", "ledger show", "ledger moved", "ledger log", "ledger record", "methods", "network list",
        "network sample", "audit", "reproduce", "demo", "serve", "serve token add", "serve token list",
        "serve token revoke", "serve approve", "serve deny", "serve log", "studio", "benchmark",
        "study new", "study key", "study answer", "study combine", "study show",
    }  # fmt: skip
    assert {" ".join(path) for path in COMMANDS} == expected


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_explains_every_argument(capsys, path):
    with pytest.raises(SystemExit) as stop:
        main([*path, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for action in COMMANDS[path]._actions:
        assert action.help
        if action.help == argparse.SUPPRESS:
            continue
        for option in action.option_strings or [action.metavar]:
            assert option in text


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_runs_something(path):
    args = COMMANDS[path].get_default("module"), COMMANDS[path].get_default("function")
    module = __import__(f"dpcurate.cli.{args[0]}", fromlist=[args[1]])
    assert callable(getattr(module, args[1]))


def test_examples_in_help_parse():
    for parser in COMMANDS.values():
        text = (parser.epilog or "").replace("\\\n", " ")
        for line in re.findall(r"^  dpcurate (.*)$", text, re.MULTILINE):
            build().parse_args(shlex.split(line))


def test_examples_in_the_docs_parse():
    lines = re.findall(r"^ {4}dpcurate (.*)$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) >= 4
    for line in lines:
        build().parse_args(line.split())


def test_shell_help_and_version():
    run = shell("--help")
    assert run.returncode == 0
    for name in ("discover", "diff", "plan", "schema", "ledger", "methods", "network", "demo", "exit codes"):
        assert name in run.stdout
    assert shell("--version").stdout.startswith("dpcurate 0.")
    assert shell("discover").returncode == 2


def test_the_parser_imports_nothing_heavy():
    """The package's own __init__ aside, help needs the standard library only."""
    code = (
        "import sys, dpcurate; before = set(sys.modules); import dpcurate.cli; dpcurate.cli.build();"
        "print([m for m in sys.modules if m not in before and m.startswith(('dpcurate.', 'numpy', 'duckdb', 'scipy'))])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    light = ("dpcurate.accounting", "dpcurate._messages")  # standard library only
    loaded = {m for m in eval(out) if not m.startswith(light)}
    mine = {"dpcurate.cli", *(f"dpcurate.cli.{name}" for name in ("arguments", "parser", "terminal"))}
    assert loaded <= {*mine, "dpcurate.errors"}


# --- parts ------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def curator(epsilon=5.0):
    schema = replace(networks.load("cancer").schema, rows=2000)
    return Curator(
        networks.load("cancer").sample(2000, seed=1),
        schema,
        budget=Budget(epsilon=epsilon, delta=1e-10),
        insecure_seed=1,
    )


def test_the_bar_shows_stage_tests_and_budget(monkeypatch):
    monkeypatch.setattr("dpcurate.cli.terminal.REDRAW", 0.0)
    screen = Terminal()
    bar = Bar(screen)
    asked = curator()
    private()["curate-pc"].fit(Reporting(asked, RunProgress(bar, lambda: asked.remaining)))
    bar.clear()
    drawn = screen.getvalue().split("\r")
    assert re.match(r"  order 0 \[#{20}\] 100% of the budget left, 10 tests", drawn[1])
    assert any("order 1" in line for line in drawn)
    left = [int(x) for x in re.findall(r"(\d+)% of", screen.getvalue())]
    assert left == sorted(left, reverse=True)
    assert left[-1] < 100
    assert drawn[-1] == "\x1b[K"


def test_the_bar_is_silent_in_a_pipe():
    stream = io.StringIO()
    bar = Bar(stream)
    asked = curator()
    private()["auto"].fit(Reporting(asked, RunProgress(bar, lambda: asked.remaining)))
    bar.clear()
    assert stream.getvalue() == ""


@pytest.mark.slow(but=["auto", "priv-pc", "svt-pc"])
@pytest.mark.parametrize("method", list(private()))
def test_watching_changes_nothing(method):
    seen = []
    made = private()[method]
    bare = made.fit(curator())
    observed = made.fit(Reporting(curator(), lambda stage, tests: seen.append((stage, tests))))
    assert bare.graph == observed.graph
    tables = {frozenset((*e.pair, *e.given)) for e in bare.evidence}
    # CURATE reads tests over the same columns off one table
    told = len(tables) if method == "curate-pc" else sum(bare.tests)
    assert sum(n for _, n in seen) >= told > 0


def test_a_share_is_the_most_that_is_spent():
    queryable = curator()
    start = queryable.ledger.spent
    with limited(queryable, 0.01) as part:
        assert part.remaining <= 0.01
        private()["svt-pc"].fit(part)
    assert 0 < queryable.ledger.spent - start <= 0.01
    with pytest.raises(LedgerError), limited(queryable, 0.01), queryable.reserve(0.001):
        pass
    with limited(queryable, None) as whole:
        assert whole is queryable


def test_texts(tmp_path, monkeypatch):
    assert printable("a\x1b[0m\u2066\tb\nc") == "a\\x1b[0m\\u2066\\tb\nc"
    assert one_line("a\nb") == "a\\nb"
    assert aligned([("a", "10"), ("bbb", "5")], right=frozenset((1,))) == "a    10\nbbb   5"
    monkeypatch.chdir(tmp_path)
    assert existing("part-*.parquet", "table") == "part-*.parquet"
    (tmp_path / "x.duckdb").touch()
    assert existing("x.duckdb#t", "table") == "x.duckdb#t"
    with pytest.raises(FormatError, match="there is no table at 'y'"):
        existing("y", "table")
