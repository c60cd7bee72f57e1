"""The benchmark of wide tables: runs are kept and resumed, and the page says what the runs say."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest
from benchmarks.wide import Key, Run, found, version
from benchmarks.wide_page import page

from benchmarks import wide
from dpcurate import networks

KEY = Key("alarm", "auto", 1.0, 1000, 1, "v1")
RUN = Run(KEY, 37, 0.8, 0.7, 0.9, 0.6, 2.0, 0.75, 0.5)


def told(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["wide", *map(str, words)])
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "1")  # which the command sets: other tests get back what they had
    wide.main()
    return capsys.readouterr().out


@pytest.mark.slow
def test_a_run_is_kept_resumed_and_written(tmp_path, monkeypatch, capsys):
    kept, text = tmp_path / "some" / "runs.json", tmp_path / "wide.md"
    words = ("--networks", "cancer", "--epsilons", 5, "--rows", 20_000, "--seeds", 2, "--results", kept)
    assert told(monkeypatch, capsys, *words, "--write", text).endswith(f"{text.read_text()}\n")
    runs = json.loads(kept.read_text())
    assert [(r["key"]["method"], r["key"]["epsilon"], r["key"]["seed"]) for r in runs] == [
        (method, epsilon, 20_000 + seed)
        for method, epsilon in (("auto", 5.0), ("pc", None), ("order-search", None))
        for seed in (0, 1)
    ]
    assert all(r["f1"] > 0.5 and r["columns"] == 5 for r in runs)
    assert all(r["f1_half"] == r["f1"] and r["cpdag_half"] == r["cpdag"] for r in runs if r["key"]["epsilon"] is None)
    assert all(0 < r["f1_half"] <= 1 for r in runs)
    kept.write_text(json.dumps(runs[1:]))
    again = told(monkeypatch, capsys, *words, "--resume")
    assert again.count(" seed 2") == 1
    remade = json.loads(kept.read_text())
    timeless = [r | {"seconds": 0} for r in (runs[0], remade[-1])]
    assert timeless[0] == timeless[1]
    assert told(monkeypatch, capsys, *words, "--resume").startswith("# Wide tables")


def some(*values, **changes):
    """Runs of one cell, a seed each."""
    keys = [replace(KEY, seed=seed, **changes) for seed in range(len(values))]
    return [replace(RUN, key=key, f1=f1, cpdag=f1 / 2) for key, f1 in zip(keys, values, strict=True)]


def test_cells_are_means_beside_their_ceiling_and_the_page_states_their_errors():
    text = page(some(0.7, 0.8, 0.9) + some(0.95, 0.95, method="pc", epsilon=None))
    assert "| network (columns) | default, eps 1 | exact PC |" in text
    assert "| alarm (37) | 0.800 (0.400) | 0.950 (0.475) |" in text
    assert "| default, eps 1 | 0.800 | 0.700 | 0.900 | 0.400 | 0.750 | 0.500 | 2.0 |" in text
    assert "means over 2 tables" in text
    assert "are below 0.029, the largest is 0.058." in " ".join(text.split())


def test_runs_of_before_have_no_figures_at_half():
    old = [Run(KEY, 37, 0.8, 0.7, 0.9, 0.6, 2.0)]
    assert "| default, eps 1 | 0.800 | 0.700 | 0.900 | 0.600 |  |  | 2.0 |" in page(old)


def test_a_mean_over_networks_needs_all_of_them():
    runs = some(0.7, 0.9) + some(0.5, 0.5, network="asia") + some(0.9, method="pc", epsilon=None)
    (mean,) = [line for line in page(runs).splitlines() if line.startswith("| **mean")]
    assert mean == "| **mean of 2** | 0.650 (0.325) | not all measured |"


def test_the_version_measured_last_counts():
    runs = some(0.1, 0.1) + some(0.9, version="v2")
    assert "| alarm (37) | 0.900 (0.450) |" in page(runs)
    assert "states of its code" not in page(runs)
    mixed = page(runs + some(0.5, network="asia"))
    assert "Figures of default are of 2 states of its code: v1, v2." in mixed
    assert page([]) == "No runs yet.\n"


def test_networks_are_names_files_and_folders(tmp_path):
    for name in ("b.bif", "a.bif.gz", "note.txt"):
        (tmp_path / name).touch()
    assert found(["asia", str(tmp_path)]) == {
        "asia": "asia", "a": str(tmp_path / "a.bif.gz"), "b": str(tmp_path / "b.bif")
    }  # fmt: skip


@pytest.mark.parametrize("method", wide.CODE)
def test_a_version_changes_with_the_code_of_its_method(method, tmp_path, monkeypatch):
    for folder in wide.CODE[method]:
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setattr(wide, "SOURCE", tmp_path)
    path = tmp_path / wide.CODE[method][-1] / "part.py"
    path.write_text("one")
    before = version(method)
    path.write_text("two")
    assert version(method) != before


def test_shuffled_columns_have_tables_of_their_own():
    shuffled = some(0.4, 0.6, shuffled=True)
    text = page(some(0.7, 0.9) + shuffled)
    before, after = text.split("## Columns in a random order")
    assert "| alarm (37) | 0.800 (0.400) |" in before
    assert "| alarm (37) | 0.500 (0.250) |" in after
    assert "Columns in a random order" not in page(some(0.7, 0.9))
    assert page(shuffled) == "No runs yet.\n"


def test_columns_are_shuffled_by_the_seed():
    schema = networks.load("asia").schema
    first, second = (wide.shuffled(schema, seed).names for seed in (1, 2))
    assert sorted(first) == sorted(second) == sorted(schema.names)
    assert len({first, second, schema.names}) == 3
