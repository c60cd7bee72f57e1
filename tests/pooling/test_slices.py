"""A pool answers as one table with a site column would, with the noise that it states."""

from __future__ import annotations

import numpy as np
import pytest

from dpcurate import Budget, Curator
from dpcurate.errors import QueryError
from dpcurate.pooling.slices import SiteNetwork, joint
from dpcurate.queries import (
    BRANCHES,
    Contrasts,
    Counts,
    Exact,
    FeatureMap,
    FeatureMoments,
    FeatureNorms,
    Gaussian,
    Gradient,
    Histograms,
    KendallP,
    Laplace,
    Means,
    Moments,
    Quantile,
    Release,
    Statistic,
    Tables,
    Tau,
)
from pooled_tables import NAMES, SCHEMA, pooled, tables, united, with_site

QUIET = Gaussian(rho=1e13)
"""Noise that is 0 in nearly every draw."""
NETWORK = SiteNetwork(with_site(SCHEMA), "site", len(NAMES))
MAPS = (
    FeatureMap("a", ((900, -300), (-200, 800), (-100, -2000))),
    FeatureMap("site", ((1024, -512), (-1024, -700), (10, 1500))),
    FeatureMap("n", tuple((64 * place - 200,) for place in range(BRANCHES))),
)
ASKED: tuple[Statistic, ...] = (
    Counts(()),
    Counts(("b", "site", "a")),
    Tables((("b", "a"), ("site",), ("a", "b", "site"), ())),
    Contrasts(((), ("a",), ("site",), ("b", "site"), ("a", "b"), ("b", "a", "site")), (2.0, 1.0, 0.5, 3.0, 1.0, 0.25)),
    Means(("n", "m")),
    Histograms(("n", "site", "a", "m"), 2),
    Histograms(("site",)),
    FeatureNorms(MAPS, (0.5, 1.0, 4.0)),
    Moments(("n", "a", "site")),
    Moments(("n", "a"), 1.2),
)


@pytest.mark.parametrize("statistic", ASKED, ids=lambda s: f"{type(s).__name__}-{len(str(s))}")
def test_a_pool_answers_as_one_table_with_a_site_column(statistic: Statistic) -> None:
    some = tables(1)
    one = Curator(united(some), with_site(SCHEMA), budget=Budget.unlimited())
    whole, together = one.ask(Release(statistic, QUIET)), pooled(some).ask(Release(statistic, QUIET))
    assert len(whole.parts) == len(together.parts) == len(together.scales)
    for expected, got in zip(whole.parts, together.parts, strict=True):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, atol=1e-4)


def test_features_are_those_of_one_table_as_far_as_whole_steps_go() -> None:
    some = tables(2, (400, 300, 200))
    statistic = FeatureMoments(MAPS, 1.7, 0.5)  # a clip that shrinks most rows
    one = Curator(united(some), with_site(SCHEMA), budget=Budget.unlimited())
    whole, together = one.ask(Release(statistic, QUIET)), pooled(some).ask(Release(statistic, QUIET))
    for expected, got in zip(whole.parts, together.parts, strict=True):
        # A row's feature is cut to a whole step of 1/1024, the constant's as well as the site's own.
        np.testing.assert_allclose(got, expected, atol=900 * 4 / 1024)
        assert np.abs(expected).max() > 100


def test_features_of_a_site_that_are_longer_than_one_feature_can_be() -> None:
    far = FeatureMap("site", ((60_000, 60_000), (-60_000, 40_000), (0, 65_536)))
    some = tables(2)
    statistic = FeatureMoments((MAPS[0], far), 200.0, 200.0)
    one = Curator(united(some), with_site(SCHEMA), budget=Budget.unlimited())
    whole, together = one.ask(Release(statistic, QUIET)), pooled(some).ask(Release(statistic, QUIET))
    for expected, got in zip(whole.parts, together.parts, strict=True):
        np.testing.assert_allclose(got, expected, rtol=0.01, atol=1)


@pytest.mark.parametrize("statistic", [*ASKED, FeatureMoments(MAPS, 1.7, 0.5)], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("gaussian", [True, False])
def test_a_row_more_at_a_site_moves_what_it_is_asked_by_no_more_than_is_paid(
    statistic: Statistic, gaussian: bool
) -> None:
    """By the noise in its answers: a bound on what the site column, weights and split releases do to its promise."""
    cost = 0.02
    asked = joint(Release(statistic, Gaussian(rho=cost) if gaussian else Laplace(epsilon=cost)), NETWORK)
    smaller, larger = tables(6, (12, 9, 7)), tables(6, (12, 9, 7))
    for row in range(4):
        added = {"a": "xyz"[row % 3], "b": ("no", "yes")[row % 2], "n": 10.0 * (row % 2), "m": -5.0 + 10 * (row // 2)}
        larger[1] = {name: [*cells, added[name]] for name, cells in smaller[1].items()}
        spent = 0.0
        for release in asked.asked(1):
            exact, moved = (
                Curator(t, SCHEMA, budget=Budget.unlimited()).ask(Release(release.statistic, Exact()))
                for t in (smaller[1], larger[1])
            )
            noised = Curator(smaller[1], SCHEMA, budget=Budget.unlimited()).ask(release)
            gaps = [b - a for a, b in zip(exact.parts, moved.parts, strict=True)]
            # A matrix of moments shows each number above its diagonal twice.
            apart = [(np.triu(gap) if isinstance(statistic, Moments) else gap).ravel() for gap in gaps]
            for scale, gap in zip(noised.scales, apart, strict=True):
                if gaussian:
                    spent += float(gap @ gap) / (2 * scale * scale)
                else:
                    spent += float(np.abs(gap).sum()) * np.sqrt(2) / scale
        assert 0 < spent <= cost * (1 + 1e-6)


NOISY: tuple[Statistic, ...] = (
    Counts(("a", "site")),
    Contrasts(((), ("site",), ("b",), ("site", "b"), ("a", "b"), ("site", "a", "b")), (2.0, 1.5, 1.0, 1.0, 1.0, 0.5)),
    FeatureMoments(MAPS, 2.0, 0.7),
    Histograms(("site", "b", "a")),
    Moments(("n", "site")),
)


@pytest.mark.parametrize("statistic", NOISY, ids=lambda s: type(s).__name__)
def test_the_noise_is_never_more_than_is_stated_and_of_sums_just_as_much(statistic: Statistic) -> None:
    some, times = tables(3, (6, 4, 5)), 120
    keeper, exact = pooled(some), pooled(some).ask(Release(statistic, QUIET))
    noise = Laplace(epsilon=0.5) if isinstance(statistic, Counts) else Gaussian(rho=0.02)
    runs = [keeper.ask(Release(statistic, noise)) for _ in range(times)]
    for place, scale in enumerate(runs[0].scales):
        errors = np.array([run.parts[place] - exact.parts[place] for run in runs]).reshape(times, -1) / scale
        assert errors.var(axis=0).max() < 1.8
        assert errors.var(axis=0).mean() < 1.3
        if not isinstance(statistic, Moments):  # entries of the site column repeat others: stated entry by entry
            most = (1 + np.sqrt(errors.shape[1] / times)) ** 2 * 1.35
            assert np.linalg.eigvalsh(errors.T @ errors / times).max() < most
        if isinstance(statistic, (Counts, Contrasts)):
            free = 1.0  # a contrast of sites lies where its sites add up to 0
            if isinstance(statistic, Contrasts) and "site" in statistic.sets[place]:
                free = 1 - 1 / len(NAMES)
            assert errors.var(axis=0).mean() > 0.7 * free


def test_slices_and_sums_of_contrasts_are_uncorrelated() -> None:
    """A search weighs a pair and its margins as independent numbers: slices about their mean leave the sum alone."""
    some, statistic = tables(3, (6, 4, 5)), Contrasts((("b",), ("site", "b")), (1.0, 1.0))
    keeper = pooled(some)
    runs = [keeper.ask(Release(statistic, Gaussian(rho=0.02))) for _ in range(200)]
    sums = np.array([run.parts[0][0] for run in runs])
    for site in range(len(NAMES)):
        slices = np.array([run.parts[1][site, 0] for run in runs])
        assert abs(np.corrcoef(sums, slices)[0, 1]) < 0.3


def test_unequal_noise_is_stated_as_that_of_the_noisiest_site() -> None:
    """Slices then lean on the sum; equal noise of the largest size is no less in any direction."""
    some = tables(4)
    keeper = pooled(some)
    loud = Curator(some[1], SCHEMA, budget=Budget.unlimited(), neighbours="replace")
    keeper.sites[1].queryable = loud
    asked = Contrasts((("b",), ("site", "b")), (1.0, 1.0))
    answer = keeper.ask(Release(asked, Gaussian(rho=0.02)))
    own = loud.ask(Release(Contrasts((("b",),), (1.0,)), Gaussian(rho=0.02))).scales[0]
    assert answer.scales == pytest.approx((np.sqrt(3) * own, own))
    without = keeper.ask(Release(Contrasts((("b",),)), Gaussian(rho=0.02)))
    assert without.scales[0] < np.sqrt(3) * own * 0.95


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (Release(Tau("a", "b"), Laplace(epsilon=1)), "not the sum"),
        (Release(KendallP("a", "b"), Laplace(epsilon=1)), "not the sum"),
        (Quantile(column="n", probability=0.5, epsilon=1), "picks by private scores"),
        (Release(Counts(("a",)), Gaussian(sigma=3)), "asks by cost"),
        (Release(Moments(("n", "site"), 1.0), QUIET), "site=None"),
        (Release(Gradient(("n", "site"), ((0.0, 0.0), (0.0, 0.0)), 1.0), QUIET), "site=None"),
        (Release(Counts(("nobody",)), QUIET), "no column"),
    ],
)
def test_what_does_not_add_up_is_refused_before_a_site_is_asked(query: object, why: str) -> None:
    keeper = pooled(tables(5), budget=Budget(epsilon=50, delta=1e-6))
    with pytest.raises(QueryError, match=why):
        keeper.ask(query)  # type: ignore[arg-type]
    assert all(site.queryable.privacy().spent == 0 for site in keeper.sites)
