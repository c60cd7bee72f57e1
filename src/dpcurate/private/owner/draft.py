"""A draft schema from a table, for its owner to check. This is the one helper that looks."""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from glob import glob
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

from dpcurate._files import toml_text
from dpcurate.errors import DpcurateError, OwnerError, SchemaError
from dpcurate.private.owner.guess import Guess, LeftOut, cap, guess, roughly
from dpcurate.private.owner.seen import names_a_person, see
from dpcurate.private.sources import duck, open_engine, textfile, told
from dpcurate.private.sources.engine import Engine, first_line
from dpcurate.schema import MISSING, OWN, Categorical, Column, Numeric, TextFormat, level_number
from dpcurate.schema.column_order import REST, likely_first
from dpcurate.schema.toml import file_settings, toml_key, toml_texts

__all__ = ["Draft", "draft", "draft_schema"]


@dataclass(frozen=True, slots=True)
class Draft:
    """A schema as TOML with remarks, how a text file was read, and a column of ids that repeat.

    `columns` are the drafted ones, each with what to check; `left_out` the others, each with the reason.
    """

    text: str
    read_as: str
    repeated_id: str | None
    columns: tuple[Guess, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    file: TextFormat = field(default_factory=TextFormat)
    rows: int = 10
    """The number of rows, rounded to one digit."""


def draft(
    table: Any,
    *,
    max_levels: int = 20,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    skip: int | None = None,
) -> str:
    """Write a draft schema (TOML text) for `table`. It LOOKS AT THE DATA: a person must check it.

    How a text file is written is found, unless it is given, and goes into the schema. Columns of dates, ids and
    free text are left out and named.
    """
    given = {"separator": separator, "encoding": encoding, "decimal": decimal}
    return draft_schema(table, max_levels=max_levels, **given, skip=skip).text


def draft_schema(
    table: Any,
    *,
    max_levels: int = 20,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    skip: int | None = None,
) -> Draft:
    """The same as `draft`, with how a text file was read and whether a column of ids repeats."""
    layout = found_in(table, separator=separator, encoding=encoding, decimal=decimal, skip=skip)
    written = TextFormat() if layout is None else layout.format
    engine = open_engine(table, None, written)[0] if layout is None else layout.opened(table)
    every, rows = [], 0
    for name in engine.stored():
        try:
            seen = see(engine, name, max_levels)
            every.append(guess(seen, max_levels))
            rows = seen.rows
        except Exception as error:
            raise OwnerError(f"column {name!r} could not be read: {first_line(error)}") from error
    guesses = [one for one in every if isinstance(one, Guess)]
    left_out = [one for one in every if isinstance(one, LeftOut)]
    if not guesses:
        raise OwnerError("no column of the table can be used:\n" + "\n".join(f"{o.name!r}: {o.why}" for o in left_out))
    who = the_person(left_out)
    return Draft(
        written_out(guesses, left_out, written, rows),
        "" if layout is None else layout.in_words,
        None if who is None or who.rows_each <= 1 else who.name,
        tuple(guesses),
        tuple(left_out),
        written,
        roughly(rows),
    )


# --- the text of a draft --------------------------------------------------------------------------------


WARNING = """\
# DRAFT: dpcurate LOOKED AT THE DATA to write this. Check every line before use:
# a level or a bound that only one person has would reveal that this person is in the table.
# Put what is known beforehand (a codebook, a questionnaire, physical limits) in its place,
# add levels that could occur, then delete these four lines.
"""
SETTINGS = """\
# kind      "categorical": levels without an order; "ordinal": from low to high; "numeric": a number between bounds
# missing   an empty cell: "drop" leaves its row out, "own" keeps it as missing, a level or a number counts it as that
# outside   any other cell: "drop" leaves its row out, "clamp" counts a number beyond the bounds as the bound
"""
EXAMPLE_CAP = 5
"""Where no id was seen to repeat."""


def written_out(guesses: Sequence[Guess], left_out: Sequence[LeftOut], file: TextFormat, rows: int) -> str:
    lines = [*_rows(rows), *_order([one.column for one in guesses]), *_person(left_out), *_file(file)]
    for one in guesses:
        lines += ["", *_column(one)]
    if left_out:
        lines += ["", *(f"# left out: {_one_line(repr(one.name))}: {_one_line(one.why)}" for one in left_out)]
    return f"{WARNING}\n{SETTINGS}" + "\n".join(lines) + "\n"


def _line(setting: str, remark: str) -> str:
    return f"{setting}  # {_one_line(remark)}" if remark else setting


def _one_line(text: str) -> str:
    """No text from the table may end a remark and begin a setting."""
    return "".join(c if c.isprintable() else " " for c in text)


def _rows(rows: int) -> Iterator[str]:
    yield ""
    yield "# CONFIRM: roughly how many rows are there, as far as that is public? The number below is the table's own,"
    yield "# rounded to one digit. Replace it by one from a press release or a plan; delete the line if none is public."
    yield f"rows = {roughly(rows)}"


def _order(columns: Sequence[Column]) -> Iterator[str]:
    if REST in {column.name for column in columns}:
        return
    first = likely_first(columns)
    yield ""
    yield "# QUESTION: what comes first? No arrow points from a later group to an earlier one. Saying so costs no"
    yield "# budget and keeps arrows from pointing the wrong way. Name ALL columns that nothing else can cause: if one"
    yield '# is left out, about half of the arrows at it are wrong. "*" stands for all columns that are not named.'
    if first:
        yield "# By their names alone these may be such columns (a treatment only if it was drawn by lot):"
    else:
        yield "# By their names alone none is such a column; sex, age, region or an arm drawn by lot would be:"
    yield f'# order = [{_one_line(toml_texts(first or ("FIRST", "COLUMNS")))}, ["*"]]'


def the_person(left_out: Sequence[LeftOut]) -> LeftOut | None:
    """The column that most likely says whose row it is: one whose ids repeat, if there is one."""
    ids = [one for one in left_out if one.rows_each > 0]
    return max(ids, key=lambda one: (one.rows_each > 1, names_a_person(one.name)), default=None)


def _person(left_out: Sequence[LeftOut]) -> Iterator[str]:
    who = the_person(left_out)
    repeats = who is not None and who.rows_each > 1
    name = "patient" if who is None else who.name
    yield ""
    if repeats:
        yield f"# QUESTION: does {_one_line(repr(name))} identify persons? Its ids repeat over several rows."
        yield "# If it does, uncomment the three lines: a person is then protected, at most so many of their rows used."
        yield "# Without them one row is protected, and a person with several rows is not."
    else:
        yield "# If one person can have several rows, name the column of their ids, and a cap on rows:"
    yield "# [person]"
    yield f"# column = {_one_line(toml_text(name))}"
    yield f"# rows = {cap(who.rows_each) if who is not None and repeats else EXAMPLE_CAP}"


def _file(file: TextFormat) -> Iterator[str]:
    settings = file_settings(file)
    if settings:
        yield ""
        yield _line("[file]", "how the text file is written; found in the file")
    for name, value in settings.items():
        yield f"{name} = {value}"


def _column(guess: Guess) -> Iterator[str]:
    column = guess.column
    remark = "; ".join(part for part in (guess.about, guess.remark) if part)
    yield _line(f"[columns.{toml_key(column.name)}]", remark)
    for name, value in _settings(guess).items():
        yield f"{name} = {value}"
    if isinstance(column, Categorical) and column.groups:
        yield f"[columns.{toml_key(column.name)}.groups]"
        for name, cells in column.groups:
            if (name, cells) != (MISSING, (MISSING,)):  # which missing = 'own' adds
                yield f"{toml_key(name)} = {toml_texts(cells)}"


def _settings(guess: Guess) -> dict[str, str]:
    """The column's own, and missing = 'own' rather than a level that two settings must agree on."""
    column = guess.column
    head = {"kind": toml_text(column.kind)}
    tail = {"missing": toml_text(str(column.missing)), "outside": toml_text(column.outside)}
    if isinstance(column, Numeric):
        return head | {"low": _number(column.low), "high": _number(column.high)} | tail
    own = column.missing == MISSING
    levels = tuple(level for level in column.levels if not (own and level == MISSING))
    tail |= {"missing": toml_text(OWN)} if own else {}
    return head | ({} if column.groups else {"levels": toml_texts(levels)}) | tail


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


# ---------------------------------------------------------------------------------------------------------------------
# How a text file is written: found by looking at it, told, and put into the schema, so that nobody guesses again.


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
