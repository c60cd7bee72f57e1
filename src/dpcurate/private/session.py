"""The session: validate, charge, read, noise, answer, in this order and nowhere else."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np

from dpcurate import _validation
from dpcurate._messages import shown
from dpcurate.accounting import Budget, Cost, Event, Privacy, amplified
from dpcurate.errors import BudgetError, GateClosed, NotPrivate, QueryError, SourceError
from dpcurate.private.ledger import Ledger, LedgerRun, RunFacts
from dpcurate.private.mechanisms import (
    Exponential,
    FirstAbove,
    Mechanism,
    NoNoise,
    Sensitivity,
)
from dpcurate.private.noise import Ahead, Randomness
from dpcurate.private.preview import describe, mechanism_of, named, scales_of
from dpcurate.private.process import Unique
from dpcurate.private.reader import Parts, Reader
from dpcurate.private.row_sums import CountRows
from dpcurate.private.sources import Source
from dpcurate.private.statistics.numbers import QuantileTransformation, score_steps
from dpcurate.private.statistics.registry import check_kind, sensitivity, transformation
from dpcurate.private.statistics.transformation import Transformation
from dpcurate.queries import (
    CELLS,
    AboveThreshold,
    Answer,
    Choose,
    Contrasts,
    Exact,
    FeatureMoments,
    FeatureNorms,
    Gate,
    GaussianShare,
    Gradient,
    GradientNorms,
    Laplace,
    Noise,
    Quantile,
    Query,
    Release,
    Sample,
    Score,
    Statistic,
    T,
    Tables,
    encoding,
)
from dpcurate.schema import Neighbours, Schema

MOST_BOUND = 200_000
LONG = (Contrasts, Gradient, GradientNorms, FeatureMoments, FeatureNorms)
"""Statistics that may take megabytes. Bounding them is free, so one is kept at a time."""


@dataclass(frozen=True, slots=True)
class _Validated:
    """A validated query: what it will cost, what it reads once that is paid, and how it is answered."""

    event: Event
    transformations: Sequence[Transformation]
    answer: Callable[[Sequence[Parts], Randomness], Any]


class Session(Unique):
    """Rows, their ledger and a source of noise, with the methods of a queryable.

    The analyst holds the curator, which is a session that was opened on a table; a secret sample is a
    smaller session inside it.
    """

    def __init__(
        self,
        source: Source,
        schema: Schema,
        neighbours: Neighbours,
        ledger: Ledger,
        randomness: Randomness,
        *,
        allow_unproved: bool,
        outer: Session | None = None,
    ) -> None:
        super().__init__()
        self._outer = outer
        self._lock = threading.RLock()
        self._source = source
        self._schema = schema
        self._neighbours = neighbours
        self._ledger = ledger
        self._randomness = randomness
        self._allow_unproved = allow_unproved or math.isinf(ledger.budget.ceiling)
        self._reader = Reader(source)
        self._paid: _validation.Number = 0
        self._steps: list[Event] = []
        self._unanswered: set[tuple[Query[Any], ...]] = set()
        self._known: dict[Statistic, tuple[Transformation, Sensitivity]] = {}
        self._long: Statistic | None = None

    @property
    def schema(self) -> Schema:
        """The public description of the table."""
        return self._schema

    @property
    def neighbours(self) -> Neighbours:
        """The relation the guarantee is about."""
        return self._neighbours

    @property
    def ledger(self) -> Ledger:
        """The privacy filter and its record."""
        return self._ledger

    @property
    def budget(self) -> Budget:
        """The ceiling, and the currency it is counted in."""
        return self._ledger.budget

    @property
    def remaining(self) -> float:
        """What is left of the budget, in its currency."""
        return self._ledger.remaining

    def reserve(self, amount: float) -> AbstractContextManager[object]:
        """Set budget aside for many small queries, with one durable entry in the ledger."""
        plain_amount = _validation.between(0, amount, _validation.HUGE)
        if plain_amount is None:
            raise BudgetError(
                f"a block to reserve must be a finite amount above 0, got {shown(amount)}: nothing was set aside"
            )
        return self._ledger.reserve(plain_amount)

    def run(self, facts: RunFacts, *, share: float | None = None) -> AbstractContextManager[LedgerRun]:
        """A run of a method: logged, limited to `share`, its answers stored; resumed if it was stopped."""
        return self._ledger.run(facts, share=share)

    def sensitivity(self, statistic: Statistic) -> float:
        """How far one unit can move a statistic (L1), from public facts."""
        return float(self._bound(statistic)[1].l1)

    def draw(self) -> float:
        """A fresh public random number in [0, 1)."""
        return self._randomness.uniform()

    def privacy(self) -> Privacy:
        """What has been spent on what, in public words."""
        ledger = self._ledger
        paid, facts = float(self._paid), (ledger.budget, self._neighbours.value, self._schema.unit)
        return Privacy(*facts, ledger.spent, ledger.events, ledger.private, paid)

    def ask(self, query: Query[T]) -> T:
        """An Answer to a Release, an index to a Choose or Quantile."""
        return self.ask_all([query])[0]

    def ask_all(self, queries: Sequence[Query[T]]) -> list[T]:
        """Answers to many queries: all are validated, then all charged, then all read."""
        check_list(queries)
        with self._lock:
            asked = [self._validated(query) for query in queries]
            if queries and self._outer is None and self._ledger.keeps:
                return self._once(queries, asked)
            found = self._paid_answers(queries, asked)
            return [named(query, answer, self._schema) for query, answer in zip(queries, found, strict=True)]

    def _paid_answers(self, queries: Sequence[Query[Any]], asked: Sequence[_Validated]) -> list[Any]:
        """Answers after a charge; what was charged and could not be read is answered once without another one."""
        unanswered = bool(self._unanswered) and tuple(queries) in self._unanswered
        if unanswered:
            self._unanswered.remove(tuple(queries))
        else:
            self._charge([one.event for one in asked])
        try:
            return self._answers(asked)
        except SourceError:
            self._unanswered.add(tuple(queries))
            raise

    def _once(self, queries: Sequence[Query[Any]], asked: Sequence[_Validated]) -> list[Any]:
        """Answers that a run stores before it returns them; those it has stored are returned and not charged."""
        shapes = [
            one.transformations[0].shapes if type(q) is Release else None for q, one in zip(queries, asked, strict=True)
        ]
        encoding.check_storable(shapes)
        events = [one.event for one in asked]
        paid = self._ledger.pay(encoding.name(queries, self._schema.hash, self._neighbours.value), events)
        if not paid.owed:
            self._note(events)
        if paid.stored is None:
            found = self._kept(paid.name, queries, asked)
        else:
            found = [answer for _, answer in encoding.decode(paid.stored)]
        return [named(query, answer, self._schema) for query, answer in zip(queries, found, strict=True)]

    def _kept(self, name: str, queries: Sequence[Query[Any]], asked: Sequence[_Validated]) -> list[Any]:
        """Answers that are stored now; until they are, the request stays paid and is owed an answer."""
        try:
            found = self._answers(asked)
            # Refused if another process has the run by now: then nothing is returned.
            self._ledger.keep(name, encoding.encode(queries, found))
        except BaseException:
            self._ledger.owe(name)
            raise
        return found

    def _answers(self, asked: Sequence[_Validated]) -> list[Any]:
        parts = self._reader.read([needed for one in asked for needed in one.transformations])
        noise = Ahead(self._randomness, len(asked))
        return [one.answer([next(parts) for _ in one.transformations], noise) for one in asked]

    @property
    def passes(self) -> int:
        """Passes made over the table so far; queries, schema and engine decide, never the rows."""
        return self._source.made

    def passes_for(self, queries: Sequence[Query[object]]) -> int:
        """How many passes over the table these would take now; nothing is charged or read."""
        check_list(queries)
        with self._lock:
            return self._reader.passes(
                [needed for query in queries for needed in self._validated(query).transformations]
            )

    def cells_for(self, asked: Sequence[Query[Any] | Score]) -> int:
        """How many cells of tables and other numbers these would read or release; nothing is charged or read."""
        check_list(asked)
        with self._lock:
            needed = [computed for one in asked for computed in self._needed(one)]
        tables = {row_sum for computed in needed for row_sum in computed.row_sums if isinstance(row_sum, CountRows)}
        others = (one for one in needed if not any(isinstance(k, CountRows) for k in one.row_sums))
        numbers = sum(sum(math.prod(shape) for shape in one.shapes) or CELLS for one in others)  # a choice has no shape
        return sum(table.cells for table in tables) + numbers

    def numbers_for(self, asked: Sequence[Query[Any] | Score]) -> int:
        """How many numbers the answers to these would hold; nothing is charged or read."""
        check_list(asked)
        with self._lock:
            needed = [computed for one in asked if isinstance(one, Release) for computed in self._needed(one)]
        return len(asked) + sum(math.prod(shape) for one in needed for shape in one.shapes)

    def _needed(self, asked: Query[Any] | Score) -> Sequence[Transformation]:
        if isinstance(asked, Score):
            return (self._bound(asked.statistic)[0],)
        return self._validated(asked).transformations

    def price(self, queries: Sequence[Query[Any]]) -> float:
        """What these would be charged, in the budget's currency; nothing is charged or read."""
        check_list(queries)
        with self._lock:
            return float(sum(self._validated(query).event.cost.within(self.budget) for query in queries))

    @property
    def paid(self) -> float:
        """What this session was charged, with the requests that an earlier process had paid."""
        return float(self._paid)

    def steps(self, start: int = 0) -> tuple[Event, ...]:
        """What this session was charged for, step by step, from the step of this number on."""
        return tuple(self._steps[start:])

    def open(self, gate: Gate[T]) -> T:
        """Open an interactive gate, charged in full here and now."""
        with self._lock:
            self._source.check(CountRows((), ()))
            if type(gate) is AboveThreshold:
                return cast(T, OpenThreshold(self, FirstAbove(Fraction(gate.epsilon))))
            if type(gate) is Sample:
                return cast(T, self._sample(gate))
        raise QueryError(f"{type(gate).__name__} is not a gate of a session: open AboveThreshold or Sample itself")

    def _charge(self, events: list[Event]) -> None:
        """Pay; an unproved step on a sample undoes the whole table's guarantee, so its ledger says so."""
        unproved = [e for e in events if not e.private]
        if self._outer is not None and unproved:
            self._outer._charge(unproved)
        self._ledger.charge(events)
        self._note(events)

    def _note(self, events: list[Event]) -> None:
        """Count what was paid."""
        self._paid += sum(event.cost.within(self.budget) for event in events)
        self._steps.extend(events)

    # --- inside ---------------------------------------------------------------------------------

    def _validated(self, query: Query[object]) -> _Validated:
        if type(query) is Release:
            return self._release(query)
        if type(query) is Choose:
            return self._choose(query)
        if type(query) is Quantile:
            return self._quantile(query)
        raise QueryError(f"{type(query).__name__} is not a query of a session: ask Release, Choose or Quantile itself")

    def _bound(self, statistic: Statistic) -> tuple[Transformation, Sensitivity]:
        check_kind(statistic)
        known = None if isinstance(statistic, Tables) else self._known.get(statistic)  # long, and seldom asked again
        if known is None:
            computed = transformation(statistic, self._schema)
            known = computed, sensitivity(computed, self._schema, self._neighbours)
            if len(self._known) >= MOST_BOUND:
                self._known.clear()
            if isinstance(statistic, LONG):
                if self._long is not None:
                    self._known.pop(self._long, None)
                self._long = statistic
            if not isinstance(statistic, Tables):
                self._known[statistic] = known
        computed = known[0]
        if not computed.proved and not self._allow_unproved:
            raise NotPrivate(
                f"{type(statistic).__name__} has no proved sensitivity: ask for a proved statistic, "
                "or open the curator with allow_unproved=True and accept a result that is NOT PRIVATE"
            )
        for row_sum in computed.row_sums:
            self._source.check(row_sum)
        return known

    def _release(self, query: Release) -> _Validated:
        computed, bound = self._bound(query.statistic)
        if isinstance(query.noise, Exact) and not self._allow_unproved:
            raise NotPrivate(
                "an exact release has no guarantee: ask for noise, or open the curator with allow_unproved=True "
                "(or an unlimited budget) and accept a result that is NOT PRIVATE"
            )
        if isinstance(query.noise, GaussianShare):
            raise QueryError(
                "a site's share of noise is too small to protect its table by itself: it is added in a round with "
                "other sites, which only their masked sum leaves (dpcurate.pool(..., noise='shared'))"
            )
        mechanism = mechanism_of(query.noise, computed, bound)
        scales = scales_of(mechanism, computed)
        event = Event(
            mechanism.name,
            describe(query.statistic),
            mechanism.cost if computed.proved else Cost.infinite(),
            mechanism.multiplier,
            None if computed.proved else _claimed(query.noise),
        )
        return _Validated(event, [computed], lambda parts, noise: _answer(computed, parts[0], mechanism, scales, noise))

    def _choose(self, query: Choose) -> _Validated:
        mechanism = Exponential(Fraction(query.epsilon))
        candidates = [(*self._bound(c.statistic), c) for c in query.candidates]
        proved = all(computed.proved for computed, _, _ in candidates)
        event = Event(
            mechanism.name,
            f"choice among {len(candidates)} tests",
            mechanism.cost if proved else Cost.infinite(),
            claimed=None if proved else float(query.epsilon),
        )

        def answer(parts: Sequence[Parts], noise: Randomness) -> int:
            each = zip(candidates, parts, strict=True)
            scores = [self._reader.score(score, part, computed, bound) for (computed, bound, score), part in each]
            return mechanism.pick(np.array(scores + [0] * query.or_none, dtype=np.int64), noise)

        return _Validated(event, [computed for computed, _, _ in candidates], answer)

    def _quantile(self, query: Quantile) -> _Validated:
        mechanism = Exponential(Fraction(query.epsilon))
        computed = QuantileTransformation(query, self._schema)
        bound = sensitivity(computed, self._schema, self._neighbours)
        for row_sum in computed.row_sums:
            self._source.check(row_sum)
        event = Event(mechanism.name, f"Quantile({query.column})", mechanism.cost)

        def answer(parts: Sequence[Parts], noise: Randomness) -> int:
            return mechanism.pick(score_steps(parts[0][0], computed.units[0], bound), noise)

        return _Validated(event, [computed], answer)

    def _sample(self, gate: Sample) -> Session:
        if self._schema.rows_per_unit > 1:
            raise QueryError(
                "a secret sample of rows protects rows, and this schema protects persons of several rows: "
                "use a method without sub-sampling"
            )
        self._source.check_sample()
        rate = max(1, math.floor(Fraction(gate.rate) * 2**32))
        cost = amplified(gate.epsilon, Fraction(rate, 2**32), replace=self._neighbours is Neighbours.REPLACE)
        self._charge([Event("poisson-sample", f"a sample at rate {float(gate.rate):g}", Cost.pure(cost))])
        rows = None if self._schema.rows is None else max(1, round(self._schema.rows * rate / 2**32))
        relation, allow = Neighbours.ADD_REMOVE, self._allow_unproved
        ledger = Ledger(Budget(epsilon=gate.epsilon, delta=0), allow_unproved=allow, neighbours=relation.value)
        sample, schema = self._source.sample(rate, self._randomness), replace(self._schema, rows=rows)
        return Session(sample, schema, relation, ledger, self._randomness, allow_unproved=allow, outer=self)


class OpenThreshold(Unique):
    """An open above-threshold gate; its noisy threshold stays in the session."""

    def __init__(self, session: Session, mechanism: FirstAbove) -> None:
        super().__init__()
        self._session = session
        self._mechanism = mechanism
        self._closed = False
        session._charge([Event(mechanism.name, "a gate until its first yes", mechanism.cost)])
        self._threshold = mechanism.threshold(session._randomness)

    @property
    def closed(self) -> bool:
        """Whether the gate has said yes."""
        return self._closed

    def ask(self, score: Score) -> bool:
        """Whether the score is (about) positive; the first yes closes the gate."""
        return self.first([score]) is not None

    def first(self, scores: Sequence[Score]) -> int | None:
        """The first of many, asked in turn, to which the gate says yes; it then closes. Read together."""
        check_list(scores)
        with self._session._lock:
            return self._first(scores)

    def _first(self, scores: Sequence[Score]) -> int | None:
        if self._closed:
            raise GateClosed("this gate has said yes and is closed: open another one")
        if any(type(score) is not Score for score in scores):
            raise QueryError("a gate is asked scores and nothing else: give it Score itself, not a subclass of it")
        session = self._session
        bounds = [session._bound(score.statistic) for score in scores]
        unproved = [score for score, (computed, _) in zip(scores, bounds, strict=True) if not computed.proved]
        session._charge([Event(self._mechanism.name, describe(s.statistic), Cost.infinite()) for s in unproved])
        parts = session._reader.read([computed for computed, _ in bounds])
        noise = Ahead(session._randomness, len(scores))
        for index, (score, (computed, bound), part) in enumerate(zip(scores, bounds, parts, strict=True)):
            noised = session._reader.score(score, part, computed, bound) + self._mechanism.query(noise)
            if noised >= self._threshold:
                self._closed = True
                return index
        return None


def _answer(
    computed: Transformation, parts: Parts, mechanism: Mechanism, scales: tuple[float, ...], noise: Randomness
) -> Answer:
    return Answer(computed.natural(_noised(parts, computed.units, mechanism, noise)), scales)


def _noised(parts: Parts, units: tuple[Fraction, ...], mechanism: Mechanism, randomness: Randomness) -> Parts:
    """Fresh noise on every coordinate; parts of one unit are drawn together."""
    if isinstance(mechanism, NoNoise):
        return parts
    alike: dict[Fraction, list[int]] = {}
    for index, unit in enumerate(units):
        alike.setdefault(unit, []).append(index)
    noised = list(parts)
    for unit, indices in alike.items():
        noise = mechanism.draw(unit, sum(parts[i].size for i in indices), randomness)
        start = 0
        for i in indices:
            noised[i] = parts[i] + noise[start : start + parts[i].size].reshape(parts[i].shape)
            start += parts[i].size
    return tuple(noised)


def check_list(given: object) -> None:
    """Refuse lists of other kinds, which could run the analyst's code, or fork, while they are gone through."""
    if type(given) is not list and type(given) is not tuple:
        raise QueryError(f"queries and scores come as a list or tuple, got {type(given).__name__}")


def _claimed(noise: Noise) -> float | None:
    """The epsilon an unproved release's authors would report."""
    return noise.epsilon if isinstance(noise, Laplace) else None
