"""What the service remembers besides spending: who has which token, what the owner consented to, and what happened.

Tokens are kept as SHA-256 in the shares of the ledger (docs/proofs/shares.md). Requests for consent are entries of the
log (logbook.py), so that whatever the owner decided is in its hash chain.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpcurate._messages import shown
from dpcurate.accounting import Budget
from dpcurate.errors import LedgerError, RefusedError
from dpcurate.private.ledger import Ledger, Share
from dpcurate.private.ledger import path as ledger_path
from dpcurate.private.ledger.shares import check_name
from dpcurate.service import logbook
from dpcurate.service.logbook import Entry, Fact, Logbook

WAITING, APPROVED, DENIED, USED = "waiting", "approved", "denied", "used"
STATES = (WAITING, APPROVED, DENIED, USED)
MOST_WAITING = 20
"""Requests of one analyst that may wait at a time."""
NOT_AGREED = ("power", "remaining", "number", "state")
"""Facts that are shown to the owner and may differ when the same request is made again."""
_EVENT = re.compile(r"[a-z][a-z-]{0,39}")
_CONSENT = "consent-"


@dataclass(frozen=True, slots=True)
class Request:
    """A run that waits, or waited, for the owner's consent. `facts` is what the analyst said of it."""

    number: int
    analyst: str
    facts: Mapping[str, Fact]
    state: str
    asked: str
    decided: str | None


@dataclass(frozen=True, slots=True)
class LogNote:
    """An entry that is to be written; `analyst` is empty if it is about nobody in particular."""

    event: str
    analyst: str
    facts: Mapping[str, object]

    def __post_init__(self) -> None:
        if not _EVENT.fullmatch(self.event) or self.event.startswith(_CONSENT):
            raise LedgerError(f"an event is a short word in lower case, got {shown(self.event)}")
        if self.analyst:
            check_name(self.analyst)


class Records:
    """Tokens, consents and the log of one ledger. Safe to share between threads and processes, but not over a fork.

    >>> records = Records.open("patients.ledger")                                # doctest: +SKIP
    >>> token = records.add_token("alice", 0.4, purpose="cohort study")          # doctest: +SKIP
    >>> records.analyst(token)                                                   # doctest: +SKIP
    'alice'
    """

    def __init__(self, ledger: Ledger, book: Logbook, *, approve_all: bool = False) -> None:
        self._ledger, self._book = ledger, book
        self.approve_all: bool = approve_all

    @classmethod
    def open(cls, ledger: str | Path, *, approve_all: bool = False) -> Records:
        """The records of a ledger that exists; a file next to it is made if there is none.

        With `approve_all` every run of every analyst waits for the owner's consent.
        """
        path = ledger_path.real(ledger)
        opened = Ledger.open(path)
        assert opened.facts is not None
        return cls(opened, Logbook.beside(path, opened.facts.identity), approve_all=approve_all)

    @property
    def ledger(self) -> Ledger:
        """The ledger that keeps the budget and the shares."""
        return self._ledger

    @property
    def path(self) -> Path:
        """Where the log is."""
        return self._book.path

    def close(self) -> None:
        """Let go of the log's file."""
        self._book.close()

    # --- tokens ------------------------------------------------------------------------------------------------------

    def add_token(
        self, name: str, epsilon: float, *, purpose: str = "", reserved: bool = False, approval: bool = False
    ) -> str:
        """Grant a share of the budget and return the token that spends it. The token is not kept and not shown again.

        Nobody else may spend a `reserved` share; others are served first come, first served. With `approval` every run
        waits for the owner's consent.

        Raises:
            LedgerError: the name has a share already, or there is not so much to grant.
        """
        token = secrets.token_urlsafe(32)
        budget = self._ledger.budget
        amount = Budget(epsilon=epsilon, delta=budget.delta).ceiling
        self._ledger.grant(
            name, amount, reserved=reserved, purpose=purpose, token=hash_of(token), approval=approval
        )  # fmt: skip
        self.write("token-added", name, epsilon=epsilon, purpose=purpose, reserved=reserved, approval=approval)
        return token

    def revoke(self, name: str) -> None:
        """End a share and its token at once; what it has spent stays spent."""
        self._ledger.revoke(name)
        self.write("token-revoked", name)

    def tokens(self) -> tuple[Share, ...]:
        """Every share that was granted, in order, revoked ones too."""
        return self._ledger.shares

    def analyst(self, token: str) -> str | None:
        """Whose token this is; None if nobody's, or revoked.

        The hash of the token is compared with that of every share in constant time, and none is skipped.
        """
        if not isinstance(token, str):
            return None
        mine, found = hash_of(token), None
        for share in self._ledger.shares:
            same = hmac.compare_digest(mine, share.token or " " * len(mine))
            if same and not share.revoked:
                found = share.name
        return found

    def named(self, name: str) -> str | None:
        """The analyst of this name, if there is a share: for a name that a trusted proxy vouches for."""
        return next((share.name for share in self._ledger.shares if share.name == name and not share.revoked), None)

    # --- consent -----------------------------------------------------------------------------------------------------

    def needs_consent(self, analyst: str) -> bool:
        """Whether every run of this analyst waits for the owner."""
        return self.share(analyst).approval or self.approve_all

    def consent(self, analyst: str, request: Mapping[str, object]) -> str:
        """What the owner says to a run: "approved", "waiting" or "denied"; a new request is noted and waits.

        `request` tells what the owner needs to know: `command`, `method`, `epsilon`, `purpose`, `power`. The same
        request of the same analyst is the same entry; a request that differs in any fact but the expected power is
        another one, so nobody can spend more than was agreed. Waiting holds no budget. An analyst whose share needs
        no approval is answered "approved", and nothing is noted.

        Raises:
            RefusedError: too many requests of this analyst wait.
        """
        if not self.needs_consent(analyst):
            return APPROVED
        key = _key(analyst, request)
        with self._book.reading() as connection:
            state = _newest(connection, key)
        if state not in (None, USED):
            return str(state)
        with self._book.writing() as connection:
            state = _newest(connection, key)  # another thread may have been faster
            if state not in (None, USED):
                return str(state)
            if sum(one.state == WAITING for one in _requests(connection, analyst)) >= MOST_WAITING:
                raise RefusedError(f"{MOST_WAITING} requests wait for the owner already; nothing was spent")
            number = 1 + int(connection.execute("SELECT coalesce(max(request), 0) FROM entry").fetchone()[0])
            logbook.add(connection, _CONSENT + WAITING, analyst, facts=request, request=number, key=key)
        return WAITING

    def use_consent(self, analyst: str, request: Mapping[str, object]) -> bool:
        """Use up a consent for a run that begins now; the next run of the same command asks again.

        Whether it was approved and not used before: of two at once, one gets it. Resuming a stopped run needs no
        consent, because it spends from what was agreed for that run.
        """
        if not self.needs_consent(analyst):
            return True
        key = _key(analyst, request)
        with self._book.writing() as connection:
            if _newest(connection, key) != APPROVED:
                return False
            number = connection.execute("SELECT max(request) FROM entry WHERE key = ?", (key,)).fetchone()[0]
            logbook.add(connection, _CONSENT + USED, analyst, facts={}, request=number, key=key)
        return True

    def requests(self, state: str | None = None) -> tuple[Request, ...]:
        """Requests for consent, in order; all, or those in one state."""
        if state is not None and state not in STATES:
            raise LedgerError(f"a request is {', '.join(STATES)}, not {shown(state)}")
        with self._book.reading() as connection:
            return tuple(one for one in _requests(connection) if state in (None, one.state))

    def decide(self, number: int, approved: bool) -> None:
        """Approve or deny a request; a decision may be changed until the run begins.

        Raises:
            LedgerError: there is no such request, or its run has begun.
        """
        with self._book.writing() as connection:
            found = {one.number: one for one in _requests(connection)}.get(number)
            if found is None:
                raise LedgerError(f"there is no request {shown(number)}; 'dpcurate serve log' lists them")
            state = APPROVED if approved else DENIED
            if found.state == USED:
                raise LedgerError(f"the run of request {number} has begun; revoke the token to stop it from spending")
            if found.state != state:
                key = connection.execute("SELECT key FROM entry WHERE request = ?", (number,)).fetchone()[0]
                logbook.add(connection, _CONSENT + state, found.analyst, facts={}, request=number, key=key)

    def share(self, analyst: str) -> Share:
        """The share of an analyst."""
        for share in self._ledger.shares:
            if share.name == analyst:
                return share
        raise LedgerError(f"there is no share of {shown(analyst)}")

    # --- the log -----------------------------------------------------------------------------------------------------

    def write(self, event: str, analyst: str, **facts: object) -> None:
        """Add an entry to the log, durably. Facts are text, numbers, True, False or None; long text is cut.

        Never hand it anything about rows: analysts may read their own entries.
        """
        self.write_all([LogNote(event, analyst, facts)])

    def write_all(self, notes: Sequence[LogNote]) -> None:
        """Add entries in their order, all at once."""
        with self._book.writing() as connection:
            for note in notes:
                logbook.add(connection, note.event, note.analyst, facts=note.facts)

    def entries(self, analyst: str | None = None, *, last: int | None = None) -> Iterator[Entry]:
        """The log in order; all of it, what is about one analyst, or that of its `last` entries."""
        where: tuple[str, tuple[object, ...]] = ("", ()) if analyst is None else ("analyst = ?", (analyst,))
        if last is not None:
            newest = "id > (SELECT coalesce(max(id), 0) FROM entry) - ?"
            where = (newest, (last,)) if analyst is None else (f"{where[0]} AND {newest}", (analyst, last))
        with self._book.reading() as connection:
            found = tuple(logbook.entries(connection, *where))
        return iter(found)

    def newest(self, analyst: str, most: int) -> tuple[Entry, ...]:
        """The newest entries about one analyst, in order."""
        where = "id IN (SELECT id FROM entry WHERE analyst = ? ORDER BY id DESC LIMIT ?)"
        with self._book.reading() as connection:
            return tuple(logbook.entries(connection, where, (analyst, most)))

    def verify(self) -> tuple[int, str]:
        """Check that every entry is as it was written; the number and the hash of the last one.

        An entry that was cut off at the end leaves a chain that is whole. Keep the hash elsewhere to notice it.

        Raises:
            LedgerError: the chain is broken; the message says where.
        """
        with self._book.reading() as connection:
            return logbook.check(connection, self.path)


def hash_of(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _key(analyst: str, request: Mapping[str, object]) -> str:
    """What makes a request the same again: who asks, and all that the owner agrees to."""
    agreed = {name: value for name, value in sorted(request.items()) if name not in NOT_AGREED}
    return hashlib.sha256(json.dumps([analyst, agreed], default=str).encode()).hexdigest()


def _newest(connection: sqlite3.Connection, key: str) -> str | None:
    """The state of the newest request with this key."""
    found = connection.execute("SELECT event FROM entry WHERE key = ? ORDER BY id DESC LIMIT 1", (key,)).fetchone()
    return None if found is None else str(found[0]).removeprefix(_CONSENT)


def _requests(connection: sqlite3.Connection, analyst: str | None = None) -> tuple[Request, ...]:
    """Every request, folded out of its entries."""
    told: dict[int, Request] = {}
    where = "request IS NOT NULL" + ("" if analyst is None else " AND analyst = ?")
    for one in logbook.entries(connection, where, () if analyst is None else (analyst,)):
        assert one.request is not None
        state = one.event.removeprefix(_CONSENT)
        before = told.get(one.request)
        if before is None:
            told[one.request] = Request(one.request, one.analyst, one.facts, state, one.written, None)
        else:
            decided = before.decided if state == USED else one.written
            told[one.request] = Request(before.number, before.analyst, before.facts, state, before.asked, decided)
    return tuple(told.values())
