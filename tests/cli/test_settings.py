"""`--set`: parameters of methods from the command line, and what `--epsilon` means for published ones."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

import pytest

from dpcurate import Curator, networks
from dpcurate.accounting import Budget
from dpcurate.cli import main
from dpcurate.learn import methods
from dpcurate.learn.methods import settings_of, with_settings
from dpcurate.published import Claim, PublishedEMPC, PublishedPrivPC, PublishedSVTPC


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("settings")
    words = ["network", "sample", "cancer", "--rows", "2000", "-o", str(folder / "t.csv")]
    assert main([*words, "--schema", str(folder / "t.toml")]) == 0
    return folder


@pytest.fixture
def here(world, monkeypatch):
    monkeypatch.chdir(world)


def published(method, *words):
    common = ["discover", "t.csv", "--schema", "t.toml", "--variant", "published", "--not-private"]
    return main([*common, "--insecure-seed", "1", "--method", method, *words])


@pytest.mark.parametrize(
    ("method", "said"),
    [("curate-pc", "for the whole run"), ("em-pc", "EACH STEP"), ("svt-pc", "EACH STEP"), ("priv-pc", "EACH STEP")],
)
def test_a_sampled_schema_is_enough_for_published_methods_and_epsilon_is_explained(here, capsys, method, said):
    assert published(method, "--epsilon", "1") == 0
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("method", ["em-pc", "svt-pc", "priv-pc"])
@pytest.mark.parametrize("total", [0.5, 3.0, 40.0])
def test_a_stepwise_method_keeps_within_a_claimed_total(here, capsys, method, total):
    assert published(method, "--set", f"total={total}") == 0
    out, err = capsys.readouterr()
    assert f"epsilon {total:g} is the most its authors would claim for the whole run" in err
    claimed = float(re.search(r"would claim epsilon = ([0-9.e+-]+)", out + err)[1])
    assert 0 <= claimed <= total
    assert published(method, "--epsilon", "1", "--set", f"total={total}") == 1
    assert "give one of them" in capsys.readouterr().err
    assert main(["methods", method, "--variant", "published"]) == 0
    assert "Give total in its place" in capsys.readouterr().out


@pytest.mark.parametrize("recipe", [PublishedEMPC, PublishedSVTPC, PublishedPrivPC])
def test_a_run_ends_before_its_claim_could_exceed_the_total(monkeypatch, recipe):
    """Also where steps cost more than was planned for them."""
    cancer = networks.load("cancer")
    monkeypatch.setattr(Claim, "step", lambda self, total, steps, parts=1: 0.25)
    for total in (2.5, 4.0):
        schema = dataclasses.replace(cancer.schema, rows=2000)
        curator = Curator(cancer.sample(2000, seed=1), schema, budget=Budget.unlimited(), insecure_seed=1)
        found = recipe(total=total).fit(curator)
        assert 0 < found.claimed <= total
        assert found.nominal == total
        assert any("budget" in note for note in found.notes)


@pytest.mark.parametrize("claim", [Claim(), Claim(1e-3, "expm1"), Claim(0.5, "square")])
@pytest.mark.parametrize("parts", [1, 2])
def test_the_epsilon_of_a_step_spends_the_total_and_no_more(claim, parts):
    for total in (1e-6, 0.5, 30.0, 1e6):
        for steps in (1, 10, 5000):
            each = claim.step(total, steps, parts)
            assert total * (1 - 1e-9) < claim.total(steps, each, parts) <= total


def test_settings_reach_the_recipe(here, capsys):
    recipe = methods.get("curate-pc", variant="published")
    changed = with_settings(recipe, ["threshold=0.01", "beta1 = 0.1", "reading.coin=keep", "max_order=1"])
    now = settings_of(changed)
    assert [now[x] for x in ("threshold", "beta1", "reading.coin", "max_order")] == [0.01, 0.1, "keep", 1]
    assert with_settings(changed, ["max_order=none"]) != changed
    assert published("curate-pc", "--set", "threshold=0.01", "--set", "reading.pairs=once") == 0
    words = ["discover", "t.csv", "--schema", "t.toml", "--epsilon", "5", "--yes", "--method", "em-pc"]
    assert main([*words, "--ledger", "l", "--set", "max_order=0", "-o", "out"]) == 0
    assert "max_order=0" in Path("out/report.json").read_text()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("treshold=1", "did you mean 'threshold'"),
        ("threshold", "a setting is name=value"),
        ("threshold=high", "'high' is not a number"),
        ("max_order=1.5", "whole"),
        ("threshold=2", "threshold"),
        ("style=wild", "style"),
    ],
)
def test_what_means_nothing_is_refused_before_anything_is_spent(here, capsys, given, why):
    words = ["discover", "t.csv", "--schema", "t.toml", "--epsilon", "5", "--yes", "--method", "svt-pc"]
    assert main([*words, "--ledger", "none", "--set", given]) == 1
    assert why in capsys.readouterr().err
    assert not os.path.exists("none")


def test_methods_lists_what_can_be_set(capsys):
    assert main(["methods", "curate-pc", "--variant", "published"]) == 0
    out = capsys.readouterr().out
    assert "beta1" in out
    assert "reading.coin" in out
    assert main(["methods", "auto"]) == 0
    assert "constants" not in capsys.readouterr().out
