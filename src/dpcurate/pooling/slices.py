"""From a query to several sites together to each site's own query, and from their answers to one.

With a site column, a row's level there is the site it lies at, so a site's answer is the slice of that level and no
site is asked about the column. What is joined is the answer of one table that has all rows and the column, with noise
at most as large as is stated. Proofs: docs/proofs/pooling.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np

from dpcurate._typing import FloatArray
from dpcurate.errors import QueryError
from dpcurate.queries import (
    LARGEST_FEATURE,
    Answer,
    Contrasts,
    Counts,
    FeatureMap,
    FeatureMoments,
    FeatureNorms,
    Gaussian,
    GaussianShare,
    Gradient,
    GradientNorms,
    Histograms,
    Laplace,
    Means,
    Moments,
    PairStatistic,
    Query,
    Release,
    Statistic,
    Tables,
)
from dpcurate.schema import Schema

Asked = tuple[Release, ...]
"""What one site is asked for one query."""


class Joint(Protocol):
    """One query to all sites: what each is asked, and the answers as one."""

    def asked(self, site: int) -> Asked:
        """The releases that stand for the query at this site; together they cost what the query does."""

    def joined(self, answers: Sequence[Sequence[Answer]]) -> Answer:
        """The pooled answer, from the answers of every site in order."""


@dataclass(frozen=True, slots=True)
class SiteNetwork:
    """What a joint query has to know: the pooled schema, its site column if there is one, and how many sites."""

    schema: Schema
    site: str | None
    sites: int

    @property
    def own(self) -> tuple[str, ...]:
        """The columns that every site has."""
        return tuple(name for name in self.schema.names if name != self.site)


def joint(query: Query[object], network: SiteNetwork) -> Joint:
    """How a query is asked of all sites; refused, before anybody is asked, if their answers cannot be joined."""
    if type(query) is not Release:
        raise QueryError(
            f"{type(query).__name__} picks by private scores of the rows of one table: several sites can answer "
            "releases of sums alone. Use a method made of these, such as 'auto'"
        )
    if cost_of(query) is None:
        raise QueryError("a pool asks by cost: use Gaussian(rho=) or Laplace(epsilon=), the same for every site")
    statistic = query.statistic
    if isinstance(statistic, PairStatistic):
        raise QueryError(
            f"{type(statistic).__name__} of all rows is not the sum of that of each site's rows: use a method that "
            "asks for sums alone, such as 'auto'"
        )
    if isinstance(statistic, (Counts, Tables, Contrasts)):
        return _Sets(query, network)
    if network.site is None or network.site not in columns_of(statistic):
        return _Sum(query)
    if isinstance(statistic, Histograms):
        return _Histograms(query, network)
    if isinstance(statistic, (FeatureMoments, FeatureNorms)):
        return _Features(query, network)
    if isinstance(statistic, Moments) and statistic.clip is None:
        return _Moments(query, network)
    raise QueryError(
        f"{type(statistic).__name__} with the column {network.site!r} cannot be put together from sites: pool them "
        "without it (site=None)"
    )


def cost_of(query: Release) -> float | None:
    """What a release costs, as its noise names it; None if it is named by its scale."""
    noise = query.noise
    amount = (
        noise.rho
        if isinstance(noise, Gaussian | GaussianShare)
        else noise.epsilon
        if isinstance(noise, Laplace)
        else None
    )
    return None if amount is None else float(amount)


def price_of(query: Release, *, pure: bool) -> float:
    """What a release costs at most in a budget's currency; infinite where that cannot pay for it."""
    cost = cost_of(query)
    gaussian = not isinstance(query.noise, Laplace)
    if cost is None or (pure and gaussian):
        return math.inf
    return cost if pure or gaussian else cost * cost / 2


def columns_of(statistic: Statistic) -> tuple[str, ...]:
    """Every column that a statistic names."""
    if isinstance(statistic, (Tables, Contrasts)):
        return tuple(dict.fromkeys(name for one in statistic.sets for name in one))
    if isinstance(statistic, PairStatistic):
        return statistic.x, statistic.y, *statistic.given
    assert isinstance(
        statistic, (Counts, Means, Moments, Gradient, GradientNorms, Histograms, FeatureMoments, FeatureNorms)
    )
    return statistic.columns


def together(scales: Sequence[float]) -> float:
    """The noise of a sum of independent numbers."""
    return math.sqrt(math.fsum(scale * scale for scale in scales))


def _even(scales: Sequence[float]) -> bool:
    return max(scales) <= min(scales) * (1 + 1e-9)


# --- statistics without the site column: answers and variances add up -----------------------------------------


@dataclass(frozen=True, slots=True)
class _Sum:
    query: Release

    def asked(self, site: int) -> Asked:
        return (self.query,)

    def joined(self, answers: Sequence[Sequence[Answer]]) -> Answer:
        return summed([answer for (answer,) in answers])


def summed(answers: Sequence[Answer]) -> Answer:
    """The sum of answers to one query, with the noise of a sum."""
    parts = tuple(np.sum(same, axis=0) for same in zip(*(answer.parts for answer in answers), strict=True))
    return Answer(parts, tuple(map(together, zip(*(answer.scales for answer in answers), strict=True))))


# --- sets of columns: a set with the site column is made of slices --------------------------------------------


@dataclass(frozen=True)
class _Sets:
    """Counts, tables and contrasts: each set without the site column is asked once, at the larger of two weights."""

    query: Release
    network: SiteNetwork

    @cached_property
    def _sets(self) -> tuple[tuple[str, ...], ...]:
        statistic = self.query.statistic
        assert isinstance(statistic, (Counts, Tables, Contrasts))
        return (statistic.columns,) if isinstance(statistic, Counts) else statistic.sets

    @cached_property
    def _own(self) -> dict[frozenset[str], tuple[tuple[str, ...], float]]:
        """What each site is asked: sets without the site column, by their members, with weights."""
        statistic = self.query.statistic
        weights = statistic.weights if isinstance(statistic, Contrasts) else (1.0,) * len(self._sets)
        own: dict[frozenset[str], tuple[tuple[str, ...], float]] = {}
        for one, weight in zip(self._sets, weights, strict=True):
            rest = tuple(name for name in one if name != self.network.site)
            known, heavier = own.get(frozenset(rest), (rest, 0.0))
            own[frozenset(rest)] = known, max(heavier, float(weight))
        return own

    @property
    def _sliced(self) -> bool:
        return any(self.network.site in one for one in self._sets)

    def asked(self, site: int) -> Asked:
        sets, weights = zip(*self._own.values(), strict=True)
        statistic = self.query.statistic
        if isinstance(statistic, Contrasts):
            return (replace(self.query, statistic=Contrasts(sets, weights)),)
        return (replace(self.query, statistic=Counts(*sets) if isinstance(statistic, Counts) else Tables(sets)),)

    def joined(self, answers: Sequence[Sequence[Answer]]) -> Answer:
        found = [answer for (answer,) in answers]
        places = {members: place for place, members in enumerate(self._own)}
        parts, scales = [], []
        for one in self._sets:
            rest = frozenset(name for name in one if name != self.network.site)
            place = places[rest]
            turned = [self._turned(answer.parts[place], one, self._own[rest][0]) for answer in found]
            spread = [answer.scales[place] for answer in found]
            parts.append(self._slices(turned, one) if self.network.site in one else np.sum(turned, axis=0))
            scales.append(self._scale(spread, sliced=self.network.site in one))
        return Answer(tuple(parts), tuple(scales))

    def _turned(self, part: FloatArray, wanted: tuple[str, ...], asked: tuple[str, ...]) -> FloatArray:
        order = [asked.index(name) for name in wanted if name != self.network.site]
        return np.transpose(part, order) if order else part

    def _slices(self, parts: Sequence[FloatArray], wanted: tuple[str, ...]) -> FloatArray:
        assert self.network.site is not None
        stacked = np.stack(parts, axis=wanted.index(self.network.site))
        if not isinstance(self.query.statistic, Contrasts):
            return stacked
        return np.asarray(stacked - stacked.mean(axis=wanted.index(self.network.site), keepdims=True))

    def _scale(self, spread: Sequence[float], *, sliced: bool) -> float:
        """Where sites have unequal noise, slices and sums are correlated: the largest site's noise covers both."""
        largest = max(spread)
        if sliced:
            return largest
        if self._sliced and isinstance(self.query.statistic, Contrasts) and not _even(spread):
            return math.sqrt(len(spread)) * largest
        return together(spread)


# --- histograms: the row count of each site is asked beside them ----------------------------------------------


@dataclass(frozen=True, slots=True)
class _Histograms:
    query: Release
    network: SiteNetwork

    @property
    def _statistic(self) -> Histograms:
        assert isinstance(self.query.statistic, Histograms)
        return self.query.statistic

    @property
    def _own(self) -> tuple[str, ...]:
        return tuple(name for name in self._statistic.columns if name != self.network.site)

    def _parts_of(self, name: str) -> int:
        return 1 if self.network.schema[name].has_levels else self._statistic.depth

    def asked(self, site: int) -> Asked:
        """The count costs what one part of the histograms does, so that its noise is that of each of them."""
        if not self._own:
            return (replace(self.query, statistic=Counts(())),)
        parts = sum(map(self._parts_of, self._own))
        cost = cost_of(self.query)
        assert cost is not None
        first = cost * (parts / (parts + 1))
        histograms = Release(Histograms(self._own, self._statistic.depth), self._noise(first))
        return histograms, Release(Counts(()), self._noise(cost - first))  # exact: first is above half of cost

    def _noise(self, cost: float) -> Gaussian | Laplace:
        return Gaussian(rho=cost) if isinstance(self.query.noise, Gaussian) else Laplace(epsilon=cost)

    def joined(self, answers: Sequence[Sequence[Answer]]) -> Answer:
        """All parts are stated with the noise of sums: who reads histograms takes the noise of one for that of all."""
        counts = np.array([float(one[-1].value) for one in answers])
        own = summed([one[0] for one in answers]) if self._own else None
        parts: list[FloatArray] = []
        rest = iter(own.parts if own else ())
        for name in self._statistic.columns:
            parts += [counts] if name == self.network.site else [next(rest) for _ in range(self._parts_of(name))]
        scales = [one[-1].scale for one in answers]
        widest = max(together(scales), *(own.scales if own else (0.0,)))
        return Answer(tuple(parts), (widest,) * len(parts))


# --- features: a constant as long as the site's own features stands for them ----------------------------------


@dataclass(frozen=True)
class _Features:
    """Moments and norms of features.

    The features t of a site's level are the same for all its rows. A constant feature c = |t|, added to the last column
    asked, makes every row as long as it is with the site column; its products with the others, times t / c, are those
    of the site column.
    """

    query: Release
    network: SiteNetwork

    @cached_property
    def _maps(self) -> tuple[FeatureMap, ...]:
        statistic = self.query.statistic
        assert isinstance(statistic, (FeatureMoments, FeatureNorms))
        return statistic.maps

    @cached_property
    def _own(self) -> tuple[FeatureMap, ...]:
        own = tuple(one for one in self._maps if one.column != self.network.site)
        if not own:
            raise QueryError(f"features of {self.network.site!r} alone cannot be asked of sites: ask for its counts")
        return own

    @cached_property
    def _levels(self) -> tuple[tuple[int, ...], ...]:
        """The features of each site's level."""
        (vectors,) = (one.vectors for one in self._maps if one.column == self.network.site)
        return vectors

    def _constant(self, site: int) -> int:
        """The feature that stands for those of the site's level: their length rounded up, as far as a feature goes."""
        squared = sum(x * x for x in self._levels[site])
        return min(math.isqrt(squared - 1) + 1, LARGEST_FEATURE) if squared else 0

    def asked(self, site: int) -> Asked:
        *others, last = self._own
        constant = self._constant(site)
        longer = FeatureMap(last.column, tuple((*vector, constant) for vector in last.vectors))
        statistic = self.query.statistic
        assert isinstance(statistic, (FeatureMoments, FeatureNorms))
        return (replace(self.query, statistic=replace(statistic, maps=(*others, longer))),)

    def joined(self, answers: Sequence[Sequence[Answer]]) -> Answer:
        found = [answer for (answer,) in answers]
        if isinstance(self.query.statistic, FeatureNorms):
            return summed(found)
        moved = [self._moved(answer, self._map(site)) for site, answer in enumerate(found)]
        parts = tuple(np.sum(same, axis=0) for same in zip(*moved, strict=True))
        return Answer(parts, tuple(map(together, zip(*(answer.scales for answer in found), strict=True))))

    def _map(self, site: int) -> FloatArray:
        """The linear map from features as asked (the constant last) to features as wanted."""
        sizes = [one.size for one in self._maps]
        matrix = np.zeros((sum(sizes), sum(one.size for one in self._own) + 1))
        place = 0
        for one, (start, end) in zip(self._maps, pairwise(np.cumsum([0, *sizes]).tolist()), strict=True):
            if one.column != self.network.site:
                matrix[start:end, place : place + one.size] = np.eye(one.size)
                place += one.size
            elif self._constant(site):
                matrix[start:end, -1] = np.array(self._levels[site]) / self._constant(site)
        return matrix

    def _moved(self, answer: Answer, matrix: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        single, above, squares = answer.parts
        size = len(single)
        products = np.zeros((size, size))
        products[np.triu_indices(size, 1)] = above
        products += products.T + np.diag(squares)
        whole = matrix @ products @ matrix.T
        return matrix @ single, whole[np.triu_indices(len(whole), 1)], np.diagonal(whole).copy()


# --- moments: the site's place is a number that all its rows share --------------------------------------------


@dataclass(frozen=True, slots=True)
class _Moments:
    query: Release
    network: SiteNetwork

    @property
    def _columns(self) -> tuple[str, ...]:
        assert isinstance(self.query.statistic, Moments)
        return self.query.statistic.columns

    def asked(self, site: int) -> Asked:
        own = tuple(name for name in self._columns if name != self.network.site)
        if not own:
            raise QueryError(f"moments of {self.network.site!r} alone cannot be asked: pool without it (site=None)")
        return (replace(self.query, statistic=Moments(own)),)

    def joined(self, answers: Sequence[Sequence[Answer]]) -> Answer:
        found = [answer for (answer,) in answers]
        moved = [self._map(site) @ answer.value @ self._map(site).T for site, answer in enumerate(found)]
        return Answer((np.sum(moved, axis=0),), (together([answer.scale for answer in found]),))

    def _map(self, site: int) -> FloatArray:
        """From (1, own columns) to (1, all columns): levels stand evenly from -1 to 1, as in every release."""
        size = len(self._columns) + 1
        matrix = np.zeros((size, size - 1))
        matrix[0, 0] = 1.0
        place = 1
        for row, name in enumerate(self._columns, start=1):
            if name == self.network.site:
                matrix[row, 0] = 2 * site / (self.network.sites - 1) - 1 if self.network.sites > 1 else 0.0
            else:
                matrix[row, place] = 1.0
                place += 1
        return matrix
