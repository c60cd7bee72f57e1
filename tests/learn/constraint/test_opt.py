"""CURATE's OPT: against a fine grid, feasible, no worse than uniform; Lemma 1's bounds by simulation."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcurate.learn.constraint.budget_plan import (
    GaussianErrors,
    LaplaceErrors,
    likely_tables,
    likely_tests,
    optimise,
    pure_leak,
    surrogate,
    uniform,
    zcdp_leak,
)
from dpcurate.published.curate import OpenErrors, PublishedLeak, optimise_from_zero, worst_tests

CODE = OpenErrors((0.05 * 0.2, 0.05 * 0.2), 0.3626748 / math.sqrt(1e5))


@pytest.mark.parametrize(
    ("variables", "total", "first"),
    [
        (5, 0.1, (0.003932, 0.0)),
        (5, 1, (0.03879, 0.0)),
        (5, 5, (0.08896, 0.02315)),
        (5, 10, (0.11918, 0.05818)),
        (8, 10, (0.15641, 0.02467)),
        (11, 10, (0.14777, 0.0)),
        (20, 5, (0.04213, 0.0)),
    ],
)
def test_from_zero_it_gives_what_the_authors_code_gives(variables, total, first):
    """Vectors measured from the authors' settings with SciPy's SLSQP."""
    edges = variables * (variables - 1) // 2
    tests = [worst_tests(edges, variables, j) for j in range(variables - 1)]
    found = optimise_from_zero(tests, total, CODE, PublishedLeak(1e-14))
    assert found[:2] == pytest.approx(first, abs=2e-4)


def grid_best(tests, total, errors, leak, floor):
    """The best falling budgets on a fine grid of shares of the total."""
    t = np.array(tests, dtype=float)
    even = uniform(t, total, leak)
    best = math.inf
    for shares in product(np.linspace(0, 1, 101 if len(t) == 2 else 31), repeat=len(t) - 1):
        if sum(shares) > 1:
            continue
        epsilon = [uniform(t[[j]], max(s, 1e-12) * total, leak) for j, s in enumerate((*shares, 1 - sum(shares)))]
        if all(a >= b - 1e-12 for a, b in pairwise(epsilon)) and min(epsilon) >= floor * even:
            best = min(best, surrogate(errors, np.array(epsilon)))
    return best


@pytest.mark.parametrize("floor", [0.0, 0.7])
@pytest.mark.parametrize("total", [0.001, 0.05, 1.0, 30.0])
@pytest.mark.parametrize("tests", [(10, 30), (28, 40, 15)])
def test_it_finds_what_a_fine_grid_finds(tests, total, floor):
    errors = LaplaceErrors(22.0, 19.0, 2.0) if total < 1 else LaplaceErrors(0.6, 0.5, 2.0)
    found = optimise(tests, total, errors, zcdp_leak, floor=floor)
    best = grid_best(tests, total, errors, zcdp_leak, floor)
    assert surrogate(errors, np.array(found)) <= best * 1.005 + 1e-6  # the grid may be beaten, not the other way


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 5000), min_size=1, max_size=6),
    st.floats(1e-5, 100),
    st.floats(1e-4, 50),
    st.floats(1e-4, 50),
    st.sampled_from([0.0, 0.7, 1.0]),
    st.sampled_from([zcdp_leak, pure_leak, PublishedLeak(1e-12)]),
)
def test_it_is_feasible_falling_and_no_worse_than_uniform(tests, total, inner, outer, floor, leak):
    errors = LaplaceErrors(inner, outer, 3.0)
    found = np.array(optimise(tests, total, errors, leak, floor=floor))
    t = np.array(tests, dtype=float)
    even = np.full(len(t), uniform(t, total, leak))
    assert leak(t, found).sum() <= total * (1 + 1e-9)
    assert (np.diff(found) <= 1e-12).all()
    assert (found >= floor * even * (1 - 1e-9)).all()
    assert surrogate(errors, found) <= surrogate(errors, even) + 1e-9


@pytest.mark.parametrize(("inner", "outer"), [(1.0, 1.0), (0.3, 2.0), (2.0, 0.3)])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("errors", [LaplaceErrors, GaussianErrors])
def test_lemma_1_holds_by_simulation(errors, inner, outer, epsilon):
    """For values on either side of the threshold the error is at most q, and nearly q somewhere."""
    sensitivity = 2.0
    scale = sensitivity / epsilon
    q1, q2 = (float(q[0]) for q in errors(inner, outer, sensitivity)(np.array([epsilon])))
    low, high = -min(inner, scale), min(outer, scale)
    stream = np.random.default_rng(0)
    noise = (stream.laplace if errors is LaplaceErrors else stream.normal)(0, scale, 200_000)
    worst = [0.0, 0.0]
    for beyond in np.linspace(0, 3, 31):
        for side in (0, 1):
            value = (beyond if side == 0 else -beyond) + noise
            grey = ((value >= low) & (value <= high)).mean() / 2
            wrong = (value < low).mean() if side == 0 else (value > high).mean()
            worst[side] = max(worst[side], grey + wrong)
    assert worst[0] <= q1 + 0.005
    assert worst[1] <= q2 + 0.005
    assert max(q1 - worst[0], q2 - worst[1]) < 0.15  # not vacuous


def test_counts_of_tests():
    assert worst_tests(10, 5, 0) == 10
    assert worst_tests(10, 5, 2) == 30
    assert likely_tests([(4, 4)] * 10, 0) == 10
    assert likely_tests([(4, 2), (1, 1)], 1) == 3 + 1
    assert likely_tests([(1, 1)], 3) == 0


@pytest.mark.parametrize("seed", range(5))
def test_no_more_tables_than_foreseen(seed):
    """All sets of columns that tests of an order are about, on random graphs and the complete one."""
    from itertools import combinations

    stream = np.random.default_rng(seed)
    nodes = range(7)
    edges = [e for e in combinations(nodes, 2) if seed == 0 or stream.random() < 0.4]
    around = {n: {a + b - n for a, b in edges if n in (a, b)} for n in nodes}
    for order in range(4):
        tables = {
            frozenset((a, b, *given))
            for edge in edges
            for a, b in (edge, edge[::-1])
            for given in combinations(around[a] - {b}, order)
        }
        foreseen = likely_tables([len(around[n]) for n in nodes], order)
        assert len(tables) <= foreseen
        assert seed > 0 or len(tables) == foreseen
