"""A curator on a server, as a queryable that keeps runs: a `Study` works on it as on a table here.

Learning happens on this side, and only queries and answers travel. Every request has an id, so that a request that is
sent again is paid once. If the service was started again in the middle of a run, the run is begun again, what was
asked before is asked again at no cost, and the method goes on.
"""

from __future__ import annotations

import secrets
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from dpcurate.accounting import Budget, Event, Privacy
from dpcurate.errors import DpcurateError, LedgerError, QueryError, RefusedError, ServiceError
from dpcurate.private.ledger import LoggedRun, RunFacts
from dpcurate.private.origin import TableOrigin
from dpcurate.private.preview import check_answer, named, sensitivity_of
from dpcurate.private.stored import StoredAnswers
from dpcurate.queries import AboveThreshold, Gate, Query, Release, Sample, Score, Statistic, T
from dpcurate.queries.encoding import to_plain
from dpcurate.remote import wire
from dpcurate.remote.connection import Connection, Failure, new_request
from dpcurate.remote.wire import Fields, RunRequest
from dpcurate.schema import Neighbours, Schema

MOST_KNOWN = 200_000
U = TypeVar("U")


@dataclass
class _Run:
    """A run under way on the server."""

    wanted: RunRequest
    id: str
    number: int
    remaining: float
    asked: list[dict[str, Any]] = field(default_factory=list)
    """What was asked of the table so far, to ask it again of a service that was started again."""
    holds: bool = False
    """Whether a gate or a block was opened, which no other service knows."""


class RemoteCurator:
    """What `dpcurate.connect` opens: the public facts of a table on a server, and its answers within a share."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        told = Fields(connection_facts(connection))
        self._table = told.text("table", 1000)
        self._schema = Schema.loads(str(told.take("schema")))
        self._neighbours = Neighbours.of(told.text("neighbours"))
        self._analyst = told.text("analyst")
        self._budget = wire.budget_from_plain(told.take("guarantee"))
        self._spent = told.amount("spent")
        self._paid = 0.0
        self._steps: list[Event] = []
        self._known: dict[Statistic, float] = {}
        self._run: _Run | None = None
        self._done: deque[str] = deque()
        self._lock = threading.RLock()

    # --- public facts -------------------------------------------------------------------------------------------------

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
        """The ceiling of the table, which is the guarantee; an analyst spends a share of it."""
        return self._budget

    @property
    def remaining(self) -> float:
        """What the run under way may still spend, or else what is left for this analyst."""
        with self._lock:
            if self._run is not None:
                return self._run.remaining
            return Fields(self._get("/budget")).amount("remaining")

    def sensitivity(self, statistic: Statistic) -> float:
        """How far one unit can move a statistic (L1), from public facts."""
        known = self._known.get(statistic)
        if known is None:
            known = sensitivity_of(statistic, self._schema, self._neighbours)
            if len(self._known) < MOST_KNOWN:
                self._known[statistic] = known
        return known

    def draw(self) -> float:
        """A public random number in [0, 1), drawn here."""
        return secrets.randbelow(1 << 53) / (1 << 53)

    def privacy(self) -> Privacy:
        """What was asked here, at what cost, and what all runs on the table have spent."""
        facts = self._budget, self._neighbours.value, self._schema.unit
        return Privacy(*facts, self._spent, tuple(self._steps), True, self._paid)

    # --- questions ----------------------------------------------------------------------------------------------------

    def ask(self, query: Query[T]) -> T:
        """The answer to one query."""
        return self.ask_all([query])[0]

    def ask_all(self, queries: Sequence[Query[T]]) -> list[T]:
        """The answers to queries that are charged together."""
        return self._answers(queries, "") if queries else []

    def _answers(self, queries: Sequence[Query[T]], place: str) -> list[T]:
        listed = list(queries)
        told = self._asked("/ask", {"queries": [to_plain(query) for query in listed], "place": place})
        found = wire.answers_from_plain(listed, told.listed("answers"))
        for query, answer in zip(listed, found, strict=True):
            if isinstance(query, Release) and not place:
                check_answer(query, answer, self._schema, self._neighbours)
        return [named(query, answer, self._schema) for query, answer in zip(listed, found, strict=True)]

    def open(self, gate: Gate[T]) -> T:
        """Open an interactive gate on the server; it ends with the run."""
        return cast(T, self._opened(gate, ""))

    def _let_go(self) -> list[str]:
        """Gates and samples that nobody here can ask any more, so that the service need not keep them either."""
        names = []
        while self._done:
            names.append(self._done.popleft())
        return names

    def _opened(self, gate: Gate[Any], place: str, inside: object = None) -> Any:
        self._begun().holds = True
        told = self._asked("/gates", {"gate": to_plain(gate), "place": place})
        name = told.text("gate")
        kind = _GATES.get(type(gate))
        if kind is not None:
            opened = kind(self, name, inside)
            weakref.finalize(opened, self._done.append, name).atexit = False
            return opened
        raise QueryError(f"{type(gate).__name__} is not a gate of a service: open AboveThreshold or Sample itself")

    @contextmanager
    def reserve(self, amount: float) -> Iterator[None]:
        """Set budget aside for many small queries; what is not used comes back."""
        self._begun().holds = True
        block = self._asked("/blocks", {"amount": float(amount)}).text("block")
        try:
            yield
        except BaseException:
            with suppress(DpcurateError):  # the run ends, and its blocks with it
                self._asked(f"/blocks/{block}/end", {})
            raise
        self._asked(f"/blocks/{block}/end", {})

    def _begun(self) -> _Run:
        if self._run is None:
            raise QueryError("a service answers within a run: use the methods of a study, such as study.ask")
        return self._run

    def _asked(self, path: str, body: dict[str, Any]) -> Fields:
        """What the run is answered; a run that the service does not know any more is begun again."""
        with self._lock:
            run = self._begun()
            body = {**body, "request": new_request(), "done": self._let_go()}
            try:
                told = self._connection.post(f"/runs/{run.id}{path}", body)
            except Failure as failure:
                if failure.code != "run" or run.holds:
                    raise failure.error() from None
                self._again(run)
                told = self._raised(lambda: self._connection.post(f"/runs/{run.id}{path}", body))
            if path == "/ask" and not run.holds:
                run.asked.append(body)
            return self._noted(run, told)

    def _noted(self, run: _Run, told: Mapping[str, Any]) -> Fields:
        """Take down what is left and what was charged."""
        fields = Fields(told)
        run.remaining, self._spent = fields.amount("remaining"), fields.amount("spent")
        self._paid += fields.amount("cost")
        self._steps += [wire.event_from_plain(step) for step in fields.listed("steps")]
        return fields

    def _again(self, run: _Run) -> None:
        """Resume the run at a service that was started again, which then knows what the method has asked so far."""
        told = self._begin(run.wanted)
        number = told.whole("number")
        if number != run.number and run.asked:
            self._end_quietly(told.text("run"), "stopped")
            raise ServiceError(
                "the service was started again and has begun another run; nothing was spent by it. Call again"
            )
        run.number = number  # nothing had been asked yet, so there was nothing to resume
        run.id, run.remaining = told.text("run"), told.amount("remaining")
        for body in run.asked:
            again = {**body, "request": new_request()}
            answered = self._raised(lambda again=again: self._connection.post(f"/runs/{run.id}/ask", again))  # type: ignore[misc]
            run.remaining = Fields(answered).amount("remaining")

    # --- runs ---------------------------------------------------------------------------------------------------------

    @property
    def keeps_runs(self) -> bool:
        """Always, on the server."""
        return True

    @property
    def running(self) -> int | None:
        """The number of the run that is under way here."""
        return None if self._run is None else self._run.number

    @property
    def table(self) -> str:
        """The table's name in its ledger."""
        return self._table

    @property
    def analyst(self) -> str | None:
        """Whose token asks."""
        return self._analyst

    @property
    def origin(self) -> TableOrigin:
        """Which table it is: the address of its service."""
        return TableOrigin(place=self._connection.url)

    @property
    def passes(self) -> int:
        """Not known here."""
        return 0

    @contextmanager
    def run(self, facts: RunFacts, *, share: float | None = None) -> Iterator[None]:
        """A run that may spend `share`, on the server; the one of the same command that was stopped is resumed."""
        if self._run is not None:
            raise LedgerError("a run is under way here already")
        wanted = RunRequest(new_request(), facts, None if share is None else float(share))
        told = self._begin(wanted)
        run = _Run(wanted, told.text("run"), told.whole("number"), told.amount("remaining"))
        self._run, self._spent = run, told.amount("spent")
        self._done.clear()
        try:
            yield
        except BaseException as error:
            self._run = None
            self._end_quietly(run.id, outcome(error))
            raise
        self._run = None
        self._end(run)

    def _begin(self, wanted: RunRequest) -> Fields:
        return Fields(self._raised(lambda: self._connection.post("/runs", wanted.to_plain())))

    def _end(self, run: _Run) -> None:
        """Say that the run is finished; one that the service does not know any more can be resumed and is complete."""
        try:
            told = Fields(self._connection.post(f"/runs/{run.id}/end", {"outcome": "finished"}))
        except Failure as failure:
            if failure.code not in ("run", "run-taken"):
                raise failure.error() from None
            return
        self._spent = told.amount("spent")

    def _end_quietly(self, id: str, word: str) -> None:
        """Say how a run ended, if the service can hear it: what stopped the run matters more."""
        with suppress(DpcurateError):
            self._connection.post(f"/runs/{id}/end", {"outcome": word})

    def log(self) -> tuple[LoggedRun, ...]:
        """The runs of this analyst, or of the team, in order."""
        return tuple(map(wire.run_from_plain, Fields(self._get("/runs")).listed("runs")))

    def stopped(self, command: str) -> LoggedRun | None:
        """The stopped run that the same command would resume."""
        run = Fields(self._get("/runs/stopped", {"command": command})).take("run")
        return None if run is None else wire.run_from_plain(run)

    def stored(self, run: int | None = None, *, passing_over: tuple[str, ...] = ()) -> StoredAnswers:
        """The stored answers of a run, by default of the newest whose method begins with none of `passing_over`."""
        if run is None:
            found = [one for one in self.log() if one.answers and not one.facts.method.startswith(passing_over)]
            if not found:
                raise LedgerError("there are no stored answers of such a run that you may read")
            run = found[-1].number
        stored = wire.stored_from_plain(
            {k: v for k, v in self._get(f"/answers/{int(run)}").items() if k != "version"}
        )  # fmt: skip
        return StoredAnswers.of_runs(self._connection.url, {stored.logged.number: stored}, run, passing_over)

    # --- the service itself -------------------------------------------------------------------------------------------

    def _get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        return self._raised(lambda: self._connection.get(path, query))

    def _raised(self, call: Callable[[], U]) -> U:
        """What a call gives; its failure as the error that a caller expects."""
        try:
            return call()
        except Failure as failure:
            raise failure.error() from None

    def __repr__(self) -> str:
        return f"RemoteCurator({self._table!r} at {self._connection.url}, as {self._analyst}, budget: {self._budget})"


class RemoteThreshold:
    """An above-threshold gate that is open on a server."""

    def __init__(self, curator: RemoteCurator, name: str, inside: object = None) -> None:
        self._curator, self._name = curator, name
        self._inside = inside  # a sample lives as long as its gates
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the gate has said yes."""
        return self._closed

    def ask(self, score: Score) -> bool:
        """Whether the score is (about) positive; the first yes closes the gate."""
        return self.first([score]) is not None

    def first(self, scores: Sequence[Score]) -> int | None:
        """The first of the scores to which the gate says yes; it then closes."""
        if not scores:
            return None
        told = self._curator._asked(f"/gates/{self._name}/first", {"scores": [to_plain(one) for one in scores]})  # noqa: SLF001
        index = told.take("first")
        if index is None:
            return None
        if type(index) is not int or not 0 <= index < len(scores):
            raise ServiceError("the service answered what no gate answers")
        self._closed = True
        return index


class RemoteSample:
    """A secret sample of the rows that is open on a server."""

    def __init__(self, curator: RemoteCurator, name: str, inside: object = None) -> None:
        self._curator, self._name = curator, name

    def ask(self, query: Query[T]) -> T:
        """The answer of the sample."""
        return self._curator._answers([query], self._name)[0]  # noqa: SLF001

    def open(self, gate: Gate[T]) -> T:
        """A gate on the sample."""
        return cast(T, self._curator._opened(gate, self._name, self))  # noqa: SLF001


_GATES: dict[type[Any], Callable[..., Any]] = {AboveThreshold: RemoteThreshold, Sample: RemoteSample}


def connection_facts(connection: Connection) -> dict[str, Any]:
    """What a service says of its table."""
    try:
        return connection.get("/facts")
    except Failure as failure:
        raise failure.error() from None


def outcome(error: BaseException) -> str:
    """How the log calls what ended a run."""
    if isinstance(error, RefusedError):
        return "refused"
    return "failed" if isinstance(error, Exception) else "stopped"
