import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcurate import Budget, Curator
from dpcurate.errors import NotPrivate, QueryError
from dpcurate.graphs.graph import Cpdag, Dag
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.metrics import score, shd
from dpcurate.graphs.orient import dag_to_cpdag
from dpcurate.learn.methods import CurateScore, Noleaks, Notears, NotearsOnMoments
from dpcurate.learn.score.descent import ConvergenceError, Descent, Path
from dpcurate.learn.score.noised_gradients import norm_quantile
from dpcurate.learn.score.notears import released_moments
from dpcurate.learn.score.objectives import Gradients, Quadratic
from dpcurate.networks import load, random_dag, random_linear
from dpcurate.published import PublishedCurateScore, PublishedNoleaks
from dpcurate.published.gradients import stated_sensitivity
from dpcurate.queries import Answer, Gradient, GradientNorms
from dpcurate.schema import GRID, Neighbours, Numeric, Schema
from helpers import distance, schema_of

PRIVATE = [
    NotearsOnMoments(),
    Noleaks(iterations=4),
    CurateScore(iterations=4),
    CurateScore(iterations=6, budgets="released", clipping="quantile", schedule="additive"),
    CurateScore(iterations=6, schedule="exponential"),
]
NAMES = ["moments", "noleaks", "curate", "curate, adaptive", "curate, exponential"]


def linear(d, arcs, seed, rows=1000, kind="er"):
    dag = random_dag(d, edges=arcs, kind=kind, seed=seed)
    world = random_linear(dag, seed=seed)
    return dag, world, world.sample(rows, seed=seed)


# --- exact ----------------------------------------------------------------------------------------


# --- a released scale -----------------------------------------------------------------------------


def _wide(rows, times, missing="drop"):
    world = random_linear(random_dag(4, edges=3, seed=2), weights=(0.6, 0.9), seed=2)
    columns = tuple(Numeric(c.name, times * c.low, times * c.high, missing=missing) for c in world.schema.columns)
    return world, world.sample(rows, seed=2), Schema(columns)


def test_moments_on_a_released_scale_are_those_of_standardised_columns():
    world, table, schema = _wide(20_000, 30)
    spread = released_moments(Curator(table, schema, budget=Budget(rho=1e4), insecure_seed=1), 1e3)
    assert spread.count == pytest.approx(20_000, abs=10)
    size, found = np.sqrt(np.diag(world.covariance)), np.sqrt(np.diag(spread.covariance))
    assert np.allclose(found, 1, atol=0.15)
    assert np.allclose(spread.covariance / np.outer(found, found), world.covariance / np.outer(size, size), atol=0.03)
    assert np.allclose(spread.mean, 0, atol=0.1)


@pytest.mark.slow
def test_the_noise_of_a_released_scale_is_the_one_stated():
    rng = np.random.default_rng(1)
    table = {"a": rng.normal(size=4000), "b": rng.normal(size=4000)}  # independent: the scale moves no product
    schema = Schema((Numeric("a", -9, 9), Numeric("b", -9, 9)))
    found = [released_moments(Curator(table, schema, budget=Budget(rho=1), insecure_seed=s), 0.02) for s in range(80)]
    apart = np.array([f.covariance[0, 1] for f in found])
    assert 0.8 < apart.std() / np.mean([f.entry for f in found]) < 1.25
    assert found[0].squares == pytest.approx(2, rel=0.01)


def test_wide_bounds_cost_little_on_a_released_scale():
    for missing in ("drop", "own"):
        world, table, schema = _wide(20_000, 10, missing)
        curator = Curator(table, schema, budget=Budget(epsilon=1, delta=1e-10), insecure_seed=1)
        assert NotearsOnMoments().fit(curator).skeleton.edges == world.dag.edges
        assert curator.remaining >= 0
        assert [e.mechanism for e in curator.ledger.events][1:] == ["gaussian"] * 2
    by_bounds = Curator(table, schema, budget=Budget(epsilon=1, delta=1e-10), insecure_seed=1)
    assert not NotearsOnMoments(scale="bounds").fit(by_bounds).skeleton.edges


@pytest.mark.parametrize("kind", ["er", "scale-free"])
@pytest.mark.parametrize(("d", "arcs"), [(10, 10), (20, 20), (20, 40)])
def test_exact_notears_finds_small_worlds(kind, d, arcs):
    dag, world, table = linear(d, arcs, 1, kind=kind)
    learned = Notears().fit(Curator(table, world.schema, budget=Budget.unlimited()))
    assert isinstance(learned.graph, Dag)
    assert shd(learned.graph, dag) <= 2
    assert {e.verdict for e in learned.evidence} <= {"kept", "closes a cycle"}


def test_exact_notears_asks_once_and_only_where_exact_answers_are_given():
    _, world, table = linear(5, 5, 0)
    queryable = Curator(table, world.schema, budget=Budget.unlimited())
    Notears(refine="none").fit(queryable)
    assert len(queryable.privacy().events) == 1
    assert not queryable.privacy().private
    with pytest.raises(NotPrivate):
        Notears().fit(Curator(table, world.schema, budget=Budget(epsilon=1, delta=1e-6)))


def test_the_scale_decides_what_notears_finds():
    dag, world, table = linear(10, 20, 3)
    right = {
        scale: shd(Notears(scale=scale, refine="none", threshold=0.2).fit(
            Curator(table, world.schema, budget=Budget.unlimited())).graph, dag)
        for scale in ("units", "moments")
    }  # fmt: skip
    assert right["units"] < right["moments"]
    with pytest.raises(QueryError):
        Notears(scale="inches").fit(Curator(table, world.schema, budget=Budget.unlimited()))


def test_a_descent_that_is_cut_short_says_so():
    _, world, table = linear(8, 12, 2)
    short = Descent(rule=Path(first=1e-3, stages=1, most=1), penalty=0.0, acyclicity="exp")
    with pytest.raises(ConvergenceError, match="not acyclic"):
        Notears(descent=short).fit(Curator(table, world.schema, budget=Budget.unlimited()))


def test_knowledge_is_kept_by_every_method():
    net = load("cancer")
    table = net.sample(2000, seed=0)
    known = Knowledge.of(
        required_arrows=[("Pollution", "Smoker")],
        forbidden_edges=[("Cancer", "Xray")],
        required_edges=[("Xray", "Dyspnoea")],
    )
    for method in [Notears(scale="moments", threshold=0.05), *PRIVATE]:
        budget = Budget(epsilon=5, delta=1e-6)
        queryable = Curator(table, net.schema, budget=budget, allow_unproved=True, insecure_seed=0)
        graph = method.fit(queryable, known).graph
        assert ("Pollution", "Smoker") in graph.arrows
        assert frozenset(("Xray", "Dyspnoea")) in graph.edges
        assert frozenset(("Cancer", "Xray")) not in graph.edges


# --- private --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "eps", "least"), [("earthquake", 1, 0.9), ("cancer", 1, 0.9), ("survey", 0.1, 0.7)])
def test_noised_moments_find_the_small_networks(name, eps, least):
    net = load(name)
    found = []
    for seed in range(3):
        budget = Budget(epsilon=eps, delta=1e-10)
        queryable = Curator(net.sample(100_000, seed=seed), net.schema, budget=budget, insecure_seed=seed)
        learned = NotearsOnMoments().fit(queryable)
        assert isinstance(learned.graph, Cpdag)
        assert all(e.noise and e.threshold for e in learned.evidence)
        found.append(score(learned.graph, net.dag.cpdag()).skeleton_f1)
    assert np.mean(found) >= least


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("method", PRIVATE, ids=NAMES)
def test_proved_methods_spend_nearly_all_and_never_more(method, neighbours):
    net = load("cancer")
    budget = Budget(epsilon=1, delta=1e-6)
    queryable = Curator(net.sample(5000, seed=0), net.schema, budget=budget, neighbours=neighbours)
    learned = method.fit(queryable)
    privacy = queryable.privacy()
    assert privacy.private
    assert privacy.spent <= budget.rho
    assert privacy.spent == pytest.approx(budget.rho, rel=1e-6)
    assert learned.notes
    again = method.fit(queryable)  # nothing is left
    assert queryable.privacy().spent <= budget.rho
    assert not again.graph.edges


@pytest.mark.parametrize("method", [CurateScore(iterations=5, rho=0.02), NotearsOnMoments(rho=0.02)])
def test_rho_says_how_much_to_spend(method):
    net = load("cancer")
    queryable = Curator(net.sample(5000, seed=0), net.schema, budget=Budget(rho=0.05))
    method.fit(queryable)
    assert queryable.privacy().spent == pytest.approx(0.02, rel=1e-6)
    assert queryable.privacy().spent <= 0.02


class RandomAnswers:
    """Answers at random, whatever is asked, and keeps the sum of what was offered."""

    def __init__(self, schema, seed, size):
        self.schema, self.neighbours = schema, Neighbours.ADD_REMOVE
        self._source, self._size = np.random.default_rng(seed), size
        self.spent, self.total = 0.0, 0.3

    @property
    def remaining(self):
        return self.total - self.spent

    @property
    def budget(self):
        return Budget(rho=self.total)

    def privacy(self):
        from dpcurate.accounting import Privacy

        return Privacy(self.budget, "add-remove", "one row", self.spent, (), True)

    def draw(self):
        return float(self._source.random())

    def ask_all(self, queries):
        return [self.ask(r) for r in queries]

    def ask(self, query):
        self.spent += query.noise.rho
        assert self.spent <= self.total
        d = len(query.statistic.columns)
        if isinstance(query.statistic, Gradient):
            assert np.isfinite(np.array(query.statistic.weights)).all()
            return Answer((self._source.normal(0, self._size, (d, d)) * (1 - np.eye(d)),), (self._size / 2,))
        if isinstance(query.statistic, GradientNorms):
            bins = len(query.statistic.edges) + 1
            return Answer((self._source.normal(0, self._size, bins),), (self._size,))
        matrix = self._source.normal(0, self._size, (d + 1, d + 1))
        matrix = matrix + matrix.T
        matrix[0, 0] = abs(matrix[0, 0]) + 100
        return Answer((matrix,), (self._size / 10,))


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(PRIVATE), st.integers(0, 10**6), st.sampled_from([1.0, 30.0, 1000.0]), st.integers(2, 5))
def test_whatever_is_answered_the_result_is_a_graph_within_budget(method, seed, size, d):
    queryable = RandomAnswers(schema_of(*[2, 3, 2, 4, 2][:d]), seed, size)
    graph = method.fit(queryable).graph
    assert set(graph.nodes) == set(queryable.schema.names)
    assert queryable.spent <= queryable.total


def test_a_run_whose_budget_ends_returns_the_graph_so_far():
    net = load("earthquake")
    queryable = Curator(net.sample(20_000, seed=0), net.schema, budget=Budget(rho=0.1))
    learned = Noleaks(iterations=5, rho=0.2).fit(queryable)  # asks for twice what there is
    assert any("budget ended" in note for note in learned.notes)
    assert isinstance(learned.graph, Dag)
    assert queryable.privacy().spent <= 0.1


def test_a_tiny_table_gives_an_empty_graph_and_says_why():
    net = load("cancer")
    for method in PRIVATE[:3]:
        queryable = Curator(
            net.sample(20, seed=0), net.schema, budget=Budget(epsilon=0.01, delta=1e-10), insecure_seed=1
        )
        learned = method.fit(queryable)
        assert not learned.graph.edges
        assert "too few rows" in learned.notes[0]


def test_budgets_that_cannot_be_used_are_refused_before_anything_is_spent():
    net = load("cancer")
    table = net.sample(100, seed=0)
    pure = Curator(table, net.schema, budget=Budget(epsilon=1, delta=0))
    for method in PRIVATE[:3]:
        with pytest.raises(QueryError, match="pure"):
            method.fit(pure)
        with pytest.raises(QueryError, match="unlimited"):
            method.fit(Curator(table, net.schema, budget=Budget.unlimited()))
    assert pure.privacy().spent == 0
    queryable = Curator(table, net.schema, budget=Budget(rho=1))
    wrong = [NotearsOnMoments(rho=-1.0), Noleaks(margin=1.0), CurateScore(ratio=0.5), CurateScore(iterations=0)]
    for method in wrong:
        with pytest.raises(QueryError):
            method.fit(queryable)
    assert queryable.privacy().spent == 0


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Notears(scale="inches"), "scale must be one of"),
        (lambda: Notears(refine="twice"), "refine must be one of"),
        (lambda: NotearsOnMoments(scale="inches"), "scale must be one of"),
        (lambda: CurateScore(schedule="falling"), "schedule must be one of"),
        (lambda: CurateScore(budgets="guessed"), "budgets must be one of"),
        (lambda: CurateScore(clipping="guessed"), "clipping must be one of"),
        (lambda: CurateScore(schedule="additive", ratio=4.0), "ratio belongs to the geometric schedule"),
        (lambda: CurateScore(kept=0.9), "kept belongs to clipping='quantile'"),
        (lambda: PublishedCurateScore(increment="cubic"), "increment must be one of"),
    ],
)
def test_no_recipe_is_built_with_an_option_it_would_ignore(make, says):
    with pytest.raises(QueryError, match=says):
        make()


def test_the_clip_follows_a_quantile_of_the_rows_norms():
    names = ("a", "b")
    rows = {"a": np.linspace(-1, 1, 4001), "b": np.ones(4001)}
    schema = Schema(tuple(Numeric(n, -1, 1) for n in names))
    queryable = Curator(rows, schema, budget=Budget(rho=1e6), insecure_seed=1)
    source = Gradients(queryable, names, None, None, None, [])
    inside = np.zeros((2, 2))  # a row's matrix is -x x^T off the diagonal: its norm is |a| sqrt 2, uniform
    for kept in (0.5, 0.9):
        found = norm_quantile(source, inside, 1.0, kept, 100.0)
        assert kept * np.sqrt(2) <= found <= kept * np.sqrt(2) * np.sqrt(2)
    assert norm_quantile(source, inside, 1e-6, 0.9, 100.0) == pytest.approx(4e-6)  # all rows beyond the last edge
    assert [e.mechanism for e in queryable.ledger.events] == ["insecure-seed", *["gaussian"] * 3]


def test_the_class_of_a_dag_with_knowledge_is_its_cpdag_where_knowledge_says_nothing():
    for seed in range(5):
        dag = random_dag(7, edges=8, seed=seed)
        assert dag_to_cpdag(dag, Knowledge()) == dag.cpdag()


# --- clipping -------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_one_extreme_row_moves_a_clipped_gradient_by_at_most_the_clip(data):
    schema = schema_of(2, 3, numeric=2)
    integer = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    record = lambda: [integer(0, 1), integer(0, 2), integer(-GRID, GRID), integer(-GRID, GRID)]  # noqa: E731
    table = [record() for _ in range(integer(0, 5))]
    extreme = [integer(0, 1), 2 * integer(0, 1), GRID * (2 * integer(0, 1) - 1), GRID * (2 * integer(0, 1) - 1)]
    weights = tuple(tuple(0.0 if i == j else data.draw(st.floats(-50, 50)) for j in range(4)) for i in range(4))
    clip = data.draw(st.floats(0.01, 20))
    statistic = Gradient(schema.names, weights, clip)
    _, added = distance(statistic, schema, table, [*table, extreme])
    assert float(added) <= clip**2
    if table:
        _, replaced = distance(statistic, schema, table, [*table[1:], extreme])
        assert float(replaced) <= 4 * clip**2


@pytest.mark.parametrize("norm", [10.0, 100.0])
def test_the_clip_of_the_average_does_not_bound_one_row(norm):
    """NOLEAKS clips each entry of the averaged gradient; one row still moves it far beyond its claim."""
    source = np.random.default_rng(0)
    n, d = 5000, 5
    x = source.normal(size=(n, d)) * 0.1
    extreme = np.full((1, d), norm)

    def averaged(rows):
        gradient = Quadratic(rows.T @ rows / len(rows))(np.zeros((d, d)))[1]
        np.fill_diagonal(gradient, 0.0)
        return np.clip(gradient, -2, 2)

    moved = np.linalg.norm(averaged(np.vstack([x, extreme])) - averaged(x))
    ratio = moved / stated_sensitivity(d, n)
    assert ratio == pytest.approx(min(norm**2, 2 * n) / 4, rel=0.1)  # 25 times and 2,500 times the claim


# --- as published ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    [
        PublishedNoleaks.sharing(2.0, 20),
        PublishedCurateScore(first=0.1, total=2.0),
        PublishedCurateScore(increment="additive", first=0.05, iterations=20, schedule="run"),
    ],
    ids=["noleaks", "curate", "curate, additive"],
)
def test_published_variants_are_refused_unless_allowed_and_state_their_claim(method):
    net = load("earthquake")
    table = net.sample(5000, seed=0)
    with pytest.raises(NotPrivate):
        method.fit(Curator(table, net.schema, budget=Budget(epsilon=1, delta=1e-6)))
    queryable = Curator(table, net.schema, budget=Budget(epsilon=1, delta=1e-6), allow_unproved=True, insecure_seed=0)
    learned = method.fit(queryable)
    assert not queryable.privacy().private
    assert 0 < learned.claimed <= 2.0 + 1e-9
    assert "NOT PRIVATE" in learned.notes[0]
    assert isinstance(learned.graph, Dag)


@pytest.mark.slow
def test_a_hundred_columns():
    schema = Schema(tuple(Numeric(f"X{i + 1}", -40, 40) for i in range(100)))
    dag, _, table = linear(100, 60, 0)
    learned = Notears(refine="none", descent=Descent(tolerance=1e-4)).fit(
        Curator(table, schema, budget=Budget.unlimited())
    )
    assert shd(learned.graph, dag) <= 6
    assert math.isfinite(sum(e.value for e in learned.evidence))
