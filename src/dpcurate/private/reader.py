"""Reading for a session: what transformations need, many at a time. Its integers are exact and stay there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from dpcurate._typing import IntArray
from dpcurate.errors import SourceError
from dpcurate.private.mechanisms import STEPS, Sensitivity
from dpcurate.private.row_sums import CountRows, RowSum
from dpcurate.private.sources import Source
from dpcurate.private.statistics.kendall import UNDEFINED
from dpcurate.private.statistics.transformation import Transformation
from dpcurate.queries import PairStatistic, Score

Parts = tuple[IntArray, ...]
BATCH_CELLS = 1 << 24
"""Tables read at one time have at most so many cells, 128 MB, or are one."""
MOST_SCALARS = 200_000


class Reader:
    """Reads what transformations need, many at a time; single numbers are kept for runs that repeat."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._scalars: dict[PairStatistic, Parts] = {}
        self._scores: dict[Score, int] = {}

    def read(self, transformations: Sequence[Transformation]) -> Iterator[Parts]:
        """The integers of every transformation, read in batches as they are taken."""
        for batch in _batches(transformations):
            if len(self._scalars) >= MOST_SCALARS:
                self._scalars.clear()
            row_sums = self._row_sums(batch)
            totals = dict(zip(row_sums, self._totals(row_sums), strict=True))
            yield from [self._parts(transformation, totals) for transformation in batch]

    def passes(self, transformations: Sequence[Transformation]) -> int:
        """How many passes over the table reading these would take now."""
        return sum(self._source.passes(self._row_sums(batch)) for batch in _batches(transformations))

    def _row_sums(self, transformations: Sequence[Transformation]) -> list[RowSum]:
        """What has to be added up for these, each once."""
        unknown = (transformation for transformation in transformations if not self._known(transformation.statistic))
        return list(dict.fromkeys(k for transformation in unknown for k in transformation.row_sums))

    def _known(self, statistic: object) -> bool:
        return isinstance(statistic, PairStatistic) and statistic in self._scalars

    def _parts(self, transformation: Transformation, totals: Mapping[RowSum, IntArray]) -> Parts:
        statistic = transformation.statistic
        if isinstance(statistic, PairStatistic) and statistic in self._scalars:
            return self._scalars[statistic]
        parts = transformation.integers(tuple(totals[row_sum] for row_sum in transformation.row_sums))
        if isinstance(statistic, PairStatistic):
            self._scalars[statistic] = parts
        return parts

    def score(self, score: Score, parts: Parts, transformation: Transformation, bound: Sensitivity) -> int:
        """A score in integer steps, STEPS of them between neighbours, floored exactly."""
        if score not in self._scores:
            if len(self._scores) >= MOST_SCALARS:
                self._scores.clear()
            self._scores[score] = _steps(parts[0], transformation, bound, score)
        return self._scores[score]

    def _totals(self, row_sums: list[RowSum]) -> list[IntArray]:
        failed = False
        try:
            return self._source.totals(row_sums) if row_sums else []
        except Exception:
            failed = True  # raised below, outside, so that the cause (which may quote a cell) is gone
        assert failed
        raise SourceError(
            "the table could not be read; what was charged stays charged. Ask its owner to look "
            "at it, and then the same again: that is not charged twice"
        )


def _batches(transformations: Sequence[Transformation]) -> Iterator[list[Transformation]]:
    """Transformations whose tables are held at one time."""
    batch: list[Transformation] = []
    cells = 0
    for transformation in transformations:
        more = sum(k.cells for k in transformation.row_sums if isinstance(k, CountRows))
        if batch and cells + more > BATCH_CELLS:
            yield batch
            batch, cells = [], 0
        batch.append(transformation)
        cells += more
    yield batch


def _steps(part: IntArray, transformation: Transformation, bound: Sensitivity, score: Score) -> int:
    if part[0] == UNDEFINED:
        return -(1 << 60)
    (unit,) = transformation.units
    beyond = abs(int(part[0])) - Fraction(score.threshold) * unit
    steps = beyond * STEPS / (bound.l1 * unit)
    return max(-(1 << 60), min(1 << 60, math.floor(steps if score.side == "above" else -steps)))
