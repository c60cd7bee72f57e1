"""Statistics of rank association between two columns in strata: proved ones, and the published ones.

Longer proofs are in docs/proofs/sensitivity.md, the published bounds' failures in docs/proofs/published.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpcurate.errors import RequestError
from dpcurate.private.kernels import Integers, Kernel
from dpcurate.private.mechanisms import Sensitivity, root_up
from dpcurate.private.statistics import table_of
from dpcurate.requests import KendallP, PublishedFlips, PublishedKendallP, Tau
from dpcurate.schema import Neighbours, Schema

TAU_STEPS = 1024
P_STEPS = 1 << 40
FEWEST_FLIPS = 20_000
"""Beyond this EM-PC's code does not tell scores apart in practice."""
UNDEFINED = -(1 << 60)
"""Stands for a published p-value that its authors' test leaves undefined; far below any noised one."""
STEEPEST = Fraction(3_989_423, 10**7)
"""Just above 1 / sqrt(2 pi), the largest slope of the normal distribution function."""


@dataclass(frozen=True)
class TauPlan:
    """Kendall's association, g = sum_k 2 C_k / (n_k - 1) over the strata, floored to 1/1024.

    Guarantee: g moves by at most the stated sensitivity.
    Sensitivity: add-remove 3, or 2 if x or y has two levels; replace twice that.
    Proof: a row that joins a stratum of m >= 2 rows turns 2C/(m-1) into 2(C+s)/m with |s| <= m and
    |C| <= m(m-1)/2, a change of at most 2|s|/m + 2|C|/(m(m-1)) <= 3. If x is binary with m0 rows on
    the other side, |s| <= m0 and |C| <= m0 (m - m0), which gives at most
    2 m0/m + 2 m0(m-m0)/(m(m-1)) <= 2. A stratum of one row goes from 0 to at most 2. Only one stratum
    changes, and flooring it to steps that divide the bound keeps the bound.
    Cites: Kendall 1938; Wang, Pang, Song 2020 for the weighting by strata.
    """

    statistic: Tau
    schema: Schema
    proved = True

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The table of x, y and the strata."""
        s = self.statistic
        return (table_of((s.x, s.y, *s.given), self.schema),)

    @property
    def units(self) -> tuple[Fraction, ...]:
        """Steps of 1/1024."""
        return (Fraction(TAU_STEPS),)

    def integers(self, totals: tuple[Integers, ...]) -> tuple[Integers, ...]:
        """G in steps, stratum by stratum in exact integer arithmetic."""
        sizes, balance = strata(totals[0])
        return (_floor_ratio(2 * balance, np.maximum(sizes - 1, 1), TAU_STEPS).sum(keepdims=True),)

    def natural(self, parts: tuple[Integers, ...]) -> tuple[NDArray[np.float64], ...]:
        """One number."""
        return (np.asarray(float(parts[0][0]) / float(self.units[0])),)

    def weights(self) -> tuple[float, ...]:
        """No weights."""
        return (1.0,)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """See Sensitivity above."""
        binary = 2 in self.schema.sizes((self.statistic.x, self.statistic.y))
        bound = Fraction((2 if binary else 3) * (1 if neighbours is Neighbours.ADD_REMOVE else 2))
        return Sensitivity(bound, bound * bound)


def strata(counts: Integers) -> tuple[Integers, Integers]:
    """Rows, and concordant minus discordant pairs, in each stratum of an x by y by strata table."""
    cells = counts.reshape(*counts.shape[:2], -1)
    below = np.cumsum(cells, axis=1) - cells  # rows of the same x with smaller y
    above = cells.sum(axis=1, keepdims=True) - below - cells
    gain = above - below  # concordant minus discordant partners that a larger x would find
    later = cells.sum(axis=0) * 0
    balance = np.zeros(cells.shape[2], dtype=np.int64)
    for x in range(cells.shape[0] - 1, -1, -1):
        balance += (cells[x] * later).sum(axis=0)
        later = later + gain[x]
    return cells.sum(axis=(0, 1)), balance


def _floor_ratio(numerator: Integers, denominator: Integers, steps: int) -> Integers:
    """floor(steps * numerator / denominator) without overflow."""
    whole, rest = np.divmod(numerator, denominator)
    return whole * steps + (rest * steps) // denominator


@dataclass(frozen=True)
class KendallPPlan(TauPlan):
    """The p-value sf(|z|), z = sum_k 9 C_k / (2 n_k + 5) / (1.5 sqrt n0), constant strata kept.

    Guarantee: p moves by at most the stated sensitivity.
    Sensitivity: add-remove 4.5 / sqrt(2 pi n0), replace twice that, and a step of 2^-40 for rounding.
    Proof: a row that joins a stratum of m rows moves 9C/(2m+5) by at most
    9m(3m+4) / ((2m+7)(2m+5)) < 27/4; floored to steps of 1/1024, which divide 27/4, the bound stays.
    So z moves by less than 4.5 / sqrt n0, and sf has slope at most 1 / sqrt(2 pi). The public
    constant n0 stands where the published test has the private number of rows.
    Cites: Kendall 1938; docs/proofs/sensitivity.md.
    """

    statistic: KendallP

    def __post_init__(self) -> None:
        if self.schema.rows is None:
            raise RequestError("a p-value needs a public row count: give the schema rows=, or ask for Tau")

    @property
    def units(self) -> tuple[Fraction, ...]:
        """Steps of 2^-40."""
        return (Fraction(P_STEPS),)

    def integers(self, totals: tuple[Integers, ...]) -> tuple[Integers, ...]:
        """P in steps of 2^-40."""
        assert self.schema.rows is not None
        sizes, balance = strata(totals[0])
        numerator = _floor_ratio(9 * balance, 2 * sizes + 5, TAU_STEPS).sum() / TAU_STEPS
        p = upper_tail(abs(float(numerator)) / (1.5 * math.sqrt(self.schema.rows)))
        return (np.array([math.floor(p * P_STEPS)], dtype=np.int64),)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """See Sensitivity above."""
        assert self.schema.rows is not None
        move = STEEPEST * Fraction(9, 2) * root_up(Fraction(1, self.schema.rows))
        bound = move * (1 if neighbours is Neighbours.ADD_REMOVE else 2) + Fraction(1, P_STEPS)
        return Sensitivity(bound, bound * bound)


def upper_tail(z: float) -> float:
    """P(N(0, 1) > z)."""
    return 0.5 * math.erfc(z / math.sqrt(2))


@dataclass(frozen=True)
class PublishedKendallPPlan(TauPlan):
    """The p-value as published: NOT PROVED PRIVATE.

    Guarantee: none.
    Sensitivity: stated by the authors, with n the public row count: Priv-PC the normal mass of
    [0, 6 / sqrt n]; CURATE 0.5129 / sqrt n as printed, 0.36267 / sqrt n in the code.
    Proof: none. Strata of two rows or fewer, or where x or y is constant, are left out with their
    weight, so one row can move p by 0.48 at n = 100,000 (docs/proofs/published.md).
    Cites: Wang, Pang, Song 2020; Bhattacharjee and Tandon 2024, appendix B.
    """

    statistic: PublishedKendallP
    proved = False

    def __post_init__(self) -> None:
        if self.schema.rows is None:
            raise RequestError("the published p-values need a row count: give the schema rows=")

    @property
    def units(self) -> tuple[Fraction, ...]:
        """Steps of 2^-40."""
        return (Fraction(P_STEPS),)

    def integers(self, totals: tuple[Integers, ...]) -> tuple[Integers, ...]:
        """P in steps of 2^-40; UNDEFINED where no stratum is left."""
        cells = totals[0].reshape(*totals[0].shape[:2], -1)
        sizes, balance = strata(totals[0])
        varied = ((cells.sum(axis=1) > 0).sum(axis=0) > 1) & ((cells.sum(axis=0) > 0).sum(axis=0) > 1)
        m, c = sizes[varied & (sizes > 2)].astype(np.float64), balance[varied & (sizes > 2)]
        weight = 9 * m * (m - 1) / (4 * m + 10)
        if not len(m):
            return (np.array([UNDEFINED], dtype=np.int64),)
        z = float((weight * 2 * c / (m * (m - 1))).sum() / math.sqrt(weight.sum()))
        return (np.array([math.floor(upper_tail(abs(z)) * P_STEPS)], dtype=np.int64),)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """What the authors state; the relation plays no part in it."""
        assert self.schema.rows is not None
        n = self.schema.rows
        stated = {
            "priv-pc": 0.5 - upper_tail(6 / math.sqrt(n)),
            "curate-printed": 0.5129 / math.sqrt(n),
            "curate-code": 0.36267 / math.sqrt(n),
        }[self.statistic.bound]
        return Sensitivity(Fraction(stated), Fraction(stated) ** 2)


@dataclass(frozen=True)
class PublishedFlipsPlan(TauPlan):
    """How many rows must go before a G test changes its mind, as EM-PC's code counts: NOT PROVED.

    Guarantee: none.
    Sensitivity: stated as 1.
    Proof: none. The rows are taken out greedily, so the count is an upper bound that jumps: one row
    moved it from 56 to 0. Counts above FEWEST_FLIPS in size are cut off.
    Cites: Xu, Yuan, Wu 2017; the code of Wang, Pang, Song 2020.
    """

    statistic: PublishedFlips
    proved = False

    @property
    def units(self) -> tuple[Fraction, ...]:
        """Whole rows."""
        return (Fraction(1),)

    def integers(self, totals: tuple[Integers, ...]) -> tuple[Integers, ...]:
        """Positive: so many rows keep it independent; negative: so many keep it dependent."""
        cells = totals[0].reshape(*totals[0].shape[:2], -1)
        return (np.array([_flips(cells.astype(np.float64), self.statistic.level)], dtype=np.int64),)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """What the authors state."""
        return Sensitivity(Fraction(1), Fraction(1))


def _flips(cells: NDArray[np.float64], level: float) -> int:
    from scipy.special import chdtri

    freedom = (cells.shape[0] - 1) * (cells.shape[1] - 1) * cells.shape[2]
    limit = float(chdtri(freedom, level))
    tall = np.array([t * math.log(t) if t else 0.0 for t in range(int(cells.sum()) + 1)])
    rows, columns, totals = cells.sum(axis=1), cells.sum(axis=0), cells.sum(axis=(0, 1))
    there = [tall[m.astype(int)].sum() for m in (cells, totals, rows, columns)]
    g = 2 * (there[0] + there[1] - there[2] - there[3])
    sign = 1 if g < limit else -1
    drop = np.diff(tall, prepend=0.0)  # what a cell of t rows loses with its last one
    most = max(min(FEWEST_FLIPS, int(cells.sum()) - 1), 0)
    for taken in range(most):
        c, r, k, t = (drop[m.astype(int)] for m in (cells, rows, columns, totals))
        change = -2 * (c + t - r[:, None, :] - k[None, :, :]) * sign
        change[cells == 0] = -math.inf
        x, y, s = np.unravel_index(int(np.argmax(change)), cells.shape)
        g += sign * float(change[x, y, s])
        if (g - limit) * sign >= 0:
            return sign * taken
        cells[x, y, s] -= 1
        rows[x, s] -= 1
        columns[y, s] -= 1
        totals[s] -= 1
    return sign * most
