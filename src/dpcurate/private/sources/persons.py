"""Who is one person: ids are of one kind, whole numbers or text, and are compared exactly.

Anything else either runs two persons together (floating point) or counts one as two (7 and 7.0 as texts),
and the cap on a person's rows would no longer hold. So it is refused when the table is opened.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpcurate.errors import OwnerError

IdKind = Literal["whole", "text"]
RULE = "ids are whole numbers or text, all of one kind, or a table may run two persons together or count one as two"
REMEDY = "store it as text or as whole numbers (in pandas Int64, since float64 is what a missing id makes of int64)"
_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "INT", "BIGINT", "HUGEINT"}
_WHOLE |= {f"U{name}" for name in _WHOLE}
_TEXTS = {"VARCHAR", "STRING", "TEXT", "CHAR", "ENUM", "UUID"}
_NOTHING = {'"NULL"', "NULL", "VOID"}
"""The type of a column without any value."""


def check_stored(column: str, stored: str) -> IdKind | None:
    """What an engine's type makes of ids; None if it holds none."""
    word = re.split(r"[( ]", stored.upper(), maxsplit=1)[0]
    if word in _NOTHING:
        return None
    if stored.endswith("]") or word not in _WHOLE | _TEXTS:
        raise OwnerError(f"column {column!r} names persons but is stored as {stored[:40]}; {RULE}: {REMEDY}")
    return "whole" if word in _WHOLE else "text"


def check_kinds(column: str, kinds: set[str], known: set[str]) -> None:
    """Refuse ids of more than one kind, or of a kind that cannot name persons."""
    if len(kinds) > 1 or kinds - known:
        raise OwnerError(f"column {column!r} names persons and holds {' and '.join(sorted(kinds))}; {RULE}: {REMEDY}")


def untyped(column: Any) -> bool:
    """Whether the type of a pandas column says nothing about its ids: objects, and categories of anything."""
    return column.dtype == object or hasattr(column, "cat")


def plain_ids(column: str, values: Any) -> tuple[Any, IdKind | None]:
    """A column in memory as an engine can read it without guessing; and the kind of ids, if their type does not tell.

    Objects become texts of one kind, None where an id is missing.
    """
    if hasattr(values, "cat") and hasattr(values.cat, "codes"):
        return _plain_category(column, values)
    values = _array(values)
    return _plain_objects(column, values) if values.dtype == object else (values, None)


def _array(values: Any) -> Any:
    """Lists, and columns of other libraries, as objects: NumPy would make floats of whole numbers if one is missing."""
    if isinstance(getattr(values, "dtype", None), np.dtype):
        return np.asarray(values, order="C")
    plain = np.empty(len(values), dtype=object)
    plain[:] = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    return plain


def _plain_category(column: str, values: Any) -> tuple[Any, IdKind | None]:
    """DuckDB takes categories for numbers, and for doubles if a cell is missing."""
    texts, kind = _plain_objects(column, values.cat.categories.to_numpy(dtype=object))
    return np.array([*texts, None], dtype=object)[values.cat.codes.to_numpy()], kind  # the code of a missing one is -1


def _plain_objects(column: str, values: NDArray[Any]) -> tuple[NDArray[Any], IdKind | None]:
    names = {kind: _word(kind, values) for kind in set(map(type, values))}
    kinds = set(names.values()) - {""}
    check_kinds(column, kinds, {"whole numbers", "text"})
    plain = np.empty(len(values), dtype=object)
    plain[:] = [str(x) if names[type(x)] else None for x in values]
    return plain, None if not kinds else "text" if "text" in kinds else "whole"


def _word(kind: type, values: NDArray[Any]) -> str:
    """What values of an exact type are as ids; nothing if they are missing ones."""
    if kind is type(None) or kind.__name__ in ("NAType", "NaTType"):
        return ""
    if kind in (str, np.str_):
        return "text"
    if kind is float or issubclass(kind, (np.floating, np.datetime64, np.timedelta64)):  # the last is NumPy's integer
        known = any(x == x for x in values if type(x) is kind)
        return f"values of type {kind.__name__}" if known else ""
    return "whole numbers" if kind is int or issubclass(kind, np.integer) else f"values of type {kind.__name__}"
