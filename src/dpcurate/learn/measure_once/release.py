"""What is bought: the weights of the first release, the sets of the second, and the buying."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from dpcurate._typing import BoolArray
from dpcurate.learn.measure_once.blocks import Columns, sorted_set
from dpcurate.learn.measure_once.central_moments import Answers, Margin, Released
from dpcurate.learn.measure_once.constants import LEAST_WEIGHT, Constants
from dpcurate.learn.measure_once.decide import Decision
from dpcurate.learn.measure_once.evidence import DependenceEvidence
from dpcurate.queries import Contrasts, Gaussian, Laplace, Offering, Queryable, Release

Weights = dict[Columns, float]
"""Sets of columns to release; a set of weight w gets noise of scale sigma / w."""


@dataclass(frozen=True, slots=True)
class Purchase:
    """One release: its answers and its cost."""

    answers: Answers
    cost: float


def buy(queryable: Queryable, weights: Weights, cost: float) -> Purchase:
    """One release of all the sets, for at most what is left."""
    names, cost = queryable.schema.names, min(cost, queryable.remaining)
    sets = tuple(tuple(names[a] for a in columns) for columns in weights)
    noise = Laplace(epsilon=cost) if queryable.budget.pure else Gaussian(rho=cost)
    answer = queryable.ask(Release(Contrasts(sets, tuple(weights.values())), noise))
    return Purchase(dict(zip(weights, zip(answer.parts, answer.scales, strict=True), strict=True)), cost)


def offered(queryable: Queryable, weights: Weights) -> Weights:
    """What can be bought of it: all, unless the queryable has some sets and can get no others."""
    if not isinstance(queryable, Offering):
        return weights
    names = queryable.schema.names
    there = set(queryable.offered([tuple(names[a] for a in columns) for columns in weights]))
    return {columns: w for columns, w in weights.items() if tuple(names[a] for a in columns) in there}


def first_weights(levels: Sequence[int], pairs: Sequence[Columns], skew: float) -> Weights:
    """The count, the margins and every allowed pair.

    The covariance of a pair carries the noise 1/w2^2 + 2 mu/w1^2 + mu^2/w0^2 (mu: squared length of a
    centred margin, on average `skew` of the largest possible) at the price P g^2 w2^2 + d g w1^2 + w0^2
    (P pairs, d columns, g the mean of (r - 1)/r over columns of r levels). With w2 = 1 these weights
    minimise noise times price (Cauchy-Schwarz).
    """
    columns = len(levels)
    g = sum((r - 1) / r for r in levels) / columns
    mu = skew * g
    margin = (2 * mu * len(pairs) * g / columns) ** 0.25
    count = (mu * mu * len(pairs) * g * g) ** 0.25
    singles = {(a,): max(margin, LEAST_WEIGHT) for a in range(columns)}
    return {(): max(count, LEAST_WEIGHT)} | singles | dict.fromkeys(pairs, 1.0)


def noise_over_sampling(released: Released) -> float:
    """Privacy noise of a typical pair as a multiple of its sampling variance."""
    return _typical(released, {u: v for u, v in released.variances.items() if len(u) == 2})


def noise_to_come(released: Released, margins: Weights, weights: Weights, cost: float) -> float:
    """The same if all of `weights` were bought for `cost` times what margins did; only for Gaussian noise."""
    one = next(iter(margins))
    unit = released.variances[one] * margins[one] ** 2 * _price(released, weights) / _price(released, margins) / cost
    return _typical(released, {u: unit / weight**2 for u, weight in weights.items() if len(u) == 2})


def _price(released: Released, weights: Weights) -> float:
    """The squared sensitivity of a release, up to a factor that does not depend on it."""
    return sum(weight**2 * prod(1 - 1 / released.levels[a] for a in u) for u, weight in weights.items())


def _typical(released: Released, variances: Mapping[Columns, float]) -> float:
    """The median over pairs, in coordinates of variance 1: what is rare is hard to see."""
    margins = [Margin.of(released, a) for a in range(len(released.levels))]
    spread = [float(np.exp(np.log(np.maximum(m.variances, 1 / released.rows)).mean())) for m in margins]
    ratios = [v / released.rows / (spread[a] * spread[b]) for (a, b), v in variances.items()]
    return float(np.median(ratios)) if ratios else 0.0


def second_weights(
    decision: Decision, evidence: DependenceEvidence, first: Weights, constants: Constants, noise: float
) -> Weights:
    """Triples that decide between graphs still possible, what is still open, and the pairs that separations rest on.

    `noise` is that of pairs over their sampling variance.
    """
    noisy = noise > 1 and len(evidence.measured) >= constants.wide
    again = constants.again_if_noisy if noisy else constants.again
    deciding = dict.fromkeys(triples(decision, evidence, constants.maybe), 1.0)
    return deciding | dependent(evidence, first, again) | still_open(decision, first, constants.open_from)


def triples(decision: Decision, evidence: DependenceEvidence, maybe: float) -> list[Columns]:
    """Two links in a row, or two parents of one column with a third column that depends on both."""
    linked = links(decision, evidence, maybe)
    near = [np.flatnonzero(row).tolist() for row in linked]
    chosen: set[Columns] = {
        sorted_set(a, b, between) for between, some in enumerate(near) for a, b in combinations(some, 2)
    }
    for parents in decision.parents:
        for a, b in combinations(parents, 2):
            both = (evidence.row(a, ()) > 0) & (evidence.row(b, ()) > 0)
            chosen |= {sorted_set(int(x), a, b) for x in np.flatnonzero(both) if x not in (a, b)}
    return sorted(t for t in chosen if _count(evidence.measured, t) == 3)


def links(decision: Decision, evidence: DependenceEvidence, maybe: float) -> BoolArray:
    """Pairs that are, or may yet be, edges."""
    linked = decision.probabilities > maybe
    for column, parents in enumerate(decision.parents):
        linked[list(parents), column] = linked[column, list(parents)] = True
    return np.asarray(linked & evidence.measured)


def _count(linked: BoolArray, triple: Columns) -> int:
    return sum(bool(linked[pair]) for pair in combinations(triple, 2))


def dependent(evidence: DependenceEvidence, first: Weights, again: float) -> Weights:
    """Pairs that depend on each other, at this share of their weight: what explains a dependence is made of others."""
    pairs = {(u[0], u[1]): w for u, w in first.items() if len(u) == 2}
    return {(a, b): again * w for (a, b), w in pairs.items() if evidence.row(a, ())[b] > 0}


def still_open(decision: Decision, first: Weights, open_from: float) -> Weights:
    """Pairs neither surely there nor surely not, with their margins and the count, weighted as before."""
    pairs = (u for u in first if len(u) == 2 and open_from < decision.probabilities[u] < 1 - open_from)
    return with_margins({u: first[u] for u in pairs}, first)


def with_margins(sets: Weights, first: Weights) -> Weights:
    """And the count and the margins of their columns, weighted as in the first release."""
    singles = sorted({(a,) for u in sets for a in u})
    return {u: first[u] for u in [*([()] if sets else []), *singles]} | sets
