"""Effects between numbers: a normal distribution that would have released what was released."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dpcurate import Budget, Curator, Numeric, Schema, fit
from dpcurate.effects import Effect
from dpcurate.effects.from_features import NormalMargin, ReleasedOf, _even, gaussian
from dpcurate.effects.in_graph import Effects
from dpcurate.graphs.graph import Dag
from dpcurate.learn.measure_once.constants import FeatureConstants
from dpcurate.learn.measure_once.feature_release import Clip, ReleasedFeatures, buy_features
from dpcurate.networks import LinearWorld, random_mixed

DAG = Dag.of("zxmyw", [("z", "x"), ("z", "y"), ("x", "m"), ("m", "y"), ("w", "y")])
STRENGTHS = {("z", "x"): 0.8, ("z", "y"): -0.9, ("x", "m"): 0.7, ("m", "y"): 0.6, ("w", "y"): 0.5}
WORLD = LinearWorld(
    DAG,
    np.array([[STRENGTHS.get((a, b), 0.0) for b in DAG.nodes] for a in DAG.nodes]),
    np.array([1.0, 4.0, 1.0, 2.0, 0.5]),
)
ROWS = 60_000


def bought(epsilon: float, seed: int = 1, constants: FeatureConstants | None = None) -> ReleasedFeatures:
    data = WORLD.sample(ROWS, seed=seed)
    curator = Curator(data, WORLD.schema, budget=Budget(epsilon=epsilon, delta=1e-10), insecure_seed=seed)
    return buy_features(curator, curator.remaining, constants or FeatureConstants()).answers


@pytest.fixture(scope="module")
def scores() -> ReleasedFeatures:
    """Of scores without waves."""
    return bought(5.0, constants=FeatureConstants(curved_below=0.0))


@pytest.fixture(scope="module")
def quiet() -> ReleasedFeatures:
    return bought(5.0)


def asked(released: ReleasedFeatures) -> dict[tuple[str, str], Effect]:
    effects = Effects.of(DAG, released, WORLD.schema)
    return {(a, b): effects.effect(a, b) for a, b in product(DAG.nodes, repeat=2) if a != b}


@pytest.mark.parametrize("epsilon", [0.2, 5.0])
def test_effects_are_per_unit_and_within_their_errors(epsilon: float, quiet: ReleasedFeatures) -> None:
    found = asked(quiet if epsilon == 5.0 else bought(epsilon))
    known = {ends: e for ends, e in found.items() if e.state == "estimated"}
    assert len(known) == 7  # those with a directed path
    off = [(e.estimate - WORLD.effect(*ends)) / e.error for ends, e in known.items() if e.estimate and e.error]
    assert np.abs(off).max() < 4
    assert np.mean(np.square(off)) < 2.5
    assert max(e.error or 1.0 for e in known.values()) < (0.01 if epsilon == 5.0 else 0.08)
    assert found["y", "x"].estimate == 0


def test_an_effect_is_adjusted_and_mediators_are_not(quiet: ReleasedFeatures) -> None:
    found = asked(quiet)["x", "y"]
    assert "z" in found.adjusted_for
    assert "m" not in found.adjusted_for
    assert found.estimate == pytest.approx(0.42, abs=0.02)
    assert "one more unit raises the mean of y by 0.4" in str(found)
    assert found.strength == pytest.approx(0.42 * np.sqrt(WORLD.covariance[1, 1] / WORLD.covariance[3, 3]), abs=0.02)


def test_rows_shrunk_to_half_their_length_tell_the_same_covariance(scores: ReleasedFeatures) -> None:
    """Without the correction a covariance of shrunk rows is far too small, and slopes are attenuated."""
    table = np.column_stack(list(WORLD.sample(ROWS, seed=3).values()))
    square = 2.0
    shrunk, kept = replace(ReleasedOf.of(scores), square=square).scores(table)
    assert kept.mean() < 0.7
    products = replace(scores.products, mean=shrunk.mean(axis=0), products=shrunk.T @ shrunk / ROWS, noise=0.0)
    short = replace(scores, products=products, clip=Clip(square, 0.2, float(kept.mean())))
    fitted = gaussian(short, [NormalMargin.of(known, ROWS) for known in short.distributions])
    scale = np.sqrt(np.diagonal(WORLD.covariance))
    assert fitted.covariance / np.outer(scale, scale) == pytest.approx(
        WORLD.covariance / np.outer(scale, scale), abs=0.03
    )
    naive = np.linalg.solve(products.products[:2, :2], products.products[:2, 2])
    assert abs(naive[1] * scale[2] / scale[1] - 0.7) > 0.05
    found = Effects.of(DAG, short, WORLD.schema).effect("x", "m")
    assert found.estimate == pytest.approx(0.7, abs=0.03)


def test_errors_hold_sampling_and_noise_and_no_more(scores: ReleasedFeatures, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over fresh tables and noise, rows shrunk: the mean squared standardised error is 1."""
    monkeypatch.setattr("dpcurate.effects.from_features.MOST_DRAWN", 8_000)
    _even.cache_clear()
    made, rows, noise, draw = replace(ReleasedOf.of(scores), square=7.0), 4_000, 0.02, np.random.default_rng(1)
    squares = []
    for seed in range(24):
        shrunk, kept = made.scores(np.column_stack(list(WORLD.sample(rows, seed=100 + seed).values())))
        upper = np.triu(draw.normal(scale=noise, size=(5, 5)), 1)
        noised = shrunk.T @ shrunk / rows + upper + upper.T + np.diag(draw.normal(scale=noise * 2**0.5, size=5))
        products = replace(scores.products, mean=shrunk.mean(axis=0), products=noised, noise=noise**2)
        released = replace(scores, products=products, clip=Clip(7.0, 0.8, float(kept.mean())), rows=float(rows))
        known = {ends: e for ends, e in asked(released).items() if e.state == "estimated"}
        squares += [((e.estimate - WORLD.effect(*ends)) / e.error) ** 2 for ends, e in known.items()]  # type: ignore[operator]
    _even.cache_clear()
    assert np.mean(squares) == pytest.approx(1.0, abs=0.25)


def test_noise_that_leaves_less_than_no_variance_is_no_effect() -> None:
    schema = Schema((Numeric("x", 0, 2), Numeric("y", 0, 3)))
    table, dag = {"x": [1.0] * 2000, "y": [1.0, 2.0] * 1000}, Dag.of(("x", "y"), [("x", "y")])
    curator = Curator(table, schema, budget=Budget(epsilon=0.01, delta=1e-10), insecure_seed=1)
    released = buy_features(curator, curator.remaining, FeatureConstants()).answers
    assert "noise hides how much columns vary" in Effects.of(dag, released, schema).effect("x", "y").reason


def test_margins_that_are_not_normal_are_told_apart(quiet: ReleasedFeatures) -> None:
    assert all(NormalMargin.of(known, ROWS).fits for known in quiet.distributions)
    world = random_mixed(DAG, ordinals=0, categories=0, margins=("skewed",), seed=2)
    curator = Curator(
        world.sample(20_000, seed=1), world.schema, budget=Budget(epsilon=5, delta=1e-10), insecure_seed=1
    )
    released = buy_features(curator, curator.remaining, FeatureConstants()).answers
    found = Effects.of(DAG, released, world.schema).effect("x", "y")
    assert found.state == "not determined"
    assert "not normally distributed" in found.reason
    assert "give numbers `bins`" in found.reason


def test_a_cause_that_noise_cannot_tell_from_what_is_adjusted_for_is_not_determined(quiet: ReleasedFeatures) -> None:
    loud = replace(quiet, products=replace(quiet.products, noise=1.0))
    assert Effects.of(DAG, loud, WORLD.schema).effect("x", "y").state == "not determined"


def test_a_number_mostly_at_its_end_with_missing_cells_is_simulated() -> None:
    """The place of missing cells lies beyond those of the number."""
    draw = np.random.default_rng(3)
    x = draw.standard_normal(4000)
    table = {
        "a": np.where(draw.random(4000) < 0.1, np.nan, np.minimum(3 * x + 3, 1)),
        "b": x + draw.standard_normal(4000),
    }
    schema = Schema((Numeric("a", -10, 1, missing="own"), Numeric("b", -8, 8)))
    curator = Curator(table, schema, budget=Budget(epsilon=100, delta=1e-10), insecure_seed=1)
    assert str(fit(curator).effect("a", "b"))
