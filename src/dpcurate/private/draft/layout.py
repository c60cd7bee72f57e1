"""How a text file is written: found by looking at it, told, and put into the schema, so that nobody guesses again."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from glob import glob
from itertools import islice
from pathlib import Path
from typing import Any

from dpcurate.errors import DpcurateError, SchemaError
from dpcurate.private.sources import duck, textfile, told
from dpcurate.private.sources.engine import Engine
from dpcurate.schema import TextFormat

MARKERS = ("NA", "N/A", "n/a", "#N/A", "NULL", "null", ".", "?")
"""Texts that programs write for a missing cell; NaN is one in any table."""
SAMPLE_BYTES = 1 << 18
SAMPLE_ROWS = 100_000
"""Rows that are looked at for their decimal mark."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A format, and in words."""

    format: TextFormat
    in_words: str

    def opened(self, table: str | Path) -> Engine:
        """The file, cut into cells once and not once for every column."""
        engine = duck.open_file(str(table), self.format)
        engine.connection.execute(f"CREATE TEMP TABLE dpcurate_draft AS SELECT * FROM {engine.relation}")
        engine.relation = "dpcurate_draft"
        return engine


def found_in(table: Any, *, separator: str | None, encoding: str | None, decimal: str | None) -> Layout | None:
    """How a text file is written; None for any other table."""
    if not isinstance(table, (str, Path)) or not textfile.is_text(str(table)):
        if (separator, encoding, decimal) != (None, None, None):
            raise SchemaError("separator, encoding and decimal mark are for text files, .csv and .tsv")
        return None
    file = str(table)
    first = next(iter(sorted(glob(file))), file)
    written = TextFormat(separator, _encoding(first) if encoding is None else encoding)
    written = replace(written, separator=separator or _separator(first, written))
    try:
        marks = _marks(file, written)
    except DpcurateError:
        raise
    except Exception as error:
        raise told(file, written, error) from error
    written = replace(written, decimal=decimal or marks.decimal(written.separates(file)), missing=marks.missing)
    return Layout(_plain(written, file), _in_words(written, file))


def _plain(written: TextFormat, file: str) -> TextFormat:
    """The separator that a file of this ending has anyway need not be written down."""
    usual = replace(written, separator=None)
    return usual if usual.separates(file) == written.separates(file) else written


def _in_words(written: TextFormat, file: str) -> str:
    names = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
    separator = written.separates(file)
    words = [f"a text file separated by {names.get(separator, repr(separator))}", f"in {written.encoding}"]
    words.append("numbers with a decimal comma" if written.decimal == "," else "numbers with a decimal point")
    missing = ", ".join(map(repr, written.missing))
    return ", ".join([*words, f"missing cells empty{f' or {missing}' if missing else ''}"])


def _encoding(file: str) -> str:
    """UTF-8 if all of it is; else UTF-16 by its mark, or what Windows writes in western Europe."""
    try:
        start = textfile.beginning(file, 4)
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        return next(e for e in ("utf-8", "windows-1252", "latin-1") if textfile.bad_line(file, e) is None)
    except (OSError, EOFError, ValueError):  # it cannot be read, which the engine tells
        return "utf-8"


def _separator(file: str, written: TextFormat) -> str | None:
    """The one that cuts most rows into the same number of cells, more than one."""
    try:
        text = textfile.beginning(file, SAMPLE_BYTES).decode(written.encoding, errors="ignore")
    except (OSError, EOFError, ValueError):
        return None
    lines = text.splitlines(keepends=True)
    whole = lines[:-1] if len(lines) > 1 else lines  # the last may be cut
    scores = {separator: _score(whole, separator) for separator in (",", *textfile.SEPARATORS)}
    best = max(scores, key=scores.__getitem__)
    return best if scores[best][1] > 1 else None


def _score(lines: Sequence[str], separator: str) -> tuple[float, int]:
    """The share of rows that are as long as the header, if that is more than one cell; and how long it is."""
    try:
        lengths = [len(row) for row in islice(csv.reader(lines, delimiter=separator), 200) if row]
    except csv.Error:
        return 0.0, 0
    if not lengths or lengths[0] < 2:
        return 0.0, 0
    return sum(n == lengths[0] for n in lengths) / len(lengths), lengths[0]


@dataclass(frozen=True, slots=True)
class _Marks:
    """How many cells look like numbers with a comma, with a point, or like 12,345; and texts that mean missing."""

    commas: int
    points: int
    thousands: int
    missing: tuple[str, ...]

    def decimal(self, separator: str) -> str:
        comma = self.commas > self.points and (separator != "," or self.commas > self.thousands)
        return "," if comma else "."


def _marks(file: str, written: TextFormat) -> _Marks:
    engine = duck.open_file(file, written)
    say = engine.dialect
    listed = f"[{', '.join(map(say.quote, engine.stored()))}]"
    some = f"SELECT unnest({listed}) AS x FROM (SELECT * FROM {engine.relation} LIMIT {SAMPLE_ROWS})"
    shapes = ("^[+-]?[0-9]+,[0-9]+$", "^[+-]?[0-9]+[.][0-9]+$", "^[+-]?[0-9]{1,3}(,[0-9]{3})+$")
    sums = ", ".join(f"count(*) FILTER ({say.matches('x', shape)}) AS s{i}" for i, shape in enumerate(shapes))
    commas, points, thousands = (int(n[0]) for n in engine.fetch(f"SELECT {sums} FROM ({some})").values())
    known = ", ".join(map(say.text, MARKERS))
    every = f"SELECT unnest({listed}) AS x FROM {engine.relation}"
    seen = engine.fetch(f"SELECT DISTINCT x FROM ({every}) WHERE x IN ({known})")["x"].tolist()
    return _Marks(commas, points, thousands, tuple(x for x in MARKERS if x in seen))
