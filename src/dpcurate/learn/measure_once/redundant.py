"""Columns that others repeat or determine, as far as released answers show it: told, because no method can tell them
apart from their causes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpcurate.learn.measure_once.contrast_evidence import DETERMINED
from dpcurate.learn.measure_once.feature_release import FeatureCovariance

SAME = 0.97
"""A correlation of scores above this is taken for the same column twice."""
MOST_NOISE = 1e-4
"""With more noise variance than this in a correlation nothing is said."""


@dataclass(frozen=True, slots=True)
class Redundant:
    """Columns that repeat an earlier one, and a sentence for each column that others repeat or determine."""

    repeated: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()


def redundant(released: FeatureCovariance, names: Sequence[str]) -> Redundant:
    """Nothing where the noise is too large to know."""
    first = np.array([start for start, _ in released.blocks])
    spread = np.sqrt(np.maximum(np.diagonal(released.covariance)[first], 1e-9))
    single = [i for i, (start, end) in enumerate(released.blocks) if end - start - released.curved[i] == 1]
    if released.noise > MOST_NOISE or len(single) < 2:
        return Redundant()
    correlation = released.covariance[np.ix_(first, first)] / np.outer(spread, spread)
    pairs = [(a, b) for a, b in combinations(single, 2) if abs(correlation[a, b]) > SAME]
    told = [_same(names[a], names[b]) for a, b in pairs]
    paired = {i for pair in pairs for i in pair}
    alone = [i for i in single if i not in paired]
    explained = _explained(correlation[np.ix_(alone, alone)])
    follow = [names[i] for i, share in zip(alone, explained, strict=True) if share > 1 - DETERMINED]
    if follow:
        told.append(f"{', '.join(follow)}: the others determine each of these; edges among them cannot be told apart")
    return Redundant(tuple(dict.fromkeys(names[b] for _, b in pairs)), tuple(told))


def copied(copies: Mapping[int, int], names: Sequence[str]) -> Redundant:
    """The same for columns of levels, and where the links of both are drawn."""
    told = [(names[first], names[copy]) for copy, first in copies.items()]
    sentences = (f"{_same(first, copy)}, or read links of {first} as links of either" for first, copy in told)
    return Redundant(tuple(names[copy] for copy in copies), tuple(sentences))


def _same(one: str, other: str) -> str:
    return f"{one} and {other} are all but the same column: leave one out"


def _explained(correlation: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[float]:
    """The share of each column's variance that a regression on all others explains."""
    values, axes = np.linalg.eigh(correlation)
    inverse = (axes / np.maximum(values, 1e-3)) @ axes.T
    return [1 - 1 / max(float(d), 1.0) for d in np.diagonal(inverse)]
