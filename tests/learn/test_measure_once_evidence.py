"""The evidence of the default method against its theory: every term of the null, by derivatives and exact tables."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from dpcurate.learn.measure_once import Constants
from dpcurate.learn.measure_once.bayes_factor import Residuals, log_bayes_factors
from dpcurate.learn.measure_once.blocks import helmert, kron, rotate
from dpcurate.learn.measure_once.contrast_evidence import ContrastEvidence
from dpcurate.learn.measure_once.designs import LEAST_CELL, LEAST_DIRECTION, Designs, soft_inverse
from dpcurate.learn.measure_once.moments import CentralMoments, Released, signal_share
from dpcurate.learn.measure_once.privacy_noise import privacy_noise
from dpcurate.learn.measure_once.regression import Asked, Regressions

LEVELS = (3, 2, 2, 3)
A, B, S, T = range(4)
PAIRS = ((), *((i,) for i in range(4)), *combinations(range(4), 2))
TRIPLES = (*PAIRS, (A, S, T), (B, S, T))
SILENT = 1e-12
"""Next to no noise."""


def apart(rng):
    """A joint distribution of a, b, s, t with a and b independent."""
    return np.einsum(
        "a,b,st->abst", *(rng.dirichlet([2.0] * r) for r in (3, 2)), rng.dirichlet([3.0] * 6).reshape(2, 3)
    )


def chained(rng):
    """a - s - b, and t on its own: a and b are independent given s."""
    st = np.multiply.outer(rng.dirichlet([3.0] * 2), rng.dirichlet([3.0] * 3))
    return np.einsum("st,sa,sb->abst", st, rng.dirichlet([1.5] * 3, size=2), rng.dirichlet([1.5] * 2, size=2))


def additive(rng):
    """a and b are independent given s and t, which add up in the distribution of either."""
    sides = [rng.dirichlet([0.7] * r, size=(2, 1)) / 2 + rng.dirichlet([0.7] * r, size=(1, 3)) / 2 for r in (3, 2)]
    return np.einsum("st,sta,stb->abst", rng.dirichlet([3.0] * 6).reshape(2, 3), *sides)


def tangled(rng):
    """a and b independent given s and t together, and only then."""
    a, b = rng.dirichlet([1.5] * 3, size=(2, 3)), rng.dirichlet([1.5] * 2, size=(2, 3))
    return np.einsum("st,sta,stb->abst", rng.dirichlet([3.0] * 6).reshape(2, 3), a, b)


def exact(joint, rows, sets, loud=None):
    """What a release of these sets would hold without noise; only the set `loud` is said to have any."""
    margins = {u: joint.sum(axis=tuple(i for i in range(4) if i not in u)) for u in sets}
    sums = {u: np.asarray(rows * rotate(p, [helmert(LEVELS[i]) for i in u])) for u, p in margins.items()}
    return Released(LEVELS, sums, {u: 1.0 if u == loud else SILENT for u in sets})


def evidence(released, constants=None):
    return ContrastEvidence(CentralMoments.of(released), constants or Constants())


# --- privacy noise: the delta method against numerical derivatives -------------------------------------------


def true_noise(released, loud, given, terms):
    """J J' for the derivatives J of the residual of a and b by every number of a set."""
    sums, step = released.sums[loud], 1e-5 * released.rows
    slopes = []
    for i in range(sums.size):
        ends = []
        for sign in (1, -1):
            moved = sums.copy()
            moved.flat[i] += sign * step
            other = replace(released, sums={**released.sums, loud: moved})
            ends.append(evidence(other).residuals([A], B, given, terms).values[0])
        slopes.append((ends[0] - ends[1]) / (2 * step))
    jacobian = np.array(slopes).T
    return jacobian @ jacobian.T


def stated_noise(released, given, terms):
    regressions = Regressions(CentralMoments.of(released))
    sides = regressions.sides([Asked((A,), B, regressions.designs.settings[given, terms])])
    return privacy_noise(regressions, *sides)[0, 0]


CASES = [
    *((apart, PAIRS, (), (), u) for u in [(), (A,), (B,), (A, B)]),
    *((chained, PAIRS, (S,), ((S,),), u) for u in [(), (A,), (B,), (S,), (A, B), (A, S), (B, S)]),
    *((additive, PAIRS, (S, T), ((S,), (T,)), u) for u in PAIRS),
    *((tangled, TRIPLES, (S, T), ((S,), (T,), (S, T)), u) for u in [(A, B), (A, S, T), (B, S, T)]),
]


@pytest.mark.parametrize(("world", "sets", "given", "terms", "loud"), CASES, ids=lambda x: getattr(x, "__name__", None))
def test_the_noise_of_every_released_set_enters_as_its_derivative_says(world, sets, given, terms, loud):
    for seed in (3, 4):
        released = exact(world(np.random.default_rng(seed)), 1e9, sets, loud)
        true, stated = true_noise(released, loud, given, terms), stated_noise(released, given, terms)
        assert np.trace(true) > 1e-5 / released.rows**2
        assert np.abs(true - stated).max() <= 0.01 * np.abs(true).max()


# --- the sampling part: exact tables ------------------------------------------------------------------------


def conditional_covariances(joint):
    """For every cell of (s, t) its probability and the covariances of a and b in it, in their bases."""
    for s in range(2):
        for t in range(3):
            cell = joint[:, :, s, t]
            weight = cell.sum()
            sides = []
            for p in (cell.sum(1) / weight, cell.sum(0) / weight):
                h = helmert(len(p))
                sides.append(h.T @ (np.diag(p) - np.outer(p, p)) @ h)
            yield weight, *sides


@pytest.mark.parametrize("world", [additive, tangled])
def test_the_sampling_part_is_that_of_a_multinomial_table(world):
    """Given s and t the residual's covariance is the average over cells of products of covariances, over rows."""
    rows, joint = 1e7, world(np.random.default_rng(5))
    terms = ((S,), (T,), (S, T))
    residuals = evidence(exact(joint, rows, TRIPLES)).residuals([A], B, (S, T), terms)
    cells = list(conditional_covariances(joint))
    sampling = sum(w * kron(a, b) for w, a, b in cells)
    assert residuals.null[0] * rows == pytest.approx(sampling, rel=0.01, abs=1e-4)
    averages = [sum(w * side for w, *sides in cells for side in sides[i : i + 1]) for i in (0, 1)]
    assert residuals.effect[0] == pytest.approx(kron(*averages), rel=0.01, abs=1e-4)
    assert residuals.values[0] == pytest.approx(0, abs=1e-4)


def test_what_a_regression_without_some_terms_may_miss_widens_the_null():
    released = exact(tangled(np.random.default_rng(6)), 1e7, PAIRS)
    one = evidence(released, Constants(misfit=0.1)).residuals([A], B, (S, T), ((S,), (T,)))
    none = evidence(released, Constants(misfit=0.0)).residuals([A], B, (S, T), ((S,), (T,)))
    assert one.null - none.null == pytest.approx(0.01 * one.effect)
    alone = [evidence(released, Constants(misfit=m)).residuals([A], B, (S,), ((S,),)).null for m in (0.1, 0.0)]
    assert alone[0] == pytest.approx(alone[1])


# --- the Bayes factor --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3])
def test_the_bayes_factor_is_a_ratio_of_normal_densities(size):
    rng = np.random.default_rng(size)
    roots = rng.normal(size=(2, 4, size, size))
    null, effect = (x @ x.swapaxes(1, 2) + np.eye(size) for x in roots)
    values, sizes = 3 * rng.normal(size=(4, size)), (0.1, 0.5, 2.0)
    for found, r, k, g in zip(
        log_bayes_factors(Residuals(values, null, effect), sizes), values, null, effect, strict=True
    ):
        zero = np.zeros(size)
        dependent = [stats.multivariate_normal.pdf(r, zero, k + t * t * g) for t in sizes]
        assert found == pytest.approx(np.log(np.mean(dependent) / stats.multivariate_normal.pdf(r, zero, k)))


def test_a_direction_without_any_variance_is_no_error():
    flat = np.diag([1.0, 0.0])[None]
    assert np.isfinite(log_bayes_factors(Residuals(np.array([[1.0, 0.0]]), flat, flat), (0.1,))).all()


def test_sizes_differ_and_what_is_computed_together_is_what_is_computed_alone():
    """Padding changes nothing: columns of 2 to 6 levels, one to three of them given, with and without larger terms."""
    rng, levels = np.random.default_rng(5), (2, 6, 3, 2, 4)
    sets = [u for size in range(4) for u in combinations(range(5), size)]
    sums = {u: np.array(1e4) if not u else 60 * rng.normal(size=[levels[a] - 1 for a in u]) for u in sets}
    found = ContrastEvidence(CentralMoments.of(Released(levels, sums, dict.fromkeys(sets, 900.0))), Constants())
    wanted = [
        ([x for x in range(5) if x != column and x not in given], column, given)
        for column in range(5)
        for size in range(4)
        for given in combinations([x for x in range(5) if x != column], size)
    ]
    for together, (others, column, given) in zip(found.all_of(wanted), wanted, strict=True):
        for evidence_of_one, a in zip(together, others, strict=True):
            alone = found.residuals([a], column, given, found.terms(a, column, given))
            assert alone.values.shape[1] == (levels[a] - 1) * (levels[column] - 1)  # nothing is padded
            exact = log_bayes_factors(alone, Constants().effect_sizes)[0]
            assert evidence_of_one == pytest.approx(exact, rel=1e-9, abs=1e-9)


# --- moments ---------------------------------------------------------------------------------------------------


def test_central_moments_are_those_of_the_table():
    """Pairs and triples are centred by means and by the pairs below them; exact sums give exact moments."""
    joint = tangled(np.random.default_rng(7))
    moments = CentralMoments.of(exact(joint, 1e9, TRIPLES))
    bases = [helmert(r) for r in LEVELS]
    cells = [h - m.mean for h, m in zip(bases, moments.margins, strict=True)]
    pair = np.einsum("abst,ai,sj->ij", joint, cells[A], cells[S])
    triple = np.einsum("abst,ai,sj,tk->ijk", joint, cells[A], cells[S], cells[T])
    assert moments.blocks[A, S].observed == pytest.approx(pair, abs=1e-9)
    assert moments.blocks[A, S, T].observed == pytest.approx(triple, abs=1e-8)
    assert moments.blocks[A, S, T].denoised == pytest.approx(triple, abs=1e-6)
    for a, margin in enumerate(moments.margins):
        p = joint.sum(axis=tuple(i for i in range(4) if i != a))
        assert margin.probabilities == pytest.approx(p)
        assert margin.covariance == pytest.approx(bases[a].T @ (np.diag(p) - np.outer(p, p)) @ bases[a])


def test_noise_and_sampling_error_are_shrunk_and_signal_is_not():
    rng = np.random.default_rng(0)
    assert signal_share(rng.normal(size=(1, 200)), np.ones((1, 200))).mean() < 0.3
    assert signal_share(30 * rng.normal(size=(1, 200)), np.ones((1, 200))).mean() > 0.9
    levels, rows = (9, 9), 10_000.0
    uniform = {(): np.array(rows), (0,): np.zeros(8), (1,): np.zeros(8)}
    for noise in (SILENT, 100.0):
        sd = np.sqrt(rows / 81 + noise)  # an independent pair: sampling variance rows p_a p_b in each coordinate
        sums = uniform | {(0, 1): sd * rng.normal(size=(8, 8))}
        block = CentralMoments.of(Released(levels, sums, dict.fromkeys(sums, noise))).blocks[0, 1]
        assert np.square(block.denoised).sum() < 0.1 * np.square(block.observed).sum()


def test_the_size_of_the_signal_solves_its_moment_equation():
    """sum of (z^2 - v - signal) / (v + signal)^2 = 0, for values of very different noise."""
    rng = np.random.default_rng(2)
    variance = np.geomspace(0.01, 1000, 400)
    values = np.sqrt(variance + 0.5) * rng.normal(size=400)
    share = signal_share(values[None], variance[None])[0]
    signal = float((share * variance / (1 - share))[0])
    terms = (values**2 - variance - signal) / (variance + signal) ** 2
    assert abs(terms.sum()) < 1e-2 * np.abs(terms).sum()
    assert 0.3 < signal < 0.8


def test_counts_and_levels_lost_in_noise_stay_positive():
    sums = {(): np.array(-50.0), (0,): np.array([400.0]), (1,): np.array([0.0]), (0, 1): np.array([[3.0]])}
    released = Released((2, 2), sums, dict.fromkeys(sums, 100.0))
    moments = CentralMoments.of(released)
    assert released.rows == moments.rows == 1
    assert (moments.margins[0].probabilities > 0).all()
    assert np.isfinite(evidence(released).marginal).all()
    many = replace(released, sums=sums | {(): np.array(1000.0), (0,): np.array([720.0])})  # of 1000 rows -9
    assert CentralMoments.of(many).margins[0].probabilities.min() == pytest.approx(0.002, rel=0.05)


def test_a_table_that_noise_made_impossible_keeps_its_cells_above_zero():
    rows, sums = 1e6, {(): np.array(1e6), (0,): np.zeros(1), (1,): np.zeros(1), (0, 1): np.array([[4e5]])}
    wild = Released((2, 2), {**sums, (0, 1): np.array([[2 * rows]])}, dict.fromkeys(sums, SILENT))
    designs = Designs(CentralMoments.of(wild))
    table = designs.stack([designs.settings[(0, 1), ()]]).tables[0].reshape(2, 2)
    assert table.min() / table.max() == pytest.approx(LEAST_CELL * 0.25 / table_peak(wild), rel=1e-6)
    assert table.sum() == pytest.approx(1)


def table_peak(released):
    """The largest cell before cells are kept positive: 1/4 + what the pair's moment adds to it."""
    return 0.25 + float(released.sums[0, 1][0, 0]) / released.rows / 2


def test_directions_that_hardly_occur_are_not_blown_up():
    assert np.linalg.eigvalsh(soft_inverse(np.diag([2.0, 1e-9]))) == pytest.approx([0.5, 0.5 / LEAST_DIRECTION])
    assert (LEAST_DIRECTION, LEAST_CELL) == (1e-4, 1e-3)
