"""A table as NOLEAKS' artifact reads it: levels as numbers by their cumulative frequencies. NOT PRIVATE.

A column's levels stand in falling frequency, and each becomes 20 times the middle of its place in the
cumulative frequencies; then the whole table's mean is taken off. Numeric columns count by their bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.errors import QueryError
from dpcurate.queries import Exact, Queryable, Release, Sample, SampleGate, Tables

LENGTH = 20.0
"""The artifact lays the levels of every column on an interval of this length."""
NO_PRICE = 1e-6
"""A gate has a price; what is asked through this one is exact and has no guarantee anyway."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedRows:
    """How many rows, and their second moments about the whole table's means."""

    count: float
    second: FloatArray


class Encoding:
    """The numbers of every column's levels, fixed on the whole table; `whole` is that table."""

    def __init__(self, queryable: Queryable) -> None:
        self._queryable, self._nodes = queryable, queryable.schema.names
        self._sets = (*((a,) for a in self._nodes), *combinations(self._nodes, 2))
        parts = self._ask(queryable)
        self._numbers = [numbers_of(part) for part in parts[: len(self._nodes)]]
        self.whole: EncodedRows = self._rows(parts)

    def sampled(self, rate: float) -> EncodedRows:
        """A fresh Poisson sample of the rows; at rate 1 the whole table."""
        if rate == 1:
            return self.whole
        return self._rows(self._ask(self._queryable.open(Sample(rate=rate, epsilon=NO_PRICE))))

    def _ask(self, source: Queryable | SampleGate) -> tuple[FloatArray, ...]:
        return source.ask(Release(Tables(self._sets), Exact())).parts

    def _rows(self, parts: Sequence[FloatArray]) -> EncodedRows:
        tables = dict(zip(self._sets, parts, strict=True))
        count = float(parts[0].sum())
        if count < 2:
            raise QueryError(f"the published gradients are averages over rows, and {count:g} are too few of them")
        second = np.zeros((len(self._nodes),) * 2)
        for i, a in enumerate(self._nodes):
            x = self._numbers[i]
            second[i, i] = tables[a,] @ (x * x) / count
            for j in range(i + 1, len(self._nodes)):
                second[i, j] = second[j, i] = x @ tables[a, self._nodes[j]] @ self._numbers[j] / count
        return EncodedRows(count, second)


def numbers_of(counts: FloatArray) -> FloatArray:
    """The number of each level, their mean over the rows taken off; ties keep the schema's order."""
    shares = counts / max(1.0, counts.sum())
    order = np.argsort(-shares, kind="stable")
    middles = np.empty(len(shares))
    middles[order] = np.cumsum(shares[order]) - shares[order] / 2
    return np.asarray(LENGTH * (middles - shares @ middles), dtype=np.float64)
