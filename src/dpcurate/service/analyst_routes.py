"""Routes for analysts: JSON over HTTP, one handler each. What travels is in remote/wire.py and queries/encoding.py.

Every request goes the same way: who asks (a token, or a name for which the proxy vouches), what the token may still
ask (limits.py), the body within its size and time, the answer in a thread of its own, and an entry in the log. Errors
become a code and a sentence (refusals.py).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dpcurate.errors import NotPrivate, QueryError
from dpcurate.queries import Exact, Gate, Query, Release, Score
from dpcurate.queries.encoding import answer_to_plain, from_plain, parsed
from dpcurate.remote import wire
from dpcurate.remote.wire import Fields, RunRequest
from dpcurate.service import refusals
from dpcurate.service.host import ServiceHost
from dpcurate.service.limits import TooMuch
from dpcurate.service.openapi import described
from dpcurate.service.refusals import Problem
from dpcurate.service.server_runs import ServerRun, command_in

JSON = "application/json"
STORED_BYTES = 1 << 26
"""Bytes of stored answers that are sent at once; as JSON they take about three times as many."""
NEWEST = 1000
"""Entries of the log that are sent."""
REFUSALS_LOGGED = 500
"""Refusals of one analyst within an hour that the log keeps."""


@dataclass(frozen=True, slots=True)
class AnalystRequest:
    """One request of an analyst."""

    analyst: str
    path: dict[str, Any]
    body: Fields
    query: dict[str, str]


Handler = Callable[[AnalystRequest], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Call:
    """A route: what it is called, how it is reached, and what answers."""

    method: str
    path: str
    about: str
    handler: Handler


def routes(host: ServiceHost) -> list[BaseRoute]:
    """The routes for analysts."""
    analysts = Analysts(host)
    description = wire.dumps(described([(c.method, c.path, c.about, c.handler.__name__) for c in analysts.calls]))

    async def openapi(_request: Request) -> Response:
        return Response(description, media_type=JSON)

    found = [(call.path, call.method, analysts.endpoint(call)) for call in analysts.calls]
    return [
        Route(f"{wire.ROOT}{path}", endpoint, methods=[method])
        for path, method, endpoint in (*found, ("/openapi.json", "GET", openapi))
    ]


class Analysts:
    """Answers of a service to its analysts."""

    def __init__(self, host: ServiceHost) -> None:
        self._host = host
        self._refused: dict[str, tuple[float, int]] = {}
        self.calls: tuple[Call, ...] = (
            Call("GET", "/facts", "the schema, the guarantee, and your share of the budget", self.facts),
            Call("GET", "/budget", "what is left for you", self.budget),
            Call("POST", "/cost", "what queries would cost; nothing is read or spent", self.cost),
            Call("GET", "/runs", "the runs you may see", self.runs),
            Call("GET", "/runs/stopped", "the stopped run that a command would resume", self.stopped),
            Call("POST", "/runs", "begin a run, or resume it", self.begin),
            Call("POST", "/runs/{run}/ask", "the answers to queries; the same request is paid once", self.ask),
            Call("POST", "/runs/{run}/gates", "open a gate", self.open),
            Call("POST", "/runs/{run}/gates/{gate}/first", "the first score to which a gate says yes", self.first),
            Call("POST", "/runs/{run}/blocks", "set a block of budget aside", self.reserve),
            Call("POST", "/runs/{run}/blocks/{block}/end", "give back what is left of a block", self.settle),
            Call("POST", "/runs/{run}/end", "end a run", self.end),
            Call("GET", "/answers/{number}", "the stored answers of a run; free", self.answers),
            Call("GET", "/log", "what the service has noted about you", self.log),
        )

    # --- a request ------------------------------------------------------------------------------------------------

    def endpoint(self, call: Call) -> Callable[[Request], Any]:
        """What Starlette calls for a route."""

        async def answer(request: Request) -> Response:
            start = time.monotonic()
            analyst = ""
            try:
                analyst = await run_in_threadpool(self._who, request)
                with self._host.meter.work(analyst):
                    text = await self._body(request) if call.method == "POST" else b""
                    status, body = 200, await run_in_threadpool(self._answered, call, request, analyst, text)
            except Exception as error:  # whatever it is, the analyst gets a code and a sentence
                status, body = await run_in_threadpool(self._refusal, call, analyst, error)
            if self._host.settings.whole_seconds:
                passed = time.monotonic() - start
                await asyncio.sleep(math.ceil(passed) - passed)
            return Response(body, status_code=status, media_type=JSON)

        return answer

    def _answered(self, call: Call, request: Request, analyst: str, text: bytes) -> bytes:
        self._host.check_open()
        body = Fields(parsed(text, self._host.settings.limits.body_bytes) if call.method == "POST" else {})
        told = call.handler(AnalystRequest(analyst, request.path_params, body, dict(request.query_params)))
        body.done()
        return wire.dumps({"version": wire.VERSION, **told})

    def _who(self, request: Request) -> str:
        """The analyst who asks."""
        header, records = self._host.settings.user_header, self._host.records
        named = request.headers.getlist(header) if header else []
        given = request.headers.getlist("authorization")
        if len(named) > 1 or len(given) > 1:
            raise Problem("token", "a request names one analyst")
        word, _, token = (given[0] if given else "").partition(" ")
        if given:
            analyst = records.analyst(token.strip()) if word.lower() == "bearer" and len(token) <= 200 else None
        else:
            analyst = records.named(named[0]) if named else None
        if analyst is None:
            raise Problem("token", "no token, or none that this service knows: send 'Authorization: Bearer TOKEN'")
        return analyst

    async def _body(self, request: Request) -> bytes:
        """The body, within its size and time. A page of another site cannot send JSON here unasked."""
        limits = self._host.settings.limits
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            raise Problem("media", f"a request holds JSON: send 'Content-Type: {JSON}'")
        told = request.headers.get("content-length", "0")
        if not told.isdecimal() or len(told) > 15 or int(told) > limits.body_bytes:
            raise Problem("too-large", f"a request may have {limits.body_bytes:,} bytes; ask for less at a time")
        text = bytearray()
        try:
            async with asyncio.timeout(limits.body_seconds):
                async for chunk in request.stream():
                    text += chunk
                    if len(text) > limits.body_bytes:
                        raise Problem(
                            "too-large", f"a request may have {limits.body_bytes:,} bytes; ask for less at a time"
                        )
        except TimeoutError:
            raise Problem("too-large", f"a request takes {limits.body_seconds:g} seconds at most to arrive") from None
        except ClientDisconnect:
            raise Problem("body", "the request did not arrive") from None
        return bytes(text)

    def _refusal(self, call: Call, analyst: str, error: Exception) -> tuple[int, bytes]:
        """The status and the body for an error, which the log notes by its code."""
        code, sentence = refusals.told(error)
        if analyst and self._may_log(analyst):
            kind = {"error": type(error).__name__} if code in refusals.OURS else {}
            self._host.notes.add("refused", analyst, route=call.path, code=code, **kind)
        return wire.ERRORS[code][1], wire.dumps(refusals.to_plain(code, sentence))

    def _may_log(self, analyst: str) -> bool:
        """Nobody fills the owner's disk with refusals."""
        now = time.monotonic()
        since, count = self._refused.get(analyst, (now, 0))
        if now - since > 3600:
            since, count = now, 0
        self._refused[analyst] = since, count + 1
        return count < REFUSALS_LOGGED

    # --- public facts -------------------------------------------------------------------------------------------------

    def facts(self, asked: AnalystRequest) -> dict[str, Any]:
        """What an analyst has to know before the first question."""
        curator, share = self._host.curator, self._host.share(asked.analyst)
        settings = self._host.settings
        return {
            "table": curator.table, "schema": curator.schema.dumps(), "neighbours": curator.neighbours.value,
            "analyst": asked.analyst, "purpose": share.purpose, "team": settings.team,
            "needs_consent": self._host.records.needs_consent(asked.analyst),
            "limits": {
                name: getattr(settings.limits, name)
                for name in ("body_bytes", "queries", "candidates", "cells", "runs", "gates", "idle_seconds")
            },
            "guarantee": wire.budget_to_plain(curator.budget), **self.budget(asked),
        }  # fmt: skip

    def budget(self, asked: AnalystRequest) -> dict[str, Any]:
        """What is left."""
        session, share = self._host.curator.of_share(asked.analyst), self._host.share(asked.analyst)
        return {
            "remaining": session.remaining, "spent": session.ledger.spent,
            "share": {"ceiling": share.ceiling, "spent": share.spent, "reserved": share.reserved},
        }  # fmt: skip

    def cost(self, asked: AnalystRequest) -> dict[str, Any]:
        """The price of queries."""
        session = self._host.curator.of_share(asked.analyst)
        queries = _queries(asked.body.listed("queries"), self._host.settings.limits.queries)
        cells = session.cells_for(queries)
        if cells > self._host.settings.limits.cells:
            raise TooMuch(f"this would read or release {cells:,} cells, more than one request may have")
        return {"cost": session.price(queries), "cells": cells, "remaining": session.remaining}

    def log(self, asked: AnalystRequest) -> dict[str, Any]:
        """The newest entries about this analyst."""
        self._host.notes.flush()
        entries = self._host.records.newest(asked.analyst, NEWEST)
        return {
            "entries": [
                {"number": e.number, "at": e.written, "event": e.event, "request": e.request, "facts": dict(e.facts)}
                for e in entries
            ]
        }

    # --- runs ---------------------------------------------------------------------------------------------------------

    def runs(self, asked: AnalystRequest) -> dict[str, Any]:
        """The log of runs: this analyst's, or everybody's in a team."""
        found = []
        for run in self._host.log():
            command = command_in(run.facts.command, asked.analyst)
            if command or self._host.settings.team:
                found.append(wire.run_to_plain(run, command))
        return {"runs": found}

    def stopped(self, asked: AnalystRequest) -> dict[str, Any]:
        """The run that the same command would resume."""
        command = Fields(dict(asked.query)).command()
        run = self._host.runs.stopped(asked.analyst, command)
        return {"run": None if run is None else wire.run_to_plain(run, command)}

    def begin(self, asked: AnalystRequest) -> dict[str, Any]:
        """A new run, or one that is resumed."""
        names = ("request", "command", "method", "schema", "purpose", "epsilon", "result", "quantify", "share")
        wanted = RunRequest.from_plain({name: asked.body.take(name) for name in names})
        asked.body.done()
        run = self._host.begin(asked.analyst, wanted)
        f = wanted.facts
        self._host.notes.add(
            "run-resumed" if run.resumed else "run-begun", asked.analyst, run=run.number, method=f.method,
            epsilon=self._host.worth(wanted.share), purpose=f.purpose,
        )  # fmt: skip
        return {"run": run.id, "number": run.number, "resumed": run.resumed, **_state(run)}

    def ask(self, asked: AnalystRequest) -> dict[str, Any]:
        """Answers, of the table or of an open sample."""
        queries = _queries(asked.body.listed("queries"), self._host.settings.limits.queries)

        def work(run: ServerRun) -> dict[str, Any]:
            return {"answers": run.ask(queries, place)}

        place = asked.body.text("place", 40)
        found = self._once(asked, work, "asked", queries=len(queries), about=_about(queries))
        return {**found, "answers": [answer_to_plain(one) for one in found["answers"]]}  # kept as arrays, which is less

    def open(self, asked: AnalystRequest) -> dict[str, Any]:
        """A gate."""
        (gate,) = _of_kind([asked.body.take("gate")], Gate)
        place = asked.body.text("place", 40)
        kind = type(gate).__name__
        return self._once(asked, lambda run: {"gate": run.open(gate, place)}, "gate-opened", about=kind)

    def first(self, asked: AnalystRequest) -> dict[str, Any]:
        """What a gate says."""
        scores: list[Score] = _of_kind(asked.body.listed("scores"), Score)
        gate = str(asked.path["gate"])
        return self._once(asked, lambda run: {"first": run.first(scores, gate)}, "gate-asked", queries=len(scores))

    def reserve(self, asked: AnalystRequest) -> dict[str, Any]:
        """A block."""
        amount = asked.body.amount("amount")
        return self._once(asked, lambda run: {"block": run.reserve(amount)}, "block-reserved", amount=amount)

    def settle(self, asked: AnalystRequest) -> dict[str, Any]:
        """The end of a block."""
        block = str(asked.path["block"])

        def work(run: ServerRun) -> dict[str, Any]:
            run.settle(block)
            return {}

        return self._once(asked, work, "block-ended")

    def end(self, asked: AnalystRequest) -> dict[str, Any]:
        """The end of a run."""
        outcome = asked.body.text("outcome", 20)
        asked.body.done()
        run = self._host.runs.find(asked.analyst, str(asked.path["run"]))
        self._host.runs.finish(run, outcome)
        self._host.notes.add("run-ended", asked.analyst, run=run.number, outcome=outcome, cost=run.paid)
        return {"paid": run.paid, **self.budget(asked)}

    def _once(
        self, asked: AnalystRequest, work: Callable[[ServerRun], dict[str, Any]], event: str, **facts: Any
    ) -> dict[str, Any]:
        """What a run answers to this request, once; what it cost is in the log."""
        request = asked.body.request()
        done = [Fields({"gate": one}).text("gate", 40) for one in asked.body.listed("done")]
        asked.body.done()
        run = self._host.runs.find(asked.analyst, str(asked.path["run"]))

        def paid(run: ServerRun) -> dict[str, Any]:
            run.forget(done)
            steps, before = len(run.steps()), run.paid
            found = work(run)  # nothing that could fail may follow, or what was paid for would be paid again
            return {**found, "steps": _steps(run, steps), "cost": run.paid - before}

        def noted(found: dict[str, Any]) -> None:
            self._host.notes.add(event, asked.analyst, run=run.number, cost=found["cost"], **facts)

        found = run.once(request, paid, noted)
        return {**found, **_state(run)}

    # --- stored answers -----------------------------------------------------------------------------------------------

    def answers(self, asked: AnalystRequest) -> dict[str, Any]:
        """What a run has released."""
        number, ledger = str(asked.path["number"]), self._host.curator.ledger
        mine = [
            run
            for run in self._host.log()
            if str(run.number) == number and (self._host.settings.team or command_in(run.facts.command, asked.analyst))
        ]
        stored = ledger.stored(mine[0].number, most_bytes=STORED_BYTES) if mine else None
        if stored is None:
            raise Problem("answers", "")
        return wire.stored_to_plain(stored, command_in(stored.logged.facts.command, asked.analyst))


def _state(run: ServerRun) -> dict[str, Any]:
    """What every answer of a run carries: what it may still spend, what it has paid, and what all runs have spent."""
    return {"remaining": run.remaining, "paid": run.paid, "spent": run.spent}


def _steps(run: ServerRun, start: int) -> list[Any]:
    """What was charged since."""
    return [wire.event_to_plain(event) for event in run.steps(start)]


def _queries(given: list[Any], most: int) -> list[Query[Any]]:
    if len(given) > most:
        raise TooMuch(f"one request may hold {most:,} queries, got {len(given):,}; ask for fewer")
    queries = cast("list[Query[Any]]", _of_kind(given, Query))
    if not queries:
        raise QueryError("a request holds at least one query")
    for query in queries:
        if isinstance(query, Release) and isinstance(query.noise, Exact):
            raise NotPrivate("an exact release has no guarantee, and a service gives none; ask for noise")
    return queries


def _of_kind(given: list[Any], kind: type[Any]) -> list[Any]:
    found: Sequence[Any] = from_plain(given)
    for one in found:
        if not isinstance(one, kind):
            raise QueryError(f"{type(one).__name__} cannot be asked here: this takes {kind.__name__}")
    return list(found)


def _about(queries: Sequence[Query[Any]]) -> str:
    """The kinds of queries, for the log."""
    kinds = {type(getattr(query, "statistic", query)).__name__ for query in queries}
    return ", ".join(sorted(kinds))
