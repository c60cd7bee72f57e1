"""The releases of a table of levels: a plan of steps, each chosen from the answers to those before.

A step says which share of the budget it gets and which sets of columns it asks for. Both follow from what was released
so far, so one loop runs any plan, and the privacy filter covers it whatever is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import prod
from random import Random

import numpy as np

from dpcurate._typing import BoolArray
from dpcurate.learn.measure_once.arrows import Interaction, adjacency, directed, weighed
from dpcurate.learn.measure_once.blocks import Columns, sorted_set, subsets
from dpcurate.learn.measure_once.central_moments import CentralMoments, Margin, Released
from dpcurate.learn.measure_once.confidence import linked_probabilities, weakest_odds
from dpcurate.learn.measure_once.constants import (
    DEVIATIONS,
    DIFFERS,
    EVEN,
    LARGEST,
    MOST_DIFFERENT,
    ROWS_A_CELL,
    UNSETTLED,
    UNSURE,
    Constants,
)
from dpcurate.learn.measure_once.constraints import Constraints
from dpcurate.learn.measure_once.contrast_evidence import ContrastEvidence
from dpcurate.learn.measure_once.decide import Decision, scout
from dpcurate.learn.measure_once.family_search import FamilySearch
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

# Columns that repeat another one under other names: no data tell whose links are whose.
#
# All that one of the two says of a third column the other says, too. A search that has both draws some links at one of
# them and some at the other, as noise has it, and regressions on one column twice go astray. So the first of the two in
# the schema stands for both, unless background knowledge puts the other first: a copy is written after its original.


def copies(moments: CentralMoments, constraints: Constraints) -> dict[int, int]:
    """For each column that repeats another one, the one that stands for both."""
    found: dict[int, int] = {}
    usual = [float(margin.probabilities.max()) for margin in moments.margins]
    for a, b in combinations(range(len(usual)), 2):
        rare = 1 - max(usual[a], usual[b])
        if abs(usual[a] - usual[b]) > MOST_DIFFERENT * rare:  # most pairs: rows differ by that alone
            continue
        if found.keys().isdisjoint((a, b)) and moments.measured(a, b) and _same(moments, a, b):
            first, copy = (a, b) if constraints.allowed[a, b] else (b, a)
            if copy not in found.values() and not constraints.required[copy].any():
                found[copy] = first
    return found


def _same(moments: CentralMoments, a: int, b: int) -> bool:
    """Whether nearly all rows of a level of one have the same level of the other, as far as noise lets it be seen."""
    one, other, block = moments.margins[a], moments.margins[b], moments.blocks[a, b]
    rare = 1 - max(one.probabilities.max(), other.probabilities.max())
    largest = max(moments.levels[a], moments.levels[b])
    of_cells = largest * block.noise * _cell_share(one) * _cell_share(other)  # one for each level, margins cancel
    most = DIFFERS * rare + DEVIATIONS * np.sqrt(of_cells + moments.count_noise)
    table = np.outer(one.probabilities, other.probabilities) + one.basis @ block.observed @ other.basis.T
    alike = min(table.max(axis=0).sum(), table.max(axis=1).sum())
    return bool(abs(1 - alike) < most < MOST_DIFFERENT * rare)  # far above 1, margins and pair do not go together


def _cell_share(margin: Margin) -> float:
    """What a level has, on average, of the noise of the coordinates."""
    return float(np.trace(margin.basis @ margin.shape @ margin.basis.T)) / len(margin.basis)


# What is bought last where noise is larger: the few contrasts that decide what two releases have left in doubt.
#
# The first release holds every pair and the second hundreds of sets; whether an edge is there and which way round it is
# hangs on a few of them. A release of these few has little noise for a small share of the budget.


def sets_in_doubt(look: Decision, families: FamilySearch, interaction: Interaction) -> list[Columns]:
    """Pairs and triples of the columns that decide each doubtful pair and each doubtful collider."""
    adjacent, measured = adjacency(look, families.constraints), families.evidence.measured
    deciding = *_sets_of_pairs(look, families, adjacent), *_of_colliders(look, families, adjacent, interaction)
    sets = {u for columns in deciding for size in (2, 3) for u in combinations(columns, size)}
    return sorted(u for u in sets if all(measured[pair] for pair in combinations(u, 2)))


def _sets_of_pairs(look: Decision, families: FamilySearch, adjacent: BoolArray) -> Iterator[Columns]:
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


# What is bought last, where noise is small: all contrasts of the families still possible, for saturated regressions.
#
# With pairs and triples alone a regression on three columns lacks terms, and what they would have explained looks like
# an edge; the less noise there is, the surer. The contrasts of all subsets of a column and its neighbours hold every
# term of every regression by which an edge of that column can be explained away.


def family_sets(decision: Decision, evidence: ContrastEvidence, linked: BoolArray) -> list[Columns]:
    """Sets not yet released, of columns that are or may be neighbours and of pairs that lack terms."""
    moments = evidence.moments
    wanted = {*_of_neighbours(linked), *_of_pairs(decision, evidence)}
    most = moments.rows / ROWS_A_CELL
    return sorted(
        u
        for u in wanted
        if u not in moments.blocks
        and prod(moments.levels[a] for a in u) <= most
        and all(moments.measured(*pair) for pair in combinations(u, 2))
    )


def _of_neighbours(linked: BoolArray) -> Iterator[Columns]:
    """Subsets of every column with its neighbours."""
    for column, around in enumerate(linked):
        members = sorted_set(column, *(int(x) for x in np.flatnonzero(around)))
        for size in range(3, LARGEST + 1):
            yield from combinations(members, size)


def _of_pairs(decision: Decision, evidence: ContrastEvidence) -> Iterator[Columns]:
    """Terms of the regressions by which the parents of a column should explain its other dependences, and do not."""
    for column, parents in enumerate(decision.parents):
        if len(parents) > 1:
            row = evidence.row(column, parents)  # 0 for the column itself, whose terms are needed too
            for x in (int(x) for x in np.flatnonzero(row > UNSETTLED)):
                yield from (sorted_set(x, *u) for u in subsets(parents) if len(u) > 1 and x not in u)


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
class ReleaseStep:
    """One release: its share of the budget and the sets it asks for, with the order that looking at them found."""

    name: str
    share: Callable[[Known], float]
    choose: Callable[[Known], tuple[Weights, tuple[int, ...]]]


def run(plan: Sequence[ReleaseStep], queryable: Queryable, known: Known, budget: float) -> Known:
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
        if step is ALL_AT_ONCE:
            known = replace(known, noise=noise_over_sampling(known.released))
            _, families = known.searched()
            known = replace(known, order=scout(families, known.random).order)
        elif step is EVERY_PAIR:
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


def planned_weights(known: Known) -> Weights:
    """The count, the margins, every pair and every triple that may matter, before anything is known of the rows.

    A triple matters if all its pairs may be linked or depend on each other, which is all that is public.
    """
    pairs = {columns for columns in known.weights if len(columns) == 2}
    columns = range(len(known.released.levels))
    triples = [u for u in combinations(columns, 3) if all(pair in pairs for pair in combinations(u, 2))]
    return known.weights | dict.fromkeys(triples, known.constants.planned_triples)


EVERY_PAIR = ReleaseStep("every pair", lambda k: 1 - k.constants.share_later, lambda k: (k.weights, ()))
DECIDING = ReleaseStep("deciding sets", lambda k: k.constants.share_later * (1 - k.last_share), _deciding)
DOUBTFUL = ReleaseStep("doubts or families", lambda k: k.constants.share_later * k.last_share, _doubtful)
ALL_AT_ONCE = ReleaseStep("pairs and triples", lambda _: 1.0, lambda k: (planned_weights(k), ()))
CONTRASTS = (EVERY_PAIR, DECIDING, DOUBTFUL)
"""The plan of the default for tables of levels."""
PLANNED = (ALL_AT_ONCE,)
"""One release, for whom asking again is dear."""


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
