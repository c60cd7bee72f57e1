"""What can keep runs: a curator here, a curator on a server, several sites together."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol, cast

from dpcurate.private.ledger import LoggedRun, RunFacts
from dpcurate.private.origin import TableOrigin
from dpcurate.private.stored import StoredAnswers
from dpcurate.queries import Queryable


class RunKeeper(Queryable, Protocol):
    """A queryable that begins, logs and resumes runs, so that a `Study` can work on it.

    To add another kind, implement this and hand it to `Study.over`.
    """

    @property
    def keeps_runs(self) -> bool:
        """Whether runs are logged and resumed; if not, a run is a reserved part of the budget and nothing else."""

    @property
    def running(self) -> int | None:
        """The number of the run that is under way here."""

    @property
    def table(self) -> str:
        """The table's name in its ledger; empty without one."""

    @property
    def analyst(self) -> str | None:
        """The name under which runs are logged; None if the caller says who runs them."""

    @property
    def origin(self) -> TableOrigin:
        """Which table it is, as far as that can be told without its rows."""

    @property
    def passes(self) -> int:
        """How often the table was read from end to end; 0 where that is not known."""

    def run(self, facts: RunFacts, *, share: float | None = None) -> AbstractContextManager[object]:
        """A run that may spend `share`; the run of the same command that was stopped is resumed."""

    def log(self) -> tuple[LoggedRun, ...]:
        """Every run, in order."""

    def stopped(self, command: str) -> LoggedRun | None:
        """The stopped run that the same command would resume."""

    def stored(self, run: int | None = None, *, passing_over: tuple[str, ...] = ()) -> StoredAnswers:
        """The stored answers of a run, by default of the newest whose method begins with none of `passing_over`."""


def keeper_of(queryable: Queryable | None) -> RunKeeper | None:
    """The queryable, if it can keep runs."""
    return cast(RunKeeper, queryable) if hasattr(type(queryable), "keeps_runs") else None
