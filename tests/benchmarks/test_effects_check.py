"""The check of effects: truths come from the worlds, runs are kept, and the page counts what intervals hold."""

from __future__ import annotations

import json
import sys

import pytest
from benchmarks.effects import Cell, truth
from benchmarks.pages.effects import page

from benchmarks import effects, mixed_effects
from dpcurate import networks
from dpcurate.effects import Effect
from dpcurate.graphs.graph import Dag


def test_truths_are_those_of_the_world() -> None:
    asia = networks.load("asia")
    asked = Effect(cause="smoke", outcome="lung", to="yes", instead_of="no", level="yes")
    assert truth(asia, asked) == pytest.approx(0.09)
    pair = Dag.of("ab", [("a", "b")])
    linear = networks.random_linear(pair, seed=1)
    slope = Effect(cause="a", outcome="b")
    assert truth(linear, slope) == linear.effect("a", "b")
    mixed = networks.random_mixed(pair, ordinals=0, categories=0, margins=("plain",), seed=1)
    weight = float(mixed.columns["b"].effects["a"][0])
    assert truth(mixed, slope) == pytest.approx(weight / (1 + weight**2) ** 0.5, abs=0.01)


def test_what_was_run_is_kept(tmp_path, monkeypatch, capsys) -> None:
    kept, text = tmp_path / "runs.jsonl", tmp_path / "page.md"
    monkeypatch.setattr(effects, "ROWS", 20_000)
    monkeypatch.setattr(effects, "EPSILONS", (2.0,))
    monkeypatch.setattr(effects, "worlds", lambda: iter([("cancer", "network", lambda: networks.load("cancer"))]))
    monkeypatch.setattr(sys, "argv", ["effects", "--results", str(kept), "--write", str(text)])
    effects.main()
    cell = json.loads(kept.read_text())
    assert len(cell["true"]) == 8  # of every column on all that lie below it
    assert text.read_text() in capsys.readouterr().out
    monkeypatch.setattr(effects, "run", None)
    effects.main()
    assert json.loads(kept.read_text()) == cell


def test_the_page_counts_intervals_and_leaves_out_what_is_not_determined() -> None:
    rows = (("estimated", True, 0.1), ("estimated", False, 0.3), ("not determined", False, 0.0), ("none", True, 0.0))
    told = page([Cell("asia", "network", 1.0, rows, rows[:1])])
    assert "| the six shipped networks | 66.7%, ±0.1 (25% of 4) |" in told
    assert "| the six shipped networks | 100.0%, ±0.1 (0% of 1) |" in told


def test_truths_of_mixed_worlds_are_slopes_and_the_page_counts_them() -> None:
    pair = Dag.of("ab", [("a", "b")])
    mixed = networks.random_mixed(pair, ordinals=0, categories=0, margins=("plain",), seed=1)
    weight = float(mixed.columns["b"].effects["a"][0])
    slope = mixed_effects.truth(mixed, Effect(cause="a", outcome="b"))
    assert slope == pytest.approx(weight / (1 + weight**2) ** 0.5, abs=0.001)
    rows = [mixed_effects.Row("plain", 0, 1.0, "number -> number", held) for held in (True, True, False, None)]
    assert "| 1 plain | 1 | 4 | 25% | 66.7% |" in mixed_effects.told(rows)
