"""From a table and its ledger to a running service, with the owner's page."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcurate.private.curator import Curator
from dpcurate.schema import Schema
from dpcurate.service.address import Address
from dpcurate.service.limits import Limits
from dpcurate.service.records import Records

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from dpcurate.service.host import ServiceHost

STOP_SECONDS = 40
"""How long a stop waits for clients, longer than a request may take to arrive (`Limits.body_seconds`). What is being
computed is finished and stored all the same."""


def serve(
    table: Any,
    schema: Schema | str | Path,
    *,
    ledger: str | Path,
    address: Address | None = None,
    ready: Callable[[str], None] = print,
    approve_all: bool = False,
    team: bool = False,
    whole_seconds: bool = False,
    limits: Limits | None = None,
) -> None:
    """Open the table and answer analysts until the process is stopped.

    Args:
        table: what `dpcurate.open` takes.
        schema: its public description.
        ledger: the ledger that keeps the budget and the shares; it must exist.
        address: where to listen; loopback if not given.
        ready: called with the link to the owner's page when the service is about to listen.
        approve_all: whether every run waits for the owner's consent.
        team: whether every analyst may read the stored answers of all runs.
        whole_seconds: whether answers leave on whole seconds.
        limits: what one token may ask.
    """
    from dpcurate.service.host import ServiceHost, ServiceSettings
    from dpcurate.service.owner_page import routes

    address = Address() if address is None else address
    address.check_free()
    settings = ServiceSettings(
        limits=Limits() if limits is None else limits, team=team, whole_seconds=whole_seconds,
        user_header=address.user_header, hosts=address.hosts,
    )  # fmt: skip
    records = Records.open(ledger, approve_all=approve_all)
    facts = records.ledger.facts
    assert facts is not None
    host = ServiceHost(Curator(table, Schema.of(schema), ledger=ledger, neighbours=facts.neighbours), records, settings)
    key = secrets.token_urlsafe(32)
    ready(f"{address.url}/#{key}")
    listen(host, routes(host, key, secure=address.secure), address)


def listen(host: ServiceHost, more: Sequence[BaseRoute], address: Address) -> None:
    """Answer requests until the process is stopped."""
    import uvicorn

    from dpcurate.service.app import create_app

    uvicorn.run(
        create_app(host, more),
        host=address.host,
        port=address.port,
        ssl_certfile=address.tls_cert,
        ssl_keyfile=address.tls_key,
        proxy_headers=False,
        server_header=False,
        log_level="warning",
        http="h11",  # which bounds the size of headers; another parser that happens to be installed may not
        ws="none",
        timeout_graceful_shutdown=STOP_SECONDS,
    )
