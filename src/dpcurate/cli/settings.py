"""`--set name=value`: the settings of a method, checked against its recipe's fields."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from dpcurate._messages import did_you_mean, shown
from dpcurate.errors import QueryError
from dpcurate.learn import methods
from dpcurate.learn.methods import Method

PARTS = ("reading", "claim")
"""Of a published recipe. The constants of the default are not for the command line: they were chosen together."""
PLAIN = (bool, int, float, str, type(None))


def settings_of(recipe: Any) -> dict[str, Any]:
    """What can be set and its value, also of a part such as a reading: `reading.coin`."""
    found: dict[str, Any] = {}
    for field in fields(recipe) if is_dataclass(recipe) else ():
        value = getattr(recipe, field.name)
        if isinstance(value, PLAIN):
            found[field.name] = value
        elif field.name in PARTS:
            found |= {f"{field.name}.{name}": inner for name, inner in settings_of(value).items()}
    return found


def chosen(args: Namespace) -> str | Method:
    """The method's name, or its recipe where settings were given."""
    return with_settings(methods.get(args.method), args.set) if args.set else str(args.method)


def with_settings(recipe: Method, given: Sequence[str]) -> Method:
    """The recipe with these settings; it refuses what has no meaning for it."""
    for setting in given:
        name, equals, text = (part.strip() for part in setting.partition("="))
        known = settings_of(recipe)
        if not equals:
            raise QueryError(f"a setting is name=value, such as --set threshold=0.01, not {shown(setting)}")
        if name not in known:
            raise QueryError(f"the method has no setting {name!r}{did_you_mean(name, tuple(known))}")
        try:
            recipe = _replaced(recipe, name.split("."), _value(text, known[name]))
        except (TypeError, ValueError) as problem:
            raise QueryError(f"--set {setting}: {problem}") from None
    return recipe


def _replaced(whole: Any, path: Sequence[str], value: Any) -> Any:
    first, *rest = path
    return replace(whole, **{first: _replaced(getattr(whole, first), rest, value) if rest else value})


def _value(text: str, now: Any) -> Any:
    """The text as a value of the kind that it replaces."""
    if text.lower() == "none":
        return None
    if isinstance(now, bool):
        if text.lower() not in ("true", "false"):
            raise ValueError("give true or false")
        return text.lower() == "true"
    if isinstance(now, str):
        return text
    for kind in (int,) if type(now) is int else (float,) if type(now) is float else (int, float, str):
        try:
            return kind(text)
        except ValueError:
            continue
    raise ValueError(f"{shown(text)} is not a {'whole number' if type(now) is int else 'number'}")
