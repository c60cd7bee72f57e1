"""Numbers that several statistics take, by which rows are shrunk or told apart."""

from __future__ import annotations

from dpcurate import _validation
from dpcurate._messages import shown
from dpcurate._validation import Number
from dpcurate.errors import QueryError


def clip_of(value: object) -> Number:
    """The norm that rows are shrunk to, or a refusal."""
    clip = _validation.number(value)
    if clip is None or not 1e-9 <= clip <= 1e9:  # squares of a row's entries must not underflow
        raise QueryError(f"clip must be a number between 1e-9 and 1e9, got {shown(value)}")
    return clip


def edges_of(given: object) -> tuple[float, ...]:
    """Rising numbers above 0, or a refusal."""
    numbers = [
        _validation.between(0, e, _validation.HUGE)
        for e in _validation.listed(given, "edges must be rising numbers above 0")
    ]
    edges = tuple(0.0 if e is None else float(e) for e in numbers)
    if not edges or min(edges) <= 0 or list(edges) != sorted(set(edges)):
        raise QueryError(f"edges must be rising numbers above 0, got {shown(given)}")
    return edges
