"""A schema as a TOML file: reading with the line of every mistake, and writing."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dpcurate import _files
from dpcurate._files import toml_text
from dpcurate._messages import did_you_mean, shown
from dpcurate.errors import SchemaError
from dpcurate.schema.columns import Categorical, Column, Numeric, Ordinal
from dpcurate.schema.schema import Person, Schema, TextFormat

T = TypeVar("T")
_PART = r"""(?:"(?:[^"\\]|\\.)*+"|'[^']*+'|[\w-]++)"""
_HEADER = re.compile(rf"\s*\[\[?\s*({_PART}(?:\s*\.\s*{_PART})*)\s*\]\]?\s*(?:#.*)?$")
_ASSIGNED = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*=")
KINDS: Mapping[str, tuple[Callable[..., Column], tuple[str, ...], tuple[str, ...]]] = {
    "categorical": (Categorical, ("levels",), ("missing", "outside", "groups")),
    "ordinal": (Ordinal, ("levels",), ("missing", "outside", "groups")),
    "numeric": (Numeric, ("low", "high"), ("bins", "edges", "missing", "outside")),
}


FILE = ("separator", "encoding", "decimal", "missing", "skip")
_REFUSED = {
    "date": "a date, and dates cannot be analysed: cut it into public periods (year, season) as an ordinal column",
    "id": "an id, and ids name persons: if a person may have several rows, name it under [person] with a cap on rows",
    "text": "free text, which cannot be analysed: code it into levels as a categorical column",
}


def loads(text: str) -> Schema:
    """A schema from TOML."""
    return schema_of(_files.toml(text, SchemaError), text)


def schema_of(data: Mapping[str, Any], text: str = "") -> Schema:
    """A schema from the keys of its file; `text` is where a mistake's line is looked for."""
    _only(data, ("rows", "order", "file", "person", "columns"), "the schema", text, ())
    columns = data.get("columns")
    if not isinstance(columns, dict) or not columns:
        raise SchemaError("no columns: add a table such as [columns.age]", line=_line(text, ("columns",)))
    with_line = tuple(_column(name, fields, text) for name, fields in columns.items())
    person = _person(data["person"], text) if "person" in data else None
    file = _file(data["file"], text) if "file" in data else TextFormat()
    return _at(text, (), lambda: Schema(with_line, data.get("rows"), person, file, data.get("order", ())))


def _column(name: str, fields: Any, text: str) -> Column:
    path = ("columns", name)
    if not isinstance(fields, dict):
        raise SchemaError(f"column {name!r} must be a table: [columns.{toml_key(name)}]", line=_line(text, path))
    kind = fields.get("kind")
    if isinstance(kind, str) and kind in _REFUSED:
        line = _line(text, (*path, "kind"))
        raise SchemaError(f"column {name!r} is declared as {_REFUSED[kind]}; or leave it out of the schema", line=line)
    if not isinstance(kind, str) or kind not in KINDS:
        known = ", ".join(KINDS)
        line = _line(text, (*path, "kind")) or _line(text, path)
        raise SchemaError(f"column {name!r}: kind must be one of {known}, got {shown(kind)}", line=line)

    make, needed, optional = KINDS[kind]
    _only(fields, ("kind", *needed, *optional), f"{kind} column {name!r}", text, path)
    absent = [key for key in needed if key not in fields and not (key == "levels" and fields.get("groups"))]
    if absent:
        raise SchemaError(f"{kind} column {name!r} needs {' and '.join(absent)}", line=_line(text, path))
    for key in ("levels", "edges"):
        if key in fields and not isinstance(fields[key], list):
            raise SchemaError(f"column {name!r}: {key} must be a list", line=_line(text, (*path, key)))
    if "groups" in fields and not isinstance(fields["groups"], dict):
        why = f"column {name!r}: groups must be a table of lists, such as north = [...]"
        raise SchemaError(why, line=_line(text, (*path, "groups")))
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items() if k != "kind"}
    return _at(text, path, lambda: make(name, **values))


def _person(fields: Any, text: str) -> Person:
    if not isinstance(fields, dict):
        raise SchemaError('person must be a table with column = "..." and rows = ...', line=_line(text, ("person",)))
    _only(fields, ("column", "rows"), "person", text, ("person",))
    if set(fields) != {"column", "rows"}:
        raise SchemaError("person needs both column and rows", line=_line(text, ("person",)))
    return _at(text, ("person",), lambda: Person(**fields))


def _file(fields: Any, text: str) -> TextFormat:
    if not isinstance(fields, dict):
        raise SchemaError('file must be a table, such as [file] with separator = ";"', line=_line(text, ("file",)))
    _only(fields, FILE, "file", text, ("file",))
    return _at(text, ("file",), lambda: TextFormat(**fields))


def _only(table: Mapping[str, Any], known: tuple[str, ...], where: str, text: str, path: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            hint = did_you_mean(key, known)
            raise SchemaError(f"{where} has no setting {key!r}{hint}", line=_line(text, (*path, key)))


def _at(text: str, path: tuple[str, ...], make: Callable[[], T]) -> T:
    """Build a value; put the line of the setting its complaint names on the error."""
    try:
        return make()
    except SchemaError as error:
        setting = tuple(error.setting.split(".")) if error.setting else ()
        raise SchemaError(str(error), line=_line(text, (*path, *setting)) or _line(text, path)) from None


def _line(text: str, path: tuple[str, ...]) -> int | None:
    """The line on which a table or key stands, by reading headers; None if it is not there."""
    here: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), start=1):
        header, assigned = _HEADER.match(line), _ASSIGNED.match(line)
        if header:
            here = _dotted(header[1])
            if here[: len(path)] == path:
                return number
        elif assigned and (*here, *_dotted(assigned[1]))[: len(path)] == path:
            return number
    return None


def _dotted(key: str) -> tuple[str, ...]:
    return tuple(map(_unquoted, re.findall(_PART, key)))


def _unquoted(part: str) -> str:
    if part[0] not in "\"'":
        return part
    try:
        return str(tomllib.loads(f"x = {part}")["x"])
    except tomllib.TOMLDecodeError:  # no key, but text that looks like one in a string of many lines
        return part


def toml_key(name: str) -> str:
    """A name as a TOML key."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_text(name)


def dumps(schema: Schema) -> str:
    """A schema as TOML."""
    lines = ["# Public facts about the table; chosen without looking at it."]
    if schema.rows is not None:
        lines.append(f"rows = {schema.rows}")
    if schema.order:
        lines.append(f"order = [{', '.join(map(toml_texts, schema.order))}]")
    file = file_settings(schema.file)
    lines += ["", "[file]", *(f"{name} = {value}" for name, value in file.items())] if file else []
    if schema.person is not None:
        lines += ["", "[person]", f"column = {toml_text(schema.person.column)}", f"rows = {schema.person.rows}"]
    for column in schema.columns:
        lines += ["", f"[columns.{toml_key(column.name)}]", f'kind = "{column.kind}"', *_settings(column)]
    return "\n".join(lines) + "\n"


def table(schema: Schema) -> dict[str, Any]:
    """The keys of a schema's file, as plain values."""
    return tomllib.loads(dumps(schema))


def file_settings(file: TextFormat) -> dict[str, str]:
    """What is not as usual, as TOML values."""
    usual = TextFormat()
    told = {name: getattr(file, name) for name in FILE if getattr(file, name) != getattr(usual, name)}
    return {name: _toml_value(x) for name, x in told.items()}


def _toml_value(value: str | int | tuple[str, ...]) -> str:
    if isinstance(value, tuple):
        return toml_texts(value)
    return str(value) if isinstance(value, int) else toml_text(value)


def _settings(column: Column) -> list[str]:
    if isinstance(column, Numeric):
        missing = column.missing if isinstance(column.missing, float) else toml_text(column.missing)
        facts: dict[str, object] = {"low": column.low, "high": column.high}
        facts |= {"bins": column.bins, "edges": list(column.edges)} if column.has_levels else {}
        facts |= {"missing": missing}
    else:
        groups = ", ".join(f"{toml_key(name)} = {toml_texts(cells)}" for name, cells in column.groups)
        facts = {"groups": f"{{{groups}}}"} if groups else {"levels": toml_texts(column.levels)}
        facts |= {"missing": toml_text(column.missing)}
    return [f"{key} = {value}" for key, value in facts.items()] + [f"outside = {toml_text(column.outside)}"]


def toml_texts(given: tuple[str, ...]) -> str:
    """Texts as a TOML list."""
    return f"[{', '.join(map(toml_text, given))}]"
