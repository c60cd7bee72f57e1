"""Queryables in front of a queryable: part of a budget, and somebody who counts what passes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import groupby
from operator import itemgetter
from typing import Any, cast

from dpcurate.accounting import Budget, Privacy
from dpcurate.queries import (
    AboveThreshold,
    Choose,
    Contrasts,
    Counts,
    FeatureMoments,
    Gate,
    PairStatistic,
    Quantile,
    Query,
    Queryable,
    Release,
    Score,
    Statistic,
    T,
    Tables,
)
from dpcurate.schema import Neighbours, Schema

Notice = Callable[[str, int], None]
"""Told the stage and how many tests are about to be made."""


class Proxy:
    """Hands everything on."""

    def __init__(self, queryable: Queryable) -> None:
        self._queryable = queryable

    @property
    def schema(self) -> Schema:
        """The schema of the table."""
        return self._queryable.schema

    @property
    def neighbours(self) -> Neighbours:
        """Which tables count as neighbours."""
        return self._queryable.neighbours

    @property
    def budget(self) -> Budget:
        """The whole budget."""
        return self._queryable.budget

    @property
    def remaining(self) -> float:
        """What is left of the budget."""
        return self._queryable.remaining

    def ask(self, query: Query[T]) -> T:
        """The answer to one query."""
        return self._queryable.ask(query)

    def ask_all(self, queries: Sequence[Query[T]]) -> list[T]:
        """The answers to queries that are charged together."""
        return self._queryable.ask_all(queries)

    def open(self, gate: Gate[T]) -> T:
        """A gate on the same budget."""
        return self._queryable.open(gate)

    def reserve(self, amount: float) -> AbstractContextManager[object]:
        """A block that is paid for at once."""
        return self._queryable.reserve(amount)

    def sensitivity(self, statistic: Statistic) -> float:
        """How far one row moves a statistic."""
        return self._queryable.sensitivity(statistic)

    def draw(self) -> float:
        """A random number from 0 to 1 that depends on no row."""
        return self._queryable.draw()

    def privacy(self) -> Privacy:
        """What was spent, and how much that promises."""
        return self._queryable.privacy()


class _Share(Proxy):
    """The queryable inside a reserved block: a learner's wish to reserve is already met."""

    def reserve(self, amount: float) -> AbstractContextManager[object]:
        return nullcontext()


class Reserving(Proxy):
    """Keeps an amount for later: of what is left it is not told."""

    def __init__(self, queryable: Queryable, amount: float) -> None:
        super().__init__(queryable)
        self._amount = amount

    @property
    def remaining(self) -> float:
        """What is left beside the amount that is held back."""
        left = super().remaining
        return left if math.isinf(left) else max(left - self._amount, 0.0)

    @contextmanager
    def reserve(self, amount: float) -> Iterator[None]:
        """A block holds none of what is kept."""
        with super().reserve(amount):
            kept, self._amount = self._amount, 0.0
            try:
                yield
            finally:
                self._amount = kept


@contextmanager
def limited(queryable: Queryable, amount: float | None) -> Iterator[Queryable]:
    """A queryable that can spend `amount` and no more, which the ledger enforces; None is all that is left."""
    if amount is None:
        yield queryable
        return
    with queryable.reserve(amount):
        yield _Share(queryable)


class Reporting(Proxy):
    """Tells `notice` of every test before it is made; queries and answers are public, so this is too."""

    def __init__(self, queryable: Queryable, notice: Notice) -> None:
        super().__init__(queryable)
        self._notice = notice

    def ask(self, query: Query[T]) -> T:
        """Tell the stage, then ask."""
        self._notice(*_stage(query))
        answer = super().ask(query)
        if isinstance(query, Release) and isinstance(query.statistic, (Contrasts, FeatureMoments)):
            self._notice("search", 0)  # such a learner measures first and then thinks for long
        return answer

    def ask_all(self, queries: Sequence[Query[T]]) -> list[T]:
        """Tell each stage and how many tests it has, then ask."""
        for stage, alike in groupby(map(_stage, queries), key=itemgetter(0)):
            self._notice(stage, sum(tests for _, tests in alike))
        return super().ask_all(queries)

    def open(self, gate: Gate[T]) -> T:
        """A gate that tells its tests too."""
        return cast(T, _ReportingGate(super().open(gate), self._notice))


class _ReportingGate:
    """An open gate of either kind."""

    def __init__(self, gate: Any, notice: Notice) -> None:
        self._gate, self._notice = gate, notice

    @property
    def closed(self) -> bool:
        return bool(self._gate.closed)

    def ask(self, what: Query[object] | Score) -> Any:
        self._notice(*_stage(what))
        return self._gate.ask(what)

    def first(self, scores: Sequence[Score]) -> int | None:
        """Ask until the first yes; how many tests that took is told when it is known."""
        if scores:
            self._notice(_order(scores[0].statistic), 0)
        hit: int | None = self._gate.first(scores)
        if scores:
            self._notice(_order(scores[0].statistic), len(scores) if hit is None else hit + 1)
        return hit

    def open(self, gate: AboveThreshold) -> Any:
        return _ReportingGate(self._gate.open(gate), self._notice)


def _stage(what: Query[object] | Score) -> tuple[str, int]:
    """A word for the stage, and how many tests this is."""
    if isinstance(what, Choose):
        return _order(what.candidates[0].statistic), len(what.candidates)
    if isinstance(what, Quantile):
        return "quantile", 1
    statistic = what.statistic if isinstance(what, (Release, Score)) else None
    if isinstance(statistic, PairStatistic):
        return _order(statistic), 1
    if isinstance(statistic, Tables):
        return f"order {max(0, max(map(len, statistic.sets)) - 2)}", len(statistic.sets)
    if isinstance(statistic, Counts) and len(statistic.columns) > 1:
        return f"order {len(statistic.columns) - 2}", 1
    return type(statistic).__name__.lower(), len(statistic.sets) if isinstance(statistic, Contrasts) else 1


def _order(statistic: PairStatistic) -> str:
    return f"order {len(statistic.given)}"
