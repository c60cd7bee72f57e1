"""A queryable for published variants: exact statistics once, noise from a seed, and costs at a bound that holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from random import Random
from typing import cast

import numpy as np

from dpcurate import Budget
from dpcurate.accounting import Privacy
from dpcurate.errors import QueryError
from dpcurate.published.edge_tests import UNDEFINED
from dpcurate.published.reproduction.grid import world
from dpcurate.published.unproved_statistics import PublishedKendallP
from dpcurate.queries import Answer, Exact, Gate, Laplace, Query, Queryable, Release, Statistic, T
from dpcurate.schema import Neighbours, Schema

RANGE = 0.5
"""A one-sided p-value lies in [0, 1/2], so one row moves it by at most 1/2; 0.481 is attained."""


class ExactAnswers:
    """Exact answers of an unprotected curator, each asked for once."""

    def __init__(self, name: str, rows: int) -> None:
        self.queryable: Queryable = world(name, rows).alphabetical.curator(Budget.unlimited(), 1)
        self._answers: dict[Statistic, Answer] = {}
        self._bounds: dict[Statistic, float] = {}

    def answer(self, statistic: Statistic) -> Answer:
        """Return the exact answer, computed once."""
        if statistic not in self._answers:
            self._answers[statistic] = self.queryable.ask(Release(statistic, Exact()))
        return self._answers[statistic]

    def bound(self, statistic: Statistic) -> float:
        """Return the sensitivity, computed once."""
        if statistic not in self._bounds:
            self._bounds[statistic] = self.queryable.sensitivity(statistic)
        return self._bounds[statistic]


@lru_cache(maxsize=2)
def memory(name: str, rows: int) -> ExactAnswers:
    """Return the exact answers on a network's table; the last two are kept."""
    return ExactAnswers(name, rows)


class Rehearsal:
    """The queryable as a published learner sees it, on simulated data. NOT PRIVATE.

    `rho` adds up what every noised answer costs in zCDP if one row can move a p-value by RANGE: Laplace
    noise of scale b is (RANGE / b)-DP, hence (RANGE / b)^2 / 2-zCDP. An exact release makes it infinite.
    An undefined test is answered without noise; `undefined` counts those, and they are not in `rho`.
    """

    remaining: float = math.inf

    def __init__(self, known: ExactAnswers, seed: str) -> None:
        self._known = known
        self._random = Random(seed)
        self.schema: Schema = known.queryable.schema
        self.neighbours: Neighbours = known.queryable.neighbours
        self.budget: Budget = known.queryable.budget
        self.rho: float = 0.0
        self.undefined: int = 0

    def ask(self, query: Query[T]) -> T:
        """Answer a release from memory, with fresh noise."""
        return cast(T, self._answer(query))

    def _answer(self, query: Query[object]) -> Answer:
        if not isinstance(query, Release):
            raise QueryError("a rehearsal answers releases only")
        exact = self._known.answer(query.statistic)
        if not isinstance(query.noise, Laplace) or not isinstance(query.statistic, PublishedKendallP):
            self.rho = math.inf
            return exact
        value = float(exact)
        if value < UNDEFINED:
            self.undefined += 1
            return exact
        scale = self._scale(query.statistic, query.noise)
        widest = RANGE if query.statistic.test == "kendall" else 2 * RANGE  # the other p-values reach 1
        self.rho += (widest / scale) ** 2 / 2
        sign, size = (1, -1)[self._random.random() < 0.5], -math.log(1.0 - self._random.random())
        return Answer((np.asarray(value + sign * scale * size),), (scale,))

    def _scale(self, statistic: Statistic, noise: Laplace) -> float:
        if noise.scale is not None:
            return float(noise.scale)
        assert noise.epsilon is not None
        return self._known.bound(statistic) / float(noise.epsilon)

    def ask_all(self, queries: Sequence[Query[T]]) -> list[T]:
        """Answer several releases."""
        return [self.ask(r) for r in queries]

    def open(self, gate: Gate[T]) -> T:
        """Refuse: a rehearsal has no gates."""
        raise QueryError("a rehearsal has no gates")

    @contextmanager
    def reserve(self, amount: float) -> Iterator[None]:
        """Reserve nothing; simulated data have no budget."""
        yield

    def sensitivity(self, statistic: Statistic) -> float:
        """Return the sensitivity of a statistic."""
        return self._known.bound(statistic)

    def draw(self) -> float:
        """Draw a uniform number."""
        return self._random.random()

    def privacy(self) -> Privacy:
        """Return the privacy statement of the simulated table."""
        return self._known.queryable.privacy()
