"""What a service holds: one open curator, its records, and the runs of analysts that are under way.

The routes of analysts (app.py) and the owner's page are both made over a `ServiceHost`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dpcurate.accounting import Budget
from dpcurate.errors import LedgerError, QueryError, RefusedError, WaitingForConsent
from dpcurate.private.curator import Curator
from dpcurate.private.ledger import LoggedRun, Share
from dpcurate.remote.wire import RunRequest
from dpcurate.service.limits import Limits, Meter
from dpcurate.service.logbook import Entry
from dpcurate.service.records import DENIED, WAITING, LogNote, Records, Request
from dpcurate.service.server_runs import RunningRun, ServerRun, ServerRuns, Stopping

MOST_WAITING = 10_000
PAUSE = 0.2
"""Seconds between two transactions: while one is under way, no other file of ours is written."""


class LateNotes:
    """Writes entries of the log a moment later, many in one transaction, so that no answer waits for them.

    In order, in a thread of its own that ends with `close`. What was spent is in the ledger before an answer leaves;
    the log says who asked and why. A service that is killed may lose the entries of the last moment, never a charge.
    """

    def __init__(self, records: Records) -> None:
        self._records = records
        self._changed = threading.Condition()
        self._waiting: list[LogNote] = []
        self._taken = 0
        self._failed = self._closing = self._hurried = False
        self._thread: threading.Thread | None = None

    def add(self, event: str, analyst: str, **facts: Any) -> None:
        """Take down an entry."""
        with self._changed:
            self._waiting.append(LogNote(event, analyst, facts))
            self._taken += 1
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(target=self._write, name="log of the service", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def check(self) -> None:
        """Refuse to go on if nothing can be written; called before anything is charged.

        Raises:
            LedgerError: the log cannot be written, for want of space or because it is locked.
        """
        if self._failed or len(self._waiting) > MOST_WAITING:
            raise LedgerError("the log cannot be written")

    def flush(self) -> None:
        """Wait until everything taken down so far is written, or cannot be; what comes meanwhile is not waited for."""
        with self._changed:
            self._hurried, last = True, self._taken
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._failed or self._taken - len(self._waiting) >= last)

    def close(self) -> None:
        """Write what is left, and end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _write(self) -> None:
        done = False
        while not done:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                notes, closing = list(self._waiting), self._closing
            failed = bool(notes) and not self._written(notes)
            with self._changed:
                self._failed, self._hurried = failed, False
                if not failed:
                    del self._waiting[: len(notes)]
                done = closing and (failed or not self._waiting)
                self._changed.notify_all()
                if not done:
                    self._changed.wait_for(lambda: self._closing or self._hurried, PAUSE)

    def _written(self, notes: list[LogNote]) -> bool:
        """Whether these are on the disk; what could not be written is tried again, and `check` refuses meanwhile."""
        try:
            self._records.write_all(notes)
        except Exception:  # a full disk, a lock: the reason is the owner's, and is seen when the log is read
            return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """How a service behaves; `limits` hold for each token.

    With `team` every analyst may read the stored answers of all runs, otherwise only those of their own. With
    `whole_seconds` a response leaves on a whole second after its request came, so that its time says less about rows.
    `user_header` names the header in which a trusted proxy puts the analyst's name; without one only tokens count.
    `hosts` are the names under which requests are accepted; none accepts any.
    """

    limits: Limits = field(default_factory=Limits)
    team: bool = False
    whole_seconds: bool = False
    user_header: str | None = None
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BudgetState:
    """Where the table's budget stands, in its currency. `promised` is kept for holders of reserved shares."""

    budget: Budget
    spent: float
    remaining: float
    promised: float


class ServiceHost:
    """One open curator that analysts share, with the records of their tokens and the owner's consent.

    >>> curator = Curator("patients.parquet", "patients.toml", ledger="patients.ledger")      # doctest: +SKIP
    >>> host = ServiceHost(curator, Records.open("patients.ledger"))                          # doctest: +SKIP
    """

    def __init__(self, curator: Curator, records: Records, settings: ServiceSettings | None = None) -> None:
        """Raises QueryError if the curator keeps no budget in a file, or is not private."""
        if not curator.keeps_runs:
            raise QueryError("a service keeps its budget in a ledger on disk: open the curator with ledger=")
        facts = curator.ledger.facts
        if facts is None or facts.allow_unproved or not curator.ledger.private:
            raise QueryError("a service answers with a guarantee: open a ledger that admits no unproved release")
        self.curator, self.records = curator, records
        self.settings = ServiceSettings() if settings is None else settings
        self.runs = ServerRuns(curator, records, self.settings.limits)
        self.meter = Meter(self.settings.limits)
        self.notes = LateNotes(records)

    # --- for the owner ------------------------------------------------------------------------------------------------

    def budget(self) -> BudgetState:
        """Where the table's budget stands."""
        ledger = self.curator.ledger
        promised = sum(share.ceiling - share.spent for share in self.shares() if share.kept)
        return BudgetState(ledger.budget, ledger.spent, ledger.remaining, max(0.0, promised))

    def shares(self) -> tuple[Share, ...]:
        """Every share that was granted, in order, revoked ones too."""
        return self.records.tokens()

    def waiting(self) -> tuple[Request, ...]:
        """Runs that wait for the owner's consent."""
        return self.records.requests(WAITING)

    def decide(self, number: int, yes: bool) -> None:
        """Approve or deny a waiting run, by the number of its request.

        Raises:
            LedgerError: there is no such request, or its run has begun.
        """
        self.records.decide(number, approved=yes)

    def running(self) -> tuple[RunningRun, ...]:
        """Runs that are under way, the oldest first."""
        return self.runs.running()

    def log(self) -> tuple[LoggedRun, ...]:
        """Every run on the ledger, in order."""
        return self.curator.log()

    def entries(self, analyst: str | None = None) -> Iterator[Entry]:
        """What happened, in order: the service's own log, of everybody or of one analyst."""
        self.notes.flush()
        return self.records.entries(analyst)

    # --- for the server -----------------------------------------------------------------------------------------------

    def analyst(self, token: str) -> str | None:
        """Whose token this is; None if nobody's, or revoked."""
        return self.records.analyst(token)

    def share(self, analyst: str) -> Share:
        """The share of an analyst."""
        return self.records.share(analyst)

    def begin(self, analyst: str, wanted: RunRequest) -> ServerRun:
        """Begin a run of an analyst, or resume one, if the owner has nothing against it.

        Raises:
            WaitingForConsent: the owner has not decided yet; the same request begins the run afterwards.
            RefusedError: the owner has denied it, or nothing is left.
        """
        self.check_open()
        if wanted.facts.schema != self.curator.schema.hash:
            raise QueryError("the table's schema has changed since you connected; connect again. Nothing was spent")

        def agree(command: str) -> None:
            if not self.records.needs_consent(analyst) or self.curator.stopped(command) is not None:
                return
            if not self._is_unspent(command, wanted):
                self._check_consent(analyst, wanted)

        return self.runs.begin(analyst, wanted.request, wanted.facts, wanted.share, agree)

    def _is_unspent(self, command: str, wanted: RunRequest) -> bool:
        """Whether the newest run of this command was agreed to for this much, and ended before it had spent anything.

        It was for the same purpose by the same method, too: these are what the owner read.
        """
        newest = [run for run in self.curator.log() if run.facts.command == command][-1:]
        share, told = wanted.share, (wanted.facts.method, wanted.facts.purpose)
        return any(
            not run.finished and run.units == 0 and (run.facts.method, run.facts.purpose) == told
            and share is not None and share <= (run.allowed or 0) * (1 + 1e-12)
            for run in newest
        )  # fmt: skip

    def worth(self, share: float | None) -> float | str:
        """What a run may spend, by itself, as an epsilon; what a client says it is does not count."""
        return "all of the share" if share is None else self.curator.budget.as_epsilon(share)

    def _check_consent(self, analyst: str, wanted: RunRequest) -> None:
        facts = wanted.facts
        told = {
            "command": facts.command, "method": facts.method, "purpose": facts.purpose,
            "epsilon": self.worth(wanted.share),
            "power": self._power(analyst, wanted.share),
        }  # fmt: skip
        state = self.records.consent(analyst, told)
        if state == DENIED:
            raise RefusedError("the owner of the table has denied this run; nothing was spent")
        if state == WAITING or not self.records.use_consent(analyst, told):
            raise WaitingForConsent(
                "the owner of the table has to agree to this run first, and now sees it; nothing was spent. Once it is "
                "approved, the same call begins it"
            )

    def _power(self, analyst: str, share: float | None) -> str:
        """What the default method is expected to see with so much, from public facts."""
        schema, budget = self.curator.schema, self.curator.budget
        amount = self.share(analyst).ceiling if share is None else min(share, float(budget.ceiling))
        if schema.rows is None or len(schema.names) < 2 or amount <= 0:
            return ""
        from dpcurate.planning.estimate import Outlook  # loads SciPy, for which a start need not wait

        return " ".join(Outlook(schema=schema, rows=schema.rows, budget=budget.with_ceiling(amount)).sentences)

    @property
    def stopping(self) -> bool:
        """Whether the service is about to end and takes no more requests."""
        return self.runs.stopping

    def close(self) -> None:
        """Finish what is being answered, end every run so that it can be resumed, and let go of the records."""
        self.runs.close()
        self.notes.close()
        self.records.write("service-stopped", "")
        self.records.close()

    def check_open(self) -> None:
        """Refuse if the service is about to end, or cannot write down what happens."""
        self.notes.check()
        if self.stopping:
            raise Stopping("the service is about to stop; try again in a minute")
