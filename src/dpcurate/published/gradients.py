"""NOLEAKS's gradients and the noise that papers state for them: NOT PRIVATE."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.errors import QueryError
from dpcurate.learn.score.descent import Loss
from dpcurate.learn.score.objectives import Quadratic
from dpcurate.published.draws import normals
from dpcurate.published.schedules import Spending
from dpcurate.queries import Exact, Queryable, Release, Sample, SampleGate, Tables

CLIP = 2.0
"""The artifact's s."""

StatedSensitivity = Literal["artifact", "printed", "printed-plain"]
Point = Literal["current", "first"]


class PublishedGradients:
    """NOLEAKS's oracle: the averaged gradient clipped entry by entry, plus normal noise. NOT PRIVATE.

    One row can move the averaged gradient by far more than any stated sensitivity. Each evaluation is
    one look: `spending` gives its epsilon and `sigma` the noise for it. Values for the line search are
    those of `public`, the second moments of rows that the artifact calls public, and exact.
    """

    def __init__(
        self,
        second: FloatArray,
        spending: Spending,
        sigma: Callable[[float], float],
        draw: Callable[[], float],
        *,
        clip: float = CLIP,
        public: FloatArray | None = None,
        at: Point = "current",
    ) -> None:
        self._private, self._public = Quadratic(second), Quadratic(second if public is None else public)
        self._spending, self._sigma, self._draw = spending, sigma, draw
        self._clip, self._at = clip, at
        self._first: FloatArray | None = None

    def near(self, weights: FloatArray) -> Loss:
        """A new minimisation begins; every evaluation is noised afresh."""
        self._spending.restart()
        self._first = weights if self._at == "first" else None
        return self

    def __call__(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return the public objective and a noised gradient of the private rows."""
        sigma = self._sigma(self._spending.pay())
        gradient = self._private(weights if self._first is None else self._first)[1]
        noised = np.clip(gradient, -self._clip, self._clip) + sigma * normals(self._draw, gradient.shape)
        np.fill_diagonal(noised, 0.0)
        return self._public(weights)[0], noised


def stated_sensitivity(d: int, rows: float, clip: float = CLIP, stated: StatedSensitivity = "artifact") -> float:
    """What is claimed for the clipped averaged gradient of d columns; none of these holds.

    'artifact' is 2 s sqrt(d (d - 1)) / n (NOLEAKS's code), 'printed' sqrt(d (d - 1) s) / n and
    'printed-plain' d s / n (both in section II of the CURATE paper).
    """
    pairs = d * (d - 1)
    sizes = {
        "artifact": 2 * clip * math.sqrt(pairs),
        "printed": math.sqrt(pairs * clip),
        "printed-plain": d * clip,
    }
    return sizes[stated] / rows


# --- a table as NOLEAKS' artifact reads it: levels as numbers by their cumulative frequencies ------------
# A column's levels stand in falling frequency, and each becomes 20 times the middle of its place in the
# cumulative frequencies; then the whole table's mean is taken off. Numeric columns count by their bins.

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
