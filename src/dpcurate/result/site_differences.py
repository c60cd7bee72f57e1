"""Which mechanisms differ between the sites of a pool, from released numbers alone.

A column with an edge from the site column is not explained by the other columns in the same way everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcurate._messages import how_many, one_line, probability
from dpcurate.learn.measure_once.central_moments import CentralMoments, Released
from dpcurate.schema import Categorical

if TYPE_CHECKING:
    from dpcurate.result.discovery import Discovery

TOO_MANY = 0.5
"""Sites whose mechanisms differ in a larger share of the columns should not be pooled unread."""
FEWEST_FOR_A_SHARE = 3
FURTHER = 1.5
"""A site is named if a column's distribution there is so many times further from the others than at any other site."""
NOISES = 4.0
"""And by so many standard deviations of the noise."""
MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class MechanismDifference:
    """A column, the probability that its mechanism differs between sites, and whether its edge is drawn.

    `most` is the site where the column's distribution is furthest from that of the others, where one stands out.
    """

    column: str
    linked: float | None
    differs: bool
    most: str = ""

    def __str__(self) -> str:
        sure = [] if self.linked is None else [probability("P", self.linked)]
        told = ", ".join([*sure, *([f"most at {self.most}"] if self.most else [])])
        return one_line(f"{self.column} ({told})" if told else self.column)


@dataclass(frozen=True, slots=True)
class SiteDifferences:
    """What differs between sites, column by column."""

    site: str
    """The column that names the site of a row."""
    columns: tuple[MechanismDifference, ...]

    @property
    def differing(self) -> tuple[MechanismDifference, ...]:
        """The columns whose mechanism differs, the surest first."""
        return tuple(sorted((one for one in self.columns if one.differs), key=lambda one: -(one.linked or 0.0)))

    @property
    def too_many(self) -> bool:
        """Whether sites disagree too much to be pooled without a look at each of them."""
        found = len(self.differing)
        return found >= FEWEST_FOR_A_SHARE and found > TOO_MANY * len(self.columns)

    @property
    def lines(self) -> tuple[str, ...]:
        """What to say of it."""
        found = self.differing
        if not found:
            return ("sites: no mechanism is seen to differ between them",)
        named = ", ".join(map(str, islice(found, MOST_NAMED)))
        more = ", ..." if len(found) > MOST_NAMED else ""
        verb = "differs" if len(found) == 1 else "differ"
        told = f"sites: {how_many(len(found), 'mechanism')} of {len(self.columns)} {verb} between them: {named}{more}"
        if not self.too_many:
            return (told,)
        return told, (
            "warning: so many mechanisms differ that the pooled graph may hold at no site. Look at each site alone, or "
            "pool the sites that are alike"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return {
            "site": self.site,
            "columns": [
                {"column": one.column, "linked": one.linked, "differs": one.differs, "most_at": one.most or None}
                for one in self.columns
            ],
            "too_many": self.too_many,
        }


def site_differences(found: Discovery) -> SiteDifferences | None:
    """What differs between the sites of a result; None where rows have no site."""
    site = _site_column(found)
    if site is None:
        return None
    others = tuple(name for name in found.schema.names if name != site)
    drawn = {name for edge in found.graph.edges if site in edge for name in edge if name != site}
    linked = {pair.b if pair.a == site else pair.a: pair.linked for pair in found.pairs if site in (pair.a, pair.b)}
    apart = _furthest(found, site, [name for name in others if name in drawn])
    return SiteDifferences(
        site,
        tuple(MechanismDifference(one, linked.get(one), one in drawn, apart.get(one, "")) for one in others),
    )


def _site_column(found: Discovery) -> str | None:
    """The column whose levels are the sites of the privacy statement."""
    names = tuple(one.name for one in found.privacy.sites)
    of_sites = (c.name for c in found.schema.columns if isinstance(c, Categorical) and c.levels == names)
    return next(of_sites, None) if names else None


def _furthest(found: Discovery, site: str, columns: Sequence[str]) -> dict[str, str]:
    """For each column the site where its distribution is furthest from that of the others, where one stands out."""
    released = found.learned.released
    if not isinstance(released, Released) or not columns:
        return {}
    names, moments = found.schema.names, CentralMoments.of(released)
    place = names.index(site)
    levels = found.schema[site].levels
    if len(levels) < 3:  # of two, each is as far from the other
        return {}
    told = {}
    for name in columns:
        a, b = sorted((place, names.index(name)))
        if (a, b) not in moments.blocks:
            continue
        gaps, noise = _gaps(moments, a, b, of_site=0 if a == place else 1)
        first, second = np.argsort(gaps)[::-1][:2]
        if gaps[first] > max(FURTHER * gaps[second], NOISES * noise[first]):
            told[name] = levels[first]
    return told


def _gaps(moments: CentralMoments, a: int, b: int, *, of_site: int) -> tuple[Any, Any]:
    """How far a column's distribution at each site is from that elsewhere, and the noise of it."""
    one, other, block = moments.margins[a], moments.margins[b], moments.blocks[a, b]
    table = np.outer(one.probabilities, other.probabilities) + one.basis @ block.observed @ other.basis.T
    if of_site:
        table = table.T
    site = (one, other)[of_site].probabilities
    rest = table.sum(axis=0) - table
    here, elsewhere = table / site[:, None], rest / np.maximum(1 - site, 1e-9)[:, None]
    noise = np.sqrt(block.noise * table.shape[1]) / site
    return np.abs(here - elsewhere).sum(axis=1), noise
