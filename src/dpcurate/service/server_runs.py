"""Runs of analysts on the server: begun, resumed, asked and ended under the analyst's name and share.

A run is a lease with an id, which only the analyst who began it can use. It ends when its client ends it, when the
client has been silent for too long, or with the service. A gate or a block belongs to its run. What a client that
fell silent had set aside in a block counts as spent.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from dpcurate._messages import how_many
from dpcurate.accounting import Event
from dpcurate.errors import QueryError, RefusedError
from dpcurate.private.curator import Curator
from dpcurate.private.ledger import LoggedRun, RunFacts
from dpcurate.private.session import Session
from dpcurate.queries import Choose, Gate, Query, Sample, Score, encoding
from dpcurate.service.limits import HourlySum, Limits, TooMuch
from dpcurate.service.records import Records

OUTCOMES: dict[str, type[BaseException] | None] = {
    "finished": None, "refused": RefusedError, "failed": Exception, "stopped": BaseException,
}  # fmt: skip
"""How a client may say that its run ended, and the exception by which a ledger tells these apart."""
ANSWERS_KEPT = 2
"""Responses that a run keeps for a client that lost its connection and asks again with the same request id."""
T = TypeVar("T")


class UnknownRun(RefusedError):
    """No run of this analyst has this id: it has ended, or the service was started again since."""


class Stopping(RefusedError):
    """The service is about to end; it will be there again."""


class RunTaken(UnknownRun):
    """The same command was given once more, and that client goes on with the run."""


@dataclass(frozen=True, slots=True)
class RunningRun:
    """A run under way, for the owner. Times are seconds."""

    number: int
    analyst: str
    method: str
    purpose: str
    requests: int
    paid: float
    age: float
    idle: float


class StoredBytes:
    """What the ledger stores for each analyst, within the limit of an hour."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._sum, self._lock = limits, HourlySum(), threading.Lock()

    def add(self, analyst: str, size: int) -> None:
        """Count bytes that are about to be stored.

        Raises:
            TooMuch: they are more than an analyst may have stored within an hour.
        """
        most = self._limits.hourly_bytes
        with self._lock:
            if self._sum.total(analyst) + size > most:
                raise TooMuch(
                    f"your answers of an hour would take {most:,} bytes of the ledger, which is the limit; ask for "
                    "less, or go on later. Nothing was spent"
                )
            self._sum.add(analyst, size)


class ServerRun:
    """One run under way. Every method takes the run's lock, so that requests are answered one after the other."""

    def __init__(
        self, session: Session, facts: RunFacts, share: float | None, request: str, limits: Limits, stored: StoredBytes
    ) -> None:
        """Begin the run on the ledger, or resume it."""
        self.id = secrets.token_urlsafe(18)
        self.facts, self.request, self._limits = facts, request, limits
        self._session, self._stored = session, stored
        self._context: AbstractContextManager[Any] = session.run(facts, share=share)
        self._lock = threading.RLock()
        self._places: dict[str, Any] = {"": session}
        self._inside: dict[str, str] = {}
        self._blocks: dict[str, AbstractContextManager[object]] = {}
        self._answers: dict[str, Any] = {}
        self._ended = False
        self._requests = 0
        run = self._context.__enter__()
        self.number: int = run.number
        self.resumed: bool = run.earlier > 0
        self._begun = self._touched = time.monotonic()

    # --- facts ----------------------------------------------------------------------------------------------------

    @property
    def remaining(self) -> float:
        """What the run may still spend, in the budget's currency."""
        return self._session.remaining

    @property
    def paid(self) -> float:
        """What was paid in this run by its requests, those included that an earlier process had paid."""
        return self._session.paid

    def told(self) -> RunningRun:
        """The run for the owner."""
        now = time.monotonic()
        return RunningRun(
            self.number, self.facts.by, self.facts.method, self.facts.purpose, self._requests, self._session.paid,
            now - self._begun, now - self._touched,
        )  # fmt: skip

    @property
    def idle(self) -> float:
        """Seconds since the last request; 0 while one is being answered."""
        if not self._lock.acquire(blocking=False):
            return 0.0
        self._lock.release()
        return time.monotonic() - self._touched

    @property
    def spent(self) -> float:
        """What all runs on the table have spent."""
        return self._session.ledger.spent

    def steps(self, start: int = 0) -> tuple[Event, ...]:
        """What the run was charged for, from the step of this number on."""
        return self._session.steps(start)

    # --- requests -------------------------------------------------------------------------------------------------

    def once(self, request: str, work: Callable[[ServerRun], T], after: Callable[[T], None] | None = None) -> T:
        """The result of `work`; that of the same request before, if it was done already.

        `after` comes when the result is kept: should it fail, the client that asks again gets the result.
        """
        with self._lock:
            self._touched = time.monotonic()
            if self._ended:
                raise UnknownRun("this run has ended; begin it again, and what it has paid for is not paid again")
            if request in self._answers:
                return self._answers[request]  # type: ignore[no-any-return]
            result = work(self)
            self._requests += 1
            self._answers[request] = result
            while len(self._answers) > ANSWERS_KEPT:
                self._answers.pop(next(iter(self._answers)))
            self._touched = time.monotonic()
            if after is not None:
                after(result)
            return result

    def ask(self, queries: Sequence[Query[Any]], place: str = "") -> list[Any]:
        """Answers of the table, or of the open secret sample `place`."""
        session = self._session_at(place)
        numbers = self._check_size(session, queries)
        self._stored.add(self.facts.by, len(encoding.encode_queries(queries)) + 8 * numbers)
        return session.ask_all(queries)

    def first(self, scores: Sequence[Score], place: str) -> int | None:
        """The index of the first score to which the gate `place` says yes, which closes it."""
        gate = self._places.get(place)
        if gate is None or isinstance(gate, Session):
            raise QueryError("there is no such open gate in this run")
        self._check_size(self._session, scores)
        index: int | None = gate.first(list(scores))
        if gate.closed:
            del self._places[place]
        return index

    def open(self, gate: Gate[Any], place: str = "") -> str:
        """Open a gate on the table or on an open sample; its id."""
        if len(self._places) > self._limits.gates:
            raise TooMuch(f"{how_many(self._limits.gates, 'gate')} are open in this run. Nothing was spent")
        samples = sum(isinstance(one, Session) for one in self._places.values()) - 1  # the table is one of these
        if isinstance(gate, Sample) and samples >= self._limits.samples:
            raise TooMuch(f"a run may have {how_many(self._limits.samples, 'secret sample')}. Nothing was spent")
        opened: Any = self._session_at(place).open(gate)
        name = secrets.token_urlsafe(9)
        self._places[name] = opened
        self._inside[name] = place
        return name

    def forget(self, names: Sequence[str]) -> None:
        """Let go of gates and samples that the client has no use for any more, with all that is open inside them."""
        for name in names:
            if name and self._places.pop(name, None) is not None:
                self.forget([inner for inner, outer in self._inside.items() if outer == name and inner in self._places])

    def reserve(self, amount: float) -> str:
        """Set aside a block; its id."""
        if self._blocks:
            raise QueryError("a block is set aside in this run already; end it before the next one")
        block = self._session.reserve(amount)
        block.__enter__()
        name = secrets.token_urlsafe(9)
        self._blocks[name] = block
        return name

    def settle(self, name: str) -> None:
        """End a block: what was not used of it is given back."""
        block = self._blocks.pop(name, None)
        if block is None:
            raise QueryError("there is no such block in this run")
        block.__exit__(None, None, None)

    def end(self, outcome: str, *, settle: bool) -> None:
        """End the run. `settle` gives back what blocks have not used; otherwise they count as spent."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            while settle and self._blocks:
                self.settle(next(iter(self._blocks)))
            self._places.clear()
            self._answers.clear()
            self._context.__exit__(OUTCOMES[outcome], None, None)

    def _session_at(self, place: str) -> Session:
        found = self._places.get(place)
        if not isinstance(found, Session):
            raise QueryError("there is no such open sample in this run")
        return found

    def _check_size(self, session: Session, asked: Sequence[Query[Any] | Score]) -> int:
        """How many numbers the answers hold; a request that is too large is refused."""
        limits = self._limits
        candidates = sum(len(one.candidates) if isinstance(one, Choose) else isinstance(one, Score) for one in asked)
        queries = sum(isinstance(one, Query) for one in asked)
        if queries > limits.queries:
            raise TooMuch(f"one request may hold {limits.queries:,} queries, got {queries:,}; ask for fewer")
        if candidates > limits.candidates:
            raise TooMuch(f"one request may hold {limits.candidates:,} candidates, got {candidates:,}; ask for fewer")
        cells = session.cells_for(asked)
        if cells > limits.cells:
            raise TooMuch(
                f"this request would read or release {cells:,} cells, and a request may have {limits.cells:,}: ask for "
                "smaller tables, or for fewer at a time. Nothing was spent"
            )
        numbers = session.numbers_for(asked)
        if numbers > limits.numbers:
            raise TooMuch(
                f"the answers would hold {numbers:,} numbers, and those of one request may hold {limits.numbers:,}: "
                "ask for smaller tables, or for fewer at a time. Nothing was spent"
            )
        return numbers


class ServerRuns:
    """Every run under way, by id."""

    def __init__(self, curator: Curator, records: Records, limits: Limits) -> None:
        self._curator, self._records, self._limits = curator, records, limits
        self._stored = StoredBytes(limits)
        self._lock = threading.Lock()
        self._beginning: dict[str, threading.Lock] = {}
        self._runs: dict[str, ServerRun] = {}
        self._taken: deque[tuple[str, str]] = deque(maxlen=1000)
        self.stopping = False

    def begin(
        self,
        analyst: str,
        request: str,
        facts: RunFacts,
        share: float | None,
        agree: Callable[[str], None] = lambda _command: None,
    ) -> ServerRun:
        """Begin a run, or resume the one of the same command of this analyst that was stopped.

        A run of the same command that is still open here is taken over from the client that began it: nobody can tell
        a client that died from one that is silent. That client's next request is refused. `agree` is called with the
        run's command in the ledger before it begins or resumes, and raises what stands against it.

        Raises:
            TooMuch: the analyst has too many runs open.
        """
        facts = replace(facts, command=command_of(analyst, facts.command), by=analyst, schema=self._curator.schema.hash)
        with self._turn(analyst):
            self.expire()
            mine = [run for run in self._all() if run.facts.by == analyst]
            for run in mine:
                if run.request == request:
                    return run
                if run.facts.command == facts.command:
                    self._end(run, "stopped", settle=False)
                    with self._lock:
                        self._taken.append((analyst, run.id))
            if sum(run.facts.command != facts.command for run in mine) >= self._limits.runs:
                raise TooMuch(f"{how_many(self._limits.runs, 'run')} of yours are open. Nothing was spent")
            agree(facts.command)
            session = self._curator.of_share(analyst)
            run = ServerRun(session, facts, share, request, self._limits, self._stored)
            with self._lock:
                self._runs[run.id] = run
            return run

    def find(self, analyst: str, id: str) -> ServerRun:
        """A run of this analyst; that of another is as unknown as one that is not there."""
        with self._lock:
            run, taken = self._runs.get(id), (analyst, id) in self._taken
        if taken:
            raise RunTaken("the same command was given again elsewhere, which goes on with this run")
        if run is None or run.facts.by != analyst:
            raise UnknownRun("there is no such open run; begin it again, and it resumes at no further cost")
        return run

    def finish(self, run: ServerRun, outcome: str) -> None:
        """End a run as its client says."""
        if outcome not in OUTCOMES:
            raise QueryError(f"a run ends as {', '.join(OUTCOMES)}")
        self._end(run, outcome, settle=True)

    def stopped(self, analyst: str, command: str) -> LoggedRun | None:
        """The run that the same command of this analyst would resume, stopped or taken over."""
        mine = command_of(analyst, command)
        ledger = self._curator.ledger
        for run in self._all():
            if run.facts.command == mine:
                return next((one for one in ledger.log() if one.number == run.number), None)
        return ledger.stopped(mine)

    def running(self) -> tuple[RunningRun, ...]:
        """Every run under way, the oldest first."""
        self.expire()
        return tuple(sorted((run.told() for run in self._all()), key=lambda run: run.number))

    def expire(self) -> None:
        """End the runs whose clients have been silent for too long; what they had set aside counts as spent."""
        for run in self._all():
            if run.idle > self._limits.idle_seconds:
                self._end(run, "stopped", settle=False)
                self._records.write("run-expired", run.facts.by, run=run.number)

    def close(self) -> None:
        """End every run, after what is being answered; each can be resumed."""
        self.stopping = True
        for run in self._all():
            self._end(run, "stopped", settle=True)

    def _all(self) -> list[ServerRun]:
        with self._lock:
            return list(self._runs.values())

    def _turn(self, analyst: str) -> threading.Lock:
        """One beginning of an analyst at a time, so that a repeated request finds the run of the first."""
        with self._lock:
            return self._beginning.setdefault(analyst, threading.Lock())

    def _end(self, run: ServerRun, outcome: str, *, settle: bool) -> None:
        run.end(outcome, settle=settle)
        with self._lock:
            self._runs.pop(run.id, None)


def command_of(analyst: str, command: str) -> str:
    """A client's command under the analyst's name: nobody resumes the run of another, nor the owner's."""
    return f"{analyst}:{command}"


def command_in(logged: str, analyst: str) -> str:
    """The client's own command, empty if the run is not this analyst's."""
    name, _, command = logged.rpartition(":")
    return command if name == analyst else ""
