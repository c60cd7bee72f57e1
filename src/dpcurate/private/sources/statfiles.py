"""Files of other programs: Stata, SPSS and SAS by pyreadstat, Excel by python-calamine. Read into memory as columns.

Cells are taken as they are stored: codes stay codes, whatever their labels say, so that one set of rules encodes
these files and all other tables. Labels go into a codebook, which a draft reads.
"""

from __future__ import annotations

import datetime
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dpcurate._messages import how_many
from dpcurate.errors import OwnerError, SchemaError
from dpcurate.private.sources.engine import check_columns, check_unique, first_line
from dpcurate.schema import Schema, did_you_mean, level_text

STATISTICAL = {"dta": "read_dta", "sav": "read_sav", "zsav": "read_sav", "sas7bdat": "read_sas7bdat"}
"""Endings of files that pyreadstat reads, and by which function."""
SHEETS = ("xlsx", "xlsm")
MOST_CELLS = 1 << 28
"""Cells of a file that is read into memory; its header says how many, whatever it holds."""
MOST_AREA = 1 << 26
"""Cells between the corners of a sheet: they take memory also where they are empty."""
MOST_UNPACKED = 1 << 30
"""Bytes of a workbook without compression."""
_PIECE = 1 << 20
EXACT = 2**53
"""Beyond it a double does not hold every whole number."""


@dataclass(frozen=True, slots=True)
class Described:
    """What a file says of a column beside its cells: a text, names of its values, and whether these have an order."""

    about: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class StatFile:
    """A table that was read: columns by name, and its codebook."""

    columns: Mapping[str, NDArray[Any]]
    codebook: Mapping[str, Described]


def is_statfile(file: str) -> bool:
    """Whether a path ends like a file of Stata, SPSS, SAS or Excel."""
    return _ending(file) in (*STATISTICAL, *SHEETS)


def read(path: str, schema: Schema | None) -> StatFile:
    """The columns that the schema names, or all."""
    file, _, sheet = path.partition("#")
    if not Path(file).is_file():
        raise OwnerError(f"no file is there at {file!r}")
    if _ending(file) in SHEETS:
        return StatFile(_of_sheet(file, sheet, schema), {})
    return _of_statistics(file, schema)


def _ending(file: str) -> str:
    return file.partition("#")[0].lower().rsplit(".", 1)[-1]


def _library(name: str, file: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise OwnerError(
            f"reading .{_ending(file)} files takes {name.replace('_', '-')}, which is not installed: "
            "pip install 'dpcurate[files]'"
        ) from None


def _wanted(names: Sequence[str], schema: Schema | None) -> list[str]:
    check_unique([name.casefold() for name in names])  # DuckDB does not tell capital letters from small ones
    if schema is None:
        return list(names)
    check_columns(names, schema)
    persons = [schema.person.column] if schema.person else []
    return [name for name in names if name in (*schema.names, *persons)]


def _plain(values: Sequence[Any], *, names_persons: bool) -> NDArray[Any]:
    """Numbers as doubles, with NaN where one is missing; or texts and truth values as objects, with None."""
    kinds = {type(x) for x in values} - {type(None)}
    if kinds <= {int, float}:
        return _whole(values) if names_persons else np.array(values, dtype=float)
    plain = np.empty(len(values), dtype=object)
    plain[:] = [_cell(x) for x in values]
    return plain


def _cell(value: Any) -> Any:
    """An empty text is a missing one, as in these programs; points in time become texts."""
    if isinstance(value, (datetime.date, datetime.time)):  # a datetime is a date
        return value.isoformat()
    return None if value == "" else str(value) if isinstance(value, datetime.timedelta) else value


def _whole(values: Sequence[Any]) -> NDArray[Any]:
    """Ids, which most of these programs store as doubles: whole numbers if all of them are, and exact."""
    exact = all(x is None or (float(x).is_integer() and abs(x) < EXACT) for x in values)
    ids = np.empty(len(values), dtype=object)
    ids[:] = [None if x is None else int(x) if exact else float(x) for x in values]
    return ids


# --- Stata, SPSS, SAS -------------------------------------------------------------------------------------


def _of_statistics(file: str, schema: Schema | None) -> StatFile:
    reader = getattr(_library("pyreadstat", file), STATISTICAL[_ending(file)])
    try:
        _, facts = reader(file, metadataonly=True, output_format="dict")
        wanted = _wanted(facts.column_names, schema)
        _check_cells(file, facts.number_rows or 0, len(wanted))
        columns, facts = reader(file, usecols=wanted, output_format="dict")
    except (OwnerError, SchemaError):
        raise
    except Exception as error:
        raise OwnerError(f"cannot read {file!r}: {first_line(error)}") from error
    person = schema.person.column if schema and schema.person else None
    # A number of 32 bits may have lost the last digits of an id before anybody could read them.
    short = {name for name, kind in facts.readstat_variable_types.items() if kind == "float"}
    plain = {n: _plain(columns[n], names_persons=n == person and n not in short) for n in wanted}
    return StatFile(plain, {name: _described(name, facts) for name in wanted})


def _check_cells(file: str, rows: int, columns: int) -> None:
    if rows * columns > MOST_CELLS:
        raise OwnerError(
            f"{file!r} says that it has {rows:,} rows, which for {how_many(columns, 'column')} is above the limit of "
            f"{MOST_CELLS:,} cells in memory: save it as Parquet or CSV, which are read where they are"
        )


def _described(name: str, facts: Any) -> Described:
    labels = {level_text(value): str(label) for value, label in facts.variable_value_labels.get(name, {}).items()}
    about = facts.column_names_to_labels.get(name) or ""
    return Described(about, labels, facts.variable_measure.get(name) == "ordinal")


# --- Excel ------------------------------------------------------------------------------------------------


def _of_sheet(file: str, sheet: str, schema: Schema | None) -> dict[str, NDArray[Any]]:
    """A sheet whose first row names the columns; a row of empty cells is a row, unless no cell below it is filled."""
    header, *rows = _rows(file, sheet)
    names = [str(level_text(x)) if x != "" else f"column{i}" for i, x in enumerate(header)]
    wanted, person = _wanted(names, schema), schema.person.column if schema and schema.person else None
    places = {name: i for i, name in enumerate(names)}
    cells = {name: [None if row[i] == "" else row[i] for row in rows] for name, i in places.items() if name in wanted}
    return {name: _plain(column, names_persons=name == person) for name, column in cells.items()}


def _rows(file: str, sheet: str) -> list[list[Any]]:
    library = _library("python_calamine", file)
    _check_workbook(file)
    try:
        with library.CalamineWorkbook.from_path(file) as book:
            if sheet and sheet not in book.sheet_names:
                raise OwnerError(f"{file!r} has no sheet {sheet!r}{did_you_mean(sheet, book.sheet_names)}")
            rows: list[list[Any]] = book.get_sheet_by_name(sheet or book.sheet_names[0]).to_python()
    except OwnerError:
        raise
    except Exception as error:
        raise OwnerError(f"cannot read {file!r}: {first_line(error)}") from error
    if not rows:
        raise OwnerError(f"the sheet {sheet or 'that comes first'!r} of {file!r} is empty: its first row names columns")
    return rows


_PLACE = re.compile(rb"""<(?:\w+:)?c\s[^<>]*?\br\s*=\s*["']([A-Z]{1,3})([0-9]{1,7})["']""")
_CELL = re.compile(rb"<(?:\w+:)?c[\s/>]")
_ROW = re.compile(rb"<(?:\w+:)?row\b")
_ROW_NUMBER = re.compile(rb"""<(?:\w+:)?row\s[^<>]*?\br\s*=\s*["']([0-9]{1,7})["']""")


def _check_workbook(file: str) -> None:
    """Refuse a workbook that would take too much memory: the reader ends the whole process where that is not there."""
    try:
        with zipfile.ZipFile(file) as book:
            unpacked = sum(part.file_size for part in book.infolist())
            if unpacked > MOST_UNPACKED:
                raise OwnerError(
                    f"{file!r} holds {unpacked:,} bytes without its compression, above the limit of "
                    f"{MOST_UNPACKED:,}: save the sheet as CSV"
                )
            for part in book.infolist():
                with book.open(part) as content:
                    _check_area(file, content)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        raise OwnerError(f"cannot read {file!r}: {first_line(error)}") from error


def _check_area(file: str, content: IO[bytes]) -> None:
    """Refuse a sheet whose cells lie too far apart. A cell says where it is, or follows the last one."""
    rows = columns = following = 0
    for tags in _whole_tags(content):
        for letters, digits in set(_PLACE.findall(tags)):
            columns, rows = max(columns, _column_number(letters)), max(rows, int(digits))
        rows = max(rows, max(map(int, _ROW_NUMBER.findall(tags)), default=0))
        for i, row in enumerate(_ROW.split(tags)):
            following = len(_CELL.findall(row)) + (following if i == 0 else 0)
            columns = max(columns, following)
        if rows * columns > MOST_AREA:
            raise OwnerError(
                f"a sheet of {file!r} has a cell in row {rows:,} and one in column {columns:,}: together they span "
                f"more than {MOST_AREA:,} cells. Delete what lies outside the table, or save the sheet as CSV"
            )


def _whole_tags(content: IO[bytes]) -> Iterator[bytes]:
    """The bytes of a part in pieces that do not cut a tag."""
    tail = b""
    while piece := content.read(_PIECE):
        whole = tail + piece
        cut = whole.rfind(b"<")
        yield whole[:cut] if cut >= 0 else whole
        tail = whole[cut:] if cut >= 0 and len(whole) - cut <= _PIECE else b""  # no tag of a cell is that long
    yield tail


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number
