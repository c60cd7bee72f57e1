"""The colliders at a column, all at once: which of the edges that meet there have an arrowhead, by the odds of triples.

Triples of a column are not independent of each other: if a - c - b and b - c - d are colliders, there are arrowheads
at c from a and from d, and if a and d are apart, a - c - d is one, too. Drawn one by one they would contradict each
other, and what is contradicted says nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import nlargest
from math import exp
from random import Random

from dpcurate.learn.measure_once.arrows import Triple

SLOPE = 0.4
SHIFT = 0.6
MOST = 3.0
"""The log odds of a collider are SLOPE times the log evidence plus SHIFT, at most MOST either way: fitted on random
worlds (docs/methods.md). Evidence knows noise and sampling, not whether its edges are right, and a collider may leave
nothing to see of the dependence it makes."""
MOST_SETS = 1024
"""Sets of arrowheads looked at: all of them at a column of up to ten neighbours, else the likeliest so far."""

Colliders = frozenset[Triple]


@dataclass(frozen=True, slots=True)
class CollidersAt:
    """The sets of colliders possible at one column, likeliest first, and how likely each is compared with that."""

    sets: tuple[Colliders, ...]
    weights: tuple[float, ...]

    @classmethod
    def of(cls, log_odds: Mapping[Triple, float]) -> CollidersAt:
        """From the log odds of all triples around the column."""
        scores = {
            frozenset(t for t in log_odds if t[0] in heads and t[2] in heads): score
            for heads, score in _sets_of_heads(log_odds).items()
        }
        best = max(scores.values())
        return cls(tuple(scores), tuple(exp(score - best) for score in scores.values()))

    def draw(self, random: Random) -> Colliders:
        """One of them, each as often as it is likely."""
        return random.choices(self.sets, self.weights)[0]


def colliders_by_column(evidence: Mapping[Triple, float]) -> list[CollidersAt]:
    """For every column between two others, by the log evidence of its triples."""
    columns: defaultdict[int, dict[Triple, float]] = defaultdict(dict)
    for triple, x in evidence.items():
        columns[triple[1]][triple] = min(max(SLOPE * x + SHIFT, -MOST), MOST)
    return [CollidersAt.of(log_odds) for log_odds in columns.values()]


def _sets_of_heads(log_odds: Mapping[Triple, float]) -> dict[frozenset[int], float]:
    """Sets of neighbours with an arrowhead at the column by the sum of the log odds of their colliders, highest first.

    Of equals the empty set comes first.
    """
    pairs = {frozenset((a, b)): x for (a, _, b), x in log_odds.items()}
    scores = {frozenset[int](): 0.0}
    for near in sorted(frozenset().union(*pairs)):
        with_it = {
            heads | {near}: score + sum(pairs.get(frozenset((near, x)), 0.0) for x in heads)
            for heads, score in scores.items()
        }
        scores = dict(nlargest(MOST_SETS, (scores | with_it).items(), key=lambda item: item[1]))
    return scores
