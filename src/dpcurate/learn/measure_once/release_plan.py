"""The releases of a table of levels: a plan of steps, each chosen from the answers to those before.

A step says which share of the budget it gets and which sets of columns it asks for. Both follow from what was released
so far, so one loop runs any plan, and the privacy filter covers it whatever is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from dpcurate.learn.measure_once.arrows import directed
from dpcurate.learn.measure_once.constants import Constants
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.contrast_evidence import ContrastEvidence
from dpcurate.learn.measure_once.copies import copies
from dpcurate.learn.measure_once.decide import scout
from dpcurate.learn.measure_once.doubts import sets_in_doubt
from dpcurate.learn.measure_once.families import family_sets
from dpcurate.learn.measure_once.family_search import FamilySearch
from dpcurate.learn.measure_once.moments import CentralMoments, Released
from dpcurate.learn.measure_once.prune import pruned
from dpcurate.learn.measure_once.release import (
    Purchase,
    Weights,
    buy,
    links,
    noise_over_sampling,
    offered,
    second_weights,
    with_margins,
)
from dpcurate.queries import Queryable


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known between two releases."""

    constants: Constants
    constraints: Constraints
    random: Random
    pure: bool
    """Whether the noise is Laplace noise."""
    weights: Weights
    """Of the row count, the margins and every pair."""
    released: Released
    purchases: tuple[Purchase, ...] = ()
    noise: float = 0.0
    """Of a typical pair over its sampling variance, after the release of every pair."""
    loud: bool = False
    """Whether that noise would hide what triples explain even if all of the budget had gone to pairs."""
    order: tuple[int, ...] = ()
    """The best order so far; none until a look at the answers has paid."""
    repeatable: Weights = field(default_factory=dict)
    """What the last step after the first asked for: bought again where nothing is in doubt."""

    @property
    def quiet(self) -> bool:
        """Whether there is so little noise that whole families can be measured."""
        return self.noise < self.constants.families_from

    @property
    def last_share(self) -> float:
        """What the third release gets of the budget for later ones.

        Laplace noise of two releases is more than that of one: half as many sets for a small share would be noisier.
        """
        if self.loud:
            return 0.0
        if self.quiet:
            return self.constants.share_families
        return 0.0 if self.pure else self.constants.share_doubts

    def searched(self) -> tuple[ContrastEvidence, FamilySearch]:
        """The evidence of what was released, and a search over it."""
        return searched(CentralMoments.of(self.released), self.constraints, self.constants)


@dataclass(frozen=True, slots=True)
class Step:
    """One release: its share of the budget and the sets it asks for, with the order that looking at them found."""

    name: str
    share: Callable[[Known], float]
    choose: Callable[[Known], tuple[Weights, tuple[int, ...]]]


def run(plan: Sequence[Step], queryable: Queryable, known: Known, budget: float) -> Known:
    """Release step by step; a step without a share, or with nothing to ask for, is left out."""
    for step in plan:
        share = step.share(known)
        if share == 0:
            continue
        chosen, order = step.choose(known)
        # Less noise serves effects and tables, too.
        if sets := offered(queryable, chosen) or offered(queryable, known.repeatable):
            purchase = buy(queryable, sets, share * budget)
            known = replace(
                known, released=known.released.merged(purchase.answers), purchases=(*known.purchases, purchase)
            )
        if step is EVERY_PAIR:
            noise = noise_over_sampling(known.released)
            loud = is_loud(known.released, (1 - known.constants.share_later) * noise, known.constants)
            known = replace(known, noise=noise, loud=loud)
        else:
            known = replace(known, order=order, repeatable=chosen)
    return known


def _deciding(known: Known) -> tuple[Weights, tuple[int, ...]]:
    """The sets that decide between graphs still possible; the pairs again as long as their noise rules."""
    if known.loud:
        return known.weights, ()
    evidence, families = known.searched()
    look = scout(families, known.random)
    return second_weights(look, evidence, known.weights, known.constants, known.noise), look.order


def _doubtful(known: Known) -> tuple[Weights, tuple[int, ...]]:
    """What decides the doubts that are left, or where there is little noise the families still possible."""
    evidence, families = known.searched()
    look = pruned(scout(families, known.random, [known.order]), evidence, known.constraints)
    if known.quiet:
        sets = family_sets(look, evidence, links(look, evidence, known.constants.maybe))
        return dict.fromkeys(sets, 1.0), look.order
    look = directed(look, families, evidence.interactions, known.random)
    doubtful = sets_in_doubt(look, families, evidence.interactions)
    return with_margins(dict.fromkeys(doubtful, 1.0), known.weights), look.order


EVERY_PAIR = Step("every pair", lambda k: 1 - k.constants.share_later, lambda k: (k.weights, ()))
DECIDING = Step("deciding sets", lambda k: k.constants.share_later * (1 - k.last_share), _deciding)
DOUBTFUL = Step("doubts or families", lambda k: k.constants.share_later * k.last_share, _doubtful)
CONTRASTS = (EVERY_PAIR, DECIDING, DOUBTFUL)
"""The plan of the default for tables of levels."""


def is_loud(released: Released, noise: float, constants: Constants) -> bool:
    """Whether so much noise over sampling variance hides what triples would explain."""
    return noise > constants.later_from * max(1.0, constants.misfit**2 * released.rows)


def searched(
    moments: CentralMoments, constraints: Constraints, constants: Constants
) -> tuple[ContrastEvidence, FamilySearch]:
    """Evidence and a search, of two columns that say the same without the links of the second."""
    repeated = copies(moments, constraints)
    evidence = ContrastEvidence(moments.without_links_of(repeated), constants)
    return evidence, FamilySearch.of(evidence, constraints.with_copies(repeated), constants)
