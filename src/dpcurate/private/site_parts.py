"""A site's parts of rounds of shared noise: what the owner of its table gives, and nobody else can.

Whoever chose the other keys of a round could take the masks off a part, which carries one share of the noise. So no
session gives parts: not a curator that is handed to an analyst, and no service. Proof: docs/proofs/shared-noise.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dpcurate.accounting import Budget, Event
from dpcurate.errors import LedgerError, NotPrivate, QueryError
from dpcurate.private import shared_round
from dpcurate.private.curator import Curator
from dpcurate.private.masking import Masked, Round, SiteKey, check_keys, fresh_key, key_beside
from dpcurate.private.process import Unique
from dpcurate.private.reader import Reader
from dpcurate.private.session import Session, check_list
from dpcurate.private.sources import Source
from dpcurate.private.sources.site_column import WithSite
from dpcurate.queries import Answer, Query
from dpcurate.schema import Neighbours, Schema


class SiteParts(Unique):
    """A table as its owner opens it for rounds of shared noise, with the site's secret key.

    It is opened like a `Curator`, which it makes: `curator` answers ordinary questions on the same budget and may be
    handed on, because nothing leads from it to here. Parts are given to rounds of keys that were approved.
    """

    def __init__(
        self,
        table: Any,
        schema: Schema | str | Path | dict[str, Any] | None = None,
        *,
        budget: Budget | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        ledger: str | Path | None = None,
        name: str | None = None,
    ) -> None:
        self._curator = Curator(table, schema, budget=budget, neighbours=neighbours, ledger=ledger, name=name)
        self._begin(self._curator)

    def _begin(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._key: SiteKey | None = None
        self._approved: set[tuple[str, ...]] = set()
        self._rounds: dict[str, tuple[str, Masked | None]] = {}

    @property
    def curator(self) -> Curator:
        """The table for ordinary questions."""
        return self._curator

    @property
    def public_key(self) -> str:
        """The site's public key, for studies with shared noise; its secret is kept beside the ledger."""
        return self._own_key().public

    def approve(self, keys: Sequence[str]) -> None:
        """Take part in rounds of these keys, one for each site, in this order: the owner knows whose each is.

        Raises:
            QueryError: the site's own key is not among them, one occurs twice, or one is none that a site makes.
        """
        check_keys(keys)
        self._own_key().check(keys)
        self._approved.add(tuple(keys))

    def ready(self, queries: Sequence[Query[Answer]], turn: Round) -> float:
        """What the site would be charged for its part of a round; what it would refuse is refused, and nothing read."""
        session = self._session
        with session._lock:
            return float(sum(part.event.cost.within(session.budget) for part in self._prepared(queries, turn)[0]))

    def masked(self, queries: Sequence[Query[Answer]], turn: Round) -> Masked:
        """The site's part of a round: charged, read, noised with its share, masked. A round has one, whoever asks."""
        session = self._session
        with session._lock:
            parts, source = self._prepared(queries, turn)
            key, on_disk = self._own_key(), session._ledger.facts is not None
            asked = shared_round.request(queries, turn, session._schema, session._neighbours)

            def say() -> Masked:
                return key.masked(turn, shared_round.noised(parts, Reader(source).read, session._randomness))

            answer = self._said_durably if on_disk else self._said
            return answer(turn, asked, [part.event for part in parts], say)

    def _prepared(self, queries: Sequence[Query[Answer]], turn: Round) -> tuple[list[shared_round.Part], Source]:
        """A validated part of a round, and what it will read."""
        check_list(queries)
        if type(turn) is not Round:
            raise QueryError(f"a part is of a Round, got {type(turn).__name__}")
        session, key = self._session, self._own_key()
        if not session._ledger.private:
            raise NotPrivate(
                "a table opened without a guarantee takes no part in rounds: other sites rely on its noise"
            )
        place = key.place_in(turn.keys)
        if turn.keys not in self._approved:
            raise QueryError(
                "the owner has not approved the keys of this round: whoever chose them could take the site's masks "
                "off. Nothing was read and nothing was spent"
            )
        source = session._source
        if turn.site is not None:
            source = WithSite(source, turn.site, place, turn.sites)
        parts = shared_round.parts_of(queries, shared_round.with_site(session._schema, turn), session._neighbours)
        shared_round.check_fits(parts, turn)
        for row_sum in (row_sum for part in parts for row_sum in part.computed.row_sums):
            source.check(row_sum)
        return parts, source

    def _own_key(self) -> SiteKey:
        with self._session._lock:
            if self._key is None:
                facts = self._session._ledger.facts
                self._key = fresh_key() if facts is None else key_beside(Path(facts.path), facts.identity)
            return self._key

    def _said(self, turn: Round, asked: str, events: list[Event], say: Callable[[], Masked]) -> Masked:
        """A part that is remembered here; a round that was paid and could not be read is not charged again."""
        if turn.identity in self._rounds:
            known, said = self._rounds[turn.identity]
            shared_round.check_same(known, asked)
            if said is not None:
                return said
        else:
            self._session._charge(events)
            self._rounds[turn.identity] = asked, None
        said = say()
        self._rounds[turn.identity] = asked, said
        return said

    def _said_durably(self, turn: Round, asked: str, events: list[Event], say: Callable[[], Masked]) -> Masked:
        """A part that the ledger stores before it is returned; if it is stored already, that one and no other."""
        ledger = self._session._ledger
        keeps = ledger.keeps
        found = ledger.round(turn.identity)
        if found is not None:
            shared_round.check_same(found.request, asked)
            if not keeps or found.run != ledger.running_number:
                return shared_round.restored(found.body, turn)
        if not keeps:
            raise LedgerError(
                "a round is answered within a run of the ledger, which keeps what was said: a round must never be "
                "answered twice with different noise. Nothing was read and nothing was spent"
            )
        paid = ledger.pay(asked, events, once=True)
        if not paid.owed:
            self._session._note(events)
        if paid.stored is not None:
            return shared_round.restored(paid.stored, turn)
        try:
            said = say()
            ledger.keep(paid.name, shared_round.stored(said), turn.identity)
        except BaseException:
            ledger.owe(paid.name)
            raise
        return said
