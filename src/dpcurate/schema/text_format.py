"""How a text file of rows is written. The schema says it, so that no row decides how others are read."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Any

from dpcurate._messages import shown
from dpcurate.errors import SchemaError

MOST_SPELLINGS = 100
"""Texts that stand for a missing cell."""
MOST_SKIPPED = 1000
"""Lines before the header."""


@dataclass(frozen=True, slots=True)
class TextFormat:
    """A CSV file: its separator, its encoding, its decimal mark, and the texts that mean a missing cell.

    Without a separator it is a comma, in .tsv files a tab. An empty cell is always missing. `skip` is the number of
    lines before the header, such as a title or a source.
    """

    separator: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    missing: tuple[str, ...] = ()
    skip: int = 0

    def __post_init__(self) -> None:
        if self.separator is not None and not _is_separator(self.separator):
            raise _refused("separator", f'must be one character, such as ";" or "\\t", got {shown(self.separator)}')
        if self.decimal not in (".", ","):
            raise _refused("decimal", f'must be "." or ",", got {shown(self.decimal)}')
        if not _is_encoding(self.encoding):
            known = '"utf-8", "windows-1252", "latin-1" or another that Python knows'
            raise _refused("encoding", f"must be {known}, got {shown(self.encoding)}")
        if isinstance(self.skip, bool) or not isinstance(self.skip, int) or not 0 <= self.skip <= MOST_SKIPPED:
            raise _refused("skip", f"must be a whole number from 0 to {MOST_SKIPPED:,}, got {shown(self.skip)}")
        object.__setattr__(self, "missing", _texts(self.missing))

    def separates(self, file: str) -> str:
        """The separator of a file."""
        tabs = file.lower().removesuffix(".gz").endswith(".tsv")
        return self.separator or ("\t" if tabs else ",")

    @property
    def is_utf8(self) -> bool:
        """Whether the encoding is UTF-8, which needs no conversion."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig", "ascii")


def _refused(setting: str, why: str) -> SchemaError:
    return SchemaError(f"file: {setting} {why}", setting=setting)


def _is_separator(value: object) -> bool:
    """One ASCII character that stands in no number and in no word."""
    return (
        isinstance(value, str)
        and len(value) == 1
        and value.isascii()
        and not value.isalnum()
        and value not in '"\r\n+-.'
    )


def _is_encoding(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(value.encode() and "".encode(value) is not None)
    except (LookupError, ValueError):  # unknown, or no encoding of texts; a NUL in the name
        return False


def _texts(given: Any) -> tuple[str, ...]:
    listed = isinstance(given, (list, tuple)) and len(given) <= MOST_SPELLINGS
    if not listed or not all(isinstance(x, str) and "\x00" not in x for x in given):
        raise _refused(
            "missing", f'must be a list of at most {MOST_SPELLINGS} texts, such as ["NA"], got {shown(given)}'
        )
    return tuple(given)
