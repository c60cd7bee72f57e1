"""Papers as printed and as coded, to show their figures and where their claims fail: NOT PRIVATE.

Importing it registers its queries with the session, which answers them only in a session opened with
allow_unproved=True. Nothing of the product depends on it.
"""

from dpcurate.learn.methods import Listed
from dpcurate.private.statistics.registry import register_unproved
from dpcurate.published.claims import READINGS, Claim, CurateReading, PublishedLearned
from dpcurate.published.constraint import PublishedCuratePC, PublishedEMPC, PublishedPC, PublishedPrivPC, PublishedSVTPC
from dpcurate.published.queries import PublishedFlips, PublishedKendallP
from dpcurate.published.score import PublishedCurateScore, PublishedNoleaks
from dpcurate.published.statistics import PublishedFlipsTransformation, PublishedKendallPTransformation

__all__ = [
    "METHODS", "READINGS", "Claim", "CurateReading", "PublishedCuratePC", "PublishedCurateScore", "PublishedEMPC",
    "PublishedFlips", "PublishedKendallP", "PublishedLearned", "PublishedNoleaks", "PublishedPC", "PublishedPrivPC",
    "PublishedSVTPC",
]  # fmt: skip

register_unproved(PublishedKendallP, PublishedKendallPTransformation)
register_unproved(PublishedFlips, PublishedFlipsTransformation)

METHODS = {
    entry.name: entry
    for entry in (
        Listed("em-pc", PublishedEMPC(), "constraint", "EM-PC as coded with Priv-PC.", private=False),
        Listed("svt-pc", PublishedSVTPC(), "constraint", "SVT-PC as printed.", private=False),
        Listed("priv-pc", PublishedPrivPC(), "constraint", "Priv-PC as coded.", private=False),
        Listed("curate-pc", PublishedCuratePC(), "constraint", "CURATE's Algorithm 1 as printed.", private=False),
        Listed("noleaks", PublishedNoleaks(), "score", "NOLEAKS as in its artifact, on all rows.", private=False),
        Listed("curate-score", PublishedCurateScore(), "score", "Score-based CURATE.", private=False),
        Listed("pc", PublishedPC(), "constraint", "PC with Kendall's test as the papers compute it.", private=False),
    )
}
"""The published methods by the names of the proved ones."""
