"""Where the values of each column lie, as far as a noised histogram tells: a distribution over its places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.queries import BRANCHES, DEEPEST, Answer
from dpcurate.schema import OWN, Column

FEWEST_ROWS = 10.0
"""A noised count may be zero or negative."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """The shares of a column's places, which are its levels or the finest intervals of a number."""

    column: Column
    shares: FloatArray
    missing: float = 0.0
    """The share of missing cells, where these are the column's own."""
    noise: float = 0.0
    """Standard deviation of the noise in a share."""


def distributions(answer: Answer, columns: Sequence[Column]) -> tuple[list[Distribution], float]:
    """What released histograms say of each column, and of the number of rows."""
    starts, rows = _starts(columns), max(row_count(answer, columns)[0], FEWEST_ROWS)
    read = partial(_distribution, rows=rows, scale=answer.scales[0])
    return [read(c, answer.parts[start : start + DEEPEST]) for c, start in zip(columns, starts, strict=True)], rows


def row_count(answer: Answer, columns: Sequence[Column]) -> tuple[float, float]:
    """The number of rows as released histograms have it, and its noise: every column's first part holds each once."""
    firsts = [answer.parts[start] for start in _starts(columns)]
    noise = answer.scales[0] * float(np.sqrt(sum(len(first) for first in firsts))) / len(columns)
    return float(np.mean([first.sum() for first in firsts])), noise


def _starts(columns: Sequence[Column]) -> list[int]:
    return [int(s) for s in np.cumsum([0, *(1 if column.has_levels else DEEPEST for column in columns)])[:-1]]


def unknown(columns: Sequence[Column]) -> list[Distribution]:
    """Before anything is asked: every place as likely as any other."""
    sizes = [column.size if column.has_levels else BRANCHES**DEEPEST for column in columns]
    return [Distribution(column, np.full(size, 1 / size)) for column, size in zip(columns, sizes, strict=True)]


def _distribution(column: Column, parts: Sequence[FloatArray], rows: float, scale: float) -> Distribution:
    if column.has_levels:
        return of_levels(column, parts[0], rows, scale)
    return of_number(column, parts, rows, scale, own=column.missing == OWN)


def of_levels(column: Column, counts: FloatArray, rows: float, scale: float) -> Distribution:
    """Noised counts, none negative, as shares."""
    return Distribution(column, _on_simplex(counts / rows, 1.0), 0.0, scale / rows)


def of_number(column: Column, depths: Sequence[FloatArray], rows: float, scale: float, *, own: bool) -> Distribution:
    """From coarse to fine: an interval's share is split as its parts' counts say, as far as they exceed their noise."""
    missing = min(max(float(depths[0][-1]) / rows, 0.0), 0.999) if own else 0.0
    first = depths[0][:BRANCHES]
    shares = np.array([1.0])
    for counts in (first, *depths[1:]):
        shares = _split(shares, counts.reshape(-1, BRANCHES) / rows / (1 - missing), scale / rows / (1 - missing))
    return Distribution(column, shares, missing, scale / rows)


def _split(shares: FloatArray, counts: FloatArray, noise: float) -> FloatArray:
    """Each share over its parts: evenly, plus what their counts differ beyond their noise, none negative."""
    apart = counts - counts.mean(axis=1, keepdims=True)
    signal = np.maximum((apart**2).sum(axis=1) / (BRANCHES - 1) - noise**2, 0.0)
    kept = signal / (signal + noise**2) if noise else np.ones(len(counts))
    wanted = shares[:, None] / BRANCHES + kept[:, None] * apart
    return _on_simplices(wanted, shares).ravel()


def _on_simplices(values: FloatArray, totals: FloatArray) -> FloatArray:
    """Each row's nearest vector without negative entries that adds up to its total (Held et al., 1974)."""
    falling = -np.sort(-values, axis=1)
    beyond = (np.cumsum(falling, axis=1) - totals[:, None]) / np.arange(1, values.shape[1] + 1)
    kept = np.maximum((falling > beyond).sum(axis=1), 1)
    return np.asarray(np.maximum(values - beyond[np.arange(len(values)), kept - 1][:, None], 0.0))


def _on_simplex(values: FloatArray, total: float) -> FloatArray:
    return np.asarray(_on_simplices(values[None, :], np.array([total]))[0])
