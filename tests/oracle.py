"""A queryable that knows the true graph and answers by d-separation: for testing learners, not data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import numpy as np

from dpcurate.accounting import Budget, Privacy
from dpcurate.errors import QueryError
from dpcurate.graphs.graph import Dag
from dpcurate.queries import (
    AboveThreshold,
    Answer,
    Choose,
    Gate,
    KendallP,
    PairStatistic,
    Query,
    Queryable,
    Release,
    Score,
    Statistic,
    T,
)
from dpcurate.schema import Categorical, Neighbours, Schema

STRONG = 1e9


class OracleQueryable:
    """Noiseless answers: a tau of zero or a very large one, a p-value of 1/2 or zero.

    Hidden columns are not in its schema; of selected ones neither, and every answer is given them.
    """

    def __init__(self, dag: Dag, hidden: Iterable[str] = (), selected: Iterable[str] = ()) -> None:
        self._dag, self._selected = dag, tuple(selected)
        visible = [n for n in dag.nodes if n not in {*hidden, *self._selected}]
        self.schema: Schema = Schema(tuple(Categorical(n, ("0", "1")) for n in visible), rows=100_000)
        self.neighbours = Neighbours.ADD_REMOVE
        self.budget: Budget = Budget.unlimited()
        self.remaining: float = float("inf")

    def _value(self, statistic: Statistic) -> float:
        if not isinstance(statistic, PairStatistic):
            raise QueryError("the oracle answers tests of independence only")
        given = (*statistic.given, *self._selected)
        return self.value(statistic, apart=self._dag.d_separated(statistic.x, statistic.y, given))

    def value(self, statistic: PairStatistic, *, apart: bool) -> float:
        """The number that a pair statistic is for a pair that is d-separated or not."""
        if isinstance(statistic, KendallP):
            return 0.5 if apart else 0.0
        return 0.0 if apart else STRONG

    def ask(self, query: Query[T]) -> T:
        """The exact answer."""
        if isinstance(query, Release):
            return cast(T, Answer((np.asarray(self._value(query.statistic)),), (0.0,)))
        assert isinstance(query, Choose)
        scores = [self.score(c) for c in query.candidates] + [0.0] * query.or_none
        return cast(T, int(np.argmax(scores)))

    def ask_all(self, queries: Sequence[Query[T]]) -> list[T]:
        """The exact answers."""
        return [self.ask(r) for r in queries]

    def score(self, score: Score) -> float:
        """How far the statistic lies on the side that is asked about."""
        gap = self._value(score.statistic) - score.threshold
        return gap if score.side == "above" else -gap

    def open(self, gate: Gate[T]) -> T:
        """A gate that never errs, or the same queryable for a sample."""
        return cast(T, _Gate(self) if isinstance(gate, AboveThreshold) else self)

    @contextmanager
    def reserve(self, amount: float) -> Iterator[None]:
        """A block; nothing is charged."""
        yield

    def sensitivity(self, statistic: Statistic) -> float:
        """Next to nothing: answers are exact."""
        return 1e-9

    def draw(self) -> float:
        """Always a half."""
        return 0.5

    def privacy(self) -> Privacy:
        """NOT PRIVATE."""
        return Privacy(self.budget, self.neighbours.value, "one row", 0.0, (), False)


class _Gate:
    """A gate without noise."""

    closed = False

    def __init__(self, queryable: OracleQueryable) -> None:
        self._queryable = queryable

    def ask(self, score: Score) -> bool:
        return self._queryable.score(score) > 0

    def first(self, scores: Sequence[Score]) -> int | None:
        return next((index for index, score in enumerate(scores) if self.ask(score)), None)


if TYPE_CHECKING:
    _: type[Queryable] = OracleQueryable
