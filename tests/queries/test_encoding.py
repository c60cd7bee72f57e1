"""Queries and answers as bytes: every kind comes back as it was, and whatever else is refused with one error."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcurate import queries
from dpcurate.errors import DecodeError, QueryError
from dpcurate.private.statistics.registry import PROVED
from dpcurate.queries import (
    AboveThreshold,
    Answer,
    Choose,
    Contrasts,
    Counts,
    Exact,
    FeatureMap,
    FeatureMoments,
    FeatureNorms,
    Gate,
    Gaussian,
    GaussianShare,
    Gradient,
    GradientNorms,
    Histograms,
    KendallP,
    Laplace,
    Means,
    Moments,
    Quantile,
    Query,
    Release,
    Sample,
    Score,
    Tables,
    Tau,
    encoding,
)  # fmt: skip
from dpcurate.queries.encoding import KNOWN, MOST_DIGITS, decode, decode_queries, encode, encode_queries

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
COLUMNS = st.lists(NAMES, min_size=2, max_size=4, unique=True).map(tuple)
SETS = st.lists(COLUMNS, min_size=1, max_size=3, unique_by=frozenset).map(tuple)
POSITIVE = st.one_of(
    st.floats(1e-9, 1e9),
    st.integers(1, 1000),
    st.fractions(Fraction(1, 10**6), 100),
    st.just(Fraction(3**800 + 1, 3**800)),
)
CLIPS = st.floats(1e-9, 1e9)
EDGES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=3, unique=True).map(sorted).map(tuple)
VECTORS = st.integers(1, 3).flatmap(lambda k: st.lists(st.tuples(*[st.integers(-9, 9)] * k), min_size=1, max_size=3))
MAPS = st.builds(FeatureMap, NAMES, VECTORS.map(tuple))
FEATURES = st.lists(MAPS, min_size=1, max_size=2, unique_by=lambda m: m.column).map(tuple)
SQUARE = st.tuples(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), st.tuples(st.floats(-9, 9), st.floats(-9, 9)))
PAIR = st.lists(NAMES, min_size=2, max_size=2, unique=True).map(tuple)
WHOLE: dict[type, st.SearchStrategy[Any]] = {
    Counts: st.builds(Counts, COLUMNS),
    Tables: st.builds(Tables, SETS),
    Contrasts: SETS.flatmap(lambda s: st.builds(Contrasts, st.just(s), st.tuples(*[POSITIVE] * len(s)))),
    Means: st.builds(Means, COLUMNS),
    Moments: st.builds(Moments, COLUMNS, st.none() | CLIPS),
    Gradient: st.builds(Gradient, PAIR, SQUARE, CLIPS),
    GradientNorms: st.builds(GradientNorms, PAIR, SQUARE, EDGES),
    Histograms: st.builds(Histograms, COLUMNS, st.integers(1, 4)),
    FeatureMap: MAPS,
    FeatureMoments: st.builds(FeatureMoments, FEATURES, CLIPS, POSITIVE),
    FeatureNorms: st.builds(FeatureNorms, FEATURES, EDGES),
    Tau: COLUMNS.map(lambda c: Tau(c[0], c[1], c[2:])),
    KendallP: COLUMNS.map(lambda c: KendallP(c[0], c[1], c[2:])),
    Laplace: st.builds(Laplace, epsilon=POSITIVE) | st.builds(Laplace, scale=POSITIVE),
    Gaussian: st.builds(Gaussian, rho=POSITIVE) | st.builds(Gaussian, epsilon=POSITIVE, delta=st.floats(1e-12, 0.5)),
    GaussianShare: st.builds(
        GaussianShare, rho=POSITIVE, sites=st.integers(3, 9), colluding=st.just(1), sites_per_person=st.integers(1, 3)
    ),
    Exact: st.just(Exact()),
}
STATISTICS, NOISE = (
    st.one_of(*(WHOLE[kind] for kind in PROVED)),
    st.one_of(*(WHOLE[k] for k in get_args(queries.Noise))),
)
WHOLE[Release] = st.builds(Release, STATISTICS, NOISE)
WHOLE[Score] = st.builds(Score, WHOLE[Tau] | WHOLE[KendallP], st.floats(-9, 9), st.sampled_from(["above", "below"]))
WHOLE[Choose] = st.builds(
    Choose,
    candidates=st.lists(WHOLE[Score], min_size=1, max_size=3).map(tuple),
    epsilon=POSITIVE,
    or_none=st.booleans(),
)
WHOLE[Quantile] = st.builds(
    Quantile, column=NAMES, probability=st.floats(0.01, 0.99), epsilon=POSITIVE, shift=st.integers(-5, 5),
    cuts=st.sampled_from([(), (0, 9, 4096)]),
)  # fmt: skip
WHOLE[AboveThreshold] = st.builds(AboveThreshold, epsilon=POSITIVE)
WHOLE[Sample] = st.builds(Sample, rate=st.floats(0.01, 1), epsilon=POSITIVE)


def test_the_table_holds_every_query() -> None:
    """A new kind of query, gate, statistic or noise fails here until it can be stored and sent."""
    public = [one for one in vars(queries).values() if isinstance(one, type)]
    asked = {one for one in public if issubclass(one, (Query, Gate)) and one not in (Query, Gate)}
    assert asked | set(PROVED) | set(get_args(queries.Noise)) | {Score, FeatureMap} == set(KNOWN.values())
    assert set(WHOLE) == set(KNOWN.values())


@pytest.mark.parametrize("kind", [k for k in WHOLE if issubclass(k, (Query, Gate, Score))])
def test_queries_come_back_as_they_were(kind: type) -> None:
    @settings(max_examples=30, deadline=None)
    @given(WHOLE[kind])
    def there_and_back(query: Any) -> None:
        assert decode_queries(encode_queries([query])) == [query]

    there_and_back()


@st.composite
def answered(draw: Any) -> tuple[Any, Any]:
    query = draw(WHOLE[Release] | WHOLE[Choose] | WHOLE[Quantile])
    if not isinstance(query, Release):
        return query, 0
    parts = draw(st.lists(st.lists(st.floats(-1e100, 1e100), max_size=3), min_size=1, max_size=3))
    return query, Answer(
        tuple(np.array(part, dtype=float) for part in parts), tuple(0.5 + i for i in range(len(parts)))
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(answered(), max_size=3))
def test_answers_come_back_as_they_were(given: list[tuple[Any, Any]]) -> None:
    back = decode(encode([query for query, _ in given], [answer for _, answer in given]))
    assert [query for query, _ in back] == [query for query, _ in given]
    for (_, before), (_, after) in zip(given, back, strict=True):
        if isinstance(before, int):
            assert after == before
        else:
            assert isinstance(after, Answer)
            assert after.scales == before.scales
            assert all(np.array_equal(a, b) for a, b in zip(after.parts, before.parts, strict=True))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([*KNOWN, "Fraction", "object", "__class__"]), inner, max_size=2)
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(JSON)
def test_any_json_is_queries_or_one_error(data: Any) -> None:
    try:
        made = decode_queries(json.dumps(data).encode())
    except DecodeError:
        return
    assert all(isinstance(one, Query | Gate | Score) for one in made)


EXAMPLES = [
    Release(Contrasts((("a",), ("a", "b")), (0.1, Fraction(1, 3))), Laplace(epsilon=Fraction(1, 3))),
    Release(FeatureMoments((FeatureMap("a", ((1, 2), (3, 4))),), 1.5), Gaussian(rho=1e-9)),
    Choose(candidates=(Score(Tau("a", "b", ("c",)), 1.0, "above"),), epsilon=1.0, or_none=True),
    Quantile(column="a", probability=0.5, epsilon=1.0),
]
PARTS = [Answer((np.arange(2.0), np.ones((2, 2))), (1.0, 2.0)), Answer((np.zeros(4),), (0.5,)), 1, 7]


def mutated(body: bytes, draw: random.Random) -> bytes:
    """A few bytes changed, cut, doubled or put elsewhere."""
    changed = bytearray(body)
    for _ in range(draw.randint(1, 4)):
        at, size = draw.randrange(len(changed) + 1), draw.randint(1, 20)
        piece = changed[at : at + size]
        new = draw.choice([b"", piece * 2, draw.randbytes(size), b"9" * size, b"[" * size, b"-1", b"null", b"NaN"])
        changed[at : at + draw.choice([0, 1, size])] = new
    return bytes(changed)


@pytest.mark.parametrize("seed", range(4))
def test_mutated_bytes_are_decoded_or_refused(seed: int) -> None:
    draw, whole, asked = random.Random(seed), encode(EXAMPLES, PARTS), encode_queries(EXAMPLES)
    refused = 0
    for _ in range(1500):
        try:
            found = decode(mutated(whole, draw))
            assert all(np.isfinite(part).all() for _, a in found if isinstance(a, Answer) for part in a.parts)
            decode_queries(mutated(asked, draw))
        except DecodeError:
            refused += 1
    assert refused > 1000


LONG = "9" * (MOST_DIGITS + 2)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\xff", "not JSON"),
        (b"{}", "not a list"),
        (b"[1]", "not a query"),
        (b"[" * 10**6, "nested too deeply"),
        (b"[" * 50 + b"]" * 50, "nested too deeply"),
        (b'[{"Counts":[["a","a"]]}]', "more than once"),
        (b'[{"Counts":[["a"]]}]', "not a query"),
        (b'[{"Counts":[]}]', "1 fields"),
        (b'[{"Answer":[[],[],null,null]}]', "not a known type"),
        (b'[{"PairStatistic":["a","b",[]]}]', "not a known type"),
        (b'[{"Exact":[],"Exact":[]}]', "one name twice"),
        (b'[{"AboveThreshold":[NaN]}]', "not a number"),
        (b'[{"AboveThreshold":[1e999]}]', "finite"),
        (b'[{"AboveThreshold":[true]}]', "greater than 0"),
        (f'[{{"AboveThreshold":[{LONG}]}}]'.encode(), "digits"),
        (b'[{"AboveThreshold":[{"Fraction":[1,0]}]}]', "above 0"),
        (b'[{"AboveThreshold":[{"Fraction":[1,2.5]}]}]', "whole numbers"),
        (b'[{"Release":[{"Counts":[["' + b"x" * 1001 + b'"]]},{"Exact":[]}]}]', "1000 characters"),
        (b'[{"Release":[{"Counts":[["\\ud800"]]},{"Exact":[]}]}]', "UTF-8"),
    ],
)
def test_what_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(DecodeError, match=why):
        decode_queries(body)


def test_a_connection_may_ask_for_less() -> None:
    body = encode_queries(EXAMPLES)
    assert decode_queries(body, most_bytes=len(body)) == EXAMPLES
    with pytest.raises(DecodeError, match="above the limit"):
        decode_queries(body, most_bytes=len(body) - 1)


def test_what_could_not_be_decoded_is_not_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session finds out before it charges: the name of a request is made of the same bytes."""
    for names in (("x" * 1001,), ("\ud800",)):
        with pytest.raises(QueryError):
            encoding.name([Release(Counts(names), Exact())], "schema", "replace")
    monkeypatch.setattr(encoding, "MOST_BYTES", 100)
    with pytest.raises(QueryError, match="ask for fewer"):
        encoding.name(EXAMPLES, "schema", "replace")


def test_many_repeated_names_are_refused_at_once() -> None:
    names = [f"c{i}" for i in range(20_000)] * 2
    with pytest.raises(DecodeError, match="more than once") as refused:
        decode_queries(json.dumps([{"Release": [{"Counts": [names]}, {"Exact": []}]}]).encode())
    assert len(str(refused.value)) < 1000
