"""Noise in shares: each site adds one and a mask, and only the sum is seen. Proof: docs/proofs/shared-noise.md."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpcurate.accounting.budget import SharedNoise
from dpcurate.errors import QueryError
from dpcurate.pooling.site_owner import SiteOwner
from dpcurate.pooling.sites import Site
from dpcurate.private import shared_round
from dpcurate.private.masking import Masked, Round
from dpcurate.private.preview import sensitivity_of
from dpcurate.private.site_parts import SiteParts
from dpcurate.queries import Answer, Gaussian, GaussianShare, Query, Release, Statistic
from dpcurate.schema import Neighbours, Schema


@dataclass(frozen=True)
class OwnedSite:
    """A site whose owner takes part in rounds of shared noise, in the names of the study."""

    site: Site
    _parts: SiteParts

    @property
    def public_key(self) -> str:
        """The site's public key."""
        with self.site.named():
            return self._parts.public_key

    def approve(self, keys: Sequence[str]) -> None:
        """Take part in rounds of these keys."""
        with self.site.named():
            self._parts.approve(keys)

    def ready(self, releases: Sequence[Release], turn: Round) -> None:
        """Refuse what the site would refuse in a round; free."""
        if self.site.replayed is None:
            with self.site.named():
                self._parts.ready([self.site.codebook.to_site(one) for one in releases], turn)

    def masked(self, releases: Sequence[Release], turn: Round) -> Masked:
        """Its part of a round, masked; of a run that the site has finished, what it said then."""
        with self.site.named():
            return self._parts.masked([self.site.codebook.to_site(one) for one in releases], turn)


@dataclass
class SharedRounds:
    """The rounds of a pool, one after the other; whoever runs this sees masked integers and their sum.

    A round has a number in its run. One that a site could not answer is void, and is asked again under the same
    number: sites that answered say the same again, free.
    """

    sites: tuple[Site, ...]
    schema: Schema
    site: str | None
    neighbours: Neighbours
    trust: SharedNoise
    _owned: tuple[OwnedSite, ...] = ()
    _study: str = ""
    _number: int = 0

    def begin(self, study: str | None) -> None:
        """A run whose rounds have names of their own; the same study again has the same names."""
        self._study, self._number = study or secrets.token_hex(32), 0

    def ask_all(self, queries: Sequence[Query[Any]]) -> list[Answer]:
        """One round: every site is ready, then every site is charged and answers."""
        shared = [self.shared(query) for query in queries]
        if not shared:
            return []
        if not self._study:
            self.begin(None)
        turn = self.turn(shared, self._number)
        said = self._said(shared, turn)
        answers = shared_round.combined(shared, turn, said, self.schema, self.neighbours)
        self._number += 1
        return answers

    def turn(self, shared: Sequence[Release], number: int) -> Round:
        """The round of this number, for these questions."""
        return shared_round.round_of(
            shared, self.schema, self.neighbours, study=self._study, number=number, keys=self._keys(),
            names=[site.name for site in self.sites], site=self.site,
        )  # fmt: skip

    def _keys(self) -> Sequence[str]:
        return [one.public_key for one in self._owned]

    def _said(self, shared: Sequence[Release], turn: Round) -> list[Masked]:
        """Every site's part, masked."""
        for one in self._owned:
            one.ready(shared, turn)
        return [one.masked(shared, turn) for one in self._owned]

    def shared(self, query: Query[Any]) -> Release:
        """The same release with noise in shares."""
        if not isinstance(query, Release) or not isinstance(query.noise, Gaussian) or query.noise.rho is None:
            raise QueryError(
                "shared noise is Gaussian, on releases of sums, by rho (a budget with a delta): use a method made of "
                "these, such as 'auto', or let every site add its own noise (noise='own')"
            )
        trust = self.trust
        noise = GaussianShare(
            rho=query.noise.rho, sites=trust.sites, colluding=trust.colluding, sites_per_person=trust.sites_per_person
        )
        return replace(query, noise=noise)

    def check(self, query: Query[Any]) -> Release:
        """The release with noise in shares; what no round answers is refused, from public facts."""
        shared = self.shared(query)
        shared_round.parts_of([shared], self.schema, self.neighbours)
        return shared

    def sensitivity(self, statistic: Statistic) -> float:
        """How far one unit at one site can move a statistic (L1)."""
        return sensitivity_of(statistic, self.schema, self.neighbours)


def rounds(
    sites: tuple[Site, ...],
    owners: Sequence[SiteOwner],
    schema: Schema,
    site: str | None,
    *,
    colluding: int,
    sites_per_person: int,
) -> SharedRounds:
    """The rounds of these owners' sites, which must agree on what they protect.

    Raises:
        QueryError: fewer than three sites, or sites with other relations or caps of rows.
    """
    GaussianShare(rho=1.0, sites=len(sites), colluding=colluding, sites_per_person=sites_per_person)
    relations = {one.queryable.neighbours for one in sites}
    caps = {one.queryable.schema.rows_per_unit for one in sites}
    if len(relations) > 1 or len(caps) > 1:
        raise QueryError(
            "sites that share noise protect the same: give all of them one relation (neighbours=) and one cap of rows "
            "per person, or let every site add its own noise (noise='own')"
        )
    if any(one.queryable.budget.pure for one in sites):
        raise QueryError("shared noise is Gaussian, which has no pure epsilon: give every site a delta above 0")
    owned = tuple(OwnedSite(one, owner.opened()) for one, owner in zip(sites, owners, strict=True))
    keys = [one.public_key for one in owned]
    for known in owned:
        known.approve(keys)
    trust = SharedNoise(len(sites), colluding, sites_per_person)
    return SharedRounds(sites, schema, site, relations.pop(), trust, owned)
