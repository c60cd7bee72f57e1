"""Directions of the edges found: the odds of a collider for every unshielded triple, and the order that fits them best.

A triple a - c - b with a and b apart is a collider if a and b are independent without c, and no collider if they are
independent given c: the evidence of either is at hand, weak in one triple and strong in another. An order of the
columns directs all edges at once and without a cycle; the best one has the largest sum of log odds of its colliders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import inf, log
from random import Random
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from dpcurate._typing import BoolArray
from dpcurate.learn.measure_once.blocks import Columns, bits_of, members_of, sorted_set
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.decide import Decision
from dpcurate.learn.measure_once.family_search import AGAINST_KNOWLEDGE, FamilySearch
from dpcurate.learn.measure_once.order_search import BestParents, best_order, number_of_starts, random_orders

Triple = tuple[int, int, int]
"""Two columns apart and, between them, a neighbour of both."""
Interaction = Callable[[Sequence[tuple[int, int, Columns]]], list[float]]
"""The evidence that two columns depend on each other in another way at other levels of a set; 0 says nothing."""


def no_interaction(asked: Sequence[tuple[int, int, Columns]]) -> list[float]:
    """Where nothing was released that could show one."""
    return [0.0] * len(asked)


def directed(decision: Decision, families: FamilySearch, interaction: Interaction, random: Random) -> Decision:
    """The same edges, directed as the evidence on all triples together says."""
    adjacent = adjacency(decision, families.constraints)
    log_odds = collider_log_odds(decision, adjacent, families, interaction)
    directions = Directions(adjacent, log_odds, families.constraints)
    more = random_orders(families.columns, random, number_of_starts(families.constants, families.columns) - 1)
    order = best_order(directions, random, [decision.order, *more])
    return replace(decision, parents=tuple(order.parents()), order=tuple(order.columns))


@dataclass(frozen=True, slots=True)
class Directions(BestParents):
    """Families of a fixed skeleton: a column's parents are its neighbours before it, scored by the colliders there."""

    adjacent: BoolArray
    log_odds: dict[Triple, float]
    constraints: Constraints
    found: dict[tuple[int, int], tuple[Columns, float]] = field(default_factory=dict)
    near: tuple[int, ...] = field(init=False)
    """The neighbours of each column, a set of bits."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "near", tuple(bits_of(row) for row in self.adjacent))

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return len(self.adjacent)

    def best(self, column: int, before: int) -> tuple[Columns, float]:
        """The neighbours among these columns, and the log odds of the colliders they make."""
        key = column, before & self.near[column]
        if key not in self.found:
            parents = tuple(int(x) for x in np.flatnonzero(members_of(key[1], self.columns)))
            colliders = sum(self.log_odds.get((a, column, b), 0.0) for a, b in combinations(parents, 2))
            against = sum(not self.constraints.allowed[x, column] for x in parents)
            self.found[key] = parents, colliders - AGAINST_KNOWLEDGE * against
        return self.found[key]

    def change(self, column: int, before: int, other: int) -> float:
        """How much these log odds change if another column comes before, too."""
        if not self.near[column] >> other & 1:
            return 0.0
        return self.best(column, before | 1 << other)[1] - self.best(column, before)[1]


class Weighed(NamedTuple):
    """An unshielded triple: log evidence that its ends are independent given each of some sets, and the one between."""

    sets: tuple[Columns, ...]
    without: list[float]
    having: list[float]

    @property
    def log_odds(self) -> float:
        """Of a collider."""
        return _log_mean(self.without) - _log_mean(self.having)

    @property
    def silenced(self) -> Weighed:
        """The same sets, of which none says anything: given no set are the ends independent."""
        return Weighed(self.sets, [0.0] * len(self.sets), [0.0] * len(self.sets))

    @property
    def deciding(self) -> set[int]:
        """The columns of the likeliest set without the one between, and of the likeliest with it."""
        return {x for of in (self.without, self.having) for x in self.sets[int(np.argmax(of))]}


def collider_log_odds(
    decision: Decision,
    adjacent: BoolArray,
    families: FamilySearch,
    interaction: Interaction,
    separating: Mapping[Columns, Columns] = MappingProxyType({}),
    least: float = -inf,
) -> dict[Triple, float]:
    """For every unshielded triple the log odds of a collider."""
    found = weighed(decision, adjacent, families, interaction, separating, least)
    return {triple: evidence.log_odds for triple, evidence in found.items()}


def weighed(
    decision: Decision,
    adjacent: BoolArray,
    families: FamilySearch,
    interaction: Interaction,
    separating: Mapping[Columns, Columns] = MappingProxyType({}),
    least: float = -inf,
) -> dict[Triple, Weighed]:
    """For every unshielded triple: independence without the one between, against independence with it.

    That is beside the set known to separate its ends, if there is one, by pair with the lower column first: given sets
    that separate nothing, two dependences are compared, and their difference says nothing of the triple. Evidence with
    a `least_separation` silences such a triple. That the ends do not depend on each other in another way at other
    levels of the one between counts for no less than `least`.
    """

    def independent(a: int, b: int, given: Columns) -> float:
        """Against a dependence on average over levels, and one that differs between them."""
        return -families.dependence(b, a, given) - interactions[a, b, given]

    def independent_with(a: int, b: int, given: Columns, c: int) -> float:
        """The same given c, too, which takes no more than so much from what differs between levels of the others."""
        both = sorted_set(*given, c)
        return -families.dependence(b, a, both) - max(interactions[a, b, both], interactions[a, b, given] + least)

    measured = families.evidence.measured
    triples = {t: tuple(candidates(decision, adjacent, t, separating)) for t in unshielded(adjacent, measured)}
    asked = [
        (a, b, some) for (a, c, b), sets in triples.items() for given in sets for some in (given, sorted_set(*given, c))
    ]
    families.remember((b, a, given) for a, b, given in asked)
    interactions = dict(zip(asked, interaction(asked), strict=True))
    found = {
        (a, c, b): Weighed(
            sets,
            [independent(a, b, given) for given in sets],
            [independent_with(a, b, given, c) for given in sets],
        )
        for (a, c, b), sets in triples.items()
    }
    least = families.evidence.least_separation
    return {triple: w if max(*w.without, *w.having) >= least else w.silenced for triple, w in found.items()}


def unshielded(adjacent: BoolArray, measured: BoolArray) -> Iterator[Triple]:
    """Triples a - c - b with a and b apart, where there is evidence about a and b."""
    for c, around in enumerate(adjacent):
        for a, b in combinations((int(x) for x in np.flatnonzero(around)), 2):
            if measured[a, b] and not adjacent[a, b]:
                yield a, c, b


def candidates(
    decision: Decision, adjacent: BoolArray, triple: Triple, separating: Mapping[Columns, Columns]
) -> set[Columns]:
    """What may separate the ends beside the one between: what is known to; else nothing, a neighbour, parents."""
    a, c, b = triple
    if (a, b) in separating:
        return {tuple(x for x in separating[a, b] if x != c)}
    near = {int(x) for x in np.flatnonzero(adjacent[a] | adjacent[b])} - {c}
    later = max(a, b, key=decision.order.index)
    parents = sorted_set(*(x for x in decision.parents[later] if x not in triple))
    return {(), parents, *((x,) for x in near)}


def _log_mean(logs: list[float]) -> float:
    return float(np.logaddexp.reduce(logs)) - log(len(logs))


def adjacency(decision: Decision, constraints: Constraints) -> BoolArray:
    """Which columns are joined, or must be."""
    adjacent = constraints.required.copy()
    for column, parents in enumerate(decision.parents):
        adjacent[list(parents), column] = adjacent[column, list(parents)] = True
    return adjacent
