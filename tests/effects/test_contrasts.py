"""Effects from contrasts of levels: the table, its noise, the adjustment formula, and what is not determined."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from dpcurate import Budget, Curator, networks
from dpcurate.effects.from_contrasts import NoisedCounts, standardised
from dpcurate.effects.in_graph import Effects
from dpcurate.errors import QueryError
from dpcurate.graphs.graph import Cpdag, Dag, Pag
from dpcurate.learn.measure_once.blocks import helmert, rotate, subsets
from dpcurate.learn.measure_once.central_moments import Released
from dpcurate.networks import Network, Variable
from dpcurate.result.discovery import Discovery
from dpcurate.study.calls import discover, discover_from, fit

ROWS = 20_000
WORLD = networks.random_network(
    Dag.of("zxyw", [("z", "x"), ("z", "y"), ("x", "y"), ("w", "y")]), levels=(2, 3), seed=37, concentration=2.0
)
LEVELS = [len(v.levels) for v in WORLD.variables]


def released(codes: np.ndarray, sets: list[tuple[int, ...]], deviation: float, seed: int) -> Released:
    """Contrasts of these sets, with noise as a Gaussian mechanism would add it."""
    draw = np.random.default_rng(seed)
    sums, variances = {}, {}
    for u in sets:
        counts = np.zeros([LEVELS[a] for a in u])
        np.add.at(counts, tuple(codes[:, a] for a in u), 1.0 if u else len(codes))
        exact = rotate(counts, [helmert(LEVELS[a]) for a in u])
        sums[u], variances[u] = exact + deviation * draw.normal(size=exact.shape), max(deviation**2, 1e-12)
    return Released(tuple(LEVELS), sums, variances)


ALL = [(), *subsets((0, 1, 2, 3))]
PAIRS = [u for u in ALL if len(u) < 3]
CODES = WORLD.codes(ROWS, seed=1).astype(int)


def truth(network: Network, cause: str, outcome: str) -> np.ndarray:
    return np.array([network.do({cause: level}).marginal([outcome]) for level in network[cause].levels])


@pytest.mark.parametrize("columns", [(2,), (1, 0), (2, 0, 1), (3, 1, 0, 2)])
def test_contrasts_make_the_table_whole_again(columns: tuple[int, ...]) -> None:
    table = NoisedCounts.of(released(CODES, ALL, 0.0, 0), columns)
    assert table is not None
    counts = np.zeros([LEVELS[a] for a in columns])
    np.add.at(counts, tuple(CODES[:, a] for a in columns), 1.0)
    assert table.counts == pytest.approx(counts, abs=1e-6)
    assert NoisedCounts.of(released(CODES, PAIRS, 0.0, 0), (0, 1, 2)) is None


def test_the_noise_of_a_margin_is_what_draws_show() -> None:
    nothing = np.zeros((0, 4), dtype=int)
    drawn = [NoisedCounts.of(released(nothing, ALL, 3.0, seed), (1, 2, 0)) for seed in range(400)]
    margins = np.array([one.counts.sum(axis=2) for one in drawn if one is not None])
    assert drawn[0] is not None
    assert margins.var(axis=0) == pytest.approx(drawn[0].noise_of_margin(2), rel=0.35)


def test_adjustment_errors_cover_the_truth_and_no_more() -> None:
    """Over fresh tables and noise: the mean squared standardised error is 1."""
    wanted = truth(WORLD, "x", "y")
    squares = []
    for seed in range(80):
        codes = WORLD.codes(ROWS, seed=seed).astype(int)
        table = NoisedCounts.of(released(codes, ALL, 25.0, seed), (1, 2, 0))
        assert table is not None
        found = standardised(table)
        assert found is not None
        errors = np.sqrt(np.diagonal(found.covariances, axis1=1, axis2=2).T)
        squares.append(((found.values - wanted) / errors) ** 2)
    assert np.mean(squares) == pytest.approx(1.0, abs=0.25)


def test_a_confounded_effect_is_adjusted_and_not_taken_from_the_pair() -> None:
    effects = Effects.of(WORLD.dag, released(CODES, ALL, 2.0, 3), WORLD.schema)
    found = effects.effect("x", "y")
    assert found.table is not None
    assert found.table.values == pytest.approx(truth(WORLD, "x", "y"), abs=0.03)
    assert "z" in found.adjusted_for
    joint = WORLD.marginal(["x", "y"])
    assert np.abs(joint / joint.sum(axis=1, keepdims=True) - truth(WORLD, "x", "y")).max() > 0.03


def test_pairs_tell_what_needs_no_adjustment_and_nothing_else() -> None:
    effects = Effects.of(WORLD.dag, released(CODES, PAIRS, 2.0, 3), WORLD.schema)
    root = effects.effect("z", "y")
    assert root.adjusted_for == ()
    assert root.table is not None
    assert root.table.values == pytest.approx(truth(WORLD, "z", "y"), abs=0.03)
    other = effects.effect("x", "y")
    assert other.state == "not determined"
    assert "the table of x, y, z was not bought" in other.reason
    assert "quantify" in other.reason
    assert effects.effect("y", "x").state == "none"
    assert effects.effect("w", "x").estimate == 0


def test_strata_that_noise_hides_widen_the_interval() -> None:
    """Where a level of the cause never meets a stratum, that stratum may hold anything."""
    rare = Network(
        "rare",
        (
            Variable("z", ("a", "b"), (), np.array([[0.9, 0.1]])),
            Variable("x", ("a", "b"), ("z",), np.array([[0.5, 0.5], [1.0, 0.0]])),
            Variable("y", ("a", "b"), ("x", "z"), np.array([[0.5, 0.5], [0.2, 0.8], [0.3, 0.7], [0.9, 0.1]])),
        ),
    )
    counts = np.zeros((2, 2, 2))
    codes = rare.codes(ROWS, seed=1)
    np.add.at(counts, (codes[:, 1], codes[:, 2], codes[:, 0]), 1.0)
    found = standardised(NoisedCounts(counts, np.full(counts.shape, 1e-9)))
    assert found is not None
    errors = np.sqrt(np.diagonal(found.covariances, axis1=1, axis2=2).T)
    assert errors[1, 0] > 0.025 > errors[0, 0]
    off = np.abs(found.values - truth(rare, "x", "y"))
    assert (off < 2 * errors).all()
    assert standardised(NoisedCounts(counts, np.full(counts.shape, 1e9))) is None


def test_a_class_has_all_its_effects() -> None:
    graph = Cpdag.of("zxyw", lines=["zx"])
    effects = Effects.of(graph, released(CODES, ALL, 2.0, 3), WORLD.schema)
    both = effects.effect("z", "x")
    assert [one.state for one in both.possible] == ["estimated", "none"]
    low, high = both.low, both.high
    assert low is not None
    assert high is not None
    assert low <= 0 <= high
    assert [(one.cause, one.outcome) for one in effects.edges] == [("z", "x"), ("x", "z")]
    star = Cpdag.of([*"zxyw", *"abcdefgh"], lines=[("z", x) for x in "xywabcdefgh"])
    assert Effects.of(star, None, WORLD.schema).effect("z", "x").state == "not identified"


def test_where_causes_may_be_hidden_an_effect_is_told_if_it_is_identified() -> None:
    pag = Pag.of("zxyw", [("z", "o->", "x"), ("w", "o->", "x"), ("x", "->", "y")])
    effects = Effects.of(pag, released(CODES, ALL, 2.0, 3), WORLD.schema)
    assert effects.effect("x", "y").state == "estimated"
    assert effects.effect("y", "x").state == "none"
    hidden = effects.effect("z", "y")
    assert hidden.state == "not identified"
    assert "a hidden cause may move z" in hidden.reason


def test_questions_that_make_no_sense_are_refused() -> None:
    effects = Effects.of(WORLD.dag, None, WORLD.schema)
    for asked, message in (
        (("q", "y"), "no column 'q'"),
        (("x", "x"), "on itself"),
        (("x", "y", "9"), "'x' has no level '9'"),
        (("x", "y", "0", "0"), "changes nothing"),
    ):
        with pytest.raises(QueryError, match=message):
            effects.effect(asked[0], asked[1], **dict(zip(("to", "instead_of"), asked[2:], strict=False)))
    assert "keeps no answers" in effects.effect("x", "y").reason


@pytest.fixture(scope="module")
def found() -> tuple[Curator, Discovery]:
    curator = Curator(WORLD.sample(ROWS, seed=2), WORLD.schema, budget=Budget(epsilon=8, delta=1e-10), insecure_seed=5)
    return curator, fit(curator, share=0.5 * curator.remaining)


def test_effects_of_a_finding_cost_nothing(found: tuple[Curator, Discovery]) -> None:
    curator, result = found
    before, left = curator.privacy(), curator.remaining
    assert left > 0
    for cause, outcome in product(WORLD.nodes, repeat=2):
        if cause != outcome:
            result.effect(cause, outcome)
    assert len(str(result.effects()).splitlines()) == len(result.graph.arrows) + 2 * len(result.graph.lines)
    assert curator.privacy() == before
    assert curator.remaining == left


def test_the_ledger_of_a_table_is_the_same_after_every_free_call(tmp_path: Path) -> None:
    kept = tmp_path / "table.ledger"
    result = discover(WORLD.sample(ROWS, seed=2), WORLD.schema, epsilon=2, delta=1e-10, ledger=kept)
    before = kept.read_bytes()
    for cause, outcome in product(WORLD.nodes, repeat=2):
        if cause != outcome:
            str(result.effect(cause, outcome))
    str(result.effects())
    result.report(tmp_path / "edges.csv")
    result.report(tmp_path / "page.html")
    result.report(tmp_path / "report.json")
    assert kept.read_bytes() == before
    again = discover_from(kept)
    assert str(again.effects()) == str(result.effects())
    assert kept.read_bytes() == before
