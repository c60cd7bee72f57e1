import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcurate.errors import BudgetExceeded, GraphError, QueryError
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.learn.score.acyclic import (
    CONSTRAINTS,
    OUTSIDE,
    AllowedArrows,
    acyclic_part,
    dag_of,
    exponential,
    log_determinant,
    reachable,
)
from dpcurate.learn.score.descent import ConvergenceError, Descent, Lagrangian, Path
from dpcurate.learn.score.local_search import LeastSquares, NoisyGains, Regressed, Search, checked
from dpcurate.learn.score.objectives import (
    Margins,
    NoisyGradient,
    Quadratic,
    ReleasedMoments,
    factors,
    fit_second_moments,
)
from dpcurate.networks import random_dag, random_linear
from dpcurate.published.draws import normals
from dpcurate.published.gradients import PublishedGradients
from dpcurate.published.schedules import Spending
from dpcurate.queries import Answer
from dpcurate.schema import Categorical, Numeric


def facts_of(d, knowledge=None):
    return AllowedArrows.of(tuple(f"X{i + 1}" for i in range(d)), knowledge)


def slope(function, weights, step=1e-6):
    found = np.zeros_like(weights)
    for index in np.ndindex(*weights.shape):
        up, down = weights.copy(), weights.copy()
        up[index] += step
        down[index] -= step
        found[index] = (function(up) - function(down)) / (2 * step)
    return found


def some_weights(d, seed, size=0.3):
    return np.random.default_rng(seed).normal(0, size, (d, d)) * (1 - np.eye(d))


@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize("seed", range(3))
def test_gradient_of_acyclicity_is_its_slope(name, seed):
    weights = some_weights(4, seed, 0.25)
    value, gradient = CONSTRAINTS[name](weights)
    assert value > 0
    np.testing.assert_allclose(gradient, slope(lambda w: CONSTRAINTS[name](w)[0], weights), atol=1e-6)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_acyclic_weights_have_h_0_and_cyclic_ones_do_not(name):
    upper = np.triu(some_weights(6, 0, 0.9), 1)
    assert CONSTRAINTS[name](upper)[0] == pytest.approx(0, abs=1e-9)
    upper[3, 0] = upper[0, 3] = 0.4
    assert CONSTRAINTS[name](upper)[0] > 1e-3


def test_huge_weights_do_not_overflow():
    for size in (1e2, 1e6, 1e60):
        weights = np.full((5, 5), size)
        for constraint in (exponential, log_determinant):
            value, gradient = constraint(weights)
            assert np.isfinite(value)
            assert value > 1
            assert np.isfinite(gradient).all()
    assert log_determinant(np.array([[0.0, 1.0], [1.0, 0.0]]))[0] >= OUTSIDE  # singular


def test_gradient_of_the_loss_is_its_slope():
    x = np.random.default_rng(0).normal(size=(50, 4))
    loss = Quadratic(np.cov(x.T))
    weights = some_weights(4, 1)
    np.testing.assert_allclose(loss(weights)[1], slope(lambda w: loss(w)[0], weights), atol=1e-6)
    rows = x - x.mean(axis=0)
    assert loss(weights)[0] == pytest.approx(0.5 * ((rows - rows @ weights) ** 2).sum() / 49)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 8), st.integers(0, 10**6), st.floats(0, 0.5))
def test_the_threshold_always_ends_in_a_dag(d, seed, threshold):
    weights = some_weights(d, seed, 1.0)
    facts = facts_of(d)
    arrows = acyclic_part(weights, threshold, facts)
    dag_of(facts.nodes, arrows)  # would refuse a cycle
    heavy = np.abs(weights) >= max(threshold, 1e-300)
    assert not (arrows & ~heavy).any()
    left_out = heavy & ~arrows
    assert all(reachable(arrows)[j, i] for i, j in np.argwhere(left_out))


def test_a_threshold_that_gives_a_dag_is_left_alone():
    weights = np.triu(some_weights(6, 3, 1.0))
    np.testing.assert_array_equal(acyclic_part(weights, 0.3, facts_of(6)), np.abs(weights) >= 0.3)


def test_knowledge_is_kept_whatever_the_weights():
    weights = np.zeros((4, 4))
    weights[0, 1] = weights[1, 2] = 3.0
    known = Knowledge.of(required_arrows=[("X2", "X1")], required_edges=[("X3", "X4")], forbidden_edges=[("X2", "X3")])
    arrows = acyclic_part(weights, 0.1, facts_of(4, known))
    assert arrows[1, 0]
    assert arrows[2, 3] or arrows[3, 2]
    assert arrows.sum() == 2
    with pytest.raises(GraphError):
        facts_of(2, Knowledge.of(required_edges=[("X1", "nobody")]))


def world(d, arcs, seed, kind="er"):
    dag = random_dag(d, edges=arcs, kind=kind, seed=seed)
    return dag, random_linear(dag, seed=seed).covariance


@pytest.mark.parametrize("acyclicity", CONSTRAINTS)
@pytest.mark.parametrize("rule", [Path(), Lagrangian()], ids=["path", "lagrangian"])
def test_both_forms_and_both_rules_find_a_small_world(acyclicity, rule):
    dag, covariance = world(6, 6, 1)
    ended = Descent(acyclicity=acyclicity, rule=rule, tolerance=1e-8).run(Quadratic(covariance), facts_of(6).allowed)
    assert ended.h < 1e-3
    arrows = acyclic_part(ended.weights, 0.3, facts_of(6))
    np.testing.assert_array_equal(arrows, dag.adjacency().astype(bool))


def test_forbidden_weights_stay_0():
    _, covariance = world(5, 6, 2)
    free = facts_of(5).allowed.copy()
    free[0, :] = False
    ended = Descent().run(Quadratic(covariance), free)
    assert not ended.weights[~free].any()


def test_a_descent_that_leaves_the_numbers_is_an_error_with_history():
    class Broken:
        def near(self, weights):
            return lambda w: (float("nan"), np.zeros_like(w))

    with pytest.raises(ConvergenceError, match="finite") as caught:
        Descent().run(Broken(), facts_of(3).allowed)
    assert len(caught.value.history) == 1


def test_a_budget_that_ends_returns_what_there_is():
    _, covariance = world(5, 5, 0)

    class Poor:
        looks = 0

        def near(self, weights):
            self.looks += 1
            if self.looks > 2:
                raise BudgetExceeded("no more")
            return Quadratic(covariance)

    ended = Descent().run(Poor(), facts_of(5).allowed)
    assert ended.stopped
    assert len(ended.history) == 2
    assert ended.weights.any()


@pytest.mark.parametrize("wrong", [{"acyclicity": "magic"}, {"penalty": -1.0}, {"tolerance": 0.0}])
def test_a_descent_refuses_nonsense(wrong):
    with pytest.raises(QueryError):
        Descent(**wrong)


def test_a_path_of_given_length_ends_at_its_last_weight():
    for stages in (1, 2, 7):
        path, alphas = Path.of(stages), []
        following = path.begin()
        while following is not None:
            alphas.append(following[0])
            following = path.after(*following, 0.5, 1.0, len(alphas))
        assert len(alphas) == stages
        assert alphas[-1] == pytest.approx(1000)


# --- where the loss comes from --------------------------------------------------------------------


def noised(matrix, sigma, own, source):
    noise = np.triu(source.normal(0, sigma, matrix.shape))
    noise = noise + np.triu(noise, 1).T
    tied = [0, *(1 + np.flatnonzero(~own))]
    noise[tied, tied] = noise[0, 0]
    return matrix + noise


def test_the_noise_of_a_covariance_is_what_simulation_says():
    source = np.random.default_rng(0)
    columns = [Categorical("a", ("0", "1")), Categorical("b", ("0", "1")), Numeric("c", -1, 1), Numeric("d", -1, 1)]
    own = np.array([False, False, True, True])
    n, sigma = 10_000, 30.0
    a = np.where(source.random(n) < 0.9, 1.0, -1.0)
    x = np.column_stack(
        [a, np.where(source.random(n) < 0.7, a, -a), source.uniform(-1, 1, n), source.uniform(-1, 1, n)]
    )
    y = np.column_stack([np.ones(n), x])
    matrix = y.T @ y
    first, second = np.array([[1.0, 0, 0.5, 0.2], [0, 1.0, 0, -1.0]]), np.array([0.3, 1.0, -0.2, 0.5])
    spread = ReleasedMoments.of(Answer((matrix,), (sigma,)), columns)
    values = []
    for _ in range(4000):
        seen = ReleasedMoments.of(Answer((noised(matrix, sigma, own, source),), (sigma,)), columns)
        # The number of rows only rescales; a regression does not see it.
        values.append(first @ seen.covariance @ second * seen.count / n)
    np.testing.assert_allclose(np.var(values, axis=0), spread.noise_variance(first, second), rtol=0.12)


def test_a_noised_matrix_becomes_a_valid_covariance():
    matrix = np.array([[1000.0, 0, 0], [0, 500, 700], [0, 700, -5]])
    spread = ReleasedMoments.of(Answer((matrix,), (10.0,)), [Numeric("a", 0, 1), Numeric("b", 0, 1)])
    valid = spread.valid()
    assert np.linalg.eigvalsh(valid).min() > 0
    assert (np.diag(valid) > 0).all()


def test_a_table_lost_in_noise_is_told():
    with pytest.raises(QueryError, match="too few rows"):
        ReleasedMoments.of(Answer((np.ones((2, 2)),), (50.0,)), [Numeric("a", 0, 1)])


def test_scales_are_the_table_s_units_the_bounds_or_the_spreads():
    columns = [Numeric("a", 0, 10), Categorical("b", ("x", "y", "z"))]
    covariance = np.diag([4.0, 0.25])
    np.testing.assert_allclose(factors(columns, covariance, "units"), [5, 1])
    np.testing.assert_allclose(factors(columns, covariance, "bounds"), [1, 1])
    np.testing.assert_allclose(factors(columns, covariance, "moments"), [0.5, 2])
    with pytest.raises(QueryError, match="scale"):
        factors(columns, covariance, "inches")


def test_second_moments_are_recovered_from_gradients():
    source = np.random.default_rng(1)
    x = source.normal(size=(500, 5)) * 0.3
    second = x.T @ x / 500
    margins = Margins(500.0, x.mean(axis=0), np.diag(second), 1e-4)
    looks = []
    for seed in range(6):
        weights = some_weights(5, seed)
        gradient = -second @ (np.eye(5) - weights) + source.normal(0, 1e-4, (5, 5))
        np.fill_diagonal(gradient, 0)
        looks.append(NoisyGradient(weights, gradient, 1e-4, 1.0, 0.1))
    np.testing.assert_allclose(fit_second_moments(looks, margins), second, atol=5e-4)


def test_normals_from_uniforms_have_the_right_moments():
    source = np.random.default_rng(2)
    found = normals(source.random, (101, 99))
    assert found.shape == (101, 99)
    assert abs(found.mean()) < 0.04
    assert found.std() == pytest.approx(1, abs=0.03)


def test_published_gradients_stop_when_their_claim_is_used_up():
    source = PublishedGradients(np.eye(3), Spending((0.1, 0.1), "run"), lambda _: 0.1, np.random.default_rng(0).random)
    for _ in range(2):
        gradient = source(np.zeros((3, 3)))[1]
        assert not np.diag(gradient).any()
    with pytest.raises(BudgetExceeded):
        source(np.zeros((3, 3)))


# --- refinement -----------------------------------------------------------------------------------


def test_residuals_are_those_of_regression():
    x = np.random.default_rng(0).normal(size=(200, 4)) @ some_weights(4, 5, 1.0)
    x -= x.mean(axis=0)
    covariance = x.T @ x / 200
    rest = Regressed.on(covariance, (1, 2))
    slopes = np.linalg.lstsq(x[:, [1, 2]], x[:, [0, 3]], rcond=None)[0]
    residual = x[:, [0, 3]] - x[:, [1, 2]] @ slopes
    np.testing.assert_allclose(rest.covariance[np.ix_([0, 3], [0, 3])], residual.T @ residual / 200, atol=1e-9)
    np.testing.assert_allclose((x @ rest.lines.T)[:, [0, 3]], residual, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_search_on_least_squares_finds_an_equal_variance_world_from_nothing(seed):
    dag, covariance = world(7, 8, seed)
    search = Search(LeastSquares(covariance, 1000.0, 1.0, 6.0, 0.3), facts_of(7))
    start = acyclic_part(Descent().run(Quadratic(covariance), facts_of(7).allowed).weights, 0.3, facts_of(7))
    np.testing.assert_array_equal(search.run(start), dag.adjacency().astype(bool))


def test_search_keeps_facts_and_never_a_cycle():
    _, covariance = world(6, 9, 3)
    known = Knowledge.of(
        required_edges=[("X1", "X6")], forbidden_edges=[("X2", "X3")], tiers=[["X1", "X2"], ["X5", "X6"]]
    )
    facts = facts_of(6, known)
    found = Search(LeastSquares(covariance, 1000.0, 1.0, 6.0, 0.3), facts).run(
        acyclic_part(np.zeros((6, 6)), 0.1, facts)
    )
    dag_of(facts.nodes, found)
    assert found[0, 5]
    assert not (found & ~facts.allowed).any()


def test_the_check_drops_what_a_neighbour_explains():
    # a -> b -> c, with a drawn a -> c that b explains
    weights = np.array([[0, 1.0, 0], [0, 0, 1.0], [0, 0, 0]])
    spread = np.linalg.inv(np.eye(3) - weights)
    covariance = spread.T @ spread / 20
    view = ReleasedMoments(1e4, np.zeros(3), covariance, 1.0, np.ones(3, dtype=bool))
    drawn = np.triu(np.ones((3, 3), dtype=bool), 1)
    keep, looks = checked(NoisyGains(view, covariance, 6.0), drawn, facts_of(3), z=2.5, least=0.0, order=1)
    assert keep.tolist() == [[False, True, False], [False, False, True], [False, False, False]]
    assert looks[0, 2].given == (1,)
