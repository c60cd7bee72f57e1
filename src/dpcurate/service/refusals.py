"""What an analyst is told when something is refused or goes wrong: a code and a sentence, free of paths and of rows.

A message of an error that is about queries and public facts is passed on. One that may name a file, or quote an
engine, is replaced by a sentence of ours.
"""

from __future__ import annotations

from dpcurate.errors import (
    BudgetError,
    BudgetExceeded,
    DecodeError,
    GateClosed,
    LedgerError,
    NotPrivate,
    NotStored,
    QueryError,
    RefusedError,
    ServiceError,
    ShareRevoked,
    SourceError,
    WaitingForConsent,
)
from dpcurate.remote import wire
from dpcurate.service.limits import TooMuch
from dpcurate.service.server_runs import RunTaken, Stopping, UnknownRun

LONGEST = 2000


class Problem(ServiceError):
    """Something is wrong with a request as such; `code` is one of `wire.ERRORS`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


CODES: tuple[tuple[type[Exception], str], ...] = (
    (DecodeError, "body"),
    (TooMuch, "limit"),
    (Stopping, "stopping"),
    (RunTaken, "run-taken"),
    (UnknownRun, "run"),
    (WaitingForConsent, "waiting"),
    (NotPrivate, "not-private"),
    (BudgetExceeded, "budget"),
    (ShareRevoked, "revoked"),
    (GateClosed, "gate"),
    (NotStored, "answers"),
    (SourceError, "table"),
    (LedgerError, "ledger"),
    (RefusedError, "refused"),
    (BudgetError, "amount"),
    (QueryError, "query"),
)
"""The code of each kind of error, the most special kinds first."""
OURS = {
    "table": "the table could not be read. What was paid for stays paid, and the same request is answered at no "
    "further cost once the owner has repaired it",
    "ledger": "the ledger of this table could not be used for this; nothing was released. Ask the owner",
    "answers": "there are no such stored answers that you may read",
    "internal": "something went wrong in the service, and the owner can see what. Nothing more is known here",
}
"""What is said where the error's own words are for the owner."""


def told(error: BaseException) -> tuple[str, str]:
    """The code and the sentence for an error."""
    if isinstance(error, Problem):
        code = error.code
    else:
        code = next((code for kind, code in CODES if isinstance(error, kind)), "internal")
    sentence = OURS.get(code, str(error))
    return code, sentence if len(sentence) <= LONGEST else f"{sentence[:LONGEST]}..."


def to_plain(code: str, sentence: str) -> dict[str, object]:
    """An error for JSON."""
    return {"version": wire.VERSION, "error": {"code": code, "message": sentence}}
