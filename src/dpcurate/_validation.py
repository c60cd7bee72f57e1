"""Checks of values from the analyst's side: taken by their exact type, or refused.

A subclass of a number, of text or of a tuple may hold the analyst's code, which a comparison or a hash
would then run inside the session. So a query keeps Python's own types and nothing else; NumPy's scalars
are turned into them here, when the query is made.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np

from dpcurate._messages import shown
from dpcurate.errors import QueryError

Number = int | float | Fraction
TINY, HUGE = 1e-100, 1e100
"""Numbers outside these would lose their meaning in floating point."""
LONGEST = 4096
"""Bits of a fraction's numerator and denominator: longer ones would only make the session slow."""
MOST_NAMED = 5
"""Names in one message."""
_SCALARS = (
    *(np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64),
    *(np.uint8, np.uint16, np.uint32, np.uint64),
)


def keep(query: object, **values: object) -> None:
    """Put checked values in place of those given, once, while the query is made."""
    for name, value in values.items():
        object.__setattr__(query, name, value)


def number(value: object) -> Number | None:
    """An int, a float or a fraction as it is, a NumPy scalar as one of them; None for all else, subclasses included."""
    kind = type(value)
    if kind is int or kind is float:
        return value  # type: ignore[return-value]
    if kind is Fraction:
        return _fraction(value)  # type: ignore[arg-type]
    if any(kind is scalar for scalar in _SCALARS):
        return value.item()  # type: ignore[attr-defined, no-any-return]
    return None


def _fraction(value: Fraction) -> Fraction | None:
    """A copy of its own: the analyst could write into the other."""
    top, bottom = value.numerator, value.denominator
    if type(top) is not int or type(bottom) is not int or bottom <= 0:
        return None
    return Fraction(top, bottom) if max(top.bit_length(), bottom.bit_length()) <= LONGEST else None


def between(low: float, value: object, high: float) -> Number | None:
    """The number, if it is one and lies strictly between two others."""
    plain = number(value)
    return plain if plain is not None and low < plain < high else None


def positive(name: str, value: object) -> Number:
    """A finite number above 0, or a refusal."""
    plain = between(TINY, value, HUGE)
    if plain is None:
        raise QueryError(
            f"{name} must be a finite number greater than 0 (an int, float, short Fraction or NumPy scalar, "
            f"between {TINY:g} and {HUGE:g}), got {shown(value)}"
        )
    return plain


def listed(value: Any, what: str) -> tuple[Any, ...]:
    """The items of a list, tuple, array or the like, or a refusal; text and bytes are no lists of names."""
    if not isinstance(value, (str, bytes)):
        try:
            return tuple(value)
        except TypeError:
            pass
    raise QueryError(f"{what}, got {shown(value)}")


def text(value: object) -> str | None:
    """Text as it is, NumPy's as Python's; None for all else, subclasses included."""
    if type(value) is np.str_:
        return value.item()
    return value if type(value) is str else None


def names(*given: object) -> tuple[str, ...]:
    """Different names of columns, or a refusal."""
    texts = tuple(name for name in map(text, given) if name is not None)
    if len(texts) < len(given):
        raise QueryError(f"columns are named by text (str itself, not a subclass of it), got {shown(given)}")
    if len(set(texts)) < len(texts):
        repeated = sorted(name for name, times in Counter(texts).items() if times > 1)
        some = ", ".join(map(shown, repeated[:MOST_NAMED]))
        more = f" and {len(repeated) - MOST_NAMED:,} more" if len(repeated) > MOST_NAMED else ""
        raise QueryError(f"one statistic names {some}{more} more than once")
    return texts


def columns(value: object) -> tuple[str, ...]:
    """Different names of columns as a tuple, or a refusal."""
    return names(*listed(value, "columns come as a tuple of names"))


def sets(value: object) -> tuple[tuple[str, ...], ...]:
    """Sets of columns as a tuple of tuples, or a refusal."""
    return tuple(columns(one) for one in listed(value, "sets of columns come as a tuple of tuples of names"))


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise QueryError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")


def check_threshold(threshold: float) -> None:
    if not 0 < threshold < 0.5:
        raise QueryError(f"threshold is a one-sided p-value between 0 and 0.5, got {threshold!r}")
