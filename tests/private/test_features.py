"""Histograms and features: what is computed, and how far one row can move it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcurate.errors import QueryError
from dpcurate.private.preview import describe
from dpcurate.private.row_sums import Rows, interval
from dpcurate.private.sources import InMemory
from dpcurate.private.statistics.registry import transformation
from dpcurate.queries import FEATURE_STEPS, FeatureMap, FeatureMoments, FeatureNorms, Histograms
from dpcurate.schema import GRID, MISSING_VALUE, OWN, Categorical, Neighbours, Numeric, Schema

ADD, SWAP = Neighbours.ADD_REMOVE, Neighbours.REPLACE
SCHEMA = Schema((Categorical("a", ("0", "1", "2")), Numeric("x", -1, 1), Numeric("y", 0, 10, missing=OWN)))
F = FEATURE_STEPS
MAPS = (
    FeatureMap("a", ((2 * F, 0), (-F, F), (-F, -F))),
    FeatureMap("x", tuple((k * F,) for k in range(-4, 4))),
    FeatureMap("y", (*((k * F // 2, k * k * F // 8) for k in range(-4, 4)), (0, 3 * F))),
)
STATISTICS = [
    Histograms(("a", "x", "y"), 2),
    Histograms(("y",)),
    FeatureMoments(MAPS, 3.0, 0.5),
    FeatureMoments(MAPS, 0.3, 2.0),
    FeatureMoments(MAPS[1:2], 100.0),
    FeatureNorms(MAPS, (1.0, 4.0, 9.0, 20.0)),
]


def source(records):
    matrix = np.array(records, dtype=np.int64).reshape(-1, 3)
    codes = {"a": matrix[:, 0].astype(np.uint8)} | {c: np.zeros(len(matrix), dtype=np.uint8) for c in ("x", "y")}
    return InMemory(
        Rows(codes, {"x": matrix[:, 1].astype(np.int16), "y": matrix[:, 2].astype(np.int16)}, None, len(matrix))
    )


def parts(statistic, records):
    made = transformation(statistic, SCHEMA)
    return made, made.integers(tuple(source(records).totals([k])[0] for k in made.row_sums))


def distance(statistic, one, other):
    made, first = parts(statistic, one)
    _, second = parts(statistic, other)
    moved = [
        Fraction(int(step)) / unit
        for unit, p, q in zip(made.units, first, second, strict=True)
        for step in np.ravel(p - q)
    ]
    return sum(map(abs, moved), Fraction(0)), sum((m * m for m in moved), Fraction(0))


values = st.one_of(st.sampled_from([-GRID, 0, GRID]), st.integers(-GRID, GRID))
records = st.tuples(st.integers(0, 2), values, st.one_of(values, st.just(MISSING_VALUE)))


@pytest.mark.parametrize("statistic", STATISTICS, ids=lambda s: str(s)[:30])
@settings(max_examples=120, deadline=None)
@given(table=st.lists(records, max_size=4), row=records, other=records)
def test_no_pair_of_neighbours_exceeds_the_stated_sensitivity(statistic, table, row, other):
    made = transformation(statistic, SCHEMA)
    for relation, before in ((ADD, table), (SWAP, [*table, other])):
        bound = made.one_row(relation)
        l1, l2 = distance(statistic, before, [*table, row])
        assert l1 <= bound.l1
        assert l2 <= bound.l2_squared


LONG, AGAINST = (0, GRID, GRID), (0, -GRID, -GRID)
FAR = FeatureMoments((FeatureMap("x", ((4 * F, 0), (0, 4 * F))),), 2.0, 0.1)
HEAVY = FeatureMoments((FeatureMap("x", ((4 * F,), (-4 * F,))),), 2.0, 5.0)
EXTREME = [
    (Histograms(("a", "x", "y"), 2), ADD, [], [LONG], 0.999),
    (Histograms(("a", "x", "y"), 2), SWAP, [(1, -GRID, -GRID)], [LONG], 0.999),
    (FeatureMoments(MAPS, 3.0, 0.5), ADD, [], [LONG], 0.99),
    (FAR, SWAP, [(0, -GRID, 0)], [(0, GRID, 0)], 0.95),
    (HEAVY, SWAP, [(0, -GRID, 0)], [(0, GRID, 0)], 0.95),
    (FeatureNorms(MAPS, (1.0,)), ADD, [], [LONG], 0.999),
    (FeatureNorms(MAPS, (9.0,)), SWAP, [(1, 0, 0)], [LONG], 0.999),
]


@pytest.mark.parametrize(("statistic", "relation", "one", "other", "reached"), EXTREME, ids=lambda x: str(x)[:30])
def test_the_stated_sensitivity_is_all_but_reached(statistic, relation, one, other, reached):
    """A bound a twentieth smaller would be passed here, let alone one of half the size."""
    bound = transformation(statistic, SCHEMA).one_row(relation)
    _, l2 = distance(statistic, one, other)
    assert reached * bound.l2_squared <= l2 <= bound.l2_squared


def test_a_norm_is_kept_in_spite_of_rounding():
    for steps in range(1, 3 * F, 17):
        clip = np.nextafter(steps / F, 0)
        statistic = FeatureMoments((FeatureMap("x", ((5 * F, 2 * F),)),), float(clip))
        _, l2 = distance(statistic, [], [LONG])
        assert l2 <= transformation(statistic, SCHEMA).one_row(ADD).l2_squared


def test_l1_covers_features_of_equal_size():
    statistic = FeatureMoments((FeatureMap("x", ((F,) * 12,)),), 2.0)
    bound = transformation(statistic, SCHEMA).one_row(ADD)
    l1, _ = distance(statistic, [], [LONG])
    assert 0.95 * bound.l1 <= l1 <= bound.l1


def test_a_histogram_counts_every_depth_and_missing_cells_once():
    table = [(0, -GRID, MISSING_VALUE), (1, GRID, -GRID), (1, 0, GRID), (2, 1, 0)]
    _, found = parts(Histograms(("a", "x", "y"), 2), table)
    a, x1, x2, y1, y2 = found
    assert a.tolist() == [1, 2, 1]
    assert (x1.sum(), x2.sum(), y1.sum(), y2.sum()) == (4, 4, 4, 3)
    assert (len(x1), len(x2), len(y1), len(y2)) == (8, 64, 9, 64)
    assert y1[-1] == 1
    assert (x2.reshape(8, 8).sum(axis=1) == x1).all()
    assert (y2.reshape(8, 8).sum(axis=1) == y1[:8]).all()


def test_intervals_cut_the_range_evenly():
    grid = np.arange(-GRID, GRID + 1).astype(np.int16)
    for intervals in (1, 8, 4096):
        place = interval(grid, intervals)
        assert (place[0], place[-1]) == (0, intervals - 1)
        assert (np.diff(place) >= 0).all()
        counts = np.bincount(place, minlength=intervals)
        assert counts.max() - counts.min() <= 1
    assert interval(np.array([MISSING_VALUE], dtype=np.int16), 8).tolist() == [8]


def test_moments_are_the_sums_of_clipped_features():
    table = [(0, -GRID, MISSING_VALUE), (1, GRID, -GRID), (1, 0, GRID), (2, 1, 0)] * 3
    made, found = parts(FeatureMoments(MAPS, 3.0, 0.5), table)
    places = source(table)._rows
    z = np.column_stack([
        np.array(MAPS[0].vectors)[places.codes["a"]],
        np.array(MAPS[1].vectors)[interval(places.values["x"], 8)],
        np.array(MAPS[2].vectors)[interval(places.values["y"], 8)],
    ]) / F  # fmt: skip
    z *= np.minimum(1, 3 / np.linalg.norm(z, axis=1))[:, None]
    single, product, square = made.natural(found)
    assert single == pytest.approx(z.sum(axis=0), abs=0.05)
    assert product == pytest.approx((z.T @ z)[np.triu_indices(5, 1)], abs=0.2)
    assert square == pytest.approx((z * z).sum(axis=0), abs=0.2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: FeatureMap("a", ((1.5,), (2.0,))),
        lambda: FeatureMap("a", ((1,), (2, 3))),
        lambda: FeatureMap("a", ()),
        lambda: FeatureMap("a", ((65 * F,),)),
        lambda: Histograms(()),
        lambda: Histograms(("a",), 5),
        lambda: Histograms(("a",), 0),
        lambda: FeatureMoments((), 1.0),
        lambda: FeatureMoments((FeatureMap("x", ((1,) * 4097,)),), 1.0),
        lambda: FeatureMoments((MAPS[0], MAPS[0]), 1.0),
        lambda: FeatureMoments(("a",), 1.0),
        lambda: FeatureMoments(MAPS, 0.0),
        lambda: FeatureNorms(MAPS, (2.0, 1.0)),
        lambda: transformation(FeatureMoments((FeatureMap("a", ((1,),)),), 1.0), SCHEMA).row_sums,
        lambda: transformation(FeatureMoments((FeatureMap("x", ((1,),) * 4097),), 1.0), SCHEMA).row_sums,
    ],
)
def test_garbage_is_refused_in_a_sentence(make):
    with pytest.raises(QueryError):
        make()


def test_a_ledger_says_which_columns_were_read():
    assert describe(FeatureMoments(MAPS, 3.0)) == "FeatureMoments(a, x, y)"
    assert describe(FeatureNorms(MAPS[:2], (1.0,))) == "FeatureNorms(a, x)"
    assert describe(Histograms(("a", "x"))) == "Histograms(a, x)"
