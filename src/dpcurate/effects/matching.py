"""Parameters of a simulated table that would have released what was released, and their errors.

The simulated means, products and shares are matched to the released ones by generalised least squares (indirect
inference; Gourieroux, Monfort and Renault 1993). Weights are the inverse covariance of what was released: sampling, of
as many rows, and noise. Matched are the products within families; more of them than parameters, so that what is left
tells whether links are as they are taken to be.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpcurate._typing import FloatArray, IntArray
from dpcurate.effects.links import NormalLink
from dpcurate.effects.simulated import Simulator, even_numbers
from dpcurate.learn.measure_once.column_features import Distribution, Features
from dpcurate.learn.measure_once.feature_release import ReleasedFeatures
from dpcurate.queries import BRANCHES

MATCHING_ROUNDS = ((5, 1 << 14), (2, 1 << 16))
"""Rounds, and the rows that are simulated in each; of small tables fewer."""
FEWEST_SIMULATED = 1 << 14
LARGEST_MOVE = 1.0
"""No parameter moves further in one round."""
MEANS_WEIGHT = 0.025
"""The weight of means beside products, as a share of the squared length of rows (`feature_release`)."""
SOBOL_ERROR = 0.1
"""Errors of means over evenly spread rows, as a part of those over random rows."""
LEAST_EIGENVALUE = 1e-9
CLEAR_MISFIT = 4.0
"""A misfit counts if it lies so many of its standard deviations above 1."""
MOST_SIMULATED_NUMBERS = 20_000_000
"""Numbers that are held of simulated rows."""
STRETCHES = 10
"""Into so many stretches of about the same share a number's released distribution is cut, to be compared."""


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """What was released, and its noise; `pairs` are the features whose products count."""

    pairs: tuple[IntArray, IntArray]
    margins: tuple[MatchedMargin, ...]
    values: FloatArray
    noise: FloatArray
    """The covariance of the noise."""
    rows: float

    @classmethod
    def of(cls, released: ReleasedFeatures, simulator: Simulator) -> Targets:
        """What was released of the columns that are simulated."""
        first, second = _pairs(released, simulator)
        products = released.products
        values = [products.mean, products.products[first, second]]
        counted = np.concatenate(values)
        by_mean = products.noise / (MEANS_WEIGHT * released.clip.square)
        noise = [np.full(len(products.mean), by_mean), products.noise * np.where(first == second, 2.0, 1.0)]
        columns = zip(released.distributions, released.features, strict=True)
        margins = [MatchedMargin.of(known, features) for known, features in columns]
        values += [one.values for one in margins]
        noise += [one.noise for one in margins]
        total = np.diag(np.concatenate(noise))
        total[: len(counted), : len(counted)] += _count_noise(released) * np.outer(counted, counted)
        return cls((first, second), tuple(margins), np.concatenate(values), total, released.rows)

    def of_rows(self, simulator: Simulator, values: dict[str, object]) -> FloatArray:
        """The same of every simulated row."""
        shrunk = simulator.features(values)
        products = shrunk[:, self.pairs[0]] * shrunk[:, self.pairs[1]]
        places = [simulator.shown[name].places(values[name]) for name in simulator.names]
        margins = [one.table[at] for one, at in zip(self.margins, places, strict=True)]
        return np.column_stack([shrunk, products, *margins])


@dataclass(frozen=True, slots=True, eq=False)
class MatchedMargin:
    """What was released of one column's distribution: shares of its levels; of a number shares of stretches, and the
    mean and the square of its score.
    """

    table: FloatArray
    """(places, values): what each place adds."""
    values: FloatArray
    noise: FloatArray

    @classmethod
    def of(cls, known: Distribution, features: Features) -> MatchedMargin:
        """What is matched of one column by itself."""
        shares = known.shares
        if known.column.has_levels:
            return cls(np.eye(len(shares))[:, 1:], shares[1:], np.full(len(shares) - 1, known.noise**2))
        score = features.values[: len(shares), 0]
        powers = np.column_stack([score, score**2])
        coarse = powers.reshape(BRANCHES, -1, 2).mean(axis=1)
        parts, counts = _stretches(shares)
        table = np.column_stack([parts, powers])
        noise = known.noise**2 * np.concatenate([counts, (coarse**2).sum(axis=0)])
        return cls(table, shares @ table, noise)


def _stretches(shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Stretches of about the same share but the first: indicators of their places, and how many counts each has."""
    counted = len(shares) // BRANCHES**2
    middle = np.cumsum(shares.reshape(-1, counted).sum(axis=1)) - shares.reshape(-1, counted).sum(axis=1) / 2
    _, group, counts = np.unique(
        np.minimum((middle * STRETCHES).astype(np.intp), STRETCHES - 1), return_inverse=True, return_counts=True
    )
    parts = np.eye(len(counts))[np.repeat(group, counted)][:, 1:]
    return parts, counts[1:].astype(np.float64)


def _pairs(released: ReleasedFeatures, simulator: Simulator) -> tuple[IntArray, IntArray]:
    """Features of two columns of a family, and squares of scores."""
    blocks = dict(zip(simulator.names, released.products.blocks, strict=True))
    families = [(name, *simulator.dag.parents(name)) for name in simulator.names]
    joined = {frozenset(pair) for family in families for pair in combinations(family, 2)}
    found = [(a, a) for name, (a, _) in blocks.items() if isinstance(simulator.links[name], NormalLink)]
    for one, other in (sorted(pair) for pair in joined):
        found += [(i, j) for i in range(*blocks[one]) for j in range(*blocks[other])]
    both = np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _count_noise(released: ReleasedFeatures) -> float:
    """The variance of the released row count, over its square."""
    firsts = [len(one.shares) if one.column.has_levels else BRANCHES for one in released.distributions]
    noise = max(one.noise for one in released.distributions)
    return noise**2 * sum(firsts) / len(firsts) ** 2


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """Parameters, their covariance, and how far what was released lies from what they would release."""

    simulator: Simulator
    parameters: FloatArray
    covariance: FloatArray
    misfit: float
    """The squared distance in standard errors, over its expectation."""
    freedom: int
    """What was released beyond the parameters."""
    settled: float
    """The last move, in standard errors."""

    @property
    def widening(self) -> float:
        """What variances are multiplied by: the misfit, where it is clear (Birge 1932)."""
        clear = 1 + CLEAR_MISFIT * float(np.sqrt(2 / self.freedom))
        return self.misfit if self.misfit > clear else 1.0


def sizes(released: ReleasedFeatures, simulator: Simulator) -> tuple[int, int]:
    """How many values are matched, and by how many parameters."""
    margins = sum(len(k.shares) - 1 if k.column.has_levels else STRETCHES + 1 for k in released.distributions)
    return len(released.products.mean) + _pairs(released, simulator)[0].size + margins, simulator.size


def matched(released: ReleasedFeatures, simulator: Simulator, turn: int = 0) -> Matched:
    """By Gauss-Newton steps, all derivatives being means of scores."""
    targets = Targets.of(released, simulator)
    start, prior = simulator.together("start"), simulator.together("prior") ** -2.0
    parameters = start
    for rounds, count in MATCHING_ROUNDS:
        count = _fitting(count, targets.rows, len(targets.values) + len(start))
        even = even_numbers(count, len(simulator.names), turn)
        for _ in range(rounds):
            step = MatchingStep.of(targets, simulator, parameters, even)
            information = step.slopes.T @ step.weights @ step.slopes + np.diag(prior)
            covariance: FloatArray = np.asarray(np.linalg.inv(information), dtype=np.float64)
            move = covariance @ (step.slopes.T @ (step.weights @ step.left) - prior * (parameters - start))
            parameters = parameters + np.clip(move, -LARGEST_MOVE, LARGEST_MOVE)
    freedom = max(len(step.left) - len(start), 1)
    rest = step.left - step.slopes @ move
    settled = float(np.abs(move / np.sqrt(np.diagonal(covariance))).max())
    return Matched(simulator, parameters, covariance, float(rest @ step.weights @ rest) / freedom, freedom, settled)


def _fitting(count: int, rows: float, width: int) -> int:
    """A power of two: no more than a table of so many rows needs, nor than memory holds."""
    while count * width > MOST_SIMULATED_NUMBERS or (count > FEWEST_SIMULATED and count > 2 * rows):
        count //= 2
    return count


@dataclass(frozen=True, slots=True, eq=False)
class MatchingStep:
    """At some parameters: what is left to match, how it moves with them, and the inverse of its covariance."""

    left: FloatArray
    slopes: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, targets: Targets, simulator: Simulator, parameters: FloatArray, even: FloatArray) -> MatchingStep:
        """Moments of simulated rows and their slopes, beside the targets."""
        values = simulator.rows(parameters, even)
        seen = targets.of_rows(simulator, values)
        mean, slopes = means_and_slopes(seen, simulator.scores(parameters, values))
        seen -= mean
        sampled = seen.T @ seen / len(seen) * (1 / targets.rows + SOBOL_ERROR**2 / len(seen))
        return cls(targets.values - mean, slopes, _inverse(sampled + targets.noise))


def means_and_slopes(seen: FloatArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means over simulated rows, and how they move with parameters.

    Scores have mean 0; where those of the simulated rows do not, what they say of the means is taken out.
    """
    slopes = (seen - seen.mean(axis=0)).T @ scores / len(scores)
    within = scores.T @ scores / len(scores) + LEAST_EIGENVALUE * np.eye(scores.shape[1])
    return seen.mean(axis=0) - slopes @ np.linalg.solve(within, scores.mean(axis=0)), slopes


def _inverse(covariance: FloatArray) -> FloatArray:
    """What was released twice over has nearly no error of its own."""
    spread = np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
    values, axes = np.linalg.eigh(covariance / np.outer(spread, spread))
    return np.asarray((axes / np.maximum(values, LEAST_EIGENVALUE)) @ axes.T / np.outer(spread, spread))
