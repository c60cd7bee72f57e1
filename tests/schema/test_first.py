"""What comes first, from the schema to the page: it holds in every method, costs nothing, and can be added later."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpcurate
from dpcurate.cli import main
from dpcurate.errors import DpcurateError
from dpcurate.learn.methods import private
from dpcurate.networks import load
from dpcurate.networks.plausible import random_world
from dpcurate.private.ledger import Ledger
from dpcurate.report.html_report import page
from dpcurate.schema.column_order import tiers_of

ASIA = load("asia")
TABLE = ASIA.sample(4_000, seed=5)
BACKWARDS = (("dysp", "xray"), ("*",), ("smoke", "asia"))
"""No data would say so."""
SCHEMA = replace(ASIA.schema, rows=4_000, order=BACKWARDS)
TIER = {name: i for i, group in enumerate(tiers_of(BACKWARDS, SCHEMA.names)) for name in group}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """After a run without any order."""
    path = tmp_path_factory.mktemp("ledger") / "asia.ledger"
    dpcurate.discover(TABLE, ASIA.schema, epsilon=5, ledger=path)
    return path


def _keeps(found: dpcurate.Discovery) -> bool:
    between = [e for e in found.edges if TIER[e.a] != TIER[e.b]]
    return bool(between) and all(e.directed and TIER[e.a] < TIER[e.b] for e in between)


@pytest.mark.parametrize("method", private())
def test_the_schema_of_a_run_holds_in_every_method(method: str) -> None:
    assert _keeps(dpcurate.discover(TABLE, SCHEMA, epsilon=10, method=method))


def test_a_run_spends_the_same_with_an_order() -> None:
    with_one, without = (dpcurate.discover(TABLE, schema, epsilon=5) for schema in (SCHEMA, ASIA.schema))
    assert with_one.privacy.spent == without.privacy.spent
    assert not _keeps(without)


def test_an_order_of_the_call_replaces_that_of_the_schema() -> None:
    found = dpcurate.discover(TABLE, SCHEMA, epsilon=5, order="smoke, asia | *")
    assert found.knowledge is not None
    assert found.knowledge.tiers[0] == {"smoke", "asia"}
    assert dpcurate.discover(TABLE, SCHEMA, epsilon=5, order=()).knowledge is None


def test_where_causes_may_be_hidden_a_later_column_has_an_arrowhead() -> None:
    found = dpcurate.discover(TABLE, SCHEMA, epsilon=5, latent=True)
    between = [e for e in found.edges if TIER[e.a] != TIER[e.b]]
    assert between
    for edge in between:
        late_left = TIER[edge.a] > TIER[edge.b]
        assert edge.sign.startswith("<") if late_left else edge.sign.endswith(">"), str(edge)  # type: ignore[attr-defined]


def test_stored_answers_are_read_again_with_an_order(ledger: Path) -> None:
    before = ledger.read_bytes()
    again = dpcurate.discover_from(ledger, order=BACKWARDS)
    assert _keeps(again)
    assert again.privacy.run == 0
    assert _keeps(dpcurate.discover_from(ledger, order="dysp, xray | * | smoke, asia"))
    assert not _keeps(dpcurate.discover_from(ledger))
    assert ledger.read_bytes() == before


def test_the_order_of_a_run_is_kept_with_its_answers(tmp_path: Path) -> None:
    found = dpcurate.discover(TABLE, SCHEMA, epsilon=5, ledger=tmp_path / "l")
    again = dpcurate.discover_from(tmp_path / "l")
    assert again.knowledge == found.knowledge
    assert again.learned.graph == found.learned.graph
    assert dpcurate.discover_from(tmp_path / "l", order="").knowledge is None


def test_a_wrong_order_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    for wrong in ("smok | *", [["smoke"]], [["smoke"], 7]):
        with pytest.raises(DpcurateError, match="order"):
            dpcurate.discover("no table", ASIA.schema, epsilon=1, order=wrong)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("order", [BACKWARDS, (("dysp",), ("smoke",), ("asia", "lung"))])
def test_planned_worlds_keep_to_it(order: Any) -> None:
    schema = replace(ASIA.schema, order=order)
    tier = {name: i for i, group in enumerate(tiers_of(order, schema.names)) for name in group}
    arrows = [arrow for seed in range(40) for arrow in random_world(schema, seed=seed).dag.arrows]
    assert all(tier.get(a, 0) <= tier.get(b, 9) for a, b in arrows)
    free = {"tub", "either"}
    if free.isdisjoint(tier):
        assert {a in free for a, b in arrows if (a in free) != (b in free)} == {True, False}
    plain = [random_world(ASIA.schema, seed=seed) for seed in range(5)]
    assert [len(world.dag.edges) for world in plain] == [
        len(random_world(schema, seed=seed).dag.edges) for seed in range(5)
    ]


def test_a_plan_takes_an_order() -> None:
    given = {"methods": ["notears-moments"], "epsilons": [5], "worlds": 1}
    by_call = dpcurate.plan(ASIA.schema, 500, order=BACKWARDS, **given)  # type: ignore[arg-type]
    by_schema = dpcurate.plan(replace(ASIA.schema, order=BACKWARDS), 500, **given)  # type: ignore[arg-type]
    assert by_call.cells == by_schema.cells
    with pytest.raises(DpcurateError, match="unknown column 'smok'"):
        dpcurate.plan(ASIA.schema, 500, order="smok | *")


# --- commands and reports ----------------------------------------------------------------------------------------


def test_the_command_says_once_how_to_add_one(
    ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame(TABLE).rename(columns={"asia": "sex"})
    table.to_csv("t.csv", index=False)
    schema = dpcurate.Schema(tuple(replace(c, name="sex" if c.name == "asia" else c.name) for c in ASIA.schema.columns))
    schema.save("s.toml")
    run = ["discover", "t.csv", "--schema", "s.toml", "--epsilon", "5", "--yes"]
    assert main([*run, "--ledger", "l"]) == 0
    told = capsys.readouterr().err
    assert told.count("dpcurate discover --from-answers l --order 'sex | *'") == 1
    assert main(["discover", "--from-answers", "l", "--order", "sex | *", "-o", "r"]) == 0
    assert "--order" not in capsys.readouterr().err
    report = json.loads(Path("r/report.json").read_text())
    assert report["order"] == [["sex"], sorted(set(schema.names) - {"sex"})]
    assert not [e for e in report["edges"] if e["b"] == "sex" and e["directed"]]
    assert Ledger.open("l").spent == Ledger.open("l").log()[0].spent
    assert main(run) == 0
    assert "add --order 'sex | *'; after a run with --ledger" in capsys.readouterr().err
    replace(schema, order=(("sex",), ("*",))).save("s.toml")
    assert main(run) == 0
    assert "--order" not in capsys.readouterr().err
    assert main([*run, "--order", "six | *"]) == 1
    assert "order names an unknown column 'six'; did you mean 'sex'?" in capsys.readouterr().err
    assert main(["plan", "--schema", "s.toml", "--rows", "100", "--order", "sex"]) == 1
    assert "one group, which says nothing" in capsys.readouterr().err


def test_the_page_shows_the_order_and_what_follows_from_it(ledger: Path) -> None:
    shown = page(dpcurate.discover_from(ledger, order=BACKWARDS))
    assert "<ol><li>xray, dysp</li><li>tub, lung, bronc, either</li><li>asia, smoke</li></ol>" in shown
    found = dpcurate.discover_from(ledger, order=BACKWARDS)
    between = [e for e in found.edges if TIER[e.a] != TIER[e.b]]
    assert f"The direction of {len(between)} edges of {len(found.edges)} follows from this order" in shown
    assert "<li>dysp comes before smoke</li>" in shown or "<li>dysp comes before bronc</li>" in shown
    hidden = page(dpcurate.discover_from(ledger, order="dysp | smoke", latent=True))
    assert "Not in any group, so unconstrained: asia, tub, lung, bronc, either, xray." in hidden
    backwards = page(dpcurate.discover_from(ledger, order=BACKWARDS, latent=True))
    assert "comes before smoke</li>" in backwards
    assert "<li>smoke comes before" not in backwards
    assert "--from-answers LEDGER --order &#x27;FIRST, COLUMNS | *&#x27;</code>" in page(dpcurate.discover_from(ledger))
    forbidden = dpcurate.Knowledge.of(forbidden_edges=[("asia", "dysp")])
    assert 'class="order"' not in page(dpcurate.discover_from(ledger, knowledge=forbidden))
