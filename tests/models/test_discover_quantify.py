"""One run that finds a graph and fits its model: its budget, its ledger, its files, and what it refuses."""

from __future__ import annotations

import csv
import json

import pytest

import dpcurate
from dpcurate import networks
from dpcurate.cli import main
from dpcurate.errors import LedgerError, QueryError
from dpcurate.models import fitting
from dpcurate.private.ledger import Ledger
from dpcurate.private.ledger.journal import Note
from dpcurate.private.ledger.run_log import Story

ASIA = networks.load("asia")
TABLE = ASIA.sample(4000, seed=3)
BUDGET = dpcurate.Budget(epsilon=1, delta=1e-10)


def rows_of(path):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(TABLE)
        writer.writerows(zip(*TABLE.values(), strict=True))
    return path


def test_a_part_of_the_budget_is_set_aside():
    found = dpcurate.discover(TABLE, ASIA.schema, epsilon=1, quantify=0.5)
    assert found.at(0.8).model is found.model
    costs = [float(e.cost.rho) for e in found.privacy.events]
    assert costs[-1] == pytest.approx(sum(costs) / 2, rel=1e-3)
    assert found.privacy.epsilon == pytest.approx(1, rel=1e-3)


def test_without_it_there_is_no_model():
    assert dpcurate.discover(TABLE, ASIA.schema, epsilon=1).model is None


@pytest.mark.parametrize("part", [0, 1, -0.1, 1e-12, float("nan"), True, "half"])
def test_a_part_lies_between_0_and_1(part):
    with pytest.raises(QueryError, match="between 0 and 1"):
        dpcurate.discover(TABLE, ASIA.schema, epsilon=1, quantify=part)


def test_hidden_causes_have_no_model():
    with pytest.raises(QueryError, match="hidden common causes"):
        dpcurate.discover(TABLE, ASIA.schema, epsilon=1, quantify=0.5, latent=True)


def test_a_run_that_was_stopped_before_its_model_is_resumed(tmp_path, monkeypatch):
    path, real = tmp_path / "a.ledger", fitting.fitted

    def dies(*args):
        raise KeyboardInterrupt

    def run():
        return dpcurate.discover(TABLE, ASIA.schema, epsilon=1, quantify=0.5, ledger=path)

    monkeypatch.setattr(fitting, "fitted", dies)
    with pytest.raises(KeyboardInterrupt):
        run()
    paid = Ledger.open(path).spent
    monkeypatch.setattr(fitting, "fitted", real)
    found = run()
    assert Ledger.open(path).spent == paid
    assert [run.outcome for run in Ledger.open(path).log()] == ["finished"]
    assert found.model is not None


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quantified")
    rows_of(folder / "asia.csv")
    ASIA.schema.save(folder / "asia.toml")
    return folder


def command(files, *more):
    return main(["discover", str(files / "asia.csv"), "--schema", str(files / "asia.toml"), "--epsilon", "1", *more])


def test_the_command_writes_a_model_and_synthetic_rows(files, tmp_path, capsys):
    assert command(files, "--quantify", "0.5", "--synthetic", "500", "-o", str(tmp_path)) == 0
    said = capsys.readouterr().err
    assert "50% of it is reserved for a model" in said
    assert "500 synthetic rows" in said
    assert networks.load(tmp_path / "model.bif").nodes == ASIA.nodes
    with (tmp_path / "synthetic.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == ASIA.nodes
    assert len(rows) == 500
    assert {row[0] for row in rows} <= {"yes", "no"}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--synthetic", "5", "-o", "x"], "drawn from a model"),
        (["--quantify", "0.5"], "say where with -o"),
        (["--quantify", "0.5", "--synthetic", "0", "-o", "x"], "at least 1"),
        (["--quantify", "2", "-o", "x"], "between 0 and 1"),
    ],
)
def test_the_command_refuses_before_it_reads(files, capsys, options, why):
    assert command(files, *options) == 1
    assert why in capsys.readouterr().err


def test_a_name_that_no_model_file_can_hold_is_refused_before_it_reads(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("a,b\nx,u\ny,v\n")
    odd = dpcurate.Schema((dpcurate.Categorical("a", ("x", 'y "z"')), dpcurate.Categorical("b", ("u", "v"))))
    odd.save(tmp_path / "t.toml")
    options = ["--schema", str(tmp_path / "t.toml"), "--epsilon", "1", "--quantify", "0.5", "-o", str(tmp_path / "out")]
    assert main(["discover", str(tmp_path / "t.csv"), *options, "--ledger", str(tmp_path / "l")]) == 1
    assert "rename it" in capsys.readouterr().err
    assert not (tmp_path / "l").exists()


def test_the_command_writes_a_model_with_numbers(tmp_path):
    lines = ["x,y,z", *(f"{i % 7},{(i % 7) * 2 + i % 3},{'' if i % 4 == 0 else i % 5}" for i in range(500))]
    (tmp_path / "n.csv").write_text("\n".join(lines))
    numbers = [dpcurate.Numeric("x", 0, 7), dpcurate.Numeric("y", 0, 20), dpcurate.Numeric("z", 0, 5, missing="own")]
    dpcurate.Schema(tuple(numbers)).save(tmp_path / "n.toml")
    options = ["--schema", str(tmp_path / "n.toml"), "--epsilon", "5", "--quantify", "0.5", "--synthetic", "200"]
    assert main(["discover", str(tmp_path / "n.csv"), *options, "-o", str(tmp_path / "out"), "--yes"]) == 0
    assert (tmp_path / "out" / "model.json").exists()
    with (tmp_path / "out" / "synthetic.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["x", "y", "z"]
    assert {"" if row[2] == "" else float(row[2]) <= 5 for row in rows} == {"", True}
    assert max(len(cell) for row in rows for cell in row) <= len("-1.23456e-05")


NUMBERS = dpcurate.Schema((dpcurate.Numeric("x", 0, 7), dpcurate.Numeric("y", 0, 20), dpcurate.Numeric("z", 0, 5)))
ROWS = {name: [float(i * k % 7 % 5) for i in range(2000)] for k, name in enumerate("xyz", 1)}


@pytest.mark.parametrize(("table", "schema"), [(TABLE, ASIA.schema), (ROWS, NUMBERS)], ids=["levels", "numbers"])
def test_stored_answers_give_the_graph_and_the_model_again_for_nothing(tmp_path, table, schema):
    path = tmp_path / "a.ledger"
    found = dpcurate.discover(table, schema, epsilon=1, quantify=0.3, ledger=path)
    before = path.read_bytes()
    again = dpcurate.discover_from(path)
    hidden = dpcurate.discover_from(path, latent=True)
    assert again.learned.evidence == found.learned.evidence
    one, other = found.model.sample(100, seed=1), again.model.sample(100, seed=1)
    assert all(list(one[name]) == list(other[name]) for name in schema.names)
    assert hidden.model is None
    assert path.read_bytes() == before


def twice(path, table, schema, dag=None):
    """A graph, a model bought later for a half of what is left, and another for the rest."""
    Ledger.create(path, table="t", neighbours="add-remove", budget=BUDGET, schema=schema)
    found = dpcurate.discover(table, schema, epsilon=0.6, ledger=path)
    curator = dpcurate.Curator(table, schema, ledger=path, name="t")
    first = dpcurate.quantify(found, curator, share=curator.remaining / 2, dag=dag)
    return found, first, dpcurate.quantify(found, curator, dag=dag)


def same_rows(one, other):
    a, b = (model.sample(100, seed=1) for model in (one, other))
    return all(list(a[name]) == list(b[name]) for name in a)


@pytest.mark.parametrize(("table", "schema"), [(TABLE, ASIA.schema), (ROWS, NUMBERS)], ids=["levels", "numbers"])
def test_a_model_that_was_bought_later_comes_back_for_nothing(tmp_path, table, schema):
    path = tmp_path / "a.ledger"
    found, first, second = twice(path, table, schema)
    assert [run.facts.method for run in Ledger.open(path).log()] == ["auto", "quantify", "quantify"]
    before = path.read_bytes()
    newest, named = dpcurate.discover_from(path), dpcurate.discover_from(path, 2)
    assert newest.learned.evidence == named.learned.evidence == found.learned.evidence
    assert same_rows(newest.model, second)
    assert same_rows(named.model, first)
    assert not same_rows(first, second)
    assert dpcurate.discover_from(path, latent=True).model is None
    assert path.read_bytes() == before


def test_a_model_of_a_given_graph_comes_back_with_it(tmp_path):
    path, dag = tmp_path / "a.ledger", dpcurate.Dag.of(ASIA.nodes, [("smoke", "lung"), ("smoke", "bronc")])
    _, _, model = twice(path, TABLE, ASIA.schema, dag)
    again = dpcurate.discover_from(path, dag=dag).model
    assert again.dag == dag
    assert same_rows(again, model)


def test_a_model_needs_a_graph_of_its_schema_before_it(tmp_path):
    path = tmp_path / "a.ledger"
    other = dpcurate.discover(TABLE, ASIA.schema, epsilon=1)
    Ledger.create(path, table="t", neighbours="add-remove", budget=BUDGET, schema=ASIA.schema)
    curator = dpcurate.Curator(TABLE, ASIA.schema, ledger=path, name="t")
    dpcurate.quantify(other, curator, share=curator.remaining / 2)
    with pytest.raises(LedgerError, match=r"run 1 of .* needs the stored answers of an earlier run"):
        dpcurate.discover_from(path, 1)
    found = dpcurate.fit(curator)
    assert found.model is None
    assert dpcurate.discover_from(path).model is None  # what was bought before belongs to another graph


def test_a_ledger_of_before_has_no_part_for_a_model():
    facts = {"number": 1, "allowance": None, "command": "c", "method": "auto", "schema": "s", "by": "me"}
    facts |= {"purpose": "", "epsilon": None, "result": ""}
    assert Story(Note("run", json.dumps(facts), "")).logged().facts.quantify is None


def test_the_command_draws_rows_again_from_answers(files, tmp_path, capsys):
    kept, again = str(tmp_path / "a.ledger"), ["discover", "--from-answers", str(tmp_path / "a.ledger")]
    assert command(files, "--quantify", "0.5", "--ledger", kept, "-o", str(tmp_path / "one")) == 0
    assert main([*again, "--synthetic", "50", "-o", str(tmp_path / "two")]) == 0
    assert (tmp_path / "two" / "model.bif").exists()
    assert len((tmp_path / "two" / "synthetic.csv").read_text().splitlines()) == 51
    assert main([*again, "--synthetic", "50"]) == 1
    assert main([*again, "--quantify", "0.5", "-o", str(tmp_path / "three")]) == 1
    assert main([*again, "--latent", "--synthetic", "50", "-o", str(tmp_path / "four")]) == 1
    said = capsys.readouterr().err
    assert "say where with -o" in said
    assert "leave out --quantify" in said
    assert "has no model of its graph" in said


def test_the_command_writes_a_model_that_was_bought_later(tmp_path):
    twice(tmp_path / "a.ledger", TABLE, ASIA.schema)
    before = (tmp_path / "a.ledger").read_bytes()
    for words in ([], ["2"]):
        folder = tmp_path / f"r{len(words)}"
        options = ["--from-answers", str(tmp_path / "a.ledger"), *words, "--synthetic", "50", "-o", str(folder)]
        assert main(["discover", *options]) == 0
        assert networks.load(folder / "model.bif").nodes == ASIA.nodes
    assert (tmp_path / "r0" / "model.bif").read_text() != (tmp_path / "r1" / "model.bif").read_text()
    assert (tmp_path / "a.ledger").read_bytes() == before


def test_a_method_that_reserves_its_budget_leaves_the_part_of_the_model():
    found = dpcurate.discover(TABLE, ASIA.schema, epsilon=1, quantify=0.5, method="svt-pc")
    assert found.model is not None
    assert found.privacy.events[-1].cost.rho >= found.privacy.budget.rho / 2 * 0.999


def test_an_endless_budget_has_a_part_for_a_model_too():
    curator = dpcurate.Curator(TABLE, ASIA.schema, budget=dpcurate.Budget.unlimited())
    assert dpcurate.fit(curator, quantify=0.5).model is not None


def test_what_has_no_model_is_refused_for_nothing(tmp_path):
    budget = dpcurate.Budget(epsilon=1, delta=1e-10)
    curator = dpcurate.Curator(TABLE, ASIA.schema, budget=budget, ledger=tmp_path / "a", name="a")
    found = dpcurate.fit(curator, share=curator.remaining / 4)
    hidden = dpcurate.fit(curator, share=curator.remaining / 4, latent=True)
    other = dpcurate.Curator(TABLE, ASIA.schema, budget=budget, ledger=tmp_path / "b", name="b")
    with pytest.raises(QueryError, match="hidden common causes"):
        dpcurate.quantify(hidden, curator)
    with pytest.raises(QueryError, match="an open curator"):
        dpcurate.quantify(found, TABLE)
    with pytest.raises(QueryError, match="found in the table 'a', and the curator's is 'b'"):
        dpcurate.quantify(found, other)
    assert other.ledger.spent == 0
