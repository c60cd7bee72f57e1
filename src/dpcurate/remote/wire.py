"""What travels between a service and its clients, besides queries and answers (queries/encoding.py).

Everything is JSON. An object is read by `Fields`: known names, each of its type and within its size; whatever else it
holds is refused. Amounts of a ledger are whole numbers of any length, so they travel as text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NoReturn

from dpcurate._messages import one_line, shown
from dpcurate.accounting import Budget, Cost, Event
from dpcurate.errors import (
    BudgetError,
    BudgetExceeded,
    DecodeError,
    DpcurateError,
    GateClosed,
    LedgerError,
    NotPrivate,
    NotStored,
    QueryError,
    RefusedError,
    ServiceError,
    ShareRevoked,
    SourceError,
    WaitingForConsent,
)
from dpcurate.private.ledger import LoggedRun, RunFacts
from dpcurate.private.ledger.disk_store import StoredRun
from dpcurate.private.ledger.journal import UsedSchema
from dpcurate.private.ledger.units import LedgerFacts
from dpcurate.private.shared_round import is_part
from dpcurate.queries import Query
from dpcurate.queries.encoding import answer_from_plain, answer_to_plain, decode, encode, from_plain, to_plain
from dpcurate.schema import Schema

VERSION = 1
ROOT = f"/v{VERSION}"
LONGEST_LINE = 500
"""Characters of a purpose; other words are shorter."""
MOST_BYTES = 1 << 28
"""Bytes of a response that a client reads."""
_FOREIGN = "this is not what a service and its clients say to each other"
_REQUEST = re.compile(r"[A-Za-z0-9_-]{8,64}")
_COMMAND = re.compile(r"[0-9a-f]{64}")
_WHOLE = re.compile(r"[0-9]{1,400}")

ERRORS: dict[str, tuple[type[DpcurateError], int]] = {
    "body": (DecodeError, 400),
    "token": (ServiceError, 401),
    "waiting": (WaitingForConsent, 403),
    "not-private": (NotPrivate, 403),
    "budget": (BudgetExceeded, 403),
    "revoked": (ShareRevoked, 403),
    "refused": (RefusedError, 403),
    "route": (ServiceError, 404),
    "method": (ServiceError, 405),
    "run": (RefusedError, 410),
    "run-taken": (RefusedError, 409),
    "gate": (GateClosed, 409),
    "too-large": (RefusedError, 413),
    "media": (ServiceError, 415),
    "host": (ServiceError, 421),
    "query": (QueryError, 422),
    "amount": (BudgetError, 422),
    "answers": (NotStored, 404),
    "limit": (RefusedError, 429),
    "internal": (ServiceError, 500),
    "ledger": (LedgerError, 503),
    "table": (SourceError, 503),
    "stopping": (RefusedError, 503),
}
"""Every code of an error, what a client raises for it, and its HTTP status."""


def dumps(value: object) -> bytes:
    """JSON on one line in ASCII."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def refuse(why: str) -> NoReturn:
    """Say what is wrong with what came."""
    raise DecodeError(f"{_FOREIGN}: {why}")


class Fields:
    """The fields of an object from elsewhere, each taken once."""

    def __init__(self, given: Any) -> None:
        if not isinstance(given, dict):
            refuse(f"{shown(given)} is not an object")
        self._left: dict[str, Any] = dict(given)

    def take(self, name: str) -> Any:
        """A field of any kind, None if it is not there."""
        return self._left.pop(name, None)

    def text(self, name: str, longest: int = LONGEST_LINE) -> str:
        """A line of text; an absent one is empty."""
        value = self.take(name)
        value = "" if value is None else value
        if type(value) is not str or len(value) > longest or not value.isprintable():
            refuse(f"{name} is one line of at most {longest} characters, got {shown(value)}")
        return value

    def like(self, name: str, pattern: re.Pattern[str]) -> str:
        """Text of a certain form."""
        value = self.take(name)
        if type(value) is not str or not pattern.fullmatch(value):
            refuse(f"{name} cannot be {shown(value)}")
        return value

    def request(self) -> str:
        """The id of a request, which makes it the same request when it comes again."""
        return self.like("request", _REQUEST)

    def command(self) -> str:
        """What makes a run the same run again."""
        return self.like("command", _COMMAND)

    def number(self, name: str) -> float | None:
        """A finite number, or None."""
        value = self.take(name)
        if value is None:
            return None
        if type(value) not in (int, float) or not abs(value) < 1e300 or not math.isfinite(value):
            refuse(f"{name} is a finite number, got {shown(value)}")
        return float(value)

    def amount(self, name: str) -> float:
        """A finite number that is there."""
        value = self.number(name)
        if value is None:
            refuse(f"{name} is missing")
        return value

    def whole(self, name: str, most: int = 1 << 53) -> int:
        """A whole number from 0 on."""
        value = self.take(name)
        if type(value) is not int or not 0 <= value <= most:
            refuse(f"{name} is a whole number, got {shown(value)}")
        return value

    def units(self, name: str) -> int:
        """An amount of a ledger."""
        return int(self.like(name, _WHOLE))

    def truth(self, name: str) -> bool:
        """True or False; False if it is not there."""
        value = self.take(name)
        if value not in (None, True, False) or type(value) not in (bool, type(None)):
            refuse(f"{name} is true or false, got {shown(value)}")
        return bool(value)

    def listed(self, name: str) -> list[Any]:
        """A list; an absent one is empty."""
        value = self.take(name)
        value = [] if value is None else value
        if not isinstance(value, list):
            refuse(f"{name} is a list, got {shown(value)}")
        return value

    def done(self) -> None:
        """Refuse what nobody asked for."""
        if self._left:
            refuse(f"nothing is called {shown(sorted(self._left)[0])} here")


# --- budgets and steps ------------------------------------------------------------------------------------------------


def budget_to_plain(budget: Budget) -> dict[str, float]:
    """A finite budget."""
    return {"epsilon": float(budget.epsilon or 0), "delta": float(budget.delta or 0), "rho": float(budget.rho or 0)}


def budget_from_plain(given: Any) -> Budget:
    """A finite budget."""
    taken = Fields(given)
    return Budget.from_numbers(*(taken.amount(name) for name in ("epsilon", "delta", "rho")))


def event_to_plain(event: Event) -> list[Any]:
    """A step that has a finite cost: mechanism, what it was about, epsilon if it has one, rho and the noise."""
    epsilon = None if event.cost.epsilon == math.inf else float(event.cost.epsilon)
    noise = None if event.noise is None else float(event.noise)
    return [event.mechanism, one_line(event.about), epsilon, float(event.cost.rho), noise]


def event_from_plain(given: Any) -> Event:
    """A step that was charged."""
    if not isinstance(given, list) or len(given) != 5:
        refuse("a step has five parts")
    taken = Fields(dict(zip(("mechanism", "about", "epsilon", "rho", "noise"), given, strict=True)))
    epsilon = taken.number("epsilon")
    cost = Cost(math.inf if epsilon is None else epsilon, taken.amount("rho"))
    return Event(taken.text("mechanism"), taken.text("about", 100_000), cost, taken.number("noise"))


# --- runs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run that a client wants to begin; who begins it is said by its token."""

    request: str
    facts: RunFacts
    share: float | None

    def to_plain(self) -> dict[str, Any]:
        """For JSON."""
        f = self.facts
        return {
            "request": self.request, "command": f.command, "schema": f.schema, "method": f.method, "purpose": f.purpose,
            "epsilon": f.epsilon, "result": f.result, "quantify": f.quantify, "share": self.share,
        }  # fmt: skip

    @classmethod
    def from_plain(cls, given: Any) -> RunRequest:
        """From JSON."""
        taken = Fields(given)
        facts = RunFacts(
            command=taken.command(), method=taken.text("method", 100), schema=taken.text("schema", 64), by="",
            purpose=taken.text("purpose"), epsilon=taken.number("epsilon"), result=taken.text("result", 200),
            quantify=taken.number("quantify"),
        )  # fmt: skip
        made = cls(taken.request(), facts, taken.number("share"))
        taken.done()
        return made


def run_to_plain(run: LoggedRun, command: str) -> dict[str, Any]:
    """A line of the log; `command` is the client's own, or empty if the run is not one of its own."""
    facts = asdict(run.facts).items()
    told = {name: one_line(value)[:1000] if isinstance(value, str) else value for name, value in facts}
    told |= {"command": command, "result": told["result"] if command else ""}
    return {
        **told, "number": run.number, "started": run.started, "outcome": run.outcome, "units": str(run.units),
        "answers": run.answers, "allowance": None if run.allowance is None else str(run.allowance), "ended": run.ended,
    }  # fmt: skip


def run_from_plain(given: Any) -> LoggedRun:
    """A line of the log."""
    taken = Fields(given)
    told: dict[str, Any] = {
        one.name: taken.number(one.name) if one.name in ("epsilon", "quantify") else taken.text(one.name, 1000)
        for one in fields(RunFacts)
    }
    allowance, ended = taken.take("allowance"), taken.text("ended")
    return LoggedRun(
        number=taken.whole("number"), facts=RunFacts(**told), started=taken.text("started"),
        outcome=taken.text("outcome"), units=taken.units("units"), answers=taken.whole("answers"),
        allowance=None if allowance is None else Fields({"allowance": allowance}).units("allowance"),
        ended=ended or None,
    )  # fmt: skip


# --- stored answers ---------------------------------------------------------------------------------------------------


def stored_to_plain(stored: StoredRun, command: str) -> dict[str, Any]:
    """All that a run has released; parts of rounds of shared noise are not for analysts."""
    facts = stored.facts
    schema = next(one for one in stored.schemas if one.hash == stored.logged.facts.schema)
    answers = []
    for request, (units, body) in stored.answers.items():
        if is_part(body):
            continue
        pairs = decode(body)
        answers.append({
            "request": request, "units": str(units), "queries": [to_plain(query) for query, _ in pairs],
            "answers": [answer_to_plain(answer) for _, answer in pairs],
        })  # fmt: skip
    return {
        "run": run_to_plain(stored.logged, command), "table": facts.table, "neighbours": facts.neighbours,
        "budget": budget_to_plain(facts.budget), "schema": schema.text, "spent": stored.spent, "answers": answers,
    }  # fmt: skip


def stored_from_plain(given: Any) -> StoredRun:
    """The same on the client; that answers fit their queries is checked by whoever reads them."""
    taken = Fields(given)
    logged, neighbours = run_from_plain(taken.take("run")), taken.text("neighbours")
    text = taken.take("schema")
    schema = Schema.loads(text if isinstance(text, str) else refuse("a schema is text"))
    if schema.hash != logged.facts.schema:
        refuse("the run has another schema")
    answers = dict(map(_stored_answer, taken.listed("answers")))
    facts = LedgerFacts(
        table=taken.text("table", 1000), schema_hash=schema.hash, neighbours=neighbours,
        budget=budget_from_plain(taken.take("budget")), allow_unproved=False, created="", identity="", path="",
    )  # fmt: skip
    return StoredRun(
        facts, logged, (UsedSchema(schema.hash, text, ""),), answers, taken.amount("spent"), (), True
    )  # fmt: skip


def _stored_answer(given: Any) -> tuple[str, tuple[int, bytes]]:
    taken = Fields(given)
    queries: Sequence[Query[Any]] = from_plain(taken.listed("queries"))  # type: ignore[assignment]
    answers = answers_from_plain(queries, taken.listed("answers"))
    return taken.text("request", 200), (taken.units("units"), encode(queries, answers))


def answers_from_plain(queries: Sequence[Query[Any]], given: list[Any]) -> list[Any]:
    """The answers to these queries."""
    if len(queries) != len(given):
        refuse(f"{len(queries)} questions got {len(given)} answers")
    return [answer_from_plain(*one) for one in zip(queries, given, strict=True)]


# --- errors -----------------------------------------------------------------------------------------------------------


def error_from_plain(given: Any) -> tuple[str, str]:
    """The code and the sentence of an error."""
    taken = Fields(Fields(given).take("error"))
    code, sentence = taken.text("code"), taken.take("message")
    if code not in ERRORS or type(sentence) is not str:
        refuse("an error has a code and a sentence")
    return code, sentence[:5000]
