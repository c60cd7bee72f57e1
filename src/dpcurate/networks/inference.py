"""Exact marginals by variable elimination, for tests and small questions.

Zhang and Poole, "A simple approach to Bayesian network computations", 1994.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from string import ascii_letters

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.errors import DomainTooLarge

Factor = tuple[tuple[str, ...], FloatArray]

MAX_CELLS = 1 << 24
MAX_AXES = 32


def factor(names: tuple[str, ...], sizes: Sequence[int], table: FloatArray) -> Factor:
    """A table with one axis per name."""
    _require_fitting(sizes)
    return names, table.reshape(sizes)


def joint(factors: Sequence[Factor], keep: tuple[str, ...]) -> FloatArray:
    """Multiply the factors and sum out every name that is not in `keep`; axes in the order of `keep`."""
    sizes = {name: size for names, table in factors for name, size in zip(names, table.shape, strict=True)}
    left = list(factors)
    hidden = [name for name in sizes if name not in keep]
    while hidden:
        name = min(hidden, key=lambda x: _cells(_scope(_having(left, x)), sizes))
        hidden.remove(name)
        touched = _having(left, name)
        rest = tuple(x for x in _scope(touched) if x != name)
        left = [f for f in left if name not in f[0]] + [_product(touched, rest, sizes)]
    return _product(left, keep, sizes)[1]


def _having(factors: Iterable[Factor], name: str) -> list[Factor]:
    return [f for f in factors if name in f[0]]


def _scope(factors: Iterable[Factor]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names, _ in factors for name in names))


def _cells(names: Iterable[str], sizes: Mapping[str, int]) -> int:
    return math.prod(sizes[name] for name in names)


def _product(factors: Sequence[Factor], keep: tuple[str, ...], sizes: Mapping[str, int]) -> Factor:
    """The product of the factors, summed down to the names in `keep`."""
    scope = _scope(factors)
    _require_fitting([sizes[name] for name in scope])
    whole = reduce(_times, factors)
    return keep, _einsum([whole], keep)


def _require_fitting(sizes: Sequence[int]) -> None:
    cells = math.prod(sizes)
    if cells > MAX_CELLS or len(sizes) > MAX_AXES:
        raise DomainTooLarge(
            f"this marginal needs a table of {cells} cells over {len(sizes)} variables; "
            f"the limits are {MAX_CELLS} and {MAX_AXES}. Ask for fewer variables"
        )


def _times(a: Factor, b: Factor) -> Factor:
    names = _scope([a, b])
    return names, _einsum([a, b], names)


def _einsum(factors: Sequence[Factor], keep: tuple[str, ...]) -> FloatArray:
    letter = dict(zip(_scope(factors), ascii_letters, strict=False))
    terms = ",".join("".join(letter[x] for x in names) for names, _ in factors)
    result = np.einsum(f"{terms}->{''.join(letter[x] for x in keep)}", *(table for _, table in factors))
    return np.asarray(result, dtype=np.float64)
