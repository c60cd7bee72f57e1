"""`dpcurate serve`: answer analysts over the network, grant them shares, decide on their runs, read the log."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager

from dpcurate import Ledger, messages, service
from dpcurate.cli.options import existing, load_schema, some_table
from dpcurate.cli.terminal import aligned, flush, say, show


def run(args: Namespace) -> None:
    """Serve a table until it is stopped."""
    address = service.Address(
        host=args.host, port=args.port, tls_cert=args.tls_cert, tls_key=args.tls_key, behind_proxy=args.behind_proxy,
        url=args.url, user_header=args.user_header,
    )  # fmt: skip
    table, ledger = some_table(args.table), existing(args.ledger, "ledger")
    load_schema(args.schema)
    for line in address.means:
        say(line)

    def ready(link: str) -> None:
        show(f"serving {messages.one_line(args.table)} at {address.url}")
        show(f"the owner's page, for your eyes only: {link}")
        say("Ctrl-C stops the service; runs under way can be resumed")
        flush()

    service.serve(
        table, args.schema, ledger=ledger, address=address, ready=ready, approve_all=args.approve, team=args.team,
        whole_seconds=args.whole_seconds,
    )  # fmt: skip


@contextmanager
def _records(args: Namespace) -> Iterator[service.Records]:
    records = service.Records.open(existing(args.ledger, "ledger"))
    try:
        yield records
    finally:
        records.close()


def add_token(args: Namespace) -> None:
    """Grant a share and print its token."""
    with _records(args) as records:
        token = records.add_token(
            args.name, args.epsilon, purpose=args.purpose, reserved=args.reserved, approval=args.approve
        )
    show(token)
    flush()
    kind = "reserved" if args.reserved else "first come, first served"
    say(f"the token of {args.name}, for at most epsilon = {args.epsilon:g} ({kind}). It is not shown again")


def list_tokens(args: Namespace) -> None:
    """List the shares."""
    ledger = Ledger.open(existing(args.ledger, "ledger"))
    show(aligned(_shares(ledger), right=frozenset((2, 3, 4, 5))))


def _shares(ledger: Ledger) -> Iterator[tuple[str, ...]]:
    budget = ledger.budget
    yield "analyst", "share", "epsilon", "spent", budget.currency, f"{budget.currency} spent", "since", "purpose"
    for share in ledger.shares:
        ceiling, spent = share.ceiling, share.spent
        yield (
            share.name, share.kind, f"{budget.as_epsilon(ceiling):.4g}", f"{budget.as_epsilon(spent):.4g}",
            f"{ceiling:.4g}", f"{spent:.4g}", share.since, share.purpose,
        )  # fmt: skip
    if not ledger.shares:
        yield "-", "no shares yet", *[""] * 6


def revoke(args: Namespace) -> None:
    """End a share and its token."""
    with _records(args) as records:
        records.revoke(args.name)
    show(f"the token of {args.name} is revoked; what it has spent stays spent")


def approve(args: Namespace) -> None:
    """Let a waiting run begin."""
    _decide(args, approved=True)


def deny(args: Namespace) -> None:
    """Refuse a waiting run."""
    _decide(args, approved=False)


def _decide(args: Namespace, *, approved: bool) -> None:
    with _records(args) as records:
        records.decide(args.request, approved=approved)
        request = next(one for one in records.requests() if one.number == args.request)
    show(f"request {request.number} of {request.analyst} is {request.state}: {messages.one_line(_told(request.facts))}")


def log(args: Namespace) -> None:
    """List what happened, then check that nothing was edited."""
    with _records(args) as records:
        entries = tuple(records.entries())
        if args.json:
            for entry in entries:
                show(entry.json())
        else:
            show(aligned(_lines(entries), right=frozenset((0, 4))))
        flush()
        last, chain = records.verify()
        waiting = [str(request.number) for request in records.requests("waiting")]
    say(f"{messages.how_many(last, 'entry', 'entries')}, as written; the hash of the last one is {chain}")
    if waiting:
        say(f"waiting for your consent: request {', '.join(waiting)}")


def _lines(entries: tuple[service.Entry, ...]) -> Iterator[tuple[str, ...]]:
    yield "entry", "at", "event", "analyst", "request", "about"
    for entry in entries:
        request = "" if entry.request is None else str(entry.request)
        yield str(entry.number), entry.written, entry.event, entry.analyst, request, _told(entry.facts)


def _told(facts: service.Facts) -> str:
    return ", ".join(f"{name} {value}" for name, value in service.telling(facts))
