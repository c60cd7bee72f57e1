"""A site's table in the hands of its owner, who alone can take part in rounds of shared noise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpcurate.errors import QueryError
from dpcurate.private.curator import Curator
from dpcurate.private.site_parts import SiteParts
from dpcurate.schema import Neighbours, Schema
from dpcurate.study.study import Study

OWNERS_ALONE = (
    "whoever chooses the keys of a round of shared noise could take a site's masks off, so only the owner of a table "
    "takes part: give dpcurate.pooling.SiteOwner(table, schema, epsilon=..., ledger=...) in place of a study. Nothing "
    "was read and nothing was spent"
)


class SiteOwner:
    """A table as its owner opens it for studies with shared noise; do not hand it to an analyst, or a pool made of it.

    The arguments are those of `dpcurate.open`. `study` answers ordinary questions on the same budget, and may be handed
    on: it gives no parts of rounds.

    Example:
        >>> sites = {name: dpcurate.pooling.SiteOwner(table, schema, epsilon=1) for name, table in tables.items()}
        >>> found = dpcurate.pool(sites, noise="shared").discover()
    """

    def __init__(
        self,
        table: Any,
        schema: Schema | str | Path | Mapping[str, Any] | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbours: Neighbours | str | None = None,
        ledger: str | Path | None = None,
        name: str | None = None,
    ) -> None:
        self._parts: SiteParts | None = None
        self.study = Study(
            table, schema, epsilon=epsilon, delta=delta, neighbours=neighbours, ledger=ledger, name=name,
            make=self._make,
        )  # fmt: skip

    def _make(self, table: Any, schema: Schema, *, insecure_seed: None = None, **known: Any) -> Curator:
        self._parts = SiteParts(table, schema, **known)
        return self._parts.curator

    def opened(self) -> SiteParts:
        """What gives the site's parts of rounds; a table that no call has read yet is opened now."""
        self.study.opened()
        assert self._parts is not None
        return self._parts

    @property
    def public_key(self) -> str:
        """The site's public key; its secret is kept beside the ledger."""
        return self.opened().public_key


def study_of(member: Study | SiteOwner) -> Study:
    """What answers a member's ordinary questions."""
    return member.study if isinstance(member, SiteOwner) else member


def owner_of(member: Study | SiteOwner) -> SiteOwner:
    """The member, if it is an owner."""
    if not isinstance(member, SiteOwner):
        raise QueryError(OWNERS_ALONE)
    return member
