"""The owner's page: the budget, shares, runs that wait for consent, runs, and the log.

Only whoever holds the owner's key opens it: the link that `dpcurate serve` prints has the key behind a `#`, which
browsers do not send, so it is in no server's log. The key is exchanged for a cookie once. An analyst's token is
nothing to this page, and a request from another site is refused before it is looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from dpcurate._messages import printable
from dpcurate.accounting import Budget
from dpcurate.errors import DpcurateError, LedgerError
from dpcurate.service.host import ServiceHost
from dpcurate.service.logbook import telling
from dpcurate.web.pages import SHARED, Assets, templates
from dpcurate.web.security import Door, SameOrigin

OWN = "dpcurate.service"
LONGEST_FORM = 4096
"""Bytes of a form."""
FORM_SECONDS = 10.0
"""A form that has not arrived by then is empty: whoever sends it slowly cannot keep the service from stopping."""
NEWEST = 50
"""Runs, and entries of the log, on the page."""


@dataclass(frozen=True, slots=True)
class SpendingBar:
    """A part of a whole that is spent and a part that is kept for somebody, in percent."""

    spent: float
    kept: float = 0.0


def routes(host: ServiceHost, key: str, *, secure: bool = False) -> list[BaseRoute]:
    """The routes of the owner's page; `secure` says that people reach it by HTTPS.

    Args:
        host: the service.
        key: the owner's key, which opens the page.
        secure: whether its cookie may travel by HTTPS alone.
    """
    page = _OwnerPage(host, key, secure=secure)
    guards = [Middleware(SameOrigin)]

    def route(path: str, answer: Callable[..., object], method: str) -> Route:
        return Route(path, answer, methods=[method], middleware=guards)

    return [
        route("/", page.show, "GET"),
        route("/owner/open", page.open, "POST"),
        route("/owner/close", page.close, "POST"),
        route("/owner/decide", page.decide, "POST"),
        page.assets.route(),
    ]


class _OwnerPage:
    """Answers of the page. Everything that reads a file works in a thread of its own."""

    def __init__(self, host: ServiceHost, key: str, *, secure: bool) -> None:
        self._host, self._door = host, Door("dpcurate-owner", key, secure=secure)
        self.assets = Assets({**SHARED, "owner.css": OWN, "owner.js": OWN})
        self._templates = templates(OWN)

    async def show(self, request: Request) -> Response:
        """The page, or the form that asks for the key."""
        if not self._door.admits(request):
            return self._page("owner_key.html", status=403, problem="")
        return await run_in_threadpool(self._state)

    async def open(self, request: Request) -> Response:
        """Exchange the key for a cookie."""
        form = await _form(request)
        if not self._door.fits(form.get("key", "").strip()):
            return self._page("owner_key.html", status=403, problem="This is not the owner's key of this service.")
        return self._door.let_in()

    async def close(self, request: Request) -> Response:
        """Forget the owner in this browser and in every other."""
        return self._door.close(request)

    async def decide(self, request: Request) -> Response:
        """Approve or deny a waiting run."""
        if not self._door.admits(request):
            return self._page("owner_key.html", status=403, problem="")
        form = await _form(request)
        number, decision = form.get("number", ""), form.get("decision", "")
        if not (number.isascii() and number.isdecimal() and len(number) < 10) or decision not in ("approve", "deny"):
            return self._page("owner_problem.html", status=400, problem="The form was not understood.")
        try:
            await run_in_threadpool(self._host.decide, int(number), decision == "approve")
        except LedgerError as error:  # the run has begun, or there is no such request
            return self._page("owner_problem.html", status=409, problem=str(error))
        return RedirectResponse("/", status_code=303)

    def _state(self) -> Response:
        try:
            return self._page("owner.html", **_facts(self._host))
        except DpcurateError as error:
            return self._page("owner_problem.html", status=500, problem=str(error))

    def _page(self, name: str, *, status: int = 200, **values: Any) -> Response:
        page = self._templates.get_template(name).render(assets=self.assets, root="", **values)
        text = printable(page)  # what analysts write can neither turn text around nor be impossible to send
        return HTMLResponse(text, status_code=status)


def _facts(host: ServiceHost) -> dict[str, Any]:
    """What the page shows."""
    state = host.budget()
    budget, ledger = state.budget, host.curator.ledger
    assert ledger.facts is not None
    whole = float(budget.ceiling)
    shares = host.shares()
    return {
        "table": ledger.facts.table, "neighbours": ledger.facts.neighbours, "unit": ledger.unit, "budget": budget,
        "worth": lambda amount: _worth(budget, amount), "state": state, "stopping": host.stopping,
        "part": _bar(whole, state.spent, state.promised), "shares": shares,
        "bars": {share.name: _bar(share.ceiling, share.spent) for share in shares},
        "granted": sum(share.ceiling for share in shares if not share.revoked), "whole": whole,
        "waiting": host.waiting(), "telling": telling, "running": host.running(), "past": _newest(host.log()),
        "runs": len(host.log()), "entries": tuple(reversed(tuple(host.records.entries(last=NEWEST)))), "newest": NEWEST,
        "approves_all": host.records.approve_all,
    }  # fmt: skip


def _newest(runs: Sequence[object]) -> tuple[object, ...]:
    return tuple(reversed(runs[-NEWEST:]))


def _worth(budget: Budget, amount: float) -> str:
    """An amount of the budget as an epsilon."""
    return f"{budget.as_epsilon(amount):.3g}"


def _bar(whole: float, spent: float, kept: float = 0.0) -> SpendingBar:
    share = min(100.0, 100 * spent / whole) if whole else 0.0
    return SpendingBar(round(share, 2), round(min(100 - share, 100 * kept / whole), 2) if whole else 0.0)


async def _form(request: Request) -> dict[str, str]:
    """The fields of a small form; one that is larger, or comes too slowly, is as good as empty."""
    body = b""
    try:
        async with asyncio.timeout(FORM_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > LONGEST_FORM:
                    return {}
    except (TimeoutError, ClientDisconnect):
        return {}
    fields = parse_qs(body.decode("ascii", errors="replace"))
    return {name: values[-1] for name, values in fields.items()}
