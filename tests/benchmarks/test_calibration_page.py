"""The page of calibration shows where P(edge) is off, and every family is in its file."""

from __future__ import annotations

import csv

from benchmarks.calibration import Key, Run
from benchmarks.calibration_page import every_family, page


def some(family, stated, linked, pairs=12, epsilon=1.0):
    """A run with pairs of one P(edge), of which so many are linked."""
    told = [[stated, int(i < linked), 0.5, 0, [], 1] for i in range(pairs)]
    key = Key(family, 1, 2000, epsilon, "v")
    return Run(key, 9, True, linked, "fine", (0.5, 0.4, 0.6), None, 1.0, told, 0)


RUNS = [some("linear", 0.97, 12), some("products", 0.9, 2), some("weak, levels", 0.97, 9), some("networks", 0.9, 4, 5)]


def test_families_that_are_off_are_shown_and_the_others_are_in_the_file():
    text = page(RUNS).split("## Where it is off")[1].split("## Links")[0]
    assert "| products | - | 12: 0.900, 0.167 | - | " in text
    assert "| weak, levels * | - | - | 12: 0.970, 0.750 | " in text
    assert "linear" not in text  # as stated
    assert "networks" not in text  # too few pairs to say
    kept = {row["family"]: row for row in csv.DictReader(every_family(RUNS).splitlines())}
    assert kept.keys() == {"linear", "products", "weak, levels", "networks"}
    assert [kept["networks"][f"0.8 to 0.95: {what}"] for what in ("pairs", "stated", "true")] == ["5", "0.900", "0.800"]
    assert (kept["products"]["used to fit"], kept["networks"]["used to fit"]) == ("yes", "no")


def test_dependences_of_tables_with_one_fault_are_counted_together():
    assert "| weak | 12 | 0.970 | 0.750 | 1.000 |" in page(RUNS)
