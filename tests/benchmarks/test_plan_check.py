"""The check of plans: runs are kept and not made again, and the page counts what lies where."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace

from benchmarks.pages import planning
from benchmarks.pages.planning import curves, page
from benchmarks.plan_check import Cell, is_fitted, worlds

from benchmarks import plan_check
from dpcurate.learn.power import PowerCurve

CELL = Cell("asia", False, 5000, 1.0, 8, 0.1, (6, 8, 8))


def test_what_was_run_is_kept(tmp_path, monkeypatch, capsys):
    kept, text = tmp_path / "runs.jsonl", tmp_path / "page.md"
    monkeypatch.setattr(plan_check, "CELLS", 1)
    monkeypatch.setattr(plan_check, "worlds", lambda: iter(()))
    monkeypatch.setattr(plan_check, "HIDDEN", math.inf)
    words = ["--most-columns", "5", "--results", str(kept), "--write", str(text)]
    monkeypatch.setattr(sys, "argv", ["plan_check", *words])
    plan_check.main()
    cells = list(map(json.loads, kept.read_text().splitlines()))
    assert [(c["table"], c["fitted"]) for c in cells] == [("cancer", True), ("earthquake", False)]
    assert text.read_text() in capsys.readouterr().out
    figures, table = "<!-- figures -->\n\n{}<!-- end of figures -->\n", text.read_text()
    text.write_text(f"# Guide\n\n{figures.format('| old |')}\nAfter.\n")
    monkeypatch.setattr(plan_check, "found", None)
    plan_check.main()
    assert list(map(json.loads, kept.read_text().splitlines())) == cells
    assert text.read_text() == f"# Guide\n\n{figures.format(table)}\nAfter.\n"


def test_the_page_counts_what_lies_where(monkeypatch):
    """F1 of 6 hits among 8 found and 8 true is 0.75."""
    said = {0.1: (0.8, 0.7, 0.9), 0.2: (0.8, 0.8, 0.9), 0.3: (0.5, 0.4, 0.6)}
    monkeypatch.setattr(planning, "_said", lambda power: said[power.effect])
    below, above = replace(CELL, effect=0.2), replace(CELL, effect=0.3, table="mixed1")
    fitted = replace(CELL, table="cancer", fitted=True)
    text = page([CELL, CELL, below, above, fitted])
    assert "| all | 4 | 0.50 | 0.25 | 0.25 | 0.75 | 0.73 | 0.10 | 0.18 |" in text
    assert "| networks | 3 | 0.67 | 0.33 | 0.00 |" in text
    assert "| mixed | 1 | 0.00 | 0.00 | 1.00 |" in text


def test_half_of_each_kind_is_for_fitting():
    names = [name for name, _, _ in worlds()]
    assert sum(map(is_fitted, names)) == len(names) / 2 == 21
    assert is_fitted("sachs")
    assert not is_fitted("child")


def test_a_curve_is_found_again():
    true = PowerCurve(0.9, 0.3, 2.0)
    effects = [0.01 * 1.2**i for i in range(30)]
    counts = [(e, (round(1000 * true.at(e)), 1000, 1000)) for e in effects]
    cells = [replace(CELL, effect=e, counts=three) for e, three in counts]
    found = dict(line.split(" = ") for line in curves(cells).splitlines())
    assert found["RECALL"] == found["PRECISION"] == "Curve(0.90, 0.30, 2.0)"
    assert set(found) == {"RECALL", "PRECISION", "LOW", "HIGH"}
