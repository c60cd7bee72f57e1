"""Shares of a ledger's budget: a ceiling of its own for each analyst, under the one of the table.

Guarantee, rules and proof: docs/proofs/shares.md. A share is told by the ledger's notes: `share NAME` grants it,
`share-spent NAME` says what it has spent, `share-revoked NAME` ends it. Amounts are in units (units.py).
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from dpcurate._messages import shown
from dpcurate.errors import LedgerError, ShareRevoked
from dpcurate.private.ledger import journal
from dpcurate.private.ledger.file import Damage
from dpcurate.private.ledger.units import float_down, float_up

_GRANTED, _SPENT, _REVOKED = "share", "share-spent", "share-revoked"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One analyst's part of a budget. `units` is its ceiling and `used` what it has spent, blocks included."""

    name: str
    units: int
    used: int = 0
    reserved: bool = False
    """Whether nobody else may spend it; if not, shares are served first come, first served."""
    revoked: bool = False
    purpose: str = ""
    token: str = ""
    """The SHA-256 of the token that spends it, in hexadecimal."""
    approval: bool = False
    """Whether each of its runs waits for the owner's consent."""
    since: str = ""

    @property
    def kind(self) -> str:
        """Reserved for its analyst, first come with others, or revoked."""
        return "revoked" if self.revoked else "reserved" if self.reserved else "first come"

    @property
    def left(self) -> int:
        """Units that it may still spend, by its own ceiling."""
        return 0 if self.revoked else max(0, self.units - self.used)

    @property
    def kept(self) -> int:
        """Units that nobody else may spend."""
        return self.left if self.reserved else 0

    @property
    def ceiling(self) -> float:
        """The most it may spend, in the budget's currency; rounded down."""
        return float_down(self.units)

    @property
    def spent(self) -> float:
        """What it has spent, in the budget's currency; rounded up."""
        return float_up(self.used)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What an owner gives an analyst."""

    name: str
    units: int
    reserved: bool = False
    purpose: str = ""
    token: str = ""
    approval: bool = False

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.token and not _HASH.fullmatch(self.token):
            raise LedgerError("a share keeps the SHA-256 of a token in hexadecimal, and never the token")
        if len(self.purpose) > 500 or not self.purpose.isprintable():
            raise LedgerError("a purpose is one line of at most 500 characters")


def check_name(name: str) -> None:
    """Refuse a name that a log or a terminal could misread."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise LedgerError(
            f"the name of an analyst has 1 to 64 letters, digits, '.', '_', '@' or '-', got {shown(name)}"
        )


# --- reading -------------------------------------------------------------------------------------------------


def read(connection: sqlite3.Connection) -> dict[str, Share]:
    """Every share by name, in the order of the first grant."""
    shares: dict[str, Share] = {}
    for note in journal.beginning(connection, _GRANTED):
        name = note.kind.partition(" ")[2]
        told = note.facts
        shares[name] = Share(
            name=name, units=int(told["units"]), used=_used(connection, name), reserved=told["reserved"] is True,
            revoked=_is_revoked(connection, name, note), purpose=str(told["purpose"]), token=str(told["token"]),
            approval=told["approval"] is True, since=note.written,
        )  # fmt: skip
    return shares


def _used(connection: sqlite3.Connection, name: str) -> int:
    note = journal.newest(connection, f"{_SPENT} {name}")
    return 0 if note is None else int(note.facts["total"])


def _is_revoked(connection: sqlite3.Connection, name: str, grant: journal.Note) -> bool:
    note = journal.newest(connection, f"{_REVOKED} {name}")
    return note is not None and note.place > grant.place


def taken(connection: sqlite3.Connection, share: str | None, spent: int, ceiling: int) -> int:
    """What counts as spent for whoever spends from this share; None is the owner, who has none.

    That is what is spent, with what is reserved for others, and at least so much that no more than the share is left.
    """
    shares = read(connection)
    others = sum(one.kept for one in shares.values() if one.name != share)
    if share is None:
        return spent + others
    mine = shares.get(share)
    return max(spent + others, ceiling - (0 if mine is None else mine.left))


def check_spendable(connection: sqlite3.Connection, share: str | None) -> None:
    """Refuse to spend from a share that is not there or was revoked."""
    if share is None:
        return
    mine = read(connection).get(share)
    if mine is None or mine.revoked:
        raise ShareRevoked(f"the share of {share} was revoked; nothing was read and nothing was spent. Ask the owner")


# --- writing: notes, by kind and body; the caller writes them in its own transaction --------------------------------


def granted(shares: Mapping[str, Share], grant: Grant, spent: int, ceiling: int) -> tuple[str, str]:
    """The note that grants a share; one that cannot be kept is refused."""
    known = shares.get(grant.name)
    if known is not None and not known.revoked:
        raise LedgerError(f"{grant.name} has a share already: revoke it first; what was spent stays spent")
    used = 0 if known is None else known.used
    if not used < grant.units <= ceiling:
        raise LedgerError(
            f"a share is more than what {grant.name} has spent before ({float_up(used):.4g}) and at most the ceiling "
            f"of the table ({float_down(ceiling):.4g}), got {float_down(grant.units):.4g}"
        )
    free = ceiling - spent - sum(one.kept for one in shares.values())
    if grant.reserved and grant.units - used > free:
        raise LedgerError(
            f"{float_down(grant.units - used):.4g} cannot be reserved: {max(0.0, float_down(free)):.4g} of the ceiling "
            "is neither spent nor reserved. Grant less, or a share that is first come, first served"
        )
    body = {"units": str(grant.units), "reserved": grant.reserved, "purpose": grant.purpose, "token": grant.token,
            "approval": grant.approval}  # fmt: skip
    return f"{_GRANTED} {grant.name}", json.dumps(body)


def revoked(shares: Mapping[str, Share], name: str) -> tuple[str, str]:
    """The note that ends a share."""
    if name not in shares or shares[name].revoked:
        known = ", ".join(one.name for one in shares.values() if not one.revoked) or "nobody"
        raise LedgerError(f"{shown(name)} has no share; {known} has")
    return f"{_REVOKED} {name}", "{}"


def spending(connection: sqlite3.Connection, name: str, units: int) -> tuple[str, str]:
    """The note that a share has spent so many units more, or got them back."""
    return f"{_SPENT} {name}", json.dumps({"by": str(units), "total": str(_used(connection, name) + units)})


def check(connection: sqlite3.Connection, spent: int) -> None:
    """Whether what the shares have spent adds up, and nobody has more than a share or the table."""
    totals: dict[str, int] = {}
    for note in journal.beginning(connection, _SPENT):
        name = note.kind.partition(" ")[2]
        totals[name] = totals.get(name, 0) + int(note.facts["by"])
        if totals[name] != int(note.facts["total"]) or totals[name] < 0:
            raise Damage(f"what the share of {shown(name)} has spent does not add up")
    shares = read(connection)
    if sum(totals.values()) > spent or any(name not in shares or shares[name].units < n for name, n in totals.items()):
        raise Damage("its shares have spent more than they may")
