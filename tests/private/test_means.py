"""What means are made of, and where quantiles lie: sensitivities, and what the intervals of a range stand for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcurate import Budget, Categorical, Curator, Neighbours, Numeric, Ordinal, Person, Schema
from dpcurate.errors import BudgetExceeded, QueryError
from dpcurate.private.mechanisms import STEPS, Sensitivity
from dpcurate.private.preview import preview
from dpcurate.private.statistics.numbers import LOWEST_SCORE, QuantileTransformation, score_steps
from dpcurate.private.statistics.registry import sensitivity, transformation
from dpcurate.queries import CELLS, Counts, Exact, Gaussian, Means, Quantile, Release, places
from dpcurate.schema import GRID, MISSING_VALUE, OWN
from helpers import distance

ADD, SWAP = Neighbours.ADD_REMOVE, Neighbours.REPLACE
X = Schema((Numeric("x", 0, 8, missing=OWN),))
QUARTERS = tuple(range(0, CELLS + 1, CELLS // 4))
PROBABILITIES = (Fraction(1, 2), Fraction(1, 10), Fraction(3, 4), Fraction(99, 100))


def counts_of(cells: list[int | None]) -> np.ndarray:
    """Rows by fine interval; None is a missing cell."""
    places = [CELLS if cell is None else cell for cell in cells]
    return np.bincount(places, minlength=CELLS + 1).astype(np.int64)


def scores(query: Quantile, cells: list[int | None]) -> list[Fraction]:
    computed = QuantileTransformation(query, X)
    (found,) = computed.integers((counts_of(cells),))
    return [int(s) / computed.units[0] for s in found]


def moved(query: Quantile, one: list[int | None], other: list[int | None]) -> Fraction:
    return max(abs(a - b) for a, b in zip(scores(query, one), scores(query, other), strict=True))


def test_scores_are_floored():
    """Rounding half to even would make a step of one out of two."""
    bound = Sensitivity(Fraction(STEPS), Fraction(STEPS) ** 2)
    assert score_steps(np.array([-3, -1, 1, 3]), Fraction(2), bound).tolist() == [-2, -1, 0, 1]
    assert score_steps(np.array([-5, -1, 1, 5]), Fraction(3), bound).tolist() == [-2, -1, 0, 1]


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("missing", [OWN, 0.0])
def test_the_bounds_of_means_are_attained_in_both_lengths(k, missing):
    schema = Schema(tuple(Numeric(f"x{i}", -1, 1, missing=missing, outside="clamp") for i in range(k)))
    asked = Means(schema.names)
    computed, top, bottom = transformation(asked, schema), [GRID] * k, [-GRID] * k
    for relation, one, other in ((ADD, [], [top]), (SWAP, [top], [bottom])):
        bound, (l1, l2) = computed.one_row(relation), distance(asked, schema, one, other)
        assert 0.998 * bound.l1 < l1 <= bound.l1
        assert 0.998 * bound.l2_squared < l2 <= bound.l2_squared
    if missing == OWN:
        l1, l2 = distance(asked, schema, [top], [[MISSING_VALUE] * k])
        assert l2 <= computed.one_row(SWAP).l2_squared
        assert distance(asked, schema, [], [[MISSING_VALUE] * k]) == (1 + k, 1 + k)


CELL = st.one_of(st.none(), st.integers(0, CELLS - 1), st.sampled_from([0, 1023, 1024, 4095]))


@settings(max_examples=80, deadline=None)
@given(
    rows=st.lists(CELL, max_size=8), row=CELL, other=CELL, q=st.sampled_from(PROBABILITIES), shift=st.integers(-5, 5)
)
def test_no_pair_of_neighbours_moves_a_score_further_than_stated(rows, row, other, q, shift):
    query = Quantile(column="x", probability=q, epsilon=1, shift=shift, cuts=QUARTERS)
    computed = QuantileTransformation(query, X)
    for relation, before in ((ADD, rows), (SWAP, [*rows, other])):
        bound = computed.one_row(relation)
        assert moved(query, before, [*rows, row]) <= bound.l1
        steps = [
            score_steps(computed.integers((counts_of(cells),))[0], computed.units[0], bound)
            for cells in (before, [*rows, row])
        ]
        assert np.abs(steps[0] - steps[1]).max() <= STEPS


@pytest.mark.parametrize("q", PROBABILITIES, ids=str)
def test_half_the_sensitivity_of_a_score_would_be_caught(q):
    query = Quantile(column="x", probability=q, epsilon=1, cuts=QUARTERS)
    last, first = [4000] * 200, [100] * 200
    added = max(moved(query, last, [*last, 4000]), moved(query, first, [*first, 100]))
    assert added == max(q, 1 - q)  # attained, so nothing smaller would do
    assert moved(query, [*last, 100], [*last, 4000]) == 1


def test_a_score_is_the_distance_to_the_rank_that_is_sought():
    median = Quantile(column="x", probability=0.5, epsilon=1, cuts=QUARTERS)
    assert scores(median, [0, 0, 1500, 3900, None]) == [0, 0, -1, -1]
    shifted = Quantile(column="x", probability=0.5, epsilon=1, shift=-1, cuts=QUARTERS)
    assert scores(shifted, [0, 0, 1500, 3900]) == [0, -1, -2, -2]
    assert len(scores(Quantile(column="x", probability=0.5, epsilon=1), [0])) == CELLS


def test_a_person_of_several_rows_and_rows_that_vanish_are_paid_for():
    query = Quantile(column="x", probability=0.25, epsilon=1)
    several = Schema((Numeric("x", 0, 8),), person=Person("id", 3))
    computed = QuantileTransformation(query, several)
    assert sensitivity(computed, several, ADD).l1 == Fraction(9, 4)
    assert sensitivity(computed, several, SWAP).l1 == 3


def test_scores_of_very_many_rows_fit_into_integers():
    bound = QuantileTransformation(Quantile(column="x", probability=0.5, epsilon=1), X).one_row(ADD)
    steps = score_steps(np.array([-(10**15), 0]), Fraction(2), bound)
    assert list(steps) == [LOWEST_SCORE, 0]


@pytest.mark.parametrize("schema", [X, Schema((Numeric("x", 0, 8, bins=3),))], ids=["own", "bins"])
def test_means_move_by_their_sensitivity_and_no_further(schema):
    if not schema.columns[0].has_levels:
        assert distance(Means(("x",)), schema, [], [[-GRID - 1]]) == (2, 2)  # a missing cell counts as far as a number
    assert distance(Means(("x",)), schema, [], [[GRID]]) == (2, 2)
    assert distance(Means(("x",)), schema, [[-GRID]], [[GRID]]) == (2, 4)


def test_an_interval_stands_for_what_it_holds():
    """Numbers spread evenly have the mean they have, and those at either bound or in the middle theirs exactly."""
    even = np.linspace(0, 8, 400_001)
    for table, mean in ((even, even.mean()), (np.zeros(9), 0), (np.full(9, 8.0), 8), (np.full(9, 4.0), 4)):
        curator = Curator({"x": table}, X, budget=Budget.unlimited())
        count, total, missing = (float(p) for p in curator.ask(Release(Means(("x",)), Exact())).parts)
        assert (count, missing) == (len(table), 0)
        assert 4 + 4 * total / count == pytest.approx(mean, abs=8 / 2 / GRID / 100)
    assert len(places()) == CELLS


def test_means_and_quantiles_are_of_numbers():
    schema = Schema((Categorical("c", ("a", "b")), Ordinal("o", ("1", "2")), Numeric("x", 0, 1)))
    curator = Curator({"c": ["a"], "o": ["1"], "x": [0.5]}, schema, budget=Budget(rho=1.0))
    for name in ("c", "o"):
        for query in (Release(Means((name,)), Gaussian(rho=0.1)), Quantile(column=name, probability=0.5, epsilon=0.1)):
            with pytest.raises(QueryError, match=r"its levels are names, which have no (mean|quantile)"):
                curator.ask(query)
            with pytest.raises(QueryError, match="its levels are names"):
                preview(query, schema, ADD)
    assert curator.ledger.spent == 0
    with pytest.raises(QueryError, match="cannot be previewed"):
        preview("counts", schema, ADD)  # type: ignore[arg-type]


def test_a_quantile_is_charged_what_the_exponential_mechanism_costs_and_refused_beyond():
    curator = Curator({"x": np.arange(8.0)}, X, budget=Budget(rho=0.5))
    curator.ask(Quantile(column="x", probability=0.5, epsilon=1.0))
    assert curator.ledger.spent == pytest.approx(1 / 8)
    with pytest.raises(BudgetExceeded):
        curator.ask(Quantile(column="x", probability=0.5, epsilon=1.8))
    assert [e.about for e in curator.ledger.events] == ["Quantile(x)"]


def test_a_quantile_picks_the_interval_that_holds_it():
    table = {"x": np.linspace(0, 8, 40_001)}
    curator = Curator(table, X, budget=Budget(rho=1e3))
    for q in (0.25, 0.5, 0.9):
        assert curator.ask(Quantile(column="x", probability=q, epsilon=10.0)) == pytest.approx(q * CELLS, abs=20)


def test_a_preview_is_the_noise_that_comes():
    curator = Curator({"x": np.zeros(5)}, X, budget=Budget(rho=1.0))
    for query in (Release(Means(("x",)), Gaussian(rho=0.01)), Release(Counts(()), Gaussian(rho=0.01))):
        assert preview(query, X, ADD) == curator.ask(query).scales[0]


BAD = [
    ({"probability": 0}, "between 0 and 1"),
    ({"probability": 1e-7}, "between 0 and 1"),
    ({"probability": "half"}, "between 0 and 1"),
    ({"shift": 0.5}, "whole number of rows"),
    ({"cuts": (0, 5)}, "rising whole numbers"),
    ({"cuts": (0, 7, 7, CELLS)}, "rising whole numbers"),
    ({"cuts": (0, 7.0, CELLS)}, "rising whole numbers"),
    ({"epsilon": -1}, "epsilon"),
]


@pytest.mark.parametrize(("change", "why"), BAD, ids=str)
def test_a_quantile_that_makes_no_sense_is_refused_when_it_is_made(change, why):
    with pytest.raises(QueryError, match=why):
        Quantile(**({"column": "x", "probability": 0.5, "epsilon": 1.0} | change))


def test_means_need_a_column():
    with pytest.raises(QueryError, match="at least one column"):
        Means(())
