"""Noise at the right scale passes; noise of 0.7 and 1.3 times the scale fails."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from dpcurate.errors import QueryError, RefusedError
from dpcurate.private.noise import LARGEST_SCALE, Ahead, Secure, Seeded, check_scale

pytestmark = pytest.mark.secure_noise
LEVEL = 1e-6  # a right sampler is accused once in a million runs
MAKERS = [Secure, lambda: Seeded(7)]


def discrete(kind, scale, reach):
    """The exact probabilities of a discrete distribution on -reach..reach."""
    x = np.arange(-reach, reach + 1)
    weight = np.exp(-np.abs(x) / scale) if kind == "laplace" else np.exp(-(x**2) / (2 * scale**2))
    return x, weight / weight.sum()


def fits(draws, kind, scale):
    """A chi-squared test of draws against the exact distribution, tails pooled."""
    x, p = discrete(kind, scale, int(40 * scale) + 10)
    cdf = np.cumsum(p)
    edges = np.unique(x[np.searchsorted(cdf, np.linspace(0.02, 0.98, 25))])
    expected = np.diff(np.concatenate([[0], cdf[edges - x[0]], [1]]))
    observed = np.diff(np.concatenate([[0], [(draws <= e).sum() for e in edges], [len(draws)]]))
    return stats.chisquare(observed, expected * len(draws)).pvalue > LEVEL


@pytest.mark.parametrize("make", MAKERS, ids=["secure", "seeded"])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("scale", [6.5, 4321.0])
def test_noise_has_the_stated_scale_and_no_other(make, kind, scale):
    draws = getattr(make(), kind)(scale, 20_000)
    assert draws.dtype == np.int64
    assert fits(draws, kind, scale)
    assert not fits(draws, kind, 0.7 * scale)
    assert not fits(draws, kind, 1.3 * scale)


@pytest.mark.parametrize("make", MAKERS, ids=["secure", "seeded"])
def test_choices_follow_the_exponential_weights(make):
    scores, scale, runs = np.array([0, 30, 45], dtype=np.int64), 20.0, 4000
    randomness = make()
    picks = np.bincount([randomness.noisiest(scores, scale) for _ in range(runs)], minlength=3)

    def plausible(scale):
        weight = np.exp(scores / scale)
        return stats.chisquare(picks, runs * weight / weight.sum()).pvalue > LEVEL

    assert plausible(scale)
    assert not plausible(0.7 * scale)
    assert not plausible(1.3 * scale)


@pytest.mark.parametrize("make", MAKERS, ids=["secure", "seeded"])
def test_every_row_gets_its_own_coin(make):
    weights = np.array([50_000, 0, 1, 30_000], dtype=np.int64)
    kept = make().thin(weights, int(0.3 * 2**32))
    assert kept[1] == 0
    assert kept[2] in (0, 1)
    for i in (0, 3):
        assert stats.binomtest(int(kept[i]), int(weights[i]), 0.3).pvalue > LEVEL
        assert stats.binomtest(int(kept[i]), int(weights[i]), 0.33).pvalue < LEVEL
    assert (make().thin(weights, 2**32) == weights).all()
    assert len(make().thin(np.zeros(0, dtype=np.int64), 2**31)) == 0


def test_a_seed_repeats_itself_and_the_secure_source_does_not():
    assert (Seeded(3).gaussian(100, 50) == Seeded(3).gaussian(100, 50)).all()
    assert (Secure().gaussian(1e9, 50) != Secure().gaussian(1e9, 50)).any()


@pytest.mark.parametrize("broken", ["opendp.measurements", "opendp"])
def test_a_platform_that_cannot_draw_is_refused_when_the_source_is_made(broken, monkeypatch):
    for name in [m for m in sys.modules if m == "opendp" or m.startswith("opendp.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, broken, None)
    with pytest.raises(RefusedError, match=r"noise cannot be drawn on this machine.*nothing was spent.*Install OpenDP"):
        Secure()


@pytest.mark.parametrize("law", ["gaussian", "laplace", "noisiest", "thin", "uniform"])
def test_every_law_is_tried_when_the_source_is_made(law, monkeypatch):
    def fail(*_):
        raise OSError("no entropy")

    monkeypatch.setattr(Secure, law, fail)
    with pytest.raises(RefusedError, match=r"OSError: no entropy"):
        Secure()


def test_a_library_that_goes_away_later_is_not_missed(monkeypatch):
    secure = Secure()
    monkeypatch.setitem(sys.modules, "opendp.measurements", None)
    for scale in (3.25, 1e-99, LARGEST_SCALE / 3):
        secure.gaussian(scale, 2)
        secure.laplace(scale, 2)
        secure.noisiest(np.array([1, 2]), scale)


def test_drawing_loads_no_more_of_opendp_than_its_samplers():
    """Its prelude takes a second and 150 MB where scikit-learn is installed."""
    draw = "import sys; from dpcurate.private.noise import Secure; Secure().gaussian(3.0, 2); "
    told = draw + "print([m for m in ('opendp.prelude', 'opendp.extras', 'sklearn') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", told], capture_output=True, text=True).stdout == "[]\n"


def test_samplers_are_kept_for_reuse_but_not_forever():
    secure = Secure()
    for scale in range(1, 600):
        secure.laplace(float(scale), 1)
    assert len(secure._samplers) < 520


def test_noise_that_does_not_fit_is_refused():
    check_scale(LARGEST_SCALE)
    for scale in (LARGEST_SCALE * 2, math.inf, math.nan):
        with pytest.raises(QueryError, match="less noise"):
            check_scale(scale)


class Numbers:
    """Randomness that counts up, so that a number handed out twice would show."""

    def __init__(self):
        self.calls = []

    def laplace(self, scale, size):
        start = sum(size for _, size in self.calls)
        self.calls.append((scale, size))
        return np.arange(start, start + size)

    gaussian = laplace

    def uniform(self):
        return 0.25

    def noisiest(self, scores, scale):
        return 1

    def thin(self, weights, rate):
        return weights


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_draws_made_ahead_are_handed_out_once_and_by_scale(law):
    inner = Numbers()
    ahead = Ahead(inner, 100)
    singles = [int(getattr(ahead, law)(2.0, 1)[0]) for _ in range(100)]
    assert len(set(singles)) == 100
    assert [size for _, size in inner.calls] == [64, 36]
    assert getattr(ahead, law)(2.0, 1).tolist() == [100]  # more than was said is drawn one by one
    assert getattr(ahead, law)(3.0, 1).tolist() == [101]  # another scale has a stock of its own
    assert getattr(ahead, law)(2.0, 5).tolist() == list(range(102, 107))
    assert (ahead.uniform(), ahead.noisiest(None, 1.0), ahead.thin(3, 1)) == (0.25, 1, 3)


def test_the_two_laws_do_not_share_a_stock():
    ahead = Ahead(Numbers(), 2)
    assert {int(ahead.laplace(1.0, 1)[0]), int(ahead.gaussian(1.0, 1)[0]), int(ahead.laplace(1.0, 1)[0])} == {0, 1, 2}
