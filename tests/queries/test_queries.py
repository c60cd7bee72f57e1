"""The queryable's vocabulary: frozen, hashable values without callables, refused with a reason when wrong."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcurate import queries
from dpcurate.errors import QueryError
from dpcurate.published import PublishedFlips, PublishedKendallP
from dpcurate.queries import (
    AboveThreshold,
    Answer,
    Choose,
    Contrasts,
    Counts,
    Estimate,
    Estimates,
    Exact,
    FeatureMap,
    FeatureMoments,
    FeatureNorms,
    Gaussian,
    GaussianShare,
    Gradient,
    GradientNorms,
    Histograms,
    KendallP,
    Laplace,
    Means,
    Moments,
    PairStatistic,
    Quantile,
    Release,
    Sample,
    Score,
    Tables,
    Tau,
)

SCORE = Score(Tau("a", "b"), 3.0, "above")
FEATURES = FeatureMap("a", ((1, -2), (3, 4)))
VALUES = [
    Counts(("a", "b")),
    Counts(()),
    Tables(((), ("a",), ("b", "a"))),
    Contrasts(((), ("a",), ("a", "b")), (0.5, 1, Fraction(1, 3))),
    Moments(("a", "x")),
    Moments(("a", "x"), clip=0.5),
    Gradient(("a", "x"), ((0.0, 0.5), (0.0, 0.0)), clip=1),
    GradientNorms(("a", "x"), ((0.0, 0.5), (0.0, 0.0)), (0.5, 1.0)),
    Histograms(("a", "x"), 2),
    FEATURES,
    FeatureMoments((FEATURES,), 2.0),
    FeatureNorms((FEATURES,), (0.5, 1.0)),
    Tau("a", "b", ("c",)),
    KendallP("a", "b"),
    PublishedKendallP("a", "b", bound="priv-pc"),
    PublishedFlips("a", "b"),
    Laplace(epsilon=0.1),
    Laplace(scale=3),
    Gaussian(sigma=2.0),
    Gaussian(rho=Fraction(1, 7)),
    Gaussian(epsilon=1.0, delta=1e-6),
    GaussianShare(rho=Fraction(1, 7), sites=5, colluding=2),
    Exact(),
    Release(Counts(("a",)), Exact()),
    SCORE,
    Choose(candidates=(SCORE,), epsilon=1.0, or_none=True),
    Means(("a", "b")),
    Quantile(column="a", probability=0.25, epsilon=1.0),
    Quantile(column="a", probability=Fraction(1, 3), epsilon=1.0, shift=-3, cuts=(0, 7, 4096)),
    AboveThreshold(epsilon=1.0),
    Sample(rate=0.1, epsilon=1.0),
]
KINDS = [
    kind
    for kind in vars(queries).values()
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__.startswith(queries.__name__)
    if kind is not PairStatistic  # a base, which no session answers
] + [PublishedFlips, PublishedKendallP]
ANSWERS = {Answer, Estimate, Estimates}


def test_every_kind_of_request_is_tried_here():
    assert {type(v) for v in VALUES} == set(KINDS) - ANSWERS


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_requests_are_frozen_hashable_values(value):
    again = dataclasses.replace(value)
    assert again == value
    assert hash(again) == hash(value)
    assert not hasattr(value, "__dict__")
    for field in dataclasses.fields(value):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field.name, None)
    assert value not in [v for v in VALUES if v is not value]


def test_subclasses_of_a_statistic_are_not_taken_for_it():
    assert len({Tau("a", "b"), KendallP("a", "b"), PublishedKendallP("a", "b"), PublishedFlips("a", "b")}) == 4


PLAIN = {str, int, float, bool, type(None), Fraction}


def plain(hint):
    """Whether a field's type is built from text, numbers, tuples and other queries alone."""
    if hint in PLAIN or hint in (*KINDS, PairStatistic) or hint is Ellipsis:
        return True
    if typing.get_origin(hint) is typing.Literal:
        return all(type(x) in PLAIN for x in typing.get_args(hint))
    return typing.get_origin(hint) in (tuple, typing.Union, types.UnionType) and all(map(plain, typing.get_args(hint)))


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ANSWERS], ids=lambda k: k.__name__)
def test_no_field_of_a_request_can_hold_code(kind):
    for name, hint in typing.get_type_hints(kind).items():
        assert plain(hint), (kind, name, hint)


def test_the_check_for_code_can_fail():
    for hint in (typing.Callable[[int], int], object, typing.Any, list, np.ndarray, tuple):
        assert not plain(hint)


def walk(value):
    yield value
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from walk(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from walk(item)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_no_value_in_a_request_is_callable_or_mutable(value):
    for part in walk(value):
        assert not callable(part)
        hash(part)


def test_lists_become_tuples():
    assert Counts(["a", "b"]).columns == ("a", "b")
    assert Contrasts([["a"], ["a", "b"]]).sets == (("a",), ("a", "b"))
    assert Tables([["a"], ["b", "a"]]).sets == (("a",), ("b", "a"))
    assert Contrasts([["a"], []]).weights == (1.0, 1.0)
    assert Moments(["a"]).columns == ("a",)
    gradient = Gradient(["a", "b"], np.zeros((2, 2)), 1.0)
    assert gradient.weights == ((0.0, 0.0), (0.0, 0.0))
    assert all(type(w) is float for row in gradient.weights for w in row)
    assert Tau("a", "b", ["c"]).given == ("c",)
    assert Choose(candidates=[SCORE], epsilon=1).candidates == (SCORE,)


NOT_POSITIVE = [0, -1, math.nan, math.inf, -math.inf, "1", None, True, [1]]


@pytest.mark.parametrize("bad", NOT_POSITIVE, ids=repr)
def test_every_amount_must_be_positive_and_finite(bad):
    makers = [
        lambda: Contrasts((("a",),), (bad,)),
        lambda: Gradient(("a",), ((0.0,),), bad),
        lambda: Choose(candidates=(SCORE,), epsilon=bad),
        lambda: AboveThreshold(epsilon=bad),
        lambda: Sample(rate=0.5, epsilon=bad),
        lambda: Laplace(epsilon=bad),
        lambda: Laplace(scale=bad),
        lambda: Gaussian(sigma=bad),
        lambda: Gaussian(rho=bad),
        lambda: GaussianShare(rho=bad, sites=3),
        lambda: Gaussian(epsilon=bad, delta=1e-6),
    ]
    if bad is not None:
        makers.append(lambda: Moments(("a",), clip=bad))
    for make in makers:
        with pytest.raises(QueryError, match=r"finite number greater than 0|give exactly one|between 1e-9 and 1e9"):
            make()


WRONG = [
    (lambda: Counts(("a", "b", "a")), r"one statistic names 'a' more than once"),
    (lambda: Counts((1,)), "named by text"),
    (lambda: Tau("a", "a"), "'a' more than once"),
    (lambda: Tau("a", "b", ("a",)), "'a' more than once"),
    (lambda: KendallP("a", "b", ("c", "c")), "'c' more than once"),
    (lambda: Tables(()), "at least one set"),
    (lambda: Tables(("ab", "c")), "columns come as a tuple of names"),
    (lambda: Tables("ab"), "sets of columns come as a tuple"),
    (lambda: Tables(5), "sets of columns come as a tuple"),
    (lambda: Tables((("a", "a"),)), "more than once"),
    (lambda: Tables(((1,),)), "named by text"),
    (lambda: Tables((("a", "b"), ("b", "a"))), "stands more than once; ask for it once"),
    (lambda: Contrasts(()), "at least one set"),
    (lambda: Contrasts((("a", "a"),)), "more than once"),
    (lambda: Contrasts((("a", "b"), ("b", "a"))), "ask for it once with a larger weight"),
    (lambda: Contrasts((("a",), ("b",)), (1.0,)), "2 sets need as many weights, got 1"),
    (lambda: Moments(()), "at least one column"),
    (lambda: Moments(("a", "a")), "more than once"),
    (lambda: Gradient(("a", "b"), ((0.0,),), 1.0), "needs a 2 x 2 matrix"),
    (lambda: Gradient(("a", "b"), ((0.0, 0.0), (0.0,)), 1.0), "needs a 2 x 2 matrix"),
    (lambda: Gradient(("a", "b"), ((math.nan, 0), (0, 0)), 1.0), "finite and at most a million"),
    (lambda: Gradient(("a", "b"), ((1e7, 0), (0, 0)), 1.0), "finite and at most a million"),
    (lambda: GradientNorms(("a", "b"), ((0, 0), (0, 0)), ()), "edges must be rising"),
    (lambda: GradientNorms(("a", "b"), ((0, 0), (0, 0)), (2.0, 1.0)), "edges must be rising"),
    (lambda: GradientNorms(("a", "b"), ((0, 0),), (1.0,)), "needs a 2 x 2 matrix"),
    (lambda: Gradient(("a", "a"), ((0, 0), (0, 0)), 1.0), "more than once"),
    (lambda: PublishedKendallP("a", "b", bound="mine"), "bound must be 'priv-pc', 'curate-printed' or 'curate-code'"),
    (lambda: PublishedKendallP("a", "a"), "more than once"),
    (lambda: Laplace(), "give exactly one of epsilon, scale"),
    (lambda: Laplace(epsilon=1, scale=1), "give exactly one of epsilon, scale"),
    (lambda: Gaussian(), "give exactly one of sigma, rho, epsilon"),
    (lambda: Gaussian(sigma=1, rho=1), "give exactly one"),
    (lambda: Gaussian(epsilon=1), "by epsilon needs delta"),
    (lambda: Gaussian(sigma=1, delta=1e-6), "delta goes with epsilon only"),
    (lambda: Gaussian(epsilon=1, delta=0), "delta must lie between 0 and 1, got 0"),
    (lambda: Gaussian(epsilon=1, delta=1), "delta must lie between 0 and 1, got 1"),
    (lambda: Gaussian(epsilon=1, delta=math.nan), "delta must lie between 0 and 1"),
    (lambda: Score(Counts(("a",)), 1, "above"), "one number"),
    (lambda: Score(Tau("a", "b"), math.inf, "above"), "threshold must be a finite number"),
    (lambda: Score(Tau("a", "b"), math.nan, "above"), "threshold must be a finite number"),
    (lambda: Score(Tau("a", "b"), 1e13, "above"), "threshold must be a finite number"),
    (lambda: Score(Tau("a", "b"), 1, "beside"), "side must be 'above' or 'below', got 'beside'"),
    (lambda: Choose(candidates=(), epsilon=1), "at least one candidate"),
    (lambda: Choose(candidates=(Tau("a", "b"),), epsilon=1), "candidates are scores"),
    (lambda: Sample(rate=0, epsilon=1), "rate lies above 0 and at most at 1, got 0"),
    (lambda: Sample(rate=1.01, epsilon=1), "rate lies above 0"),
    (lambda: Sample(rate=math.nan, epsilon=1), "rate lies above 0"),
    (lambda: Sample(rate="0.1", epsilon=1), "rate lies above 0"),
]


@pytest.mark.parametrize(("make", "says"), WRONG, ids=[w[1] for w in WRONG])
def test_a_wrong_request_is_refused_with_a_reason(make, says):
    with pytest.raises(QueryError, match=says):
        make()


def test_privacy_parameters_are_named():
    for make in (lambda: Laplace(1), lambda: Gaussian(1), lambda: AboveThreshold(1), lambda: Sample(0.1, 1)):
        with pytest.raises(TypeError):
            make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Counts("ab"),  # two columns, a and b
        lambda: Counts(5),
        lambda: Score(Tau("a", "b"), "1", "above"),
        lambda: Score(Tau("a", "b"), 10**400, "above"),
        lambda: Gaussian(epsilon=1, delta="1e-6"),
        lambda: Gaussian(rho=Fraction(10) ** 400),  # more than a float holds: the root is never found
        lambda: Gradient(("a",), (("x",),), 1.0),
        lambda: Gradient((), (), 1.0),
        lambda: Gradient(("a", "b"), ((0.0, 0.0), (0.0, 0.0)), 1e-200),
        lambda: Choose(candidates=(SCORE,), epsilon=1, or_none="yes"),
        lambda: PublishedFlips("a", "b", level=math.nan),
    ],
)
def test_bad_input_that_should_be_a_request_error(make):
    with pytest.raises(QueryError):
        make()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=3), max_size=5))
def test_counts_take_any_different_names(names):
    if len(set(names)) == len(names):
        assert Counts(tuple(names)).columns == tuple(names)
    else:
        with pytest.raises(QueryError):
            Counts(tuple(names))


# --- values are taken by their exact type ------------------------------------------------------------

CALLED = []


def watched(base):
    """A subclass that notes whatever is called of it, but for being printed."""

    def spy(name):
        def called(self, *args):
            CALLED.append(f"{base.__name__}.{name}")
            return getattr(base, name)(self, *args)

        return called

    names = [n for n in ("__eq__", "__hash__", "__lt__", "__le__", "__gt__", "__ge__", "__float__", "__mul__",
                         "__abs__", "__len__", "__iter__", "__getitem__", "__bool__") if hasattr(base, n)]  # fmt: skip
    return type(f"Watched{base.__name__}", (base,), {n: spy(n) for n in names})


EVIL_FLOAT, EVIL_INT, EVIL_FRACTION = watched(float)(0.5), watched(int)(1), watched(Fraction)(1, 2)
EVIL_TEXT = watched(str)("above")


@pytest.mark.parametrize("bad", [EVIL_FLOAT, EVIL_INT, EVIL_FRACTION], ids=lambda x: type(x).__name__)
def test_a_subclass_of_a_number_is_refused_and_never_called(bad):
    CALLED.clear()
    for make in (
        lambda: Score(Tau("a", "b"), bad, "above"),
        lambda: Contrasts((("a",),), (bad,)),
        lambda: Moments(("a",), clip=bad),
        lambda: Gradient(("a", "b"), ((0, bad), (0, 0)), 1.0),
        lambda: Gradient(("a", "b"), ((0, 0), (0, 0)), bad),
        lambda: GradientNorms(("a", "b"), ((0, 0), (0, 0)), (bad,)),
        lambda: Laplace(epsilon=bad),
        lambda: Laplace(scale=bad),
        lambda: Gaussian(sigma=bad),
        lambda: Gaussian(rho=bad),
        lambda: Gaussian(epsilon=bad, delta=1e-6),
        lambda: Gaussian(epsilon=1.0, delta=bad),
        lambda: Choose(candidates=(SCORE,), epsilon=bad),
        lambda: AboveThreshold(epsilon=bad),
        lambda: Sample(rate=bad, epsilon=1.0),
        lambda: Sample(rate=0.5, epsilon=bad),
    ):
        with pytest.raises(QueryError, match=r"must|lies|are rows"):
            make()
    assert CALLED == []


def test_a_subclass_of_text_is_refused_and_never_called():
    CALLED.clear()
    for make in (
        lambda: Counts((EVIL_TEXT,)),
        lambda: Tables(((EVIL_TEXT,),)),
        lambda: Contrasts(((EVIL_TEXT,),)),
        lambda: Moments((EVIL_TEXT,)),
        lambda: Tau(EVIL_TEXT, "b"),
        lambda: Tau("a", EVIL_TEXT),
        lambda: KendallP("a", "b", (EVIL_TEXT,)),
        lambda: Score(Tau("a", "b"), 1, EVIL_TEXT),
    ):
        with pytest.raises(QueryError, match=r"named by text|side must be"):
            make()
    assert CALLED == []


def test_a_subclass_of_a_tuple_becomes_a_tuple():
    odd = watched(tuple)
    value = Contrasts(odd((odd(("a",)), odd(("b",)))), odd((1, 2)))
    for part in (value.sets, *value.sets, value.weights, Choose(candidates=odd((SCORE,)), epsilon=1).candidates):
        assert type(part) is tuple


def test_subclasses_of_requests_are_no_parts_of_a_request():
    class MyScore(Score):
        pass

    class MyNoise(Laplace):
        pass

    with pytest.raises(QueryError, match="candidates are scores"):
        Choose(candidates=(MyScore(Tau("a", "b"), 1, "above"),), epsilon=1)
    with pytest.raises(QueryError, match="needs noise"):
        Release(Counts(("a",)), MyNoise(epsilon=1))


SCALARS = [np.float64(0.5), np.float32(0.5), np.float16(0.5), Fraction(1, 2)]


@pytest.mark.parametrize("half", SCALARS, ids=lambda x: type(x).__name__)
def test_scalars_become_plain_numbers(half):
    made = [
        Contrasts((("a",),), (half,)).weights[0],
        Moments(("a",), clip=half).clip,
        Gradient(("a", "b"), ((0, half), (0, 0)), half).weights[0][1],
        GradientNorms(("a", "b"), np.zeros((2, 2)), np.array([0.5])).edges[0],
        Score(Tau("a", "b"), half, "above").threshold,
        Laplace(epsilon=half).epsilon,
        Gaussian(epsilon=half, delta=half).delta,
        Choose(candidates=(SCORE,), epsilon=half).epsilon,
        AboveThreshold(epsilon=half).epsilon,
        Sample(rate=half, epsilon=1).rate,
    ]
    assert all(type(value) in (float, Fraction) and value == 0.5 for value in made)
    whole = [AboveThreshold(epsilon=kind(1)).epsilon for kind in (np.int8, np.int32, np.int64, np.uint8, np.uint64)]
    assert all(type(value) is int and value == 1 for value in whole)
    name = Tau(np.str_("a"), np.array(["b"])[0], np.array(["c"]))
    assert all(type(n) is str for n in (name.x, name.y, *name.given))
    assert type(Score(name, 1, np.str_("above")).side) is str


def test_a_fraction_is_copied_and_kept_short():
    mine = Fraction(1, 2)
    gate = AboveThreshold(epsilon=mine)
    mine._numerator = EVIL_INT
    assert gate.epsilon == Fraction(1, 2)
    for bad in (mine, Fraction(10**2000 + 1, 10**2000)):
        with pytest.raises(QueryError, match="short Fraction"):
            AboveThreshold(epsilon=bad)


class Unprintable:
    def __repr__(self):
        raise RuntimeError


ODD = [
    10**5000, -(10**400), Fraction(1, 10**400), 5e-324, 1e308, np.float64("nan"), np.int64(3), np.bool_(True),
    np.longdouble(1), np.array(5.0), np.zeros((2, 2)), np.zeros(3), np.str_("a"), EVIL_FLOAT, EVIL_TEXT,
    Unprintable(), object(), float, Tau, len, *VALUES,
]  # fmt: skip


def odd(index):
    """Some of these cannot be printed, which hypothesis would do."""
    return ODD[index]


garbage = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.fractions(), st.decimals(), st.complex_numbers(),
        st.text(max_size=3), st.binary(max_size=3), st.sampled_from(["a", "b", "c", "above", "below"]),
        st.integers(0, len(ODD) - 1).map(odd),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.tuples(inner, inner), st.dictionaries(st.text(max_size=1), inner, max_size=2)
    ),
    max_leaves=6,
)  # fmt: skip


@pytest.mark.slow(
    but=["Counts", "Histograms", "Choose", "Quantile", "Moments", "Contrasts", "AboveThreshold", "Gaussian"]
)
@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ANSWERS], ids=lambda k: k.__name__)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_garbage_is_refused_in_a_sentence_or_makes_a_plain_request(kind, data):
    right = next(v for v in VALUES if type(v) is kind)
    fields = {f.name: getattr(right, f.name) for f in dataclasses.fields(kind)}
    for name in data.draw(st.sets(st.sampled_from(sorted(fields)))) if fields else ():
        fields[name] = data.draw(garbage, label=name)
    try:
        made = kind(**fields)
    except QueryError:
        return
    for part in walk(made):
        assert type(part) in {*KINDS, *PLAIN, tuple}
    assert hash(made) == hash(dataclasses.replace(made))


def test_answers_of_one_part_and_of_several():
    one = Answer((np.array(3.5),), (0.5,))
    assert float(one) == 3.5
    assert one.value == 3.5
    assert one.scale == 0.5
    several = Answer((np.zeros(2), np.zeros(3)), (1.0, 2.0))
    for ask in (lambda: several.value, lambda: several.scale):
        with pytest.raises(ValueError, match="too many values"):
            ask()
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.parts = ()
