"""Settings of a method as text, `name=value`: listed, and checked against the fields of its recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from dpcurate._messages import did_you_mean, shown
from dpcurate.errors import QueryError

_NESTED = ("reading", "claim")
"""Parts of a published recipe. The constants of the default are left out: they were chosen together."""
_PLAIN = (bool, int, float, str, type(None))
Recipe = TypeVar("Recipe")


def settings_of(recipe: Any) -> dict[str, Any]:
    """What can be set and its value, also of a part such as a reading: `reading.coin`."""
    found: dict[str, Any] = {}
    for field in fields(recipe) if is_dataclass(recipe) else ():
        value = getattr(recipe, field.name)
        if isinstance(value, _PLAIN):
            found[field.name] = value
        elif field.name in _NESTED:
            found |= {f"{field.name}.{name}": inner for name, inner in settings_of(value).items()}
    return found


def with_settings(recipe: Recipe, given: Sequence[str]) -> Recipe:
    """The recipe with these settings, such as ``["threshold=0.01"]``; what has no meaning for it is refused."""
    for setting in given:
        name, equals, text = (part.strip() for part in setting.partition("="))
        known = settings_of(recipe)
        if not equals:
            raise QueryError(f"a setting is name=value, such as threshold=0.01, not {shown(setting)}")
        if name not in known:
            raise QueryError(f"the method has no setting {name!r}{did_you_mean(name, tuple(known))}")
        try:
            recipe = _replaced(recipe, name.split("."), _value(text, known[name]))
        except (TypeError, ValueError) as problem:
            raise QueryError(f"setting {setting}: {problem}") from None
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
            raise ValueError("use true or false")
        return text.lower() == "true"
    if isinstance(now, str):
        return text
    kinds = {int: (int,), float: (float,)}.get(type(now), (int, float, str))
    for kind in kinds:
        try:
            return kind(text)
        except ValueError:
            continue
    raise ValueError(f"{shown(text)} is not a {'whole number' if type(now) is int else 'number'}")
