"""Sensitivities: never exceeded by neighbours, and caught when halved."""

from __future__ import annotations

import fractions
import math
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpcurate.errors import DomainTooLarge, QueryError
from dpcurate.private.row_sums import FeatureRows, Lookup, Rows
from dpcurate.private.statistics import kendall, registry
from dpcurate.private.statistics.kendall import strata, upper_tail
from dpcurate.private.statistics.levels import _most_different
from dpcurate.private.statistics.numbers import QuantileTransformation
from dpcurate.private.statistics.registry import sensitivity, transformation
from dpcurate.published import PublishedFlips, PublishedKendallP
from dpcurate.queries import (
    Contrasts,
    Counts,
    Gradient,
    GradientNorms,
    KendallP,
    Means,
    Moments,
    Quantile,
    Tables,
    Tau,
)
from dpcurate.schema import GRID, Categorical, Neighbours, Numeric, Person, Schema
from helpers import any_record, distance, parts, schema_of

ADD, SWAP = Neighbours.ADD_REMOVE, Neighbours.REPLACE
MIXED = schema_of(2, 3, 5, rows=40, numeric=1)
WEIGHTS = ((0.0, 0.7, -1.5, 0.2), (0.3, 0.0, 0.4, 2.0), (0.0, -2.0, 0.0, 0.1), (1.0, 0.0, 0.6, 0.0))
PAIRS = ((), ("a",), ("b",), ("c",), ("x0",), *combinations(("a", "b", "c", "x0"), 2), ("a", "b", "c"))
PROVED = [
    Counts(("a", "c")),
    Counts(()),
    Tables(PAIRS),
    Tables((("b", "a"), ("x0", "c", "b"))),
    Contrasts(PAIRS),
    Contrasts(PAIRS, tuple(0.25 + 0.5 * (len(s) > 1) for s in PAIRS)),
    Means(("x0",)),
    Moments(("a", "b", "x0")),
    Moments(("a", "c", "x0"), clip=0.8),
    Gradient(("a", "b", "c", "x0"), WEIGHTS, clip=0.5),
    GradientNorms(("a", "b", "c", "x0"), WEIGHTS, edges=(0.2, 0.5, 1.0, 3.0)),
    Tau("b", "c"),
    Tau("a", "c", ("b",)),
    KendallP("b", "c"),
    KendallP("c", "b", ("a",)),
]


@pytest.mark.parametrize("statistic", PROVED, ids=str)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_pair_of_neighbours_exceeds_the_stated_sensitivity(statistic, data):
    def draw_int(low, high):
        return data.draw(st.integers(low, high))

    table = [any_record(MIXED, draw_int) for _ in range(draw_int(0, 9))]
    table *= draw_int(1, 4)  # repeated rows reach the extremes of rank statistics
    row, other = any_record(MIXED, draw_int), any_record(MIXED, draw_int)
    made = transformation(statistic, MIXED)
    for relation, changed in ((ADD, [*table, row]), (SWAP, [*table, row])):
        before = table if relation is ADD else [*table, other]
        bound = made.one_row(relation)
        l1, l2 = distance(statistic, MIXED, before, changed)
        assert l1 <= bound.l1
        assert l2 <= bound.l2_squared


# For each statistic a pair of tables that moves it by more than half of what is stated: a bound
# half as large would fail here.
WIDE = schema_of(2, 3, 10, 10, rows=40, numeric=2)
CLIMB = [[0, 0, i, i, 0, 0] for i in range(10)]
SQUARE = [[0, 0, x, y, 0, 0] for x in range(1, 9) for y in range(1, 9)]  # no association: p is near 1/2
TILTED = [*SQUARE, [0, 0, 0, 0, 0, 0]]
FLIP = ((0.0, -1.0), (-1.0, 0.0))
IDLE = ((0.0, 0.0), (0.0, 0.0))
EXTREME = [
    (Counts(("a", "b")), ADD, [], [[0] * 6]),
    (Counts(("a", "b")), SWAP, [[0] * 6], [[1] * 6]),
    (Tables(((), ("a",), ("a", "b"))), ADD, [], [[0] * 6]),
    (Tables(((), ("a",), ("b", "a"), ("b",))), SWAP, [[0] * 6], [[1] * 6]),
    (Contrasts((("a",), ("a", "b")), (0.5, 1.0)), ADD, [], [[0] * 6]),
    (Contrasts((("a",), ("b",), ("a", "b"))), SWAP, [[0] * 6], [[1] * 6]),
    (Means(("x0", "x1")), ADD, [], [[0, 0, 0, 0, GRID, -GRID]]),
    (Means(("x0", "x1")), SWAP, [[0, 0, 0, 0, GRID, -GRID]], [[0, 0, 0, 0, -GRID, GRID]]),
    (Moments(("x0", "x1", "a")), ADD, [], [[0, 0, 0, 0, GRID, GRID]]),
    (Moments(("x0", "x1", "a")), SWAP, [[0, 0, 0, 0, GRID, GRID]], [[0, 0, 0, 0, -GRID, -GRID]]),
    (Moments(("x0", "x1"), clip=2.0), ADD, [], [[0, 0, 0, 0, GRID, GRID]]),
    (Moments(("x0", "x1"), clip=0.5), SWAP, [[0, 0, 0, 0, GRID, GRID]], [[0, 0, 0, 0, -GRID, -GRID]]),
    (Gradient(("x0", "x1"), FLIP, clip=0.5), ADD, [], [[0, 0, 0, 0, GRID, GRID]]),
    (Gradient(("x0", "x1"), IDLE, clip=0.5), SWAP, [[0, 0, 0, 0, GRID, GRID]], [[0, 0, 0, 0, GRID, -GRID]]),
    (GradientNorms(("x0", "x1"), IDLE, (0.5,)), ADD, [], [[0, 0, 0, 0, GRID, GRID]]),
    (GradientNorms(("x0", "x1"), IDLE, (0.5,)), SWAP, [[0, 0, 0, 0, GRID, GRID]], [[0, 0, 0, 0, 0, 0]]),
    (Tau("c", "d"), ADD, CLIMB[:9], [*CLIMB[:9], [0, 0, 9, 0, 0, 0]]),
    (Tau("c", "d"), SWAP, [*CLIMB[1:9], [0, 0, 9, 0, 0, 0]], [*CLIMB[1:9], [0, 0, 9, 9, 0, 0]]),
    (Tau("a", "d"), ADD, [[0, 0, 0, 0, 0, 0]] * 8, [*[[0, 0, 0, 0, 0, 0]] * 8, [1, 0, 0, 1, 0, 0]]),
    (KendallP("c", "d"), ADD, SQUARE, [*SQUARE, [0, 0, 9, 9, 0, 0]]),
    (KendallP("c", "d"), SWAP, [*TILTED, [0, 0, 9, 0, 0, 0]], [*TILTED, [0, 0, 9, 9, 0, 0]]),
]


@pytest.mark.parametrize(("statistic", "relation", "one", "other"), EXTREME, ids=lambda x: str(x)[:40])
def test_half_the_sensitivity_would_be_caught(statistic, relation, one, other):
    schema = WIDE
    bound = transformation(statistic, schema).one_row(relation)
    l1, l2 = distance(statistic, schema, one, other)
    assert l2 > bound.l2_squared / 4
    assert l1 <= bound.l1
    assert l2 <= bound.l2_squared


@pytest.mark.parametrize("step", [1, 3, 7, 1000, 3001])
def test_a_clip_just_below_a_grid_point_is_kept_in_spite_of_rounding(step):
    """Where u (clip / u) rounds up to the next grid point, only the margin of SAFE keeps a row within its clip."""
    schema = schema_of(numeric=1)
    clip = math.nextafter(step / GRID, 0)
    statistic = Moments(("x0",), clip=clip)
    for u in range(step, GRID + 1, 1 + (GRID - step) // 300):
        _, found = parts(statistic, schema, [[u]])
        assert Fraction(int(found[1][0]), GRID) <= Fraction(clip)
        assert distance(statistic, schema, [], [[u]])[1] <= transformation(statistic, schema).one_row(ADD).l2_squared


@pytest.mark.parametrize("step", [3, 7, 1000, 3001])
def test_features_are_kept_within_their_clip_in_spite_of_rounding(step):
    clip = math.nextafter(step, 0)
    for u in range(step, 20 * step, 1 + step // 100):
        lookup = Lookup("a", 0, ((0,), (u,)))
        rows = Rows({"a": np.ones(1, dtype=np.uint8)}, {}, None, 1)
        assert FeatureRows((lookup,), clip).apply(rows)[0, 1] <= clip


def test_gradients_are_kept_below_their_clip_by_the_margin_of_the_proof():
    schema = schema_of(numeric=2)
    for clip in (0.1, 0.5, 0.7):
        statistic = Gradient(("x0", "x1"), ((0.0, -1.0), (0.0, 0.0)), clip=clip)
        made, (found,) = parts(statistic, schema, [[GRID, 0]])  # one entry of length 1
        length = math.hypot(*(float(int(step) / made.units[0]) for step in found.ravel()))
        assert 0.99 * clip < length <= clip * (1 - 1e-9)


def test_tables_are_exact_under_both_relations():
    """Every row added moves each table by 1, and rows that differ everywhere move all but the row count by 2."""
    schema = schema_of(2, 3, 4)
    statistic = Tables(((), ("a",), ("c", "a"), ("a", "b", "c")))
    made = transformation(statistic, schema)
    added, swapped = made.one_row(ADD), made.one_row(SWAP)
    assert distance(statistic, schema, [[0, 0, 0]], [[0, 0, 0], [1, 2, 3]]) == (added.l1, added.l2_squared) == (4, 4)
    assert distance(statistic, schema, [[0, 0, 0]], [[1, 1, 1]]) == (swapped.l1, swapped.l2_squared) == (6, 6)
    alone = transformation(Tables(((),)), schema)
    assert alone.one_row(SWAP) == transformation(Counts(()), schema).one_row(SWAP)
    many = transformation(Tables(((), ("a",))), schema)
    assert sensitivity(many, schema, SWAP).l1 == 2
    lasting = Schema((Categorical("a", ("0", "1"), "0", "0"),))
    three = Tables(((), ("a",)))
    people = Schema(lasting.columns, person=Person("id", 3))
    assert sensitivity(transformation(three, lasting), lasting, SWAP) == transformation(three, lasting).one_row(SWAP)
    assert sensitivity(transformation(three, people), people, SWAP).l1 == 3 * 2
    assert sensitivity(transformation(three, people), people, ADD).l2_squared == 9 * 2


def test_tables_are_the_counts_of_each_set():
    schema = schema_of(2, 3, 4)
    records = [[0, 1, 2], [1, 2, 3], [1, 2, 3], [0, 0, 0]]
    sets = ((), ("c",), ("c", "a"), ("b", "a", "c"))
    made, found = parts(Tables(sets), schema, records)
    assert len(made.natural(found)) == len(made.weights()) == len(made.units) == len(sets)
    for names, part, natural in zip(sets, found, made.natural(found), strict=True):
        _, (alone,) = parts(Counts(names), schema, records)
        assert (part == alone).all()
        assert natural.dtype == np.float64
        assert natural.shape == schema.sizes(names)


def test_contrasts_are_exact_under_both_relations():
    """The stated L2 is attained: by any row, and by the worst pair of rows found by enumeration."""
    schema = schema_of(2, 3, 4)
    sets = ((), ("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c"))
    statistic = Contrasts(sets, (0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 1.0))
    made = transformation(statistic, schema)
    assert distance(statistic, schema, [], [[1, 2, 3]])[1] == made.one_row(ADD).l2_squared
    rows = [[a, b, c] for a in range(2) for b in range(3) for c in range(4)]
    worst = max(distance(statistic, schema, [rows[0]], [r])[1] for r in rows)
    assert worst == made.one_row(SWAP).l2_squared


def test_replace_closed_form_equals_enumeration(monkeypatch):
    """More than 12 columns take the closed form; it must equal the enumeration it replaces."""
    schema = schema_of(2, 3, 4, 2, 5, 3)
    names = schema.names
    sets = ((), *((n,) for n in names), *combinations(names, 2))
    statistic = Contrasts(sets, tuple(1.5 if len(s) == 2 else 0.5 for s in sets))
    made = transformation(statistic, schema)
    exact = made.one_row(SWAP).l2_squared
    assert made._uniform_pairs(sorted(names)) == exact
    loose = Contrasts(sets[:-1], statistic.weights[:-1])
    assert transformation(loose, schema)._uniform_pairs(sorted(names)) is None
    triple = Contrasts((*sets, names[:3]))
    assert transformation(triple, schema)._uniform_pairs(sorted(names)) is None
    no_margins = Contrasts(tuple(combinations(names, 2)))
    assert (
        transformation(no_margins, schema)._uniform_pairs(sorted(names))
        == transformation(no_margins, schema).one_row(SWAP).l2_squared
    )


def enumerated(statistic, schema):
    """The replace sensitivity of contrasts by trying every choice of columns that differ, the slow way."""
    columns = sorted({c for s in statistic.sets for c in s})
    best = Fraction(0)
    for which in product((0, 1), repeat=len(columns)):
        differ, total = dict(zip(columns, which, strict=True)), Fraction(0)
        for names, weight in zip(statistic.sets, statistic.weights, strict=True):
            g = {c: Fraction(schema.sizes((c,))[0] - 1, schema.sizes((c,))[0]) for c in names}
            length = math.prod(g.values()) - math.prod(g[c] - differ[c] for c in names)
            total += 2 * Fraction(weight) ** 2 * length
        best = max(best, total)
    return best


some_sets = st.sets(st.frozensets(st.sampled_from("abcde"), max_size=5), min_size=1, max_size=12)


@settings(max_examples=80, deadline=None)
@given(some_sets, st.tuples(*[st.sampled_from([2, 3, 4, 7])] * 5), st.randoms(use_true_random=False))
def test_the_worst_replaced_row_is_the_one_found_by_enumeration(sets, levels, chance):
    schema = schema_of(*levels)
    sets = tuple(tuple(sorted(s)) for s in sets)
    weighted = Contrasts(sets, tuple(chance.choice([0.25, 1, 3, Fraction(1, 3)]) for _ in sets))
    assert transformation(weighted, schema).one_row(SWAP).l2_squared == enumerated(weighted, schema)
    for one in sets:  # the bound of a single set, which wide ones rely on, is exact too
        lengths = [Fraction(r - 1, r) for r in schema.sizes(one)]
        alone = Contrasts((one,))
        assert 2 * _most_different(lengths) == enumerated(alone, schema)


def fraction_steps(call):
    """How many sums and products of fractions a call makes."""
    count = 0

    def note(frame, event, _):
        nonlocal count
        count += event == "call" and frame.f_code.co_filename == fractions.__file__

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def test_no_set_of_contrasts_takes_steps_without_number():
    """A wide set under replace once tried all 2^k choices, with the session locked: 13 million steps for 16 columns."""
    wide = schema_of(*[2] * 18, 3, 3)
    every = schema_of(*[2, 3, 4, 2] * 2)
    subsets = tuple(s for k in range(9) for s in combinations(every.names, k))
    cases = [
        (Contrasts((wide.names[:16],)), wide, 2000),
        (Contrasts((wide.names[:20],)), wide, 2000),
        (Contrasts((wide.names[:16], wide.names[1:20], ("a",))), wide, 3000),
        (Contrasts(subsets), every, 100_000),
        (Contrasts(tuple(combinations(wide.names, 2))), wide, 20_000),
    ]
    for statistic, schema, most in cases:
        made = transformation(statistic, schema)
        assert 0 < fraction_steps(lambda made=made: made.one_row(SWAP)) < most


def test_a_wide_set_states_what_its_worst_pair_of_rows_does():
    schema = schema_of(*[2] * 9, 3, 4)
    for statistic in (Contrasts((schema.names,)), Contrasts((schema.names[:10],))):
        best = max(distance(statistic, schema, [[0] * 11], [[int(k == i) for k in range(11)]])[1] for i in range(11))
        assert best == transformation(statistic, schema).one_row(SWAP).l2_squared


def test_many_columns_are_bounded_without_enumeration():
    schema = schema_of(*[2, 3, 4] * 5)
    names = schema.names
    whole = Contrasts(((), *((n,) for n in names), *combinations(names, 2)))
    part = Contrasts((*((n,) for n in names), *combinations(names, 2)), tuple(np.linspace(0.5, 1, 15 + 105)))
    rng = np.random.default_rng(1)
    for statistic in (whole, part):
        bound = transformation(statistic, schema).one_row(SWAP).l2_squared
        for _ in range(20):
            one, other = ([int(rng.integers(r)) for r in schema.sizes(names)] for _ in range(2))
            assert distance(statistic, schema, [one], [other])[1] <= bound


def test_a_unit_of_several_rows_and_rows_that_vanish():
    columns = (Categorical("a", ("0", "1"), missing="0", outside="0"), Categorical("b", ("0", "1"), "0", "0"))
    keeps = Schema(columns)
    drops = Schema((columns[0], Categorical("b", ("0", "1"))))
    people = Schema(columns, person=Person("id", 3))
    statistic = Contrasts(((), ("a",)), (5.0, 1.0))
    made = transformation(statistic, keeps)
    assert made.one_row(SWAP).l2_squared == 2  # as long as no row vanishes, the count does not move
    assert sensitivity(made, drops, SWAP).l2_squared == 25 + Fraction(1, 2)
    assert sensitivity(made, keeps, SWAP).l2_squared == 25 + Fraction(1, 2)  # a reader may skip a row of empty cells
    assert sensitivity(made, people, ADD).l2_squared == 9 * (25 + Fraction(1, 2))
    assert sensitivity(made, people, SWAP).l2_squared == 9 * (25 + Fraction(1, 2))
    assert sensitivity(made, people, ADD).l1 == 3 * 6


KEPT = (Numeric("x0", -1, 1, bins=2, missing=0, outside="clamp"),)
QUANTILES = [Quantile(column="x0", probability=p, epsilon=1) for p in (0.1, 0.5, 0.9)]


COUNTED = [Contrasts(((), ("c",)), (1e6, 1)), Moments(("x0",), clip=1e-9), Tables(((),))]
"""Nearly all of what they tell is how many rows there are."""


@pytest.mark.parametrize("asked", [*PROVED, *QUANTILES, *COUNTED], ids=str)
def test_under_replace_a_vanished_row_is_paid_for_whatever_the_schema_keeps(asked):
    kept = Schema(tuple(replace(c, missing="0", outside="0") for c in MIXED.columns[:3]) + KEPT, rows=40)
    assert all("drop" not in (c.missing, c.outside) for c in kept.columns)
    quantile = isinstance(asked, Quantile)
    made = QuantileTransformation(asked, kept) if quantile else transformation(asked, kept)
    stated, removed = sensitivity(made, kept, SWAP), made.one_row(ADD)
    assert stated.l1 >= removed.l1
    assert stated.l2_squared >= removed.l2_squared


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 1)), max_size=30))
def test_strata_agree_with_counting_pairs(records):
    schema = schema_of(3, 4, 2)
    made, _ = parts(Tau("a", "b", ("c",)), schema, records)
    counts = np.zeros((3, 4, 2), dtype=np.int64)
    for a, b, c in records:
        counts[a, b, c] += 1
    sizes, balance = strata(counts)
    for k in range(2):
        rows = [(a, b) for a, b, c in records if c == k]
        slow = sum(int(np.sign((p[0] - q[0]) * (p[1] - q[1]))) for p, q in combinations(rows, 2))
        assert (sizes[k], balance[k]) == (len(rows), slow)
    (value,) = made.integers((counts,))
    exact = sum(
        math.floor(1024 * Fraction(2 * int(b), max(int(s) - 1, 1))) for s, b in zip(sizes, balance, strict=True)
    )
    assert int(value[0]) == exact


def test_p_values_agree_with_the_textbook():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, 400)
    y = np.clip(x + rng.integers(-1, 3, 400), 0, 4)
    schema = schema_of(3, 5, rows=400)
    records = np.column_stack([x, y]).tolist()
    pairs = sum(int(np.sign((x[i] - x[j]) * (y[i] - y[j]))) for i in range(400) for j in range(i))
    z = 3 * pairs / math.sqrt(400 * 399 * 805 / 2)
    _, ((published,),) = parts(PublishedKendallP("a", "b"), schema, records)
    assert published / 2**40 == pytest.approx(stats.norm.sf(abs(z)), rel=1e-6)
    _, ((proved,),) = parts(KendallP("a", "b"), schema, records)
    assert proved / 2**40 == pytest.approx(upper_tail(abs(9 * pairs / 805 / 30)), rel=1e-3)


def test_published_test_leaves_out_constant_strata_and_may_be_undefined():
    schema = schema_of(2, 2, 2, rows=100)
    balanced = [[0, 0, 0], [1, 1, 0], [0, 0, 0], [1, 1, 0], [0, 1, 0], [1, 0, 0]]
    constant = [[0, 0, 1]] * 50
    statistic = PublishedKendallP("a", "b", ("c",))
    _, ((alone,),) = parts(statistic, schema, balanced)
    _, ((both,),) = parts(statistic, schema, balanced + constant)
    assert alone == both
    _, ((nothing,),) = parts(statistic, schema, constant)
    assert nothing == kendall.UNDEFINED


def test_one_row_breaks_the_published_sensitivity():
    """A constant stratum of n - 16 rows and a concordant one of 16: docs/proofs/published.md."""
    n = 100_000
    schema = schema_of(2, 2, 2, rows=n)
    counts = np.zeros((2, 2, 2), dtype=np.int64)
    counts[0, 0, 0] = n - 16
    counts[0, 0, 1] = counts[1, 1, 1] = 8
    after = counts.copy()
    after[1, 1, 0] += 1
    moved = {}
    for bound in ("priv-pc", "curate-printed", "curate-code"):
        made = transformation(PublishedKendallP("a", "b", ("c",), bound=bound), schema)
        (before,), (now,) = made.integers((counts,)), made.integers((after,))
        moved[bound] = abs(int(before[0]) - int(now[0])) / 2**40 / float(made.one_row(ADD).l1)
    assert moved["priv-pc"] > 60
    assert moved["curate-code"] > 400
    assert moved["curate-printed"] > 290


def test_published_flips_count_rows_and_jump():
    """EM-PC's score: rows to take out before a G test changes its mind; one row can move it far."""
    schema = schema_of(2, 2)

    def flips(table, level=0.05):
        (count,) = transformation(PublishedFlips("a", "b", level=level), schema).integers(
            (np.array(table, dtype=np.int64),)
        )
        return int(count[0])

    assert flips([[50, 0], [0, 50]]) < 0
    assert flips([[25, 25], [25, 25]]) > 0
    assert flips([[50, 0], [0, 50]]) < flips([[30, 20], [20, 30]]) <= 0 < flips([[25, 25], [25, 25]])
    assert abs(flips([[0, 22], [0, 59]]) - flips([[1, 22], [0, 59]])) >= 68  # one row
    assert flips([[3, 0], [0, 0]]) == 2
    assert transformation(PublishedFlips("a", "b"), schema).one_row(ADD).l1 == 1


def test_flips_beyond_reach_are_cut_off(monkeypatch):
    monkeypatch.setattr("dpcurate.published.unproved_statistics.FEWEST_FLIPS", 3)
    made = transformation(PublishedFlips("a", "b"), schema_of(2, 2))
    (count,) = made.integers((np.array([[50, 0], [0, 50]], dtype=np.int64),))
    assert count[0] == -3


def test_the_row_count_is_needed_only_where_it_is_used():
    schema = schema_of(2, 2)
    transformation(Tau("a", "b"), schema)
    for kind in (KendallP, PublishedKendallP):
        with pytest.raises(QueryError, match="row count"):
            transformation(kind("a", "b"), schema)


def test_a_table_too_large_is_refused_with_its_size():
    schema = schema_of(*[10] * 8)
    with pytest.raises(DomainTooLarge, match=r"100,000,000 cells, above the limit of 10,000,000"):
        transformation(Counts(schema.names), schema)


def test_tables_too_large_together_are_refused_with_their_size():
    schema = schema_of(*[200] * 4)
    triples = tuple(combinations(schema.names, 3))
    with pytest.raises(DomainTooLarge, match="a table over a, b, c, d has 1,600,000,000 cells"):
        transformation(Tables((*combinations(schema.names, 2), schema.names)), schema)
    transformation(Tables(triples), schema)  # 32 million cells
    wide = schema_of(*[200] * 5)
    with pytest.raises(DomainTooLarge, match=r"these 10 tables have 80,000,000 cells together.* several queries"):
        transformation(Tables(tuple(combinations(wide.names, 3))), wide)


def test_something_else_is_no_statistic():
    with pytest.raises(QueryError, match="not a statistic"):
        transformation("counts", schema_of(2))  # type: ignore[arg-type]


def test_every_statistic_and_mechanism_carries_its_proof():
    from dpcurate.private import mechanisms

    noises = [c for c in vars(mechanisms).values() if isinstance(c, type) and hasattr(c, "cost")]
    proofs = [*registry.PROVED.values(), *registry._UNPROVED.values(), *noises]
    proofs.append(QuantileTransformation)
    assert len(proofs) >= 12
    for kind in proofs:
        for heading in ("Guarantee:", "Sensitivity:", "Proof:", "Cites:"):
            assert heading in (kind.__doc__ or ""), f"{kind.__name__} lacks {heading}"
