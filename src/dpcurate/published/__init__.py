"""Papers as printed and as coded, to show their figures and where their claims fail: NOT PRIVATE.

Importing it registers its queries with the session, which answers them only in a session opened with
allow_unproved=True. Nothing of the product depends on it.
"""

from dpcurate.learn.methods import DESCRIPTIONS, Family, Listed, Method
from dpcurate.private.statistics.registry import register_unproved
from dpcurate.published.claims import READINGS, Claim, CurateReading, PublishedLearned
from dpcurate.published.constraint import PublishedCuratePC, PublishedEMPC, PublishedPC, PublishedPrivPC, PublishedSVTPC
from dpcurate.published.score import PublishedCurateScore, PublishedNoleaks
from dpcurate.published.unproved_statistics import (
    PublishedFlips,
    PublishedFlipsTransformation,
    PublishedKendallP,
    PublishedKendallPTransformation,
)

__all__ = [
    "METHODS", "READINGS", "Claim", "CurateReading", "PublishedCuratePC", "PublishedCurateScore", "PublishedEMPC",
    "PublishedFlips", "PublishedKendallP", "PublishedLearned", "PublishedNoleaks", "PublishedPC", "PublishedPrivPC",
    "PublishedSVTPC",
]  # fmt: skip

_METHODS: tuple[tuple[str, Method, Family], ...] = (
    ("em-pc", PublishedEMPC(), "constraint"),
    ("svt-pc", PublishedSVTPC(), "constraint"),
    ("priv-pc", PublishedPrivPC(), "constraint"),
    ("curate-pc", PublishedCuratePC(), "constraint"),
    ("noleaks", PublishedNoleaks(), "score"),
    ("curate-score", PublishedCurateScore(), "score"),
    ("pc", PublishedPC(), "constraint"),
)
register_unproved(PublishedKendallP, PublishedKendallPTransformation)
register_unproved(PublishedFlips, PublishedFlipsTransformation)

METHODS = {
    name: Listed(name, recipe, family, DESCRIPTIONS[type(recipe).__name__], private=False)
    for name, recipe, family in _METHODS
}
"""The published methods by the names of the proved ones."""
