"""The description of the service in OpenAPI, made from its routes and from the registry of queries."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from fractions import Fraction
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from dpcurate.queries import Exact, Gate, Query
from dpcurate.queries.encoding import KNOWN, LONGEST_TEXT
from dpcurate.remote import wire

Json = dict[str, Any]
TEXT: Json = {"type": "string", "maxLength": LONGEST_TEXT}
AMOUNT: Json = {"type": "number"}
WHOLE: Json = {"type": "integer", "minimum": 0}
MAYBE_AMOUNT: Json = {"type": ["number", "null"]}
REQUEST: Json = {
    "type": "string", "pattern": "^[A-Za-z0-9_-]{8,64}$", "description": "the same request is answered and paid once",
}  # fmt: skip
COMMAND: Json = {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "makes a run the same run again"}
STATE: Json = {"remaining": AMOUNT, "paid": AMOUNT, "spent": AMOUNT}
STEPS: Json = {**STATE, "cost": AMOUNT, "steps": {"type": "array", "items": {"type": "array", "maxItems": 5}}}
DONE: Json = {
    "type": "array", "items": TEXT, "description": "gates and samples that the service need not keep any longer",
}  # fmt: skip
SHARE: Json = {
    "type": "object", "properties": {"ceiling": AMOUNT, "spent": AMOUNT, "reserved": {"type": "boolean"}},
}  # fmt: skip
BUDGET: Json = {"remaining": AMOUNT, "spent": AMOUNT, "share": SHARE}
RUN: Json = {"type": ["object", "null"], "description": "a line of the log of runs"}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _many(items: Json) -> Json:
    return {"type": "array", "items": items}


BODIES: Mapping[str, Json] = {
    "cost": {"queries": _many(_ref("Query"))},
    "begin": {
        "request": REQUEST, "command": COMMAND, "schema": TEXT, "method": {"type": "string", "maxLength": 100},
        "purpose": {"type": "string", "maxLength": wire.LONGEST_LINE}, "result": {"type": "string", "maxLength": 200},
        "epsilon": MAYBE_AMOUNT, "quantify": MAYBE_AMOUNT, "share": MAYBE_AMOUNT,
    },
    "ask": {"request": REQUEST, "queries": _many(_ref("Query")), "place": TEXT, "done": DONE},
    "open": {"request": REQUEST, "gate": _ref("Gate"), "place": TEXT, "done": DONE},
    "first": {"request": REQUEST, "scores": _many(_ref("Score")), "done": DONE},
    "reserve": {"request": REQUEST, "amount": AMOUNT, "done": DONE},
    "settle": {"request": REQUEST, "done": DONE},
    "end": {"outcome": {"enum": ["finished", "refused", "failed", "stopped"]}},
}  # fmt: skip
"""The fields of a request, by the name of its handler."""
OPTIONAL = frozenset(("place", "done", "purpose", "result", "epsilon", "quantify", "share"))
ANSWERS: Mapping[str, Json] = {
    "facts": {
        "table": TEXT, "schema": {"type": "string", "description": "TOML"}, "neighbours": TEXT, "analyst": TEXT,
        "purpose": TEXT, "team": {"type": "boolean"}, "needs_consent": {"type": "boolean"},
        "limits": {"type": "object"}, "guarantee": _ref("Guarantee"), **BUDGET,
    },
    "budget": BUDGET,
    "cost": {"cost": AMOUNT, "cells": WHOLE, "remaining": AMOUNT},
    "log": {"entries": _many({"type": "object"})},
    "runs": {"runs": _many(RUN)},
    "stopped": {"run": RUN},
    "begin": {"run": TEXT, "number": WHOLE, "resumed": {"type": "boolean"}, **STATE},
    "ask": {"answers": _many(_ref("Answer")), **STEPS},
    "open": {"gate": TEXT, **STEPS},
    "first": {"first": {"type": ["integer", "null"]}, **STEPS},
    "reserve": {"block": TEXT, **STEPS},
    "settle": STEPS,
    "end": {"paid": AMOUNT, **BUDGET},
    "answers": {
        "run": RUN, "table": TEXT, "neighbours": TEXT, "budget": _ref("Guarantee"), "schema": TEXT, "spent": AMOUNT,
        "answers": _many({"type": "object"}),
    },
}  # fmt: skip
"""The fields of an answer, by the name of its handler."""
QUERIES: Mapping[str, Json] = {"stopped": {"command": COMMAND}}
"""What follows the `?` of an address."""


def described(calls: Sequence[tuple[str, str, str, str]]) -> Json:
    """The description; `calls` holds the HTTP method, the path, what it is for and the name of its handler."""
    paths: dict[str, Json] = {}
    for method, path, about, handler in calls:
        paths.setdefault(f"{wire.ROOT}{path}", {})[method.lower()] = _operation(path, about, handler)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dpcurate", "version": str(wire.VERSION),
            "description": "A table's curator: noised answers within a share of a privacy budget.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}, "schemas": _schemas()},
    }  # fmt: skip


def _operation(path: str, about: str, handler: str) -> Json:
    found: Json = {
        "operationId": handler, "summary": about,
        "responses": {"200": _holding("an answer", _object({"version": WHOLE, **ANSWERS[handler]})),
                      "default": _holding("a refusal", _ref("Error"))},
    }  # fmt: skip
    inside = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    parameters = [{"name": name, "in": "path", "required": True, "schema": TEXT} for name in inside]
    parameters += [
        {"name": name, "in": "query", "required": True, "schema": schema}
        for name, schema in QUERIES.get(handler, {}).items()
    ]
    if parameters:
        found["parameters"] = parameters
    if handler in BODIES:
        body = {**_object(BODIES[handler]), "additionalProperties": False}
        body["required"] = [name for name in BODIES[handler] if name not in OPTIONAL]
        found["requestBody"] = {**_holding("a request", body), "required": True}
    return found


def _object(properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def _holding(about: str, schema: Json) -> Json:
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def _schemas() -> Json:
    """Every type of a query that a service answers, and the few others."""
    known = {name: kind for name, kind in KNOWN.items() if kind is not Exact}
    return {
        **{name: _of_type(name, kind) for name, kind in known.items()},
        "Query": _any_of(known, lambda kind: issubclass(kind, Query)),
        "Gate": _any_of(known, lambda kind: issubclass(kind, Gate)),
        "Number": {"anyOf": [AMOUNT, _ref("Fraction")]},
        "Fraction": _one_name("Fraction", {"type": "array", "items": {"type": "integer"}, "maxItems": 2}),
        "Answer": {"anyOf": [WHOLE, _ref("Released")]},
        "Released": {
            "description": "the numbers of all parts in order, the shape of each part and the deviation of its noise",
            **_object({"shapes": _many(_many(WHOLE)), "scales": _many(AMOUNT), "numbers": _many(AMOUNT)}),
        },
        "Guarantee": _object({"epsilon": AMOUNT, "delta": AMOUNT, "rho": AMOUNT}),
        "Error": _object({"version": WHOLE, "error": _object({"code": {"enum": list(wire.ERRORS)}, "message": TEXT})}),
    }


def _any_of(known: Mapping[str, type[Any]], fits: Any) -> Json:
    return {"anyOf": [_ref(name) for name, kind in known.items() if fits(kind)]}


def _of_type(name: str, kind: type[Any]) -> Json:
    """A type: an object of one name, its class, and the list of its fields in their order."""
    hints, listed = get_type_hints(kind), fields(kind)
    parts = [{"title": one.name, **_of_hint(hints[one.name])} for one in listed]
    told = (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")
    array = {"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts), "maxItems": len(parts)}
    defaults = {one.name: one.default for one in listed if one.default is not MISSING}
    more = f" Without a value of its own: {', '.join(f'{k} {v!r}' for k, v in defaults.items())}." if defaults else ""
    return {"description": told + more, **_one_name(name, array)}


def _one_name(name: str, content: Json) -> Json:
    return {"type": "object", "properties": {name: content}, "required": [name], "additionalProperties": False}


def _of_hint(hint: Any) -> Json:
    """A field's type."""
    simple = {
        str: TEXT, float: _ref("Number"), int: {"type": "integer"}, bool: {"type": "boolean"},
        type(None): {"type": "null"}, Fraction: _ref("Fraction"),
    }  # fmt: skip
    if hint in simple:
        return simple[hint]
    if get_origin(hint) in (Union, types.UnionType):
        return {"anyOf": [_of_hint(one) for one in get_args(hint) if one is not Exact]}
    if get_origin(hint) is tuple:
        return _many(_of_hint(get_args(hint)[0]))
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))}
    if hint in KNOWN.values():
        return _ref(str(hint.__name__))
    return {"anyOf": [_ref(name) for name, kind in KNOWN.items() if issubclass(kind, hint)]}
