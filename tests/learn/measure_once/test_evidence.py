"""The evidence of the default method against its theory: every term of the null, by derivatives and exact tables."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dpcurate.learn.measure_once import Constants, contrast_evidence
from dpcurate.learn.measure_once import designs as designs_module
from dpcurate.learn.measure_once.bayes_factor import Residuals, log_bayes_factors
from dpcurate.learn.measure_once.blocks import helmert, kron, rotate
from dpcurate.learn.measure_once.central_moments import CentralMoments, Released, signal_share
from dpcurate.learn.measure_once.contrast_evidence import ContrastEvidence
from dpcurate.learn.measure_once.designs import LEAST_CELL, LEAST_DIRECTION, Designs, _lacking, soft_inverse
from dpcurate.learn.measure_once.log_linear import misfit_variances
from dpcurate.learn.measure_once.regression import RegressedColumns, Regressions, privacy_noise

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
    sides = regressions.sides([RegressedColumns((A,), B, regressions.designs.settings[given, terms])])
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


# --- what a regression without some terms may miss ----------------------------------------------------------------


ADDED, ALL = ((S,), (T,)), ((S,), (T,), (S, T))


def widened(released, given, terms, **constants):
    """By how much the null of a and b is wider for what was missed, in units of an effect of size 1."""
    wide, narrow = (evidence(released, Constants(**c)).residuals([A], B, given, terms) for c in (constants, NOTHING))
    share = np.trace(wide.null[0] - narrow.null[0]) / np.trace(wide.effect[0])
    assert wide.null - narrow.null == pytest.approx(share * wide.effect, abs=1e-12)
    return share


NOTHING = {"interaction": 0.0}


def explained(joint, side):
    """The variance that s and that t alone explain of one end in an additive regression, over what is left of it."""
    p = joint.sum(axis=1 - side)  # (end, s, t)
    cells, ends = p.sum(axis=0).ravel(), np.moveaxis(p, 0, -1).reshape(-1, p.shape[0])
    h, (s, t) = helmert(p.shape[0]), (np.repeat(np.arange(2), 3), np.tile(np.arange(3), 2))
    features = [np.eye(r)[x] @ helmert(r) for r, x in ((2, s), (3, t))]
    means = ends / cells[:, None] @ h
    design = np.hstack(features)
    design = design - cells @ design
    slopes = np.linalg.solve(design.T @ (cells[:, None] * design), design.T @ (cells[:, None] * means))
    fitted = ends.sum(axis=0) @ h + design @ slopes
    p_fit = 1 / p.shape[0] + fitted @ h.T
    left = sum(w * (h.T @ (np.diag(q) - np.outer(q, q)) @ h) for w, q in zip(cells, p_fit, strict=True))
    parts = design[:, :1] @ slopes[:1], design[:, 1:] @ slopes[1:]
    return [float(((cells @ part**2) / np.diag(left)).sum()) for part in parts]


def test_what_both_may_have_of_a_product_that_is_lacking_widens_the_null():
    """A share of the weaker effect of s and t on a times that on b; the smallest of three seeds needs no bound."""
    for seed in (6, 8, 9):
        joint = additive(np.random.default_rng(seed))
        released, of_a, of_b = exact(joint, 1e9, PAIRS), *(min(explained(joint, side)) for side in (0, 1))
        assert of_a * of_b > 1e-5
        for share in (1.0, 0.5):
            known = widened(released, (S, T), ADDED, interaction=share, most_effect=1e9)
            assert known == pytest.approx(share**2 * of_a * of_b, rel=0.02)
        assert widened(released, (S, T), ADDED, interaction=1.0, most_effect=0.01) <= 1e-4 * (1 + 1e-9)


def test_what_is_missed_has_bounds():
    released = exact(tangled(np.random.default_rng(6)), 1e9, TRIPLES)
    for bounds, missed in (((0.5, 0.5), 0.25), ((0.0, 1e-3), 1e-6)):
        assert widened(released, (S, T), ADDED, interaction=1.0, misfit_bounds=bounds) == pytest.approx(missed)
        assert widened(released, (S, T), ALL, interaction=1.0, misfit_bounds=bounds) == 0
    together = evidence(released, Constants(misfit_bounds=(0.5, 0.5)))
    asked = [RegressedColumns((A,), B, together.regressions.designs.settings[(S, T), terms]) for terms in (ADDED, ALL)]
    nulls = [found.stacked(asked).null for found in (together, evidence(released, Constants(**NOTHING)))]
    assert [np.abs(wide - narrow).max() > 0 for wide, narrow in zip(*nulls, strict=True)] == [True, False]


def test_where_no_product_is_lacking_or_only_one_member_counts_nothing_is_missed():
    released = exact(tangled(np.random.default_rng(6)), 1e9, TRIPLES)
    assert widened(released, (S, T), ALL, interaction=0.5) == 0
    assert widened(released, (S,), ((S,),), interaction=0.5) == 0
    assert widened(released, (S, T), ADDED, interaction=0.5) > 1e-5
    chain = exact(chained(np.random.default_rng(6)), 1e9, PAIRS)  # t says nothing of a or b
    assert widened(chain, (S, T), ADDED, interaction=0.5) < 1e-12


def test_the_product_of_three_counts_less_than_that_of_two():
    pairs = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
    assert _lacking(pairs[:3]).tolist() == [[0, 2, 2], [2, 0, 2], [2, 2, 0]]
    assert _lacking(pairs[:5]).tolist() == [[0, 3, 3], [3, 0, 2], [3, 2, 0]]
    assert _lacking(pairs).tolist() == [[0, 3, 3], [3, 0, 3], [3, 3, 0]]
    assert not _lacking((*pairs, (0, 1, 2))).any()
    effects = np.array([[[0.2, 0.1, 0.05]]])
    for terms, variance in ((pairs[:3], 0.25 * 0.1**2), (pairs[:5], 0.25 * 0.05**2), (pairs, 0.0625 * 0.1**2)):
        setting = SimpleNamespace(singles=[0, 1, 2], lacking=_lacking(terms))
        assert misfit_variances([setting], effects, effects, 0.5, 0.3)[0, 0] == pytest.approx(variance)


def test_interactions_are_missed_about_as_far_as_they_are_said_to_be():
    """In tables without any structure products weigh about as much as the weaker of both effects."""
    missed, said = [], []
    for seed in range(120):
        released = exact(tangled(np.random.default_rng(seed)), 1e9, PAIRS)
        left = evidence(released, Constants(interaction=0.0)).residuals([A], B, (S, T), ADDED)
        missed.append(left.values[0] @ np.linalg.solve(left.effect[0], left.values[0]) / len(left.values[0]))
        said.append(widened(released, (S, T), ADDED, interaction=1.0))
    assert 0.7 < np.sqrt(sum(missed) / sum(said)) < 1.6


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


def test_a_column_is_determined_by_its_copy_and_by_nothing_less():
    rng = np.random.default_rng(3)
    st = np.multiply.outer(rng.dirichlet([3.0] * 2), rng.dirichlet([3.0] * 3))
    for copied, determined in ((1.0, True), (0.9, False)):
        of_s = copied * np.eye(2) + (1 - copied) / 2
        found = evidence(exact(np.einsum("st,sa,sb->abst", st, rng.dirichlet([1.5] * 3, size=2), of_s), 1e6, PAIRS))
        assert found.determined(B, (S,)) == determined
        assert not found.determined(A, (S,))


def test_small_stacks_of_designs_are_remembered_and_large_ones_are_not(monkeypatch):
    """By the settings in their order: those of other sets, or the same the other way round, are others."""
    sums = {(): np.array(1e6), (0,): np.zeros(1), (1,): np.full(1, 2e5), (0, 1): np.array([[1e4]])}
    designs = Designs(CentralMoments.of(Released((2, 2), sums, dict.fromkeys(sums, SILENT))))
    one, other = (designs.settings[(a,), ((a,),)] for a in (0, 1))
    both = designs.stack([one, other])
    assert designs.stack([one, other]) is both
    assert designs.stack([other, one]).tables[0] == pytest.approx(both.tables[1])
    assert designs.stack([one]).tables[0] == pytest.approx(both.tables[0])
    monkeypatch.setattr(designs_module, "SMALL_STACK", 1)
    assert designs.stack([one, other]) is not both


def table_peak(released):
    """The largest cell before cells are kept positive: 1/4 + what the pair's moment adds to it."""
    return 0.25 + float(released.sums[0, 1][0, 0]) / released.rows / 2


def test_directions_that_hardly_occur_are_not_blown_up():
    assert np.linalg.eigvalsh(soft_inverse(np.diag([2.0, 1e-9]))) == pytest.approx([0.5, 0.5 / LEAST_DIRECTION])
    assert (LEAST_DIRECTION, LEAST_CELL) == (1e-4, 1e-3)


# --- tables that would not fit ------------------------------------------------------------------------------------


def test_a_set_whose_table_is_too_large_loses_the_members_that_say_least(monkeypatch):
    released = exact(tangled(np.random.default_rng(6)), 1e7, TRIPLES)
    whole = evidence(released)
    weak, strong = sorted((S, T), key=lambda s: whole.marginal[B, s])
    fewer = whole.one(B, A, (strong,)), whole.interactions([(A, B, (strong,))])
    assert fewer[0] != pytest.approx(whole.one(B, A, (S, T)))
    monkeypatch.setattr(contrast_evidence, "MOST_CELLS", max(LEVELS[S], LEVELS[T]))
    small = evidence(released)
    assert (small.one(B, A, (S, T)), small.interactions([(A, B, (S, T))])) == fewer
    row = small.row(B, (S, T))
    assert (row[A], row[weak], row[strong]) == (fewer[0], 0, 0)
