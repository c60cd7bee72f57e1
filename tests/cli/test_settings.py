"""`--set`: parameters of methods from the command line, and what `--epsilon` means for published ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpcurate.cli import main
from dpcurate.cli.settings import settings_of, with_settings
from dpcurate.learn import methods


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
