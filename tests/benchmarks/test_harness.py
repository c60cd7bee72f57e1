"""The harness of the benchmarks: rows are kept by their keys, and a run that was stopped goes on where it was."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from benchmarks.harness import Results

from benchmarks import compare


@dataclass(frozen=True)
class Row:
    world: str
    seed: int
    pairs: tuple[tuple[str, float], ...] = ()


def results(path):
    return Results(path, Row, lambda row: (row.world, row.seed))


def test_rows_are_kept_and_come_back_equal(tmp_path):
    path, row = tmp_path / "some" / "runs.jsonl", Row("asia", 1, (("a", 0.5),))
    kept = results(path)
    assert ("asia", 1) not in kept
    kept.keep(row)
    assert ("asia", 1) in kept
    again = results(path)
    assert again.rows == [row]
    assert ("asia", 1) in again


def test_a_line_that_was_cut_short_is_run_again(tmp_path):
    path = tmp_path / "runs.jsonl"
    results(path).keep(Row("asia", 1), Row("asia", 2))
    path.write_text(path.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    again = results(path)
    assert ("asia", 2) not in again
    again.keep(Row("asia", 2))
    assert results(path).rows == [Row("asia", 1), Row("asia", 2)]


def test_methods_are_compared_and_what_was_run_is_not_run_again(tmp_path, monkeypatch, capsys):
    words = [
        "--seeds",
        "2",
        "--rows",
        "2000",
        "--epsilons",
        "1",
        "--methods",
        "pc",
        "em-pc",
        "--networks",
        "cancer",
        "survey",
    ]
    monkeypatch.setattr(sys, "argv", ["compare", *words, "--results", str(tmp_path / "runs.jsonl")])
    monkeypatch.setattr(compare, "spread", lambda work, jobs, workers: [work(*job) for job in jobs])
    compare.main()
    told = capsys.readouterr().out
    assert [line.split()[:2] for line in told.splitlines()] == [["method", "eps"], ["pc", "inf"], ["em-pc", "1"]]
    monkeypatch.setattr(compare, "run", None)
    compare.main()
    assert capsys.readouterr().out == told
