"""Budgets that promise little are pointed out, once, in the library and in the command."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import dpcurate
from dpcurate import Budget, networks
from dpcurate.accounting.budget import cautions
from dpcurate.cli import main
from dpcurate.errors import PrivacyWarning

CANCER = networks.load("cancer")


@pytest.mark.parametrize(
    ("epsilon", "delta", "rows", "said"),
    [
        (10, 1e-10, 1000, []),
        (10.5, 1e-10, 1000, ["epsilon = 10.5"]),
        (1, 1e-3, 1000, []),
        (1, 1.1e-3, 1000, ["delta = 0.0011 is above 1 / rows, which is 0.001 for 1,000 rows"]),
        (1, 0.5, None, []),
        (1, 0, 1000, []),
        (20, 0.5, 1000, ["epsilon = 20", "delta = 0.5"]),
    ],
)
def test_when_a_budget_is_pointed_out(epsilon, delta, rows, said):
    found = cautions(Budget(epsilon=epsilon, delta=delta), rows)
    assert len(found) == len(said)
    for sentence, start in zip(found, said, strict=True):
        assert sentence.startswith(start)


def test_nothing_is_said_of_no_budget():
    assert not cautions(Budget.unlimited(), 5)


def test_the_library_warns_once_and_at_the_callers_line():
    schema, question = replace(CANCER.schema, rows=2000), dpcurate.queries.Counts(("Smoker",))
    table = CANCER.sample(2000, seed=1)
    for call in (
        lambda: dpcurate.discover(table, schema, epsilon=12),
        lambda: dpcurate.ask(table, schema, question, epsilon=12),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            call()
        (one,) = caught
        assert one.category is PrivacyWarning
        assert one.filename == __file__


def test_the_commands_warn_before_they_spend(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    replace(CANCER.schema, rows=2000).save("rows.toml")
    CANCER.schema.save("none.toml")
    Path("c.csv").write_text(
        "\n".join([",".join(CANCER.nodes), *[",".join(v.levels[0] for v in CANCER.variables)] * 20])
    )
    words = ("--delta", "0.01", "--epsilon", "1")
    for command in (
        ("ledger", "init", "a.ledger", "--table", "c", "--schema", "rows.toml", *words),
        ("ask", "c.csv", "--schema", "rows.toml", "--counts", "Smoker", *words),
        ("discover", "c.csv", "--schema", "rows.toml", *words),
        ("discover", "c.csv", "--schema", "none.toml", "--rows", "2000", *words),
    ):
        assert main(list(command)) == 0
        said = capsys.readouterr().err
        assert said.count("warning: delta = 0.01 is above 1 / rows") == 1
        if command[0] == "discover":
            assert said.index("warning: delta") < said.index("0 edges among 5 columns")
    assert main(["discover", "c.csv", "--schema", "none.toml", *words]) == 0
    assert "above 1 / rows" not in capsys.readouterr().err
