"""A queryable that answers from what a ledger has stored: no table, no charge, nothing that was not released."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NoReturn, cast

from dpcurate.accounting import Budget, Privacy
from dpcurate.errors import DecodeError, LedgerError, NotStored, QueryError, SchemaError
from dpcurate.private import shared_round
from dpcurate.private.ledger import LoggedRun
from dpcurate.private.ledger import path as ledger_path
from dpcurate.private.ledger.disk_store import StoredRun, stored_runs
from dpcurate.private.ledger.units import float_down
from dpcurate.private.noise import Secure
from dpcurate.private.preview import check_fits, describe, named, sensitivity_of
from dpcurate.private.statistics.registry import transformation
from dpcurate.queries import Answer, Contrasts, Gate, Query, Release, Statistic, T, encoding
from dpcurate.schema import Neighbours, Schema

Set = tuple[str, ...]
Pair = tuple[Query[Any], Answer | int]


class StoredAnswers:
    """The answers of one run, for methods that ask what it asked, or for contrasts of sets that it released.

    `ledger` is a ledger or a copy of one, which is read and never written. `run` is its number in the log, by
    default the newest that has stored answers and whose method begins with none of `passing_over`.
    """

    def __init__(self, ledger: str | Path, run: int | None = None, *, passing_over: tuple[str, ...] = ()) -> None:
        path = ledger_path.real(ledger)
        self._start(path, stored_runs(path), run, passing_over)

    @classmethod
    def of_runs(cls, place: str, runs: dict[int, StoredRun], run: int, passing_over: tuple[str, ...]) -> StoredAnswers:
        """The answers of one of these runs, which came from elsewhere; `place` says in messages from where.

        Raises:
            LedgerError: they are not what a session has answered.
        """
        answers = cls.__new__(cls)
        answers._start(place, runs, run, passing_over)
        return answers

    def _start(
        self, path: Path | str, runs: dict[int, StoredRun], run: int | None, passing_over: tuple[str, ...]
    ) -> None:
        self._path, self._runs, self._passing_over = path, runs, passing_over
        self._run = _chosen(self._path, self._runs, run, passing_over)
        self._schema = _schema(self._path, self._run)
        self._neighbours = Neighbours.of(self._run.facts.neighbours)
        self._pairs = _decoded(self._path, self._run, self._schema)
        self._asked: Counter[str] = Counter()
        self._given: set[str] = set()
        self._sets = self._contrasts()
        self._secure = Secure()

    def _contrasts(self) -> dict[Set, list[tuple[str, Any, float]]]:
        """Released contrasts by their set, in the order of their release: where from, the part, its scale."""
        sets: dict[Set, list[tuple[str, Any, float]]] = {}
        for name, pairs in self._pairs.items():
            for query, answer in pairs:
                if isinstance(query, Release) and isinstance(query.statistic, Contrasts) and isinstance(answer, Answer):
                    for one, part, scale in zip(query.statistic.sets, answer.parts, answer.scales, strict=True):
                        sets.setdefault(one, []).append((name, part, scale))
        return sets

    @property
    def run(self) -> int:
        """The number of the run in the ledger's log."""
        return self._run.logged.number

    @property
    def logged(self) -> LoggedRun:
        """What the log says of the run."""
        return self._run.logged

    def before(self) -> StoredAnswers:
        """The newest earlier run of the same schema that is not passed over."""
        earlier = [n for n in _candidates(self._runs, self._passing_over) if n < self.run and self._same_schema(n)]
        if not earlier:
            raise LedgerError(
                f"run {self.run} of {self._path} needs the stored answers of an earlier run; there are none"
            )
        return self._another(max(earlier))

    def later(self, method: str) -> tuple[StoredAnswers, ...]:
        """Later runs of a method with the same schema, the newest first."""
        later = [n for n, one in self._runs.items() if n > self.run and one.logged.facts.method == method]
        return tuple(self._another(n) for n in sorted(filter(self._same_schema, later), reverse=True))

    def _another(self, run: int) -> StoredAnswers:
        return StoredAnswers.of_runs(str(self._path), self._runs, run, self._passing_over)

    def _same_schema(self, number: int) -> bool:
        return self._runs[number].logged.facts.schema == self.logged.facts.schema

    @property
    def table(self) -> str:
        """The table's name in the ledger."""
        return self._run.facts.table

    @property
    def released(self) -> tuple[tuple[Query[Any], Any], ...]:
        """What the run asked, and what it was answered."""
        pairs = (pair for pairs in self._pairs.values() for pair in pairs)
        return tuple((query, named(query, answer, self._schema)) for query, answer in pairs)

    @property
    def schema(self) -> Schema:
        """The public description of the table."""
        return self._schema

    @property
    def neighbours(self) -> Neighbours:
        """The relation the guarantee is about."""
        return self._neighbours

    @property
    def budget(self) -> Budget:
        """The ceiling of the ledger."""
        return self._run.facts.budget

    @property
    def remaining(self) -> float:
        """What the run had left when it had asked as much."""
        used = sum(self._run.answers[name][0] for name in self._given)
        return float_down((self._run.logged.allowance or 0) - used)

    def ask(self, query: Query[T]) -> T:
        """The stored answer to a query; any other is refused."""
        return self.ask_all([query])[0]

    def ask_all(self, queries: Sequence[Query[T]]) -> list[T]:
        """What is stored for the same queries, or for contrasts of released sets; anything else is refused."""
        request = encoding.name(queries, self._schema.hash, self._neighbours.value)
        name = f"{request}.{self._asked[request]}"
        if name in self._pairs:
            self._asked[request] += 1
            self._given.add(name)
            self._pass_over(name)
            return [named(query, answer, self._schema) for query, answer in self._pairs[name]]
        return [cast(T, self._from_sets(query)) for query in queries]

    def _pass_over(self, name: str) -> None:
        """What was given as a whole is not given again set by set."""
        for releases in self._sets.values():
            releases[:] = [release for release in releases if release[0] != name]

    def _from_sets(self, query: Query[object]) -> Answer:
        """Contrasts from whatever released each of their sets; the noise of each is what it was."""
        if isinstance(query, Release) and isinstance(query.statistic, Contrasts):
            sets = query.statistic.sets
            if len(self.offered(sets)) == len(sets):
                parts = [self._sets[one].pop(0) for one in sets]
                self._given.update(name for name, _, _ in parts)
                return Answer(tuple(part for _, part, _ in parts), tuple(scale for _, _, scale in parts))
        return self._refuse(describe(query.statistic) if isinstance(query, Release) else type(query).__name__)

    def offered(self, sets: Sequence[Set]) -> list[Set]:
        """Those sets of columns of which contrasts are stored and not given yet."""
        return [one for one in sets if self._sets.get(one)]

    def open(self, gate: Gate[T]) -> T:
        """Refused: what a gate said is never stored."""
        return self._refuse(f"a gate ({type(gate).__name__}), which is never stored,")

    def reserve(self, amount: float) -> AbstractContextManager[object]:
        """Nothing is spent, so nothing is set aside."""
        return nullcontext()

    def sensitivity(self, statistic: Statistic) -> float:
        """How far one unit can move a statistic (L1), from public facts."""
        return sensitivity_of(statistic, self._schema, self._neighbours)

    def draw(self) -> float:
        """A fresh public random number in [0, 1)."""
        return self._secure.uniform()

    def privacy(self) -> Privacy:
        """That of the ledger; this run has spent nothing."""
        run, unit = self._run, self._schema.unit
        return Privacy(run.facts.budget, run.facts.neighbours, unit, run.spent, run.events, run.private, 0.0)

    def _refuse(self, what: str) -> NoReturn:
        asked = (query for pairs in self._pairs.values() for query, _ in pairs)
        kinds = sorted({describe(query.statistic) for query in asked if isinstance(query, Release)})
        raise NotStored(
            f"{what} is asked for, and run {self.run} of {self._path} has no such answer stored; nothing was read and "
            f"nothing was spent. It has {', '.join(kinds)}. Use the method that made them (knowledge may forbid more "
            "than it did then, and the cut may be any), or run on the table"
        )


def _decoded(path: Path | str, run: StoredRun, schema: Schema) -> dict[str, list[Pair]]:
    """Queries with their answers, by the name of their request; what cannot have been released is refused."""
    pairs: dict[str, list[Pair]] = {}
    try:
        for request, (_, body) in run.answers.items():
            if shared_round.is_part(body):
                continue
            pairs[request] = encoding.decode(body)
            for query, answer in pairs[request]:
                _check_fits(query, answer, schema)
            asked = [query for query, _ in pairs[request]]
            if encoding.name(asked, schema.hash, run.facts.neighbours) != request.partition(".")[0]:
                raise DecodeError("an answer is stored under the name of another request")
    except (DecodeError, QueryError, SchemaError) as error:
        raise LedgerError(
            f"{path} is damaged: the answers of run {run.logged.number} cannot be used: {error}. It was left as it is"
        ) from None
    return pairs


def _check_fits(query: Query[Any], answer: Answer | int, schema: Schema) -> None:
    """Refuse an answer whose shapes or sizes no release of this query has under this schema."""
    if not isinstance(query, Release) or not isinstance(answer, Answer):
        return
    check_fits(query, answer, transformation(query.statistic, schema))


def _candidates(runs: dict[int, StoredRun], passing_over: tuple[str, ...]) -> list[int]:
    """Runs whose method begins with none of these words."""
    return [n for n, one in runs.items() if not one.logged.facts.method.startswith(passing_over)]


def _chosen(path: Path | str, runs: dict[int, StoredRun], run: int | None, passing_over: tuple[str, ...]) -> StoredRun:
    if not runs:
        raise LedgerError(f"{path} has no run with stored answers ('dpcurate ledger log' lists its runs)")
    found = _candidates(runs, passing_over)
    if run is None and not found:
        others = ", ".join(f"{n} ({one.logged.facts.method})" for n, one in runs.items())
        raise LedgerError(f"{path} has no run of this kind with stored answers; runs that have: {others}")
    number = max(found) if run is None else run
    if number not in runs:
        raise LedgerError(f"run {number} of {path} has no stored answers; runs that have: {', '.join(map(str, runs))}")
    return runs[number]


def _schema(path: Path | str, run: StoredRun) -> Schema:
    known = {schema.hash: schema.text for schema in run.schemas}
    if run.logged.facts.schema not in known:
        raise LedgerError(f"{path} does not hold the schema {run.logged.facts.schema} of run {run.logged.number}")
    return Schema.loads(known[run.logged.facts.schema])
