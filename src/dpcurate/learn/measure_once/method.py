"""The recipe: buy once, look, buy where it pays, and search."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from dpcurate.errors import RequestError
from dpcurate.graphs.knowledge import Knowledge
from dpcurate.graphs.orient import orient
from dpcurate.learn.measure_once.constants import Constants
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.contrast_evidence import ContrastEvidence
from dpcurate.learn.measure_once.decide import Decision, decide, evidence_of, scout, skeleton_of
from dpcurate.learn.measure_once.family_search import FamilySearch
from dpcurate.learn.measure_once.moments import CentralMoments, Released
from dpcurate.learn.measure_once.release import (
    Purchase,
    Weights,
    buy,
    first_weights,
    noise_over_sampling,
    second_weights,
)
from dpcurate.learn.outcome import Learned
from dpcurate.queries import Queryable

MOST_LEVELS = 32
"""Blocks of two columns have (r - 1)^2 coordinates; beyond this their covariances fill the memory."""
PLENTY = 1e4
"""More zCDP than this buys nothing: the noise is far below one row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOnce:
    """The default: contrasts once, a second look where it pays, and a search that knows the noise."""

    constants: Constants = field(default_factory=Constants)

    def fit(self, queryable: Queryable, knowledge: Knowledge | None = None) -> Learned:
        """Learn with all that is left of the budget."""
        levels, names = _levels(queryable), queryable.schema.names
        if knowledge is not None:
            knowledge.check(names)
        constraints = Constraints.of(names, knowledge)
        decision, purchases = self._learn(queryable, levels, constraints)
        skeleton = skeleton_of(names, constraints, decision)
        evidence = evidence_of(names, constraints, decision, skeleton)
        return Learned(
            orient(skeleton, knowledge),
            skeleton,
            confidence={frozenset(e.pair): e.value for e in evidence if e.value is not None},
            evidence=evidence,
            tests=tuple(len(p.answers) for p in purchases),
            leaked=tuple(p.cost for p in purchases),
        )

    def _learn(
        self, queryable: Queryable, levels: list[int], constraints: Constraints
    ) -> tuple[Decision, list[Purchase]]:
        """Two releases and a search; the second is chosen from what the first one's noised answers say."""
        random, budget = Random(0), min(queryable.remaining, PLENTY)  # a fixed stream: a run can be repeated
        weights = first_weights(levels, constraints.pairs, self.constants.skew)
        purchases = [buy(queryable, weights, (1 - self.constants.share_later) * budget)]
        released = Released.nothing(levels).merged(purchases[0].answers)
        wanted, orders = self._second(released, weights, constraints, random)
        if wanted:
            purchases.append(buy(queryable, wanted, self.constants.share_later * budget))
            released = released.merged(purchases[1].answers)
        return decide(self._families(released, constraints), random, orders), purchases

    def _second(
        self, released: Released, weights: Weights, constraints: Constraints, random: Random
    ) -> tuple[Weights, list[tuple[int, ...]]]:
        """What to buy with the rest, and orders to start from: the pairs again as long as their noise rules."""
        had_all_gone_to_pairs = (1 - self.constants.share_later) * noise_over_sampling(released)
        if had_all_gone_to_pairs > self.constants.later_from:
            return weights, []
        families = self._families(released, constraints)
        first_look = scout(families, random)
        return second_weights(first_look, families.evidence, weights, self.constants), [first_look.order]

    def _families(self, released: Released, constraints: Constraints) -> FamilySearch:
        evidence = ContrastEvidence(CentralMoments.of(released), self.constants)
        return FamilySearch.of(evidence, constraints, self.constants)


def _levels(queryable: Queryable) -> list[int]:
    columns = queryable.schema.columns
    if len(columns) < 2:
        raise RequestError(f"a graph needs at least two columns, the schema has {len(columns)}")
    queryable.schema.check_levels(queryable.schema.names, "this method")
    for column in columns:
        if column.size > MOST_LEVELS:
            raise RequestError(
                f"column {column.name!r} has {column.size} levels, and this method takes at most {MOST_LEVELS}: "
                "declare fewer levels or bins, or use method='em-pc'"
            )
    return [column.size for column in columns]
