"""The door's vocabulary: frozen, hashable values without callables, refused with a reason when wrong."""

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

from dpcurate import requests
from dpcurate.errors import RequestError
from dpcurate.requests import (
    AboveThreshold,
    Answer,
    Choose,
    Contrasts,
    Counts,
    Exact,
    Gaussian,
    Gradient,
    GradientNorms,
    KendallP,
    Laplace,
    Moments,
    PublishedFlips,
    PublishedKendallP,
    Release,
    Sample,
    Score,
    Tables,
    Tau,
)

SCORE = Score(Tau("a", "b"), 3.0, "above")
VALUES = [
    Counts(("a", "b")),
    Counts(()),
    Tables(((), ("a",), ("b", "a"))),
    Contrasts(((), ("a",), ("a", "b")), (0.5, 1, Fraction(1, 3))),
    Moments(("a", "x")),
    Moments(("a", "x"), clip=0.5),
    Gradient(("a", "x"), ((0.0, 0.5), (0.0, 0.0)), clip=1),
    GradientNorms(("a", "x"), ((0.0, 0.5), (0.0, 0.0)), (0.5, 1.0)),
    Tau("a", "b", ("c",)),
    KendallP("a", "b"),
    PublishedKendallP("a", "b", bound="priv-pc"),
    PublishedFlips("a", "b"),
    Laplace(epsilon=0.1),
    Laplace(scale=3),
    Gaussian(sigma=2.0),
    Gaussian(rho=Fraction(1, 7)),
    Gaussian(epsilon=1.0, delta=1e-6),
    Exact(),
    Release(Counts(("a",)), Exact()),
    SCORE,
    Choose(candidates=(SCORE,), epsilon=1.0, or_none=True),
    AboveThreshold(epsilon=1.0),
    Sample(rate=0.1, epsilon=1.0),
]
KINDS = [
    kind
    for kind in vars(requests).values()
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__ == requests.__name__
]


def test_every_kind_of_request_is_tried_here():
    assert {type(v) for v in VALUES} == set(KINDS) - {Answer}


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
    """Whether a field's type is built from text, numbers, tuples and other requests alone."""
    if hint in PLAIN or hint in KINDS or hint is Ellipsis:
        return True
    if typing.get_origin(hint) is typing.Literal:
        return all(type(x) in PLAIN for x in typing.get_args(hint))
    return typing.get_origin(hint) in (tuple, typing.Union, types.UnionType) and all(map(plain, typing.get_args(hint)))


@pytest.mark.parametrize("kind", [k for k in KINDS if k is not Answer], ids=lambda k: k.__name__)
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
        lambda: Gaussian(epsilon=bad, delta=1e-6),
    ]
    if bad is not None:
        makers.append(lambda: Moments(("a",), clip=bad))
    for make in makers:
        with pytest.raises(RequestError, match=r"finite number greater than 0|give exactly one|between 1e-9 and 1e9"):
            make()


WRONG = [
    (lambda: Counts(("a", "b", "a")), r"column\(s\) 'a' stand more than once"),
    (lambda: Counts((1,)), "named by text"),
    (lambda: Tau("a", "a"), "'a' stand more than once"),
    (lambda: Tau("a", "b", ("a",)), "'a' stand more than once"),
    (lambda: KendallP("a", "b", ("c", "c")), "'c' stand more than once"),
    (lambda: Tables(()), "at least one set"),
    (lambda: Tables(("ab", "c")), "columns come as a tuple of names"),
    (lambda: Tables("ab"), "sets of columns come as a tuple"),
    (lambda: Tables(5), "sets of columns come as a tuple"),
    (lambda: Tables((("a", "a"),)), "stand more than once in one"),
    (lambda: Tables(((1,),)), "named by text"),
    (lambda: Tables((("a", "b"), ("b", "a"))), "stands more than once; ask for it once"),
    (lambda: Contrasts(()), "at least one set"),
    (lambda: Contrasts((("a", "a"),)), "stand more than once"),
    (lambda: Contrasts((("a", "b"), ("b", "a"))), "ask for it once with a larger weight"),
    (lambda: Contrasts((("a",), ("b",)), (1.0,)), "2 sets need as many weights, got 1"),
    (lambda: Moments(()), "at least one column"),
    (lambda: Moments(("a", "a")), "stand more than once"),
    (lambda: Gradient(("a", "b"), ((0.0,),), 1.0), "needs a 2 x 2 matrix"),
    (lambda: Gradient(("a", "b"), ((0.0, 0.0), (0.0,)), 1.0), "needs a 2 x 2 matrix"),
    (lambda: Gradient(("a", "b"), ((math.nan, 0), (0, 0)), 1.0), "finite and at most a million"),
    (lambda: Gradient(("a", "b"), ((1e7, 0), (0, 0)), 1.0), "finite and at most a million"),
    (lambda: GradientNorms(("a", "b"), ((0, 0), (0, 0)), ()), "edges must be rising"),
    (lambda: GradientNorms(("a", "b"), ((0, 0), (0, 0)), (2.0, 1.0)), "edges must be rising"),
    (lambda: GradientNorms(("a", "b"), ((0, 0),), (1.0,)), "needs a 2 x 2 matrix"),
    (lambda: Gradient(("a", "a"), ((0, 0), (0, 0)), 1.0), "stand more than once"),
    (lambda: PublishedKendallP("a", "b", bound="mine"), "bound must be 'priv-pc', 'curate-printed' or 'curate-code'"),
    (lambda: PublishedKendallP("a", "a"), "stand more than once"),
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
    with pytest.raises(RequestError, match=says):
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
    with pytest.raises(RequestError):
        make()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=3), max_size=5))
def test_counts_take_any_different_names(names):
    if len(set(names)) == len(names):
        assert Counts(tuple(names)).columns == tuple(names)
    else:
        with pytest.raises(RequestError):
            Counts(tuple(names))


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
