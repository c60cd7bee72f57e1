"""A schema as CSVW-EO: W3C table metadata with the terms of the Swiss Federal Statistical Office for privacy.

The standard part says what CSVW (https://www.w3.org/TR/tabular-metadata/) and CSVW-EO (https://w3id.org/csvw-eo#,
as of its library 0.2) have terms for. What they have no term for, such as rules for missing cells, goes under one key
of our own, as the keys of the schema file. A document with that key gives back exactly the schema it was written from.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NoReturn

from dpcurate import _files
from dpcurate._messages import listed, shown
from dpcurate.errors import SchemaError
from dpcurate.schema import toml
from dpcurate.schema.columns import MAX_LEVELS, MISSING, Categorical, Column, Numeric
from dpcurate.schema.schema import Person, Schema, TextFormat

CONTEXT = ("http://www.w3.org/ns/csvw", "https://w3id.org/csvw-eo#")
"""CSVW-EO has published no address of its context, so its namespace stands there; its library reads texts alone."""
OURS = "urn:dpcurate:schema:1"
"""The key of what CSVW-EO has no term for; the number is the version of its form."""
_PREFIXES = ("csvw:", "csvw-eo:", "csvw-safe:", "https://w3id.org/csvw-eo#", "http://www.w3.org/ns/csvw#")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]*")
"""What RFC 6570 allows as the name of a variable, and so CSVW as the name of a column."""
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_NUMBERS = (
    "integer", "long", "int", "short", "byte", "positiveInteger", "nonNegativeInteger", "negativeInteger",
    "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte", "decimal", "double", "float", "number",
)  # fmt: skip
_TABLE_TERMS = ("privacyUnit", "maxContributions", "maxLength", "null", "dialect")
_COLUMN_TERMS = ("name", "titles", "datatype", "privacyId", "keyValues", "minimum", "maximum", "partitions")
_SAY_NOTHING = {"@context", "@type", "@id", "url", "tableSchema", "tables", "required", "publicLength", OURS}
"""Terms that need no remark when they are read."""


# --- writing ------------------------------------------------------------------------------------------------


def dumps(schema: Schema, *, url: str | None = None, max_rows: int | None = None) -> str:
    """A schema as a CSVW-EO document."""
    return json.dumps(document(schema, url=url, max_rows=max_rows), indent=2, ensure_ascii=False) + "\n"


def document(schema: Schema, *, url: str | None = None, max_rows: int | None = None) -> dict[str, Any]:
    """The same as plain values."""
    cap = schema.rows_per_unit
    if max_rows is not None and (type(max_rows) is not int or max_rows < cap):
        raise SchemaError(f"max_rows must be a whole number of at least {cap}, got {shown(max_rows)}")
    table: dict[str, Any] = {"@context": list(CONTEXT), "@type": "Table"}
    table |= {} if url is None else {"url": url}
    table |= {} if schema.person is None else {"privacyUnit": schema.person.column}
    table |= {"maxContributions": cap}
    table |= {} if max_rows is None else {"maxLength": max_rows}
    table |= _file_terms(schema.file, url)
    ids = [] if schema.person is None else [_named(schema.person.column) | {"datatype": "string", "privacyId": True}]
    columns = [_column_terms(column, schema, max_rows) for column in schema.columns]
    return table | {"tableSchema": {"columns": ids + columns}, OURS: _extension(schema)}


def _file_terms(file: TextFormat, url: str | None) -> dict[str, Any]:
    """How a text file is written, where that is not CSVW's default."""
    separator = file.separator if url is None else file.separates(url)
    dialect: dict[str, Any] = {} if separator in (None, ",") else {"delimiter": separator}
    dialect |= {} if file.is_utf8 else {"encoding": file.encoding}
    dialect |= {"skipRows": file.skip} if file.skip else {}
    terms: dict[str, Any] = {"dialect": dialect} if dialect else {}
    return terms | ({"null": ["", *file.missing]} if file.missing else {})


def _named(name: str) -> dict[str, Any]:
    """The name of a column; one that CSVW does not allow is its title too."""
    titles = {} if _PLAIN_NAME.fullmatch(name) else {"titles": name}
    return {"@type": "Column", "name": name} | titles


def _column_terms(column: Column, schema: Schema, max_rows: int | None) -> dict[str, Any]:
    terms = _named(column.name)
    if isinstance(column, Numeric):
        comma = {"base": "double", "format": {"decimalChar": ","}}
        terms |= {"datatype": comma if schema.file.decimal == "," else "double", "required": False}
        terms |= {"minimum": column.low, "maximum": column.high}
        bins = _bins(column, schema.rows_per_unit, max_rows) if column.has_levels and max_rows is not None else []
        return terms | ({"partitions": bins} if bins else {})
    datatype, keys = _keys(_cells(column))
    bounds = {"minimum": min(keys), "maximum": max(keys)} if datatype == "integer" else {}
    return terms | {"datatype": datatype, "required": False, **bounds, "keyValues": keys}


def _bins(column: Numeric, cap: int, max_rows: int) -> list[dict[str, Any]]:
    cuts = (column.low, *column.edges, column.high)
    bounds = {"maxLength": max_rows, "maxGroupsPerUnit": min(cap, column.size), "maxContributions": cap}
    return [
        {"@type": "Partition", "predicate": {"lowerBound": a, "upperBound": b}, **bounds} for a, b in pairwise(cuts)
    ]


def _cells(column: Categorical) -> list[str]:
    """The cells of a column that count as a level; the level of empty cells stands for no cell."""
    cells = [cell for cell, _ in column.spellings]
    return [cell for cell in cells if not (cell == MISSING == column.missing)]


def _keys(cells: list[str]) -> tuple[str, list[Any]]:
    """Cells with the type that all of them have."""
    if set(cells) == {"true", "false"}:
        return "boolean", [cell == "true" for cell in cells]
    if all(map(_WHOLE.fullmatch, cells)):
        return "integer", [int(cell) for cell in cells]
    return "string", list(cells)


def _extension(schema: Schema) -> dict[str, Any]:
    """All of the schema by the keys of its file; what has an order is a list, which no tool may sort."""
    table = toml.table(schema)
    columns = table.pop("columns")
    for fields in columns.values():
        if "groups" in fields:
            fields["groups"] = [[name, cells] for name, cells in fields["groups"].items()]
    return table | {"columns": [{"name": name} | fields for name, fields in columns.items()]}


# --- reading ------------------------------------------------------------------------------------------------


def load(source: str, notes: list[str]) -> Schema:
    """A schema from the text of a document; what the schema does not have is said in `notes`."""
    table = _plain(_table(source))
    if OURS in table:
        return _own(table)
    schema = _foreign(table, notes)
    ignored = sorted({term for one in (table, *_columns(table)) for term in one} - {*_TABLE_TERMS, *_COLUMN_TERMS})
    unused = [term for term in ignored if term not in _SAY_NOTHING and ":" not in term]
    notes += [f"not used: {', '.join(unused[:12])}"] if unused else []
    return schema


def _refuse(why: str) -> NoReturn:
    raise SchemaError(f"CSVW metadata: {why}")


def _table(text: str) -> dict[str, Any]:
    """The one table that the document describes."""
    _files.check_length(text, SchemaError, _files.LARGEST_TOML)
    try:
        found = json.loads(text, parse_constant=lambda name: _refuse(f"{name} is no number of JSON"))
    except RecursionError:
        _refuse("brackets nested too deeply")
    except json.JSONDecodeError as error:
        raise SchemaError(f"not JSON: {error.msg}", line=error.lineno) from None
    except ValueError as error:  # a number of very many digits
        _refuse(f"not JSON that can be read: {error}")
    group = _plain(found) if isinstance(found, dict) else {}
    tables = group.get("tables", [found])
    if not isinstance(tables, list) or len(tables) != 1 or not isinstance(tables[0], dict):
        _refuse("a schema describes one table, so the document must describe one; give the description of one table")
    return tables[0]


def _plain(terms: Mapping[str, Any]) -> dict[str, Any]:
    """Terms without the prefix of their vocabulary, and without the group that older versions named too."""
    plain = {}
    for term, value in terms.items():
        prefix = next((one for one in _PREFIXES if term.startswith(one)), None)
        plain[term if prefix is None else term.removeprefix(prefix).rpartition(".")[2]] = value
    return plain


def _columns(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    described = table.get("tableSchema")
    columns = _plain(described).get("columns") if isinstance(described, dict) else None
    if not isinstance(columns, list) or not columns or not all(isinstance(column, dict) for column in columns):
        _refuse("it has no tableSchema with a list of columns")
    return [_plain(column) for column in columns]


def _own(table: Mapping[str, Any]) -> Schema:
    """The schema under our key, if the standard part still says the same."""
    schema = _from_extension(table[OURS])
    url = table.get("url") if isinstance(table.get("url"), str) else None
    wanted = document(schema, url=url, max_rows=table.get("maxLength"))
    there, said = _columns(table), wanted["tableSchema"]["columns"]
    where = next((f"table, {term}" for term in _TABLE_TERMS if table.get(term) != wanted.get(term)), None)
    if where is None and len(there) != len(said):
        where = "number of columns"
    for a, b in zip(there, said, strict=False):
        where = where or next((f"column {b['name']!r}, {x}" for x in _COLUMN_TERMS if a.get(x) != b.get(x)), None)
    if where is not None:
        _refuse(
            f"the standard part and the part {OURS!r} disagree ({where}). One of them was edited: edit both, or delete "
            f"{OURS!r} to read the standard part alone"
        )
    return schema


def _from_extension(given: Any) -> Schema:
    columns = given.get("columns") if isinstance(given, dict) else None
    if not isinstance(columns, list) or not all(
        isinstance(x, dict) and isinstance(x.get("name"), str) for x in columns
    ):
        _refuse(f"the part {OURS!r} has no list of named columns")
    named: dict[str, Any] = {}
    for column in columns:
        fields = {key: value for key, value in column.items() if key != "name"}
        if column["name"] in named:
            _refuse(f"the part {OURS!r} names column {column['name']!r} twice")
        if "groups" in fields:
            fields["groups"] = _groups(fields["groups"])
        named[column["name"]] = fields
    return toml.schema_of({**given, "columns": named})


def _groups(given: Any) -> dict[str, Any]:
    pairs: list[Any] = given if isinstance(given, list) else [None]
    if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
        _refuse(f"groups in the part {OURS!r} are a list of a name and its cells, such as [['north', ['SH', 'HH']]]")
    return dict(pairs)


# --- reading what others wrote ------------------------------------------------------------------------------


def _foreign(table: Mapping[str, Any], notes: list[str]) -> Schema:
    described = _columns(table)
    person = _person(table, described)
    columns = []
    for terms in described:
        name = _name(terms)
        if person is None or name != person.column:
            column = _column(name, terms, notes)
            columns += [] if column is None else [column]
    if not columns:
        _refuse("no column has public levels (keyValues) or public bounds (minimum and maximum)")
    rows = table.get("publicLength")
    if rows is not None:
        notes.append(f"rows = {shown(rows)} comes from publicLength: confirm that it is public, and was not counted")
    return Schema(tuple(columns), rows, person, _format(table, described))


def _name(terms: Mapping[str, Any]) -> str:
    titles = terms.get("titles")
    title = titles[0] if isinstance(titles, list) and titles else titles
    name = title if isinstance(title, str) else terms.get("name")
    if not isinstance(name, str):
        _refuse(f"a column has no name: {shown(dict(terms))}")
    return name


def _person(table: Mapping[str, Any], columns: Iterable[Mapping[str, Any]]) -> Person | None:
    """The unit of privacy; what is unclear about it is refused, because a guess could protect less than was meant."""
    ids = {_name(terms) for terms in columns if terms.get("privacyId") is True}
    unit, cap = table.get("privacyUnit"), table.get("maxContributions")
    ids |= {unit} if isinstance(unit, str) else set()
    if len(ids) > 1:
        _refuse(f"it names several columns as the unit of privacy ({listed('column', sorted(ids))}); a schema has one")
    if not ids and cap in (None, 1):
        return None
    if not ids:
        _refuse("maxContributions is above 1, but no privacyUnit names the column of persons")
    if cap is None:
        _refuse("privacyUnit needs maxContributions, the most rows of a person that are used")
    return Person(ids.pop(), cap)


def _column(name: str, terms: Mapping[str, Any], notes: list[str]) -> Column | None:
    """A column if it can be analysed; what is left out is said."""
    kind = _datatype(terms)
    keys = terms.get("keyValues") or _values_of(terms)
    if kind == "boolean" and not keys:
        keys = [False, True]
    if isinstance(keys, list) and all(isinstance(key, (str, int, float)) for key in keys):
        if 2 <= len(keys) <= MAX_LEVELS:
            return Categorical(name, tuple(keys))
        if keys:
            notes.append(f"left out: column {name!r}, because it has {len(keys)} levels and needs 2 to {MAX_LEVELS:,}")
            return None
    low, high = _bound(terms, "minimum"), _bound(terms, "maximum")
    if kind in _NUMBERS and low is not None and high is not None and low < high:
        return _number(name, low, high, terms, notes)
    why = "it has no public levels (keyValues)" if kind not in _NUMBERS else "it has no public bounds"
    notes.append(f"left out: column {name!r} of type {kind}, because {why}")
    return None


def _datatype(terms: Mapping[str, Any]) -> str:
    datatype = terms.get("datatype", "string")
    named = datatype.get("base", "string") if isinstance(datatype, dict) else datatype
    return str(named)[:40]


def _values_of(terms: Mapping[str, Any]) -> list[Any]:
    """The public values of a column whose partitions are values."""
    predicates = [_predicate(one) for one in _partitions(terms)]
    values = [one["partitionValue"] for one in predicates if one.get("partitionValue") is not None]
    return values if len(values) == len(predicates) else []


def _partitions(terms: Mapping[str, Any]) -> list[Any]:
    found = terms.get("partitions")
    return found if isinstance(found, list) else []


def _predicate(partition: Any) -> dict[str, Any]:
    inside = _plain(partition).get("predicate") if isinstance(partition, dict) else None
    return _plain(inside) if isinstance(inside, dict) else {}


def _bound(terms: Mapping[str, Any], which: str) -> float | None:
    """A bound of a number, which CSVW puts into the datatype and CSVW-EO next to it."""
    datatype = terms.get("datatype")
    value = terms.get(which, datatype.get(which) if isinstance(datatype, dict) else None)
    return _finite(value)


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _number(name: str, low: float, high: float, terms: Mapping[str, Any], notes: list[str]) -> Numeric:
    """A number; bins where the partitions lie side by side around the bounds."""
    cuts = _tiling(terms)
    if cuts is not None and cuts[0] <= low and high <= cuts[-1] and 3 <= len(cuts) <= MAX_LEVELS + 1:
        return Numeric(name, cuts[0], cuts[-1], edges=tuple(cuts[1:-1]))
    if _partitions(terms):
        notes.append(f"column {name!r} has no bins: its partitions do not lie side by side around its bounds")
    return Numeric(name, low, high)


def _tiling(terms: Mapping[str, Any]) -> list[float] | None:
    """The cuts between partitions that follow each other without a gap."""
    parts = [_predicate(one) for one in _partitions(terms)]
    pairs = [(_finite(part.get("lowerBound")), _finite(part.get("upperBound"))) for part in parts]
    ends = sorted((a, b) for a, b in pairs if a is not None and b is not None)
    if not ends or len(ends) != len(pairs) or any(a[1] != b[0] for a, b in pairwise(ends)):
        return None
    return [ends[0][0], *(b for _, b in ends)]


def _format(table: Mapping[str, Any], columns: Iterable[Mapping[str, Any]]) -> TextFormat:
    given = table.get("dialect")
    dialect = _plain(given) if isinstance(given, dict) else {}
    null = table.get("null", [])
    texts = tuple(x for x in (null if isinstance(null, list) else [null]) if x != "")
    marks = set()
    for terms in columns:
        datatype = terms.get("datatype")
        form = datatype.get("format") if isinstance(datatype, dict) else None
        marks |= {form["decimalChar"]} if isinstance(form, dict) and isinstance(form.get("decimalChar"), str) else set()
    if len(marks) > 1:
        _refuse(f"columns have different decimal marks: {', '.join(sorted(marks))}")
    separator = dialect.get("delimiter")
    return TextFormat(
        separator=None if separator == "," else separator,
        encoding=dialect.get("encoding", "utf-8"),
        decimal=marks.pop() if marks else ".",
        missing=texts,
        skip=dialect.get("skipRows", 0),
    )
