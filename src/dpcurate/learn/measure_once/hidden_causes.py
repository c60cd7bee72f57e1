"""Where common causes may be hidden: from the graph of the search to a PAG, and to P(a causes b) of its arrows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import combinations
from math import exp
from random import Random
from types import MappingProxyType

import numpy as np

from dpcurate._typing import BoolArray, FloatArray, IntArray
from dpcurate.graphs.base_graph import Arrow, Mark
from dpcurate.graphs.graph import Skeleton
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.pag import Pag
from dpcurate.graphs.pag_orientation import UnshieldedTriple as Named
from dpcurate.graphs.pag_orientation import UnshieldedTriples, known_marks, orient_pag
from dpcurate.learn.measure_once.arrows import Interaction, Triple, adjacency, collider_log_odds
from dpcurate.learn.measure_once.blocks import Columns
from dpcurate.learn.measure_once.constants import (
    CROWD,
    DRAWS_OF_MARKS,
    ENOUGH,
    INDEPENDENT,
    LACKING,
    LEAST_TO_JOIN,
    MORE,
    MOST_COLLIDER,
    MOST_GIVEN,
    MOST_NEIGHBOURS,
    OF_CROWD,
    OPEN,
    RIGHT,
    SHIFT,
    SLOPE,
)
from dpcurate.learn.measure_once.decide import Decision
from dpcurate.learn.measure_once.family_search import FamilySearch

# The colliders at a column, all at once: which of the edges that meet there have an arrowhead, by the odds of triples.
#
# Triples of a column are not independent of each other: if a - c - b and b - c - d are colliders, there are arrowheads
# at c from a and from d, and if a and d are apart, a - c - d is one, too. Drawn one by one they would contradict each
# other, and what is contradicted says nothing.

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
        columns[triple[1]][triple] = min(max(SLOPE * x + SHIFT, -MOST_COLLIDER), MOST_COLLIDER)
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


# Where common causes may be hidden: from the graph of the search to a PAG, by what was released, at no cost.
#
# The search looks for a DAG. With a hidden cause the best one joins columns that no DAG of the visible columns needs
# to: as in FCI, an edge goes if a set of neighbours of either end makes the two independent. It also leaves out pairs,
# for a column has few parents, and what a regression without all its terms may miss explains a weak dependence away. To
# FCI that is no separation: such pairs are joined again. Unshielded triples are colliders by their odds, the rules of
# Zhang (2008) do the rest. How sure a mark is comes from drawing the colliders at every column by their odds.


Dependence = Callable[[Sequence[tuple[int, int, Columns]]], list[float]]
"""The log evidence that two columns depend on each other given a set, for many at once: whether it separates them."""
Separating = dict[Columns, Columns]
"""By pair, the lower column first."""


@dataclass(frozen=True, slots=True)
class Dependences:
    """The evidence of clear effects, and of weak ones too."""

    clear: Dependence
    weak: Dependence
    whole: Callable[[int, int, Columns], bool]
    """Whether all terms were released of two columns and a set: one that lacks some can hide a dependence."""


@dataclass(frozen=True, slots=True)
class Found:
    """A PAG, the skeleton it rests on, and P(tail) and P(arrowhead) of every end."""

    pag: Pag
    skeleton: Skeleton
    marks: dict[tuple[str, str], tuple[float, float]]


def with_hidden_causes(
    names: Sequence[str],
    decision: Decision,
    families: FamilySearch,
    interaction: Interaction,
    dependences: Dependences,
    knowledge: Knowledge | None,
    draws: int = DRAWS_OF_MARKS,
) -> Found:
    """The PAG of the decision's edges and of pairs it does not explain, without those that neighbours separate.

    Marks have probabilities from so many draws of the colliders; from none they have none.
    """
    chosen = adjacency(decision, families.constraints)
    clear = left_over(decision, families, dependences.clear) > -families.edge_log_odds
    weak, needed = left_over(decision, families, dependences.weak), _needed(families)
    depend = clear | (weak > needed)
    depend |= weak > needed - _crowding(_common(chosen | depend))
    before = chosen | depend
    adjacent, separating = thinned(before, chosen | clear, families, dependences)
    separating |= _apart(adjacent, separating, families, dependences.clear)
    odds = collider_log_odds(decision, adjacent, families, interaction, separating, LACKING)
    odds = _if_apart(odds, _common(adjacent))
    skeleton = _skeleton(names, adjacent, separating)
    columns = colliders_by_column(odds)
    likeliest = _triples(names, odds, (column.sets[0] for column in columns))
    pag = orient_pag(skeleton, knowledge, triples=likeliest)
    marks = _drawn_marks(names, skeleton, knowledge, odds, columns, draws) if draws else {}
    return Found(pag, skeleton, marks)


def dependence_of(families: FamilySearch, interaction: Interaction) -> Dependence:
    """On average over levels of the set, or in another way at other levels: independence is the lack of both."""

    def dependence(asked: Sequence[tuple[int, int, Columns]]) -> list[float]:
        families.remember((b, a, given) for a, b, given in asked)
        average = {key: families.dependence(key[1], key[0], key[2]) for key in asked}
        unsure = [key for key, value in average.items() if value <= ENOUGH]
        for key, differs in zip(unsure, interaction(unsure), strict=True):
            average[key] += max(differs, 0.0)
        return [average[key] for key in asked]

    return dependence


def left_over(decision: Decision, families: FamilySearch, dependence: Dependence) -> FloatArray:
    """The log evidence that two columns depend on each other given the other parents of the later one.

    The search leaves some out that do: the children of a hidden cause are all joined with each other, and may be many.
    """
    allowed = (families.constraints.allowed | families.constraints.allowed.T) & families.evidence.measured
    asked = [
        (other, column, tuple(x for x in decision.parents[column] if x != other))
        for place, column in enumerate(decision.order)
        for other in decision.order[:place]
        if allowed[column, other]
    ]
    evidence = np.full(allowed.shape, -np.inf)
    for (a, b, _), value in zip(asked, dependence(asked), strict=True):
        evidence[a, b] = evidence[b, a] = value
    return evidence


def _common(adjacent: BoolArray) -> IntArray:
    """How many neighbours each two columns have in common."""
    counts = adjacent.astype(int)
    return np.asarray(counts @ counts)


def _crowding(common: IntArray) -> FloatArray:
    """What many common neighbours are worth as log evidence that two columns are joined."""
    return OF_CROWD * np.maximum(common - CROWD, 0)


def _needed(families: FamilySearch) -> float:
    """Log evidence from which on a weak dependence is more likely than not; what has no power joins nothing."""
    return max(-families.edge_log_odds - MORE, LEAST_TO_JOIN)


def thinned(
    before: BoolArray, clear: BoolArray, families: FamilySearch, dependences: Dependences
) -> tuple[BoolArray, Separating]:
    """Without the edges that some neighbours of either end separate, small sets first, and what separated them.

    A clear edge goes for a set that lacks no terms. One that is not clear goes if given some neighbours it is no longer
    likely. Every common neighbour speaks for an edge that was found.
    """
    adjacent, separating = before.copy(), Separating()
    for size in range(MOST_GIVEN + 1):
        around = adjacent.copy()  # as it was when the size began: nothing depends on the order of columns
        common = _common(around)
        least = np.where(clear, INDEPENDENT, _needed(families)) - _crowding(common) - common
        sure, unsure = dict[Columns, list[Columns]](), dict[Columns, list[Columns]]()
        for a, b in np.argwhere(np.triu(around & ~families.constraints.required)).tolist():
            sets = [s for s in _sets(around, families, a, b) if len(s) == size]
            if clear[a, b]:
                sure[a, b] = [s for s in sets if dependences.whole(a, b, s)]
            else:
                unsure[a, b] = sets
        found = _most_independent(dependences.clear, sure) | _most_independent(dependences.weak, unsure)
        for (a, b), (given, evidence) in found.items():
            if evidence < least[a, b]:
                adjacent[a, b] = adjacent[b, a] = False
                separating[a, b] = given
    return adjacent, separating


def _apart(adjacent: BoolArray, known: Separating, families: FamilySearch, dependence: Dependence) -> Separating:
    """A set that separates each two columns with a common neighbour, the smallest that does."""
    apart = np.argwhere(np.triu((_common(adjacent) > 0) & ~adjacent & families.evidence.measured, 1)).tolist()
    sets: dict[Columns, set[Columns]] = {
        (a, b): _sets(adjacent, families, a, b) for a, b in apart if (a, b) not in known
    }
    separating = Separating()
    for size in range(MOST_GIVEN + 1):
        left = sets.keys() - separating.keys()
        found = _most_independent(
            dependence, {pair: [s for s in sets[pair] if len(s) == size] for pair in sorted(left)}
        )
        separating |= {pair: given for pair, (given, evidence) in found.items() if evidence < INDEPENDENT}
    return separating


def _sets(adjacent: BoolArray, families: FamilySearch, a: int, b: int) -> set[Columns]:
    """Sets of neighbours of one of the two."""
    found: set[Columns] = set()
    for x, y in ((a, b), (b, a)):
        near = [int(z) for z in np.flatnonzero(adjacent[x]) if z != y]
        near = sorted(sorted(near, key=lambda z: -families.row(y, ())[z])[:MOST_NEIGHBOURS])
        found |= {s for size in range(MOST_GIVEN + 1) for s in combinations(near, size)}
    return found


def _most_independent(
    dependence: Dependence, sets: Mapping[Columns, Sequence[Columns]]
) -> dict[Columns, tuple[Columns, float]]:
    """For each pair the set given which least speaks for a dependence, and the log evidence that does."""
    asked = [(a, b, given) for (a, b), some in sets.items() for given in sorted(some)]
    found = dict[Columns, tuple[Columns, float]]()
    for (a, b, given), evidence in zip(asked, dependence(asked), strict=True):
        if (a, b) not in found or evidence < found[a, b][1]:
            found[a, b] = given, evidence
    return found


def _if_apart(evidence: dict[Triple, float], common: IntArray) -> dict[Triple, float]:
    """One less for each common neighbour of the ends beside the one between: they may be joined after all."""
    return {(a, c, b): x - float(common[a, b] - 1) for (a, c, b), x in evidence.items()}


def _skeleton(names: Sequence[str], adjacent: BoolArray, separating: Separating) -> Skeleton:
    edges = [(names[a], names[b]) for a, b in np.argwhere(np.triu(adjacent)).tolist()]
    apart = {frozenset((names[a], names[b])): tuple(names[x] for x in s) for (a, b), s in separating.items()}
    return Skeleton.of(names, edges, apart)


def _triples(names: Sequence[str], among: Iterable[Triple], colliders: Iterable[Colliders]) -> UnshieldedTriples:
    """The colliders, and the other triples."""
    chosen, split = frozenset[Triple]().union(*colliders), (set[Named](), set[Named]())
    for triple in among:
        a, c, b = (names[x] for x in triple)
        split[triple not in chosen].add((c, frozenset((a, b))))
    return split


def _drawn_marks(
    names: Sequence[str],
    skeleton: Skeleton,
    knowledge: Knowledge | None,
    among: Iterable[Triple],
    columns: Sequence[CollidersAt],
    draws: int,
) -> dict[tuple[str, str], tuple[float, float]]:
    """P(tail) and P(arrowhead) of every end, by how often the rules give it when colliders are drawn by their odds."""
    random, counts = Random(0), Counter[tuple[tuple[str, str], str]]()
    for _ in range(draws):
        triples = _triples(names, among, (column.draw(random) for column in columns))
        counts.update(orient_pag(skeleton, knowledge, triples=triples).marks.items())
    ends = [end for a, b in map(sorted, skeleton.edges) for end in ((a, b), (b, a))]
    drawn = {end: (counts[end, "tail"] / draws, counts[end, "arrow"] / draws) for end in ends}
    known = {(a, b) for a, b, _ in known_marks(skeleton, knowledge)} if knowledge is not None else set()
    return {end: shares if end in known else believed(*shares) for end, shares in drawn.items()}


def believed(tail: float, arrow: float) -> tuple[float, float]:
    """The probabilities of a tail and of an arrowhead, from their shares of the draws."""
    either = OPEN * (1 - tail - arrow)
    return RIGHT * tail + (1 - RIGHT) * arrow + either, RIGHT * arrow + (1 - RIGHT) * tail + either


# P(a causes b) of an arrow a -> b, where something outside the table may drive both instead.
#
# The same evidence is read once more with hidden causes allowed. An arrowhead at a there means that a
# hidden cause explains the edge as well or better; a tail means that none does, and a circle leaves it open.

CAUSES: Mapping[Mark, float] = MappingProxyType({"tail": 0.97, "circle": 0.9, "arrow": 0.5})
"""How often a causes b, if b does not cause a, by the mark at a: fitted on random worlds of which a part is hidden."""


def causes(found: Found) -> dict[Arrow, float]:
    """For each edge of either way round; an edge that is not in the PAG counts as one with an arrowhead."""
    return {(a, b): CAUSES[mark] for (b, a), mark in found.pag.marks.items()}
