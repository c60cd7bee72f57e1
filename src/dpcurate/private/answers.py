"""Queries by name, and answers as bytes: so that what was released once can be found again.

Proof: docs/proofs/answers.md. The bytes of an answer are as many whatever its values are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpcurate import queries as known
from dpcurate.arrays import FloatArray
from dpcurate.queries import Answer, Query

_SIZE = 8
"""Bytes of a number, and of the length of the head."""


def name(queries: Sequence[Query[Any]], schema: str, neighbours: str) -> str:
    """What tells a list of queries from every other: all of them, number by number, under which schema and relation."""
    text = json.dumps([schema, neighbours, [_plain(query) for query in queries]], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: object) -> Any:
    """A query as lists, text and numbers that JSON gives back digit for digit."""
    if is_dataclass(value) and not isinstance(value, type):
        return {type(value).__name__: [_plain(getattr(value, f.name)) for f in fields(value)]}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return {"Fraction": [value.numerator, value.denominator]} if isinstance(value, Fraction) else value


def _query(plain: Any) -> Any:
    """The query again, made anew and so checked by its own class."""
    if isinstance(plain, dict):
        ((kind, parts),) = plain.items()
        if kind == "Fraction":
            return Fraction(*parts)
        make = getattr(known, kind)
        return make(**{f.name: _query(part) for f, part in zip(fields(make), parts, strict=True)})
    return tuple(map(_query, plain)) if isinstance(plain, list) else plain


def encode(queries: Sequence[Query[Any]], answers: Sequence[Answer | int]) -> bytes:
    """Queries and their answers: a head of public facts, then numbers of 8 bytes each."""
    shapes = [[list(part.shape) for part in a.parts] if isinstance(a, Answer) else None for a in answers]
    scales = [list(a.scales) if isinstance(a, Answer) else None for a in answers]
    facts = {"queries": [_plain(q) for q in queries], "shapes": shapes, "scales": scales}
    head = json.dumps(facts, separators=(",", ":")).encode()
    numbers = [np.asarray(part, dtype="<f8").tobytes() for answer in answers for part in _parts(answer)]
    return b"".join([len(head).to_bytes(_SIZE, "little"), head, *numbers])


def _parts(answer: Answer | int) -> tuple[FloatArray, ...]:
    return answer.parts if isinstance(answer, Answer) else (np.asarray(float(answer)),)


def decode(body: bytes) -> list[tuple[Query[Any], Answer | int]]:
    """Queries with their answers, as they were encoded."""
    head, numbers = _split(body)
    asked = map(_query, head["queries"])
    return [
        (query, _answer(numbers, shapes, scales))
        for query, shapes, scales in zip(asked, head["shapes"], head["scales"], strict=True)
    ]


def answers(body: bytes) -> list[Answer | int]:
    """The answers alone."""
    head, numbers = _split(body)
    return [_answer(numbers, *one) for one in zip(head["shapes"], head["scales"], strict=True)]


def _split(body: bytes) -> tuple[dict[str, Any], _Numbers]:
    end = _SIZE + int.from_bytes(body[:_SIZE], "little")
    return json.loads(body[_SIZE:end]), _Numbers(body, end)


class _Numbers:
    """The numbers of a body, taken one part at a time."""

    def __init__(self, body: bytes, start: int) -> None:
        self._left = np.frombuffer(body, dtype="<f8", offset=start)

    def take(self, shape: list[int]) -> FloatArray:
        size = int(np.prod(shape, dtype=np.int64))
        part, self._left = self._left[:size], self._left[size:]
        return np.array(part.reshape(shape), dtype=np.float64)


def _answer(numbers: _Numbers, shapes: list[list[int]] | None, scales: list[float] | None) -> Answer | int:
    if shapes is None or scales is None:
        return int(numbers.take([]))
    return Answer(tuple(numbers.take(shape) for shape in shapes), tuple(scales))
