"""Queries and answers as bytes, and back, for a ledger and for a connection between processes.

The decoder is closed: it makes the types of `KNOWN` and no others, each of which checks its own fields, and it refuses
everything else with a `DecodeError`, whatever the bytes are. A query is written as JSON, `{"Counts": [["a", "b"]]}`:
the name of its class and its fields in their order. Answers follow their queries as numbers of 8 bytes, so that
the bytes of an answer are as many whatever its values are (docs/proofs/answers.md).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import fields
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from dpcurate import _validation
from dpcurate._messages import shown
from dpcurate._typing import FloatArray
from dpcurate.errors import DecodeError, QueryError
from dpcurate.queries.answer import Answer
from dpcurate.queries.query import (
    AboveThreshold,
    Choose,
    Exact,
    Gate,
    Gaussian,
    GaussianShare,
    Laplace,
    Quantile,
    Query,
    Release,
    Sample,
    Score,
)
from dpcurate.queries.statistics import (
    CELLS,
    Contrasts,
    Counts,
    FeatureMap,
    FeatureMoments,
    FeatureNorms,
    Gradient,
    GradientNorms,
    Histograms,
    KendallP,
    Means,
    Moments,
    Tables,
    Tau,
)

KNOWN: dict[str, type[Any]] = {
    one.__name__: one
    for one in (
        *(Counts, Tables, Contrasts, Means, Moments, Gradient, GradientNorms, Tau, KendallP),
        *(Histograms, FeatureMap, FeatureMoments, FeatureNorms),
        *(Laplace, Gaussian, GaussianShare, Exact),
        *(Release, Score, Choose, Quantile, AboveThreshold, Sample),
    )
}
"""Every type that a query may hold besides text, numbers, truth values, None, tuples and fractions."""

MOST_BYTES = 1 << 26
"""Bytes of the JSON; a connection may ask for less."""
LONGEST_TEXT = 1000
"""Characters of a name."""
MOST_DIGITS = math.ceil(_validation.LONGEST * math.log10(2))
"""Digits of a number: those of the longest fraction that a query may hold."""
DEEPEST_NESTING = 12
"""Lists and objects in each other; a release of features takes nine."""
MOST_DIMENSIONS = 32
MOST_NUMBERS = 90_000_000
"""Numbers in the stored answers of one list of queries. With their JSON they stay below the 1,000,000,000 bytes that
SQLite holds in one value."""
SMALLEST_SCALE, LARGEST_SCALE = 1e-200, 1e100
"""Bounds on the noise of an answer. A release outside them is refused before it is charged (private/preview.py)."""
LARGEST_NUMBER = 1e120
"""Bound on a released number: rows and features are bounded far below it, and noise is at most a few of its scales."""
_SCALE_BYTES = 25
"""The longest number of JSON, and a comma."""
_SIZE = 8
"""Bytes of a number, and of the length of the JSON before them."""
_FOREIGN = "these bytes are not queries or answers of dpcurate"

Shapes = Sequence[tuple[int, ...]]
Asked = Query[Any] | Gate[Any] | Score


# --- queries ----------------------------------------------------------------------------------------------


def encode_queries(queries: Sequence[Asked]) -> bytes:
    """Queries, gates or scores as JSON; what could not be decoded again is refused."""
    return _json([to_plain(query) for query in queries])


def decode_queries(body: bytes, *, most_bytes: int = MOST_BYTES) -> list[Asked]:
    """The queries, gates or scores that were encoded, made and checked by their own classes."""
    return from_plain(parsed(body, most_bytes))


def from_plain(given: Any) -> list[Asked]:
    """The same of what `to_plain` has made of each, read from JSON."""
    return [_asked(one) for one in _list_of(given)]


def name(queries: Sequence[Query[Any]], schema: str, neighbours: str) -> str:
    """What tells a list of queries from every other: all of them, digit for digit, under which schema and relation."""
    return hashlib.sha256(_json([schema, neighbours, [to_plain(query) for query in queries]])).hexdigest()


def to_plain(value: object) -> Any:
    """A query as lists, text and numbers that JSON gives back digit for digit."""
    if type(value) in KNOWN.values():
        return {type(value).__name__: [to_plain(getattr(value, f.name)) for f in fields(value)]}  # type: ignore[arg-type]
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, str):
        return _text(value, QueryError)
    if isinstance(value, Fraction):
        return {"Fraction": [value.numerator, value.denominator]}
    if value is None or isinstance(value, (bool, int, float)):
        return value
    raise QueryError(f"{type(value).__name__} cannot be written as data: ask one of dpcurate.queries itself")


def _json(value: object) -> bytes:
    text = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    if len(text) > MOST_BYTES:
        raise QueryError(f"these queries take {len(text):,} bytes, above the limit of {MOST_BYTES:,}: ask for fewer")
    return text


def _asked(given: Any) -> Asked:
    query = _made(given, 0)
    if not isinstance(query, Query | Gate | Score):
        _refuse(f"{shown(query)} is not a query")
    return query


def _made(given: Any, depth: int) -> Any:
    """The value that lists, text and numbers stand for."""
    if depth > DEEPEST_NESTING:
        _refuse("they are nested too deeply")
    if isinstance(given, list):
        return tuple(_made(item, depth + 1) for item in given)
    if isinstance(given, str):
        return _text(given, DecodeError)
    if isinstance(given, dict):
        if len(given) != 1:
            _refuse(f"an object names one type, got {len(given)} names")
        ((kind, parts),) = given.items()
        return _of_kind(kind, [_made(part, depth + 1) for part in _list_of(parts)])
    return given


def _of_kind(kind: str, parts: list[Any]) -> Any:
    if kind == "Fraction":
        return _fraction(parts)
    known = KNOWN.get(kind)
    if known is None:
        _refuse(f"{shown(kind)} is not a known type")
    names = [field.name for field in fields(known)]
    if len(parts) != len(names):
        _refuse(f"{kind} has {len(names)} fields, got {len(parts)}")
    try:
        return known(**dict(zip(names, parts, strict=True)))
    except QueryError as error:
        raise DecodeError(f"{_FOREIGN}: {error}") from None


def _fraction(parts: list[Any]) -> Fraction:
    if len(parts) != 2 or any(type(part) is not int for part in parts) or parts[1] <= 0:
        _refuse("a fraction has two whole numbers, the second above 0")
    return Fraction(*parts)


# --- answers ----------------------------------------------------------------------------------------------


def check_storable(shapes: Sequence[Shapes | None]) -> None:
    """Refuse a list of queries whose answers could not be stored or decoded again; None is an answer of one number.

    Their JSON is at most that of the queries, which is within MOST_BYTES, and as much again for shapes and scales.
    """
    parts = sum(len(one) for one in shapes if one is not None)
    numbers = sum(1 if one is None else sum(map(math.prod, one)) for one in shapes)
    if numbers > MOST_NUMBERS or _described(shapes) > MOST_BYTES:
        raise QueryError(
            f"the answers to these queries are {numbers:,} numbers in {parts:,} parts, more than a ledger stores at "
            f"once (at most {MOST_NUMBERS:,} numbers): ask for fewer at a time, or declare fewer levels or bins"
        )


def _described(shapes: Sequence[Shapes | None]) -> int:
    """Bytes of JSON, at most, for shapes and scales and the names of fields."""
    parts = sum(len(one) for one in shapes if one is not None)
    return len(json.dumps(shapes, separators=(",", ":"))) + _SCALE_BYTES * parts + 5 * len(shapes) + 64


def encode(queries: Sequence[Query[Any]], answers: Sequence[Answer | int]) -> bytes:
    """Queries and their answers: public facts as JSON, then the numbers."""
    shapes = [[list(part.shape) for part in a.parts] if isinstance(a, Answer) else None for a in answers]
    scales = [list(a.scales) if isinstance(a, Answer) else None for a in answers]
    facts = {"queries": [to_plain(q) for q in queries], "shapes": shapes, "scales": scales}
    head = json.dumps(facts, separators=(",", ":")).encode()
    numbers = [np.asarray(part, dtype="<f8").tobytes() for answer in answers for part in _parts(answer)]
    return b"".join([len(head).to_bytes(_SIZE, "little"), head, *numbers])


def _parts(answer: Answer | int) -> tuple[FloatArray, ...]:
    return answer.parts if isinstance(answer, Answer) else (np.asarray(float(answer)),)


def decode(body: bytes, *, most_bytes: int = 2 * MOST_BYTES) -> list[tuple[Query[Any], Answer | int]]:
    """Queries with their answers, as they were encoded."""
    end = _SIZE + int.from_bytes(body[:_SIZE], "little")
    if len(body) < end or (len(body) - end) % _SIZE:
        _refuse("they are too few")
    head = parsed(body[_SIZE:end], most_bytes)
    if not isinstance(head, dict) or sorted(head) != ["queries", "scales", "shapes"]:
        _refuse("queries, shapes and scales are missing")
    asked, shapes, scales = (_list_of(head[name]) for name in ("queries", "shapes", "scales"))
    if not len(asked) == len(shapes) == len(scales):
        _refuse("queries and answers are not as many")
    numbers = _Numbers(np.frombuffer(body, dtype="<f8", offset=end))
    found = [_answered(*one, numbers) for one in zip(asked, shapes, scales, strict=True)]
    if numbers.left:
        _refuse("they are too many")
    return found


def _answered(asked: Any, shapes: Any, scales: Any, numbers: _Numbers) -> tuple[Query[Any], Answer | int]:
    query = _asked(asked)
    if isinstance(query, Release):
        return query, _answer(_list_of(shapes), _list_of(scales), numbers)
    if not isinstance(query, Choose | Quantile) or shapes is not None or scales is not None:
        _refuse(f"{type(query).__name__} has no such answer")
    index, choices = float(numbers.take([])), _choices(query)
    if not index.is_integer() or not 0 <= index < choices:
        _refuse(f"{type(query).__name__} chooses one of {choices:,}, got {index:g}")
    return query, int(index)


def _choices(query: Choose | Quantile) -> int:
    if isinstance(query, Choose):
        return len(query.candidates) + query.or_none
    return max(len(query.cuts) - 1, 0) or CELLS


def _answer(shapes: list[Any], scales: list[Any], numbers: _Numbers) -> Answer:
    if not shapes or len(shapes) != len(scales):
        _refuse("an answer has as many scales as parts")
    for scale in scales:
        if type(scale) is not float or not (scale == 0 or SMALLEST_SCALE <= scale <= LARGEST_SCALE):
            _refuse(f"the noise of an answer cannot be {shown(scale)}")
    return Answer(tuple(numbers.take(_list_of(shape)) for shape in shapes), tuple(scales))


def answer_to_plain(answer: Answer | int) -> Any:
    """An answer for JSON: a whole number, or the numbers of all parts in their order, with shapes and noise."""
    if not isinstance(answer, Answer):
        return answer
    return {
        "shapes": [list(part.shape) for part in answer.parts],
        "scales": list(map(float, answer.scales)),
        "numbers": [number for part in answer.parts for number in np.asarray(part, dtype=float).ravel().tolist()],
    }


def answer_from_plain(query: Query[Any], given: Any) -> Answer | int:
    """The answer to a query, from the lists and numbers of `answer_to_plain`."""
    if not isinstance(query, Release):
        if not isinstance(query, Choose | Quantile) or type(given) is not int or not 0 <= given < _choices(query):
            _refuse(f"{shown(given)} is no answer to {type(query).__name__}")
        return given
    if not isinstance(given, dict) or sorted(given) != ["numbers", "scales", "shapes"]:
        _refuse("numbers, shapes and scales are missing")
    shapes, scales, listed = (_list_of(given[name]) for name in ("shapes", "scales", "numbers"))
    if any(type(number) is not float for number in listed):
        _refuse("a released number is written with its decimal point")
    numbers = _Numbers(np.array(listed, dtype=np.float64))
    answer = _answer(shapes, scales, numbers)
    if numbers.left:
        _refuse("they are too many")
    return answer


class _Numbers:
    """The numbers of a body, taken one part at a time."""

    def __init__(self, numbers: FloatArray) -> None:
        self._rest = numbers

    @property
    def left(self) -> int:
        return len(self._rest)

    def take(self, shape: list[Any]) -> FloatArray:
        if len(shape) > MOST_DIMENSIONS or any(type(n) is not int or not 0 <= n <= self.left for n in shape):
            _refuse(f"an answer cannot have the shape {shown(shape)}")
        size = math.prod(shape)
        if size > self.left:
            _refuse("they are too few")
        part, self._rest = self._rest[:size], self._rest[size:]
        if not (np.abs(part) <= LARGEST_NUMBER).all():  # which NaN is not
            _refuse(f"a released number is finite and at most {LARGEST_NUMBER:g} in size")
        return np.array(part.reshape(shape), dtype=np.float64)


# --- JSON within limits -----------------------------------------------------------------------------------


def parsed(text: bytes, most_bytes: int) -> Any:
    """What a text of JSON says, within limits of bytes, digits and nesting; all else is refused."""
    if len(text) > most_bytes:
        _refuse(f"{len(text):,} bytes are above the limit of {most_bytes:,}")
    try:
        return json.loads(
            text.decode(),
            parse_int=_whole,
            parse_float=_decimal,
            parse_constant=lambda name: _refuse(f"{name} is not a number"),
            object_pairs_hook=_object,
        )
    except (ValueError, RecursionError) as error:
        why = "they are nested too deeply" if isinstance(error, RecursionError) else "they are not JSON"
        raise DecodeError(f"{_FOREIGN}: {why}") from None


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS + 1:  # a sign
        _refuse(f"a number has at most {MOST_DIGITS:,} digits")
    return int(digits)


def _decimal(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        _refuse("a number is finite")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        _refuse("an object holds one name twice")
    return found


def _list_of(given: Any) -> list[Any]:
    if not isinstance(given, list):
        _refuse(f"{shown(given)} is not a list")
    return given


def _text(value: str, error: type[QueryError] | type[DecodeError]) -> str:
    """A text that every side can hold and write as UTF-8."""
    if len(value) > LONGEST_TEXT:
        raise error(f"a name may have {LONGEST_TEXT} characters, got {len(value):,}: {shown(value)}")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise error(f"a name must be text that can be written as UTF-8, got {shown(value)}")
    return value


def _refuse(why: str) -> NoReturn:
    raise DecodeError(f"{_FOREIGN}: {why}")
