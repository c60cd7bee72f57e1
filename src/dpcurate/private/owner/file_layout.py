"""How a text file is written: found by looking at it, told, and put into the schema, so that nobody guesses again."""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from glob import glob
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

from dpcurate.errors import DpcurateError, SchemaError
from dpcurate.private.sources import duck, textfile, told
from dpcurate.private.sources.engine import Engine
from dpcurate.schema import TextFormat, level_number

MARKERS = ("NA", "N/A", "n/a", "#N/A", "NULL", "null", ".", "?")
"""Texts that programs write for a missing cell; NaN is one in any table."""
SAMPLE_BYTES = 1 << 18
SAMPLE_ROWS = 100_000
"""Rows that are looked at for their decimal mark."""
SAMPLE_LINES = 300
"""Rows that are looked at for the separator and for lines before the header."""
MOST_BEFORE = 50
"""Lines before the header that are found."""
MOST_ALIKE = 0.9
"""The share of rows with as many cells as the header, if lines before it are to be skipped."""


@dataclass(frozen=True, slots=True)
class FileLayout:
    """A format, and in words."""

    format: TextFormat
    in_words: str

    def opened(self, table: str | Path) -> Engine:
        """The file, cut into cells once and not once for every column."""
        engine = duck.open_file(str(table), self.format)
        engine.connection.execute(f"CREATE TEMP TABLE dpcurate_draft AS SELECT * FROM {engine.relation}")
        engine.relation = "dpcurate_draft"
        return engine


def found_in(
    table: Any, *, separator: str | None, encoding: str | None, decimal: str | None, skip: int | None
) -> FileLayout | None:
    """How a text file is written; None for any other table."""
    if not isinstance(table, (str, Path)) or not textfile.is_text(str(table)):
        if (separator, encoding, decimal, skip) != (None, None, None, None):
            raise SchemaError("separator, encoding, decimal mark and skip are for text files, .csv and .tsv")
        return None
    file = str(table)
    first = next(iter(sorted(glob(file))), file)
    written = TextFormat(separator, _encoding(first) if encoding is None else encoding, skip=skip or 0)
    shape = _shape(first, written, (separator,) if separator else (",", *textfile.SEPARATORS))
    if shape is not None:
        written = replace(written, separator=shape.separator, skip=shape.skip if skip is None else skip)
    try:
        marks = _marks(file, written)
    except DpcurateError:
        raise
    except Exception as error:
        raise told(file, written, error) from error
    written = replace(written, decimal=decimal or marks.decimal(written.separates(file)), missing=marks.missing)
    return FileLayout(_plain(written, file), _in_words(written, file))


def _plain(written: TextFormat, file: str) -> TextFormat:
    """The separator that a file of this ending has anyway need not be written down."""
    usual = replace(written, separator=None)
    return usual if usual.separates(file) == written.separates(file) else written


def _in_words(written: TextFormat, file: str) -> str:
    names = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
    separator = written.separates(file)
    words = [f"a text file separated by {names.get(separator, repr(separator))}", f"in {written.encoding}"]
    words.append("numbers with a decimal comma" if written.decimal == "," else "numbers with a decimal point")
    if written.skip:
        words.append(f"the header after {written.skip} line{'s' if written.skip > 1 else ''}")
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


@dataclass(frozen=True, slots=True)
class Shape:
    """How a separator cuts a file: the share of rows as long as the header, cells in the header, lines before it."""

    share: float
    cells: int
    skip: int
    separator: str


def _shape(file: str, written: TextFormat, separators: Sequence[str]) -> Shape | None:
    """The separator that cuts most rows into the same number of cells, more than one; the first of equals."""
    try:
        text = textfile.beginning(file, SAMPLE_BYTES).decode(written.encoding, errors="ignore").removeprefix("\ufeff")
    except (OSError, EOFError, ValueError):
        return None
    lines = list(StringIO(text, newline=""))
    whole = lines[:-1] if len(lines) > 1 else lines  # the last may be cut
    shapes = [shape for separator in separators if (shape := cut(whole[written.skip :], separator)) is not None]
    return max(shapes, key=lambda shape: (shape.share, shape.cells), default=None)


def cut(lines: Sequence[str], separator: str) -> Shape | None:
    """How a separator cuts rows, if the header has more than one cell."""
    reader = csv.reader(lines, delimiter=separator)
    rows, starts, ends, before = [], [], [], 0
    try:
        for row in islice(reader, SAMPLE_LINES):
            if row:
                rows.append(row)
                starts.append(before)
                ends.append(reader.line_num)
            before = reader.line_num
    except csv.Error:
        return None
    header = _header(rows, [end == start for end, start in zip(ends, starts[1:], strict=False)])
    if not rows or len(rows[header]) < 2:
        return None
    below = [len(row) for row in rows[header:]]
    share = sum(cells == below[0] for cells in below) / len(below)
    return Shape(share, below[0], starts[header], separator)


def _header(rows: Sequence[Sequence[str]], touches: Sequence[bool]) -> int:
    """The row that names the columns: the first that is as long as nearly all rows below it, or else the first.

    `touches` says of every row but the last whether no blank line comes after it.
    """
    usual = Counter(map(len, rows)).most_common(1)[0][0] if rows else 0
    pairs = enumerate(zip(rows, touches, strict=False))
    first = next((i for i, (row, touch) in pairs if touch and len(row) == usual and not _is_title(row)), 0)
    if not 0 < first <= MOST_BEFORE or not _names(rows[first]):
        return 0
    above = rows[first - 1]
    if (
        touches[first - 1] and len(above) >= usual - 1 and not _is_title(above)
    ):  # names, one too few (as R writes) or too many
        return 0
    below = rows[first + 1 :]
    alike = sum(len(row) == usual for row in below)
    return first if alike >= max(MOST_ALIKE * len(below), 2) else 0


def _names(row: Sequence[str]) -> bool:
    """Whether cells can name columns: all different, and not all of them numbers."""
    return len(set(row)) == len(row) and not all(level_number(cell) is not None for cell in row)


def _is_title(row: Sequence[str]) -> bool:
    """A line of text to which a spreadsheet added empty cells."""
    return len(row) > 2 and sum(bool(cell.strip()) for cell in row) < 2


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
