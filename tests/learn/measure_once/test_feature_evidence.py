"""Evidence from features: its null distribution for every mix of kinds, and what the features themselves are."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from dpcurate import Budget, Curator
from dpcurate.accounting import rho_of
from dpcurate.errors import QueryError
from dpcurate.learn.measure_once import MeasureOnce
from dpcurate.learn.measure_once.column_features import MOST_GROUPS, WAVES, features_of, of_levels, of_number
from dpcurate.learn.measure_once.constants import Constants, FeatureConstants
from dpcurate.learn.measure_once.feature_evidence import FeatureEvidence, _Regressed
from dpcurate.learn.measure_once.feature_release import FeatureCovariance, buy_features
from dpcurate.queries import MOST_FEATURES
from dpcurate.queries.proxies import Proxy
from dpcurate.schema import Categorical, Numeric, Ordinal, Schema

KINDS = ("number", "ordinal", "category", "many levels", "missing")
NOISES = {"none": 100.0, "as sampling": 0.4, "ruling": 0.002}
"""rho: noise far below, about equal to and far above the sampling error of 2,000 rows."""


def drawn(kind, signal, random):
    """A column of a kind that follows a signal of variance 1, and how it is declared."""
    latent = 0.8 * signal + random.standard_normal(len(signal))
    if kind == "number":
        return np.exp(latent), lambda name: Numeric(name, 0, 1000)
    if kind == "missing":
        shown = np.where(random.random(len(latent)) < 0.2, np.nan, latent)
        return shown, lambda name: Numeric(name, -10, 10, missing="own")
    size = {"ordinal": 4, "category": 3, "many levels": 12}[kind]
    level = np.clip(np.floor(latent + size / 2), 0, size - 1).astype(int)
    if kind == "ordinal":
        return level, lambda name: Ordinal(name, tuple(map(str, range(size))))
    return level, lambda name: Categorical(name, tuple(map(str, range(size))))


def table(kinds, signal, random, given="number"):
    """Columns that depend on each other only through s, which shows the signal (nothing if it is 0)."""
    made = {f"x{i}": drawn(kind, signal, random) for i, kind in enumerate(kinds)}
    columns = [declare(name) for name, (_, declare) in made.items()]
    values = {name: shown for name, (shown, _) in made.items()}
    return values | {"s": signal}, Schema((*columns, Numeric("s", -6, 6)))


def residuals(one, other, given, rho, tables=40, rows=2000):
    """Squared residuals of independent columns over what their null says, one mean a table."""
    found = []
    for seed in range(tables):
        random = np.random.default_rng(seed)
        strength = 1.0 if given else 0.0
        signal = random.standard_normal(rows)
        values, schema = table((one, other), strength * signal, random)
        values["s"] = signal
        curator = Curator(values, schema, budget=Budget(rho=rho), insecure_seed=seed)
        released = buy_features(curator, rho, FeatureConstants()).released
        evidence = FeatureEvidence(released, (0.1,), FeatureConstants())
        fixed = [evidence._blocks[2]] if given else []
        after = _Regressed.on(released, evidence._smooth, fixed)
        left, right = (after.white(evidence._blocks[i][None, :], released.curved[i]) for i in (0, 1))
        b = evidence._blocks[1]
        seen, variance = after.compared(evidence._blocks[0][None, :], b, after.residual(b), left, right)
        used = np.ones(seen.shape[1:], dtype=bool)
        if released.curved[0] and released.curved[1]:
            used[-released.curved[0] :, -released.curved[1] :] = False
        found.append(float(np.mean((seen**2 / (variance + 1 / released.rows))[0][used])))
    return np.array(found)


@pytest.mark.slow(but=["number-category-ruling"])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("one", "other"), list(combinations_with_replacement(KINDS, 2)), ids=str)
def test_independent_columns_leave_what_the_null_says(one, other, noise):
    found = residuals(one, other, (), NOISES[noise], tables=24)
    error = max(found.std() / np.sqrt(len(found)), 0.05)
    assert abs(found.mean() - 1) < 4 * error + 0.1


@pytest.mark.slow(but=["number-ordinal-ruling"])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("one", "other"), [("number", "number"), ("number", "ordinal"), ("ordinal", "missing")])
def test_columns_that_a_third_explains_leave_what_the_null_says(one, other, noise):
    found = residuals(one, other, ("s",), NOISES[noise], tables=24)
    error = max(found.std() / np.sqrt(len(found)), 0.05)
    assert found.mean() - 1 < 4 * error + 0.25


@pytest.mark.slow
def test_the_null_counts_the_noise_of_the_release(monkeypatch):
    """Without it the same residuals would be several times too large: the tests above can fail."""
    honest, compared = residuals("number", "category", (), NOISES["ruling"], tables=20), _Regressed.compared
    assert 0.3 < honest.mean() < 3
    monkeypatch.setattr(_Regressed, "compared", lambda *a: (compared(*a)[0], 0 * compared(*a)[1]))
    assert residuals("number", "category", (), NOISES["ruling"], tables=20).mean() > 3 * honest.mean()


@pytest.mark.parametrize("noise", [1e-6, 1e-3, 0.05, 0.2, 1.0])
def test_values_that_are_noise_alone_are_no_evidence_however_many_there_are(noise):
    """The mean root of a Bayes factor is below 1 under its null; that of many coordinates falls with their number."""
    rows, random = 100_000.0, np.random.default_rng(1)
    released = FeatureCovariance(((0, 1), (1, 2)), np.eye(2), (0, 0), (False, False), (np.eye(1),) * 2, 0.0, rows)
    evidence = FeatureEvidence(released, Constants().effect_sizes, FeatureConstants())
    for size, pairs in ((1, 20_000), (30, 100)):
        values = np.sqrt(noise + 1 / rows) * random.standard_normal((pairs, size, size))
        found = evidence._evidence(values, np.full(values.shape, noise), 0, 0)
        assert np.exp(found / 2).mean() < 1
        assert found.mean() < 0
        assert size == 1 or found.max() < 6


def independent(columns, levels, rows, seed):
    """Numbers, some of them mostly zero, ordinals, and levels of skewed shares, none of which depends on another."""
    random = np.random.default_rng(seed)
    values, declared = {}, []
    for i in range(columns):
        name, kind = f"x{i}", ("levels", "number", "levels", "ordinal", "zeros")[i % 5]
        if kind in ("number", "zeros"):
            values[name] = np.exp(random.standard_normal(rows)) * (
                random.random(rows) < (0.4 if kind == "zeros" else 1)
            )
            declared.append(Numeric(name, 0, 1000))
            continue
        size = int(random.integers(3, levels + 1))
        values[name] = random.choice(size, rows, p=random.dirichlet(np.full(size, random.uniform(0.2, 2))))
        declared.append((Categorical if kind == "levels" else Ordinal)(name, tuple(map(str, range(size)))))
    return values, Schema(tuple(declared))


@pytest.mark.slow(but=["5-100-20000-10.0", "12-60-10000-0.3"])
@pytest.mark.parametrize(
    ("columns", "levels", "rows", "epsilon"),
    [(5, 100, 10_000, 1.0), (5, 100, 20_000, 10.0), (12, 60, 10_000, 0.3), (30, 10, 5000, 1.0), (40, 5, 5000, 20.0)],
)
def test_independent_columns_are_not_linked(columns, levels, rows, epsilon):
    values, schema = independent(columns, levels, rows, columns)
    curator = Curator(values, schema, budget=Budget(epsilon=epsilon, delta=1e-10), insecure_seed=3)
    found = MeasureOnce().fit(curator)
    assert sum(p > 0.5 for p in found.linked.values()) <= 1
    assert max(found.linked.values()) < 0.95


def exact(values, bounds=(0.0, 10.0), depth=4):
    column = Numeric("x", *bounds)
    place = np.clip(((values - bounds[0]) / (bounds[1] - bounds[0]) * 4096).astype(int), 0, 4095)
    finest = np.bincount(place, minlength=4096).astype(float)
    depths = [finest.reshape(8**k, -1).sum(axis=1) for k in range(1, depth + 1)]
    return of_number(column, depths, float(len(values)), 0.0, own=False), place


def test_scores_do_not_change_with_bounds_or_a_monotone_transform():
    x = np.random.default_rng(0).normal(5, 1, 20_000)
    plain, place = exact(x)
    wide, far = exact(x, (-500.0, 500.0))
    bent, exp = exact(np.exp(x), (0.0, float(np.exp(9.5))))
    scores = [features_of([d], curved=False)[0].values[p, 0] for d, p in ((plain, place), (wide, far), (bent, exp))]
    assert np.corrcoef(scores)[0, 1] > 0.99
    assert np.corrcoef(scores)[0, 2] > 0.99
    assert abs(scores[0].mean()) < 0.02
    assert abs(scores[0].std() - 1) < 0.02


def test_a_score_comes_with_waves_as_many_as_its_places_bear():
    x = np.random.default_rng(0).normal(5, 1, 20_000)
    found = [features_of([exact(v)[0]], curved=True)[0] for v in (x, np.clip(np.round(x), 4, 6), np.clip(x, 3, 3.001))]
    assert [(one.size, one.curved) for one in found] == [(5, 4), (2, 1), (1, 0)]
    assert found[0].covariance == pytest.approx(np.diag([1, *[1 / WAVES] * 4]), abs=0.02)
    assert found[0].length == pytest.approx(2, abs=0.05)


def test_many_zeros_share_one_score():
    x = np.where(np.random.default_rng(1).random(5000) < 0.7, 0.0, np.random.default_rng(2).exponential(2, 5000))
    known, place = exact(np.minimum(x, 9.9))
    found = features_of([known], curved=False)[0].values[place, 0]
    assert len(set(found[x == 0])) == 1
    assert found[x == 0].max() < found[x > 0.01].min()


def test_noise_alone_never_makes_a_distribution_go_backwards():
    random = np.random.default_rng(3)
    depths = [random.normal(10, 50, 8**k) for k in range(1, 5)]
    known = of_number(Numeric("x", 0, 1), depths, 1000.0, 50.0, own=False)
    assert (known.shares >= 0).all()
    assert known.shares.sum() == pytest.approx(1)
    values = features_of([known], curved=True)[0].values
    assert np.isfinite(values).all()
    assert (np.diff(values[:, 0]) >= 0).all()


def test_a_thousand_levels_become_few_features():
    column = Categorical("c", tuple(map(str, range(1000))))
    counts = np.random.default_rng(4).zipf(1.3, 1000).clip(max=10_000).astype(float)
    known = of_levels(column, counts, counts.sum(), 1.0)
    found = features_of([known], curved=False)[0]
    assert found.values.shape == (1000, MOST_GROUPS - 1)
    assert np.isfinite(found.values).all()
    rare = np.argsort(-counts, kind="stable")[MOST_GROUPS:]
    assert np.ptp(found.values[rare], axis=0).max() == pytest.approx(0)
    assert sum(f.size for f in features_of([known] * 500, curved=True)) <= MOST_FEATURES


@pytest.mark.parametrize(
    "options",
    [{"neighbours": "replace"}, {"budget": Budget(epsilon=50.0, delta=0)}, {}],
    ids=["replace", "pure", "rho"],
)
def test_the_default_learns_a_mixed_table_under_every_kind_of_budget(options):
    random = np.random.default_rng(5)
    a = random.standard_normal(20_000)
    b = np.where(a + random.standard_normal(20_000) > 0, "yes", "no")
    c = (b == "yes") + 0.7 * random.standard_normal(20_000)
    schema = Schema((Numeric("a", -100, 100), Categorical("b", ("no", "yes")), Numeric("c", -20, 20)))
    budget = Budget(rho=rho_of(epsilon=1, delta=1e-10))
    curator = Curator({"a": a, "b": b, "c": c}, schema, insecure_seed=1, **({"budget": budget} | options))
    found = MeasureOnce().fit(curator)
    assert {frozenset(e) for e in (("a", "b"), ("b", "c"))} == found.skeleton.edges
    assert "features" in found.notes[0]
    assert sum(found.leaked) <= curator.budget.ceiling


def test_a_copied_column_does_not_break_the_search():
    random = np.random.default_rng(6)
    a = random.standard_normal(5000)
    schema = Schema(tuple(Numeric(name, -10, 10) for name in "abcd"))
    values = {"a": a, "b": a, "c": 2 * a - 1, "d": random.standard_normal(5000)}
    found = MeasureOnce().fit(Curator(values, schema, budget=Budget(rho=1.0), insecure_seed=2))
    assert all("d" not in edge for edge in found.skeleton.edges)
    assert found.skeleton.edges
    assert "a and b are all but the same column" in found.notes[1]


def test_a_column_that_others_determine_is_told_unless_noise_hides_it():
    random = np.random.default_rng(7)
    a, b = random.standard_normal((2, 20_000))
    values = {"a": a, "b": b, "c": a + b, "d": random.standard_normal(20_000)}
    schema = Schema(tuple(Numeric(name, -10, 10) for name in "abcd"))
    rich, poor = (
        MeasureOnce().fit(Curator(values, schema, budget=Budget(rho=rho), insecure_seed=3)).notes for rho in (1.0, 1e-4)
    )
    assert rich[1].startswith("a, b, c: the others determine each")
    assert len(poor) == 1


class Narrow(Proxy):
    """A table of a source that adds up so many features and no more."""

    def __init__(self, queryable, most):
        super().__init__(queryable)
        self._most = most

    def sensitivity(self, statistic):
        if sum(m.size for m in statistic.maps) > self._most:
            raise QueryError("too many features for this source")
        return super().sensitivity(statistic)


def test_what_the_source_cannot_add_up_is_refused_before_anything_is_spent():
    table = {name: np.random.default_rng(8).integers(0, 5, 5000) for name in "abc"}
    schema = Schema(tuple(Numeric(name, 0, 4) for name in "abc"))
    curator = Curator(table, schema, budget=Budget(rho=100.0), insecure_seed=4)
    with pytest.raises(QueryError, match="too many features"):
        MeasureOnce().fit(Narrow(curator, 2))
    assert curator.remaining == 100.0
    assert "scores and waves" not in MeasureOnce().fit(Narrow(curator, 3)).notes[0]
    again = Curator(table, schema, budget=Budget(rho=100.0), insecure_seed=4)
    assert "scores and waves" in MeasureOnce().fit(again).notes[0]


@pytest.mark.parametrize(("rows", "bought"), [(2_000, False), (60_000, True)])
def test_norms_are_bought_where_noise_leaves_something_to_see(rows, bought):
    """Otherwise they cost nothing, and rows are shrunk to what independent columns would have."""
    drawn = np.random.default_rng(1).standard_normal((rows, 8))
    schema = Schema(tuple(Numeric(f"x{i}", -4, 4) for i in range(8)))
    table = {f"x{i}": drawn[:, i] for i in range(8)}
    curator = Curator(table, schema, budget=Budget(epsilon=0.2, delta=1e-10), insecure_seed=1)
    whole = curator.remaining
    found = buy_features(curator, whole, FeatureConstants())
    assert (found.costs[1] > 0) == bought
    assert sum(found.costs) == pytest.approx(whole)
    assert ("of independent columns" in found.choice) != bought
    trace = float(np.trace(found.released.covariance))  # 8 before rows are shrunk
    assert trace > 5.5 if bought else trace < 6.5  # noise of the diagonal alone is about 1 there


def test_links_that_bend_and_products_are_found():
    """No score of a parent is correlated with these children."""
    random, rows = np.random.default_rng(7), 20_000
    a, b, c = random.standard_normal((3, rows))
    values = {"a": a, "b": b, "c": c, "square": a**2 + 0.7 * random.standard_normal(rows)}
    values["product"] = b * c + 0.5 * random.standard_normal(rows)
    values["wave"] = np.cos(2 * c) + 0.5 * random.standard_normal(rows)
    schema = Schema(tuple(Numeric(name, -30, 30) for name in values))
    found = MeasureOnce().fit(Curator(values, schema, budget=Budget(epsilon=2, delta=1e-10), insecure_seed=1))
    wanted = {frozenset(e) for e in (("a", "square"), ("b", "product"), ("c", "product"), ("c", "wave"))}
    assert found.skeleton.edges == wanted
    without = MeasureOnce(features=FeatureConstants(curved_below=0.0))
    blind = without.fit(Curator(values, schema, budget=Budget(epsilon=2, delta=1e-10), insecure_seed=1))
    assert not blind.skeleton.edges & wanted


def test_two_products_of_the_same_columns_are_no_evidence_of_a_link_between_them():
    """No sum of functions of a and b explains a product of them, but both show that their spread depends on a and b."""
    random, rows = np.random.default_rng(8), 40_000
    a, b = random.standard_normal((2, rows))
    values = {"a": a, "b": b}
    values |= {name: a * b + 1.5 * random.standard_normal(rows) for name in ("one", "other")}
    values["sum"] = a + b + 0.8 * random.standard_normal(rows)
    values["after"] = values["sum"] + random.standard_normal(rows)
    schema = Schema(tuple(Numeric(name, -30, 30) for name in values))
    curator = Curator(values, schema, budget=Budget(epsilon=5, delta=1e-10), insecure_seed=1)
    released = buy_features(curator, curator.remaining, FeatureConstants()).released
    evidence = FeatureEvidence(released, Constants().effect_sizes, FeatureConstants())
    assert evidence.one(3, 2, (0, 1)) < 2 < 50 < evidence.one(3, 2, ())
    assert evidence.one(2, 0, (1,)) > 20
    assert evidence.one(5, 4, (0, 1)) > 50


def weakly_linked(rho, rows=50_000):
    """Which pairs of p, q (products of the same two), x, y (normal), u, v (close) and g (levels)."""
    random = np.random.default_rng(3)
    a, b, p, q, x, y, u, v = random.standard_normal((8, rows))
    values = {"p": a * b + 1.5 * p, "q": a * b + 1.5 * q, "x": x, "y": 0.25 * x + y, "u": u, "v": u + v}
    schema = Schema((*(Numeric(name, -9, 9) for name in values), Categorical("g", ("False", "True"))))
    values["g"] = u + 4 * b > 0
    curator = Curator(values, schema, budget=Budget(rho=rho), insecure_seed=3)
    weak = FeatureEvidence(buy_features(curator, rho, FeatureConstants()).released, (0.1,), FeatureConstants()).weak()
    assert (weak == weak.T).all()
    return {schema.names[i] + schema.names[j] for i, j in np.argwhere(np.triu(weak))}


def test_a_weak_link_of_two_numbers_may_be_products_unless_their_spreads_are_normal():
    assert weakly_linked(100.0) == {"pq"}
    assert weakly_linked(0.01) == {"pq", "xy"}, "noise hides the spreads"


def noised(values, noise, seed):
    """A column's distribution from a noised histogram."""
    draw = np.random.default_rng(seed)
    depths = [np.histogram(values, 8**k, (0, 1))[0] + noise * draw.standard_normal(8**k) for k in range(1, 5)]
    return of_number(Numeric("x", 0, 1), depths, float(len(values)), noise, own=False)


@pytest.mark.parametrize(("middle", "spread"), [(0.4, 0.08), (0.7, 0.05), (0.3, 0.002)])
def test_scores_of_few_rows_keep_their_spread_though_noise_rules(middle, spread):
    """Shares that noise has put far from all rows would squeeze the scores of these together."""
    found = []
    for seed in range(8):
        values = middle + spread * np.random.default_rng(seed).standard_normal(1000)
        known = noised(values, 100.0, seed)  # as loud as at epsilon 1 in nine columns
        found.append(features_of([known], curved=False)[0].values[(values * 4096).astype(int), 0].std())
    assert np.mean(found) == pytest.approx(1, abs=0.15)  # without a curve .55 to .65


def test_a_column_that_is_not_normal_is_as_its_counts_say():
    """Half of the rows at one value: the nearest normal curve is a spike, and contradicted."""
    random = np.random.default_rng(1)
    values = np.where(random.random(20_000) < 0.5, 0.1, random.uniform(0.1, 0.9, 20_000))
    known = noised(values, 20.0, 2)
    ranks = np.cumsum(known.shares)
    for place in (0.2, 0.5, 0.8):
        assert ranks[int(place * 4096)] == pytest.approx((values <= place).mean(), abs=0.01)
