"""CSV files as DuckDB reads them: the schema says how they are written, nothing is guessed from the rows."""

from __future__ import annotations

import codecs
import csv
import gzip
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from glob import glob
from gzip import GzipFile
from io import BufferedReader
from itertools import count, islice
from pathlib import Path
from typing import TextIO

from dpcurate.errors import OwnerError
from dpcurate.private.sources import tempdir
from dpcurate.private.sources.encode import Dialect
from dpcurate.private.sources.engine import check_unique, first_line
from dpcurate.schema import TextFormat

LONGEST_HEADER = 1 << 24
"""Characters of a header: a file without an end of line, or a small one that unpacks to a large one, ends there."""
SEPARATORS = (";", "\t", "|", ",")
_CHUNK = 1 << 20
LONGEST_LINE = 1 << 21
"""Bytes of a line; DuckDB refuses longer ones, but for a last one longer than its buffer, which it leaves out."""
_KINDS = {
    b"PAR1": "a Parquet file: let its name end in .parquet",
    b"PK\x03\x04": "an Excel or zip file: let the name of a workbook end in .xlsx, and unpack an archive",
    b"\xd0\xcf\x11\xe0": "an old Excel file (.xls): save it as .xlsx or as CSV",
    b"\x1f\x8b": "a gzip file: let its name end in .csv.gz",
}
"""What files of another kind begin with."""
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TEXT_CONTROLS = b"\t\n\r\f"
_LOOKED_AT = 4096
_MOST_CONTROLS = 0.02
"""Of the first bytes of a text; in random bytes a tenth are control characters."""


def is_text(file: str) -> bool:
    """Whether a path ends like a text file."""
    return file.lower().removesuffix(".gz").endswith((".csv", ".tsv"))


def relation(file: str, written: TextFormat, say: Dialect) -> tuple[str, list[str], Path | None]:
    """The rows in SQL, up to whether they are read in parallel; their files; and the folder of those if rewritten."""
    files = sorted(glob(file)) or [file]
    header = _common_header(files, written)
    folder, places = None, files
    if not written.is_utf8:
        folder = Path(tempdir.place() or _no_folder(file, written))
        places = _rewritten(files, folder, written)
    else:
        for one in files:
            _check_last_line(one)
    columns = ", ".join(f"{say.text(name)}: 'VARCHAR'" for name in header)
    missing = ", ".join(map(say.text, ("", *written.missing)))
    where = ", ".join(map(say.text, places))
    options = (
        f"auto_detect = false, header = true, skip = {written.skip}, comment = '', quote = '\"', escape = '\"', "
        f"nullstr = [{missing}], delim = {say.text(written.separates(file))}, columns = {{{columns}}}"
    )
    return f"read_csv([{where}], {options}, parallel = ", places, folder


def quotes_are_closed(files: Sequence[str]) -> bool:
    """Whether no file ends inside a quoted cell, which DuckDB does not notice without parallelism.

    A quote within a quoted cell is doubled, so every cell has an even number of them.
    """
    for file in files:
        with _bytes(file) as handle:
            if sum(chunk.count(b'"') for chunk in iter(lambda: handle.read(_CHUNK), b"")) % 2:
                return False
    return True


def _check_last_line(file: str) -> None:
    """Refuse a last line that DuckDB's parallel reader would leave out without a word."""
    end = _end(file, LONGEST_LINE + 2).rstrip(b"\r\n")
    if len(end) > LONGEST_LINE and b"\n" not in end and b"\r" not in end:
        raise OwnerError(f"the last line of {file!r} is longer than {LONGEST_LINE:,} bytes: is a line break missing?")


def _no_folder(file: str, written: TextFormat) -> str:
    raise OwnerError(
        f"{file!r} is in {written.encoding}, and this system offers no folder of our own to rewrite it in: "
        "save it as UTF-8"
    )


def _rewritten(files: Sequence[str], folder: Path, written: TextFormat) -> list[str]:
    """The files in UTF-8, which is all that DuckDB reads to the last character."""
    folder.mkdir(mode=0o700)
    places = []
    for i, file in enumerate(files):
        place = folder / f"{i:06}.csv"
        try:
            with _text(file, written) as rows, place.open("w", encoding="utf-8", newline="") as copy:
                shutil.copyfileobj(rows, copy, _CHUNK)
            _check_last_line(str(place))
        except OwnerError:
            shutil.rmtree(folder)
            raise
        except (UnicodeError, OSError, EOFError) as error:
            shutil.rmtree(folder)
            raise OwnerError(f"cannot read {file!r}: {_not_written_so(file, written) or error}") from None
        places.append(str(place))
    return places


# --- headers ------------------------------------------------------------------------------------------


def _common_header(files: Sequence[str], written: TextFormat) -> list[str]:
    """The header, which must be the same in every file of a glob: columns go by their places."""
    headers = [first_row(one, written) for one in files]
    for one, header in zip(files, headers, strict=True):
        if header != headers[0]:
            raise OwnerError(f"{one!r} has other columns (or another order of them) than {files[0]!r}")
    check_unique([name.casefold() for name in headers[0]])  # DuckDB does not tell capital letters from small ones
    return headers[0]


def first_row(file: str, written: TextFormat) -> list[str]:
    """The names of a file's columns."""
    separator = written.separates(file)
    _check_text(file, written)
    try:
        with _text(file, written) as handle:
            lines = _bounded(handle, file)
            for number, line in enumerate(islice(lines, written.skip), start=1):
                _check_skipped(file, number, line)
            header = next(csv.reader(lines, delimiter=separator), [])
    except (OSError, EOFError, UnicodeError, csv.Error) as error:
        why = _not_written_so(file, written) or str(error)
        raise OwnerError(f"cannot read the header of {file!r}: {why}") from None
    if not header:
        skipped = f" after the {written.skip} lines that the schema skips" if written.skip else ""
        raise OwnerError(f"{file!r} is empty: it has no header{skipped}")
    header[0] = header[0].removeprefix("\ufeff")
    if len(header) == 1 and written.separator is None:
        _check_separator(file, header[0], separator)
    return _named(header)


def _check_text(file: str, written: TextFormat) -> None:
    """A file of another kind would be blamed for its encoding."""
    try:
        start = beginning(file, _LOOKED_AT)
    except (OSError, EOFError, ValueError):  # it cannot be read, which is told by whoever reads it
        return
    kind = next((kind for magic, kind in _KINDS.items() if start.startswith(magic)), None)
    controls = sum(byte < ord(" ") and byte not in _TEXT_CONTROLS for byte in start)
    wide = written.encoding.lower().startswith(("utf-16", "utf-32")) or start.startswith(_WIDE_MARKS)
    if kind is None and (wide or controls <= 8 + _MOST_CONTROLS * len(start)):
        return
    told = f"it looks like {kind}" if kind else "its bytes are no text. Save the table as CSV in UTF-8, or as Parquet"
    raise OwnerError(f"{file!r} is not a CSV file: {told}")


def _check_skipped(file: str, number: int, line: str) -> None:
    """An open quote before the header would make DuckDB skip more lines than were counted."""
    if line.count('"') % 2:
        raise OwnerError(
            f"line {number} of {file!r} comes before the header and has a quotation mark without its partner: "
            "delete the line, and lower skip under [file] in the schema by 1"
        )


def _check_separator(file: str, header: str, separator: str) -> None:
    """One column whose name holds a separator is many columns, read by the wrong one."""
    seen = next((s for s in SEPARATORS if s in header), None)
    if seen is not None:
        raise OwnerError(
            f"{file!r} has one column if {_spelt(separator)} separates them, and its header holds {_spelt(seen)}: "
            f"write separator = {_spelt(seen)} under [file] in the schema, as `dpcurate schema draft` does"
        )


def _spelt(separator: str) -> str:
    return '"\\t"' if separator == "\t" else f'"{separator}"'


def _named(header: list[str]) -> list[str]:
    """Columns without a name get one: pandas writes its index as such a column."""
    taken = {name.casefold() for name in header}
    free = (name for i in count() if (name := f"column{i}") not in taken)
    return [name or next(free) for name in header]


def _bounded(handle: TextIO, file: str) -> Iterator[str]:
    """Lines, up to a bound."""
    left = LONGEST_HEADER
    while line := handle.readline(left + 1):
        left -= len(line)
        if left < 0:
            raise OwnerError(f"the header of {file!r} is longer than {LONGEST_HEADER:,} characters: is it a CSV file?")
        yield line


# --- what is wrong with a file ----------------------------------------------------------------------------


def explained(file: str, written: TextFormat, error: Exception) -> str:
    """An engine's complaint about a text file as a sentence; none of its rows is repeated."""
    text = str(error)
    if "utf-8" in text.lower():
        for one in sorted(glob(file)) or [file]:
            if told := _not_written_so(one, written):
                return f"cannot read {one!r}: {told}"
    line, why = re.search(r"CSV Error on Line: (\d+)", text), re.search(r"^(Expected Number|Value with).*", text, re.M)
    if line and why:
        return f"cannot read {file!r}: line {line[1]}: {why[0]}"
    return f"cannot read {file!r}: {first_line(error)}"


def _not_written_so(file: str, written: TextFormat) -> str:
    try:
        line = bad_line(file, written.encoding)
    except (OSError, EOFError, ValueError):  # it cannot be read at all
        return ""
    if line is None:
        return ""
    return (
        f"line {line} is not in {written.encoding.upper()}: save the file as UTF-8, or name its encoding, "
        '`dpcurate schema draft --encoding windows-1252` or encoding = "windows-1252" under [file] in the schema'
    )


def bad_line(file: str, encoding: str) -> int | None:
    """The first line that is not in an encoding."""
    decoder, lines = codecs.getincrementaldecoder(encoding)(), 1
    with _bytes(file) as handle:
        while True:
            chunk = handle.read(_CHUNK)
            try:
                lines += decoder.decode(chunk, final=not chunk).count("\n")
            except UnicodeError as error:
                start = getattr(error, "start", 0)  # of what the decoder held, which begins with what was left over
                held = getattr(error, "object", b"")[:start].decode(encoding, errors="replace")
                return lines + held.count("\n")
            if not chunk:
                return None


def beginning(file: str, size: int) -> bytes:
    """The first bytes of a file."""
    with _bytes(file) as handle:
        return handle.read(size)


def _end(file: str, size: int) -> bytes:
    """The last bytes of a file; a packed one is unpacked for them, once."""
    end = b""
    with _bytes(file) as handle:
        if not file.lower().endswith(".gz"):
            handle.seek(max(0, os.path.getsize(file) - size))
        while chunk := handle.read(8 * _CHUNK):
            end = (end + chunk)[-size:]
    return end


def _bytes(file: str) -> GzipFile | BufferedReader:
    return gzip.open(file, "rb") if file.lower().endswith(".gz") else open(file, "rb")


def _text(file: str, written: TextFormat) -> TextIO:
    opened = gzip.open if file.lower().endswith(".gz") else open
    return opened(file, "rt", newline="", encoding=written.encoding)
