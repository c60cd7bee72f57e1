"""Asked before a budget is spent for nothing; and the verdict, told with every result."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from dpcurate import Budget, Curator, Schema, networks, plan
from dpcurate.cli import main
from dpcurate.cli.terminal import Bar, Countdown
from dpcurate.planning.estimate import estimate
from dpcurate.result.verdict import HOPELESS
from dpcurate.study.calls import fit


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["network", "sample", "asia", "--rows", "500", "--seed", "1", "-o", "asia.csv"]) == 0
    schema = networks.load("asia").schema
    schema.save("unsaid.toml")
    replace(schema, rows=500).save("few.toml")
    replace(schema, rows=1_000_000).save("many.toml")
    return tmp_path


def discover(schema, *words, epsilon="0.05"):
    return main(["discover", "asia.csv", "--schema", schema, "--epsilon", epsilon, "--ledger", "a.ledger", *words])


def test_without_a_terminal_it_refuses_and_spends_nothing(here, capsys):
    assert discover("few.toml") == 1
    said = capsys.readouterr().err
    assert "8 columns, 500 rows and epsilon = 0.05" in said
    assert "nothing was read or spent" in said
    assert "--yes" in said
    assert not (here / "a.ledger").exists()
    assert discover("few.toml", "--yes") == 0
    assert (here / "a.ledger").exists()
    said = capsys.readouterr().err
    assert "leave mostly noise" in said
    assert "MOSTLY NOISE.\n" in said


def test_it_says_what_would_do(here, capsys):
    assert discover("few.toml") == 1
    told = capsys.readouterr().err.split("takes about epsilon = ")[1].split(";")[0]
    epsilon, rows = told.split(" or ")
    facts = Schema.load("few.toml")
    for words in ((500, float(epsilon)), (int(rows.split()[0].replace(",", "")), 0.05)):
        power = estimate(facts, words[0], budget=Budget(epsilon=words[1], delta=1e-10))
        assert power.f1 == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("yes\n", 0), ("n\n", 1), ("\n", 1), ("", 1)])
def test_on_a_terminal_it_asks(here, capsys, monkeypatch, answer, code):
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert discover("few.toml") == code
    assert "Spend the budget anyway?" in capsys.readouterr().err
    assert (here / "a.ledger").exists() == (code == 0)


def test_it_does_not_ask_without_rows_or_where_it_is_worth_while(here, capsys):
    assert discover("unsaid.toml") == 0
    assert discover("many.toml", "--ledger", "b.ledger") == 0
    assert "anyway?" not in capsys.readouterr().err


def test_what_is_expected_is_said_before_a_run_and_is_the_plans_figure(here, capsys):
    assert discover("many.toml") == 0
    said = capsys.readouterr().err.split("MOSTLY NOISE")[0]
    cell = plan("many.toml", 1_000_000, epsilons=(0.05,), worlds=1).cells["auto", 0.05]
    assert f"skeleton F1 about {cell.f1:.2f} ({cell.low:.2f} to {cell.high:.2f} in 8 of 10 tables)" in said


def test_a_part_set_aside_for_a_model_finds_no_edges(here, capsys):
    """What is expected is expected of the rest."""
    rows = replace(Schema.load("few.toml"), rows=2500)
    rows.save("some.toml")
    assert estimate(rows, 2500, budget=Budget(epsilon=0.5, delta=1e-10)).f1 > HOPELESS
    assert discover("some.toml", "--quantify", "0.95", "-o", "out", epsilon="0.5") == 1
    assert "leave mostly noise" in capsys.readouterr().err


@pytest.mark.parametrize(("answer", "code"), [("300\n", 1), ("1,000,000\n", 0), ("\n", 0), ("many\n", 1), ("0\n", 1)])
def test_without_rows_in_the_schema_it_asks_for_a_rough_number(here, capsys, monkeypatch, answer, code):
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert discover("unsaid.toml") == code
    assert "Roughly how many rows" in capsys.readouterr().err
    assert (here / "a.ledger").exists() == (code == 0)


def test_rows_may_be_said_in_the_command(here, capsys):
    assert discover("unsaid.toml", "--rows", "300") == 1
    assert "8 columns, 300 rows" in capsys.readouterr().err
    assert discover("unsaid.toml", "--rows", "-3") == 1
    assert "at least 1, not -3" in capsys.readouterr().err
    assert not (here / "a.ledger").exists()
    assert discover("unsaid.toml") == 0
    assert "note: without a rough public number of rows" in capsys.readouterr().err


def test_what_is_left_of_a_ledger_counts(here, capsys):
    """A large ceiling of which a small share is asked for is a small budget."""
    words = ["--table", "asia", "--schema", "few.toml", "--epsilon", "20"]
    assert main(["ledger", "init", "a.ledger", *words]) == 0
    assert discover("few.toml") == 1
    assert "nothing was read or spent" in capsys.readouterr().err
    assert discover("few.toml", epsilon="20") == 0


def test_the_verdict_is_at_the_top_of_everything(here):
    network = networks.load("asia")
    hopeless, fine = (
        fit(Curator(network.sample(rows, seed=1), network.schema, budget=Budget(epsilon=e, delta=1e-10)))
        for rows, e in ((300, 0.05), (100_000, 10))
    )
    assert hopeless.verdict.level == "hopeless"
    assert fine.verdict.level == "fine"
    assert str(hopeless).startswith("MOSTLY NOISE.\n")
    assert str(fine).startswith("Power: good.\n")
    for found, banner in ((hopeless, True), (fine, False)):
        page = found.report(here / "r.html").read_text()
        assert ('class="banner" role="alert"' in page) == banner
        assert page.index(found.verdict.title) < page.index("<main>")
        assert found.verdict.title in found._repr_html_()
        assert ('role="alert"' in found._repr_html_()) == banner
        assert json.loads(found.report(here / "r.json").read_text())["verdict"]["level"] == found.verdict.level


def test_a_method_that_does_not_know_its_noise_has_no_verdict(here):
    network = networks.load("cancer")
    found = fit(Curator(network.sample(2000, seed=1), network.schema, budget=Budget(epsilon=1, delta=1e-10)), "em-pc")
    assert found.verdict is None
    assert found.to_dict()["verdict"] is None
    assert "noise" not in found._repr_html_().lower().replace("noised", "")


@pytest.mark.parametrize("name", ["asia", "child"])
def test_the_estimate_rises_with_rows_and_epsilon(name):
    schema = networks.load(name).schema
    worth = [
        [estimate(schema, rows, budget=Budget(epsilon=e, delta=1e-10)).f1 for e in (0.01, 0.03, 0.1, 0.3, 1, 3, 10)]
        for rows in (300, 1000, 3000, 10_000, 30_000, 100_000, 1_000_000)
    ]
    for lines in (worth, list(zip(*worth, strict=True))):
        assert all(list(line) == sorted(line) for line in lines)
        assert all(len(set(line)) == len(line) for line in lines)
    assert worth[0][0] < HOPELESS < 0.9 < worth[-1][-1]


@pytest.mark.slow
def test_the_estimate_is_near_what_a_run_then_measures():
    for name, low in (("cancer", 0.5), ("sachs", 0.6), ("child", 0.6)):
        network = networks.load(name)
        for rows, epsilon in ((20_000, 0.3), (20_000, 3)):
            budget = Budget(epsilon=epsilon, delta=1e-10)
            found = fit(Curator(network.sample(rows, seed=1), network.schema, budget=budget, insecure_seed=1))
            guess = estimate(network.schema, rows, budget=budget).effect
            assert low < guess / found.verdict.effect < 1 / low


def test_a_plan_tells_the_time_left_where_there_is_no_terminal(capsys):
    now = iter([0.0, 1.0, 3.0, 4.0, 9.0, 20.0])
    countdown = Countdown(Bar(), clock=lambda: next(now))
    for done in range(5):
        countdown(done, 4)
    lines = capsys.readouterr().err.splitlines()
    # at 1 s, not at 3 or 4 s, at 9 s since 5 s have gone by, and at the end
    assert lines == ["worlds: 0 of 4", "worlds: 3 of 4, about 3 s left", "worlds: 4 of 4"]


def test_on_a_terminal_it_is_a_bar(capsys):
    stream = Terminal()
    countdown = Countdown(Bar(stream), clock=iter([0.0, 0.0, 6.0]).__next__)
    countdown(0, 3)
    assert "worlds [" in stream.getvalue()
    assert capsys.readouterr().err == ""
