"""How the session computes the published statistics, with the sensitivities their authors state: NOT PROVED.

Where the stated bounds fail stands in docs/proofs/published.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from dpcurate import _validation
from dpcurate._messages import shown
from dpcurate._typing import FloatArray, IntArray
from dpcurate.errors import QueryError
from dpcurate.learn.constraint.noised_values import p_value
from dpcurate.private.mechanisms import Sensitivity
from dpcurate.private.statistics.kendall import P_STEPS, UNDEFINED, PairTransformation, strata, upper_tail
from dpcurate.queries import PairStatistic
from dpcurate.schema import Neighbours

SMALLEST = 2
"""The block size that appendix B's constant of 0.5129 belongs to."""


def appendix_b(rows: float, smallest: int = SMALLEST) -> float:
    """Appendix B's sensitivity of the p-value: a function of n and of n_i, the size of the block that changes.

    2 / sqrt(n pi) (9 n_i (n_i + 1) / (2 (2 (n_i + 1) + 5)) - 9 n_i^2 / (2 (2 n_i + 5))) / (n_i - 1). It falls as
    n_i grows, and at n_i = 2 it is 0.5129 / sqrt n. The script's 0.36267 is that over sqrt 2.
    """
    larger = 9 * smallest * (smallest + 1) / (2 * (2 * (smallest + 1) + 5))
    weight = larger - 9 * smallest**2 / (2 * (2 * smallest + 5))
    return 2 / math.sqrt(rows * math.pi) * weight / (smallest - 1)


FEWEST_FLIPS = 20_000
"""Beyond this EM-PC's code does not tell scores apart in practice."""


@dataclass(frozen=True)
class PublishedKendallPTransformation(PairTransformation):
    """The p-value as published: NOT PROVED PRIVATE.

    Guarantee: none.
    Sensitivity: stated by the authors, with n the public row count: Priv-PC the normal mass of
    [0, 6 / sqrt n]; CURATE appendix B as printed, 0.36267 / sqrt n in the code. All of them are
    for Kendall's test; the p-values of the other tests get the same, because the paper states none.
    Proof: none. Strata of two rows or fewer, or where x or y is constant, are left out with their
    weight, so one row can move p by 0.48 at n = 100,000 (docs/proofs/published.md).
    Cites: Wang, Pang, Song 2020; Bhattacharjee and Tandon 2024, appendix B.
    """

    statistic: PublishedKendallP
    steps = P_STEPS
    proved = False

    def __post_init__(self) -> None:
        if self.schema.rows is None:
            raise QueryError("the published p-values need a row count: give the schema rows=")

    def integers(self, totals: tuple[IntArray, ...]) -> tuple[IntArray, ...]:
        """The p-value in steps of 2^-40; UNDEFINED where no stratum is left."""
        if self.statistic.test != "kendall":
            p = p_value(self.statistic.test, totals[0].astype(np.float64), 0.0)
            return (np.array([math.floor(p * P_STEPS)], dtype=np.int64),)
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
            "curate-printed": appendix_b(n, self.statistic.smallest),
            "curate-code": 0.36267 / math.sqrt(n),
        }[self.statistic.bound]
        return Sensitivity(Fraction(stated), Fraction(stated) ** 2)


@dataclass(frozen=True)
class PublishedFlipsTransformation(PairTransformation):
    """How many rows must go before a G test changes its mind, as EM-PC's code counts: NOT PROVED.

    Guarantee: none.
    Sensitivity: stated as 1.
    Proof: none. The rows are taken out greedily, so the count is an upper bound that jumps: one row
    moved it from 56 to 0. Counts above FEWEST_FLIPS in size are cut off.
    Cites: Xu, Yuan, Wu 2017; the code of Wang, Pang, Song 2020.
    """

    statistic: PublishedFlips
    steps = 1
    proved = False

    def integers(self, totals: tuple[IntArray, ...]) -> tuple[IntArray, ...]:
        """Positive: so many rows keep it independent; negative: so many keep it dependent."""
        cells = totals[0].reshape(*totals[0].shape[:2], -1)
        return (np.array([_flips(cells.astype(np.float64), self.statistic.level)], dtype=np.int64),)

    def one_row(self, neighbours: Neighbours) -> Sensitivity:
        """Return the stated, unproved sensitivity of 1."""
        return Sensitivity(Fraction(1), Fraction(1))


def _flips(cells: FloatArray, level: float) -> int:
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


# --- the queries, with the sensitivities that their authors state: NOT PROVED ----------------------------
# A session answers them only if it was opened with allow_unproved=True.

StatedBound = Literal["priv-pc", "curate-printed", "curate-code"]
PaperTest = Literal["kendall", "g", "chi-squared", "spearman"]
_BOUNDS, _TESTS = get_args(StatedBound), get_args(PaperTest)


@dataclass(frozen=True, slots=True)
class PublishedKendallP(PairStatistic):
    """The p-value as the published systems compute it, with the sensitivity they state: NOT PROVED.

    `bound` is 'priv-pc', 'curate-printed' (the paper's formula, with `smallest` for its n_i) or 'curate-code'.
    `test` is Kendall's, or another one that the paper names.
    """

    bound: StatedBound = "curate-code"
    test: PaperTest = "kendall"
    smallest: int = SMALLEST

    def __post_init__(self) -> None:
        PairStatistic.__post_init__(self)
        if _validation.text(self.bound) not in _BOUNDS:
            raise QueryError(f"bound must be 'priv-pc', 'curate-printed' or 'curate-code', got {shown(self.bound)}")
        if _validation.text(self.test) not in _TESTS:
            raise QueryError(f"test must be 'kendall', 'g', 'chi-squared' or 'spearman', got {shown(self.test)}")
        if type(self.smallest) is not int or self.smallest < 2:
            raise QueryError(f"smallest is the size of a block, at least 2, got {shown(self.smallest)}")


@dataclass(frozen=True, slots=True)
class PublishedFlips(PairStatistic):
    """How many rows would have to go to change a G test's mind, as EM-PC's code counts: NOT PROVED."""

    level: float = 0.05

    def __post_init__(self) -> None:
        PairStatistic.__post_init__(self)
        if _validation.between(0, self.level, 1) is None:
            raise QueryError(f"a level lies between 0 and 1, got {shown(self.level)}")
