"""What a run has released, as a whole: its kinds, the memory it takes, its noise, and which columns repeat others."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.errors import DomainTooLarge
from dpcurate.learn.measure_once.blocks import Columns
from dpcurate.learn.measure_once.central_moments import CentralMoments, Released
from dpcurate.learn.measure_once.constants import DETERMINED
from dpcurate.learn.measure_once.feature_release import Bought, FeatureCovariance, ReleasedFeatures
from dpcurate.learn.measure_once.pair_release import ReleasedPairs
from dpcurate.result.fit import NoiseLevel

# Whether the answers to all pairs fit into memory: told from public facts, before anything is charged.
#
# These are the schema and how much memory there is in all. How much of it is free would tell how many rows are held.

BYTES_A_PAIR = 4096
"""An answer, its moments and their places in the search, beside the numbers in them; measured on 441 columns."""
BYTES_A_CELL = 64
"""Eight numbers for every cell of a pair's table: sums, noised sums, moments with and without noise."""
CONTAINER = Path("/sys/fs/cgroup/memory.max")
"""Where a container says what it may use."""


def check_memory(levels: Sequence[int], pairs: Sequence[Columns], memory: int | None) -> None:
    """Refuse pairs that need more memory than there is; None says that nobody knows."""
    needed = bytes_of_pairs(levels, pairs)
    if memory is not None and needed > memory:
        raise DomainTooLarge(
            f"{len(levels):,} columns make {len(pairs):,} pairs, whose answers take about {needed / 1e9:.1f} GB, and "
            f"the machine has {memory / 1e9:.1f} GB of memory: leave columns out of the schema, merge levels, forbid "
            "edges that cannot be (Knowledge(forbidden_edges=...)), or use a larger machine. Nothing was spent."
        )


def bytes_of_pairs(levels: Sequence[int], pairs: Sequence[Columns]) -> int:
    """About what the answers to these pairs take, with all that is made from them."""
    return sum(BYTES_A_PAIR + BYTES_A_CELL * levels[a] * levels[b] for a, b in pairs)


def memory_in_all() -> int | None:
    """Bytes that the machine has, or fewer in a container, where the system tells."""
    known = [size for size in (_of_machine(), _of_container()) if size is not None]
    return min(known, default=None)


def _of_machine() -> int | None:
    if not hasattr(os, "sysconf"):  # Windows
        return None
    return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))


def _of_container() -> int | None:
    try:
        return int(CONTAINER.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no container, or one without a limit
        return None


def of_contrasts(released: Released, moments: CentralMoments) -> NoiseLevel | None:
    """Of pairs of levels; none if no pair was measured."""
    pairs = [columns for columns in moments.blocks if len(columns) == 2]
    if not pairs:
        return None
    # noise in coordinates of variance 1: what is rare is hard to see
    relative = [
        np.exp(np.mean(np.log(np.diag(m.axes.T @ m.shape @ m.axes) / np.maximum(m.variances, 1 / moments.rows))))
        for m in moments.margins
    ]
    noise = [moments.blocks[a, b].noise * relative[a] * relative[b] for a, b in pairs]
    sizes = [(moments.levels[a] - 1) * (moments.levels[b] - 1) for a, b in pairs]
    return NoiseLevel(
        rows=float(released.sums[()]),
        rows_noise=float(np.sqrt(released.variances[()])),
        variance=float(np.median(noise)) + 1 / moments.rows,
        coordinates=round(float(np.median(sizes))),
    )


def of_features(bought: Bought) -> NoiseLevel:
    """Of pairs of features."""
    released = bought.released
    # as released, not as designed: clipped rows are shorter, and features made from little are shorter yet
    variances, floor = np.diag(released.covariance), 2 * np.sqrt(2 * released.noise)
    spread: FloatArray = np.array([max(float(variances[a:b].mean()), floor) for a, b in released.blocks])
    one, other = np.triu_indices(len(spread), 1)
    sizes = np.array([end - start for start, end in released.blocks])
    return NoiseLevel(
        rows=bought.rows,
        rows_noise=bought.rows_noise,
        variance=float(np.median(released.noise / (spread[one] * spread[other]))) + 1 / released.rows,
        coordinates=round(float(np.median(sizes[one] * sizes[other]))),
    )


# Columns that others repeat or determine, as far as released answers show it: told, because no method can tell them
# apart from their causes.

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


Releases = Released | ReleasedPairs | ReleasedFeatures
"""By contrasts of levels, by pairs around margins, or by features of any column."""
