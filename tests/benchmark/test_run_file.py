"""The file of runs: rows are kept by their keys, and a benchmark that was stopped goes on where it was."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from dpcurate.benchmark.run_file import RunFile, spread
from dpcurate.errors import FormatError


@dataclass(frozen=True)
class Row:
    world: str
    seed: int
    pairs: tuple[tuple[str, float], ...] = ()


def runs(path):
    return RunFile(path, Row, lambda row: (row.world, row.seed))


def test_rows_are_kept_and_come_back_equal(tmp_path):
    path, row = tmp_path / "some" / "runs.jsonl", Row("asia", 1, (("a", 0.5),))
    kept = runs(path)
    assert ("asia", 1) not in kept
    kept.keep(row)
    assert ("asia", 1) in kept
    again = runs(path)
    assert again.rows == [row]
    assert ("asia", 1) in again


def test_a_line_that_was_cut_short_is_run_again(tmp_path):
    path = tmp_path / "runs.jsonl"
    runs(path).keep(Row("asia", 1), Row("asia", 2))
    path.write_text(path.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    again = runs(path)
    assert ("asia", 2) not in again
    again.keep(Row("asia", 2))
    assert runs(path).rows == [Row("asia", 1), Row("asia", 2)]


@pytest.mark.parametrize(
    ("text", "words"),
    [("not json\n", "line 1: not a run"), ('{"world": "asia"}\n', "of another kind"), ("[1]\n", "of another kind")],
)
def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path, text, words):
    path = tmp_path / "runs.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=words):
        runs(path)
    assert path.read_text(encoding="utf-8") == text


def test_without_a_path_nothing_is_written():
    kept = runs(None)
    kept.keep(Row("asia", 1))
    assert ("asia", 1) in kept


def test_work_is_spread_over_processes_and_each_answer_comes_once():
    assert sorted(spread(pow, [(2, n) for n in range(4)], workers=2)) == [1, 2, 4, 8]
    assert list(spread(pow, [(2, n) for n in range(4)], workers=1)) == [1, 2, 4, 8]
