"""What a learner sees of a session."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from dpcurate.accounting import Budget, Privacy
from dpcurate.queries.query import Gate, Query, T
from dpcurate.queries.statistics import Statistic
from dpcurate.schema import Neighbours, Schema


@runtime_checkable
class Offering(Protocol):
    """A queryable that has some sets of contrasts and can get no others."""

    def offered(self, sets: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Those of the sets that it has."""


class Queryable(Protocol):
    """What a learner sees: public facts, and answers."""

    @property
    def schema(self) -> Schema:
        """The public description of the table."""

    @property
    def neighbours(self) -> Neighbours:
        """The relation the guarantee is about."""

    @property
    def budget(self) -> Budget:
        """The ceiling, and the currency it is counted in."""

    @property
    def remaining(self) -> float:
        """What is left of the budget, in its currency."""

    def ask(self, query: Query[T]) -> T:
        """An Answer to a Release, an index to a Choose."""

    def ask_all(self, queries: Sequence[Query[T]]) -> list[T]:
        """Answers to many queries, charged together and read in one pass where the source can."""

    def open(self, gate: Gate[T]) -> T:
        """Open an interactive gate."""

    def reserve(self, amount: float) -> AbstractContextManager[object]:
        """Set aside budget for many small queries with one durable entry in the ledger."""

    def sensitivity(self, statistic: Statistic) -> float:
        """How far one unit can move a statistic (L1), from public facts."""

    def draw(self) -> float:
        """A fresh public random number in [0, 1), for decisions that need no secret."""

    def privacy(self) -> Privacy:
        """What has been spent on what, in public words."""
