"""Evidence from one noised covariance of features: partial covariances against a null that knows their noise.

The block of a and b left after regression on S has, under independence, the covariance of sampling and of the
release's noise. In coordinates in which both columns' residuals are white and their noise is uncorrelated its
entries are independent, and each tells how likely an effect is beside noise alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from dpcurate._typing import BoolArray, FloatArray, IntArray
from dpcurate.learn.measure_once.blocks import Columns
from dpcurate.learn.measure_once.constants import (
    CLOSEST,
    LEAST_EIGENVALUE,
    LEAST_RESIDUAL,
    MISSED_AT_LEAST,
    MOST_DECORRELATED,
    NORMAL_SPREAD,
    WEAK_CORRELATION,
    FeatureConstants,
)
from dpcurate.learn.measure_once.evidence import DependenceEvidence
from dpcurate.learn.measure_once.feature_release import FeatureCovariance


class FeatureEvidence(DependenceEvidence):
    """Log Bayes factors of dependence from one noised covariance of features.

    Which features of two numbers depend on each other is not known: the first two alone, those and the curved ones of
    the other column, or all. The evidence is the mean over these.
    """

    least_separation: float = 0.0

    def __init__(
        self, released: FeatureCovariance, effect_sizes: tuple[float, ...], constants: FeatureConstants
    ) -> None:
        self._released, self._effects, self._constants = released, np.array(effect_sizes), constants
        self._blocks = [np.arange(*block) for block in released.blocks]
        self._smooth = smoothed(released)
        self._roots = [_root(self._smooth[np.ix_(block, block)]) for block in self._blocks]
        alike: dict[tuple[int, int], list[int]] = defaultdict(list)
        for column, block in enumerate(self._blocks):
            alike[len(block), released.curved[column]].append(column)
        self._alike = {shape: np.array(columns) for shape, columns in alike.items()}
        self.measured: BoolArray = ~np.eye(len(self._blocks), dtype=bool)

    def without_misfit(self, *weaker: float) -> FeatureEvidence:
        """See DependenceEvidence; what curved features and products miss stays, as no graph explains it."""
        less = replace(self._constants, misfit=MISSED_AT_LEAST)
        return FeatureEvidence(self._released, (*weaker, *self._effects.tolist()), less)

    def weak(self) -> BoolArray:
        """Numbers with a weak correlation of scores, unless their spreads depend on each other as normal ones do.

        Two columns that are products of the same two, with noise, correlate weakly, and their spreads strongly.
        """
        released = self._released
        scores, noise = self._correlations([start for start, _ in released.blocks])
        # the first wave turns once: how far a value lies from the middle
        waves, more = self._correlations(
            [end - max(k, 1) for (_, end), k in zip(released.blocks, released.curved, strict=True)]
        )
        bent = np.array(released.curved) > 0
        normal = (waves < NORMAL_SPREAD * scores**2 - 2 * more) & bent & bent[:, None]
        numbers = np.array(
            [k > 0 or end - start == 1 for (start, end), k in zip(released.blocks, released.curved, strict=True)]
        ) & ~np.array(released.complete)
        seen = (np.abs(scores) > 3 * noise) & (np.abs(scores) < WEAK_CORRELATION)
        return np.asarray(seen & ~normal & numbers & numbers[:, None] & self.measured)

    def _correlations(self, features: list[int]) -> tuple[FloatArray, FloatArray]:
        """Of one feature of each column, with the standard deviation of noise and sampling."""
        c = self._released.covariance[np.ix_(features, features)]
        lengths = np.sqrt(np.maximum(np.diagonal(c), LEAST_RESIDUAL))
        scale = np.outer(lengths, lengths)
        return c / scale, np.sqrt(self._released.noise / scale**2 + 1 / self._released.rows)

    def row(self, column: int, given: Columns) -> FloatArray:
        """See DependenceEvidence."""
        return self._row(column, given, self._alike)

    def one(self, column: int, other: int, given: Columns) -> float:
        """See DependenceEvidence."""
        shape = len(self._blocks[other]), self._released.curved[other]
        return float(self._row(column, given, {shape: np.array([other])})[other])

    def _row(self, column: int, given: Columns, alike: dict[tuple[int, int], IntArray]) -> FloatArray:
        """The evidence with some columns, those of like features together; 0 for the others."""
        row = np.zeros(len(self._blocks))
        after, b = _Regressed.on(self._released, self._smooth, [self._blocks[s] for s in given]), self._blocks[column]
        bent = self._released.curved[column]
        right = after.white(b[None, :], bent)
        left_over, effects = after.residual(b), self._effects_of(given, after, b[None, :], right[0])
        for (_, curved), columns in alike.items():
            others = columns[~np.isin(columns, (column, *given))]
            if len(others):
                places = np.array([self._blocks[a] for a in others])
                left = after.white(places, curved)
                values, variance = after.compared(places, b, left_over, left, right)
                of_others = self._effects_of(given, after, places, left[0])
                missed = self._missed(given, (of_others, curved), (effects, bent))
                row[others] = self._evidence(values, variance + missed, curved, bent)
        return row

    def _effects_of(self, given: Columns, after: _Regressed, places: IntArray, white: FloatArray) -> FloatArray:
        """(members, columns, coordinates): the variance that each member explains, in units of what is left."""
        if not given:
            return np.zeros((0, len(places), places.shape[1]))
        slopes = np.split(after.slopes[:, places], np.cumsum([len(self._blocks[s]) for s in given])[:-1])
        roots = [self._roots[s] for s in given]
        explained = [
            ((root @ (w.transpose(1, 0, 2) @ white)) ** 2).sum(axis=1) for root, w in zip(roots, slopes, strict=True)
        ]
        return np.asarray(np.minimum(np.array(explained), self._constants.most_effect))

    def _missed(
        self, given: Columns, left: tuple[FloatArray, int], right: tuple[FloatArray, int]
    ) -> FloatArray | float:
        """Variance of what regression may have missed of each coordinate, see `log_linear.py`.

        Of a member whose features do not tell all its places apart, what both columns owe to it; of two members,
        what both columns may owe to their product. A score is nearly a sum, a curved feature or a level is not.
        """
        if not given:
            return 0.0
        constants, (a, b) = self._constants, (left[0], right[0][:, 0])
        bends = np.array([not self._released.complete[s] for s in given], dtype=np.float64)
        missed = constants.bends**2 * np.einsum("s,sai,sj->aij", bends, a, b)
        if bends.any():
            missed += constants.misfit**2 / math.sqrt(a.shape[2] * b.shape[1])
        share_a, share_b = (self._shares_of_products(x.shape[-1], curved) for x, (_, curved) in ((a, left), (b, right)))
        spread_a, spread_b = _spreads(a, left[1]), _spreads(b[:, None], right[1])
        for s, t in combinations(range(len(given)), 2):
            one, other = np.minimum(a[s], a[t]) * share_a, np.minimum(b[s], b[t]) * share_b
            one = np.maximum(one, _of_spreads(spread_a[s], spread_a[t], one.shape[-1], left[1]))
            other = np.maximum(other, _of_spreads(spread_b[s], spread_b[t], len(other), right[1])[0])
            missed += one[:, :, None] * other[None, None, :]
        return np.asarray(missed)

    def _shares_of_products(self, size: int, curved: int) -> FloatArray:
        share, of_scores = self._constants.products, self._constants.products_of_scores
        return np.where(np.arange(size) < size - curved, of_scores if curved else share, share) ** 2

    def _evidence(self, values: FloatArray, variance: FloatArray, curved: int, bent: int) -> FloatArray:
        """For each pair: the log of how much likelier the values of its coordinates are with an effect."""
        sampling = 1 / self._released.rows
        variance = variance + sampling
        # a likelihood ratio of correlations as far as variance is sampling error; privacy noise adds to their squares
        share = sampling / variance
        strength = -np.log1p(-np.minimum(share * values**2, CLOSEST)) / sampling
        ratios = self._effects[:, None, None, None] ** 2 / variance
        each = 0.5 * strength * ratios / (1 + ratios) - 0.5 * np.log1p(ratios)
        straight, other = values.shape[1] - curved, values.shape[2] - bent
        logs = [each[:, :, :straight, :other].sum(axis=(2, 3))]
        if curved or bent:
            every = each.sum(axis=(2, 3))
            logs.append(every - each[:, :, straight:, other:].sum(axis=(2, 3)))
            if curved and bent:
                logs.append(every)
        stacked = np.concatenate(logs)
        top = stacked.max(axis=0)
        return np.asarray(top + np.log(np.exp(stacked - top).mean(axis=0)))


def _spreads(effects: FloatArray, curved: int) -> FloatArray:
    """(members, columns): how far the spread of each column depends on a member beyond what its mean does."""
    if not curved:
        return np.zeros(effects.shape[:2])
    return np.asarray(np.maximum(effects[..., -curved:].sum(axis=2) - effects[..., :-curved].sum(axis=2), 0.0))


def _of_spreads(one: FloatArray, other: FloatArray, size: int, curved: int) -> FloatArray:
    """(columns, coordinates): the variance of a score that is a product of two members, each of which moves its spread.

    A column is x y + noise, and x y has the share r of its variance: then the square of x explains about r^2 / 4 of
    the square of the column.
    """
    share = np.minimum(2 * np.sqrt(np.minimum(one, other)), 1.0)
    return np.asarray(share[:, None] * (np.arange(size) < size - curved))


@dataclass(frozen=True, slots=True)
class _Regressed:
    """All features after regression on those of a set of columns, which stand at `fixed`."""

    released: FeatureCovariance
    smooth: FloatArray
    fixed: IntArray
    slopes: FloatArray

    @classmethod
    def on(cls, released: FeatureCovariance, smooth: FloatArray, given: list[IntArray]) -> _Regressed:
        fixed = np.concatenate([np.arange(0), *given]).astype(np.int64)
        slopes = np.linalg.solve(smooth[np.ix_(fixed, fixed)], smooth[fixed])
        return cls(released, smooth, fixed, np.asarray(slopes, dtype=np.float64))

    def residual(self, b: IntArray) -> FloatArray:
        """The covariance of every feature with those of b, as released."""
        c = self.released.covariance
        of_b = c[:, b] - c[:, self.fixed] @ self.slopes[:, b]
        return np.asarray(of_b - self.slopes.T @ of_b[self.fixed])

    def white(self, places: IntArray, curved: int) -> tuple[FloatArray, FloatArray]:
        """For a stack of columns: coordinates in which what is left of them is white, and its noise in each.

        Of few features the noise is made uncorrelated too. Waves come last and are only mixed with what stands
        before them; so are long lists of levels, which is much faster.
        """
        size = places.shape[1]
        whole = self.smooth[places[:, :, None], places[:, None, :]]
        w = self.slopes[:, places].transpose(1, 0, 2)
        left = whole - w.swapaxes(1, 2) @ self.smooth[self.fixed[None, :, None], places[:, None, :]]
        gram = np.eye(size) + w.swapaxes(1, 2) @ w
        floor = LEAST_RESIDUAL * np.trace(whole, axis1=1, axis2=2)[:, None] / size
        if size == 1:
            variance = np.maximum(left, floor[:, :, None])
            return 1 / np.sqrt(variance), (gram / variance)[:, :, 0]
        if curved or size > MOST_DECORRELATED:
            white: FloatArray = np.asarray(np.linalg.inv(_lower(left, floor)), dtype=np.float64).swapaxes(1, 2)
            return white, ((white.swapaxes(1, 2) @ gram) * white.swapaxes(1, 2)).sum(axis=2)
        values, axes = np.linalg.eigh(left)
        white = axes / np.sqrt(np.maximum(values, floor))[:, None, :]
        noise, turn = np.linalg.eigh(white.swapaxes(1, 2) @ gram @ white)
        return white @ turn, noise

    def compared(
        self,
        places: IntArray,
        b: IntArray,
        left_over: FloatArray,
        left: tuple[FloatArray, FloatArray],
        right: tuple[FloatArray, FloatArray],
    ) -> tuple[FloatArray, FloatArray]:
        """What is left of a stack of columns with b, in white coordinates, and the variance of its privacy noise."""
        turned, axes_b, noise_b = left[0].swapaxes(1, 2), right[0][0], right[1][0]
        values = turned @ left_over[places] @ axes_b
        shared = turned @ self.slopes[:, places].transpose(1, 2, 0) @ self.slopes[:, b] @ axes_b
        return values, self.released.noise * (left[1][:, :, None] * noise_b + shared**2)


def _root(covariance: FloatArray) -> FloatArray:
    """R with R' R = covariance."""
    values, axes = np.linalg.eigh(covariance)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * axes.T)


def _lower(left: FloatArray, floor: FloatArray) -> FloatArray:
    """Cholesky factors of a stack; where rounding has made one indefinite, of what is nearest."""
    try:
        return np.asarray(np.linalg.cholesky(left + floor[:, :, None] * np.eye(left.shape[1])))
    except np.linalg.LinAlgError:
        values, axes = np.linalg.eigh(left)
        raised = (axes * np.maximum(values, floor)[:, None, :]) @ axes.swapaxes(1, 2)
        return np.asarray(np.linalg.cholesky(raised + floor[:, :, None] * np.eye(left.shape[1])))


def smoothed(released: FeatureCovariance) -> FloatArray:
    """A covariance to regress with: what stands out of the noise, and never singular."""
    blocks = [slice(*block) for block in released.blocks]
    inside = [_within(released, i) for i in range(len(blocks))]
    white = np.zeros_like(released.covariance)
    for block, within in zip(blocks, inside, strict=True):
        values, axes = np.linalg.eigh(within)
        white[block, block] = (axes / np.sqrt(values)) @ axes.T
    correlation = white @ released.covariance @ white
    lengths = np.concatenate([np.sum(white[block, block] ** 2, axis=0) for block in blocks])
    parts = [_parts(block, curved) for block, curved in zip(blocks, released.curved, strict=True)]
    for i, a in enumerate(blocks):
        for j, b in enumerate(blocks[:i]):
            for one, other in product(parts[i], parts[j]):
                part = correlation[one, other]
                noise = released.noise * lengths[one].sum() * lengths[other].sum() + part.size / released.rows
                part *= max(0.0, 1 - noise / max(float(np.sum(part**2)), 1e-300))
            squares = max(float(np.sum(correlation[a, b] ** 2)), 1e-300)
            largest = CLOSEST * min(inside[i].shape[0], inside[j].shape[0])  # of canonical correlations, squared
            correlation[a, b] *= min(1.0, math.sqrt(largest / squares))
            correlation[b, a] = correlation[a, b].T
        correlation[a, a] = np.eye(len(inside[i]))
    return _unwhitened(_positive(correlation, blocks), inside, blocks)


def _parts(block: slice, curved: int) -> list[slice]:
    """A column's first features, and its waves, which are shorter: noise hides these sooner."""
    middle = block.stop - curved
    return [slice(block.start, middle), slice(middle, block.stop)] if curved else [block]


def _within(released: FeatureCovariance, column: int) -> FloatArray:
    """The covariance within a column: as its distribution has it, scaled, unless what was released says otherwise."""
    block = slice(*released.blocks[column])
    observed, size = released.covariance[block, block], len(released.known[column])
    known = released.known[column] + LEAST_RESIDUAL * np.eye(size)
    scaled = known * max(float(np.trace(observed) / np.trace(known)), 0.05)
    apart = observed - scaled
    kept = max(0.0, 1 - released.noise * size * (size + 1) / max(float(np.sum(apart**2)), 1e-300))
    values, axes = np.linalg.eigh(scaled + kept * apart)
    return np.asarray((axes * np.maximum(values, LEAST_RESIDUAL * np.trace(scaled) / size)) @ axes.T)


def _positive(correlation: FloatArray, blocks: list[slice]) -> FloatArray:
    """The matrix with its eigenvalues raised, and every column's own block made the identity again."""
    values, axes = np.linalg.eigh(correlation)
    if values[0] >= LEAST_EIGENVALUE:
        return correlation
    raised = (axes * np.maximum(values, LEAST_EIGENVALUE)) @ axes.T
    back = np.zeros_like(raised)
    for block in blocks:
        own, turn = np.linalg.eigh(raised[block, block])
        back[block, block] = (turn / np.sqrt(own)) @ turn.T
    return np.asarray(back @ raised @ back)


def _unwhitened(correlation: FloatArray, inside: list[FloatArray], blocks: list[slice]) -> FloatArray:
    roots = np.zeros_like(correlation)
    for block, within in zip(blocks, inside, strict=True):
        values, axes = np.linalg.eigh(within)
        roots[block, block] = (axes * np.sqrt(values)) @ axes.T
    return np.asarray(roots @ correlation @ roots)
