"""Every error dpcurate raises on purpose, one tree under `DpcurateError`.

No message depends on a row, except an OwnerError's, which is raised in the owner's process
before there is an analyst's side.
"""

from __future__ import annotations

LONGEST = 1000
"""Characters of a message about a file."""


class DpcurateError(Exception):
    """Base of all errors raised on purpose by dpcurate."""


class _LineError(DpcurateError):
    """An error in a text file, with the line it was found on."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        if len(message) > LONGEST:  # a file may hold a name of any length
            message = f"{message[: LONGEST // 2]} ... {message[-LONGEST // 2 :]}"
        super().__init__(message if line is None else f"line {line}: {message}")
        self.line = line


class SchemaError(_LineError):
    """The public description of the table is wrong; `setting` names the part that is."""

    def __init__(self, message: str, *, line: int | None = None, setting: str | None = None) -> None:
        super().__init__(message, line=line)
        self.setting = setting


class FormatError(_LineError):
    """A file that could not be read."""


class OutputError(DpcurateError):
    """A file that must not be written over, or cannot be written."""


class DecodeError(DpcurateError):
    """Bytes that are not queries or answers."""


class GraphError(DpcurateError):
    """A graph or background knowledge that contradicts itself."""


class BudgetError(DpcurateError):
    """An epsilon, delta or rho that means nothing."""


class QueryError(DpcurateError):
    """A query that a session does not understand or cannot hold."""


class DomainTooLarge(QueryError):
    """A table with more cells than the limit."""


class PrivacyWarning(UserWarning):
    """A budget that is allowed and promises little."""


class PowerWarning(UserWarning):
    """An audit that would most likely not notice 0.7 of the noise."""


class RefusedError(DpcurateError):
    """Refused: nothing was read, nothing was spent."""


class BudgetExceeded(RefusedError):
    """Not enough budget is left."""


class ShareRevoked(RefusedError):
    """The analyst's share of the budget was revoked."""


class WaitingForConsent(RefusedError):
    """The run waits until the table's owner agrees to it."""


class NotPrivate(RefusedError):
    """An exact or unproved release was asked of a private curator."""


class NotStored(RefusedError):
    """Asked of stored answers, and not among them."""


class GateClosed(RefusedError):
    """An interactive gate that has given its last answer."""


class SourceError(DpcurateError):
    """The table could not be read; what was charged stays charged."""


class ServiceError(DpcurateError):
    """A service could not be reached, or answered what no service answers; the same call resumes the run."""


class LedgerError(DpcurateError):
    """A ledger on disk is damaged, foreign or about another table."""


class OwnerError(DpcurateError):
    """Something is wrong with the rows; raised only while a table is opened."""
