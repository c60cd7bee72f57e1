"""What is bought last where noise is larger: the few contrasts that decide what two releases have left in doubt.

The first release holds every pair and the second hundreds of sets; whether an edge is there and which way round it is
hangs on a few of them. A release of these few has little noise for a small share of the budget.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from dpcurate._typing import BoolArray
from dpcurate.learn.measure_once.arrows import Interaction, adjacency, weighed
from dpcurate.learn.measure_once.blocks import Columns, sorted_set
from dpcurate.learn.measure_once.confidence import linked_probabilities, weakest_odds
from dpcurate.learn.measure_once.decide import Decision
from dpcurate.learn.measure_once.family_search import FamilySearch

UNSURE = 0.1
"""A pair is in doubt if its P(linked) lies between this and 1 minus this."""
EVEN = 3.0
"""A collider is in doubt if its log odds are nearer to 0 than this."""


def sets_in_doubt(look: Decision, families: FamilySearch, interaction: Interaction) -> list[Columns]:
    """Pairs and triples of the columns that decide each doubtful pair and each doubtful collider."""
    adjacent, measured = adjacency(look, families.constraints), families.evidence.measured
    deciding = *_of_pairs(look, families, adjacent), *_of_colliders(look, families, adjacent, interaction)
    sets = {u for columns in deciding for size in (2, 3) for u in combinations(columns, size)}
    return sorted(u for u in sets if all(measured[pair] for pair in combinations(u, 2)))


def _of_pairs(look: Decision, families: FamilySearch, adjacent: BoolArray) -> Iterator[Columns]:
    """Each doubtful pair with the neighbours that come nearest to explaining it away."""
    linked = linked_probabilities(look, families, adjacent)
    for pair in families.constraints.pairs:
        if UNSURE < linked[pair] < 1 - UNSURE:
            yield sorted_set(*pair, *weakest_odds(families, adjacent, pair)[1])


def _of_colliders(
    look: Decision, families: FamilySearch, adjacent: BoolArray, interaction: Interaction
) -> Iterator[Columns]:
    """Each doubtful collider with what comes nearest to separating its ends, with the one between and without."""
    for triple, evidence in weighed(look, adjacent, families, interaction).items():
        if abs(evidence.log_odds) < EVEN:
            yield sorted_set(*{*triple, *evidence.deciding})
