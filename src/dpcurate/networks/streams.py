"""Seeded random streams for simulation, and the checks of its whole-number arguments.

Each purpose and each column has a stream of its own, so a network drawn with a seed and rows
sampled with the same seed are not made of the same numbers, and adding rows changes no earlier row.
"""

from __future__ import annotations

import operator

import numpy as np

from dpcurate.errors import QueryError


def whole(name: str, value: int, *, least: int = 0) -> int:
    """`value` as an int of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise QueryError(f"{name} must be a whole number, got {value!r}") from None
    if isinstance(value, bool) or number < least:
        raise QueryError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return number


def streams(seed: int, purpose: str, count: int) -> list[np.random.Generator]:
    """`count` independent PCG64 streams for one purpose."""
    root = np.random.SeedSequence([whole("seed", seed), *purpose.encode()])
    return [np.random.Generator(np.random.PCG64(child)) for child in root.spawn(count)]


def stream(seed: int, purpose: str) -> np.random.Generator:
    """The generator of this seed for one purpose."""
    return streams(seed, purpose, 1)[0]
