"""Nothing fails after it was paid for, whatever the schema, the rows and the budget."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.fuzz import case_of, run

from dpcurate import Budget, Curator, fit
from dpcurate.schema import Categorical, Ordinal, Schema

CASES = range(20)


@pytest.mark.parametrize("number", CASES)
def test_a_run_refuses_before_it_pays_or_ends_with_a_result(number):
    case, table = case_of(number, most_rows=300, most_levels=70, most_columns=5)
    assert run(case, table) in ("result", "refused"), str(case)


def test_the_cases_try_both_ends():
    outcomes = [run(*case_of(number, most_rows=30, most_levels=10, most_columns=3)) for number in CASES]
    assert {"result", "refused"} <= set(outcomes)


@pytest.mark.parametrize("levels", [2, 10, 67])
def test_a_column_of_one_usual_level_is_measured(levels):
    schema = Schema(tuple(Categorical(name, tuple(map(str, range(size)))) for name, size in (("a", levels), ("b", 67))))
    cells = np.array(["0"] * 4999 + ["1"])
    curator = Curator({"a": cells, "b": cells}, schema, budget=Budget(epsilon=100, delta=1e-10), insecure_seed=1)
    assert fit(curator).graph.nodes == ("a", "b")


@pytest.mark.parametrize("seed", range(4))
def test_columns_that_released_histograms_make_constant_are_measured(seed):
    """Where noise is large, all shares but one may be cut at 0."""
    schema = Schema((Ordinal("a", ("low", "high")), Ordinal("b", ("low", "high"))))
    table = {name: np.array(["low", "high"] * 20) for name in ("a", "b")}
    curator = Curator(table, schema, budget=Budget(epsilon=0.02, delta=1e-5), insecure_seed=seed)
    assert fit(curator).graph.nodes == ("a", "b")
